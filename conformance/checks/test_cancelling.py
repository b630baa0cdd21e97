"""CANCEL: one order, by its id, if it is pending (specification, sections 3 and 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

from conformance import verify
from conformance.api import BROWSER, NAMES_JSON, SCRIPT, Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import ids
from conformance.contract.jsontext import INT64, NotJson
from conformance.contract.listing import Listing, alike
from conformance.contract.validators import error_problems, shown
from conformance.target import Mode, Target
from conformance.transport.client import Answer
from conformance.transport.evidence import Allowed, Headers, Trouble
from conformance.transport.wire import Wire

#: Seconds after which a service should not have forgotten that an order was cancelled.
MOMENT = 0.3
JSON = (("Content-Type", "application/json"),)
NOT_PENDING = "no success, since a cancelled order is not pending"
#: What may be taken for leave to cancel a shipped order all the same: cancelling has no such parameters.
INSISTENT = "force=true&override=true&confirm=true&admin=true&hard=true&purge=true&status=pending&shipped=false"


# --- CANCEL-1: a pending order is cancelled


def cancels(api: Api, orders: Orders, order: int, headers: Headers = ()) -> None:
    """Cancel a pending order and demand 204."""
    answer = api.send(api.ask_cancel(order, headers=headers))
    not_made_up(api, orders, order, answer)
    verify.status(answer, 204, since="the order is pending")


def refuses(api: Api, orders: Orders, order: int, headers: Headers = ()) -> Answer:
    """Cancel a shipped order and demand 409."""
    answer = api.send(api.ask_cancel(order, headers=headers))
    not_made_up(api, orders, order, answer)
    verify.status(answer, 409, since="the order has already shipped")
    return answer


def not_made_up(api: Api, orders: Orders, order: int, answer: Answer) -> None:
    """Raise Inconclusive where neither the cancel with this answer nor the listing knows the order, and the listing
    does not know the next one either: then it may be that the provider makes them up. The listing is looked at only
    now, so that reading it cannot have changed the order (LIST-9)."""
    if verify.settled(answer).status != 404:
        return
    found = api.list().listing
    if found is not None and order not in found.by_id and not found.without_id:
        orders.take(pending=1)  # raises Inconclusive unless the listing shows it


@requirement("CANCEL-1", mode=Mode.FULL, pending=1)
def test_pending_order_is_cancelled(api: Api, orders: Orders) -> None:
    """Cancels a pending order: 204."""
    (order,) = orders.take(pending=1, looked_for=False).pending
    cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, pending=6)
def test_pending_orders_are_cancelled_one_after_the_other(api: Api, orders: Orders) -> None:
    """Cancels pending orders of different kinds, each placed just before: 204 every time."""
    for _ in range(6):
        (order,) = orders.take(pending=1, looked_for=False).pending
        cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, pending=4)
def test_pending_orders_are_cancelled_whatever_the_client_accepts(api: Api, orders: Orders) -> None:
    """Cancels a pending order as a client that accepts application/json, others as a browser and its scripts, and one
    with the `Content-Length: 0` that many clients send: 204."""
    for headers in (NAMES_JSON, BROWSER, SCRIPT, (("Content-Length", "0"),)):
        (order,) = orders.take(pending=1, looked_for=False).pending
        cancels(api, orders, order, headers)


@requirement("CANCEL-1", mode=Mode.FULL, pending=1)
def test_cancelled_order_is_cancelled(api: Api, orders: Orders, observe: Observations) -> None:
    """Cancels a pending order: it is then cancelled. A service that lists it as before and lets it be cancelled once
    more has reported what it did not do."""
    taken = orders.take(pending=1)
    (order,) = taken.pending
    answer = api.cancel(order)
    verify.step(answer, 204, "CANCEL-1")
    after = api.list()
    became = presence(order, taken.listing, after)
    observe("cancelled orders in the listing", became, answer, after)
    again = api.cancel(order, allowed=Allowed.ANY_4XX)
    if verify.settled(again).status == 204 and became == "there, unchanged":
        raise verify.Failed(
            "the order cancelled after 204",
            "the order listed as before, and cancelled again with 204",
            answer,
            after,
            again,
        )


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_pending_orders_with_large_ids_are_cancelled(api: Api, orders: Orders) -> None:
    """Cancels pending orders with ids above 2^31, above 2^53 and near 2^63: 204."""
    for order in api.unmistakable(ids.large(api.rng)):
        orders.place([order], looked_for=False)
        cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_pending_orders_with_negative_ids_are_cancelled(api: Api, orders: Orders) -> None:
    """Cancels pending orders with ids below zero, some near -2^63, where the provider places such: 204."""
    for order in api.unmistakable(ids.below_zero(api.rng)):
        orders.place([order], looked_for=False)
        cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
@pytest.mark.alone
def test_pending_order_with_the_id_zero_is_cancelled(api: Api, orders: Orders) -> None:
    """Cancels a pending order with the id 0, which many a language takes for none, where one can be placed: 204."""
    # By this listing and not by all ids ever seen: those at the ends of int64, gone by now, are 0 in their low bits.
    if any(order % 2**31 == 0 for order in api.listing().ids):
        raise verify.Excluded("an order in the listing could be mistaken for one with the id 0")
    orders.place([0], looked_for=False)
    answer = api.cancel(0, allowed=Allowed.ANY_4XX)
    if answer.client_error and 0 not in api.listing().ids:  # some databases number such an order themselves
        raise verify.Excluded("the listing shows no order with the id 0, although one was placed")
    verify.status(answer, 204, since="the order is pending")


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_order_is_cancelled_whose_id_was_not_found_before(api: Api, orders: Orders) -> None:
    """Cancels an id that no order has, then a pending order that is placed with it: 204, not 404 as before."""
    for order in api.unmistakable(10**9 + api.rng.randrange(10**6, 10**8) for _ in range(20)):
        answer = api.cancel(order, allowed=Allowed.ANY_4XX)
        if answer.status == 404:
            break  # else an earlier run with this seed may have had an order with this id, and the service recalls it
    verify.step(answer, 404, "CANCEL-5")
    orders.place([order], looked_for=False)
    cancels(api, orders, order)


@requirement("CANCEL-1", empty_store=True, pending=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone("late")
def test_only_order_is_cancelled(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and one order placed, which is the first and the last, and cancels it: 204. The check of
    LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        (only,) = orders.take(pending=1, looked_for=False).pending
        cancels(api, orders, only)
        gone(api, only, api.cancel(only, allowed=Allowed.ANY_4XX))


@requirement("CANCEL-1", mode=Mode.FULL, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_pending_orders_are_cancelled_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Cancels the first and the last of more orders than common page sizes hold (bulk_orders, 1,100 unless configured):
    204, wherever a service looks them up. One that answers 204 again and still lists the order has not done it. The
    check of LIST-5 may have seen all that already."""
    if already_met:
        return
    placed = orders.take(pending=target.bulk_orders, looked_for=False).pending
    first, last = placed[0], placed[-1]
    chosen = sorted({first, last})
    cancels(api, orders, last)
    answer = api.cancel(first, allowed=Allowed.ANY_4XX) if first != last else None
    if answer is not None and verify.settled(answer).status != 204:
        # One that is gone by now, or has shipped, may have been touched by the cancel of the other one.
        if answer.status != 404 or first not in api.listing().by_id:
            verify.step(answer, 204, "CANCEL-1 or CANCEL-8")
        verify.status(answer, 204, since="the order is pending, however many others there are")
    further = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in chosen)
    for order, again in zip(chosen, further, strict=True):
        gone(api, order, again)


def gone(api: Api, order: int, again: Answer) -> None:
    """Demand that an order is cancelled whose first cancel was answered 204, by what it gets `again`."""
    if verify.settled(again).status != 204:
        return
    after = api.list()
    if order not in verify.listing(after).by_id:
        verify.step(again, 404, "CANCEL-6")
    raise verify.Failed(
        "the order cancelled after 204", "the order still listed, and cancelled again with 204", again, after
    )


def presence(order: int, before: Listing | None, after: Answer) -> str:
    """What became of an order in the listing."""
    found = after.listing
    if found is None or before is None:
        return "unknown: there is no readable listing"
    if order not in found.by_id:
        return "gone"
    return "there, unchanged" if alike(found.by_id[order], before.by_id.get(order)) else "there, changed"


# --- CANCEL-2, CANCEL-12: what a 204 carries


@requirement("CANCEL-2", mode=Mode.FULL, pending=6)
def test_no_bytes_after_204(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels pending orders of different kinds, every other one as a client that accepts application/json, each on a
    raw connection that the service is asked to close, the last one after a listing on it: nothing follows the header
    section of the 204."""
    for place, order in enumerate(orders.take(pending=6).pending):
        headers = NAMES_JSON if place % 2 else ()
        with wire.connect() as connection:
            if place == 5:
                connection.exchange(api.ask_list())
            answer = connection.exchange(api.ask_cancel(order, headers=headers), last=True)
        if answer.exchange.trouble in (Trouble.CLOSED, Trouble.UNSENT):
            continue  # by then the service had closed that connection, as is its right
        verify.step(answer, 204, "CANCEL-1")
        no_bytes(answer)


@requirement("CANCEL-2", mode=Mode.FULL, pending=1)
def test_no_bytes_between_204_and_the_next_answer(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels a pending order on a kept-alive connection, then lists on it: nothing stands between the two answers."""
    (order,) = orders.take(pending=1).pending
    with wire.connect() as connection:
        answer = connection.exchange(api.ask_cancel(order))
        verify.step(answer, 204, "CANCEL-1")
        no_bytes(answer)
        if connection.open:
            # Were this judged like any other, bytes after the 204 would be found in it once more, as HTTP-2.
            following = connection.exchange(replace(api.ask_list(), allowed=Allowed.OPEN))
            if following.exchange.trouble == Trouble.BROKEN:
                verify.step(api.list(), 200, "LIST-1")
                raise verify.Failed(
                    "nothing after the 204",
                    f"bytes that spoil the next answer: {following.exchange.detail}",
                    answer,
                    following,
                )


def no_bytes(answer: Answer) -> None:
    if answer.extra:
        raise verify.Failed(
            "nothing after the header section of the 204", f"{len(answer.extra)} bytes: {shown(answer.extra)}", answer
        )


@requirement("CANCEL-12", mode=Mode.FULL, pending=1)
def test_204_without_content_fields(api: Api, orders: Orders) -> None:
    """Cancels a pending order: the 204 has neither Content-Length nor Transfer-Encoding."""
    (order,) = orders.take(pending=1).pending
    answer = api.cancel(order)
    verify.step(answer, 204, "CANCEL-1")
    verify.meets("CANCEL-12", answer)


# --- CANCEL-3, CANCEL-4: a shipped order


@requirement("CANCEL-3", mode=Mode.FULL, shipped=1)
def test_shipped_order_is_refused(api: Api, orders: Orders, observe: Observations) -> None:
    """Cancels a shipped order: 409."""
    (order,) = orders.take(shipped=1, looked_for=False).shipped
    answer = refuses(api, orders, order)
    observe("409 body", body_kind(answer), answer)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=4)
def test_shipped_orders_are_refused(api: Api, orders: Orders) -> None:
    """Cancels shipped orders of different kinds: 409 every time."""
    for order in orders.take(shipped=4, looked_for=False).shipped:
        refuses(api, orders, order)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=1)
def test_shipped_order_is_refused_whatever_the_client_accepts(api: Api, orders: Orders) -> None:
    """Cancels a shipped order as a client that accepts application/json: 409."""
    (order,) = orders.take(shipped=1, looked_for=False).shipped
    refuses(api, orders, order, NAMES_JSON)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=1)
def test_shipped_order_is_refused_whatever_the_query_says(api: Api, orders: Orders) -> None:
    """Cancels a shipped order with query parameters that may be taken for leave to do so, such as `force=true`: no
    success. Whatever else is answered is open."""
    (order,) = orders.take(shipped=1, looked_for=False).shipped
    answer = api.send(api.ask_cancel(order, query=INSISTENT))
    if verify.settled(answer).succeeded:
        wanted = f"no success, since the order has already shipped, in spite of ?{INSISTENT}"
        raise verify.Failed(wanted, verify.describe(answer), answer)


@requirement("CANCEL-3", mode=Mode.FULL, chosen_ids=True)
def test_shipped_orders_with_large_ids_are_refused(api: Api, orders: Orders) -> None:
    """Cancels shipped orders with ids above 2^31, above 2^53 and near 2^63: 409, where pending ones with such ids can
    be cancelled."""
    refuses_chosen(api, orders, ids.large)


@requirement("CANCEL-3", mode=Mode.FULL, chosen_ids=True)
def test_shipped_orders_with_negative_ids_are_refused(api: Api, orders: Orders) -> None:
    """Cancels shipped orders with ids below zero, some near -2^63: 409, where pending ones with such ids can be
    cancelled."""
    refuses_chosen(api, orders, ids.below_zero)


def refuses_chosen(api: Api, orders: Orders, draw: Callable[[Random], list[int]]) -> None:
    """Cancel shipped orders with drawn ids, after pending ones with other such ids, and demand 409."""
    chosen = api.unmistakable([*draw(api.rng), *draw(api.rng)])
    controls, shipped = chosen[::2], chosen[1::2]
    orders.place(controls, looked_for=False)
    for answer in api.send_all(map(api.ask_cancel, controls)):
        verify.step(answer, 204, "CANCEL-1")
    orders.place(shipped, shipped=True, looked_for=False)
    refuses_all(api, orders, shipped)


@requirement("CANCEL-3", empty_store=True, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone("late")
def test_only_shipped_order_is_refused(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and one order placed, which has shipped and is the first and the last, and cancels it: 409.
    The check of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        (only,) = orders.take(shipped=1, looked_for=False).shipped
        refuses(api, orders, only)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=2, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_shipped_orders_are_refused_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Cancels a shipped order that was placed before more orders than common page sizes hold, and one that was placed
    after them: 409. The check of LIST-5 may have seen that already."""
    if already_met:
        return
    first = orders.take(shipped=1, looked_for=False).shipped
    orders.take(pending=target.bulk_orders, looked_for=False)
    refuses_all(api, orders, [*first, *orders.take(shipped=1, looked_for=False).shipped])


def refuses_all(api: Api, orders: Orders, shipped: list[int]) -> None:
    """Cancel shipped orders and demand 409."""
    for order, answer in zip(shipped, api.send_all(map(api.ask_cancel, shipped)), strict=True):
        not_made_up(api, orders, order, answer)
        verify.status(answer, 409, since="the order has already shipped")


@requirement("CANCEL-4", mode=Mode.FULL, shipped=1)
def test_refused_order_stays_as_it_was(api: Api, orders: Orders) -> None:
    """Cancels a shipped order three times over: it is listed as before, and refused with 409 each time."""
    taken = orders.take(shipped=1)
    (order,) = taken.shipped
    first = api.cancel(order)
    verify.step(first, 409, "CANCEL-3")
    if taken.listing is not None:
        verify.unchanged([order], taken.listing, api.list(), since="cancelling it was refused", shown_by=[first])
    for _ in range(2):
        verify.status(api.cancel(order), 409, since="the order is still shipped after a refused cancel")
    if taken.listing is not None:
        verify.unchanged([order], taken.listing, api.list(), since="cancelling it was refused")


def body_kind(answer: Answer) -> str:
    """What a body is, in the words of the observation."""
    if not answer.body:
        return "none"
    try:
        value = answer.json.value
    except NotJson:
        return answer.media_type or "no media type"
    return "other JSON" if error_problems(value) else "an Error"


# --- CANCEL-5: no such order


@requirement("CANCEL-5", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_absent_order_is_not_found(api: Api, orders: Orders, target: Target) -> None:
    """Cancels orders that do not exist, with ids drawn from all over int64: large, negative, near both ends: 404 every
    time. At the very ends, and in full mode among small ids, an order may have been cancelled before this run: there
    any client error will do, but one that says that the id is malformed, unless a second cancel gets such, too."""
    found = api.listing()
    drawn = [*api.absent(4), *(-order for order in api.absent(2)), *ids.near_the_ends(api.rng)]
    common = [INT64.stop - 1, INT64.start]
    if target.mode is Mode.FULL:
        # A service that counts up will not come back to ids below those that it has given.
        low = max(found.ids, default=0)
        common += [order for order in (0, -1, 1, 2, 10, 2**31 - 1, 2**31, 2**32) if order < max(1, low)]
    if target.states is not None:  # by hand: those of a list are for other checks
        common = [order for order in common if order not in (*target.states.pending, *target.states.shipped)]
    never, perhaps = (
        [order for order in candidates if order not in found.ids and api.permits(order)]
        for candidates in (drawn, common)
    )
    if not never and not perhaps:
        raise verify.Inconclusive("the listing leaves no room for ids that no order could be mistaken for")
    for answer in api.send_all(api.ask_cancel(order) for order in never):
        verify.status(answer, 404, since="no such order exists")
    answers = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in perhaps)
    for answer in answers:
        if verify.settled(answer).status == 401 or not answer.client_error:
            verify.status(answer, 404, since="no such order exists")
    malformed = [answer for answer in answers if answer.status in ids.MALFORMED_STATUSES]
    if malformed and target.mode is Mode.FULL and target.places_orders:
        (order,) = orders.take(pending=1, looked_for=False).pending
        verify.step(api.cancel(order), 204, "CANCEL-1")
        again = verify.settled(api.cancel(order, allowed=Allowed.ANY_4XX))
        if again.status not in ids.MALFORMED_STATUSES:
            verify.status(malformed[0], 404, since="no such order exists, and any integer may be an id")


@requirement("CANCEL-5", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_absent_order_is_not_found_again(api: Api) -> None:
    """Cancels the same absent order several times over, the last time as a client that accepts application/json, and
    lists: asking does not make it exist."""
    (order,) = api.absent()
    for headers in ((), (), (), NAMES_JSON):
        answer = api.send(api.ask_cancel(order, headers=headers))
        verify.status(answer, 404, since="no such order exists")
    after = api.list()
    if after.listing is not None and order in after.listing.by_id:
        raise verify.Failed(
            f"no order {order}, which a cancel has just not found", "an order with this id", after, answer
        )


@requirement("CANCEL-5", empty_store=True, pending=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone("late")
def test_absent_order_of_an_empty_store_is_not_found(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied, and cancels an order that does not exist: 404. The check of LIST-7 may have seen that
    already."""
    if not already_met:
        orders.take(pending=1, looked_for=False)
        (absent,) = api.absent()  # after a listing that shows orders: one that shows none is for LIST-7
        orders.empty_store()
        verify.status(api.cancel(absent), 404, since="no such order exists")


# --- CANCEL-6: not twice


@requirement("CANCEL-6", mode=Mode.FULL, pending=1)
def test_second_cancel_does_not_succeed(
    api: Api, orders: Orders, observe: Observations, moment: Callable[[float], None]
) -> None:
    """Cancels an order, and again twice, with a listing and a moment in between: the later cancels do not succeed. What
    they get instead is observed."""
    (order,) = orders.take(pending=1).pending
    first = api.cancel(order)
    verify.step(first, 204, "CANCEL-1")
    second = api.cancel(order, allowed=Allowed.ANY_4XX)
    api.list()
    moment(MOMENT)
    third = api.cancel(order, allowed=Allowed.ANY_4XX)
    for answer in (second, third):
        if verify.settled(answer).succeeded:
            raise verify.Failed(NOT_PENDING, verify.describe(answer), first, answer)
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
    chosen = orders.place(api.unmistakable(draw(api.rng)), looked_for=False).pending
    first = api.send_all(map(api.ask_cancel, chosen))
    for answer in first:
        verify.step(answer, 204, "CANCEL-1")
    again = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in chosen)
    for before, answer in zip(first, again, strict=True):
        if verify.settled(answer).succeeded:
            raise verify.Failed(NOT_PENDING, verify.describe(answer), before, answer)


# --- CANCEL-8: no other order

#: How many more orders are placed beside those of a check, to see whether they stay in the listing.
CROWD = 20
#: How many that have something in common with an order are cancelled after it.
KIN = 3
#: Whether two elements of a listing have something in common by which a careless service may take both for one.
Bond = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
BONDS: tuple[Bond, ...] = (
    lambda one, other: "petId" in one and bool(one["petId"] == other.get("petId")),
    lambda one, other: "petId" not in one and "petId" not in other,
    lambda one, other: "shipDate" in one and bool(one["shipDate"] == other.get("shipDate")),
)


@requirement("CANCEL-8", mode=Mode.FULL, pending=7, shipped=2)
def test_other_orders_are_untouched(api: Api, orders: Orders, target: Target) -> None:
    """Cancels a few of several orders placed side by side, neither the first nor the last, and if it can those whose
    pet or ship date other pending and shipped ones have, too: the others are listed as before, the pending ones among
    them can still be cancelled, the shipped ones are still refused."""
    taken = orders.take(pending=7, shipped=2, looked_for=False)
    crowd = orders.take(pending=CROWD if target.places_orders else 0)
    pending = [*taken.pending, *crowd.pending]
    inner = pending[1:-1]
    bound = (
        next((order for order in inner if kin(crowd.listing, order, group, bond)), None)
        for bond, group in product(BONDS, (pending, taken.shipped))
    )
    chosen = [order for order in dict.fromkeys(bound) if order is not None] or inner[:1]
    relatives = [other for order in chosen for other in kin(crowd.listing, order, pending)[:KIN]]
    others = [order for order in dict.fromkeys([*taken.pending, *relatives]) if order not in chosen]
    listed = [order for order in crowd.pending if order not in (*chosen, *others)]
    untouched(api, orders, chosen, others, taken.shipped, crowd.listing, listed)


def kin(found: Listing | None, order: int, others: Iterable[int], bond: Bond | None = None) -> list[int]:
    """Those of `others` that the listing shows to have something in common with `order`, or that one `bond`."""
    known = found.by_id if found is not None else {}
    bonds = BONDS if bond is None else (bond,)
    present = [other for other in others if other != order and other in known] if order in known else []
    return [other for other in present if any(bond(known[order], known[other]) for bond in bonds)]


@requirement("CANCEL-8", empty_store=True, pending=1, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone("late")
def test_order_behind_the_first_is_untouched(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and two orders placed, the second of which has shipped, and cancels the first: the other is
    still refused. The check of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        taken = orders.take(pending=1, shipped=1, looked_for=False)
        untouched(api, orders, taken.pending, [], taken.shipped, None)


@requirement("CANCEL-8", mode=Mode.FULL, pending=3, shipped=2)
def test_refused_cancels_touch_no_other_order(api: Api, orders: Orders, target: Target) -> None:
    """Cancels a shipped order, if it can one whose pet or ship date a pending one has, too, and an absent one: another
    pending order can still be cancelled, another shipped one is still refused, and a crowd is listed as before."""
    crowd = orders.take(pending=CROWD if target.places_orders else 0, looked_for=False)
    taken = orders.take(pending=2, shipped=2)
    pending = [*taken.pending, *crowd.pending]
    chosen, other = sorted(taken.shipped, key=lambda order: not kin(taken.listing, order, pending))
    refusals = [api.cancel(chosen), api.cancel(api.absent()[0])]
    verify.step(refusals[0], 409, "CANCEL-3")
    verify.step(refusals[1], 404, "CANCEL-5")
    if taken.listing is not None:
        since = "only cancels of other orders were refused"
        verify.unchanged([*pending, other], taken.listing, api.list(), since=since, shown_by=refusals)
    relatives = kin(taken.listing, chosen, pending)
    strangers = [order for order in pending if order not in relatives] or pending
    related = (relatives or strangers)[0]
    apart = [order for order in strangers if order != related][-1]
    control, answer = (api.cancel(order) for order in (apart, related))
    if verify.settled(control).status != 204:
        control, answer = answer, control
    if verify.settled(control).status != 204:
        control = api.cancel(orders.take(pending=1, looked_for=False).pending[0])
    verify.still_pending(answer, control, since="only cancels of other orders were refused", shown_by=refusals)


@requirement("CANCEL-8", mode=Mode.FULL, chosen_ids=True)
def test_orders_with_similar_ids_are_untouched(api: Api, orders: Orders) -> None:
    """Cancels an order among others whose ids are next to its own, begin or end with the same digits, or agree in their
    low bits: none of them is touched."""
    (base, *_) = api.unmistakable(10**9 + api.rng.randrange(10**6, 10**8) for _ in range(20))
    placed = orders.place(api.unmistakable(ids.similar(base)))
    untouched(api, orders, [base], [order for order in placed.pending if order != base], [], placed.listing)


@requirement("CANCEL-8", mode=Mode.FULL, chosen_ids=True)
def test_orders_with_similar_large_ids_are_untouched(api: Api, orders: Orders) -> None:
    """Cancels an order with an id above 2^53 among others that a double cannot tell from it: none of them is
    touched."""
    base = 2**53 + 4 * api.rng.randrange(1, 10**6)
    placed = orders.place(api.unmistakable([base, base - 1, base + 1]))
    if base not in placed.pending:
        raise verify.Excluded("the id to be chosen could be mistaken for that of an order in the listing")
    untouched(api, orders, [base], [order for order in placed.pending if order != base], [], placed.listing)


def untouched(
    api: Api,
    orders: Orders,
    chosen: Sequence[int],
    pending: list[int],
    shipped: list[int],
    before: Listing | None,
    listed: Sequence[int] = (),
) -> None:
    """Cancel the orders `chosen` and demand that the others are as they were: those cancels, having worked, are the
    control. Those that are only to be `listed` as before are not cancelled."""
    control, *further = api.send_all(map(api.ask_cancel, chosen))
    verify.step(control, 204, "CANCEL-1")
    since = f"no order but {' and '.join(map(str, chosen))} was cancelled"
    for answer in further:
        verify.still_pending(answer, control, since=since, shown_by=[control])
    answers = [control, *further]
    if before is not None:
        verify.unchanged([*pending, *shipped, *listed], before, api.list(), since=since, shown_by=answers)
    further = api.send_all(api.ask_cancel(other) for other in (*shipped, *pending))
    for other, refusal in zip(shipped, further, strict=False):
        if verify.settled(refusal).status == 404:
            received = verify.describe(refusal)
            raise verify.Failed(f"order {other} still shipped, since {since}", received, *answers, refusal)
        verify.still_shipped(
            refusal, lambda: api.cancel(orders.take(shipped=1).shipped[0]), since=since, shown_by=answers
        )
    for success in further[len(shipped) :]:
        verify.still_pending(success, control, since=since, shown_by=answers)


# --- CANCEL-9: the id exactly


@requirement("CANCEL-9", mode=Mode.FULL, pending=3)
def test_aliases_of_an_id_cancel_nothing(api: Api, orders: Orders) -> None:
    """Cancels ids that equal a pending order's only modulo 2^32 or 2^64, without its sign, up to odd characters, as one
    of two, or that name none, and an absent id with the order's in the query: the order is still pending afterwards, as
    another is that was placed only then."""
    first, second = orders.take(pending=2).pending
    # With large ids one order's neighbour may be the other order of this check, or the next one to be placed.
    step = 1 if second > first else -1
    taken = (first, second, *range(second + step, second + step * 2**10, step))
    whole = [order for order in ids.aliases(first) if order not in taken]
    spoiled = [*ids.NO_NUMBERS, *ids.spoiled(second), f"{first}%2C{second}"]
    malformed = cancel_aliases(api, spoiled, Allowed.OPEN)
    aliases = [
        *cancel_aliases(api, [order for order in whole if order in INT64], Allowed.LISTED),
        *cancel_aliases(api, [order for order in whole if order not in INT64], Allowed.OPEN),
        api.send(api.ask_cancel(api.absent()[0], query=f"id={first}&orderId={first}&order_id={first}")),
    ]
    no_success(malformed)
    (control,) = orders.take(pending=1).pending  # only now, so that no try can have hit it
    exact(api, [first, second], control, [aliases, malformed])


@requirement("CANCEL-9", mode=Mode.FULL, pending=1, chosen_ids=True)
def test_neighbours_of_a_large_id_cancel_nothing(api: Api, orders: Orders) -> None:
    """Cancels ids that a double cannot tell from a pending order's, above 2^53 and near 2^63, that only agree with it
    in the low 32 bits, or that have the same digits but for one more or one less at the end: the order is still pending
    afterwards, as another is to which nothing was done."""
    draw = api.rng.randrange
    wanted = [2**53 + 1 + 4 * draw(10**6), INT64.stop - ids.ENDS - 1 - 2 * draw(200), 2**33 + 2**20 + draw(2**20)]
    (control,) = orders.take(pending=1, looked_for=False).pending  # first: a chosen id may spoil those to come
    taken = orders.place(api.unmistakable(wanted))
    placed = taken.pending
    # What looks for an id by its first digits may find any order that begins with them: the others are not to be hit.
    others = [str(known) for known in (taken.listing.ids if taken.listing else ()) if known not in placed]
    tried = []
    for order in placed:
        shorter, *longer = ids.digits_of(order)
        apart = [] if any(known.startswith(str(shorter)) for known in others) else [shorter]
        near = dict.fromkeys([*ids.neighbours(order), order % 2**32, order % 2**31, *apart, *longer])
        aliases = [alias for alias in near if alias in INT64 and alias not in (*placed, control)]
        tried.append(cancel_aliases(api, aliases, Allowed.LISTED))
    exact(api, placed, control, tried)


@requirement("CANCEL-9", mode=Mode.FULL, pending=1, chosen_ids=True)
@pytest.mark.alone
def test_ids_beyond_int64_cancel_nothing(api: Api, orders: Orders) -> None:
    """Cancels numbers beyond int64 while orders have the ids at its ends, where a number may be clamped to or come out
    after an overflow: the orders are still pending afterwards, as another is to which nothing was done."""
    (control,) = orders.take(pending=1, looked_for=False).pending  # first: a chosen id may spoil those to come
    ends = api.unmistakable([INT64.stop - 1, INT64.stop - 2, INT64.start])
    placed = orders.place(ends, looked_for=False).pending
    beyond = [str(INT64.stop), str(INT64.stop + 1), str(10**30), "9" * 200, str(INT64.start - 1), str(-(10**30))]
    tried = cancel_aliases(api, beyond, Allowed.OPEN)
    try:
        exact(api, placed, control, [tried] * len(placed))
    except verify.Failed:
        # Unless no such order can be listed and cancelled, whatever comes between.
        for answer in api.send_all(map(api.ask_cancel, orders.place(placed).pending)):
            verify.step(answer, 204, "CANCEL-1")
        raise


@requirement("CANCEL-9", mode=Mode.GUARDED)
def test_malformed_ids_do_not_succeed(api: Api) -> None:
    """Cancels ids that are no integers, such that no order could be meant: no success."""
    answers = list(cancel_malformed(api).values())
    no_success(answers)
    if all(answer.status is None for answer in answers):  # from a firewall, some may get none
        verify.settled(answers[0])


def no_success(answers: list[Answer]) -> None:
    """Demand that no cancel of a malformed id has succeeded: whatever else it gets, from a firewall, too, will do."""
    for answer in answers:
        if answer.succeeded:
            raise verify.Failed("no success, since the id is malformed", verify.describe(answer), answer, certain=True)


def cancel_malformed(api: Api) -> dict[str, Answer]:
    """Cancel ids that are no integers; the answers by the kind of the id. Raises Inconclusive where none may be
    sent."""
    answers = cancel_kinds(api, ids.MALFORMED)
    if not answers:
        raise verify.Inconclusive("the listing leaves no room for malformed ids that no order could be mistaken for")
    return answers


def cancel_kinds(api: Api, kinds: dict[str, str]) -> dict[str, Answer]:
    """Cancel ids of these kinds, made from one that is absent, where no order could be meant; the answers by kind."""
    (number,) = api.absent()
    filled = ids.filled(kinds, number, api.rng)
    permitted = {kind: text for kind, text in filled.items() if api.permits(text)}
    sent = api.send_all(api.ask_cancel(text, allowed=Allowed.OPEN) for text in permitted.values())
    return dict(zip(permitted, sent, strict=True))


def cancel_aliases(api: Api, aliases: list[int] | list[str], allowed: Allowed) -> list[Answer]:
    """Cancel those aliases that can hit nobody else's order."""
    return api.send_all(api.ask_cancel(alias, allowed=allowed) for alias in aliases if api.permits(alias))


def exact(api: Api, orders: list[int], control_order: int, tried: list[list[Answer]]) -> None:
    """Demand that each of `orders` outlived the cancels of its aliases."""
    control, *ended = api.send_all(api.ask_cancel(order) for order in (control_order, *orders))
    for order, end, answers in zip(orders, ended, tried, strict=True):
        hit = [answer for answer in answers if answer.succeeded] or answers[:1]
        aliases = ", ".join(brief(str(answer.exchange.order_id)) for answer in answers)
        verify.still_pending(end, control, since=f"only {aliases} were cancelled, not {order}", shown_by=hit[:2])


def brief(text: str) -> str:
    """`text`, or its beginning and length."""
    return text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"


# --- CANCEL-10, CANCEL-11


@requirement("CANCEL-10", mode=Mode.FULL, pending=4)
def test_bare_request_cancels(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels a pending order with the bare minimum of a request (Host, User-Agent, Authorization): 204. If that is
    refused, the same for another with what clients send besides, or with a JSON body and a content type, and for one
    more bare and then so, tells whether the bareness was the reason."""
    first, second, third, fourth = orders.take(pending=4).pending

    def bare(order: int) -> Answer:
        with wire.connect() as connection:
            return connection.exchange(api.ask_cancel(order), minimal=True)

    answer = bare(first)
    if verify.settled(answer).status == 204:
        return
    headers: Headers = ()
    body: bytes | None = None
    full = api.send(api.ask_cancel(second))
    if full.status != 204:
        headers, body = JSON, b"{}"
        full = api.send(api.ask_cancel(third, headers=headers, body=body))
    again = bare(fourth)
    # What is wrong with some orders only is as wrong with the fourth however it is cancelled.
    if (
        full.status == 204
        and verify.settled(again).status != 204
        and api.send(api.ask_cancel(fourth, headers=headers, body=body, allowed=Allowed.ANY_4XX)).status == 204
    ):
        missing = "a request body and a content type" if body else "further header fields"
        raise verify.Failed(f"204 without {missing}", verify.describe(answer), answer, full, again)
    verify.step(answer, 204, "CANCEL-1")


@requirement("CANCEL-11", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_malformed_ids_are_client_errors(api: Api, observe: Observations) -> None:
    """Cancels ids that are no integers, such that no order could be meant: a 4xx each time. Which one is observed, and
    so is what integers outside int64 and unusual spellings get."""
    answers = cancel_malformed(api)
    observed = {
        "malformed ids": answers,
        "ids outside int64": cancel_kinds(api, ids.OUTSIDE),
        "unusual spellings of an id": cancel_kinds(api, ids.UNUSUAL),
    }
    for topic, named in observed.items():
        observe(topic, {kind: answer.status for kind, answer in named.items()}, *list(named.values())[:1])
    # What got no answer, from a firewall perhaps, proves neither way, and comes last.
    for kind, answer in sorted(answers.items(), key=lambda item: item[1].status is None):
        if not verify.settled(answer).client_error:
            raise verify.Failed(f"a client error for a malformed id ({kind})", verify.describe(answer), answer)
