"""ERR: what a refusal looks like (specification, sections 2 and 7). It is judged on every exchange of the run, too; the
checks here make sure that there is something to judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import credentials, invalid_keys
from conformance.checks.clients import BROWSER, NAMES_OTHERS, NAMES_PROBLEMS, SCRIPT
from conformance.contract.jsontext import NotJson, parse
from conformance.target import Mode, Secret
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, Allowed, Request


def refused_listings(api: Api, key: Secret) -> list[Answer]:
    """Listings without key, also as a browser and its scripts ask for them, and with wrong keys: 401."""
    asked = [api.ask_list(NOBODY, headers=headers) for headers in ((), BROWSER, SCRIPT)]
    return refusals(api.send_all([*asked, *map(api.ask_list, invalid_keys.telling(key.reveal()))]), 401)


def refused_cancels(api: Api, key: Secret) -> list[Answer]:
    """Cancels of absent orders: without key and with a wrong one, 401; with the key, also as a browser and its scripts
    ask, and without Accept, 404."""
    first, second = api.absent(2)
    wrong = (NOBODY, invalid_keys.telling(key.reveal())[0])
    unauthorised = api.send_all(api.ask_cancel(first, who) for who in wrong)
    asked = list(map(api.ask_cancel, (first, second, -first)))
    asked += [api.ask_cancel(first, headers=headers) for headers in (BROWSER, SCRIPT)]
    asked.append(api.without_accept().ask_cancel(first))
    not_found = api.send_all(asked)
    return refusals(unauthorised, 401) + refusals(not_found, 404)


def refusals(answers: list[Answer], expected: int) -> list[Answer]:
    """The answers, each of which must be the `expected` 401 or 404: a step for what is then demanded of them."""
    owners = {401: ["AUTH-2", "AUTH-3"], 404: ["CANCEL-5"]}[expected]
    for answer in answers:
        verify.step(answer, expected, *owners)
    return answers


@requirement("ERR-1")
def test_refused_listing_is_an_error(api: Api, key: Secret) -> None:
    """Has listings refused with 401: each body is an Error, as application/json, also for a client that accepts problem
    details as well. A client that accepts only XML may be told 406 instead."""
    verify.meets("ERR-1", *refused_listings(api, key), api.send(api.ask_list(NOBODY, headers=NAMES_PROBLEMS)))
    for_others(api, api.ask_list(NOBODY, headers=NAMES_OTHERS), 401)


@requirement("ERR-1", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_refused_cancel_is_an_error(api: Api, key: Secret) -> None:
    """Has cancels refused with 401 and 404: each body is an Error, as application/json, also for a client that accepts
    problem details as well. A client that accepts only XML may be told 406 instead."""
    refused = refused_cancels(api, key)
    absent = api.send(api.ask_cancel(api.absent(anew=False)[0], headers=NAMES_PROBLEMS))
    verify.meets("ERR-1", *refused, *refusals([absent], 404))
    for_others(api, api.ask_cancel(api.absent(anew=False)[0], headers=NAMES_OTHERS), 404)


def for_others(api: Api, request: Request, status: int) -> None:
    """Send a request of a client that accepts no JSON, and demand an Error if it gets this status."""
    answer = api.send(replace(request, allowed=Allowed.ANY_4XX))
    if answer.status == status:
        verify.meets("ERR-1", answer)


@requirement("ERR-1", mode=Mode.FULL, pending=1)
def test_second_cancel_with_404_is_an_error(api: Api, orders: Orders) -> None:
    """Cancels an order twice: if the second answer is 404, its body is an Error."""
    (order,) = orders.take_listed(pending=1).pending
    verify.step(api.cancel(order), 204, "CANCEL-1")
    second = verify.settled(api.cancel(order, allowed=Allowed.ANY_4XX))
    if second.status not in (401, 404):
        raise outcomes.Excluded(
            f"a second cancel is answered {second.status} here, for which the specification shows no body"
        )
    verify.meets("ERR-1", second)


@requirement("ERR-2")
def test_status_of_refused_listing(api: Api, key: Secret) -> None:
    """Has listings refused with 401: `status` in the body is 401."""
    same_status_inside(refused_listings(api, key))


@requirement("ERR-2", mode=Mode.GUARDED)
def test_status_of_refused_cancel(api: Api, key: Secret) -> None:
    """Has cancels refused with 401 and 404: `status` in the body equals the HTTP status."""
    same_status_inside(refused_cancels(api, key))


def same_status_inside(answers: list[Answer]) -> None:
    """Demand that `status` in each body is the status of the answer."""
    for answer in answers:
        if "ERR-2" not in answer.exchange.findings:
            raise outcomes.Inconclusive(f"{answer.exchange.line} gave no Error with an integer status", "ERR-1")
    verify.meets("ERR-2", *answers)


@requirement("ERR-3")
def test_codes_of_refused_listings(api: Api, key: Secret) -> None:
    """Has listings refused several times: `code` is not empty, and does not vary."""
    steady(refusals(api.send_all([api.ask_list(NOBODY)] * 3), 401))
    # With a wrong key it is another condition, which may have another code.
    steady(refusals(api.send_all(map(api.ask_list, invalid_keys.telling(key.reveal()))), 401))


@requirement("ERR-3", mode=Mode.GUARDED)
def test_codes_of_refused_cancels(api: Api) -> None:
    """Has cancels of different absent orders refused: `code` is not empty, and is the same for the same condition on
    both operations."""
    absent = api.absent(3)
    steady(refusals(api.send_all(api.ask_cancel(order) for order in absent), 404))
    without_key = api.send_all([*(api.ask_cancel(order, NOBODY) for order in absent), api.ask_list(NOBODY)])
    steady(refusals(without_key, 401))


def steady(answers: list[Answer]) -> None:
    """Demand one `code` in answers to the same condition, and texts that are not empty."""
    codes = {}
    for answer in answers:
        code = code_in(answer.body)
        if code is None:
            raise outcomes.Inconclusive(f"{answer.exchange.line} gave no Error with a code", "ERR-1")
        # As it is on record, which is all that an audit has: codes that hold other parts of the key are alike there.
        codes[code_in(answer.exchange.raw_body) or code] = answer
    verify.meets("ERR-3", *answers)
    if len(codes) > 1:
        raise outcomes.Failed(
            "the same code for the same condition", f"the codes {', '.join(map(repr, codes))}", *codes.values()
        )


def code_in(body: bytes) -> str | None:
    """The `code` of an Error; None if there is none that is a string."""
    try:
        found = parse(body).value
    except NotJson:
        return None
    code = found.get("code") if isinstance(found, dict) else None
    return code if isinstance(code, str) else None


@requirement("ERR-4")
def test_refused_listing_reveals_nothing(api: Api, key: Secret) -> None:
    """Has listings refused in many ways, some with the key in the wrong place: no key, stack trace or path in the
    answers."""
    tried = [
        NOBODY,
        *credentials.misplaced(key.reveal())[:6],
        *credentials.in_query(key.reveal())[:2],
        *credentials.malformed(key.reveal()),
    ]
    reveals_nothing(api.send_all(api.ask_list(who) for who in tried), "AUTH-2")


@requirement("ERR-4", mode=Mode.GUARDED)
def test_refused_cancel_reveals_nothing(api: Api) -> None:
    """Has cancels of absent orders and of malformed ids refused: no key, stack trace or path in the answers."""
    (order,) = api.absent()
    odd = [f"{order}abc", "abc", "9" * 200, "%00", "%F0%28%8C%28", f"{order}%27"]
    asked = [api.ask_cancel(order), *(api.ask_cancel(text, allowed=Allowed.OPEN) for text in odd if api.permits(text))]
    reveals_nothing(api.send_all(asked), "CANCEL-5")


@requirement("ERR-4", mode=Mode.FULL, shipped=1)
def test_conflict_reveals_nothing(api: Api, orders: Orders) -> None:
    """Cancels a shipped order: no key, stack trace or path in the 409."""
    (order,) = orders.take_listed(shipped=1).shipped
    reveals_nothing([api.cancel(order)], "CANCEL-3")


def reveals_nothing(answers: list[Answer], owner: str) -> None:
    """Demand that no error shows what it should not. `owner` is the requirement to look at if nothing was refused."""
    errors = [answer for answer in answers if "ERR-4" in verify.settled(answer).exchange.findings]
    if not errors:
        raise outcomes.Inconclusive("nothing was refused", owner)
    verify.meets("ERR-4", *errors)


@requirement("ERR-5", mode=Mode.FULL, shipped=1)
def test_conflict_body_is_json(api: Api, orders: Orders) -> None:
    """Cancels a shipped order: the body of the 409, if there is one, is JSON."""
    (order,) = orders.take_listed(shipped=1).shipped
    answer = api.cancel(order)
    verify.step(answer, 409, "CANCEL-3")
    verify.meets("ERR-5", answer)
