"""LIST-7: no orders at all, and then few."""

from __future__ import annotations

from contextlib import suppress

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.contract.listing import Listing
from conformance.contract.validators import shown
from conformance.target import Mode
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, Allowed

#: How often the store is emptied before the check concludes that others keep placing orders in it.
TRIES = 3
#: What is expected of the listing then.
EMPTIED = "[] just after the store was emptied"


@requirement("LIST-7", mode=Mode.FULL, empty_store=True, pending=2, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
def test_empty_store_is_an_empty_array(api: Api, orders: Orders, met: set[str]) -> None:
    """Has the store emptied, while no other check runs, and lists: 200 with []. Then it looks at a store with one order
    and with two, which are placed, listed and cancelled, with an absent order cancelled and requests without the key in
    between: what is right with many orders must be right with few. That has checks of its own, which look again only if
    something was not right here."""
    # What this listing is, is for this check alone to say: judged as any other, it would fail LIST-1 as well.
    asked = api.ask_list(allowed=Allowed.OPEN)
    known: set[str] = set()
    for _ in range(TRIES):
        orders.empty_store()
        answers = api.send_all([asked, asked])
        there = contents(*(answer.listing for answer in answers))
        if not there or there & known:  # what is there again was not placed by others just now
            break
        known = there
    else:
        raise outcomes.Excluded("others place orders all the time, so the store cannot be seen empty")
    try:
        for answer in answers:
            holds_nothing(answer)
    except outcomes.Failed:
        provider_may_be_at_fault(api, orders)
        raise
    with suppress(outcomes.Excluded, outcomes.Inconclusive):  # the other checks say so themselves
        met.update(met_by_few(api, orders))


def provider_may_be_at_fault(api: Api, orders: Orders) -> None:
    """Raise Inconclusive where the store may not have been empty although the state provider said so: an order that is
    placed now outlives it when it is emptied again, or one that was cancelled stays listed."""
    order, other = orders.take(pending=2).pending
    # What is wrong with any listing, or with one that was kept, is no matter of an empty store.
    listings = [api.listing() for _ in range(2)]
    shown = [known for known in (order, other) if any(known in found.by_id for found in listings)]
    if not shown and api.cancel(other).status == 404:
        raise verify.unknown(other)  # the provider may have emptied the store of another service
    order = shown[0] if shown else order
    kept = other != order and other in shown and api.cancel(other).status == 204 and other in api.listing().by_id
    orders.empty_store()
    if api.cancel(order, allowed=Allowed.ANY_4XX).status == 204:
        raise outcomes.Inconclusive(
            f"order {order} can be cancelled after the state provider said that it had removed all orders: the "
            "provider may be at fault"
        )
    if kept and other in api.listing().by_id:
        raise outcomes.Inconclusive(
            f"order {other} was cancelled and is still listed, also after the state provider said that it had removed "
            "all orders: a provider that keeps cancelled orders answers 501 (exit status 3) to that"
        )


def met_by_few(api: Api, orders: Orders) -> set[str]:
    """The ids of the checks whose demand is met in a store that is empty at first: one order is placed, listed and
    cancelled after one that does not exist, and a shipped one behind another, which is cancelled. HTTP-1 is to say
    where a status is not listed."""
    (absent,) = api.absent(anew=False)
    (only,) = orders.take(pending=1).pending
    pending, _ = api.send_all([api.ask_list(), api.ask_cancel(absent)])
    cancelled = api.cancel(only)
    none = [api.ask_list(), api.ask_cancel(absent), api.ask_list(NOBODY), api.ask_cancel(absent, NOBODY)]
    left, missed, *strangers, again = api.send_all([*none, api.ask_cancel(only, allowed=Allowed.ANY_4XX)])
    if left.listing is None or left.listing.elements:  # cancelled orders stay there
        orders.empty_store()
        _, missed, *strangers = api.send_all(none)
    taken = orders.take(pending=1, shipped=1)
    (behind,) = taken.shipped
    first = api.cancel(taken.pending[0])
    shipped, refused = api.send_all([api.ask_list(), api.ask_cancel(behind)])
    listings = ((only, pending.listing), (behind, shipped.listing))
    done = all(answer.status == 204 or verify.unlisted(answer) for answer in (cancelled, first))
    demands = {
        "listing.only_order_is_listed": all(found is not None and order in found.by_id for order, found in listings),
        "authentication.nobody_is_let_into_an_empty_store": all(answer.status == 401 for answer in strangers),
        "cancelling.only_order_is_cancelled": done and not again.succeeded,
        "cancelling.only_shipped_order_is_refused": refused.status == 409 or verify.unlisted(refused),
        "cancelling.absent_order_of_an_empty_store_is_not_found": missed.status == 404 or verify.unlisted(missed),
        "cancelling.order_behind_the_first_is_untouched": refused.status == 409,
        "cancelling.absent_order_leaves_the_only_one": cancelled.status == 204,
    }
    return {check for check, met in demands.items() if met}


def holds_nothing(answer: Answer) -> None:
    """Demand that a listing is an empty array."""
    if answer.status not in (None, 200) and answer.repeat().status == 200:
        owner = "AUTH-1" if answer.status == 401 else "HTTP-1"
        raise outcomes.Inconclusive(f"{answer.exchange.in_words} once", owner)
    verify.status(answer, 200, since="the store was emptied just before, and no orders are an empty array")
    if answer.listing is None and any(answer.repeat().listing is not None for _ in range(2)):
        raise outcomes.Inconclusive(f"{answer.exchange.line} answered with no array, and then with one", "LIST-1")
    if answer.listing is None:
        raise outcomes.Failed(EMPTIED, f"the body {shown(answer.body.decode('utf-8', 'replace'))}", answer)
    if answer.listing.elements:
        raise outcomes.Failed(EMPTIED, f"an array of {answer.listing.size}", answer)


def contents(*listings: Listing | None) -> set[str]:
    """The elements of listings, each written out."""
    return {repr(element) for listing in listings if listing for element in listing.elements}
