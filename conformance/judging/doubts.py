"""Doubts: what an answer says about requirements that its check does not test. Pure.

A check fails for its own subject only. But an answer may break another requirement, whose own checks found nothing
wrong. That requirement is then inconclusive: not failed, since the cause may lie elsewhere, and not passed either. It
fails if nothing required did, and the answer alone proves the breach (`PROVABLE`). Only clear cases count: answers to
well-formed requests, with a listed status (others are for HTTP-1), about orders to which nothing was done before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from conformance.contract.transitions import CANCELLING
from conformance.transport.answer import Answer
from conformance.transport.request import STATUSES, Allowed, Operation

#: The requirements that can be doubted, each with the reason why the answer should have been different.
ROWS = {
    "AUTH-1": "the key is valid",
    "AUTH-2": "there is no Authorization header",
    "AUTH-3": "the key is invalid",
    "AUTH-4": "there is no bearer token in Authorization",
    "LIST-3": "it was given to this run, which had done nothing to it",
    "CANCEL-1": "the order was given to this run as pending, and nothing had been done to it",
    "CANCEL-3": "the order was given to this run as shipped, and nothing had been done to it",
    "CANCEL-5": "no such order exists",
}
#: Those that a single answer can prove broken, each with what was expected: somebody was let in without a valid key, a
#: shipped order was cancelled, an order exists that a listing lacked, or an order could be cancelled after its cancel
#: had been refused.
PROVABLE = {
    "AUTH-2": "401",
    "AUTH-3": "401",
    "LIST-3": "each order in the listing",
    "CANCEL-1": "204",
    "CANCEL-3": "409",
}
#: Other requirements that may be the cause: if one of these failed, the doubt is likely to be its consequence.
CAUSES = {
    "AUTH-1": ("AUTH-6",),
    "AUTH-2": ("AUTH-6",),
    "AUTH-3": ("AUTH-6",),
    "AUTH-4": ("AUTH-2", "AUTH-3", "AUTH-6"),
    "LIST-3": ("AUTH-5", "LIST-2", "LIST-5", "LIST-8", "LIST-9", "CANCEL-8", "CANCEL-9"),
    "CANCEL-1": ("AUTH-5", "LIST-9", "CANCEL-8", "CANCEL-9", "CANCEL-10"),
    "CANCEL-3": ("LIST-9", "CANCEL-8", "CANCEL-9", "CANCEL-10"),
    "CANCEL-5": ("CANCEL-9", "CANCEL-10"),
}


class Doubt(NamedTuple):
    """A requirement that must not pass, the reason, and whether the answer alone proves that it is broken."""

    requirement: str
    reason: str
    proven: bool = False


def doubts(answer: Answer, missed: Collection[int] = (), denied: Collection[str] = ()) -> Iterator[Doubt]:
    """The doubts that this answer raises. `missed` are orders that an earlier listing lacked, `denied` the ids of
    pending orders whose cancel was refused earlier."""
    listed = STATUSES.get(answer.request.operation, frozenset())
    credential = answer.request.credential
    # An invalid key stays invalid whatever else about the request is open; and no earlier cancel makes a valid one
    # invalid.
    judged = answer.request.allowed is Allowed.LISTED or credential.allows is not Allowed.LISTED
    judged |= answer.request.allowed is Allowed.ANY_4XX and bool(answer.before) and answer.status == 401
    if answer.status not in listed or not judged:
        return
    requirement = _credentials(answer)
    if credential.valid and answer.request.operation is Operation.CANCEL and answer.status != 401:
        due = CANCELLING[answer.before] if answer.before else None
        requirement = due.owner if due is not None and answer.status not in due.statuses else None
    if requirement is not None:
        reason = f"{answer.exchange.in_words}, although {ROWS[requirement]}"
        yield Doubt(requirement, reason, proven=requirement in PROVABLE and answer.succeeded)
    if not credential.valid:  # what strangers are shown is for AUTH to judge
        return
    # One that was placed anew since then is another: to that nothing had been done.
    if answer.status == 204 and answer.request.order_id in denied and answer.before is None:
        reason = f"order {answer.request.order_id} was cancelled only when it was asked for again, although"
        yield Doubt("CANCEL-1", f"{reason} {ROWS['CANCEL-1']}", proven=True)
    there = [order for order in missed if _shows(answer, order)]
    if there:
        reason = f"order {there[0]} was left out of a listing, and is there later, although {ROWS['LIST-3']}"
        yield Doubt("LIST-3", reason, proven=True)
    elif answer.lacking:
        reason = f"order {answer.lacking[0]} is not in the listing, although {ROWS['LIST-3']}"
        yield Doubt("LIST-3", f"{reason}; what was done to another may have removed it")


def _shows(answer: Answer, order: int) -> bool:
    """Whether this answer shows that the order exists: it lists it, or has just cancelled or refused it."""
    if answer.listing is not None:
        return order in answer.listing.by_id
    return answer.request.order_id == str(order) and answer.status in (204, 409)


def _credentials(answer: Answer) -> str | None:
    """The requirement that the status of `answer` breaks for its credential, whatever was requested."""
    credential = answer.request.credential
    if credential.valid:
        return "AUTH-1" if answer.status == 401 else None
    if answer.status == 401:
        return None
    if credential.undefined or credential.malformed:
        return "AUTH-4"
    if not credential.headers:
        return "AUTH-2"
    name, value = credential.headers[0]
    scheme = value.partition(" ")[0] if name == "Authorization" else ""
    if scheme == "Bearer":
        return "AUTH-3"
    return "AUTH-4" if scheme.lower() != "bearer" else None  # the scheme in any case is AUTH-8's
