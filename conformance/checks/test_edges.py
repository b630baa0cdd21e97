"""LIST, CANCEL: orders with the ids 0 and -1, which many a language takes for none, at both ends of int64, and where 31
and 32 bits end (specification, sections 2 and 4).

Pending ones are cancelled by the check about the id 0 in `cancelling/test_pending`. One look at shipped ones serves two
checks here: the first of them has it, and its requests stand with that check. The other ones look for themselves where
something was wrong.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import ids
from conformance.checks.cancelling.steps import cancelled_once, gets, place_each
from conformance.target import Mode
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed

#: What shares a look is for one process. Once such orders were listed, no id that could be taken for one of them is
#: cancelled or chosen in this process: that is for the last checks to meet.
pytestmark = [pytest.mark.xdist_group("edges"), pytest.mark.alone, pytest.mark.last]

#: Why nothing can be said of any of these ids: some databases number the order 0 themselves.
NONE_PLACED = "no order can be placed with such an id, or the listing shows none although it was"


def look(api: Api, orders: Orders) -> tuple[dict[int, Answer], Answer]:
    """The answers to cancels of shipped orders with these ids, and to a listing. Raises Excluded where there can be
    none."""
    nothing_is_like_them(api)
    placed = place_each(orders, ids.EDGES, shipped=True)
    asked = [api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in placed]
    *answers, listing = api.send_all([*asked, api.ask_list()])
    shown = listing.listing.ids if listing.listing is not None else frozenset(placed)
    cancels = dict(zip(placed, answers, strict=True))
    for order, answer in zip(placed, answers, strict=True):
        if answer.client_error and answer.status != 409 and order not in shown:
            del cancels[order]
    if not cancels:
        raise outcomes.Excluded(NONE_PLACED)
    return cancels, listing


def nothing_is_like_them(api: Api) -> None:
    """Raise Excluded where an order in the listing could be mistaken for one of these. By this listing and not by all
    ids ever seen: other checks may have had orders with these ids, gone by now."""
    if any(map(ids.like_edges, api.listing().ids)):
        raise outcomes.Excluded("an order in the listing could be mistaken for one with the id 0 or at an end of int64")


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_pending_orders_with_edge_ids_are_cancelled(api: Api, orders: Orders, already_met: bool) -> None:
    """Cancels pending orders with the ids at both ends of int64, and with -1, 2^31 - 1, 2^31 and 2^32, as far as they
    can be placed: 204. One that is refused is placed once more before that counts: the cancel of another one may have
    touched it. The check of CANCEL-1 about the id 0 may have seen that already."""
    if already_met:
        return
    nothing_is_like_them(api)
    placed = place_each(orders, ids.PENDING_EDGES)
    answers = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in placed)
    shown = api.listing().ids if any(answer.client_error for answer in answers) else ()
    known = [
        (order, answer)
        for order, answer in zip(placed, answers, strict=True)
        if not answer.client_error or answer.status == 409 or order in shown
    ]
    if not known:
        raise outcomes.Excluded(NONE_PLACED)
    for order, first in known:
        answer = once_more(api, orders, order) if first.client_error else first
        if verify.unlisted(answer):
            verify.step(answer, 204, "HTTP-1")
        verify.status(answer, 204, since="the order is pending")


def once_more(api: Api, orders: Orders, order: int) -> Answer:
    """The answer to a cancel of an order that is placed again, if it can be."""
    with suppress(outcomes.Excluded, outcomes.Inconclusive):
        orders.place([order])
    return api.cancel(order)


@requirement("LIST-8", mode=Mode.FULL, chosen_ids=True)
def test_orders_with_edge_ids_are_listed(api: Api, orders: Orders, met: set[str]) -> None:
    """Has shipped orders placed with the id 0, the ids at both ends of int64, and 2^31 and 2^32, as far as they can be:
    each is in the listing, if cancelling knows it, or when it is placed once more and not cancelled."""
    cancels, answer = look(api, orders)
    if all(cancel.status == 409 for cancel in cancels.values()):
        met.add("edges.shipped_orders_with_edge_ids_are_refused")
    found = verify.listing(answer)
    lost = [order for order in cancels if order not in found.by_id]
    for order in lost:
        verify.step(cancels[order], 409, "CANCEL-3")
    if lost == [0] and found.without_id > found.odd_ids:
        # Some serialisers leave out what is zero, and no field is required (section 2).
        if len(cancels) == 1:
            raise outcomes.Excluded("an order with the id 0 may be the one in the listing that has no id")
        lost = []
    if lost:
        # What a refused cancel took from the listing is for CANCEL-4 to say.
        orders.place(lost, shipped=True)
        found = api.listing()
        lost = [order for order in lost if order not in found.by_id]
    if lost and len(lost) <= found.without_id:
        raise verify.without_ids(found)
    if lost:
        received = f"no order with the id {lost[0]}, which cancelling knows"
        raise outcomes.Failed(f"order {lost[0]} in the listing", received, answer, cancels[lost[0]])


@requirement("CANCEL-3", mode=Mode.FULL, chosen_ids=True)
def test_shipped_orders_with_edge_ids_are_refused(api: Api, orders: Orders, already_met: bool) -> None:
    """Cancels shipped orders with the id 0, the ids at both ends of int64, and 2^31 and 2^32, as far as they can be
    placed: 409."""
    if not already_met:
        for order, cancel in look(api, orders)[0].items():
            if cancel.client_error and cancel.status != 409:  # is it for any order with this id?
                with suppress(outcomes.Excluded):
                    orders.place([order])
                    verify.step(api.cancel(order), 204, "CANCEL-1")
            if cancel.succeeded:  # as a pending one with this id was cancelled before?
                cancelled_once(api, orders.take(pending=1).pending[0])
            gets(orders, cancel, 409, since="the order has already shipped")
