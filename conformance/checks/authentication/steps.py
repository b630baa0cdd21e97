"""What several checks of authentication do."""

from __future__ import annotations

from collections.abc import Iterable

from conformance import outcomes, verify
from conformance.api import Api
from conformance.transport.answer import Answer
from conformance.transport.request import Credential


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
