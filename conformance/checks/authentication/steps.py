"""What several checks of authentication do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from conformance import outcomes, verify
from conformance.api import Api
from conformance.transport.answer import Answer
from conformance.transport.endpoint import ServiceGone
from conformance.transport.request import STATUSES, Credential, Operation


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


def refused(api: Api, answers: Sequence[Answer], *, since: str) -> None:
    """Demand a refusal of every request (`verify.refused`). What is neither listed nor a success is no matter of the
    credential if the key gets the same, as where a method is not allowed or listing is broken: HTTP-1 owns that."""
    try:
        verify.refused(answers, since=since)
    except outcomes.Failed:
        wrong = [answer for answer in answers if not verify.refusal(answer)]
        unsuccessful = not any(answer.succeeded for answer in wrong)
        got = {(answer.request.operation, answer.status) for answer in wrong}
        if unsuccessful and all(_everybody_gets(api, operation, status) for operation, status in got):
            raise outcomes.Inconclusive(f"{wrong[0].exchange.in_words}, and with the key, too", "HTTP-1") from None
        raise


def _everybody_gets(api: Api, operation: Operation, status: int | None) -> bool:
    """Whether this operation, which does not list this status, gets it with the key, too, where no order is at
    stake."""
    if status in STATUSES[operation]:
        return False
    with suppress(outcomes.Inconclusive, ServiceGone):
        answer = api.list() if operation is Operation.LIST else api.cancel(api.absent(anew=False)[0])
        return answer.status == status
    return False
