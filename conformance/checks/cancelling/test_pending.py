"""CANCEL-1, CANCEL-2, CANCEL-10, CANCEL-12: a pending order is cancelled, and what the answer carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from urllib.parse import urlsplit

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import ids, many_orders
from conformance.checks.cancelling.steps import (
    NO_ORDER_ZERO,
    cancel_aliases,
    cancels,
    not_made_up,
    nothing_is_like_zero,
    place_each,
)
from conformance.checks.clients import BROWSER, NAMES_JSON, SCRIPT, SENDS_JSON
from conformance.contract.listing import Listing, alike
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Headers
from conformance.transport.wire import Wire

# --- CANCEL-1: a pending order is cancelled


@requirement("CANCEL-1", mode=Mode.FULL, pending=1)
def test_pending_order_is_cancelled(api: Api, orders: Orders) -> None:
    """Cancels a pending order: 204."""
    (order,) = orders.take(pending=1).pending
    cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, pending=6)
@pytest.mark.lengthy
def test_pending_orders_are_cancelled_one_after_the_other(api: Api, orders: Orders) -> None:
    """Cancels pending orders of different kinds, each placed just before: 204 every time."""
    for _ in range(6):
        (order,) = orders.take(pending=1).pending
        cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, pending=6)
@pytest.mark.lengthy
def test_pending_orders_are_cancelled_whatever_the_client_accepts(api: Api, orders: Orders, target: Target) -> None:
    """Cancels a pending order as a client that accepts application/json, others as a browser and its scripts, one as a
    client that accepts application/* and sends `Content-Length: 0`, as many do, one with the `Origin` that a page
    at the service's own address sends, and one without Accept, as Go's client does: 204, and they are cancelled. A
    request with an Origin may get another client error (403 as a rule), since a service may know its own address by
    another name."""
    base = urlsplit(target.base_url)
    origin = (("Origin", f"{base.scheme}://{base.netloc}"),)
    for headers in (NAMES_JSON, BROWSER, SCRIPT, (("Accept", "application/*"), ("Content-Length", "0")), origin):
        (order,) = orders.take(pending=1).pending
        answer = cancels(api, orders, order, headers, or_minds=headers is origin)
        if headers is not origin:
            are_gone(api, {order: answer})  # before another is placed: an order that comes back then is for CANCEL-6
    (order,) = orders.take(pending=1).pending
    are_gone(api, {order: cancels(api.without_accept(), orders, order)})


@requirement("CANCEL-1", mode=Mode.FULL, pending=1)
def test_cancelled_order_is_cancelled(api: Api, orders: Orders, observe: Observations) -> None:
    """Cancels a pending order: it is then cancelled. A service that lists it as before, and lets it be cancelled once
    more, has reported something that it did not do."""
    taken = orders.take_listed(pending=1)
    (order,) = taken.pending
    answer = api.cancel(order)
    verify.step(answer, 204, "CANCEL-1")
    after = api.list()
    became = presence(order, taken.listing, after)
    observe("cancelled orders in the listing", became, answer, after)
    again = api.cancel(order, allowed=Allowed.ANY_4XX)
    if verify.settled(again).status == 204 and became == "there, unchanged":
        raise not_done(order, answer, after, again)


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_pending_orders_with_large_ids_are_cancelled(api: Api, orders: Orders) -> None:
    """Cancels pending orders with ids above 2^31, above 2^53 and near 2^63: 204."""
    cancels_chosen(api, orders, ids.large)


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_pending_orders_with_negative_ids_are_cancelled(api: Api, orders: Orders) -> None:
    """Cancels pending orders with ids below zero, some near -2^63, if the provider can place them: 204."""
    cancels_chosen(api, orders, ids.below_zero)


def cancels_chosen(api: Api, orders: Orders, draw: Callable[[Random], list[int]]) -> None:
    """Cancel pending orders with drawn ids, and demand 204. Raises Inconclusive where such an id is refused, with a
    status that the operation does not list, whether an order has it or not."""
    for order in api.unmistakable(draw(api.rng)):
        orders.place([order])
        answer = api.cancel(order)
        not_made_up(api, orders, order, answer)
        if verify.unlisted(answer) and api.cancel(api.absent()[0]).status == answer.status:
            verify.step(answer, 204, "HTTP-1")
        verify.status(answer, 204, since="the order is pending")


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
@pytest.mark.xdist_group("edges")
@pytest.mark.alone
def test_pending_order_with_the_id_zero_is_cancelled(api: Api, orders: Orders, met: set[str]) -> None:
    """Cancels a pending order with the id 0, if one can be placed, and others with ids at the edges: 204. In many
    languages 0 counts as no id. Before that, ids that are not numbers are cancelled, and numbers beyond int64: if one
    of them hit an order, that is a matter of CANCEL-9. The other ids and CANCEL-9 have checks of their own, which look
    again only if something was not right here."""
    shown = nothing_is_like_zero(api)
    orders.place([0])
    wanted = () if any(map(ids.like_edges, shown)) else dict.fromkeys((*ids.PENDING_EDGES, *ids.AT_THE_ENDS))
    further = place_each(orders, wanted)
    cancel_aliases(api, (*ids.OF_ZERO, *ids.BEYOND))
    answer, *others = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in (0, *further))
    if others and all(other.status == 204 for other in others):
        met.add("edges.pending_orders_with_edge_ids_are_cancelled")
        if not set(ids.AT_THE_ENDS).isdisjoint(further):
            met.add("cancelling.ids_beyond_int64_cancel_nothing")
    if answer.status == 204:
        met.add("cancelling.malformed_ids_do_not_cancel_the_order_zero")
    elif answer.client_error and 0 not in api.listing().ids:
        orders.place([0])
        answer = api.cancel(0, allowed=Allowed.ANY_4XX)
    if answer.client_error and 0 not in api.listing().ids:
        raise outcomes.Excluded(NO_ORDER_ZERO)
    verify.status(answer, 204, since="the order is pending")


@requirement("CANCEL-1", mode=Mode.FULL, chosen_ids=True)
def test_order_is_cancelled_whose_id_was_not_found_before(api: Api, orders: Orders) -> None:
    """Cancels an id that no order has, then a pending order that is placed with it: 204, not 404 as before."""
    for order in api.unmistakable(10**9 + api.rng.randrange(10**6, 10**8) for _ in range(20)):
        answer = api.cancel(order, allowed=Allowed.ANY_4XX)
        if answer.status == 404:
            break  # else an earlier run with this seed may have had an order with this id, and the service recalls it
    verify.step(answer, 404, "CANCEL-5")
    orders.place([order])
    cancels(api, orders, order)


@requirement("CANCEL-1", mode=Mode.FULL, pending=2)
def test_orders_are_cancelled_after_malformed_ids(api: Api, wire: Wire, orders: Orders) -> None:
    """Cancels an id that is not an integer, and then a pending order, on one kept-alive connection and on two: what the
    first left behind, such as an open transaction, does not undo the second."""
    first, second = orders.take_listed(pending=2).pending
    malformed = api.ask_cancel(f"{api.absent()[0]}abc", allowed=Allowed.OPEN)
    with wire.connect() as connection:
        connection.exchange(malformed)
        if connection.left_open():
            answer = connection.exchange(api.ask_cancel(first))
            if not answer.exchange.closed:
                verify.step(answer, 204, "CANCEL-1")
                are_gone(api, {first: answer})
    api.send(malformed)
    answer = api.cancel(second)
    verify.step(answer, 204, "CANCEL-1")
    are_gone(api, {second: answer})


@requirement("CANCEL-1", mode=Mode.FULL, empty_store=True, pending=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_only_order_is_cancelled(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and one order placed, which is the first and the last one, and cancels it: 204. The check
    of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        (only,) = orders.take(pending=1).pending
        # What the listing of a store without orders is, is for LIST-7 to say.
        are_gone(api, {only: cancels(api, orders, only)}, listed=Allowed.OPEN)


@requirement("CANCEL-1", mode=Mode.FULL, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_pending_orders_are_cancelled_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Cancels the first and the last of more orders than common page sizes hold (bulk_orders, 1,100 by default), and
    those next to page breaks: 204, wherever a service looks them up. A service that answers 204 again, and still lists
    the order, has not cancelled it. The check of LIST-5 may have seen all that already."""
    if already_met:
        return
    placed = orders.take(pending=target.bulk_orders).pending
    last, *chosen = many_orders.at_borders(api.listing(), placed)
    cancelled = {last: cancels(api, orders, last)}
    for order in chosen:
        cancelled[order] = answer = api.cancel(order, allowed=Allowed.ANY_4XX)
        if verify.settled(answer).status != 204:
            # One that is gone by now, or has shipped, may have been touched by the cancel of another one.
            if answer.status != 404 or order not in api.listing().by_id:
                verify.step(answer, 204, "CANCEL-1", "CANCEL-8")
            verify.status(answer, 204, since="the order is pending, however many others there are")
    are_gone(api, cancelled)


def are_gone(api: Api, cancelled: Mapping[int, Answer], *, listed: Allowed = Allowed.LISTED) -> None:
    """Demand that orders are cancelled now, whose cancels were each answered with 204: none of them is still listed and
    can be cancelled again. `listed` is what the listing may be answered."""
    after = api.send(api.ask_list(allowed=listed))
    further = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in cancelled)
    for (order, answer), again in zip(cancelled.items(), further, strict=True):
        if verify.settled(again).status != 204:
            continue
        if order not in verify.listing(after).by_id:
            verify.step(again, 404, "CANCEL-6")
        raise not_done(order, answer, after, again)


def not_done(order: int, answer: Answer, after: Answer, again: Answer) -> outcomes.Failed:
    """The failure where the cancel of an order reported what was not done: the order is in the listing `after` it, and
    was cancelled `again` with 204."""
    among = f"in a listing of {verify.listing(after).size}"
    received = f"it is still there, {among}, and could be cancelled again with 204"
    return outcomes.Failed(f"order {order} cancelled after 204", received, answer, after, again)


def presence(order: int, before: Listing | None, after: Answer) -> str:
    """What became of an order in the listing."""
    found = after.listing
    if found is None or before is None:
        return "unknown: there is no readable listing"
    if order not in found.by_id:
        return "gone"
    return "there, unchanged" if alike(found.by_id[order], before.by_id.get(order)) else "there, changed"


# --- CANCEL-2, CANCEL-12: what a 204 carries. Judged on every exchange of the run, too.


@requirement("CANCEL-2", mode=Mode.FULL, pending=6)
def test_no_bytes_after_204(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels pending orders of different kinds, some as a client that accepts application/json, some as a browser and
    its scripts, each on a raw connection that the service is asked to close, the last one after a listing on it:
    nothing follows the header section of the 204."""
    kinds = (NAMES_JSON, (), BROWSER, SCRIPT)
    for place, order in enumerate(orders.take_listed(pending=6).pending):
        headers = kinds[place % len(kinds)]
        with wire.connect() as connection:
            if place == 5:
                connection.exchange(api.ask_list())
            answer = connection.exchange(api.ask_cancel(order, headers=headers), last=True)
        if answer.exchange.closed:
            continue
        verify.step(answer, 204, "CANCEL-1")
        verify.meets("CANCEL-2", answer)


@requirement("CANCEL-2", mode=Mode.FULL, pending=1)
def test_no_bytes_between_204_and_the_next_answer(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels a pending order on a kept-alive connection, then lists on it: nothing stands between the two answers."""
    (order,) = orders.take_listed(pending=1).pending
    with wire.connect() as connection:
        answer = connection.exchange(api.ask_cancel(order))
        verify.step(answer, 204, "CANCEL-1")
        if connection.left_open():
            connection.exchange(api.ask_list())  # what follows the 204 may come no earlier than this answer
    verify.meets("CANCEL-2", answer)


@requirement("CANCEL-12", mode=Mode.FULL, pending=1)
def test_204_without_content_fields(api: Api, orders: Orders) -> None:
    """Cancels a pending order: the 204 has neither Content-Length nor Transfer-Encoding."""
    (order,) = orders.take_listed(pending=1).pending
    answer = api.cancel(order)
    verify.step(answer, 204, "CANCEL-1")
    verify.meets("CANCEL-12", answer)


# --- CANCEL-10: whatever else the request lacks


@requirement("CANCEL-10", mode=Mode.FULL, pending=4)
def test_bare_request_cancels(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels a pending order with the bare minimum of a request (Host, User-Agent, Authorization): 204. If that is
    refused, a second order is cancelled with the fields that clients send besides, and if need be a third one with a
    JSON body and a content type. A fourth one, cancelled bare and then in the way that worked, tells whether the
    bareness was the reason."""
    first, second, third, fourth = orders.take_listed(pending=4).pending

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
        headers, body = SENDS_JSON, b"{}"
        full = api.send(api.ask_cancel(third, headers=headers, body=body))
    if body is None and full.status == 204 and verify.unlisted(answer):  # a firewall wants to know what is accepted
        verify.step(answer, 204, "HTTP-1")
    again = bare(fourth)
    # What is wrong with some orders only is as wrong with the fourth however it is cancelled.
    if (
        full.status == 204
        and verify.settled(again).status != 204
        and api.send(api.ask_cancel(fourth, headers=headers, body=body, allowed=Allowed.ANY_4XX)).status == 204
    ):
        missing = "a request body and a content type" if body else "further header fields"
        raise outcomes.Failed(f"204 without {missing}", verify.describe(answer), answer, full, again)
    verify.step(answer, 204, "CANCEL-1")
