"""CANCEL-8: no other order is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import ids
from conformance.contract.listing import Listing
from conformance.target import Mode, Target
from conformance.transport.request import Allowed
from conformance.transport.wire import Wire

#: How many more orders are placed beside those of a check, to see whether they stay in the listing.
CROWD = 20
#: Of the orders that have something in common with a cancelled one, so many of the first and of the last ones are
#: cancelled after it.
KIN = 2
#: How many cancels have orders placed while they are under way.
ROUNDS = 2
#: Whether two elements of a listing have something in common by which a careless service may take both for one.
Bond = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
BONDS: tuple[Bond, ...] = (
    lambda one, other: "petId" in one and bool(one["petId"] == other.get("petId")),
    lambda one, other: "petId" not in one and "petId" not in other,
    lambda one, other: "shipDate" in one and bool(one["shipDate"] == other.get("shipDate")),
)


@requirement("CANCEL-8", mode=Mode.FULL, pending=7, shipped=2)
def test_other_orders_are_untouched(api: Api, orders: Orders, target: Target) -> None:
    """Cancels a few of several orders placed side by side, neither the first nor the last; if possible, those that
    share their pet or ship date with other pending and shipped ones, before and after them. The others are listed as
    before; pending ones can still be cancelled, shipped ones are still refused."""
    taken = orders.take(pending=7, shipped=2)
    crowd = orders.take_listed(pending=CROWD if target.places_orders else 0)
    pending = [*taken.pending, *crowd.pending]
    inner = pending[1:-1]
    bound = (amid_kin(crowd.listing, inner, group, bond) for bond, group in product(BONDS, (pending, taken.shipped)))
    chosen = [order for order in dict.fromkeys(bound) if order is not None] or inner[:1]
    families = [kin(crowd.listing, order, pending) for order in chosen]
    relatives = [other for family in families for other in (*family[:KIN], *family[-KIN:])]
    others = [order for order in dict.fromkeys([*taken.pending, *relatives]) if order not in chosen]
    listed = [order for order in crowd.pending if order not in (*chosen, *others)]
    untouched(api, orders, chosen, others, taken.shipped, crowd.listing, listed)


def amid_kin(found: Listing | None, orders: Iterable[int], others: Iterable[int], bond: Bond) -> int | None:
    """The order with as many kin as can be on both sides: of `orders`, the first one that has the most of `others` with
    this bond below it or above it, whichever are fewer. None where no order has any."""
    best, most = None, (0, 0)
    for order in orders:
        family = kin(found, order, others, bond)
        below = sum(other < order for other in family)
        evenly = (min(below, len(family) - below), bool(family))
        if evenly > most:
            best, most = order, evenly
    return best


def kin(found: Listing | None, order: int, others: Iterable[int], bond: Bond | None = None) -> list[int]:
    """Those of `others` that the listing shows to have something in common with `order`, or that one `bond`."""
    if found is None or order not in found.by_id:
        return []
    own, bonds = found.by_id[order], BONDS if bond is None else (bond,)
    present = ((other, found.by_id[other]) for other in others if other != order and other in found.by_id)
    return [other for other, element in present if any(bond(own, element) for bond in bonds)]


@requirement("CANCEL-8", mode=Mode.FULL, empty_store=True, pending=1, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_order_behind_the_first_is_untouched(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and two orders placed, the second of them shipped, and cancels the first: the other is
    still refused. The check of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        taken = orders.take(pending=1, shipped=1)
        untouched(api, orders, taken.pending, [], taken.shipped, None)


@requirement("CANCEL-8", mode=Mode.FULL, empty_store=True, pending=3)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_absent_order_leaves_the_only_one(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and one order placed, cancels one that does not exist, and then the order itself: 204. A
    search that finds nothing may return the first order, or the last. The check of LIST-7 may have seen that
    already."""
    if already_met:
        return
    orders.take(pending=1)
    (absent,) = api.absent()  # after a listing that shows orders: one that shows none is for LIST-7
    orders.empty_store()
    (only,) = orders.take(pending=1).pending
    missed = api.cancel(absent)
    verify.step(missed, 404, "CANCEL-5")
    cancelled = api.cancel(only)
    (control,) = orders.take(pending=1).pending
    since = "nothing was cancelled but an order that does not exist"
    verify.still_pending(cancelled, api.cancel(control), since=since, shown_by=[missed])


@requirement("CANCEL-8", mode=Mode.FULL, pending=4, shipped=2)
@pytest.mark.lengthy
def test_refused_cancels_touch_no_other_order(api: Api, orders: Orders, target: Target) -> None:
    """Has cancels refused: of every other one of some shipped orders, if possible beginning with one that shares its
    pet or ship date with a pending one; of an order that was cancelled before; and of absent ones, such as -1.
    Afterwards a pending order can still be cancelled, other shipped ones are still refused, and further orders are
    listed as before."""
    (gone,) = orders.take(pending=1).pending
    verify.step(api.cancel(gone), 204, "CANCEL-1")
    taken = orders.take(pending=2, shipped=2)
    further = CROWD if target.places_orders else 0
    crowd = orders.take_listed(pending=further, shipped=further)
    pending = [*taken.pending, *crowd.pending]
    chosen, other = sorted(taken.shipped, key=lambda order: not kin(crowd.listing, order, pending))
    others = [other, *crowd.shipped[1::2]]  # the last one placed among them
    refused = (chosen, *crowd.shipped[::2])
    # In a list 0 is the place of the first order, and -1 that of the last. An earlier run may have cancelled order 0.
    # A store may give the id of an order that was cancelled, any of these, to another.
    own = {*pending, *taken.shipped, *crowd.shipped}
    sent = [place for place in (0, -1, gone) if place not in own and api.permits(place)]
    places = [api.ask_cancel(place, allowed=Allowed.ANY_4XX) for place in sent]
    refusals = api.send_all([*map(api.ask_cancel, refused), *places, api.ask_cancel(api.absent()[0])])
    for refusal in refusals[: len(refused)]:
        verify.step(refusal, 409, "CANCEL-3")
    for refusal in refusals[len(refused) :]:
        if refusal.succeeded:
            verify.step(refusal, 404, "CANCEL-5", "CANCEL-6")
    verify.step(refusals[-1], 404, "CANCEL-5")
    since = "only cancels of other orders were refused"
    if crowd.listing is not None:
        verify.unchanged(pending, crowd.listing, api.list(), shipped=others, since=since, shown_by=refusals)
    for again in api.send_all(map(api.ask_cancel, others)):
        verify.still_shipped(
            again, lambda: api.cancel(orders.take(shipped=1).shipped[0]), since=since, shown_by=refusals
        )
    relatives = kin(crowd.listing, chosen, pending)
    strangers = [order for order in pending if order not in relatives] or pending
    related = (relatives or strangers)[0]
    apart = [order for order in strangers if order != related][-1]
    control, answer = (api.cancel(order) for order in (apart, related))
    if verify.settled(control).status != 204:
        control, answer = answer, control
    if verify.settled(control).status != 204:
        control = api.cancel(orders.take(pending=1).pending[0])
    verify.still_pending(answer, control, since=since, shown_by=refusals)


@requirement("CANCEL-8", mode=Mode.FULL, pending=3 * ROUNDS + 1, placing=True)
def test_orders_placed_during_a_cancel_are_untouched(api: Api, wire: Wire, orders: Orders) -> None:
    """Has an order placed as soon as the cancel of another one is sent, and one more after a listing, over a few
    rounds: all of them can still be cancelled, like another that was placed while nothing was under way."""
    cancelled = orders.take(pending=ROUNDS).pending
    placed: list[int] = []
    answers = []
    for order in cancelled:
        with wire.connect() as connection, wire.connect() as beside:
            connection.send_among_others(api.ask_cancel(order))
            placed += orders.take(pending=1).pending
            beside.send_among_others(api.ask_list())
            listing = beside.receive(keep=False)  # by then the cancel has reached a service that is near
            (after,) = orders.take(pending=1).pending
            placed.append(after)
            answers.append(connection.receive())
        listing.spared = frozenset({after})
        wire.keep(listing)  # behind the cancel, which was sent first
    if all(answer.status != 204 for answer in answers):
        verify.step(answers[0], 204, "CANCEL-1")
    (control_order,) = orders.take(pending=1).pending
    *ended, control = api.send_all(map(api.ask_cancel, (*placed, control_order)))
    for end in ended:
        since = "it was placed while another one was cancelled, which has no effect on it"
        verify.still_pending(end, control, since=since, shown_by=answers)


@requirement("CANCEL-8", mode=Mode.FULL, chosen_ids=True)
@pytest.mark.lengthy
def test_orders_with_similar_ids_are_untouched(api: Api, orders: Orders) -> None:
    """Cancels an order among pending and shipped ones whose ids are next to its own, have the other sign, share their
    first or last digits, or agree in their low bits: none of them is touched."""
    (base, *_) = api.unmistakable(10**9 + api.rng.randrange(10**6, 10**8) for _ in range(20))
    pending, further = (api.unmistakable(near) for near in (ids.similar(base), ids.similar_besides(base)))
    shipped: list[int] = []
    with suppress(outcomes.Excluded):
        shipped = orders.place(further, shipped=True).shipped
    placed = orders.place_listed(pending)
    others = [order for order in placed.pending if order != base]
    untouched(api, orders, [base], others, shipped, placed.listing)


@requirement("CANCEL-8", mode=Mode.FULL, chosen_ids=True)
def test_orders_with_similar_large_ids_are_untouched(api: Api, orders: Orders) -> None:
    """Cancels an order with an id above 2^53 among others that a double cannot tell from it: none of them is
    touched."""
    base = 2**53 + 4 * api.rng.randrange(1, 10**6)
    placed = orders.place_listed(api.unmistakable([base, base - 1, base + 1]))
    if base not in placed.pending:
        raise outcomes.Excluded("the id to be chosen could be mistaken for that of an order in the listing")
    try:
        untouched(api, orders, [base], [order for order in placed.pending if order != base], [], placed.listing)
    except outcomes.Failed:
        with suppress(outcomes.Excluded):  # one to which nothing was done cannot be cancelled, either?
            (control,) = orders.place_listed(api.unmistakable([base + 2**22 + 1])).pending
            verify.step(api.cancel(control), 204, "CANCEL-1", "CANCEL-9")
        raise


@requirement("CANCEL-8", mode=Mode.FULL, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_other_orders_are_untouched_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Cancels one of more orders than common page sizes hold, if possible one that shares its pet and ship date with
    another: all others are listed as before. The check of LIST-5 may have seen that already."""
    if already_met:
        return
    placed = orders.take(pending=target.bulk_orders).pending
    before = api.listing()
    marks = {order: repr([before.by_id.get(order, {}).get(name) for name in ("petId", "shipDate")]) for order in placed}
    common = Counter(marks.values())
    chosen = next((order for order in placed if common[marks[order]] > 1), placed[0])
    answer = api.cancel(chosen)
    verify.step(answer, 204, "CANCEL-1")
    others = [order for order in placed if order != chosen]
    since = f"no order but {chosen} was cancelled"
    verify.unchanged(others, before, api.list(), since=since, shown_by=[answer])


def untouched(
    api: Api,
    orders: Orders,
    chosen: Sequence[int],
    pending: list[int],
    shipped: list[int],
    before: Listing | None,
    listed: Sequence[int] = (),
) -> None:
    """Cancel the orders `chosen`, and demand that the other orders are as they were, `pending` and `shipped` ones; of
    those in `listed` only that they are listed so. The cancels of the chosen ones, which have worked, are the
    control."""
    answers = api.send_all(map(api.ask_cancel, chosen))
    control = next((answer for answer in answers if answer.status == 204), answers[0])  # any may have come first
    verify.step(control, 204, "CANCEL-1")
    since = f"no order but {' and '.join(map(str, chosen))} was cancelled"
    for answer in answers:
        if answer is not control:
            verify.still_pending(answer, control, since=since, shown_by=[control])
    if before is not None:
        verify.unchanged([*pending, *listed], before, api.list(), shipped=shipped, since=since, shown_by=answers)
    further = api.send_all(api.ask_cancel(other) for other in (*shipped, *pending))
    for place, (other, refusal) in enumerate(zip(shipped, further, strict=False), 1):
        if verify.settled(refusal).status == 404:
            received = verify.describe(refusal)
            raise outcomes.Failed(f"order {other} still shipped, since {since}", received, *answers, *further[:place])
        verify.still_shipped(
            refusal, lambda: api.cancel(orders.take_listed(shipped=1).shipped[0]), since=since, shown_by=answers
        )
    for success in further[len(shipped) :]:
        verify.still_pending(success, control, since=since, shown_by=answers)
