"""Checks of kept-alive connections: what a service closes at will is held against nobody, and passes nothing either."""

from __future__ import annotations

import http.server
import itertools
import signal
import ssl
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from built import LIST, answered, cancel, session
from commands import command
from raw_service import Conversation, answer, head, serving

from conformance.checks import test_concurrency
from conformance.checks.authentication.test_each_request import PAUSES, cookies, in_turn
from conformance.checks.test_protocol import whole
from conformance.checks.together import AT_ONCE, cancel_at_once
from conformance.outcomes import Excluded, Failed, Inconclusive
from conformance.transport import connecting, wire
from conformance.transport.answer import Answer
from conformance.transport.endpoint import Endpoint
from conformance.transport.evidence import Trouble
from conformance.transport.request import Allowed
from conformance.transport.retries import turned_away
from reference_server.api import Service
from reference_server.running import Running, build
from reference_server.server import answer_at_once

OK = answer("200 OK", b"[]")


@pytest.mark.parametrize(
    ("field", "kept"),
    [
        ("sid=1; Path=/", ["sid=1"]),
        (" sid = a b ; Secure", ["sid=a b"]),
        ("sid=1\t;", ["sid=1"]),
        ("sid=a=b", ["sid=a=b"]),
        ("sid=", ["sid="]),
        ("sid", []),
        ("=1; Path=/", []),
        ("", []),
        ("sid=a\x0bb", []),
    ],
)
def test_cookies_are_sent_back_as_browsers_do(field: str, kept: list[str]) -> None:
    one, other = (answered(LIST, 200, b"[]", ("Set-Cookie", "first=0"), (name, field)) for name in ("set-cookie", "X"))
    assert cookies([one, other]) == ["first=0", *kept, "first=0"]


def test_a_connection_closed_under_a_request_begins_all_anew() -> None:
    def closing_once(talk: Conversation) -> None:
        talk.send(OK) if talk.number != 1 else talk.hang_up()

    with serving(closing_once) as service, session(service.base_url) as opened:
        answers, kept = in_turn(opened.wire, [LIST] * 3)
        troubles = [exchange.trouble for exchange in opened.recorder.exchanges]
        assert troubles == [None, Trouble.CLOSED, None, None, None]
        assert [found.exchange for found in answers] == opened.recorder.exchanges[2:]
        assert kept
        assert service.connections == 2


def test_a_service_that_never_answers_twice_on_a_connection_decides_nothing() -> None:
    def closing(talk: Conversation) -> None:
        talk.hang_up() if talk.turn else talk.send(OK)

    with serving(closing) as service, session(service.base_url) as opened:
        with pytest.raises(Inconclusive, match="each of 4 connections was closed"):
            in_turn(opened.wire, [LIST] * 3)
        assert service.connections == len(PAUSES)


def test_a_service_that_closes_after_each_answer_is_followed() -> None:
    with serving(OK) as service, session(service.base_url) as opened:
        answers, kept = in_turn(opened.wire, [LIST] * 3)
        assert [found.status for found in answers] == [200] * 3
        assert not kept
        assert service.connections >= 3


def test_bytes_after_a_204_are_no_matter_of_framing() -> None:
    """They are CANCEL-2's; those after another answer are."""
    with serving(head("204 No Content") + b"{}") as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        with opened.wire.connect() as connection:
            whole([connection.exchange(cancel(ABSENT), last=True)])
    with serving(OK + b"{}") as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        answers = [connection.exchange(LIST, last=True)]
    with pytest.raises(Failed, match="2 bytes after the end"):
        whole(answers)


def test_no_answer_is_one_of_any_answers() -> None:
    """As of a firewall that hangs up on a query which it does not know; what does come is to be whole."""

    def serve(talk: Conversation) -> None:
        if b"?short" in talk.request:
            talk.send(OK.replace(b"Length: 2", b"Length: 20"))
        talk.hang_up()

    with serving(serve) as service, session(service.base_url) as opened:
        api = opened.api("harness")
        hung_up, short = (api.ask_list(query=query, allowed=Allowed.OPEN) for query in ("none=1", "short=1"))
        said: list[type[BaseException] | None] = []
        for request in (hung_up, short, api.ask_list()):
            with opened.wire.connect() as connection:
                answers = [connection.exchange(request, last=True)]
            try:
                whole(answers)
                said.append(None)
            except (Failed, Inconclusive) as wrong:  # pytest would skip this test for the latter
                said.append(type(wrong))
        assert said == [None, Failed, Failed]


NOT_FOUND = answer("404 Not Found", b'{"status": 404, "code": "NOT_FOUND", "message": "No."}')
ABSENT = 2**60 + 12345


def has_wait(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have there be no connection for the one with this number."""
    connect = connecting.connect
    numbers = itertools.count(1)

    def waits(endpoint: Endpoint, deadline: float) -> Any:
        if next(numbers) == number:
            raise TimeoutError
        return connect(endpoint, deadline)

    monkeypatch.setattr(connecting, "connect", waits)


GIVEN_UP = [Trouble.UNSENT, Trouble.UNSENT, Trouble.WAITING]


def test_who_takes_no_further_connection_is_sent_whole_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings show it, so that no cancel is left without its end."""
    has_wait(monkeypatch, 3)
    with serving(NOT_FOUND) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        found = cancel_at_once(opened.api("harness"), opened.wire, [ABSENT] * AT_ONCE)
        assert [one.status for one in found] == [404] * AT_ONCE
        kept = [(exchange.method, exchange.trouble) for exchange in opened.recorder.exchanges]
        assert kept == [*(("GET", trouble) for trouble in GIVEN_UP), *[("DELETE", None)] * AT_ONCE]
        assert len(service.requests) == AT_ONCE


def test_orders_of_cancels_that_were_given_up_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    has_wait(monkeypatch, AT_ONCE + 3)
    with serving(NOT_FOUND) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        api = opened.api("harness")
        found = cancel_at_once(api, opened.wire, [ABSENT] * AT_ONCE)
        assert [one.exchange.trouble for one in found] == GIVEN_UP
        assert all(map(turned_away, found))
        assert len(service.requests) == AT_ONCE, "the listings"
        again = cancel_at_once(api, opened.wire, [ABSENT] * AT_ONCE)
        assert [one.status for one in again] == [404] * AT_ONCE


class OneAtATime(http.server.HTTPServer):
    """Python's own server, which takes one connection and lets one wait. It does what a request asks for whose end
    never comes."""

    request_queue_size = 1

    def __init__(self, service: Service) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                fields = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
                received = f"{self.requestline}\r\n{fields}\r\n".encode("latin-1")
                self.wfile.write(answer_at_once(service, received))

            do_GET = do_DELETE = do_OPTIONS = do_HEAD = answer  # noqa: N815 - so are they called

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        super().__init__(("127.0.0.1", 0), Handler)


def test_a_server_that_takes_one_connection_at_a_time_is_left_alone(tmp_path: Path) -> None:
    service = build(b"sk-of-one-at-a-time")
    with Running(service, states_port=0) as control, OneAtATime(service) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        where = ("--base-url", f"http://127.0.0.1:{server.server_port}/v1", "--states-url", str(control.states_url))
        words = ("--api-key-env", "KEY", "--only", "CANCEL-1,CANCEL-3,CANCEL-6,CANCEL-7", "--budget", "quick")
        done = command(tmp_path, "run", *where, *words, KEY="sk-of-one-at-a-time")
        server.shutdown()
    assert done.status == 0, done.said


def test_no_request_is_released_before_all_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for step in ("prepare", "release"):
        own = getattr(wire.Connection, step)

        def noted(connection: wire.Connection, *given: Any, _own: Any = own, _step: str = step, **further: Any) -> None:
            done.append(_step)
            _own(connection, *given, **further)

        monkeypatch.setattr(wire.Connection, step, noted)
    with serving(NOT_FOUND) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        opened.wire.takes_several = True
        found = cancel_at_once(opened.api("harness"), opened.wire, [ABSENT] * AT_ONCE)
        assert done == ["prepare"] * AT_ONCE + ["release"] * AT_ONCE
        assert [one.status for one in found] == [404] * AT_ONCE
        assert opened.recorder.exchanges == [one.exchange for one in found], "in order, though read side by side"


@pytest.mark.parametrize("secure", [False, True])
def test_an_interruption_does_not_wait_for_answers(
    secure: bool, server_context: ssl.SSLContext, certificate: Path
) -> None:
    """The connections end for the threads that read from them before they are closed: what is opened next might get
    the number of one that somebody still reads from."""
    context, settings = (server_context, {"ca_bundle": str(certificate)}) if secure else (None, {})

    over = threading.Event()

    def silent(talk: Conversation) -> None:
        while talk.number == 2 and not over.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            over.wait(1)  # and once more: what is raised while a weak reference is cleared is lost
        talk.ended.wait(60)

    def interrupted(*_: object) -> None:
        if not over.is_set():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with serving(silent, context) as service, session(service.base_url, timeout=20.0, **settings) as opened:
            opened.guard.saw_listing([])
            opened.wire.takes_several = True
            started = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                cancel_at_once(opened.api("harness"), opened.wire, [ABSENT] * 3)
            over.set()
            opened.client.overlapping.shutdown()  # waits for those that read
            assert time.monotonic() - started < 15
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(("statuses", "decided"), [((429,) * 6, False), ((204, *(429,) * 5), True)])
def test_cancels_that_were_all_turned_away_decide_nothing(
    monkeypatch: pytest.MonkeyPatch, statuses: tuple[int, ...], decided: bool
) -> None:
    """A round in which one was not turned away shows that it was one at most."""
    given = [answered(cancel(ABSENT), status) for status in statuses]
    monkeypatch.setattr(test_concurrency, "cancel_at_once", lambda *_: given)
    twice = [answered(cancel(ABSENT), status) for status in (204, 404, 204)]
    api: Any = SimpleNamespace(cancel=lambda *_, **__: twice.pop(0), list=lambda: answered(LIST, 200, b"[]"))
    orders: Any = SimpleNamespace(take_listed=lambda **_: SimpleNamespace(pending=list(range(8))))
    with nullcontext() if decided else pytest.raises(Inconclusive, match="turned away"):
        test_concurrency.test_one_of_simultaneous_cancels_succeeds(api, cast(Any, None), orders, time.sleep)


@pytest.mark.parametrize(
    ("answers", "raised", "said"),
    [
        ([], Inconclusive, "were turned away"),
        ([answered(LIST, 200, b"[]", crowded=False)], Excluded, "none could overlap"),
        ([answered(LIST, 200, b"[]", crowded=True)], None, ""),
    ],
)
def test_requests_at_once_tell_nothing_unless_some_were_let_in(
    answers: list[Answer], raised: type[Exception] | None, said: str
) -> None:
    with pytest.raises(raised, match=said) if raised else nullcontext():
        test_concurrency.some_let_in(answers)
