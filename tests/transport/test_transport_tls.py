"""The client over TLS, and in HTTP/2."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from built import LIST, session
from raw_service import Reply, answer, serving
from single import LIMIT, LISTING, OK

from conformance.contract.transitions import State
from conformance.states.provider import setup
from conformance.target import States
from conformance.transport.evidence import Trouble
from conformance.transport.wire import Wire

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
LAST_ONE = frame(7, 0, 0, bytes([0, 0, 0, 1, 0, 0, 0, 0]))
REFUSES = frame(3, 0, 1, (7).to_bytes(4, "big"))


@pytest.fixture
def http2_context(server_context: ssl.SSLContext) -> ssl.SSLContext:
    server_context.set_alpn_protocols(["h2", "http/1.1"])
    return server_context


@pytest.mark.parametrize(
    ("reply", "trouble"),
    [
        (lambda talk: talk.send(SETTINGS + OK_HEAD + frame(0, 1, 1, LISTING)), None),
        (lambda talk: talk.send(SETTINGS + LAST_ONE + OK_HEAD + frame(0, 1, 1, LISTING)), None),
        (lambda talk: talk.send(SETTINGS + OK_HEAD + LAST_ONE + frame(0, 1, 1, LISTING) + LAST_ONE), None),
        (SETTINGS + LAST_ONE + OK_HEAD, Trouble.BROKEN),
        (SETTINGS + frame(7, 0, 0, bytes([0, 0, 0, 1, 0, 0, 0, 2])) + OK_HEAD, Trouble.BROKEN),
        (SETTINGS + OK_HEAD + frame(0, 0, 1, LISTING), Trouble.BROKEN),
        (SETTINGS + OK_HEAD + frame(0, 0, 1, LISTING) + frame(9, 0, 1, b"x"), Trouble.BROKEN),
        (SETTINGS + OK_HEAD + frame(3, 0, 1, bytes(4)), Trouble.BROKEN),
        (SETTINGS + frame(1, 4, 1, b"\xff" * 20), Trouble.BROKEN),
        (lambda talk: talk.send(SETTINGS + GOES_AWAY), Trouble.REFUSED),
        (lambda talk: talk.send(SETTINGS + REFUSES), Trouble.REFUSED),
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
        "right", "the last one", "the last one, said amid", "the last one, and no more", "an error",
        "short", "odd frame", "reset", "odd header", "goes away", "refuses", "odd settings", "only settings",
        "HTTP/1.1", "hangs up", "silent", "trickles", "settings for ever", "too large",
    ],
)  # fmt: skip
def test_http_2(http2_context: ssl.SSLContext, certificate: Path, reply: Reply | bytes, trouble: str | None) -> None:
    limit = LIMIT if trouble == Trouble.TIMEOUT else 10.0
    limits: dict[str, Any] = {"timeout": limit, "max_body": 100_000, "ca_bundle": str(certificate)}
    with serving(reply, http2_context) as service, session(service.base_url, **limits) as opened:
        found = opened.client.send(LIST)
        assert service.requests[0].startswith(b"PRI * HTTP/2.0\r\n")
    assert found.exchange.trouble == trouble, found.exchange.detail
    assert (found.status, found.body) == ((200, LISTING) if trouble is None else (None, b""))
    assert trouble is None or found.exchange.detail
    # Where there is trouble, the head may have come before it.
    assert found.exchange.http_version in (("HTTP/2",) if trouble is None else ("HTTP/2", ""))


@pytest.mark.parametrize("refusal", [GOES_AWAY, REFUSES], ids=["goes away", "refuses"])
def test_what_http_2_refuses_is_sent_again(http2_context: ssl.SSLContext, certificate: Path, refusal: bytes) -> None:
    """Nothing was done of it."""
    replies = iter([refusal, refusal, OK_HEAD + frame(0, 1, 1, LISTING)])
    reply: Reply = lambda talk: talk.send(SETTINGS + next(replies))  # noqa: E731
    with serving(reply, http2_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        assert opened.client.send(LIST).status == 200
        found = [(exchange.trouble, exchange.waited) for exchange in opened.recorder.exchanges]
    assert found == [(Trouble.REFUSED, 0.0), (Trouble.REFUSED, 0.0), (None, None)]


def test_http_2_has_a_connection_for_each_request(http2_context: ssl.SSLContext, certificate: Path) -> None:
    """Also of those that are under way together, so that none inherits the time that another has used up."""
    reply: Reply = lambda talk: talk.send(SETTINGS + OK_HEAD + frame(0, 1, 1, LISTING))  # noqa: E731
    with serving(reply, http2_context) as service, session(service.base_url, ca_bundle=str(certificate)) as opened:
        answers = opened.client.send_all([LIST] * 5, at_once=True)
        assert [found.status for found in answers] == [200] * 5
        assert service.connections == 5
