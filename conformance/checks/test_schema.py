"""Requests generated from the OpenAPI document: ids, header fields and query parameters that nobody thought of.

Schemathesis generates them from the shipped document (`generation`); the suite's own client sends them, so the guard
decides what may go out, and whatever it refuses is left out.

    generated ──▶ guard ──▶ client ──▶ judged by level

What is well-formed must be answered as the contract says; of the rest no more is demanded than CANCEL-11 and LIST-6
do, and the statuses are observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.budgets import Budget
from conformance.check import Check, requirement
from conformance.checks import generation
from conformance.checks.cancelling.steps import gets, gets_client_error
from conformance.checks.generated_requests import FAR, SOON, GeneratedRequest, topic_of
from conformance.checks.listing.steps import all_shown, listed_throughout, outcome
from conformance.contract.listing import Listing
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.guard import readings
from conformance.transport.request import NOBODY, Allowed

#: How many draws are made while nothing that was drawn may be sent.
DRAWS = 5


# --- what may be sent, and what it is


def out_of_reach(api: Api, found: Listing, segment: str) -> bool:
    """Whether a cancel of this segment can hit no order, neither one that is there nor one of the next to come."""
    top = max((order for order in found.ids if 0 <= order < FAR), default=0)
    numbers = readings(segment)
    near = {abs(number) for number in numbers} | {number % 2**31 for number in numbers}
    return api.permits(segment) and not any(top < number <= top + SOON for number in near)


def statuses(answers: list[Answer]) -> list[str]:
    """The statuses of several answers, each once."""
    return sorted({str(answer.status or "no answer") for answer in answers})


# --- the checks


#: The kinds of requests that each check sends, so that they can be generated ahead.
GENERATED = {
    "schema.generated_queries_do_not_shrink": ("queries",),
    "schema.generated_absent_orders_are_not_found": ("far orders",),
    "schema.generated_malformed_ids_are_client_errors": ("malformed ids",),
    "schema.generated_requests_get_listed_statuses": ("listings", "far orders"),
}


class GeneratedRequests:
    """The generated requests of one check: the same for the same seed, and for all checks of one requirement."""

    def __init__(self, seed: int, target: str, requirement: str, budget: Budget) -> None:
        self._derived = (seed, target, requirement)
        self._budget = budget
        self._drawn: Counter[str] = Counter()

    def __call__(self, kind: str) -> Sequence[GeneratedRequest]:
        """Requests of a kind, others each time."""
        self._drawn[kind] += 1
        return generation.requests(*self.arguments(kind, self._drawn[kind]))

    def arguments(self, kind: str, draw: int = 1) -> tuple[str, Budget, int]:
        """What `generation.requests` is given for the draw with this number."""
        return kind, self._budget, generation.derived_seed(*self._derived, kind, draw)


@pytest.fixture
def generated(own_check: Check, target: Target, budget: Budget, seed: int) -> GeneratedRequests:
    """Generated requests, as many as the budget of the run has."""
    return GeneratedRequests(seed, target.name, own_check.requirement, budget)


@requirement("LIST-6")
def test_generated_queries_do_not_shrink(
    api: Api, orders: Orders, generated: GeneratedRequests, observe: Observations
) -> None:
    """Lists with query parameters and values that are made up, while pending and shipped orders of the suite are in the
    listing, if it can have some placed: what is listed before and after is listed in between. An answer other than 200
    is observed, and so is the page of a firewall."""
    orders.add(pending=2, shipped=2)
    before = api.listing()
    answers = api.send_all(api.ask_list(query=request.query) for request in generated("queries"))
    steady = listed_throughout(before, api.listing())
    verify.served(answers)
    for answer in answers:
        all_shown(answer, steady)
    seen = sorted({outcome(answer, steady) for answer in answers})
    observe("unknown query parameters", {"made up": seen}, *answers[:1])


def first_draw(
    api: Api, generated: GeneratedRequests, kind: str, *, enough: Callable[[list[str]], bool] = bool
) -> list[str]:
    """Path segments of a kind that can hit no order, of the first draw that leaves `enough` of them, after reading the
    listing. Chance may have a draw hold none, and a status must not depend on chance."""
    found = api.listing()
    segments: list[str] = []
    for _ in range(DRAWS):
        segments = [request.segment for request in generated(kind) if out_of_reach(api, found, request.segment)]
        if enough(segments):
            break
    return segments


@requirement("CANCEL-5", mode=Mode.GUARDED)
def test_generated_absent_orders_are_not_found(api: Api, orders: Orders, generated: GeneratedRequests) -> None:
    """Cancels orders that do not exist, with ids made up from the schema of orderId, near both ends of int64 and
    between: 404 every time."""
    segments = first_draw(api, generated, "far orders")
    if not segments:
        raise outcomes.Excluded("the listing leaves no room for made-up ids that no order could be mistaken for")
    for answer in api.send_all(api.ask_cancel(segment) for segment in segments):
        gets(orders, answer, 404, since="no such order exists")


@requirement("CANCEL-11", mode=Mode.GUARDED)
def test_generated_malformed_ids_are_client_errors(
    api: Api, orders: Orders, generated: GeneratedRequests, observe: Observations
) -> None:
    """Cancels ids made up so as not to fit the schema of orderId, such that no order could be meant: a 4xx to those
    that are no integers. What integers outside int64 and unusual spellings get is observed."""

    def enough(segments: list[str]) -> bool:
        return any(topic_of(segment) == "malformed ids" for segment in segments)

    sent = first_draw(api, generated, "malformed ids", enough=enough)
    answers = api.send_all(api.ask_cancel(segment, allowed=Allowed.OPEN) for segment in sent)
    by_topic: dict[str, list[Answer]] = {}
    for segment, answer in zip(sent, answers, strict=True):
        by_topic.setdefault(topic_of(segment), []).append(answer)
    for topic in sorted(by_topic):
        observe(topic, {"made up": statuses(by_topic[topic])}, *by_topic[topic][:1])
    malformed = by_topic.get("malformed ids", [])
    if not malformed:
        raise outcomes.Excluded("the listing leaves no room for malformed ids that no order could be mistaken for")
    for answer in malformed:
        gets_client_error(orders, answer)


@requirement("HTTP-1", mode=Mode.GUARDED)
def test_generated_requests_get_listed_statuses(api: Api, generated: GeneratedRequests) -> None:
    """Lists, and cancels orders that do not exist, with header fields made up that no service has to mind, with and
    without the key: statuses that the operation lists."""
    listings, cancels = generated("listings"), generated("far orders")
    found = api.listing()
    asked = [api.ask_list(headers=request.headers) for request in listings]
    permitted = [request for request in cancels if out_of_reach(api, found, request.segment)]
    for place, request in enumerate(permitted):
        asked.append(api.ask_cancel(request.segment, NOBODY if place % 3 == 2 else api.key, headers=request.headers))
    verify.meets("HTTP-1", *api.send_all(asked))
