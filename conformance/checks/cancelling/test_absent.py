"""CANCEL-5, CANCEL-6: an order that does not exist, or no longer, is not cancelled."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import ids
from conformance.checks.cancelling.steps import body_kind, gets, stays_cancelled
from conformance.checks.clients import BROWSER, NAMES_JSON, SCRIPT
from conformance.contract.jsontext import INT64
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed

#: How far above an order another one is, so that the store's next id is not next to it.
ABOVE = 1000

# --- CANCEL-5: no such order


@requirement("CANCEL-5", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_absent_order_is_not_found(api: Api, orders: Orders, target: Target) -> None:
    """Cancels orders that do not exist, with ids drawn from all over int64: large, negative, near both ends: 404 every
    time, once to a browser's scripts, and once to a client that sends no Accept. At the very ends, at 0, and in full
    mode among small ids, an order may have been cancelled before this run: there any client error will do. One that
    says that the id is malformed, or a success, will do only where the second cancel of an order gets such an answer,
    too."""
    found = api.listing()
    drawn = [*api.absent(4), *(-order for order in api.absent(2)), *ids.near_the_ends(api.rng)]
    common = [INT64.stop - 1, INT64.start, 0]
    if target.mode is Mode.FULL:
        # A service that counts up will not come back to ids below those that it has given.
        low = max(found.ids, default=0)
        common += [order for order in (-1, 1, 2, 10, 2**31 - 1, 2**31, 2**32) if order < max(1, low)]
    if target.states is not None:  # the ids of static lists are for other checks
        common = [order for order in common if order not in (*target.states.pending, *target.states.shipped)]
    never, perhaps = (
        [order for order in candidates if order not in found.ids and api.permits(order)]
        for candidates in (drawn, common)
    )
    if not never and not perhaps:
        raise outcomes.Inconclusive("the listing leaves no room for ids that no order could be mistaken for")
    asked = [api.ask_cancel(order, headers=SCRIPT if order == never[0] else ()) for order in never]
    asked += map(api.without_accept().ask_cancel, never[:1])
    for answer in api.send_all(asked):
        gets(orders, answer, 404, since="no such order exists")
    answers = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in perhaps)
    comparable = target.mode is Mode.FULL and target.places_orders
    for answer in answers:
        if verify.settled(answer).status == 401 or not (answer.client_error or (answer.succeeded and comparable)):
            gets(orders, answer, 404, since="no such order exists")
    others = [answer for answer in answers if answer.status != 404]
    if comparable and others:
        (order,) = orders.take(pending=1).pending
        verify.step(api.cancel(order), 204, "CANCEL-1")
        again = verify.settled(api.cancel(order, allowed=Allowed.ANY_4XX))
        for answer in others:
            if _kind(answer) != _kind(again):
                second = f"an order that has been cancelled gets {again.status}"
                gets(orders, answer, 404, since=f"no such order exists, any integer may be an id, and {second}")


def _kind(answer: Answer) -> object:
    """What an answer says of an id: that it is malformed, that the order was cancelled, or whatever its status says."""
    if answer.status in ids.MALFORMED_STATUSES:
        return ids.MALFORMED_STATUSES
    return answer.succeeded or answer.status


@requirement("CANCEL-5", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_absent_order_is_not_found_again(api: Api, orders: Orders) -> None:
    """Cancels the same absent order several times over, the last time as a client that accepts application/json, and
    lists: asking does not make it exist."""
    (order,) = api.absent()
    for headers in ((), (), (), NAMES_JSON):
        answer = api.send(api.ask_cancel(order, headers=headers))
        gets(orders, answer, 404, since="no such order exists")
    after = api.list()
    if after.listing is not None and order in after.listing.by_id:
        raise outcomes.Failed(
            f"no order {order}, which a cancel has just not found", "an order with this id", after, answer
        )


@requirement("CANCEL-5", mode=Mode.FULL, empty_store=True, pending=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_absent_order_of_an_empty_store_is_not_found(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied, and cancels an order that does not exist: 404. The check of LIST-7 may have seen that
    already."""
    if not already_met:
        orders.take(pending=1)
        (absent,) = api.absent()  # after a listing that shows orders: one that shows none is for LIST-7
        orders.empty_store()
        gets(orders, api.cancel(absent), 404, since="no such order exists")


@requirement("CANCEL-5", mode=Mode.FULL, chosen_ids=True)
def test_neighbours_of_an_order_are_not_found(api: Api, orders: Orders) -> None:
    """Cancels the ids next to that of a pending order, which no order has or ever had: 404, as for an id that is far
    from all orders. A second order is placed above them, so that they are not what the store gives next where that is
    the id after the largest."""
    chosen = 10**9 + api.rng.randrange(10**6, 10**8)
    order, *_ = orders.place(api.unmistakable([chosen, chosen + ABOVE])).pending
    found = api.listing()
    near = [other for other in (order - 1, order + 1, order + 20) if other not in found.ids and api.permits(other)]
    if not near:
        raise outcomes.Inconclusive("the listing leaves no room for ids that no other order could be mistaken for")
    for answer in api.send_all(map(api.ask_cancel, near)):
        gets(orders, answer, 404, since="no such order exists")


# --- CANCEL-6: not twice


@requirement("CANCEL-6", mode=Mode.FULL, pending=1)
def test_second_cancel_does_not_succeed(api: Api, orders: Orders, observe: Observations, target: Target) -> None:
    """Cancels an order, and again three times, with a listing in between and, where the provider places any, another
    order placed, the last times as a browser and as its scripts: the later cancels do not succeed. What they get
    instead is observed."""
    (order,) = orders.take_listed(pending=1).pending
    first = api.cancel(order)
    verify.step(first, 204, "CANCEL-1")
    second = api.cancel(order, allowed=Allowed.ANY_4XX)
    between = api.list()
    stays_cancelled(first, second)
    placed = orders.add(pending=1).pending if target.places_orders else []
    if order not in placed:  # else it has the id of the first
        further = [api.ask_cancel(order, headers=headers, allowed=Allowed.ANY_4XX) for headers in (BROWSER, SCRIPT)]
        for later in api.send_all(further):
            stays_cancelled(first, second, between, later)
    observe("second cancel", f"{second.status}, body: {body_kind(second)}", second)


@requirement("CANCEL-6", mode=Mode.FULL, chosen_ids=True)
def test_second_cancel_of_a_large_id_does_not_succeed(api: Api, orders: Orders) -> None:
    """Cancels orders with ids above 2^31, above 2^53 and near 2^63, and then again: no success."""
    not_twice(api, orders, ids.large)


@requirement("CANCEL-6", mode=Mode.FULL, chosen_ids=True)
def test_second_cancel_of_a_negative_id_does_not_succeed(api: Api, orders: Orders) -> None:
    """Cancels orders with ids below zero, some near -2^63, where the provider places such, and then again: no
    success."""
    not_twice(api, orders, ids.below_zero)


def not_twice(api: Api, orders: Orders, draw: Callable[[Random], list[int]]) -> None:
    """Cancel orders with drawn ids, and then again, and demand no success."""
    chosen = orders.place(api.unmistakable(draw(api.rng))).pending
    first = api.send_all(map(api.ask_cancel, chosen))
    for answer in first:
        verify.step(answer, 204, "CANCEL-1")
    again = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in chosen)
    for before, answer in zip(first, again, strict=True):
        stays_cancelled(before, answer)
