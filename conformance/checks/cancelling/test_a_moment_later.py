"""AUTH-5, CANCEL-4, CANCEL-6, CANCEL-8, LIST-9: what a request did, or did not do, is so later, too.

A service may do its work only after it has answered, or forget what it has done. So what is done to some orders early
in a run is looked at near its end, after whatever else the run has done. Where something is wrong then, the check does
the same once more, with other orders and nothing in between but as much time, so that nothing else is taken for the
cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import invalid_keys
from conformance.checks.cancelling.steps import cancels, stays_cancelled
from conformance.contract.listing import alike
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.guard import Refused
from conformance.transport.request import NOBODY, Allowed

#: One process begins and concludes.
pytestmark = pytest.mark.xdist_group("a moment later")
#: After how many seconds a service should not have changed its mind; and how many a check waits at most before it looks
#: once more.
MOMENT, PATIENCE = 0.3, 6.0
#: Orders beside one that is cancelled.
BESIDE = 5
#: Orders of each kind that are only read.
READ = 4
#: What is done in three parts, with a pause where it yields: take orders, do something with them, and later demand
#: something of them.
Course = Generator[None, None, None]


def refused_without_key(api: Api, orders: Orders) -> Course:
    """Pending orders whose cancels were refused for want of a key, and for a wrong one."""
    *tried, control_order = orders.take(pending=3).pending
    wrong = invalid_keys.near_misses(api.key.headers[0][1].removeprefix("Bearer "))[0]
    yield
    refusals = api.send_all(map(api.ask_cancel, tried, (NOBODY, wrong)))
    for refusal, owner in zip(refusals, ("AUTH-2", "AUTH-3"), strict=True):
        verify.step(refusal, 401, owner)
    yield
    *ended, control = api.send_all(map(api.ask_cancel, (*tried, control_order)))
    for end, refusal in zip(ended, refusals, strict=True):
        verify.still_pending(end, control, since="a cancel of it was refused before", shown_by=[refusal])


def refused_as_shipped(api: Api, orders: Orders) -> Course:
    """A shipped order whose cancel was refused."""
    order, control_order = orders.take(shipped=2).shipped
    yield
    before = api.listing()
    refusal = api.cancel(order)
    verify.step(refusal, 409, "CANCEL-3")
    yield
    since = "its cancel was refused a while before"
    verify.unchanged([], before, api.list(), shipped=[order], later=True, since=since, shown_by=[refusal])
    verify.still_shipped(api.cancel(order), lambda: api.cancel(control_order), since=since, shown_by=[refusal])


def cancelled(api: Api, orders: Orders) -> Course:
    """A pending order that was cancelled. A store may have given its id to another order since: then one is listed that
    looks neither as this one did before nor as it did right after."""
    (order,) = orders.take(pending=1).pending
    shown = [listed_as(api.list(), order)]
    yield
    first = api.cancel(order)
    verify.step(first, 204, "CANCEL-1")
    after = api.list()
    shown.append(listed_as(after, order))
    yield
    later = api.list()
    now = listed_as(later, order)
    # With the date, lest it be another one.
    same = any(alike(now, earlier, shipped=True) for earlier in shown)
    if now is not None and not same:
        raise outcomes.Excluded(f"order {order} may be another one by now, which has its id")
    again = api.cancel(order, allowed=Allowed.ANY_4XX)
    stays_cancelled(first, after, later, again, since="an order that was cancelled before is not pending")


def listed_as(answer: Answer, order: int) -> object:
    """What a listing shows of an order; None if nothing."""
    found = answer.listing
    return None if found is None else found.by_id.get(order)


def beside_cancelled(api: Api, orders: Orders) -> Course:
    """Pending orders, another of which was cancelled. They are not listed, so that no reading can have changed them."""
    chosen, *others = orders.take(pending=1 + BESIDE).pending
    yield
    first = api.cancel(chosen)
    verify.step(first, 204, "CANCEL-1")
    yield
    since = f"only order {chosen} was cancelled before"
    for end in api.send_all(map(api.ask_cancel, others)):
        verify.still_pending(end, first, since=since, shown_by=[first])


def only_read(api: Api, orders: Orders) -> Course:
    """Orders that were listed: several, which a provider may make of different kinds."""
    taken = orders.take(pending=READ, shipped=READ)
    yield
    before = api.listing()
    listed = [*taken.pending, *taken.shipped]
    if not before.odd_ids and not before.left_out(listed) and before.ids.isdisjoint(listed):
        raise outcomes.Excluded("the listing shows no order of the suite by its id, so nothing could be seen to change")
    yield
    since = "it was only read before"
    verify.unchanged(taken.pending, before, api.list(), shipped=taken.shipped, later=True, since=since)


COURSES: dict[str, Callable[[Api, Orders], Course]] = {
    "cancelling.refused_cancel_has_no_effect_later": refused_without_key,
    "cancelling.refused_order_is_shipped_later": refused_as_shipped,
    "cancelling.order_is_not_cancelled_a_moment_later": cancelled,
    "cancelling.a_cancel_touches_no_other_order_later": beside_cancelled,
    "cancelling.reading_changes_nothing_later": only_read,
}
#: Whatever else was done meanwhile is no excuse for cancelling an order twice.
CERTAIN = frozenset({"cancelling.order_is_not_cancelled_a_moment_later"})


@dataclass
class UnderWay:
    """The courses that this process has begun and not concluded, by the check that is to conclude each."""

    courses: dict[str, Course] = field(default_factory=dict)
    since: float = 0.0  # when the last of them was begun


@pytest.fixture(scope="session")
def under_way(session: object) -> UnderWay:
    """Those with one target, for which `session` stands."""
    return UnderWay()


@requirement("CANCEL-1", mode=Mode.FULL, pending=1)
@pytest.mark.first
def test_order_is_cancelled_beside_others(
    api: Api,
    orders: Orders,
    kept_orders: Orders,
    due: frozenset[str],
    target: Target,
    ids_come_again: bool,
    under_way: UnderWay,
) -> None:
    """Cancels a pending order: 204. Just before, others are cancelled, refused and read, for the checks that look near
    the end of the run at what became of them."""
    # A list may have too few; and who gets the id of a cancelled order would have its own cancelled in the end.
    if target.places_orders and not ids_come_again:
        courses = {check: course(api, kept_orders) for check, course in COURSES.items() if check in due}
        # All orders are placed before one is cancelled, whose id a later one might get.
        under_way.courses = gone_on(gone_on(courses))
        under_way.since = time.monotonic()
    cancels(api, orders, orders.take(pending=1).pending[0])


def gone_on(courses: dict[str, Course]) -> dict[str, Course]:
    """Take each course one step on; returns those that did not end on the way."""
    went = {}
    for check, course in courses.items():
        with suppress(outcomes.Failed, outcomes.Inconclusive, outcomes.Excluded):
            next(course)
            went[check] = course
    return went


def follow(check: str, api: Api, orders: Orders, under_way: UnderWay, moment: Callable[[float], None]) -> None:
    """Conclude the course of a check. Where it was not begun, or something is wrong now, follow one with other orders
    from beginning to end."""
    passed = time.monotonic() - under_way.since
    course = under_way.courses.pop(check, None)
    pause = MOMENT
    if course is not None:
        moment(max(0.0, MOMENT - passed))
        pause = min(max(MOMENT, passed), PATIENCE)
        try:
            next(course, None)
            return
        except outcomes.Failed:
            if check in CERTAIN:
                raise
        except (outcomes.Inconclusive, outcomes.Excluded, Refused):
            pass  # with other orders it may be decided
    again = COURSES[check](api, orders)
    next(again)
    next(again)
    moment(pause)
    next(again, None)


@pytest.fixture
def conclude(
    api: Api,
    orders: Orders,
    moment: Callable[[float], None],
    check_id: str,
    under_way: UnderWay,
    give_back: Callable[[], None],
) -> Callable[[], None]:
    """Follows the course of this check; after the last one that is under way, the orders kept for them are returned."""

    def run() -> None:
        try:
            follow(check_id, api, orders, under_way, moment)
        except outcomes.Failed as failed:
            failed.waited = True
            raise
        finally:
            if not under_way.courses:
                give_back()

    return run


@requirement("AUTH-5", mode=Mode.FULL, pending=3)
@pytest.mark.last
def test_refused_cancel_has_no_effect_later(conclude: Callable[[], None]) -> None:
    """Has the cancels of pending orders refused for want of a key, and for a wrong one: later they can still be
    cancelled, as another can to which nothing was done."""
    conclude()


@requirement("CANCEL-4", mode=Mode.FULL, shipped=2)
@pytest.mark.last
def test_refused_order_is_shipped_later(conclude: Callable[[], None]) -> None:
    """Has the cancel of a shipped order refused: later it is listed as before, and refused again."""
    conclude()


@requirement("CANCEL-6", mode=Mode.FULL, pending=1)
@pytest.mark.last
def test_order_is_not_cancelled_a_moment_later(conclude: Callable[[], None]) -> None:
    """Cancels an order, and again later: no success."""
    conclude()


@requirement("CANCEL-8", mode=Mode.FULL, pending=1 + BESIDE)
@pytest.mark.last
def test_a_cancel_touches_no_other_order_later(conclude: Callable[[], None]) -> None:
    """Cancels one of several pending orders: later the others can still be cancelled."""
    conclude()


@requirement("LIST-9", mode=Mode.FULL, pending=READ, shipped=READ)
@pytest.mark.last
def test_reading_changes_nothing_later(conclude: Callable[[], None]) -> None:
    """Lists: later the orders of the suite are listed as they were."""
    conclude()
