"""AUTH-6: each request on its own, whatever came before it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from itertools import filterfalse

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import credentials, invalid_keys
from conformance.checks.authentication.steps import accepted
from conformance.target import Mode, Secret
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, Allowed, Request
from conformance.transport.retries import turned_away
from conformance.transport.wire import Wire

#: Refusals in a row after which the valid key must still be good: with a wrong key, and then without one.
WRONG, KEYLESS = 20, 10
#: How many of each must be refused before one that is accepted can be blamed on the refusals.
FEW = 8
#: How often something is tried again that may fail only now and then.
TRIES = 4
#: Seconds between the requests on one connection, at each try: a service may close idle ones just then, at whichever.
PAUSES = (0.0, 0.1, 0.03, 0.4)
#: Why what follows the valid key on a connection is refused.
LENT = "this request has no valid key, whatever the connection carried before"


@requirement("AUTH-6")
def test_connection_lends_no_key_to_listing(api: Api, wire: Wire, key: Secret, observe: Observations) -> None:
    """On one kept-alive connection: list with the key, without, with a wrong one, with it again, and in turn several
    times. Only the requests with the key are answered with a listing. One of the wrong ones is the key in the other
    case: some parsers keep the header fields of a connection, and find them again whatever their case."""
    rounds = [NOBODY, *invalid_keys.telling(key.reveal(), invalid_keys.OTHER_CASE)]
    asked = [request for wrong in rounds for request in (api.ask_list(), api.ask_list(wrong), api.ask_list())]
    answers, kept = in_turn(wire, asked)
    for first, refusal, again in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
        verify.step(first, 200, "LIST-1")
        if verify.settled(refusal).status != 401:
            refused_alone(api, [refusal.request] * TRIES)
        verify.refused([refusal], since=LENT, after=first)
        accepted(again)
    observe("kept-alive connections", "kept open" if kept else "closed by the service", answers[-1])


def in_turn(wire: Wire, requests: list[Request]) -> tuple[list[Answer], bool]:
    """The answers to requests that change nothing if all is well, which follow each other on one connection, or on a
    new one after the service has closed it; and whether it is kept open for the last one.

    Where it closes one just as a request is on its way, as is its right at any time (RFC 9112 section 9.5), nobody can
    tell whether that arrived: then all begins anew, with pauses in which a closing shows before the next request.
    Raises Inconclusive where that does not help.
    """
    for pause in PAUSES:
        answers: list[Answer] = []
        with wire.connect() as connection:
            for request in requests:
                time.sleep(pause)
                kept = len(answers) == len(requests) - 1 and connection.left_open()
                answers.append(connection.exchange(request))
                if answers[-1].exchange.closed:
                    break
            else:
                return answers, kept
    raise outcomes.Inconclusive(
        f"{answers[-1].exchange.line}: each of {len(PAUSES)} connections was closed, and a further request unanswered",
        "HTTP-2",
    )


@requirement("AUTH-6", mode=Mode.GUARDED)
def test_malformed_id_lends_no_key(api: Api, wire: Wire) -> None:
    """On one kept-alive connection: cancel an id that is no integer with the key, which takes another way through a
    service than others, and list without the key, and with it. Only with it there is a listing."""
    malformed = api.ask_cancel(f"{api.absent()[0]}abc", allowed=Allowed.OPEN)
    (before, refusal, _, again), _ = in_turn(wire, [malformed, api.ask_list(NOBODY), malformed, api.ask_list()])
    if verify.settled(refusal).status != 401:
        refused_alone(api, [refusal.request] * TRIES)
    verify.refused([refusal], since=LENT, after=before)
    accepted(again)


@requirement("AUTH-6", mode=Mode.FULL, pending=2)
def test_connection_lends_no_key_to_cancelling(api: Api, wire: Wire, orders: Orders, key: Secret) -> None:
    """On a kept-alive connection that carried the valid key just before: cancels of pending orders without a key, and
    with a wrong one, are refused."""
    first, second = orders.take_listed(pending=2).pending
    for order, wrong in ((first, NOBODY), (second, invalid_keys.telling(key.reveal())[0])):
        (before, refusal), _ = in_turn(wire, [api.ask_list(), api.ask_cancel(order, wrong)])
        verify.step(before, 200, "LIST-1")
        if verify.settled(refusal).status != 401:
            other = second if order == first else first
            refused_alone(api, [api.ask_cancel(other, wrong)] * TRIES)
        verify.refused([refusal], since=LENT, after=before)


def refused_alone(api: Api, requests: list[Request]) -> None:
    """See that the same requests are refused on connections of their own: else no connection lent them a key."""
    for answer in api.send_all(requests):
        verify.step(answer, 401, "AUTH-2", "AUTH-3")


@requirement("AUTH-6")
def test_cookies_lend_no_key(api: Api) -> None:
    """Lists with the key, and without one but with the cookies that came with the answer: 401. Where none came there is
    nothing to lend one."""
    answer = api.list()
    verify.step(answer, 200, "LIST-1")
    lent_nothing(api, [answer], [api.ask_list(NOBODY)])


@requirement("AUTH-6", mode=Mode.GUARDED)
def test_cookies_lend_no_key_to_cancelling(api: Api) -> None:
    """Lists, and cancels an order that does not exist, with the key, and then does both without one but with the
    cookies that came with the answers: 401."""
    (order,) = api.absent()
    answers = [api.list(), api.cancel(order)]
    lent_nothing(api, answers, [api.ask_list(NOBODY), api.ask_cancel(order, NOBODY)])


def lent_nothing(api: Api, answers: list[Answer], asked: list[Request]) -> None:
    """Demand that what is `asked` without a key is refused with the cookies of `answers`, too."""
    given = cookies(answers)
    if not given:
        return
    for request in asked:
        verify.step(api.send(request), 401, "AUTH-2")
    strangers = [replace(request, headers=(("Cookie", "; ".join(given)),)) for request in asked]
    verify.refused(api.send_all(strangers), since="this request has no key, whatever cookies an earlier one was given")


def cookies(answers: list[Answer]) -> list[str]:
    """The cookies that came with these answers, as a browser keeps them (RFC 6265 section 5.2): without blanks around
    name and value, and only those with a name and without control characters."""
    fields = [value for answer in answers for name, value in answer.headers if name.lower() == "set-cookie"]
    pairs = [field.partition(";")[0].partition("=") for field in fields]
    kept = [f"{name.strip()}={value.strip()}" for name, equals, value in pairs if name.strip() and equals]
    return [cookie for cookie in kept if not re.search(r"[\x00-\x1f\x7f]", cookie)]


@requirement("AUTH-6")
@pytest.mark.lengthy
def test_refusals_do_not_add_up(api: Api) -> None:
    """Has many requests refused in a row, without a key and with a wrong one: the last is refused as the first was, and
    the valid key is as good afterwards as before."""
    before = [api.list() for _ in range(1 + TRIES)]
    if all(verify.settled(answer).status == 401 for answer in before):
        # The run has begun with a listing that took the key: since then there were only refusals.
        raise outcomes.Failed(
            "the valid key accepted, as when the run began", "401, each time that it was tried", *before[:2]
        )
    verify.step(before[0], 200, "LIST-1")
    wrong = credentials.bearer("not-the-key", "the word 'not-the-key'", "not-the-key")
    for who, more in ((wrong, WRONG - FEW), (NOBODY, KEYLESS - FEW)):
        for answer in filterfalse(turned_away, api.send_all([api.ask_list(who)] * FEW, at_once=True)):
            verify.step(answer, 401, "AUTH-2", "AUTH-3")
        for answer in api.send_all([api.ask_list(who)] * more):
            verify.refused([answer], since=f"the request is the same as {FEW} that were refused before it")
    answer = api.list()
    if verify.settled(answer).status != 200:
        verify.not_sporadic(answer, 200)
        raise outcomes.Failed(
            "the valid key accepted as before", f"{verify.describe(answer)} after {WRONG + KEYLESS} refusals", answer
        )
