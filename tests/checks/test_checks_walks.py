"""Walks against a service in memory, right and with faults that take several steps to show."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest
from built import VALID, answered, target

from conformance import outcomes
from conformance.api import Api, Orders, Taken
from conformance.budgets import BUDGETS, Budget
from conformance.check import all_checks
from conformance.checks import model
from conformance.checks.model import Kind, Step
from conformance.checks.search import Search
from conformance.checks.test_model import Shared, Walks
from conformance.target import Mode, Shell
from conformance.transport.answer import Answer
from conformance.transport.curl import curl
from conformance.transport.endpoint import ServiceGone
from conformance.transport.evidence import Trouble
from conformance.transport.guard import Guard
from conformance.transport.request import Request

#: The checks that share the walks, by their requirements.
CHECKS = {check.requirement: check for check in all_checks() if check.id.startswith("model.")}


class Service:
    """A service in memory, its client and its state provider in one. Faults are put in by replacing methods."""

    def __init__(self) -> None:
        self.guard = Guard(Mode.FULL)
        self.states: dict[int, str] = {}
        self.requests: list[str] = []
        self.sent: list[Answer] = []
        self.cancelled: list[int] = []
        self.refused: list[int] = []
        self.keyless: list[int] = []
        self.lists = 0
        self.taken = 0
        self.supply = 10**9
        self.used = False  # whether a request comes on a connection that carried others

    # --- as a client

    def send(self, request: Request) -> Answer:
        number = int(request.order_id or 0)
        self.requests.append(f"{request.method} {request.path} {request.credential.valid}")
        if request.method == "GET":
            self.lists += 1
            answer = answered(request, 200, json.dumps(self.listing()).encode())
            self.guard.saw_listing(answer.listing.ids if answer.listing else ())
        else:
            status = self.cancel(number) if request.credential.valid else self.refuse(number)
            body = {"code": "x", "message": "x", "status": status}
            answer = answered(request, status, b"" if status == 204 else json.dumps(body).encode())
        answer.sender = self.send
        self.sent.append(answer)
        return answer

    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
        return [self.send(request) for request in requests]

    # --- as a service

    def listing(self) -> list[dict[str, Any]]:
        return [{"id": number, "quantity": 1} for number, state in self.states.items() if state != "cancelled"]

    def cancel(self, number: int) -> int:
        state = self.states.get(number)
        if state == "pending":
            self.states[number] = "cancelled"
            self.cancelled.append(number)
            return 204
        if state == "shipped":
            self.refused.append(number)
            return 409
        return 404

    def refuse(self, number: int) -> int:
        self.keyless.append(number)
        return 401

    # --- as a provider

    by_hand = False

    def take(self, pending: int = 0, shipped: int = 0) -> Taken:
        if pending and shipped:  # the orders of a walk: what the faults count begins anew
            for journal in (self.cancelled, self.refused, self.keyless):
                journal.clear()
        self.supply -= pending + shipped
        if self.supply < 0:
            raise outcomes.Inconclusive("none left")
        ids = range(1001 + self.taken, 1001 + self.taken + pending + shipped)
        self.taken += len(ids)
        self.states |= {number: "pending" if place < pending else "shipped" for place, number in enumerate(ids)}
        return Taken(list(ids[:pending]), list(ids[pending:]))


def api(service: Service) -> Api:
    return Api(cast(Any, service), VALID, random.Random(1))


def search(service: Service, budget: Budget = BUDGETS["standard"], seed: int = 1, **how: Any) -> Search:
    made = Search(api(service), cast(Orders, service), budget, seed=seed, **how)
    made.make()
    return made


def walks(service: Service, shared: Shared, **further: Any) -> Walks:
    judged, budget = target(mode=Mode.FULL, **further), BUDGETS["standard"]
    return Walks(shared, api(service), cast(Orders, service), judged, budget, 1, CHECKS["AUTH-1"], print)


def decide(found: Walks, owner: str) -> None:
    """What the check of the requirement `owner` does with the walks."""
    replace(found, check=CHECKS[owner]).decide()


class Lines:
    """Connections to a service in memory, one request at a time; the service is told of each. `carries` is how many
    requests each carries before it is closed."""

    def __init__(self, service: Service, carries: int = 10**9) -> None:
        self.service = service
        self.carries = carries
        self.opened = 0
        self.left = 0
        self.request: Request | None = None

    def connect(self) -> Lines:
        self.opened += 1
        self.left = self.carries
        return self

    def set_off(self, request: Request) -> None:
        assert self.request is None, "one request at a time"
        self.request = request

    def conclude(self) -> Answer:
        assert self.request is not None
        request, self.request = self.request, None
        self.left -= 1
        if self.left < 0:
            return answered(request, None, trouble=Trouble.CLOSED)
        self.service.used = self.left < self.carries - 1
        answer = self.service.send(request)
        self.service.used = False
        return answer

    def close(self) -> None:
        self.left = -1


OWNERS = (
    "AUTH-1", "AUTH-2", "AUTH-5", "AUTH-6", "LIST-3", "LIST-9", "CANCEL-1", "CANCEL-3", "CANCEL-4", "CANCEL-5",
    "CANCEL-6", "CANCEL-7", "CANCEL-8",
)  # fmt: skip


# --- a service that is right


@pytest.mark.parametrize("budget", ["quick", "standard"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_step", [False, True])
def test_nothing_is_found_in_a_correct_service(budget: str, seed: int, in_step: bool) -> None:
    found = search(Service(), BUDGETS[budget], seed, in_step=in_step)
    assert found.wrong is None
    assert found.ended is None
    assert found.judged >= set(OWNERS)


def test_cancelled_orders_may_stay_in_the_listing_and_be_refused_in_any_way() -> None:
    class Odd(Service):
        def listing(self) -> list[dict[str, Any]]:
            return [{"id": number} for number in self.states] + [{}]

        def cancel(self, number: int) -> int:
            again = self.states.get(number) == "cancelled"
            return (410, 409, 422, 400)[number % 4] if again else super().cancel(number)

    assert search(Odd()).wrong is None


def test_listings_without_ids_decide_nothing() -> None:
    class Nameless(Service):
        def listing(self) -> list[dict[str, Any]]:
            return [{} for element in super().listing()]

    found = walks(Nameless(), Shared())
    with pytest.raises(outcomes.Excluded, match="came to nothing that tests this"):
        decide(found, "LIST-3")
    decide(found, "CANCEL-8")


def test_the_same_seed_sends_the_same_requests() -> None:
    sent = []
    for seed in (7, 7, 8):
        service = Service()
        search(service, seed=seed)
        sent.append(service.requests)
    assert sent[0] == sent[1]
    assert sent[0] != sent[2]


def test_budgets_bound_the_requests() -> None:
    counts = []
    for budget in ("quick", "standard"):
        service = Service()
        search(service, BUDGETS[budget])
        counts.append((len(service.requests), service.taken))
    assert counts[0][0] < 80 < counts[1][0] < 400
    assert counts[0][1] <= 6 * 5
    assert counts[1][1] <= 6 * 15


# --- services that are wrong


def third_cancel_fails(service: Service, number: int) -> int:
    third = len(service.cancelled) % 3 == 2 and service.states.get(number) == "pending"
    service.cancelled += [0] * third
    return 409 if third else Service.cancel(service, number)


def cancel_after_refusal_takes_the_newest(service: Service, number: int) -> int:
    status = Service.cancel(service, number)
    if status == 204 and service.refused and service.refused[-1] > 0:
        service.refused.append(0)
        newest = max((order for order, state in service.states.items() if state == "pending"), default=number)
        service.states[newest] = "cancelled"
    return status


def returns_after_two_others(service: Service, number: int) -> int:
    status = Service.cancel(service, number)
    if status == 204 and len(service.cancelled) == 3:
        service.states[service.cancelled[0]] = "pending"
    return status


def second_refusal_ships_off(service: Service, number: int) -> int:
    if service.refused.count(number) == 2:
        return 404
    return Service.cancel(service, number)


def refuses_the_key_after_three_refusals(service: Service, number: int) -> int:
    return 401 if len(service.keyless) >= 3 else Service.cancel(service, number)


def finds_absent_after_two_cancels(service: Service, number: int) -> int:
    if number not in service.states and len(service.cancelled) >= 2:
        return 204
    return Service.cancel(service, number)


def refused_key_cancels_later(service: Service, number: int) -> int:
    if service.keyless and service.states.get(service.keyless[-1]) == "pending":
        service.states[service.keyless[-1]] = "cancelled"
    return Service.cancel(service, number)


FAULTS: dict[Callable[[Service, int], int], tuple[str, int]] = {
    third_cancel_fails: ("CANCEL-1", 3),
    cancel_after_refusal_takes_the_newest: ("CANCEL-8", 3),
    returns_after_two_others: ("CANCEL-6", 4),
    second_refusal_ships_off: ("CANCEL-4", 3),
    refuses_the_key_after_three_refusals: ("AUTH-6", 4),
    finds_absent_after_two_cancels: ("CANCEL-5", 3),
    refused_key_cancels_later: ("AUTH-5", 3),  # or 2, by the same order: from neither does leaving steps out lead on
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize(("seed", "in_step"), [(1, False), (2, True)])
def test_faults_of_several_steps_are_found_and_shortened(
    fault: Callable[[Service, int], int], seed: int, in_step: bool
) -> None:
    owner, steps = FAULTS[fault]
    service = Service()
    service.cancel = fault.__get__(service)  # type: ignore[method-assign]
    # Thorough: whether a smaller budget finds each of them hangs on what a version of Hypothesis draws.
    found = search(service, BUDGETS["thorough"], seed, in_step=in_step)
    assert found.wrong is not None
    assert found.wrong.owner == owner, str(found.wrong)
    assert len(found.wrong.steps) <= steps, [str(step) for step in found.wrong.steps]
    assert len(service.requests) < 1500


def test_a_listing_that_loses_an_order_after_cancels() -> None:
    class Loses(Service):
        def listing(self) -> list[dict[str, Any]]:
            whole = super().listing()
            return whole[:-1] if len(self.cancelled) >= 2 else whole

    found = search(Loses())
    assert found.wrong is not None
    assert found.wrong.owner == "LIST-3"
    assert found.wrong.steps[-1].kind is Kind.LIST
    assert "though it exists" in found.wrong.received


@pytest.mark.parametrize(("times", "owner"), [(1, None), (99, "LIST-9")])
def test_an_order_that_changes_while_it_is_only_read(
    times: int, owner: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where checks run side by side and it does not happen again, another check may have changed it."""
    monkeypatch.setattr(model, "TOURS", ((Step(Kind.LIST),) * 4,))

    class Changes(Service):
        def listing(self) -> list[dict[str, Any]]:
            return [each | {"quantity": min(self.lists // 3, times)} for each in super().listing()]

    few = replace(BUDGETS["quick"], walks=1, steps=4, shortening=9)
    alone, beside = (search(Changes(), few, in_step=in_step) for in_step in (False, True))
    assert alone.wrong is not None
    assert alone.wrong.owner == "LIST-9"
    assert (beside.wrong and beside.wrong.owner) == owner
    assert ("once" in str(beside.ended)) is (owner is None)


def test_two_of_two_cancels_at_once() -> None:
    class Both(Service):
        def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
            together = list(requests)
            before = dict(self.states)
            answers = []
            for request in together:
                self.states |= {number: state for number, state in before.items() if len(together) > 1}
                answers.append(self.send(request))
            return answers

    found = search(Both())
    assert found.wrong is not None
    assert found.wrong.owner == "CANCEL-7"
    assert len(found.wrong.steps) == 1


@pytest.mark.parametrize(("locked", "owner"), [((1,), None), ((0, 1), "CANCEL-3")])
def test_one_of_two_cancels_of_a_shipped_order_at_once_may_find_it_locked(
    locked: tuple[int, ...], owner: str | None
) -> None:
    class Locks(Service):
        def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
            together = list(requests)
            answers = super().send_all(together)
            if len(together) == 2:
                for place in locked:
                    answers[place] = answered(together[place], 423, b"")
            return answers

    service = Locks()
    walk = Search(api(service), cast(Orders, service), BUDGETS["standard"], seed=1)
    walk.play([Step(Kind.AT_ONCE, ("S", "S"))])
    assert (walk.wrong and walk.wrong.owner) == owner


def test_hypothesis_shortens_what_the_tour_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tour that is a listing only leaves it all to Hypothesis."""
    monkeypatch.setattr(model, "TOURS", ((Step(Kind.LIST),),))

    class Tires(Service):
        def cancel(self, number: int) -> int:
            status = super().cancel(number)
            if status == 204 and len(self.cancelled) == 3:
                self.states |= {order: "cancelled" for order, state in self.states.items() if state == "shipped"}
            return status

    found = search(Tires())
    assert found.wrong is not None
    assert found.wrong.owner == "CANCEL-8"
    assert 3 <= len(found.wrong.steps) <= 4


def test_a_fault_that_counts_over_all_walks_is_found_all_the_same() -> None:
    """Shortening cannot know the count, so more steps may be left than are needed."""

    class Counts(Service):
        cancels = 0

        def cancel(self, number: int) -> int:
            self.cancels += 1
            return 409 if self.cancels % 7 == 0 and self.states.get(number) == "pending" else super().cancel(number)

    found = search(Counts())
    assert found.wrong is not None
    assert found.wrong.owner == "CANCEL-1"
    assert "when asked again" in found.wrong.received


def test_a_key_that_stays_locked_out_is_reported_as_first_seen() -> None:
    class Locks(Service):
        refusals = 0

        def refuse(self, number: int) -> int:
            self.refusals += 1
            return 401

        def cancel(self, number: int) -> int:
            return 401 if self.refusals >= 3 else super().cancel(number)

        def send(self, request: Request) -> Answer:
            if request.method == "GET" and self.refusals >= 3:
                return replace(super().send(request), exchange=answered(request, 401, b"{}").exchange)
            return super().send(request)

    found = search(Locks())
    assert found.wrong is not None
    assert found.wrong.owner == "AUTH-6"
    assert sum(step.kind is Kind.KEYLESS for step in found.wrong.steps) == 3


def test_a_fault_that_shows_once_is_reported_as_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "TOURS", ())

    class Once(Service):
        def cancel(self, number: int) -> int:
            status = super().cancel(number)
            if status == 404 and number in self.states and not self.refused.count(-1):
                self.refused.append(-1)
                return 204
            return status

    shared = Shared()
    with pytest.raises(outcomes.Failed, match="which is cancelled"):
        decide(walks(Once(), shared), "CANCEL-6")
    # Another check whose requirement is to blame plays it again, in vain, and says what was seen.
    with pytest.raises(outcomes.Failed, match="which is cancelled"):
        decide(walks(Service(), shared), "CANCEL-6")


# --- one walk over one connection


class ForgetsOnUsedConnections(Service):
    def cancel(self, number: int) -> int:
        return 204 if self.used and self.states.get(number) == "pending" else super().cancel(number)


@pytest.mark.parametrize("in_step", [False, True])
def test_what_shows_on_a_used_connection_only(in_step: bool) -> None:
    service = ForgetsOnUsedConnections()
    assert search(service, in_step=in_step).wrong is None
    found = search(service, in_step=in_step, wire=Lines(service))
    assert found.wrong is not None
    assert found.wrong.owner == "CANCEL-6"
    assert found.wrong.kept
    assert len(found.wrong.steps) == 2


@pytest.mark.parametrize("in_step", [False, True])
@pytest.mark.parametrize("carries", [0, 1, 5, 10**9])
def test_a_connection_may_end_at_any_time(in_step: bool, carries: int) -> None:
    service = Service()
    lines = Lines(service, carries)
    found = search(service, in_step=in_step, wire=lines)
    assert (found.wrong, found.ended, lines.opened, lines.left) == (None, None, 1, -1)
    assert found.judged >= set(OWNERS)


class LetsAnyoneCancel(Service):
    def refuse(self, number: int) -> int:
        return self.cancel(number)


class Ends(Service):
    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
        if self.cancelled:
            raise ServiceGone("gone")
        return super().send_all(requests, at_once=at_once)


@pytest.mark.parametrize("service", [LetsAnyoneCancel(), Ends()])
def test_what_was_set_off_goes_on_record_whatever_the_other_walks_meet(service: Service) -> None:
    lines = Lines(service)
    found = search(service, in_step=True, wire=lines)
    assert found.wrong or found.ended
    assert lines.opened
    assert lines.request is None


def test_the_reader_is_told_of_the_connection() -> None:
    service, shared = ForgetsOnUsedConnections(), Shared()
    made = replace(walks(service, shared), wire=cast(Any, Lines(service)))
    decide(made, "AUTH-1")
    with pytest.raises(outcomes.Failed, match="on orders placed for them, all on one connection:"):
        decide(made, "CANCEL-6")


# --- what the checks make of it


def test_only_the_owner_fails_and_shows_steps_and_curl() -> None:
    service, shared = Service(), Shared()
    service.cancel = returns_after_two_others.__get__(service)  # type: ignore[attr-defined,method-assign]
    decide(walks(service, shared), "AUTH-1")
    with pytest.raises(outcomes.Failed) as raised:
        decide(walks(service, shared), "CANCEL-6")
    lines = raised.value.received.splitlines()
    assert lines[0].endswith("in these steps on orders placed for them:")
    steps = [line for line in lines if re.match(r"  \d+\. ", line)]
    assert steps[-1].endswith("204   <- here")
    assert len(steps) == len(lines) - 1 == 4
    assert raised.value.last
    shown = raised.value.answers[-1]
    assert shown is service.sent[-1]
    assert shown.status == 204
    told = [curl(answer.exchange, Shell()) for answer in raised.value.answers]
    assert len(told) == 4
    assert all(line.startswith("curl -sS -i -X DELETE -H") for line in told)


def test_what_a_walk_was_compared_with_is_no_step_of_it() -> None:
    """The answers that show a failure are those to the steps, in the order in which they were sent."""

    class CancelsWhatItRefuses(Service):
        def cancel(self, number: int) -> int:
            status = super().cancel(number)
            self.states |= {number: "cancelled"} if status == 409 else {}
            return status

    service = CancelsWhatItRefuses()
    with pytest.raises(outcomes.Failed) as raised:
        decide(walks(service, Shared()), "CANCEL-4")
    assert "placed just now, to compare: 409" in raised.value.received
    answers = raised.value.answers
    sent = [place for answer in answers for place, known in enumerate(service.sent) if known is answer]
    assert sent == sorted(sent)
    assert len(sent) == len(answers)
    named = {answer.exchange.order_id for answer in answers} - {None}
    (order,) = named
    assert answers[-1].listing is not None
    assert int(order) not in answers[-1].listing.by_id


def test_the_search_is_made_once() -> None:
    service, shared = Service(), Shared()
    for owner in OWNERS:
        decide(walks(service, shared), owner)
        if owner == OWNERS[0]:
            sent = len(service.requests)
    assert len(service.requests) == sent


@pytest.mark.parametrize(
    "error",
    [outcomes.Inconclusive("no answer"), outcomes.Excluded("cannot"), ServiceGone("gone")],
    ids=lambda error: type(error).__name__,
)
def test_what_keeps_the_suite_from_going_on_ends_the_checks_as_such(error: BaseException) -> None:
    class Stops(Service):
        def send(self, request: Request) -> Answer:
            if len(self.requests) == 40:
                raise error
            return super().send(request)

    service, shared = Stops(), Shared()
    for owner in ("AUTH-1", "CANCEL-8"):
        with pytest.raises(type(error), match=str(error)):
            decide(walks(service, shared), owner)
    assert len(service.requests) == 40


def test_statuses_of_no_operation_decide_nothing() -> None:
    class Breaks(Service):
        def cancel(self, number: int) -> int:
            return 500 if len(self.cancelled) == 2 else super().cancel(number)

    with pytest.raises(outcomes.Inconclusive, match=r"500.*\(see HTTP-1\)"):
        decide(walks(Breaks(), Shared()), "CANCEL-1")


def test_an_order_that_nobody_knows_may_be_the_providers_fault() -> None:
    class Unknown(Service):
        def take(self, pending: int = 0, shipped: int = 0) -> Taken:
            taken = super().take(pending, shipped)
            for number in (*taken.pending, *taken.shipped):
                del self.states[number]
            return taken

    with pytest.raises(outcomes.Inconclusive, match="provider"):
        decide(walks(Unknown(), Shared()), "CANCEL-1")


def test_static_lists_are_enough_for_a_walk() -> None:
    service, shared = Service(), Shared()
    service.by_hand = True
    service.supply = 4
    decide(walks(service, shared), "CANCEL-8")
    assert service.taken == 4
    assert shared.search is not None
    assert shared.search.judged >= set(OWNERS) - {"AUTH-5"}


def test_a_static_list_that_is_wrong_is_no_fault_of_the_service() -> None:
    class Misled(Service):
        by_hand = True

        def take(self, pending: int = 0, shipped: int = 0) -> Taken:
            taken = super().take(pending, shipped)
            self.states |= dict.fromkeys(taken.pending, "shipped")
            return taken

    with pytest.raises(outcomes.Inconclusive, match="are the lists right"):
        decide(walks(Misled(), Shared()), "CANCEL-1")


def test_nothing_is_written(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    search(Service())
    assert list(tmp_path.iterdir()) == []
