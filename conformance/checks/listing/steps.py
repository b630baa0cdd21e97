"""What several checks of the listing do."""

from __future__ import annotations

from collections.abc import Sequence

from conformance import verify
from conformance.api import Api
from conformance.target import Mode, Target
from conformance.transport.answer import Answer


def not_made_up(api: Api, order: int, target: Target) -> None:
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


def none_missing(api: Api, placed: list[int], state: str, answer: Answer, target: Target) -> None:
    """Demand that the listing shows each of `placed`, which are "pending" or "shipped". Raises Inconclusive where the
    provider may have made up the first that it does not show."""
    found = verify.listing(answer)
    absent = [order for order in placed if order not in found.by_id]
    if not absent:
        return
    if len(absent) <= found.without_id:
        owner = "LIST-2" if found.odd_ids else None
        raise verify.Inconclusive(f"order {absent[0]} is not listed by id, but {verify.without_ids(found)}", owner)
    not_made_up(api, absent[0], target)
    raise verify.Failed(
        f"every order placed, among them the {len(placed)} that the suite was given as {state}",
        f"{found.size} without order {', '.join(map(str, absent[:5]))}",
        answer,
    )
