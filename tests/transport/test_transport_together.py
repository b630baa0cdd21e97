"""Several requests at once: overlapping, limits on them, the order of their answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from built import LIST, broken, cancel, session
from raw_service import Conversation, Reply, answer, serving
from single import OK, once

from conformance.target import Mode, RateLimit
from conformance.transport import concurrency
from conformance.transport.endpoint import GIVE_UP_AFTER, ServiceGone
from conformance.transport.evidence import Trouble
from conformance.transport.guard import Refused
from conformance.transport.request import Credential, Request
from conformance.transport.retries import turned_away
from conformance.verify import refusal


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


def test_a_request_that_is_never_answered_is_not_one_too_many() -> None:
    def prudish(talk: Conversation) -> None:
        if b"?" not in talk.request:
            talk.send(OK)
        talk.hang_up()

    asked = [LIST, replace(LIST, query="page=1"), LIST]
    with serving(prudish) as service, session(service.base_url) as opened:
        opened.client.concurrency.near = False
        assert [found.status for found in opened.client.send_all(asked)] == [200, None, 200]
        assert not opened.client.concurrency.one_by_one


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
