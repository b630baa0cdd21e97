"""Raw connections: what an HTTP client hides, and the same judgement of everything else."""

from __future__ import annotations

import gzip
import socket
import ssl
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from built import KEY, LIST, broken, cancel, session
from raw_service import Conversation, Reply, answer, head, serving
from single import LIMIT, LISTING, OK

from conformance.outcomes import Excluded
from conformance.target import Mode
from conformance.transport import connecting, endpoint, wire
from conformance.transport.answer import Answer
from conformance.transport.endpoint import USER_AGENT
from conformance.transport.evidence import Trouble
from conformance.transport.guard import Refused
from conformance.transport.request import NOBODY, Request
from conformance.verify import settled

#: Seconds that the tests about time-outs may take beside these, on a busy machine.
SLACK = 8.0


def staying(*replies: bytes) -> Reply:
    """Answers the turns of each connection with these, and leaves it open."""
    return lambda talk: talk.send(replies[min(talk.turn, len(replies) - 1)])


def once(reply: Reply | bytes, request: Request = LIST, *, last: bool = True, **further: Any) -> Answer:
    with serving(reply) as service, session(service.base_url, **further) as opened:
        opened.guard.saw_listing([])
        with opened.wire.connect() as connection:
            return connection.exchange(request, last=last)


# --- what is sent


def test_what_is_sent_is_what_is_recorded() -> None:
    with serving(OK) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            exchange = connection.exchange(
                Request("GET", "/store/orders", LIST.credential, "limit=1"), last=True
            ).exchange
        lines = service.requests[0].decode().split("\r\n")
    assert lines[0] == "GET /v1/store/orders?limit=1 HTTP/1.1"
    assert [tuple(line.split(": ", 1)) for line in lines[1:] if line] == [
        (name, value.replace("<the key>", KEY)) for name, value in exchange.request_headers
    ]
    assert exchange.via == "wire"
    assert dict(exchange.request_headers)["Connection"] == "close"


def test_the_bare_minimum() -> None:
    with serving(head("204 No Content")) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        with opened.wire.connect() as connection:
            connection.exchange(cancel(12345678901234), minimal=True)
        assert service.requests == [
            f"DELETE /v1/store/orders/12345678901234 HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
            f"User-Agent: {USER_AGENT}\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
        ]


def test_the_bare_minimum_is_repeated_as_such() -> None:
    with serving(OK) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            bare = connection.exchange(LIST, minimal=True)
        bare.repeat()
        opened.client.send(LIST).repeat()
        assert [b"accept:" in request.lower() for request in service.requests] == [False, False, True, True]


def test_the_guard_stands_before_the_wire() -> None:
    with serving(OK) as service, session(service.base_url, Mode.OBSERVE) as opened:
        with opened.wire.connect() as connection, pytest.raises(Refused):
            connection.exchange(cancel(1))
        assert service.connections == 0


def test_a_prepared_request_waits_for_its_release() -> None:
    with serving(OK) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        connection.prepare(LIST)
        time.sleep(0.1)
        assert service.requests == []
        connection.release()
        assert connection.receive().status == 200
        assert len(service.requests) == 1


def test_an_answer_is_kept_by_the_one_who_may() -> None:
    with serving(OK) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        connection.prepare(LIST)
        connection.release()
        found = connection.receive(keep=False)
        assert opened.recorder.exchanges == []
        opened.wire.keep(found)
        assert opened.recorder.exchanges == [found.exchange]
        assert opened.guard.listed == {101}


# --- bytes past the end


@pytest.mark.parametrize("extra", [b"{}", b"\r\n", b"x" * 100])
@pytest.mark.parametrize("close", [True, False], ids=["closes", "stays open"])
@pytest.mark.parametrize("apart", [True, False], ids=["later", "at once"])
def test_bytes_after_a_204_are_seen(extra: bytes, close: bool, apart: bool) -> None:
    def reply(talk: Conversation) -> None:
        talk.send(*((head("204 No Content"), extra) if apart else (head("204 No Content") + extra,)), pause=0.05)
        if close:
            talk.hang_up()

    found = once(reply, cancel(12345678901234))
    assert found.status == 204
    assert found.body == b""
    assert found.extra == extra
    assert broken(found.exchange) == {"CANCEL-2"}


def test_bytes_after_a_204_with_content_length_are_seen() -> None:
    found = once(head("204 No Content", "Content-Length: 2") + b"{}", cancel(12345678901234))
    assert found.extra == b"{}"
    assert broken(found.exchange) == {"CANCEL-2", "CANCEL-12"}


def test_bytes_after_a_204_are_seen_on_a_connection_that_goes_on() -> None:
    found = once(staying(head("204 No Content") + b"{}"), cancel(12345678901234), last=False)
    assert found.extra == b"{}"


def test_nothing_after_a_204_is_nothing() -> None:
    for reply in (head("204 No Content"), staying(head("204 No Content"))):
        found = once(reply, cancel(12345678901234))
        assert found.extra == b""
        assert broken(found.exchange) == set()


def test_a_quiet_service_is_not_waited_for() -> None:
    started = time.monotonic()
    assert once(staying(OK), timeout=60.0).status == 200
    assert wire.QUIET <= time.monotonic() - started < 30


@pytest.mark.parametrize("status", ["200 OK", "401 Unauthorized"])
def test_bytes_after_another_answer_are_a_breach_of_framing(status: str) -> None:
    found = once(answer(status, b'{"code": "", "message": "", "status": 401}' if "401" in status else b"[]") + b"!!")
    assert found.extra == b"!!"
    assert "HTTP-2" in broken(found.exchange)
    assert "2 bytes after the end" in str(found.exchange.findings["HTTP-2"])


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize(("first", "rows"), [(OK, {"HTTP-2"}), (head("204 No Content"), {"CANCEL-2"})])
def test_bytes_that_come_before_the_next_request_belong_to_the_last_answer(
    first: bytes, rows: set[str], looks: bool
) -> None:
    """Nothing else was asked for. The connection is given up."""

    def reply(talk: Conversation) -> None:
        talk.send(*((OK,) if talk.number else (first, b"stray")), pause=0.05)

    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        opened.guard.saw_listing([])
        found = connection.exchange(cancel(12345678901234) if first != OK else LIST)
        assert found.extra == b""
        time.sleep(0.3)
        assert not (looks and connection.left_open())
        assert connection.exchange(LIST).status == 200
        assert service.connections == 2
        kept, following = opened.recorder.exchanges
    assert found.extra == b"stray"
    assert (kept.extra, kept.kept_open) == ("stray", False if looks else None)
    assert broken(kept) == rows
    assert broken(following) == set()


@pytest.mark.parametrize(
    "pieces", [(b"{}" + OK,), (b"{}", OK), (b"\r\n", OK), (b"x" * 100, OK[:20], OK[20:])], ids=repr
)
def test_bytes_before_the_next_answer_belong_to_the_last_one(pieces: tuple[bytes, ...]) -> None:
    """A 204 that has a body after all leaves the next answer unread, by no fault of that."""

    def reply(talk: Conversation) -> None:
        talk.send(*(pieces if talk.turn else (head("204 No Content"),)), pause=0.05)

    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        opened.guard.saw_listing([])
        found = connection.exchange(cancel(12345678901234))
        following = connection.exchange(LIST).exchange
    assert found.extra == found.exchange.extra.encode() == b"".join(pieces).removesuffix(OK)
    assert broken(found.exchange) == {"CANCEL-2"}
    assert following.trouble == Trouble.CLOSED
    assert "behind the previous answer" in following.detail
    assert broken(following) == set()


def test_an_answer_that_is_none_is_broken_on_a_used_connection_too() -> None:
    reply = staying(OK, b"no HTTP\r\n\r\n")
    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        found = connection.exchange(LIST)
        following = connection.exchange(LIST).exchange
    assert found.extra == b""
    assert following.detail == "the answer begins with no status line of HTTP: 'no HTTP'"
    assert broken(following) == {"HTTP-2"}


# --- connections that go on


def test_one_connection_carries_many_requests() -> None:
    with serving(staying(OK, answer("401 Unauthorized", b"{}"), OK)) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            statuses = []
            for who in (LIST, Request("GET", "/store/orders", NOBODY), LIST):
                statuses.append(connection.exchange(who).status)
                assert connection.left_open()
        assert statuses == [200, 401, 200]
        assert service.connections == 1
        assert not connection.left_open()


@pytest.mark.parametrize(
    "reply",
    [
        answer("200 OK", LISTING, "Connection: close"),
        answer("200 OK", LISTING),
        head("200 OK", "Content-Type: application/json", version="1.0") + LISTING,
    ],
    ids=["announced", "unannounced", "HTTP/1.0"],
)
def test_a_closed_connection_is_noticed(reply: bytes) -> None:
    """To close after a complete answer is the good right of a service: the next request goes out on a new one."""
    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        assert connection.exchange(LIST).status == 200
        deadline = time.monotonic() + 20
        while connection.left_open() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not connection.left_open()
        assert connection.exchange(LIST).status == 200
        assert service.connections == 2
        assert [broken(exchange) for exchange in opened.recorder.exchanges] == [set(), set()]


def closing_on_the_second(talk: Conversation) -> None:
    """Closes just as a second request arrives on a connection."""
    if talk.turn == 0:
        talk.send(OK)
    else:
        talk.hang_up()


@pytest.mark.parametrize("request_", [LIST, cancel(12345678901234)], ids=["GET", "DELETE"])
def test_a_request_that_may_have_arrived_is_never_sent_twice(request_: Request) -> None:
    """Whether the first took effect cannot be known. A connection that is closed just then is nobody's fault."""
    with serving(closing_on_the_second) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            connection.exchange(LIST)
            found = connection.exchange(request_)
        assert found.status is None
        assert found.exchange.trouble == Trouble.CLOSED
        assert [broken(exchange) for exchange in opened.recorder.exchanges] == [set(), set()]
        assert len(service.requests) == 2


def test_a_request_whose_end_was_not_sent_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service closes the connection while all but the end of a request is under way: it cannot have received it."""
    with serving(OK) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        assert connection.exchange(LIST).status == 200
        ways = iter([True])  # as if the closing came after the look at the connection
        monkeypatch.setattr(
            connection,
            "_close_unless_quiet",
            lambda: next(ways, None) or type(connection)._close_unless_quiet(connection),
        )
        time.sleep(0.1)
        assert connection.exchange(LIST).status == 200
        assert [exchange.trouble for exchange in opened.recorder.exchanges] == [None, Trouble.UNSENT, None]
        assert [broken(exchange) for exchange in opened.recorder.exchanges] == [set(), set(), set()]
        assert len(service.requests) == 2


IDLE = answer("408 Request Timeout", b"", "Connection: close")


@pytest.mark.parametrize("looks", [True, False])
def test_a_connection_that_is_closed_as_idle_is_closed(looks: bool) -> None:
    """A 408 that comes unasked is no answer to what is asked next (RFC 9110 section 15.5.9)."""

    def reply(talk: Conversation) -> None:
        talk.send(OK, IDLE, pause=0.05) if talk.number == 0 else talk.send(OK)

    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        first = connection.exchange(LIST)
        time.sleep(0.3)
        assert not (looks and connection.left_open())
        assert connection.exchange(LIST).status == 200
        assert service.connections == 2
        assert [broken(exchange) for exchange in opened.recorder.exchanges] == [set(), set()]
    assert first.extra == b""


def test_an_answer_that_is_read_late_may_have_the_end_of_the_connection_behind_it() -> None:
    with serving(staying(OK + IDLE, OK)) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            found = [connection.exchange(LIST) for _ in range(2)]
            assert not connection.left_open()
        assert service.connections == 2
    assert [(each.status, each.extra, broken(each.exchange)) for each in found] == [(200, b"", set())] * 2


def test_a_request_under_which_a_connection_is_closed_as_idle_has_no_answer() -> None:
    """On a new connection, or on one that goes on, it would be one."""
    with serving(staying(OK, IDLE)) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        with opened.wire.connect() as connection:
            connection.exchange(LIST)
            found = connection.exchange(cancel(12345678901234)).exchange
    assert (found.trouble, found.status) == (Trouble.CLOSED, None)
    assert "as idle (408)" in found.detail
    assert broken(found) == set()
    assert once(IDLE).status == 408
    goes_on = staying(OK, answer("408 Request Timeout"))
    with serving(goes_on) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        assert [connection.exchange(LIST).status for _ in range(2)] == [200, 408]


def test_closed_in_the_middle_is_broken_not_closed() -> None:
    def reply(talk: Conversation) -> None:
        talk.send(OK if talk.turn == 0 else OK[:-5])
        if talk.turn:
            talk.hang_up()

    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        connection.exchange(LIST)
        found = connection.exchange(LIST)
    assert found.exchange.trouble == Trouble.BROKEN
    assert broken(found.exchange) == {"HTTP-2"}


# --- the same as the client


@pytest.mark.parametrize(
    "reply",
    [
        OK,
        head("200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked")
        + b"d\r\n"
        + LISTING
        + b"\r\n0\r\n\r\n",
        head("200 OK", "Content-Type: application/json", version="1.0") + LISTING,
        head("100 Continue") + head("103 Early Hints") + OK,
        answer("200 OK", gzip.compress(LISTING), "Content-Encoding: gzip"),
        answer("200 OK", gzip.compress(LISTING), "Content-Encoding: x-gzip"),
        answer("200 OK", zlib.compress(LISTING), "Content-Encoding: deflate"),
        answer("200 OK", LISTING, "Content-Encoding: identity"),
    ],
    ids=["plain", "chunked", "HTTP/1.0", "interim answers", "gzip", "x-gzip", "deflate", "identity"],
)
def test_right_answers(reply: bytes) -> None:
    found = once(reply)
    assert found.status == 200
    assert found.body == LISTING
    assert broken(found.exchange) == set()
    assert found.listing is not None


def test_an_answer_that_leaves_http_is_broken() -> None:
    """Other answers that are none are in the client's tests, for both."""
    found = once(head("101 Switching Protocols", "Upgrade: x"))
    assert found.status is None
    assert found.exchange.trouble == Trouble.BROKEN
    assert broken(found.exchange) == {"HTTP-2"}


@pytest.mark.parametrize(
    "reply",
    [
        lambda talk: None,
        lambda talk: talk.trickle(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: yes\r\n" * 200, 0.02),
        lambda talk: talk.trickle(head("200 OK", "Content-Length: 900") + b" " * 900, 0.02),
        lambda talk: talk.send(head("204 No Content")) or talk.trickle(b" " * 500, 0.02),
    ],
    ids=["nothing", "trickled headers", "trickled body", "trickled past the end"],
)
def test_no_answer_takes_longer_than_the_limit(reply: Reply) -> None:
    started = time.monotonic()
    once(reply, cancel(12345678901234), timeout=LIMIT)
    assert time.monotonic() - started < LIMIT + SLACK


def test_late_answers() -> None:
    found = once(lambda talk: None, timeout=LIMIT)
    assert found.exchange.trouble == Trouble.TIMEOUT
    assert found.exchange.detail == "no complete answer within 0.4 s (--timeout)"


def test_nobody_listens() -> None:
    with session("http://127.0.0.1:9/v1") as opened, opened.wire.connect() as connection:
        exchange = connection.exchange(LIST).exchange
    assert exchange.trouble == Trouble.UNREACHABLE
    assert "no connection to 127.0.0.1:9: " in exchange.detail


def test_what_the_service_asks_to_wait_is_waited_out() -> None:
    def reply(talk: Conversation) -> None:
        talk.send(OK if talk.number else answer("429 Slow down", b"", "Retry-After: 1"))

    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        assert connection.exchange(LIST).status == 200
        assert service.times[1] - service.times[0] >= 0.95


def test_no_service_is_hammered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MAX_WAIT", 0.9)
    with (
        serving(staying(answer("429 Slow down", b"", "Retry-After: 0"))) as service,
        session(service.base_url) as opened,
    ):
        with opened.wire.connect() as connection:
            assert connection.exchange(LIST).status == 429
        assert 2 <= len(service.requests) <= 8


# --- TLS


def test_tls(server_context: ssl.SSLContext, certificate: Path) -> None:
    reply = staying(head("204 No Content") + b"{}", OK)
    with serving(reply, server_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        opened.guard.saw_listing([])
        with opened.wire.connect() as connection:
            assert connection.exchange(cancel(12345678901234)).extra == b"{}"
            assert connection.left_open()
            assert connection.exchange(LIST, last=True).status == 200
        assert service.connections == 1


def test_stray_bytes_over_tls_are_seen(server_context: ssl.SSLContext, certificate: Path) -> None:
    """In a record of their own, after the answer has been read: they belong to that, as without TLS."""

    def reply(talk: Conversation) -> None:
        if talk.turn == 0:
            talk.send(OK, b"stray", pause=0.1)
        else:
            talk.send(OK)

    with (
        serving(reply, server_context) as service,
        session(service.base_url, ca_bundle=str(certificate)) as opened,
        opened.wire.connect() as connection,
    ):
        found = connection.exchange(LIST)
        assert connection.left_open()
        time.sleep(0.5)
        assert not connection.left_open()
        assert connection.exchange(LIST).status == 200
    assert found.extra == b"stray"
    assert broken(found.exchange) == {"HTTP-2"}


def test_tls_connections_that_are_closed_are_noticed(server_context: ssl.SSLContext, certificate: Path) -> None:
    with serving(OK, server_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        with opened.wire.connect() as connection:
            for _ in range(3):
                assert connection.exchange(LIST).status == 200
                time.sleep(0.05)
        assert [
            exchange.trouble
            for exchange in opened.recorder.exchanges
            if exchange.trouble not in (None, "closed", "unsent")
        ] == []


def test_a_certificate_of_an_unknown_authority(server_context: ssl.SSLContext) -> None:
    with serving(OK, server_context) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            exchange = connection.exchange(LIST).exchange
        assert exchange.trouble == Trouble.UNREACHABLE
        assert "certificate" in exchange.detail.lower()
        assert service.requests == []


def test_a_service_that_begins_no_handshake_keeps_waiting(certificate: Path) -> None:
    """As one that looks at the next connection only once it has answered those before it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base_url = f"https://127.0.0.1:{listening.getsockname()[1]}/v1"
        with session(base_url, ca_bundle=str(certificate)) as opened, opened.wire.connect() as connection:
            connection.prepare(LIST, last=True, within=0.2)
            assert connection.kept_waiting
            connection.receive()
        (kept,) = opened.recorder.exchanges
    assert (kept.trouble, kept.status) == (Trouble.WAITING, None)
    assert "within 0.2 s" in kept.detail


def test_a_request_that_is_given_up_was_not_sent() -> None:
    with serving(OK) as service, session(service.base_url) as opened:
        with opened.wire.connect() as connection:
            connection.prepare(LIST, last=True, within=5)
            assert not connection.kept_waiting
            connection.receive()
        assert [exchange.trouble for exchange in opened.recorder.exchanges] == [Trouble.UNSENT]
        assert service.requests == []


def test_a_service_that_speaks_http_2_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its alert comes where the connection is made, or, in TLS 1.3, where its answer is awaited."""
    alert = ssl.SSLError(1, "[SSL] tlsv1 alert no application protocol (_ssl.c:1006)")

    def refused(*_: object) -> None:
        raise alert

    for owner, name in ((connecting, "connect"), (wire.Connection, "_receive")):
        with monkeypatch.context() as patched, serving(OK) as service, session(service.base_url) as opened:
            patched.setattr(owner, name, refused)
            with opened.wire.connect() as connection:
                answer = connection.exchange(LIST)
            assert answer.exchange.trouble == Trouble.NO_RAW
            with pytest.raises(Excluded, match="HTTP/2 only"):
                settled(answer)


@pytest.mark.parametrize(
    ("answered", "trouble"), [("HTTP/2", Trouble.NO_RAW), ("HTTP/1.1", Trouble.BROKEN), ("", Trouble.BROKEN)]
)
def test_a_service_that_agrees_to_no_protocol_and_leaves(
    answered: str, trouble: Trouble, server_context: ssl.SSLContext, certificate: Path
) -> None:
    """That it speaks HTTP/2 only is known from what it answered before."""
    server_context.set_alpn_protocols(["h2"])
    with serving(b"", server_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        opened.endpoint.versions |= {answered} - {""}
        with opened.wire.connect() as connection:
            assert connection.exchange(LIST).exchange.trouble == trouble


def test_a_proxy_that_keeps_silent_is_left() -> None:
    """The connection to it is closed at once: an unclosed one is a warning, and so an error here."""
    with (
        socket.create_server(("127.0.0.1", 0)) as proxy,
        session("http://service/v1", proxy=f"http://127.0.0.1:{proxy.getsockname()[1]}", timeout=LIMIT) as opened,
        opened.wire.connect() as connection,
    ):
        assert connection.exchange(LIST).exchange.trouble == Trouble.TIMEOUT
        accepted, _ = proxy.accept()
        with accepted:
            accepted.settimeout(SLACK)
            while accepted.recv(4096):
                pass
