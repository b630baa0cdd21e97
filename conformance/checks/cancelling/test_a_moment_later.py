"""AUTH-5, CANCEL-4, CANCEL-6, CANCEL-8, LIST-9: what a request did, or did not do, is so a moment later, too.

A service may do its work only after it has answered. One moment serves all checks here: the first of them follows the
courses of the others as well. Where a course shows that something is wrong its own check follows it again, alone, so
that nothing in another course is taken for the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress

import pytest

from conformance import verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks.cancelling.steps import stays_cancelled
from conformance.target import Mode, Target
from conformance.transport.evidence import NOBODY, Allowed

#: What shares a moment is for one process, which leaves the processors to others while it passes.
pytestmark = [pytest.mark.xdist_group("a moment later"), pytest.mark.pauses]
#: Seconds after which a service should not have changed its mind.
MOMENT = 0.3
#: Orders beside one that is cancelled.
BESIDE = 5
#: Takes orders; does something with them; and, after the moment, demands something of them.
Course = Generator[None, None, None]


def refused_without_key(api: Api, orders: Orders) -> Course:
    """A pending order whose cancel was refused for want of a key."""
    order, control_order = orders.take(pending=2, looked_for=False).pending
    yield
    refusal = api.send(api.ask_cancel(order, NOBODY))
    verify.step(refusal, 401, "AUTH-2")
    yield
    end, control = api.send_all(map(api.ask_cancel, (order, control_order)))
    verify.still_pending(end, control, since="a cancel without key was refused a moment before", shown_by=[refusal])


def refused_as_shipped(api: Api, orders: Orders) -> Course:
    """A shipped order whose cancel was refused."""
    order, control_order = orders.take(shipped=2, looked_for=False).shipped
    yield
    refusal = api.cancel(order)
    verify.step(refusal, 409, "CANCEL-3")
    yield
    since = "cancelling it was refused a moment before"
    verify.still_shipped(api.cancel(order), lambda: api.cancel(control_order), since=since, shown_by=[refusal])


def cancelled(api: Api, orders: Orders) -> Course:
    """A pending order that was cancelled."""
    (order,) = orders.take(pending=1, looked_for=False).pending
    yield
    first = api.cancel(order)
    verify.step(first, 204, "CANCEL-1")
    yield
    again = api.cancel(order, allowed=Allowed.ANY_4XX)
    stays_cancelled(first, again, since="an order that was cancelled a moment before is not pending")


def beside_cancelled(api: Api, orders: Orders) -> Course:
    """Pending orders, another of which was cancelled. They are not listed, so that no reading can have changed them."""
    chosen, *others = orders.take(pending=1 + BESIDE, looked_for=False).pending
    yield
    first = api.cancel(chosen)
    verify.step(first, 204, "CANCEL-1")
    yield
    since = f"only order {chosen} was cancelled a moment before"
    for end in api.send_all(map(api.ask_cancel, others)):
        verify.still_pending(end, first, since=since, shown_by=[first])


def only_read(api: Api, orders: Orders) -> Course:
    """Orders that were listed."""
    taken = orders.take(pending=1, shipped=1, looked_for=False)
    yield
    before = api.listing()
    yield
    since = "it was only read, a moment before"
    verify.unchanged([*taken.pending, *taken.shipped], before, api.list(), since=since)


COURSES: dict[str, Callable[[Api, Orders], Course]] = {
    "cancelling.refused_cancel_has_no_effect_later": refused_without_key,
    "cancelling.refused_order_is_shipped_later": refused_as_shipped,
    "cancelling.order_is_not_cancelled_a_moment_later": cancelled,
    "cancelling.a_cancel_touches_no_other_order_later": beside_cancelled,
    "cancelling.reading_changes_nothing_later": only_read,
}


def on(courses: Mapping[str, Course]) -> dict[str, Course]:
    """Take each course one step on; those that came to it."""
    went = {}
    for check, course in courses.items():
        with suppress(verify.Failed, verify.Inconclusive, verify.Excluded):
            next(course, None)
            went[check] = course
    return went


@pytest.fixture
def follow(
    api: Api,
    orders: Orders,
    target: Target,
    moment: Callable[[float], None],
    check_id: str,
    met: set[str],
    already_met: bool,
) -> Callable[[], None]:
    """Follows all courses, unless that has shown already what this check demands; then its own, unless they have."""

    def run() -> None:
        if already_met:
            return
        if target.places_orders:  # a list may have too few
            # All orders are placed before one is cancelled, whose id a later one might get.
            begun = on(on({check: course(api, orders) for check, course in COURSES.items()}))
            moment(MOMENT)
            met.update(on(begun))
        if check_id not in met:
            own = COURSES[check_id](api, orders)
            next(own)
            next(own)
            moment(MOMENT)
            next(own, None)

    return run


@requirement("AUTH-5", mode=Mode.FULL, pending=2)
def test_refused_cancel_has_no_effect_later(follow: Callable[[], None]) -> None:
    """Has the cancel of a pending order refused for want of a key: a moment later it can still be cancelled, as another
    can to which nothing was done."""
    follow()


@requirement("CANCEL-4", mode=Mode.FULL, shipped=2)
def test_refused_order_is_shipped_later(follow: Callable[[], None]) -> None:
    """Has the cancel of a shipped order refused: a moment later it is refused again."""
    follow()


@requirement("CANCEL-6", mode=Mode.FULL, pending=1)
def test_order_is_not_cancelled_a_moment_later(follow: Callable[[], None]) -> None:
    """Cancels an order, and again a moment later: no success."""
    follow()


@requirement("CANCEL-8", mode=Mode.FULL, pending=1 + BESIDE)
def test_a_cancel_touches_no_other_order_later(follow: Callable[[], None]) -> None:
    """Cancels one of several pending orders: a moment later the others can still be cancelled."""
    follow()


@requirement("LIST-9", mode=Mode.FULL, pending=1, shipped=1)
def test_reading_changes_nothing_later(follow: Callable[[], None]) -> None:
    """Lists: a moment later the orders of the suite are listed as they were."""
    follow()
