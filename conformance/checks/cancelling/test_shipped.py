"""CANCEL-3, CANCEL-4: a shipped order is refused, and stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from random import Random
from urllib.parse import parse_qsl

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import ids, many_orders
from conformance.checks.cancelling.steps import body_kind, cancel_aliases, gets, not_made_up, place_far, refuses
from conformance.checks.clients import BROWSER, NAMES_JSON, SCRIPT, SENDS_JSON
from conformance.contract.listing import Listing
from conformance.target import Mode, Target
from conformance.transport.request import Allowed

#: What may be taken for leave to cancel a shipped order all the same: cancelling has no such parameters.
INSISTENT = (
    "force=true&override=true&confirm=true&admin=true&hard=true&purge=true&status=pending&shipped=false&refund=true"
    "&reason=mistake"
)
#: The same as a body.
INSISTING = json.dumps(dict(parse_qsl(INSISTENT))).encode()
#: How often one shipped order is cancelled.
TIMES = 6
#: How many shipped orders are cancelled to see whether they stay as they were, of as many kinds as the provider places.
KINDS = 8


@requirement("CANCEL-3", mode=Mode.FULL, shipped=1)
def test_shipped_order_is_refused(api: Api, orders: Orders, observe: Observations) -> None:
    """Cancels a shipped order: 409."""
    (order,) = orders.take(shipped=1).shipped
    answer = refuses(api, orders, order)
    observe("409 body", body_kind(answer), answer)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=4)
def test_shipped_orders_are_refused(api: Api, orders: Orders) -> None:
    """Cancels shipped orders of different kinds, each placed just before: 409 every time."""
    for _ in range(4):
        (order,) = orders.take(shipped=1).shipped  # only now: what an earlier refusal does to others is CANCEL-8's
        refuses(api, orders, order)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=4)
def test_shipped_order_is_refused_whatever_the_client_accepts(api: Api, orders: Orders) -> None:
    """Cancels a shipped order as a client that accepts application/json, others as a browser and its scripts, and one
    without Accept, as Go's client does: 409."""
    for headers in (NAMES_JSON, BROWSER, SCRIPT):
        (order,) = orders.take(shipped=1).shipped
        refuses(api, orders, order, headers)
    (order,) = orders.take(shipped=1).shipped
    refuses(api.without_accept(), orders, order)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=2)
def test_shipped_order_is_refused_whatever_else_is_said(api: Api, orders: Orders) -> None:
    """Cancels a shipped order with query parameters that may be taken for permission, such as `force=true`, and another
    with the same in a body: no success. Any other answer is allowed."""
    (first,) = orders.take(shipped=1).shipped
    in_query = api.send(api.ask_cancel(first, query=INSISTENT))
    (second,) = orders.take(shipped=1).shipped  # only now: what a refusal does to others is CANCEL-8's
    in_body = api.send(api.ask_cancel(second, headers=SENDS_JSON, body=INSISTING, allowed=Allowed.OPEN))
    for answer, spite in ((in_query, f"?{INSISTENT}"), (in_body, f"the body {INSISTING.decode()}")):
        if answer.succeeded:
            wanted = f"no success, since the order has already shipped, in spite of {spite}"
            raise outcomes.Failed(wanted, verify.describe(answer), answer)
    verify.settled(in_query)  # the body may cost the answer: a service may hang up before it has read one


@requirement("CANCEL-3", mode=Mode.FULL, chosen_ids=True)
def test_shipped_orders_with_large_ids_are_refused(api: Api, orders: Orders) -> None:
    """Cancels shipped orders with ids above 2^31, above 2^53 and near 2^63: 409, if pending ones with such ids can be
    cancelled."""
    refuses_chosen(api, orders, ids.large)


@requirement("CANCEL-3", mode=Mode.FULL, chosen_ids=True)
def test_shipped_orders_with_negative_ids_are_refused(api: Api, orders: Orders) -> None:
    """Cancels shipped orders with ids below zero, some near -2^63: 409, if pending ones with such ids can be
    cancelled."""
    refuses_chosen(api, orders, ids.below_zero)


def refuses_chosen(api: Api, orders: Orders, draw: Callable[[Random], list[int]]) -> None:
    """Cancel shipped orders with drawn ids, after pending ones with other such ids, and demand 409."""
    chosen = api.unmistakable([*draw(api.rng), *draw(api.rng)])
    controls, shipped = chosen[::2], chosen[1::2]
    orders.place(controls)
    for answer in api.send_all(map(api.ask_cancel, controls)):
        verify.step(answer, 204, "CANCEL-1")
    orders.place(shipped, shipped=True)
    refuses_all(api, orders, shipped)


@requirement("CANCEL-3", mode=Mode.FULL, empty_store=True, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_only_shipped_order_is_refused(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied and one shipped order placed, which is the first and the last one, and cancels it: 409. The
    check of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        (only,) = orders.take(shipped=1).shipped
        refuses(api, orders, only)


@requirement("CANCEL-3", mode=Mode.FULL, shipped=1, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_shipped_orders_are_refused_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Cancels a shipped order that was placed before more orders than common page sizes hold, and the first, the last
    and a few of many shipped ones (a quarter of bulk_orders) that were placed after them: 409. The check of LIST-5 may
    have seen that already."""
    if already_met:
        return
    first = orders.take(shipped=1).shipped
    orders.take(pending=target.bulk_orders)
    after = orders.take(shipped=target.bulk_shipped).shipped
    refuses_all(api, orders, [*first, *many_orders.few(after)])


def refuses_all(api: Api, orders: Orders, shipped: list[int]) -> None:
    """Cancel shipped orders and demand 409. One that is gone by then may have been touched by an earlier one's."""
    answers = api.send_all(map(api.ask_cancel, shipped))
    for order, answer in zip(shipped, answers, strict=True):
        not_made_up(api, orders, order, answer)
        if answer.status == 404 and answer is not answers[0] and api.listing().left_out([order]):
            verify.step(answer, 409, "CANCEL-3", "CANCEL-8")
        gets(orders, answer, 409, since=orders.has_shipped)


@requirement("CANCEL-4", mode=Mode.FULL, shipped=1)
@pytest.mark.lengthy
def test_refused_order_stays_as_it_was(api: Api, orders: Orders) -> None:
    """Cancels a shipped order many times: it is listed as before, and refused with 409 each time."""
    taken = orders.take_listed(shipped=1)
    (order,) = taken.shipped
    refusals = [api.cancel(order)]
    verify.step(refusals[0], 409, "CANCEL-3")
    since = "cancelling it was refused"
    if taken.listing is not None:
        verify.unchanged([], taken.listing, api.list(), shipped=[order], since=since, shown_by=refusals)
    for _ in range(TIMES - 1):
        again = api.cancel(order)
        verify.status(again, 409, since="the order is still shipped after a refused cancel", after=refusals)
        refusals.append(again)
    if taken.listing is not None:
        verify.unchanged([], taken.listing, api.list(), shipped=[order], since=since, shown_by=refusals)


@requirement("CANCEL-4", mode=Mode.FULL, shipped=2 * KINDS, placing=True)
def test_refused_orders_of_many_kinds_stay_as_they_were(api: Api, orders: Orders) -> None:
    """Cancels half of many shipped orders: they are listed as before, and refused again. If one is not, the cancel of
    another may be the cause, so further orders are cancelled one by one until one shows the fault alone. The fault also
    counts if none does, but the listing shows that only cancelled orders were touched."""
    taken = orders.take_listed(shipped=2 * KINDS)
    if taken.listing is None:
        raise outcomes.Inconclusive("there is no readable listing", "LIST-1")
    # The even ones, then the odd ones: what a provider varies may be the same in every other order.
    refused = [*taken.shipped[:KINDS:2], *taken.shipped[KINDS + 1 :: 2]]
    others = [order for order in taken.shipped if order not in refused]
    stay_as_they_were(api, refused, others, taken.listing, lambda: orders.take(shipped=2 * KINDS).shipped)


@requirement("CANCEL-4", mode=Mode.FULL, shipped=2)
def test_refused_order_stays_however_its_id_is_written(api: Api, orders: Orders) -> None:
    """Cancels a shipped order by other notations of its id, such as `+5001` and `0005001`, which one part of a service
    may read as the id, and another part not: whatever the answers, the order is refused afterwards by the id itself."""
    order, control = orders.take_listed(shipped=2).shipped
    tried = cancel_aliases(api, list(ids.filled(ids.UNUSUAL, order, api.rng).values()))
    since = "no other notation of its id makes it another order"
    verify.still_shipped(api.cancel(order), lambda: api.cancel(control), since=since, shown_by=tried)


@requirement("CANCEL-4", mode=Mode.FULL, chosen_ids=True)
@pytest.mark.lengthy
def test_refused_orders_with_far_ids_stay_as_they_were(api: Api, orders: Orders) -> None:
    """Cancels half of some shipped orders with ids above 2^31, above 2^53 and below zero: they are listed as before,
    and refused again. If one is not, others are cancelled one by one, as with orders of many kinds."""
    pairs = place_far(api, orders, shipped=True)
    before = api.listing()
    listed = [pair for pair in pairs if before.ids.issuperset(pair)]  # whether all are is for LIST-8
    if not listed:
        raise outcomes.Excluded("the listing shows none of the orders placed with such ids")
    refused, others = zip(*listed, strict=True)
    stay_as_they_were(api, refused, others, before, lambda: [*chain(*place_far(api, orders, shipped=True))])


def stay_as_they_were(
    api: Api, refused: Sequence[int], others: Sequence[int], before: Listing, fresh: Callable[[], list[int]]
) -> None:
    """Cancel the shipped orders that are to be `refused`, and demand that they are as they were, by the listing and
    when they are cancelled again; `others`, which are not cancelled, are the control. `before` is the listing before
    that. Where it goes wrong, `fresh` has more orders placed, to see which refusal it was."""
    refusals = api.send_all(map(api.ask_cancel, refused))
    for refusal in refusals:
        verify.step(refusal, 409, "CANCEL-3")
    after = api.list()
    since = "cancelling it was refused"
    own = False
    try:
        verify.unchanged([], before, after, shipped=others, since="it was not cancelled")
        own = True
        verify.unchanged([], before, after, shipped=refused, since=since, shown_by=refusals)
        own = False  # which of them another has made pending does not show
        for again in api.send_all(map(api.ask_cancel, refused)):
            verify.still_shipped(again, partial(api.cancel, others[-1]), since=since, shown_by=())
    except outcomes.Failed as failed:
        tried = fresh()
        before = api.listing()
        for order in tried:
            refusal = api.cancel(order)
            after = api.list()
            if verify.settled(refusal).status == 409:  # else it was touched before
                verify.unchanged([], before, after, shipped=[order], since=since, shown_by=[refusal])
                verify.still_shipped(api.cancel(order), partial(api.cancel, tried[-1]), since=since, shown_by=[refusal])
            before = verify.listing(after)
        if own:
            raise
        said = f"some cancel of a shipped order changed another order: {failed}"
        raise outcomes.Inconclusive(said, "CANCEL-3", "CANCEL-8") from None
