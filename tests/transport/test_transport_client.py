"""The client against services that answer in every way there is."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from built import KEY, LIST, broken, cancel, session, target
from raw_service import Conversation, RawService, Reply, always, answer, head, serving
from single import LIMIT, LISTING, OK, once

from conformance.runner.session import Session
from conformance.target import Mode
from conformance.transport import endpoint
from conformance.transport.endpoint import GIVE_UP_AFTER, ServiceGone
from conformance.transport.evidence import Trouble
from conformance.transport.guard import Refused
from conformance.transport.request import NOBODY, Allowed, Credential, Operation, Request

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
        assert opened.guard.listing_read
        with pytest.raises(Refused, match="could be taken for order 5"):
            opened.client.send(cancel("5x"))


def test_a_page_for_those_without_the_key_is_no_listing() -> None:
    with serving(answer("200 OK", b"healthy")) as service, session(service.base_url) as opened:
        opened.guard.saw_listing([])
        opened.client.send(Request("GET", "/store/orders", NOBODY))
        assert opened.guard.permits("6")
        opened.client.send(LIST)
        assert not opened.guard.permits("6")


@pytest.mark.parametrize(
    "chosen",
    [replace(LIST, query="fields=none"), replace(LIST, headers=(("Prefer", "fields=none"),), allowed=Allowed.OPEN)],
    ids=["a query", "a header field"],
)
def test_a_listing_asked_for_with_more_tells_ids_and_nothing_else(chosen: Request) -> None:
    """Where fields can be chosen, orders without ids are those that the plain listing shows with theirs."""
    with serving(answer("200 OK", b'[{"id": 5}, {}]')) as service, session(service.base_url) as opened:
        opened.client.send(chosen)
        assert opened.guard.listed == {5}
        with pytest.raises(Refused, match="no listing has been read"):
            opened.client.send(cancel(7))
        opened.client.send(LIST)
        with pytest.raises(Refused, match="an order was listed without an id"):
            opened.client.send(cancel(7))

    def without_ids_for_a_query(talk: Conversation) -> None:
        talk.send(answer("200 OK", b"[{}]" if b"fields=" in talk.request else b'[{"id": 5}]'))

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


def test_of_an_answer_that_is_cut_there_is_the_head() -> None:
    """A service that began to answer a request of any kind has to end."""
    found = once(OK[:-3], replace(LIST, query="limit=1", allowed=Allowed.OPEN))
    assert (found.status, found.exchange.trouble, found.exchange.http_version) == (None, Trouble.BROKEN, "HTTP/1.1")
    assert found.header("content-type") == "application/json"
    assert broken(found.exchange) == {"HTTP-2"}
    assert broken(once(OK[:30], found.request).exchange) == set(), "a firewall may hang up"


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
        "the size of a chunk of the body is malformed, or longer than 20 digits: 'zz\\r\\n'",
    ),
    "long chunk": (
        head("200 OK", "Transfer-Encoding: chunked") + b"1\r\n[]\r\n0\r\n\r\n",
        "a chunk of the body does not end where its size says: ']\\r'",
    ),
    "odd length": (head("200 OK", "Content-Length: x") + LISTING, "Content-Length is no number of up to 20 digits"),
    "long length": (
        head("200 OK", f"Content-Length: {len(LISTING):030}") + LISTING,
        "Content-Length is no number of up to 20 digits",
    ),
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


def test_a_request_that_cannot_be_sent_is_a_mistake_of_the_suite(
    server_context: ssl.SSLContext, certificate: Path
) -> None:
    """Over TLS, too, where errors of the same name tell of a service that speaks HTTP/2 badly."""
    spoiled = replace(LIST, headers=(("Cookie", "a=b "),))
    with serving(OK, server_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        with pytest.raises(Exception, match="Illegal header value"):
            opened.client.send(spoiled)
        assert opened.client.send(LIST).status == 200
