"""What speaks against a pass, though no check was asked about it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from built import KEY, LIST, VALID, answered, cancel

from conformance.checks import credentials, invalid_keys
from conformance.contract.transitions import State
from conformance.judging import universal
from conformance.judging.doubts import ROWS, Doubt, doubts
from conformance.judging.observer import Judge
from conformance.target import Mode
from conformance.transport.answer import Answer
from conformance.transport.guard import Guard
from conformance.transport.request import NOBODY, Allowed, Credential, Request
from conformance.verdict import Status

WRONG = invalid_keys.near_misses(KEY)[0]
BARE = credentials.misplaced(KEY)[0]
IN_QUERY = credentials.in_query(KEY)[0]
IN_FORM = credentials.in_body(KEY)[0]
DOUBLED = credentials.malformed(KEY)[1]
SMALL = credentials.schemes(KEY)[0]


def said(answer: Answer) -> list[str]:
    return [doubt.requirement for doubt in doubts(answer)]


def listing(who: Credential, allowed: Allowed = Allowed.LISTED) -> Request:
    return Request("GET", "/store/orders", who, allowed=allowed)


def held(answer: Answer, before: State) -> Answer:
    """The answer to a cancel of an order that was in this state."""
    answer.before = before
    return answer


def without(*orders: int) -> Answer:
    """A listing that lacks these orders of the suite's."""
    answer = answered(LIST, 200, b"[]")
    answer.lacking = orders
    return answer


@pytest.mark.parametrize(
    ("who", "status", "row"),
    [
        (VALID, 401, "AUTH-1"),
        (VALID, 200, None),
        (NOBODY, 401, None),
        (NOBODY, 200, "AUTH-2"),
        (NOBODY, 403, None),  # HTTP-1 has that
        (WRONG, 401, None),
        (WRONG, 200, "AUTH-3"),
        (BARE, 401, None),
        (BARE, 200, "AUTH-4"),
        (SMALL, 401, None),
        (SMALL, 200, None),
    ],
)
def test_who_asked_decides_whether_a_listing_may_be_given(who: Credential, status: int, row: str | None) -> None:
    assert said(answered(listing(who), status, b"[]")) == ([row] if row else [])


@pytest.mark.parametrize("who", [IN_QUERY, IN_FORM, DOUBLED])
def test_a_key_beside_its_place_opens_nothing(who: Credential) -> None:
    assert said(answered(listing(who, Allowed.OPEN), 200, b"[]")) == ["AUTH-4"]
    assert said(answered(listing(who, Allowed.OPEN), 400, b"{}")) == []


@pytest.mark.parametrize(
    ("before", "status", "row"),
    [
        (State.PENDING, 204, None),
        (State.PENDING, 404, "CANCEL-1"),
        (State.PENDING, 409, "CANCEL-1"),
        (State.PENDING, 401, "AUTH-1"),
        (State.PENDING, 500, None),  # HTTP-1 has that
        (State.SHIPPED, 409, None),
        (State.SHIPPED, 204, "CANCEL-3"),
        (State.ABSENT, 404, None),
        (State.ABSENT, 204, "CANCEL-5"),
        (None, 404, None),
    ],
)
def test_what_the_order_was_decides_what_a_cancel_is_answered(
    before: State | None, status: int, row: str | None
) -> None:
    answer = answered(cancel(5), status, b"{}" if status != 204 else b"")
    answer.before = before
    assert said(answer) == ([row] if row else [])


def test_repeated_and_malformed_cancels_are_open() -> None:
    for request in (cancel(5, allowed=Allowed.ANY_4XX), cancel("abc", allowed=Allowed.OPEN)):
        assert said(answered(request, 401, b"{}")) == []


def test_the_key_is_valid_for_an_order_to_which_nothing_was_done_though_others_were_cancelled() -> None:
    answer = answered(cancel(5, allowed=Allowed.ANY_4XX), 401, b"{}")
    for before, doubted in ((State.PENDING, ["AUTH-1"]), (None, [])):
        answer.before = before
        assert said(answer) == doubted


def test_an_order_that_a_listing_lacks() -> None:
    answer = answered(LIST, 200, b"[]")
    answer.lacking = (7,)
    why = f"order 7 is not in the listing, although {ROWS['LIST-3']}; what was done to another may have removed it"
    assert list(doubts(answer)) == [Doubt("LIST-3", why)]
    stranger = answered(replace(LIST, credential=NOBODY), 200, b"[]")
    stranger.lacking = (7,)
    assert said(stranger) == ["AUTH-2"]


def test_the_guard_knows_an_order_until_something_is_done_to_it() -> None:
    guard = Guard(Mode.FULL)
    guard.saw_listing([3])
    guard.hand_out([5, 6], State.SHIPPED)
    known = [guard.touch(segment) for segment in ("5", "5", "3", "8", "x8")]
    assert known == [State.SHIPPED, None, None, State.ABSENT, None]
    assert guard.untouched == {6: State.SHIPPED}
    guard.take_back([5, 6])
    assert guard.untouched == {}


def test_a_doubt_withholds_a_pass_and_fails_nothing() -> None:
    wrong, right = answered(listing(NOBODY), 200, b"[]"), answered(listing(NOBODY), 401, b"{}")
    for answer in (wrong, right):
        Judge()(answer)
    folded = universal.fold("AUTH-2", "401", [right.exchange, wrong.exchange])
    assert folded is not None
    assert folded.status is Status.INCONCLUSIVE
    assert "although there is no Authorization header" in folded.message
    assert universal.fold("AUTH-2", "401", [right.exchange]) is None


@pytest.mark.parametrize(
    ("row", "answer", "proven"),
    [
        ("AUTH-2", answered(listing(NOBODY), 200, b"[]"), True),
        ("AUTH-3", answered(cancel(5, WRONG), 204), True),
        ("AUTH-3", answered(cancel(5, WRONG), 404, b"{}"), False),
        ("AUTH-1", answered(listing(VALID), 401, b"{}"), False),
        ("CANCEL-3", held(answered(cancel(5), 204), State.SHIPPED), True),
        ("CANCEL-3", held(answered(cancel(5), 404, b"{}"), State.SHIPPED), False),
        ("CANCEL-1", held(answered(cancel(5), 409), State.PENDING), False),
        ("LIST-3", without(5), False),
    ],
)
def test_some_answers_show_a_breach_by_themselves(row: str, answer: Answer, proven: bool) -> None:
    """Should nothing else have failed: see `verdict.fold`."""
    answer.exchange.number = 7
    Judge()(answer)
    folded = universal.fold(row, "", [answer.exchange])
    assert folded is not None
    assert folded.status is Status.INCONCLUSIVE
    assert (folded.failure is not None and folded.failure.exchange == 7) is proven


def listed(*orders: int) -> Answer:
    """A listing of these orders."""
    return answered(LIST, 200, json.dumps([{"id": order} for order in orders]).encode())


@pytest.mark.parametrize(
    ("later", "proven"),
    [
        (answered(cancel(5), 204), True),
        (answered(cancel(5), 409), True),
        (answered(cancel(5), 404, b"{}"), False),
        (answered(cancel(7), 204), False),
        (listed(5), True),
        (listed(7), False),
    ],
)
def test_an_order_that_a_listing_lacks_and_that_is_there_later_was_there(later: Answer, proven: bool) -> None:
    answers = [without(5, 6), later]
    for number, answer in enumerate(answers):
        answer.exchange.number, answer.exchange.started = number, float(number)
    judge = Judge()
    for answer in answers:
        judge(answer)
    folded = universal.fold("LIST-3", "", [answer.exchange for answer in answers])
    assert folded is not None
    assert folded.status is Status.INCONCLUSIVE
    assert (folded.failure is not None) is proven
    assert folded.exchanges == ((0, 1) if proven else (0,))
    assert folded.failure is None or folded.failure.exchange == 0  # the listing, and not what shows it to be wrong
    assert folded.message.startswith("order 5 was left out" if proven else "order 5 is not in the listing")


def test_of_two_listings_that_overlap_neither_is_the_later_one() -> None:
    """The one that is judged first may have been read last: then another request has removed the order between."""
    answers = [without(5), listed(5)]
    judge = Judge()
    for answer in answers:
        answer.exchange.started, answer.exchange.seconds = 7.0, 0.1
        judge(answer)
    assert "LIST-3" not in answers[1].exchange.undecided


def test_what_one_check_missed_is_no_matter_for_the_next() -> None:
    """An audit plays them one by one, whatever processes they ran in."""
    missing, shown = without(5), listed(5)
    missing.exchange.check, shown.exchange.check = "one", "another"
    judge = Judge()
    judge(missing)
    judge(shown)
    assert "LIST-3" not in shown.exchange.undecided


@pytest.mark.parametrize(("order", "status", "proven"), [(5, 204, True), (5, 404, False), (6, 204, False)])
def test_a_pending_order_that_is_cancelled_only_the_second_time_was_pending(
    order: int, status: int, proven: bool
) -> None:
    first = held(answered(cancel(5), 404, b"{}"), State.PENDING)
    again = answered(cancel(order), status, b"" if status == 204 else b"{}")
    judge = Judge()
    for number, answer in enumerate((first, again)):
        answer.exchange.number = number
        judge(answer)
    folded = universal.fold("CANCEL-1", "", [first.exchange, again.exchange])
    assert folded is not None
    assert folded.status is Status.INCONCLUSIVE
    assert (folded.failure is not None) is proven
    assert ("only when it was asked for again" in folded.message) is proven


def test_an_id_that_was_placed_anew_is_that_of_another_order() -> None:
    judge = Judge()
    judge(held(answered(cancel(5), 409, b"{}"), State.PENDING))
    anew = held(answered(cancel(5), 204), State.PENDING)
    judge(anew)
    assert "CANCEL-1" not in anew.exchange.undecided
