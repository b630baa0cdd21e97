"""What a service asks to wait is waited out, within limits (429, 503, Retry-After)."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from built import LIST, answered, broken, session
from hypothesis import given
from hypothesis import strategies as st
from raw_service import Conversation, Reply, answer, serving
from single import OK, once

from conformance.transport import client, endpoint
from conformance.transport.request import Allowed
from conformance.transport.retries import retry_after


def busy(times: int, reply: bytes) -> Reply:
    """Answers `reply` so many times, then the listing."""

    def serve(talk: Conversation) -> None:
        talk.send(reply if talk.number < times else OK)
        talk.hang_up()

    return serve


@pytest.mark.parametrize(
    "reply",
    [
        answer("429 Too Many Requests", b"", "Retry-After: 1"),
        answer("503 Service Unavailable", b"", "Retry-After: 1"),
        answer("429 Too Many Requests", b""),
        answer("429 Too Many Requests", b"", "Retry-After: soon"),
    ],
)
def test_what_the_service_asks_to_wait_is_waited_out(reply: bytes) -> None:
    with serving(busy(1, reply)) as service, session(service.base_url) as opened:
        found = opened.client.send(LIST)
        assert found.status == 200
        assert service.times[1] - service.times[0] >= 0.95
        assert [exchange.status for exchange in opened.recorder.exchanges] == [int(reply[9:12]), 200]
        assert [broken(exchange) for exchange in opened.recorder.exchanges] == [set(), set()]


def test_a_date_is_waited_for() -> None:
    when = (datetime.now(UTC) + timedelta(seconds=2)).replace(microsecond=0)
    reply = busy(1, answer("503 Busy", b"", f"Retry-After: {format_datetime(when, usegmt=True)}"))
    with serving(reply) as service, session(service.base_url) as opened:
        assert opened.client.send(LIST).status == 200
        assert datetime.now(UTC) >= when
        assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("allowed", "seconds", "sent"),
    [(Allowed.OPEN, 0.0, client.WAITS + 1), (Allowed.OPEN, 10.0, 5), (Allowed.LISTED, 0.0, 5)],
)
def test_a_503_that_is_as_good_as_any_answer_is_waited_out_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch, allowed: Allowed, seconds: float, sent: int
) -> None:
    """It may be a restart's."""
    monkeypatch.setattr(endpoint, "LEAST_WAIT", 0.0)
    monkeypatch.setattr(client, "OPEN_WAIT", seconds)
    reply = answer("503 Service Unavailable", b"", "Retry-After: 0")
    with serving(busy(4, reply)) as service, session(service.base_url) as opened:
        found = opened.client.send(replace(LIST, allowed=allowed))
        assert (len(service.requests), found.status) == (sent, 200 if sent == 5 else 503)


def test_who_keeps_to_a_503_is_believed_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "LEAST_WAIT", 0.0)
    monkeypatch.setattr(client, "OPEN_WAIT", 0.2)
    reply = answer("503 Service Unavailable", b"", "Retry-After: 0")
    with serving(reply) as service, session(service.base_url) as opened:
        opened.client.send(replace(LIST, allowed=Allowed.OPEN))
        before = len(service.requests)
        opened.client.send(replace(LIST, allowed=Allowed.OPEN))
        assert len(service.requests) == before + client.WAITS + 1


def test_waiting_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MAX_WAIT", 0.9)
    for text in ("1", "3600", "9" * 30):
        with serving(answer("503 Busy", b"", f"Retry-After: {text}")) as service, session(service.base_url) as opened:
            assert opened.client.send(LIST).status == 503
            assert len(service.requests) == 1


def test_a_run_waits_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that answers every request so would otherwise hold a run for hours."""
    monkeypatch.setattr(endpoint, "MAX_WAIT_IN_ALL", 1.5)
    busy_each_time = answer("429 Slow down", b"", "Retry-After: 1")
    reply: Reply = lambda talk: talk.send(OK if talk.number % 2 else busy_each_time)  # noqa: E731
    with serving(reply) as service, session(service.base_url) as opened:
        assert [opened.client.send(LIST).status for _ in range(3)] == [200, 429, 200]
        assert opened.endpoint.pace.held == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("text", ["0", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_no_service_is_hammered(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A service that says "now" again and again is asked a few times, not as fast as the machine can."""
    monkeypatch.setattr(endpoint, "MAX_WAIT", 0.9)
    with serving(answer("429 Slow down", b"", f"Retry-After: {text}")) as service, session(service.base_url) as opened:
        assert opened.client.send(LIST).status == 429
        assert 2 <= len(service.requests) <= 8


@pytest.mark.parametrize("status", ["500 Error", "502 Bad Gateway", "404 Not Found", "200 OK"])
def test_only_429_and_503_are_waited_out(status: str) -> None:
    assert retry_after(once(answer(status, b"", "Retry-After: 1"))) is None


@given(st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=40))
def test_any_retry_after_is_read_or_left(text: str) -> None:
    delay = retry_after(answered(LIST, 503, b"", ("Retry-After", text)))
    assert delay is None or delay >= 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 -0000", 0.0),
        ("\xb2", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("Thu, 01 Jan 1970 00:00:00 +9999999", None),
        ("1 Jan 99999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after(text: str, expected: float | None) -> None:
    assert retry_after(answered(LIST, 429, b"", ("Retry-After", text))) == expected


def test_a_date_to_wait_for_is_by_the_clock_of_the_service() -> None:
    fields = (("Date", "Thu, 01 Jan 2099 00:00:00 GMT"), ("Retry-After", "Thu, 01 Jan 2099 00:00:07 GMT"))
    assert retry_after(answered(LIST, 429, b"", *fields)) == 7.0
    lost = (("Date", "Fri, 01 Jan 1999 00:00:00 GMT"), ("Retry-After", "Sat, 01 Jan 2000 00:00:00 GMT"))
    assert retry_after(answered(LIST, 429, b"", *lost)) == 0.0


def test_an_interruption_ends_the_waiting_of_all_threads() -> None:
    """Python waits for them before it ends, which pipelines do not."""
    before = set(threading.enumerate())
    waiting: list[threading.Thread] = []

    def interrupt(*_: object) -> None:
        waiting.extend(thread for thread in set(threading.enumerate()) - before if thread.name.startswith("send"))
        raise KeyboardInterrupt

    with serving(answer("429 Slow down", b"", "Retry-After: 50")) as service, session(service.base_url) as opened:
        opened.client.concurrency.near = False
        earlier = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        try:
            with pytest.raises(KeyboardInterrupt):
                opened.client.send_all([LIST] * 4)
        finally:
            signal.signal(signal.SIGALRM, earlier)
    until = time.monotonic() + 25  # half of what they were to wait
    for thread in waiting:
        thread.join(max(0.0, until - time.monotonic()))
    assert waiting
    assert not any(thread.is_alive() for thread in waiting)
