"""AUTH-5, CANCEL-4, CANCEL-6: what a cancel did, or did not do, is so a moment later, too.

A service may do its work only after it has answered. One moment serves all checks here: the first of them follows the
orders of the others as well. Where one of these shows that something is wrong, its own check looks for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress

import pytest

from conformance import verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.target import Mode, Target
from conformance.transport.evidence import NOBODY, Allowed

#: Seconds after which a service should not have changed its mind.
MOMENT = 0.3
#: What is done with orders before the moment, and demanded of them after it.
Course = Generator[None, None, None]


def refused_without_key(api: Api, orders: Orders) -> Course:
    """A pending order whose cancel was refused for want of a key."""
    order, control_order = orders.take(pending=2, looked_for=False).pending
    refusal = api.send(api.ask_cancel(order, NOBODY))
    verify.step(refusal, 401, "AUTH-2")
    yield
    control, end = api.send_all(map(api.ask_cancel, (control_order, order)))
    verify.still_pending(end, control, since="a cancel without key was refused a moment before", shown_by=[refusal])


def refused_as_shipped(api: Api, orders: Orders) -> Course:
    """A shipped order whose cancel was refused."""
    order, control_order = orders.take(shipped=2, looked_for=False).shipped
    refusal = api.cancel(order)
    verify.step(refusal, 409, "CANCEL-3")
    yield
    since = "cancelling it was refused a moment before"
    verify.still_shipped(api.cancel(order), lambda: api.cancel(control_order), since=since, shown_by=[refusal])


def cancelled(api: Api, orders: Orders) -> Course:
    """A pending order that was cancelled."""
    (order,) = orders.take(pending=1, looked_for=False).pending
    first = api.cancel(order)
    verify.step(first, 204, "CANCEL-1")
    yield
    again = api.cancel(order, allowed=Allowed.ANY_4XX)
    if verify.settled(again).succeeded:
        wanted = "no success, since an order that was cancelled a moment before is not pending"
        raise verify.Failed(wanted, verify.describe(again), first, again)


COURSES: dict[str, Callable[[Api, Orders], Course]] = {
    "cancelling.refused_cancel_has_no_effect_later": refused_without_key,
    "cancelling.refused_order_is_shipped_later": refused_as_shipped,
    "cancelling.order_is_not_cancelled_a_moment_later": cancelled,
}


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
    """Follows the course of this check, and those of the others that nobody has seen yet."""

    def run() -> None:
        if already_met:
            return
        begun: dict[str, Course] = {}
        for each, course in COURSES.items():  # in their order: after a cancel none is placed, which may get its id
            if each == check_id:
                begun[each] = course(api, orders)
                next(begun[each])
            elif target.places_orders:  # a list may have too few
                with suppress(verify.Failed, verify.Inconclusive, verify.Excluded):
                    beside = course(api, orders)
                    next(beside)
                    begun[each] = beside
        moment(MOMENT)
        own = begun.pop(check_id)
        for other, beside in begun.items():
            with suppress(verify.Failed, verify.Inconclusive, verify.Excluded):
                next(beside, None)
                met.add(other)
        next(own, None)

    return run


@requirement("AUTH-5", mode=Mode.FULL, pending=2)
@pytest.mark.xdist_group("a moment later")
def test_refused_cancel_has_no_effect_later(follow: Callable[[], None]) -> None:
    """Has the cancel of a pending order refused for want of a key: a moment later it can still be cancelled, as another
    can to which nothing was done."""
    follow()


@requirement("CANCEL-4", mode=Mode.FULL, shipped=2)
@pytest.mark.xdist_group("a moment later")
def test_refused_order_is_shipped_later(follow: Callable[[], None]) -> None:
    """Has the cancel of a shipped order refused: a moment later it is refused again."""
    follow()


@requirement("CANCEL-6", mode=Mode.FULL, pending=1)
@pytest.mark.xdist_group("a moment later")
def test_order_is_not_cancelled_a_moment_later(follow: Callable[[], None]) -> None:
    """Cancels an order, and again a moment later: no success."""
    follow()
