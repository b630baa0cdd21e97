"""Spare connections: which are handed out, and what goes out on them."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from built import LIST, session
from patience import PATIENCE
from raw_service import Conversation, answer, serving
from single import LISTING, OK

from conformance.transport import spares
from conformance.transport.spares import MANY, Spares


class Listener:
    """A service that only accepts connections; `accepted` are these, in order."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.socket.settimeout(PATIENCE)
        self.address = self.socket.getsockname()
        self.accepted: list[socket.socket] = []

    def accept(self, count: int) -> list[socket.socket]:
        new = [self.socket.accept()[0] for _ in range(count)]
        self.accepted += new
        return new


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()
    yield listening
    for each in (listening.socket, *listening.accepted):
        each.close()


@pytest.fixture(autouse=True)
def _keeps_them_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may stand still for longer than connections count as fresh."""
    monkeypatch.setattr(spares, "FRESH", PATIENCE)


def readable(spare: socket.socket) -> None:
    """Wait until there is something to read from a connection, or the other side has closed it."""
    assert select.select([spare], [], [], PATIENCE)[0]


@contextmanager
def kept(listener: Listener) -> Iterator[Spares]:
    """Wanted spare connections to `listener`, and as many as are kept there."""
    made = Spares()
    made.wanted = True
    with socket.create_connection(listener.address) as first:
        made.met(first)
    yield made
    made.close()


def test_spare_connections_are_opened_and_handed_out_in_order(listener: Listener) -> None:
    with kept(listener) as made:
        first, *others = listener.accept(MANY + 1)
        assert first.recv(1) == b""
        for at_service in others:
            spare = made.take()
            assert spare is not None
            with spare:
                assert spare.getsockname() == at_service.getpeername()
                assert spare.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert made.take() is None


def test_as_many_are_opened_as_are_missing(listener: Listener) -> None:
    with kept(listener) as made:
        listener.accept(MANY + 1)
        with ExitStack() as stack:
            for _ in range(3):
                spare = made.take()
                assert spare is not None
                stack.enter_context(spare)
            made.met(spare)
            listener.accept(3)
        made.close()
    listener.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.socket.accept()


def test_none_are_opened_or_handed_out_unless_wanted(listener: Listener) -> None:
    with kept(listener) as made:
        listener.accept(MANY + 1)
        made.wanted = False
        assert made.take() is None
        made.close()
        with socket.create_connection(listener.address) as further:
            made.met(further)
            listener.accept(1)
        listener.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.socket.accept()


def test_what_the_service_has_closed_or_spoken_on_is_not_handed_out(listener: Listener) -> None:
    with kept(listener) as made:
        _, closed, spoken, good, *_ = listener.accept(MANY + 1)
        closed.close()
        spoken.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        for _, spare in list(made._kept)[:2]:
            readable(spare)
        spare = made.take()
        assert spare is not None
        with spare:
            assert spare.getsockname() == good.getpeername()
        with pytest.raises(ConnectionResetError):  # closed, like any that is not used
            spoken.recv(1)


def test_what_is_old_is_not_handed_out(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service may be about to hang up."""
    with kept(listener) as made:
        accepted = listener.accept(MANY + 1)
        monkeypatch.setattr(spares, "FRESH", 0.0)
        assert made.take() is None
        assert [each.recv(1) for each in accepted] == [b""] * (MANY + 1)


def test_what_is_still_being_opened_is_left(listener: Listener) -> None:
    """A request opens a connection of its own sooner than it would have waited for one."""
    listener.socket.listen(0)
    with kept(listener) as made, ExitStack() as stack:
        ready = []
        while (spare := made.take()) is not None:  # what the kernel has accepted for the service
            ready.append(stack.enter_context(spare))
        assert len(ready) + len(made._kept) == MANY
        assert len(made._kept) > MANY / 2


def test_where_nobody_listens_any_more_there_are_none() -> None:
    listening = Listener()
    with socket.create_connection(listening.address) as first:
        for each in (listening.socket, *listening.accept(1)):
            each.close()
        made = Spares()
        made.wanted = True
        made.met(first)
    assert made.take() is None


def test_a_service_that_takes_idle_connections_is_told_from_one_that_does_not(listener: Listener) -> None:
    made = Spares()
    with socket.create_connection(listener.address) as first:
        made.met(first)
    with made.idle(PATIENCE) as taken:
        accepted = listener.accept(MANY + 1)
        assert made.take() is None  # the request goes out beside them
    assert taken == [True]
    assert [each.recv(1) for each in accepted] == [b""] * (MANY + 1)
    with made.idle(PATIENCE) as taken:
        listener.accept(MANY)[-1].close()
        readable(made._kept[-1][1])
    assert taken == [False]
    with made.idle(0.05) as taken:  # one that waits for them
        assert [each.recv(1) for each in listener.accept(MANY)] == [b""] * MANY
    assert taken == [False]


@pytest.mark.parametrize("secure", [False, True])
def test_requests_go_out_on_connections_that_were_opened_before(
    secure: bool, server_context: ssl.SSLContext, certificate: Path
) -> None:
    """One for each, as ever; TLS begins with the request."""
    opened_at: list[int] = []

    def reply(conversation: Conversation) -> None:
        opened_at.append(conversation.connection.getpeername()[1])
        conversation.send(answer("200 OK", b"[]"))
        conversation.hang_up()

    trusted = str(certificate)
    with (
        serving(reply, server_context if secure else None) as service,
        session(service.base_url, ca_bundle=trusted) as opened,
    ):
        opened.client.spares.wanted = True
        opened.client.send(LIST)
        ready = [spare.getsockname()[1] for _, spare in opened.client.spares._kept]
        assert len(ready) == MANY
        answers = [opened.client.send(LIST), *opened.client.send_all([LIST] * 4)]
        assert [each.status for each in answers] == [200] * 5
        assert set(opened_at[1:]) <= set(ready)
        assert len(set(opened_at)) == 6
        assert all(b"Connection: close" in request for request in service.requests)


def test_requests_that_must_overlap_all_open_connections() -> None:
    """Else some of them would be there before the others."""
    came: list[int] = []
    together = threading.Barrier(4)

    def reply(conversation: Conversation) -> None:
        came.append(conversation.connection.getpeername()[1])
        if conversation.number:
            together.wait(PATIENCE)
        conversation.send(LISTING)
        conversation.hang_up()

    with serving(reply) as service, session(service.base_url) as opened:
        opened.client.spares.wanted = True
        opened.client.send(LIST)
        ready = {spare.getsockname()[1] for _, spare in opened.client.spares._kept}
        opened.client.send_all([LIST] * 4, at_once=True)
        assert len(came) == 5
        assert ready.isdisjoint(came)


def test_spare_connections_are_closed_with_the_client() -> None:
    with serving(OK) as service:
        with session(service.base_url) as opened:
            opened.client.spares.wanted = True
            opened.client.send(LIST)
            left = [spare for _, spare in opened.client.spares._kept]
        assert len(left) == MANY
        assert all(spare.fileno() < 0 for spare in left)
