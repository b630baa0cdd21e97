"""What several checks of authentication do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.transport.answer import Answer
from conformance.transport.endpoint import ServiceGone
from conformance.transport.request import NOBODY, STATUSES, Credential, Operation


def accepted(answer: Answer) -> None:
    """Demand that the valid key was not refused, whatever else the answer is."""
    if verify.settled(answer).status == 403:
        verify.not_sporadic(answer, 200, 204, 404, 409)
    if answer.status in (401, 403):
        raise outcomes.Failed("the valid key accepted", verify.describe(answer), answer)


def cancel_each(api: Api, orders: Iterable[int], tried: Iterable[Credential]) -> list[Answer]:
    """Cancel each of `orders` with each of the credentials `tried`."""
    tried = list(tried)
    return api.send_all(api.ask_cancel(order, credential) for order in orders for credential in tried)


def refused(api: Api, answers: Sequence[Answer], *, since: str, orders: Orders | None = None) -> None:
    """Demand a refusal of every request (`verify.refused`), unless the key gets the same: that is no matter of the
    credential (`same_with_the_key`, which has `orders` for cancels)."""
    try:
        verify.refused(answers, since=since)
    except outcomes.Failed:
        same_with_the_key(api, [answer for answer in answers if not verify.refusal(answer)], orders)
        raise


def refused_as_invalid(api: Api, answers: Sequence[Answer], *, since: str, orders: Orders | None = None) -> None:
    """`refused`, for invalid keys. A failure is certain if it comes again, and the same request is refused without any
    key: else whoever is let in needs none (AUTH-2)."""
    try:
        refused(api, answers, since=since, orders=orders)
    except outcomes.Failed as failure:
        with suppress(outcomes.Inconclusive, ServiceGone):
            let_in_again = not verify.refusal(failure.answers[0].repeat())
            without = replace(failure.answers[0].request, credential=NOBODY)
            failure.certain = let_in_again and verify.refusal(api.send(without))
        raise


def same_with_the_key(api: Api, wrong: Sequence[Answer], orders: Orders | None) -> None:
    """Raise Inconclusive if none of these answers is a success, and the key gets the same, as where a method is not
    allowed, an operation is missing, or listing is broken."""
    if any(answer.succeeded for answer in wrong):
        return
    got = {(answer.request.operation, answer.status) for answer in wrong}
    owners = [_owner(api, operation, status, orders) for operation, status in got]
    if None not in owners:
        raise outcomes.Inconclusive(f"{wrong[0].exchange.in_words}, and with the key, too", *filter(None, owners))


def _owner(api: Api, operation: Operation, status: int | None, orders: Orders | None) -> str | None:
    """The requirement that owns this status of an operation, if the key gets it, too: HTTP-1 where the operation does
    not list it; CANCEL-1 where it does, and the cancel of a pending order gets it. None if nothing tells."""
    unlisted = status not in STATUSES[operation]
    if operation is Operation.CANCEL and orders is not None and orders.pending_gets(status):
        return "HTTP-1" if unlisted else "CANCEL-1"
    with suppress(outcomes.Inconclusive, ServiceGone):
        if unlisted:
            answer = api.list() if operation is Operation.LIST else api.cancel(api.absent(anew=False)[0])
            return "HTTP-1" if answer.status == status else None
    return None
