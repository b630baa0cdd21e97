"""What several checks of the listing do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse

from conformance import verify
from conformance.api import Api
from conformance.checks.many import with_listings
from conformance.contract.transitions import State
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.retries import turned_away


def known_to_cancelling(api: Api, order: int, target: Target) -> None:
    """Raise Inconclusive where cancelling, if it may be tried, does not know an order either that the listing has left
    out: the state provider may have made it up."""
    if target.mode is Mode.FULL and verify.settled(api.cancel(order)).status == 404:
        raise verify.unknown(order)


def still_there(api: Api, order: int, shipped: Sequence[int], owner: str) -> Answer:
    """The cancel of an order that the listing has left out, after others were cancelled: it is still there. Raises
    Inconclusive where it is not, which is for `owner` to say."""
    probe = api.cancel(order)
    verify.step(probe, 409 if order in shipped else 204, owner)
    return probe


def listed_meanwhile(
    api: Api, chosen: list[int], left: list[int], shipped: Sequence[int] = (), *, paged: bool = False
) -> None:
    """Cancel the orders `chosen` and list at once; demand the orders `left`, some of which are `shipped`. If this is
    about pages (`paged`), no more than were cancelled can be lost between them: more are for LIST-3 to say. A cancel of
    a shipped one, which is refused, is under way as well."""
    asked = [*chosen, *shipped[:1]]
    answers = api.send_all(with_listings(api, asked), at_once=True)
    listings, cancels = answers[::2], answers[1::2]
    for answer in listings:
        found = answer.listing if answer.status == 200 else None
        gone = found.left_out(left) if found is not None else []
        if gone:
            probe = still_there(api, gone[0], shipped, "CANCEL-4 or CANCEL-8")
            if paged and len(gone) > len(chosen):
                raise verify.Inconclusive(f"{len(gone)} orders were not listed while others were cancelled", "LIST-3")
            raise verify.Failed(
                "every order placed and not cancelled, also while others are being cancelled",
                f"no order {gone[0]} in a listing that was asked for together with cancels of other orders",
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
    """Demand that the listing shows each of `placed`, which are in `state`. Raises Inconclusive where the
    provider may have made up the first that it does not show."""
    found = verify.listing(answer)
    absent = [order for order in placed if order not in found.by_id]
    if not absent:
        return
    if len(absent) <= found.without_id:
        raise verify.without_ids(found, before=f"order {absent[0]} is not listed by id, but ")
    known_to_cancelling(api, absent[0], target)
    raise verify.Failed(
        f"every order placed, among them the {len(placed)} that the suite was given as {state}",
        f"{found.size} without order {', '.join(map(str, absent[:5]))}",
        answer,
    )
