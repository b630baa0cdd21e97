"""What several checks of the listing do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import filterfalse

from conformance import outcomes, verify
from conformance.api import Api
from conformance.checks.many_orders import with_listings
from conformance.contract.listing import Listing
from conformance.contract.transitions import State
from conformance.contract.validators import shown
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Request
from conformance.transport.retries import turned_away

#: How many times more a listing is asked for with and without a query that seems to leave something out of it.
LOOKS = 3


def known_to_cancelling(api: Api, order: int, target: Target) -> None:
    """Raise Inconclusive if an order that the listing leaves out is not known to cancelling either, if that may be
    tried: the state provider may have made it up."""
    if target.mode is Mode.FULL and verify.settled(api.cancel(order)).status == 404:
        raise verify.unknown(order)


def still_there(api: Api, order: int, shipped: Sequence[int], *owners: str) -> Answer:
    """The answer to the cancel of an order that the listing leaves out, which shows that the order exists. Raises
    Inconclusive if it does not: that is a matter of one of `owners`."""
    probe = api.cancel(order)
    verify.step(probe, 409 if order in shipped else 204, *owners)
    return probe


def listed_meanwhile(
    api: Api, chosen: list[int], left: list[int], shipped: Sequence[int] = (), *, paged: bool = False
) -> None:
    """Cancel the orders `chosen` and list at the same time, and demand that each listing holds the orders `left`, some
    of which are `shipped`. One of the shipped ones is cancelled as well, which is refused. If this is about pages
    (`paged`), no more orders can be lost between two pages than were cancelled; if more are, that is a matter of
    LIST-3."""
    asked = [*chosen, *shipped[:1]]
    answers = api.send_all(with_listings(api, asked), at_once=True)
    listings, cancels = answers[::2], answers[1::2]
    for answer in listings:
        found = answer.listing if answer.status == 200 else None
        gone = found.left_out(left) if found is not None else []
        if gone:
            order = gone[0]
            probe = still_there(api, order, shipped, "CANCEL-3", "CANCEL-4", "CANCEL-8")
            if paged and len(gone) > len(chosen):
                raise outcomes.Inconclusive(f"{len(gone)} orders were not listed while others were cancelled", "LIST-3")
            if order in asked and order not in api.listing().by_id:
                raise outcomes.Inconclusive(
                    f"order {order} is not listed any more since a cancel of it was refused", "CANCEL-4"
                )
            raise outcomes.Failed(
                "every order placed and not cancelled, also while others are being cancelled",
                f"no order {order} in a listing that was asked for together with cancels"
                f"{', one of them of it, which was refused' if order in asked else ' of other orders'}",
                answer,
                probe,
            )
    for answer in filterfalse(turned_away, listings):
        verify.listing(answer)
    for order, answer in zip(asked, cancels, strict=True):
        if not turned_away(answer):
            status, owner = (409, "CANCEL-3") if order in shipped else (204, "CANCEL-1")
            if answer.client_error and order not in shipped:
                answer.repeat()  # where that cancels it, it was pending: the judge of all answers says so
            verify.step(answer, status, owner)
    verify.overlapped(answers)


def none_missing(api: Api, placed: list[int], state: State, answer: Answer, target: Target) -> None:
    """Demand that the listing shows each of `placed`, which are in `state`. Raises Inconclusive if the provider may
    have made up the first one that is missing."""
    found = verify.listing(answer)
    absent = [order for order in placed if order not in found.by_id]
    if not absent:
        return
    if len(absent) <= found.without_id:
        raise verify.without_ids(found, before=f"order {absent[0]} is not listed by id, but ")
    known_to_cancelling(api, absent[0], target)
    raise outcomes.Failed(
        f"every order placed, among them the {len(placed)} that the suite was given as {state}",
        f"{found.size} without order {', '.join(map(str, absent[:5]))}",
        answer,
    )


def listed_throughout(before: Listing, after: Listing) -> frozenset[int]:
    """The ids in both of two listings: every listing in between has to show them (LIST-6). Raises Excluded if there are
    fewer than two; Inconclusive if that is because ids are not integers."""
    steady = before.ids & after.ids
    if len(steady) < 2 and after.odd_ids:
        raise verify.without_ids(after, after=", so a missing order could not be recognised")
    if len(steady) < 2:
        raise outcomes.Excluded(
            "the listing holds fewer than two orders with ids, so a missing one could not be recognised"
        )
    return steady


def nothing_left_out(
    steady: frozenset[int], found: Listing, answer: Answer, anew: Callable[[], Answer] | None = None
) -> None:
    """Demand that `found`, the listing in the answer to a query, or to unusual header fields, leaves out none of the
    orders `steady`.

    If it does, the listing is requested with and without them a few times more: others may have cancelled an order just
    then, and placed another one with its id. `anew` sends the same with a parameter that nobody has used before, which
    tells a filter from a cached listing.
    """
    lacking = _left_out_each_time(found.left_out(steady), answer)
    if lacking:
        other = anew().listing if anew is not None else None
        kept = other is not None and not other.left_out(steady)
        others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        why = (
            "; with a new parameter beside it all are there, so this query alone is obeyed, or the answer is one that "
            "was kept"
            if kept
            else ""
        )
        raise outcomes.Failed(
            f"all orders in spite of {asked_for(answer)}, since filtering and pagination are not supported",
            f"{found.size}, without order {min(lacking)}{others}, listed before and after{why}",
            answer,
        )


def asked_for(answer: Answer) -> str:
    """What a listing was requested with that it does not support, for "expected": a query, or else header fields."""
    query, headers = answer.request.query, answer.request.headers
    return f"?{query}" if query else ", ".join(name for name, _ in headers)


def _left_out_each_time(lacking: Iterable[int], answer: Answer) -> set[int]:
    """Those of `lacking` that the listing leaves out with the query or the header fields of `answer`, and shows without
    them, each time. It is requested without them once, then twice, and so on: if several instances answer in turn, some
    may still show what was cancelled, which is open (section 8)."""
    plain = replace(answer.request, query="", headers=(), allowed=Allowed.LISTED)

    def missing(request: Request, orders: set[int]) -> set[int] | None:
        found = answer.ask(request).listing if orders else None
        return None if found is None else set(found.left_out(orders))

    left = set(lacking)
    left -= missing(plain, left) or set()
    for times in range(1, LOOKS + 1):
        again = missing(answer.request, left)
        left = left if again is None else again
        for _ in range(times):
            left -= missing(plain, left) or set()
    return left


def all_shown(answer: Answer, steady: frozenset[int], anew: Callable[[], Answer] | None = None) -> None:
    """Demand that an answer with 200 is a listing with all of the orders `steady`, unless it shows none at all, like
    the page of a firewall. See `nothing_left_out` for `anew`."""
    found = answer.listing
    if answer.status != 200 or (found is None and not shows(answer, steady)):
        return
    if found is None:
        again = [answer.repeat() for _ in range(2)]  # every second listing may be broken
        if any(each.listing is not None or each.status != 200 for each in again):
            raise outcomes.Inconclusive(f"{answer.exchange.line} gave no readable listing once", "LIST-1")
        received = shown(answer.body.decode("utf-8", "replace"))
        raise outcomes.Failed(f"a listing in spite of {asked_for(answer)}", received, answer)
    nothing_left_out(steady, found, answer, anew)


def outcome(answer: Answer, steady: frozenset[int]) -> str:
    """What is observed of the answer to a query: its status, and whether it is a page without the orders `steady`."""
    bare = answer.status == 200 and answer.listing is None and not shows(answer, steady)
    return "200 without orders" if bare else str(answer.status or "no answer")


def shows(answer: Answer, steady: frozenset[int]) -> bool:
    """Whether a 200 that is not a readable listing may still be one, judging by its media type, or by most of the ids
    `steady`: a firewall may answer 200 to say that it has refused a query."""
    if answer.media_type == "application/json" or answer.media_type.endswith("+json"):
        return True
    numbers = frozenset(re.findall(r"(?<![\w.-])-?[0-9]+(?![\w.])", answer.body.decode("utf-8", "replace")))
    return 2 * sum(str(order) in numbers for order in steady) > len(steady)
