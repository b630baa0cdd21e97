"""What a failed check says and shows is enough to see the fault again."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

import pytest
from built import LIST, VALID, answered, cancel
from held import held

from conformance.api import Observations
from conformance.checks import test_concurrency
from conformance.checks.authentication import test_refusals
from conformance.checks.cancelling import test_a_moment_later, test_absent, test_identifiers, test_pending, test_shipped
from conformance.checks.listing import test_conditional, test_empty, test_orders
from conformance.checks.listing.steps import nothing_left_out
from conformance.outcomes import Failed, Inconclusive
from conformance.runner.reported import SPELLED, CheckReport
from conformance.runner.session import Session
from conformance.transport.curl import WAIT
from conformance.transport.request import Allowed, Request
from conformance.verdict import Status


def explained(session: Session, check: Callable[[], object]) -> tuple[str, list[str]]:
    """What a check that fails says, and its `curl` lines."""
    with pytest.raises(Failed) as raised:
        check()
    report = CheckReport("a check", session.target.name, Status.PASSED)
    report.ended_with(raised.value, session.target.shell, session.recorder.redactor.clean)
    assert report.failure is not None
    assert report.failure.curl is not None
    return report.message, report.failure.curl.splitlines()


def shown(session: Session, check: Callable[[], object]) -> tuple[str, list[str]]:
    """What a check that fails says, and its requests in turn, as its `curl` lines have them."""
    message, lines = explained(session, check)
    methods = [line.replace(" -I ", " -X HEAD ").partition(" -X ")[2].partition(" ")[0] or "GET" for line in lines]
    return message, methods


def test_the_last_request_is_shown_however_many_lead_to_it() -> None:
    session, *_ = held()
    read = [answered(LIST, 200, b"[]")] * (SPELLED + 3)

    def check() -> None:
        raise Failed("204", "409", *read, answered(cancel(1), 409))

    assert shown(session, check)[1] == ["GET"] * (SPELLED - 1) + ["DELETE"]


def test_what_shows_only_later_is_waited_for() -> None:
    session, *_ = held()

    def check() -> None:
        failed = Failed("the order", "none", answered(cancel(1), 409), answered(LIST, 200, b"[]"))
        failed.waited = True
        raise failed

    _, (first, wait, last) = explained(session, check)
    assert (" -X DELETE " in first, wait, " -X " in last) == (True, WAIT, False)


def test_simultaneous_requests_are_pasted_as_such() -> None:
    session, *_ = held()

    def check() -> None:
        raise Failed("one success", "two", answered(cancel(1), 204), answered(cancel(1), 204), at_once=True)

    _, (one, other, last) = explained(session, check)
    assert one == other
    assert (" -X DELETE " in one, one.endswith(" &"), last) == (True, True, "wait")


def test_the_refusals_that_led_to_another_answer_are_pasted() -> None:
    session, api, orders = held("loses-orders-that-were-refused-four-times")
    message, (before, last) = explained(session, lambda: test_shipped.test_refused_order_stays_as_it_was(api, orders))
    order = re.findall(r"/orders/(\d+)'", last)[0]
    assert f"404 Not Found for order {order}" in message
    assert f"/orders/{{{','.join([order] * 4)}}}'" in before


def test_every_spelling_that_may_have_cancelled_an_order_is_pasted() -> None:
    session, api, orders = held("removes-the-newest-order-for-an-id-of-letters")
    message, lines = explained(session, lambda: test_identifiers.test_aliases_of_an_id_cancel_nothing(api, orders))
    assert "abc" in message
    assert any(re.search(r"/orders/\{abc,", line) for line in lines)
    assert re.search(r"/orders/\d+'", lines[-1])


def test_the_cancel_that_was_reported_and_not_done_is_shown() -> None:
    session, api, orders = held("reports-a-cancel-and-does-nothing")
    message, methods = shown(
        session,
        lambda: test_pending.test_pending_orders_are_cancelled_whatever_the_client_accepts(api, orders, session.target),
    )
    assert methods == ["DELETE", "GET", "DELETE"]
    assert re.match(
        r"expected order \d+ cancelled after 204; received it is still there, in a listing of \d+ el", message
    )


def test_the_refusals_that_touched_an_order_are_shown() -> None:
    session, api, orders = held("empties-shipped-orders-for-strangers")
    _, methods = shown(
        session, lambda: test_refusals.test_refused_cancel_leaves_a_shipped_order(api, orders, session.target.key)
    )
    assert methods == ["DELETE"] * 4 + ["GET"]


def test_what_reading_twice_changes_is_read_twice() -> None:
    session, api, orders = held("ships-what-was-listed-twice")
    _, methods = shown(session, lambda: test_orders.test_reading_changes_nothing(api, orders, False))
    assert methods == ["GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE"]


def test_what_comes_between_two_cancels_is_shown() -> None:
    session, api, orders = held("brings-cancelled-orders-back-with-a-listing")
    observe = Observations(["second cancel"])
    _, methods = shown(
        session, lambda: test_absent.test_second_cancel_does_not_succeed(api, orders, observe, session.target)
    )
    assert methods == ["DELETE", "DELETE", "GET", "DELETE"]


def test_what_comes_between_a_cancel_and_a_later_one_is_shown() -> None:
    session, api, orders = held("brings-cancelled-orders-back-with-a-listing")
    _, methods = shown(session, lambda: deque(test_a_moment_later.cancelled(api, orders), maxlen=0))
    assert methods == ["DELETE", "GET", "GET", "DELETE"]


def test_what_came_with_the_older_listing_is_named() -> None:
    session, api, orders = held("tags-every-listing-alike")
    check = test_conditional.test_new_order_is_listed_to_who_has_an_older_listing
    said, _ = shown(session, lambda: check(api, orders, lambda seconds: None))
    assert "expected 200 with order" in said
    assert "placed after the listing whose ETag is sent; received 304 Not Modified for the listing, asked" in said


def test_an_order_that_a_late_cancel_brings_back_is_shown_with_one_that_was_done() -> None:
    session, api, orders = held()
    alone, first, second = orders.take(pending=3).pending
    done = {order: answered(cancel(order), 204) for order in (first, second)}  # and listed all the same
    said, methods = shown(session, lambda: test_concurrency.gone_for_good(api, alone, done, lambda seconds: None))
    assert f"gone from the listing, as order {alone} is, which was cancelled alone after them" in said
    assert f"received orders {first}, {second} still listed" in said
    assert methods == ["DELETE", "GET"]


def test_a_listing_that_is_now_and_then_no_array_is_for_list_1() -> None:
    answer = answered(LIST, 200, b"[")
    answer.sender = lambda request: answered(LIST, 200, b"[]")
    with pytest.raises(Inconclusive, match="and then with one") as raised:
        test_empty.holds_nothing(answer)
    assert raised.value.owners == ("LIST-1",)


def test_a_query_that_is_obeyed_alone_is_not_said_to_be_an_older_listing() -> None:
    few = answered(Request("GET", "/store/orders", VALID, "page=0&size=1", allowed=Allowed.OPEN), 200, b'[{"id": 1}]')
    all_ = answered(LIST, 200, b'[{"id": 1}, {"id": 2}]')
    few.sender = lambda request: few if request.query else all_
    found = few.listing
    assert found is not None
    with pytest.raises(Failed, match="this query alone is obeyed, or the answer is one that was kept"):
        nothing_left_out(frozenset({1, 2}), found, few, lambda: all_)


def test_an_empty_store_is_said_to_have_been_emptied() -> None:
    null = answered(LIST, 200, b"null")
    null.sender = lambda request: null
    for answer in (null, answered(LIST, 200, b'[{"id": 1}]')):
        with pytest.raises(Failed, match=r"expected \[\] just after the store was emptied; received"):
            test_empty.holds_nothing(answer)


def test_an_order_that_is_cancelled_only_when_asked_again_is_told_so() -> None:
    session, api, orders = held("refuses-every-third-pending-order")
    check = test_pending.test_pending_orders_are_cancelled_one_after_the_other
    said, methods = shown(session, lambda: check(api, orders))
    assert said.endswith(", and 204 when it was asked for again")
    assert methods == ["DELETE", "DELETE"]
