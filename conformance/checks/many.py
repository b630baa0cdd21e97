"""Cancels in a store with more orders than common page sizes hold. To have so many placed takes a provider long: one
look serves the checks that want them, which have them placed anew only where it showed something wrong."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from conformance import verify
from conformance.api import Api, Orders
from conformance.target import Mode, Target
from conformance.transport.evidence import Allowed, Request


def shipped(orders: Orders, target: Target) -> list[int]:
    """A shipped order, where there may be one to cancel."""
    with suppress(verify.Excluded, verify.Inconclusive):
        return orders.take(shipped=1, looked_for=False).shipped if target.mode is Mode.FULL else []
    return []


def overlapping(api: Api, cancelled: Iterable[int]) -> list[Request]:
    """A listing, and for each of the orders a cancel and a listing, to be sent at once."""
    return [api.ask_list(), *(asked for order in cancelled for asked in (api.ask_cancel(order), api.ask_list()))]


def inner(placed: list[int]) -> list[int]:
    """Those next to the first and the last ones, on pages that are read early, whichever way."""
    return [placed[1], placed[-2], placed[2], placed[-3]]


def met(api: Api, pending: list[int], shipped: list[int]) -> set[str]:
    """The ids of the checks whose demand is met by cancels of the first and the last of the orders `pending`, of those
    `shipped`, before and after them, and of some more while the others are listed."""
    ends = [pending[0], pending[-1]]
    answers = api.send_all(map(api.ask_cancel, [*ends, *shipped]))
    again = api.send_all(api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in ends)
    listings = api.send_all(overlapping(api, inner(pending)), at_once=True)[::2]
    rest = frozenset(pending) - {*ends, *inner(pending)}
    found = set()
    if all(answer.status == 204 for answer in answers[:2]) and not any(answer.succeeded for answer in again):
        found.add("cancelling.pending_orders_are_cancelled_among_many")
    if len(shipped) == 2 and all(answer.status == 409 for answer in answers[2:]):
        found.add("cancelling.shipped_orders_are_refused_among_many")
    if all(each.listing is not None and rest <= each.listing.ids for each in listings):
        found.add("concurrency.many_orders_are_listed_while_others_are_cancelled")
    return found
