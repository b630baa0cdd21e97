"""Addresses, header fields, pace, and when to give up."""

from __future__ import annotations

import random
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built import KEY, LIST, VALID, answered, cancel, target

from conformance.target import ConfigError, RateLimit
from conformance.transport.endpoint import (
    GIVE_UP_AFTER,
    GIVE_UP_AFTER_IN_ALL,
    RESTART,
    SPREAD,
    Endpoint,
    Pace,
    ServiceGone,
    tls_settings,
)
from conformance.transport.evidence import Exchange, Trouble
from conformance.transport.request import NOBODY, Credential, Request


@pytest.mark.parametrize(
    ("base_url", "scheme", "host", "port", "authority", "path"),
    [
        ("http://api.example.com/v1", "http", "api.example.com", 80, "api.example.com", "/v1"),
        ("https://api.example.com/v1", "https", "api.example.com", 443, "api.example.com", "/v1"),
        ("https://api.example.com:8443/shop/v1", "https", "api.example.com", 8443, "api.example.com:8443", "/shop/v1"),
        ("http://[::1]:8080/v1", "http", "::1", 8080, "[::1]:8080", "/v1"),
    ],
)
def test_addresses(base_url: str, scheme: str, host: str, port: int, authority: str, path: str) -> None:
    endpoint = Endpoint(target(base_url))
    assert (endpoint.scheme, endpoint.host, endpoint.port) == (scheme, host, port)
    assert (endpoint.authority, endpoint.base_path) == (authority, path)
    assert endpoint.url(cancel("12%61")) == f"{base_url}/store/orders/12%61"


def test_queries() -> None:
    endpoint = Endpoint(target())
    both = Request("GET", "/store/orders", Credential("query", query="api_key=k"), query="limit=1")
    assert endpoint.path(both) == "/v1/store/orders?limit=1&api_key=k"
    assert endpoint.path(LIST) == "/v1/store/orders"


def test_header_fields() -> None:
    headers = dict(Endpoint(target("http://h:8080/v1")).headers(LIST, connection="close"))
    assert headers.pop("User-Agent").startswith("store-orders-conformance/")
    assert headers == {
        "Host": "h:8080",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "Connection": "close",
        "Authorization": f"Bearer {KEY}",
    }


def test_a_client_need_not_say_what_it_accepts() -> None:
    endpoint = Endpoint(target())
    names = [
        {name for name, _ in endpoint.headers(each, connection="close")} for each in (LIST, replace(LIST, accept=None))
    ]
    assert names[0] - names[1] == {"Accept"}


def test_a_request_has_its_own_header_fields_once() -> None:
    request = Request(
        "GET", "/store/orders", VALID, headers=(("ACCEPT", "application/json"), ("X-A", "1"), ("X-A", "2"))
    )
    headers = Endpoint(target()).headers(request, connection="close")
    assert [value for name, value in headers if name.lower() == "accept"] == ["application/json"]
    assert [value for name, value in headers if name == "X-A"] == ["1", "2"]


@pytest.mark.parametrize(("body", "length"), [(None, []), (b"", ["0"]), (b"{}", ["2"])])
def test_content_length_belongs_to_a_body(body: bytes | None, length: list[str]) -> None:
    headers = Endpoint(target()).headers(Request("DELETE", "/store/orders/1", NOBODY, body=body), connection="close")
    assert [value for name, value in headers if name == "Content-Length"] == length
    assert not any(name == "Authorization" for name, _ in headers)


# --- pace


def took(pace: Pace, times: int) -> float:
    started = time.monotonic()
    for _ in range(times):
        pace.wait()
    return time.monotonic() - started


def test_the_pace_is_kept() -> None:
    """The first goes at once, each further one an interval later; never faster, whatever the machine does."""
    assert took(Pace(RateLimit(20, 1.0)), 5) >= 4 / 20
    assert took(Pace(None), 1000) < 1


def test_turns_that_pass_are_not_used() -> None:
    """As many as requests were set off at once, and more: none of a pace without a limit."""
    pace = Pace(RateLimit(20, 1.0))
    started = time.monotonic()
    pace.pass_turns(4)
    pace.wait()
    assert time.monotonic() - started >= 4 / 20
    unlimited = Pace(None)
    unlimited.pass_turns(1000)
    assert took(unlimited, 1) < 1


def test_processes_share_the_pace(tmp_path: Path) -> None:
    """Two that keep their pace by the same file are as fast as one; also what the service asks for holds for both."""
    paces = [Pace(RateLimit(20, 1.0), tmp_path / "pace") for _ in range(2)]
    started = time.monotonic()
    for _ in range(3):
        for pace in paces:
            pace.wait()
    assert time.monotonic() - started >= 5 / 20
    started = time.monotonic()
    paces[0].hold(0.3)
    paces[1].wait()
    assert time.monotonic() - started >= 0.3
    assert (tmp_path / "pace").stat().st_size == 8  # written in one step: who dies meanwhile leaves no half of it


def test_processes_share_what_the_service_asks_for(tmp_path: Path) -> None:
    """Also where there is no rate limit, and so nothing to write down for each request; who comes later has it, too."""
    first = Pace(None)
    started = time.monotonic()
    first.hold(0.3)
    first.share(tmp_path / "pace")
    second = Pace(None, tmp_path / "pace")
    second.wait()
    assert time.monotonic() - started >= 0.3
    started = time.monotonic()
    second.hold(0.3)
    first.wait()
    assert time.monotonic() - started >= 0.3


def test_processes_that_were_held_together_do_not_go_on_in_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    pace = Pace(None, tmp_path / "pace")
    started = time.monotonic()
    pace.hold(0.2)
    pace.wait()
    assert time.monotonic() - started >= 0.2 + SPREAD


def test_a_rate_limit_spreads_what_was_held_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that came late could meet the next one, and both exceed the limit."""

    def never(least: float, most: float) -> float:
        raise AssertionError("no turn is moved")

    monkeypatch.setattr(random, "uniform", never)
    pace = Pace(RateLimit(20, 1.0), tmp_path / "pace")
    started = time.monotonic()
    pace.hold(0.2)
    pace.wait()
    assert time.monotonic() - started >= 0.2


def test_the_pace_is_kept_by_threads_together() -> None:
    pace = Pace(RateLimit(50, 1.0))
    started = time.monotonic()
    threads = [threading.Thread(target=took, args=(pace, 3)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started >= 11 / 50


def test_who_wakes_late_comes_no_closer_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = Pace(RateLimit(20, 1.0))
    pace.wait()
    sent: list[float] = []

    def oversleep(seconds: float) -> None:
        now[0] += seconds + (0.04 if not sent else 0.0)
        if not sent:
            pace.wait()  # another thread takes this turn meanwhile
            sent.append(now[0])

    monkeypatch.setattr(pace._over, "wait", oversleep)
    pace.wait()
    assert now[0] - sent[0] == pytest.approx(1 / 20)


def test_holding() -> None:
    pace = Pace(None)
    started = time.monotonic()
    pace.hold(0.2)
    pace.hold(0.05)  # the longer one stands
    pace.wait()
    assert time.monotonic() - started >= 0.2


def test_who_waits_for_a_turn_heeds_what_the_service_asks_for_meanwhile() -> None:
    """No turn that was given before a pause falls into it, and behind it the pace is kept."""
    pace = Pace(RateLimit(1, 1.0))  # on a busy machine, much may pass before the pause is asked for
    went: list[float] = []

    def go() -> None:
        pace.wait()
        went.append(time.monotonic())

    pace.wait()
    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    held = time.monotonic()
    pace.hold(1.5)
    for thread in threads:
        thread.join()
    assert min(went) >= held + 1.5
    assert max(went) - min(went) >= 0.9  # a thread may note late when it went


# --- giving up


def asked(second: float, trouble: str | None, detail: str = "late") -> Exchange:
    """A request that went out at that second, and what came of it within the next."""
    exchange = answered(LIST, None if trouble else 200).exchange
    exchange.started, exchange.seconds, exchange.trouble, exchange.detail = second, 1.0, trouble, detail
    return exchange


def test_the_run_stops_asking_after_repeated_silence() -> None:
    endpoint = Endpoint(target())
    for number in range(GIVE_UP_AFTER):
        endpoint.before(LIST)
        trouble = Trouble.TIMEOUT if number % 2 else Trouble.UNREACHABLE
        endpoint.after(LIST, asked(RESTART * number, trouble, "no answer within 5 s"))
    with pytest.raises(
        ServiceGone, match=r"not sent: the last 4 requests to listOrders got no answer \(no answer within 5 s\)"
    ):
        endpoint.before(LIST)
    endpoint.before(cancel(1))  # another operation may be better off


def test_a_service_that_answers_now_and_then_does_not_cost_hours() -> None:
    endpoint = Endpoint(target())
    for number in range(GIVE_UP_AFTER_IN_ALL):
        endpoint.before(LIST)
        endpoint.after(LIST, asked(number, Trouble.TIMEOUT))
        endpoint.after(LIST, asked(number, None))
    with pytest.raises(ServiceGone, match=r"not sent: 20 requests to listOrders got no answer \(late\)"):
        endpoint.before(LIST)


@pytest.mark.parametrize("trouble", [None, Trouble.BROKEN, Trouble.TOO_LARGE, Trouble.CLOSED])
def test_any_sign_of_life_counts(trouble: str | None) -> None:
    endpoint = Endpoint(target())
    for round_ in range(3):
        for number in range(GIVE_UP_AFTER - 1):
            endpoint.after(LIST, asked(10 * round_ + number, Trouble.TIMEOUT))
        endpoint.after(LIST, asked(10 * round_ + 9, trouble))
        endpoint.before(LIST)


def test_each_operation_is_given_up_for_its_own_silence() -> None:
    """A cancel that is late once does not become the reason why no listing is asked for."""
    endpoint = Endpoint(target())
    for number in range(GIVE_UP_AFTER):
        endpoint.after(LIST, asked(number, Trouble.TIMEOUT))
    endpoint.after(cancel(1), asked(GIVE_UP_AFTER, Trouble.TIMEOUT))
    with pytest.raises(ServiceGone, match="requests to listOrders"):
        endpoint.before(LIST)
    endpoint.before(cancel(1))


def test_silence_to_requests_under_way_together_counts_once() -> None:
    """A service that answers one at a time may be late for the last of a burst."""
    endpoint = Endpoint(target())
    for number in range(GIVE_UP_AFTER - 1):
        for _ in range(8):
            endpoint.after(LIST, asked(number, Trouble.TIMEOUT))
        endpoint.before(LIST)
    endpoint.after(LIST, asked(GIVE_UP_AFTER, Trouble.TIMEOUT))
    with pytest.raises(ServiceGone):
        endpoint.before(LIST)


# --- TLS


def test_authorities_are_taken_whatever_the_interpreter_thinks_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT  # as from 3.13 on
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: strict)
    assert not tls_settings(target("https://h/v1")).verify_flags & ssl.VERIFY_X509_STRICT


def test_files_that_are_no_certificates(tmp_path: Path) -> None:
    file = tmp_path / "no.pem"
    file.write_text("not a certificate", encoding="utf-8")
    wrong: list[dict[str, Any]] = [{"ca_bundle": str(file)}, {"client_cert": str(file)}]
    for further in wrong:
        with pytest.raises(
            ConfigError, match=r"target 'harness': the CA bundle or client certificate cannot be used: .*PEM"
        ):
            tls_settings(target("https://h/v1", **further))
