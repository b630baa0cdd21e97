"""The client against services that answer in every way there is."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from built import KEY, LIST, answered, broken, cancel, session, target
from hypothesis import given
from hypothesis import strategies as st
from raw_service import Conversation, RawService, Reply, always, answer, head, serving

from conformance.session import Session
from conformance.states.provider import State, setup
from conformance.target import Mode, RateLimit, States
from conformance.transport import client, concurrency, endpoint
from conformance.transport.endpoint import GIVE_UP_AFTER, ServiceGone
from conformance.transport.evidence import NOBODY, Credential, Operation, Request, Trouble
from conformance.transport.guard import Refused
from conformance.transport.retries import retry_after, turned_away
from conformance.transport.wire import Wire
from conformance.verify import refusal

LISTING = b'[{"id": 101}]'
OK = answer("200 OK", LISTING)
#: Time-out of the tests about it, in seconds; for all others that of a run, since the machine may be busy.
LIMIT = 0.4


def once(reply: Reply | bytes, request: Request = LIST, **further: Any) -> client.Answer:
    """The answer of a service to one request."""
    with serving(reply) as service, session(service.base_url, **further) as opened:
        return opened.client.send(request)


# --- what is sent


def test_what_is_sent_is_what_is_recorded() -> None:
    request = Request("GET", "/store/orders", LIST.credential, "limit=1", (("X-Further", "yes"),))
    with serving(OK) as service, session(service.base_url) as opened:
        exchange = opened.client.send(request).exchange
        lines = service.requests[0].decode().split("\r\n")
    assert lines[0] == "GET /v1/store/orders?limit=1 HTTP/1.1"
    sent = [tuple(line.split(": ", 1)) for line in lines[1:] if line]
    assert sent == [(name, value.replace("<the key>", KEY)) for name, value in exchange.request_headers]
    assert ("X-Further", "yes") in sent
    assert ("Host", f"127.0.0.1:{service.port}") in sent
    assert exchange.url == f"{service.base_url}/store/orders?limit=1"


@pytest.mark.parametrize("segment", ["12%61", "%2B5", "1%2E0", "a%20b", "%C3%BC", "~1", "1'2", "(1)"])
def test_paths_are_sent_as_they_are(segment: str) -> None:
    """No client in between may tidy an id up: what is odd about it is what the check is about."""
    with serving(answer("404 Not Found", b"{}")) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        opened.client.send(cancel(segment))
        assert service.requests[0].startswith(f"DELETE /v1/store/orders/{segment} HTTP/1.1\r\n".encode())


def test_a_request_target_beside_the_base_url_is_sent_as_it_is() -> None:
    with serving(answer("200 OK", b"[]")) as service, session(service.base_url) as opened:
        absolute = f"{service.base_url}/store/orders"
        paths = ["/V1/store/orders", "/%761/store/orders", "/store/orders"]
        asked = [Request("GET", path, whole=True) for path in (*paths, "/v1/./store/orders", absolute)]
        for request in asked:
            assert request.operation is Operation.OTHER
        opened.client.send_all(asked[:3])
        for request in asked[3:]:
            with opened.wire.connect() as connection:
                connection.exchange(request)
        lines = [sent.partition(b" HTTP")[0].decode() for sent in service.requests]
        assert sorted(lines[:3]) == sorted(f"GET {path}" for path in paths)
        assert lines[3:] == ["GET /v1/./store/orders", f"GET {absolute}"]
        assert opened.recorder.exchanges[-1].url == absolute


@pytest.mark.parametrize(("method", "who"), [("DELETE", NOBODY), ("OPTIONS", NOBODY), ("GET", LIST.credential)])
def test_beside_the_base_url_nothing_is_changed_and_no_key_shown(method: str, who: Credential) -> None:
    with pytest.raises(ValueError, match="a target that may be any"):
        Request(method, "/v2/store/orders", who, whole=True)


def test_every_request_has_a_connection_of_its_own() -> None:
    with serving(lambda talk: talk.send(OK)) as service, session(service.base_url) as opened:
        for _ in range(3):
            opened.client.send(LIST)
        assert service.connections == 3


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a proxy variable nor a netrc reroutes the key or replaces it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(OK) as service, session(service.base_url) as opened:
        assert opened.client.send(Request("GET", "/store/orders", NOBODY)).status == 200
        assert b"authorization" not in service.requests[0].lower()


def test_a_proxy_is_used_where_configured() -> None:
    with serving(OK) as proxy, session("http://service.invalid/v1", proxy=f"http://127.0.0.1:{proxy.port}") as opened:
        assert opened.client.send(LIST).status == 200
        assert proxy.requests[0].startswith(b"GET http://service.invalid/v1/store/orders HTTP/1.1\r\n")


def test_the_guard_stands_before_the_wire() -> None:
    with serving(OK) as service, session(service.base_url, Mode.OBSERVE) as opened:
        for request in (cancel(1), Request("POST", "/store/orders"), Request("OPTIONS", "/store/orders")):
            with pytest.raises(Refused):
                opened.client.send_all([LIST, request])
        assert service.requests == []
        assert opened.recorder.exchanges == []


def test_a_listing_teaches_the_guard() -> None:
    with (
        serving(answer("200 OK", b'[{"id": 5}, {"id": 9.0}, {"petId": 7}]')) as service,
        session(service.base_url) as opened,
    ):
        opened.client.send(LIST)
        assert opened.guard.listed == {5, 9}
        assert opened.guard.lists_seen == 1
        with pytest.raises(Refused, match="could be taken for order 5"):
            opened.client.send(cancel("5x"))


def test_a_page_for_those_without_the_key_is_no_listing() -> None:
    with serving(answer("200 OK", b"healthy")) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        opened.client.send(Request("GET", "/store/orders", NOBODY))
        assert opened.guard.permits("6")
        opened.client.send(LIST)
        assert not opened.guard.permits("6")


def test_a_listing_asked_for_with_a_query_tells_ids_and_nothing_else() -> None:
    """Where fields can be chosen, orders without ids are those that the plain listing shows with theirs."""
    chosen = replace(LIST, query="fields=none")
    with serving(answer("200 OK", b'[{"id": 5}, {}]')) as service, session(service.base_url) as opened:
        opened.client.send(chosen)
        assert opened.guard.listed == {5}
        with pytest.raises(Refused, match="no listing has been read"):
            opened.client.send(cancel(7))
        opened.client.send(LIST)
        with pytest.raises(Refused, match="an order was listed without an id"):
            opened.client.send(cancel(7))

    def without_ids_for_a_query(talk: Conversation) -> None:
        talk.send(answer("200 OK", b"[{}]" if b"?" in talk.request else b'[{"id": 5}]'))

    with serving(without_ids_for_a_query) as service, session(service.base_url) as opened:
        for request in (LIST, chosen):
            opened.client.send(request)
        assert opened.guard.permits("7")


# --- right answers in every form


@pytest.mark.parametrize(
    "reply",
    [
        OK,
        head("200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked")
        + b"5\r\n" + LISTING[:5] + b"\r\n8\r\n" + LISTING[5:] + b"\r\n0\r\n\r\n",
        head("200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked", "Trailer: X")
        + b"d;x=y\r\n" + LISTING + b"\r\n0\r\nX: y\r\n\r\n",
        head("200 OK", "Content-Type: application/json") + LISTING,
        head("200 OK", "Content-Type: application/json", version="1.0") + LISTING,
        head("200 ", "content-type:application/json", f"content-length:{len(LISTING)}") + LISTING,
        head("100 Continue") + OK,
        head("103 Early Hints", "Link: </x>") + head("102 Processing") + OK,
        answer("200 OK", gzip.compress(LISTING), "Content-Encoding: gzip"),
        answer("200 OK", gzip.compress(LISTING), "Content-Encoding: x-gzip"),
        answer("200 OK", gzip.compress(LISTING), "Content-Encoding: GZIP"),
        answer("200 OK", zlib.compress(LISTING), "Content-Encoding: deflate"),
        answer("200 OK", LISTING, "Content-Encoding: identity"),
    ],
    ids=[
        "plain", "chunked", "chunk extensions and trailers", "until closed", "HTTP/1.0", "without a reason", "100",
        "102 and 103", "gzip", "x-gzip", "GZIP", "deflate", "identity",
    ],
)  # fmt: skip
def test_right_answers(reply: bytes) -> None:
    found = once(reply)
    assert found.status == 200
    assert found.body == LISTING
    assert found.media_type == "application/json"
    assert found.exchange.trouble is None
    assert broken(found.exchange) == set()
    assert found.listing is not None
    assert found.listing.ids == {101}


def test_answers_in_pieces() -> None:
    found = once(lambda talk: talk.send(*(OK[i : i + 20] for i in range(0, len(OK), 20)), pause=0.005))
    assert found.body == LISTING


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """That would hand the key to another host."""
    with serving(OK) as elsewhere:
        found = once(answer(f"{status} Moved", b"", f"Location: {elsewhere.base_url}/store/orders"))
        assert found.status == status
        assert elsewhere.requests == []
        assert broken(found.exchange) == {"HTTP-1"}


def test_header_fields_of_an_answer() -> None:
    found = once(answer("200 OK", LISTING, "X-A: 1", "x-a: 2", "X-Odd: \xe9"))
    assert found.header("X-A") == "1, 2"
    assert found.header("x-odd") == "\xe9"
    assert found.header("X-B") is None


# --- answers that are late


@pytest.mark.parametrize(
    "reply",
    [
        lambda talk: None,
        lambda talk: talk.send(head("200 OK", "Content-Length: 5") + b"[1"),
        lambda talk: talk.trickle(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: yes\r\n" * 200, 0.02),
        lambda talk: talk.trickle(head("200 OK", "Content-Length: 900") + b" " * 900, 0.02),
        lambda talk: talk.trickle(head("200 OK", "Transfer-Encoding: chunked") + b"1\r\n0\r\n" * 200, 0.02),
        lambda talk: talk.trickle((head("102 Processing")) * 100, 0.02),
    ],
    ids=["nothing", "half a body", "trickled headers", "trickled body", "trickled chunks", "interim answers for ever"],
)
def test_late_answers(reply: Reply) -> None:
    found = once(reply, timeout=LIMIT)
    assert found.status is None
    assert found.exchange.trouble == Trouble.TIMEOUT
    assert found.exchange.detail == "no complete answer within 0.4 s (--timeout)"
    assert broken(found.exchange) == set()


# --- answers that are none


CLOSED_EARLY = "the connection was closed before the head of an answer was complete"
#: Answers that are none, and what is said of them.
NO_ANSWERS: dict[str, tuple[Reply | bytes, str]] = {
    "hangs up": (lambda talk: talk.hang_up(), CLOSED_EARLY),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", CLOSED_EARLY),
    "short": (
        head("200 OK", "Content-Length: 50") + LISTING,
        f"the connection was closed after {len(LISTING)} of the 50 bytes that Content-Length announces",
    ),
    "cut chunk": (
        head("200 OK", "Transfer-Encoding: chunked") + b"5\r\n[]",
        "the connection was closed before the last chunk of the body",
    ),
    "odd chunk": (
        head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n[]\r\n0\r\n\r\n",
        "the size of a chunk of the body is malformed: 'zz\\r\\n'",
    ),
    "long chunk": (
        head("200 OK", "Transfer-Encoding: chunked") + b"1\r\n[]\r\n0\r\n\r\n",
        "a chunk of the body does not end where its size says: ']\\r'",
    ),
    "odd length": (head("200 OK", "Content-Length: x") + LISTING, "Content-Length is no number"),
    "two lengths": (
        head("200 OK", "Content-Length: 2", "Content-Length: 3") + b"[] ",
        "there are several fields Content-Length, which differ",
    ),
    "odd header": (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n[]", "a header line is malformed: 'no colon'"),
    "no head": (b"[]\r\n\r\n", "the answer begins with no status line of HTTP: '[]'"),
    "no gzip": (
        answer("200 OK", b"no gzip at all", "Content-Encoding: gzip"),
        "the body is not gzip, as its Content-Encoding says: Error -3 while decompressing data: incorrect header check",
    ),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_broken_answers(name: str) -> None:
    """What is wrong is said in plain words, by the client and by raw connections alike, and not in the terms of the
    libraries behind them."""
    reply, said = NO_ANSWERS[name]
    with serving(reply) as service, session(service.base_url) as opened, opened.wire.connect() as connection:
        for found in (opened.client.send(LIST), connection.exchange(LIST, last=True)):
            assert found.status is None
            assert found.exchange.trouble == Trouble.BROKEN
            assert found.exchange.detail == said
            assert broken(found.exchange) == {"HTTP-2"}


@pytest.mark.parametrize("reply", [b"[]", b"SSH-2.0-OpenSSH_9.9\r\n"])
def test_what_is_no_http_is_broken(reply: bytes) -> None:
    found = once(reply)
    assert found.exchange.trouble == Trouble.BROKEN
    assert broken(found.exchange) == {"HTTP-2"}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_named(scheme: str) -> None:
    """It is the proxy that cannot be reached; nobody knows of the service behind it."""
    service = f"{scheme}://service.invalid/v1"
    with session(service, proxy="http://127.0.0.1:9") as opened, opened.wire.connect() as connection:
        answers = [opened.client.send(LIST), connection.exchange(LIST)]
    for found in answers:
        assert found.exchange.trouble == Trouble.UNREACHABLE
        assert found.exchange.detail.startswith("no connection to the proxy 127.0.0.1:9: ")
        assert "refused" in found.exchange.detail


def test_a_proxy_that_opens_no_tunnel_is_named() -> None:
    with (
        serving(answer("403 No way", b"")) as proxy,
        session("https://service.invalid/v1", proxy=f"http://127.0.0.1:{proxy.port}") as opened,
        opened.wire.connect() as connection,
    ):
        answers = [opened.client.send(LIST), connection.exchange(LIST)]
    for found in answers:
        assert found.exchange.trouble == Trouble.UNREACHABLE
        assert found.exchange.detail.startswith(f"the proxy 127.0.0.1:{proxy.port} opens no tunnel to service.invalid")
        assert found.exchange.detail.endswith("403 No way")


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with session(f"http://127.0.0.1:{port}/v1") as opened:
        exchange = opened.client.send(LIST).exchange
    assert exchange.trouble == Trouble.UNREACHABLE
    assert f"no connection to 127.0.0.1:{port}" in exchange.detail
    assert "refused" in exchange.detail
    assert exchange.findings == {}


@contextmanager
def restarting(port: int) -> Iterator[None]:
    """A service that comes to this port 0.7 s from now."""
    back: list[RawService] = []
    timer = threading.Timer(0.7, lambda: back.append(RawService(always(OK), port=port)))
    timer.start()
    yield
    timer.join()
    back[0].stop()


@pytest.mark.parametrize("way", ["client", "wire"])
def test_a_restart_is_waited_out(way: str) -> None:
    """A service that takes no connection has received nothing, so that even a cancel may go out again."""
    with serving(OK) as service:
        port = service.port
        opened = Session(target(service.base_url), seed=1)
        assert opened.client.send(LIST).status == 200
    opened.guard.hand_out([1], "pending")
    with restarting(port), opened.wire.connect() as connection:
        found = opened.client.send(cancel(1)) if way == "client" else connection.exchange(cancel(1))
    opened.close()
    assert found.status == 200
    exchanges = opened.recorder.exchanges[1:]
    assert [exchange.trouble for exchange in exchanges] == [Trouble.UNREACHABLE] * (len(exchanges) - 1) + [None]
    assert {exchange.waited for exchange in exchanges[:-1]} == {endpoint.RESTART_WAIT}


def test_a_service_that_does_not_come_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "RESTART_WAIT", 0.2)
    monkeypatch.setattr(endpoint, "RESTART", 0.3)
    with serving(OK) as service:
        opened = Session(target(service.base_url), seed=1)
        assert opened.client.send(LIST).status == 200
    found = opened.client.send(LIST)
    opened.close()
    assert found.exchange.trouble == Trouble.UNREACHABLE
    assert GIVE_UP_AFTER <= len(opened.recorder.exchanges) <= 3 * GIVE_UP_AFTER
    with pytest.raises(ServiceGone):
        opened.client.send(LIST)


def test_a_host_without_an_address() -> None:
    with session("http://no-such-host.invalid/v1") as opened:
        exchange = opened.client.send(LIST).exchange
    assert exchange.trouble == Trouble.UNREACHABLE
    assert "no connection to no-such-host.invalid: " in exchange.detail
    assert len(exchange.detail) > len("no connection to no-such-host.invalid: ")


def test_an_answer_that_is_too_large() -> None:
    """Also where it is small on the wire: what counts is what it takes in memory. By both transports."""
    assert once(answer("200 OK", b" " * 998 + b"[]"), max_body=1000).status == 200
    large = b" " * 999 + b"[]"
    packed = answer("200 OK", gzip.compress(large), "Content-Encoding: gzip")
    for reply, when in ((answer("200 OK", large), "as received"), (packed, "once decompressed")):
        with (
            serving(reply) as service,
            session(service.base_url, max_body=1000) as opened,
            opened.wire.connect() as connection,
        ):
            answers = [opened.client.send(LIST), connection.exchange(LIST, last=True)]
        for found in answers:
            assert found.status is None
            assert found.exchange.trouble == Trouble.TOO_LARGE
            assert found.exchange.detail == f"the body {when} is larger than 0.001 MB (--max-body)"
            assert broken(found.exchange) == set()


def test_a_coding_that_was_not_asked_for() -> None:
    found = once(answer("200 OK", LISTING, "Content-Encoding: br"))
    assert found.status is None
    assert "'br'; requests ask for gzip or deflate" in found.exchange.detail


# --- answers that ask to wait


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


# --- several at once


def at_most(count: int, late: Callable[[Conversation], None]) -> Reply:
    """Lists for so many at once, each of which takes a moment; what is one too many goes to `late`."""
    inside = threading.Semaphore(count)

    def reply(talk: Conversation) -> None:
        if not inside.acquire(blocking=False):
            late(talk)
            return
        talk.ended.wait(0.1)
        inside.release()
        talk.send(OK)
        talk.hang_up()

    return reply


@pytest.mark.parametrize("too_many", [None, answer("503 Busy")])
def test_a_limit_of_requests_at_once_is_kept_to(too_many: bytes | None) -> None:
    """It is not shown (section 8): nothing is broken, what can safely be sent again is, and then one by one."""

    def late(talk: Conversation) -> None:
        if too_many:
            talk.send(too_many)
        talk.hang_up()

    with serving(at_most(2, late)) as service, session(service.base_url, mode=Mode.FULL) as opened:
        opened.client.concurrency.near = False
        answers = opened.client.send_all([LIST] * 6)
        assert [found.status for found in answers] == [200] * 6
        assert opened.client.concurrency.one_by_one
        exchanges = opened.recorder.exchanges
        assert len(exchanges) > 6
        assert all(exchange.crowded for exchange in exchanges if exchange.status != 200)
        assert {name for exchange in exchanges for name in broken(exchange)} == set()
        assert not any(exchange.undecided for exchange in exchanges)


def test_one_that_is_too_many_beside_those_of_other_processes_is_sent_again() -> None:
    def busy(talk: Conversation) -> None:
        talk.send(OK if talk.number else answer("503 Busy"))
        talk.hang_up()

    with serving(busy) as service, session(service.base_url) as opened:
        opened.client.endpoint.crowded = True
        assert opened.client.send(LIST).status == 200
        assert [exchange.status for exchange in opened.recorder.exchanges] == [503, 200]
        assert not opened.client.concurrency.one_by_one  # what others send says nothing of what overlaps here


def test_a_limit_of_requests_at_once_that_is_waited_for_is_met_a_few_times_only() -> None:
    """Else each batch would cost the seconds that the service tells whoever is one too many to wait."""

    def late(talk: Conversation) -> None:
        talk.send(answer("429 One at a time", b"", "Retry-After: 0"))
        talk.hang_up()

    with serving(at_most(1, late)) as service, session(service.base_url) as opened:
        opened.client.concurrency.near = False
        statuses = [found.status for _ in range(3) for found in opened.client.send_all([LIST] * 4)]
        assert statuses == [200] * 12
        exchanges = opened.recorder.exchanges
        seen = len(exchanges)
        assert seen > 12
        opened.client.send_all([LIST] * 4)
        assert len(exchanges) == seen + 4  # one by one by now
        assert not opened.client.concurrency.one_by_one  # who wants an overlap still has it
        again = opened.client.send_all([LIST] * 4, at_once=True)
        assert [found.status for found in again] == [200] * 4
        assert len(exchanges) > seen + 8


def test_a_cancel_that_was_dropped_among_others_is_not_sent_again() -> None:
    """It may have been done."""
    with serving(at_most(1, Conversation.hang_up)) as service, session(service.base_url, mode=Mode.FULL) as opened:
        opened.guard.hand_out([1, 2, 3, 4], "pending")
        answers = opened.client.send_all(map(cancel, (1, 2, 3, 4)), at_once=True)
        assert len(service.requests) == 4
        dropped = [found for found in answers if found.status is None]
        assert dropped
        assert all(found.exchange.trouble == Trouble.DROPPED and turned_away(found) for found in dropped)


def test_a_connection_that_breaks_alone_is_broken() -> None:
    found = once(Conversation.hang_up)
    assert found.exchange.trouble == Trouble.BROKEN
    assert "HTTP-2" in broken(found.exchange)
    assert not turned_away(found)


def test_a_request_that_is_long_may_be_hung_up_on() -> None:
    """Servers close a connection on what they have not read to its end, and no limit of length is shown (section 8)."""
    who = Credential("a long one", (("Authorization", "Bearer " + "x" * 5000),))
    found = once(Conversation.hang_up, Request("GET", "/store/orders", who))
    assert found.exchange.trouble == Trouble.BROKEN
    assert broken(found.exchange) == set()
    assert refusal(found)


def test_answers_come_in_the_order_of_the_requests() -> None:
    """Whatever order the service answers in; together, not one after the other."""
    inside = threading.Barrier(4, timeout=30)

    def reply(talk: Conversation) -> None:
        number = int(talk.request.split(b"n=")[1].split(b" ")[0])
        inside.wait()
        time.sleep((3 - number) * 0.05)
        talk.send(answer("200 OK", f"[{number}]".encode()))
        talk.hang_up()

    with serving(reply) as service, session(service.base_url) as opened:
        answers = opened.client.send_all(Request("GET", "/store/orders", query=f"n={number}") for number in range(4))
        assert [found.body for found in answers] == [b"[0]", b"[1]", b"[2]", b"[3]"]
        assert [exchange.body for exchange in opened.recorder.exchanges] == ["[0]", "[1]", "[2]", "[3]"]


@pytest.mark.parametrize("heavy", [2_000_000, 1])
def test_a_service_is_asked_at_once_where_that_is_the_point(monkeypatch: pytest.MonkeyPatch, heavy: int) -> None:
    """A near one, or one with long answers, gets no more requests in parallel than it must, but all of those."""
    monkeypatch.setattr(concurrency, "HEAVY", heavy)
    inside = threading.Barrier(12, timeout=30)
    overlap = False

    def reply(talk: Conversation) -> None:
        if overlap:
            inside.wait()
        talk.send(OK)
        talk.hang_up()

    with serving(reply) as service, session(service.base_url) as opened:
        opened.client.send(LIST)
        overlap = True
        answers = opened.client.send_all([LIST] * 12, at_once=True)
        assert [found.status for found in answers] == [200] * 12


def test_answers_that_would_not_fit_into_memory_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TOO_HEAVY", 5)
    at_work, most = 0, 0

    def reply(talk: Conversation) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        time.sleep(0.05)
        at_work -= 1
        talk.send(OK)
        talk.hang_up()

    with serving(reply) as service, session(service.base_url) as opened:
        opened.client.send(LIST)
        opened.client.send_all([LIST] * 4, at_once=True)
        assert most == 1


def test_an_error_whose_body_is_an_array_is_no_listing() -> None:
    with serving(answer("500 Internal Server Error", b"[]")) as service, session(service.base_url) as opened:
        assert opened.client.send(LIST).listing is not None
        with pytest.raises(Refused):
            opened.client.send(cancel(12345678901234))


def test_several_requests_keep_the_pace() -> None:
    with serving(OK) as service, session(service.base_url, rate_limit=RateLimit(20, 1.0)) as opened:
        opened.client.send_all([LIST] * 5)
        spans = sorted(service.times)
        assert spans[-1] - spans[0] >= 0.15  # 4 intervals of 0.05, less what a thread may be late


def test_what_was_sent_is_on_record_also_when_the_run_gives_up() -> None:
    with serving(lambda talk: None) as service, session(service.base_url, timeout=0.2) as opened:
        with pytest.raises(ServiceGone):
            opened.client.send_all([LIST] * 64)
        assert GIVE_UP_AFTER <= len(service.requests) < 64
        assert len(opened.recorder.exchanges) == len(service.requests)
        with pytest.raises(ServiceGone, match="not sent"):
            opened.client.send(LIST)


def test_nothing_at_all() -> None:
    with session("http://127.0.0.1:9/v1") as opened:
        assert opened.client.send_all([]) == []


# --- TLS


def test_a_certificate_of_an_unknown_authority(server_context: ssl.SSLContext) -> None:
    with serving(OK, server_context) as service, session(service.base_url) as opened:
        exchange = opened.client.send(LIST).exchange
    assert exchange.trouble == Trouble.UNREACHABLE
    assert "certificate" in exchange.detail.lower()
    assert service.requests == []


def test_a_certificate_of_a_known_authority(server_context: ssl.SSLContext, certificate: Path) -> None:
    with serving(OK, server_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        assert opened.client.send(LIST).status == 200


def test_a_provider_may_have_its_certificate_from_the_authorities_of_the_target(
    server_context: ssl.SSLContext, certificate: Path
) -> None:
    with serving(answer("200 OK", b'{"orderIds": [7]}'), server_context) as service:
        states = States(url=service.base_url)
        with session(service.base_url, ca_bundle=str(certificate), states=states) as opened:
            assert opened.provider is not None
            assert setup(opened.provider, State.PENDING, {"count": 1}) == [7]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate(version: ssl.TLSVersion, server_context: ssl.SSLContext, certificate: Path) -> None:
    server_context.verify_mode = ssl.CERT_REQUIRED
    server_context.load_verify_locations(certificate)
    server_context.maximum_version = version
    trusting: dict[str, Any] = {"ca_bundle": str(certificate)}
    with serving(OK, server_context) as service:
        with session(service.base_url, **trusting) as opened:
            with Wire(opened.client).connect() as connection:
                exchanges = [opened.client.send(LIST).exchange, connection.exchange(LIST).exchange]
            assert {exchange.trouble for exchange in exchanges} == {Trouble.UNREACHABLE}
            if version is ssl.TLSVersion.TLSv1_3:  # before, it is no more than a handshake that failed
                assert all("a certificate of the client" in exchange.detail for exchange in exchanges)
        with session(service.base_url, **trusting, client_cert=str(certificate)) as opened:
            assert opened.client.send(LIST).status == 200


def test_plain_http_where_tls_is_expected() -> None:
    with serving(OK) as service, session(service.base_url.replace("http:", "https:"), timeout=1.0) as opened:
        exchange = opened.client.send(LIST).exchange
    assert exchange.status is None
    assert exchange.trouble in (Trouble.UNREACHABLE, Trouble.TIMEOUT)


# --- HTTP/2


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """RFC 9113 section 4.1."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(4, 0, 0)
OK_HEAD = frame(1, 4, 1, b"\x88")  # :status 200, as HPACK has it
GOES_AWAY = frame(7, 0, 0, bytes(8))


@pytest.fixture
def http2_context(server_context: ssl.SSLContext) -> ssl.SSLContext:
    server_context.set_alpn_protocols(["h2", "http/1.1"])
    return server_context


@pytest.mark.parametrize(
    ("reply", "trouble"),
    [
        (lambda talk: talk.send(SETTINGS + OK_HEAD + frame(0, 1, 1, LISTING)), None),
        (SETTINGS + OK_HEAD + frame(0, 0, 1, LISTING), Trouble.BROKEN),
        (SETTINGS + OK_HEAD + frame(0, 0, 1, LISTING) + frame(9, 0, 1, b"x"), Trouble.BROKEN),
        (SETTINGS + OK_HEAD + frame(3, 0, 1, bytes(4)), Trouble.BROKEN),
        (SETTINGS + frame(1, 4, 1, b"\xff" * 20), Trouble.BROKEN),
        (SETTINGS + GOES_AWAY, Trouble.BROKEN),
        (SETTINGS + frame(4, 0, 1), Trouble.BROKEN),
        (SETTINGS, Trouble.BROKEN),
        (OK, Trouble.BROKEN),
        (b"", Trouble.BROKEN),
        (lambda talk: talk.send(SETTINGS), Trouble.TIMEOUT),
        (lambda talk: talk.trickle((SETTINGS + OK_HEAD + frame(0, 0, 1, b" ")) * 50, 0.02), Trouble.TIMEOUT),
        (lambda talk: talk.trickle(SETTINGS * 99, 0.01), Trouble.TIMEOUT),
        (lambda talk: talk.send(SETTINGS + OK_HEAD + frame(0, 0, 1, b" " * 16_000) * 9), Trouble.TOO_LARGE),
    ],
    ids=[
        "right", "short", "odd frame", "reset", "odd header", "goes away", "odd settings", "only settings", "HTTP/1.1",
        "hangs up", "silent", "trickles", "settings for ever", "too large",
    ],
)  # fmt: skip
def test_http_2(http2_context: ssl.SSLContext, certificate: Path, reply: Reply | bytes, trouble: str | None) -> None:
    limit = LIMIT if trouble == Trouble.TIMEOUT else 10.0
    limits: dict[str, Any] = {"timeout": limit, "max_body": 100_000, "ca_bundle": str(certificate)}
    with serving(reply, http2_context) as service, session(service.base_url, **limits) as opened:
        found = opened.client.send(LIST)
        assert service.requests[0].startswith(b"PRI * HTTP/2.0\r\n")
    assert found.exchange.trouble == trouble
    assert (found.status, found.body) == ((200, LISTING) if trouble is None else (None, b""))
    assert trouble is None or found.exchange.detail
    assert found.exchange.http_version == ("HTTP/2" if trouble is None else "")


def test_http_2_has_a_connection_for_each_request(http2_context: ssl.SSLContext, certificate: Path) -> None:
    """Also of those that are under way together, so that none inherits the time that another has used up."""
    reply: Reply = lambda talk: talk.send(SETTINGS + OK_HEAD + frame(0, 1, 1, LISTING))  # noqa: E731
    with serving(reply, http2_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        answers = opened.client.send_all([LIST] * 5, at_once=True)
        assert [found.status for found in answers] == [200] * 5
        assert service.connections == 5
