"""Cancels in a store with more orders than common page sizes hold. Providers take long to place so many, so they are
placed once for all checks about them, and again only for a check whose demand was not met then."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from conformance import outcomes
from conformance.api import Api, Orders
from conformance.contract.listing import Listing, alike
from conformance.transport.request import Allowed, Request

#: Common sizes of pages, and of the blocks in which a store is searched.
SIZES = (50, 100, 200, 250, 256, 500, 512, 1000)


def shipped(orders: Orders, count: int) -> list[int]:
    """`count` shipped orders; none if the provider has none."""
    with suppress(outcomes.Excluded, outcomes.Inconclusive):
        return orders.take(shipped=count).shipped
    return []


def few(placed: list[int]) -> list[int]:
    """The first and the last of the orders `placed`, and some in between."""
    return list(dict.fromkeys([*placed[:1], *placed[:: max(1, len(placed) // 3)][1:3], *placed[-1:]]))


def with_listings(api: Api, cancelled: Iterable[int]) -> list[Request]:
    """A listing, and for each of the orders a cancel and another listing, to be sent at once."""
    return [api.ask_list(), *(asked for order in cancelled for asked in (api.ask_cancel(order), api.ask_list()))]


def inner(placed: list[int]) -> list[int]:
    """The orders next to the first and the last: on an early page in either direction."""
    between = placed[1:-1]
    return list(dict.fromkeys([*between[:1], *between[-1:], *between[1:2], *between[-2:-1]]))


def at_borders(found: Listing | None, placed: list[int]) -> list[int]:
    """The first and the last of the orders `placed`, and those on either side of a page break for common page sizes, in
    reverse order of the listing, so that a cancel does not shift those still to be cancelled."""
    ids = list(found.by_id) if found is not None else []
    borders = {ids[place] for size in SIZES for place in (size - 1, size) if place < len(ids)}
    place_of = {order: place for place, order in enumerate(ids)}
    chosen = {placed[0], placed[-1]} | borders.intersection(placed)
    return sorted(chosen, key=lambda order: (place_of.get(order, -1), order), reverse=True)


def met(api: Api, listed: Listing | None, pending: list[int], shipped: list[int]) -> set[str]:
    """The ids of the checks whose demand is met here. It cancels some of the orders `pending`, chosen by their places
    in the listing `listed`; the orders `shipped`, if any, which were placed before and after them; and further ones
    while the others are listed."""
    ends = at_borders(listed, pending)
    answers = api.send_all(map(api.ask_cancel, [*ends, *shipped]))
    again = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in ends)
    others = [order for order in inner(pending) if order not in ends]  # a further cancel may be answered anything
    listings = api.send_all(with_listings(api, others), at_once=True)[::2]
    rest = frozenset(pending) - {*ends, *others}
    found = set()
    if all(answer.status == 204 for answer in answers[: len(ends)]) and not any(answer.succeeded for answer in again):
        found.add("cancelling.pending_orders_are_cancelled_among_many")
    if shipped and all(answer.status == 409 for answer in answers[len(ends) :]):
        found.add("cancelling.shipped_orders_are_refused_among_many")
    if all(each.listing is not None and rest <= each.listing.ids for each in listings):
        found.add("listing.no_order_is_hidden_while_others_are_cancelled")
    if _as_before(rest, listed, listings[-1].listing):
        found.add("cancelling.other_orders_are_untouched_among_many")
    return found


def _as_before(pending: frozenset[int], before: Listing | None, after: Listing | None) -> bool:
    """Whether both listings show each of these orders, and show them alike."""
    if before is None or after is None or not pending <= before.ids & after.ids:
        return False
    return all(alike(before.by_id[order], after.by_id[order]) for order in pending)
