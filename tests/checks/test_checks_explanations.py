"""What a failed check says and shows is enough to see the fault again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest
from built import LIST, answered, cancel
from held import held

from conformance.api import Observations
from conformance.checks.cancelling import test_a_moment_later, test_absent
from conformance.checks.listing import test_conditional, test_orders
from conformance.reported import SPELLED, Report
from conformance.session import Session
from conformance.verdict import Status
from conformance.verify import Failed


def shown(session: Session, check: Callable[[], object]) -> tuple[str, list[str]]:
    """What a check that fails says, and its requests in turn, as its `curl` lines have them."""
    with pytest.raises(Failed) as raised:
        check()
    report = Report("a check", session.target.name, Status.PASSED)
    report.ended_with(raised.value, session.target.shell, session.recorder.redactor.clean)
    assert report.failure is not None
    lines = report.failure["curl"].splitlines()
    methods = [line.partition(" -X ")[2].partition(" ")[0] or "GET" for line in lines]
    return report.message, methods


def test_the_last_request_is_shown_however_many_lead_to_it() -> None:
    session, *_ = held()
    read = [answered(LIST, 200, b"[]")] * (SPELLED + 3)

    def check() -> None:
        raise Failed("204", "409", *read, answered(cancel(1), 409))

    assert shown(session, check)[1] == ["GET"] * (SPELLED - 1) + ["DELETE"]


def test_what_reading_twice_changes_is_read_twice() -> None:
    session, api, orders = held("ships-what-was-listed-twice")
    _, methods = shown(session, lambda: test_orders.test_reading_changes_nothing(api, orders, False))
    assert methods == ["GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE"]


def test_what_comes_between_two_cancels_is_shown() -> None:
    session, api, orders = held("brings-cancelled-orders-back-with-a-listing")
    observe = Observations(["second cancel"])
    _, methods = shown(session, lambda: test_absent.test_second_cancel_does_not_succeed(api, orders, observe))
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
