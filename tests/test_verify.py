"""The vocabulary of the checks, where an answer may be odd and right."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from built import LIST, VALID, answered, cancel

from conformance import outcomes, verify
from conformance.checks.clients import BROWSER, NAMES_OTHERS, SENDS_JSON
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, Allowed, Credential, Headers, Request

Order = dict[str, Any]
ODD = cancel("abc", allowed=Allowed.OPEN)


def listed(*orders: Order) -> Answer:
    return answered(LIST, 200, json.dumps(orders).encode())


A, B, NAMELESS = {"id": 1, "quantity": 1}, {"id": 2, "quantity": 2}, {"quantity": 2}


@pytest.mark.parametrize(
    ("before", "after", "raises"),
    [
        ([A, B], [A, B], None),
        ([A, B], [B, {**A, "quantity": 9}], outcomes.Failed),
        ([A, B], [A], outcomes.Failed),
        ([A], [A], outcomes.Inconclusive),
        # No field is required (section 2): an element without id may be any order, however many there were before.
        ([A, B], [A, NAMELESS], outcomes.Inconclusive),
        ([A, B, NAMELESS], [A, NAMELESS], outcomes.Inconclusive),
        ([A, B, NAMELESS], [NAMELESS], outcomes.Failed),
        # One that was not shown by its id to begin with is compared with nothing, and the others are all the same.
        ([A, NAMELESS], [A, NAMELESS], None),
        ([NAMELESS, NAMELESS], [NAMELESS], None),
        ([A, NAMELESS], [{**A, "quantity": 9}, NAMELESS], outcomes.Failed),
        ([A, NAMELESS], [NAMELESS], outcomes.Failed),
        ([A, {"id": "2"}], [A, {"id": "2"}], outcomes.Inconclusive),
    ],
    ids=str,
)
def test_orders_listed_as_before(before: list[Order], after: list[Order], raises: type[BaseException] | None) -> None:
    known, found = verify.listing(listed(*before)), listed(*after)
    found.sender = lambda _: listed(*after)
    ended = None
    try:
        verify.unchanged([1, 2], known, found, since="it was read")
    except (outcomes.Failed, outcomes.Inconclusive) as end:
        ended = type(end)
    assert ended is raises


def test_an_order_that_one_listing_leaves_out_is_for_LIST_3() -> None:  # noqa: N802
    known, found = verify.listing(listed(A, B)), listed(A)
    found.sender = lambda _: listed(A, B)
    with pytest.raises(outcomes.Inconclusive, match=r"order 2 was left out of one listing.*LIST-3"):
        verify.unchanged([1, 2], known, found, since="it was read")


JSON = ("Accept", "application/json")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (LIST, "404 for the listing"),
        (replace(LIST, headers=(JSON,)), "404 for the listing, asked with Accept: application/json"),
        (replace(LIST, accept=None), "404 for the listing, asked without Accept"),
        (
            replace(cancel(7), headers=(JSON, ("Origin", "x" * 100))),
            f"404 for order 7, asked with Accept: application/json and Origin: {'x' * 72}…",
        ),
        (cancel("%FF"), "404 for the id %FF"),  # which is no text
        (
            replace(cancel(7, Credential("a form", body="key=1")), headers=(("Content-Type", "a/form"),)),
            "404 for order 7",
        ),
    ],
)
def test_answers_in_words(request_: Request, words: str) -> None:
    assert verify.describe(answered(request_, 404)) == words


def test_a_refusal_that_was_due_is_missed_with_what_the_request_had() -> None:
    stranger = Request("GET", "/store/orders", NOBODY)
    right, wrong = answered(stranger, 401), answered(replace(stranger, headers=(JSON,)), 200)
    told = "1 of 2 requests was not answered so: 200 with no credentials, asked with Accept: application/json"
    with pytest.raises(outcomes.Failed, match=f"received {told}$"):
        verify.refused([right, wrong], since="the key is missing")
    with pytest.raises(outcomes.Failed, match="2 of 3 requests were not answered so"):
        verify.refused([right, wrong, wrong], since="the key is missing")


WRONG, ODD_KEY, LONG_KEY = (
    Credential("a wrong key", (("Authorization", "Bearer wrong"),)),
    Credential("two words", (("Authorization", "Bearer a b"),), malformed=True),
    Credential("a long key", (("Authorization", f"Bearer {'x' * 5000}"),)),
)
ELSEWHERE = Credential("the key in the query", query="key=1")


@pytest.mark.parametrize(
    ("who", "status", "refused"),
    [
        (NOBODY, 401, True),
        (NOBODY, 400, False),
        (NOBODY, 403, False),
        (WRONG, 400, False),
        (WRONG, 414, False),
        (ODD_KEY, 400, True),
        (ODD_KEY, 403, False),
        (LONG_KEY, 431, True),
        (ELSEWHERE, 403, True),
        (ELSEWHERE, 404, False),  # which a cancel lists: that is told to who has the key
        (ELSEWHERE, 302, False),
        (ELSEWHERE, 500, False),
        (ELSEWHERE, 204, False),
    ],
)
def test_what_is_a_refusal(who: Credential, status: int, refused: bool) -> None:
    assert verify.refusal(answered(cancel(7, who), status, b"{}")) is refused


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ((), "answered 429, again and again; --rate-limit and -n 1"),
        (
            (("Retry-After", "90"),),
            "answered 429, and to wait 90 s more is too long, for one request or in all; --rate",
        ),
    ],
)
def test_a_limit_that_is_never_lifted_decides_nothing(fields: Headers, said: str) -> None:
    with pytest.raises(outcomes.Inconclusive, match=said) as raised:
        verify.settled(answered(LIST, 429, b"", *fields))
    assert raised.value.owners == ("HTTP-1",)


@pytest.mark.parametrize("status", [302, 503])
@pytest.mark.parametrize("again", [404, None])
def test_a_redirect_that_does_not_come_again_is_for_http_1(
    status: int, again: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that does is what a check makes of it."""
    monkeypatch.setattr(Answer, "repeat", lambda self: answered(ODD, again or status))
    with pytest.raises(outcomes.Inconclusive, match=r"404 when asked again \(see HTTP-1\)") if again else nullcontext():
        verify.not_sporadic(answered(ODD, status), *range(400, 500))


@pytest.mark.parametrize(
    ("status", "ends"), [(406, outcomes.Inconclusive), (404, outcomes.Failed)], ids=["unlisted", "listed"]
)
def test_a_service_that_minds_the_lack_of_accept_breaks_http_1_alone(status: int, ends: type[BaseException]) -> None:
    answer = answered(replace(cancel(1), accept=None), status)
    answer.sender = lambda _: answer
    with pytest.raises(ends, match="asked without Accept") as raised:
        verify.status(answer, 204, since="the order is pending")
    assert getattr(raised.value, "owners", None) == (("HTTP-1",) if status == 406 else None)


@pytest.mark.parametrize(
    ("status", "fields", "ends"),
    [
        (500, BROWSER, outcomes.Inconclusive),
        (406, NAMES_OTHERS, outcomes.Inconclusive),
        (302, BROWSER, outcomes.Failed),
        (404, BROWSER, outcomes.Failed),
        (500, SENDS_JSON, outcomes.Failed),
        (500, (), outcomes.Failed),
    ],
)
def test_a_service_that_fails_for_some_clients_breaks_http_1_alone(
    status: int, fields: Headers, ends: type[BaseException]
) -> None:
    cancelled, refused = (
        answered(replace(cancel(1), credential=who, headers=fields), status) for who in (VALID, NOBODY)
    )
    cancelled.sender, refused.sender = (lambda _: cancelled), (lambda _: refused)
    with pytest.raises(ends):
        verify.status(cancelled, 204, since="the order is pending")
    with pytest.raises(ends):
        verify.refused([refused], since="there is no key")
    let_in = answered(replace(cancel(1), credential=NOBODY), 204)
    with pytest.raises(outcomes.Failed, match="204") as raised:
        verify.refused([refused, let_in], since="there is no key")
    assert (refused in raised.value.answers) is (ends is outcomes.Failed)


@pytest.mark.parametrize(
    ("status", "found"),
    [(403, True), (422, True), (401, False), (404, False), (409, False), (204, False), (500, False)],
)
def test_who_minds_a_header_field_gives_a_client_error_that_is_not_listed(status: int, found: bool) -> None:
    assert verify.turned_down(answered(ODD, status)) is found


def test_a_limit_says_nothing_about_a_header_field() -> None:
    with pytest.raises(outcomes.Inconclusive, match="429"):
        verify.turned_down(answered(ODD, 429))


def test_of_several_cancels_those_of_the_order_are_shown() -> None:
    own, other, after = answered(cancel(1), 409), answered(cancel(2), 409), listed({**A, "quantity": 9}, B)
    before = listed(A, B).listing
    assert before is not None
    with pytest.raises(outcomes.Failed) as raised:
        verify.unchanged([], before, after, shipped=[1, 2], since="x", shown_by=[other, own])
    assert raised.value.answers[0] is own
    assert other not in raised.value.answers
    assert after in raised.value.answers
