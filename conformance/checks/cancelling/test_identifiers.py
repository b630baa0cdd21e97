"""CANCEL-9, CANCEL-11: the order whose id it is exactly, and no other."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain
from urllib.parse import urlencode

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import ids
from conformance.checks.cancelling.steps import (
    NO_ORDER_ZERO,
    cancel_aliases,
    gets_client_error,
    nothing_is_like_zero,
    place_each,
    spelled,
)
from conformance.checks.clients import SENDS_JSON
from conformance.contract.jsontext import INT64
from conformance.target import Mode
from conformance.text import cut
from conformance.transport.answer import Answer
from conformance.transport.endpoint import ServiceGone
from conformance.transport.request import Allowed, Request

#: Characters that a message shows of an id.
SHOWN = 40


@requirement("CANCEL-9", mode=Mode.FULL, pending=3)
@pytest.mark.lengthy
def test_aliases_of_an_id_cancel_nothing(api: Api, orders: Orders) -> None:
    """Cancels ids that a careless service may take for that of a pending order: equal to it modulo 2^32, 2^64 or 10^9;
    with the other sign; with odd characters around it; one of two ids; the same when read as octal; or words that are
    no number. Also cancels an absent id with the order's in the query, and in a body. The order is still pending
    afterwards, as another is that was placed only then."""
    first, second = orders.take_listed(pending=2).pending
    # With large ids one order's neighbour may be the other order of this check, or the next one to be placed.
    step = 1 if second > first else -1
    taken = (first, second, *range(second + step, second + step * 2**10, step))
    whole = [order for order in ids.aliases(first) if order not in taken]
    spoiled = [*ids.NO_NUMBERS, *ids.spoiled(second), f"{first}%2C{second}"]
    malformed = cancel_aliases(api, spoiled)
    aliases = [
        *cancel_aliases(api, whole),
        *cancel_aliases(api, [octal for octal in ids.octals(first) if int(octal) not in taken]),
        *api.send_all(elsewhere(api, first)),
    ]
    no_success(api, malformed)
    (control,) = orders.take_listed(pending=1).pending  # only now, so that no try can have hit it
    exact(api, [first, second], control, [aliases, malformed])


def elsewhere(api: Api, order: int) -> list[Request]:
    """Cancels of an absent id, with that of this order in the query, and in a body."""
    (absent,) = api.absent()
    named = dict.fromkeys(("id", "orderId", "order_id"), order)
    body = json.dumps(named).encode()
    return [
        api.ask_cancel(absent, query=urlencode(named)),
        api.ask_cancel(absent, headers=SENDS_JSON, body=body, allowed=Allowed.OPEN),
    ]


@requirement("CANCEL-9", mode=Mode.FULL, pending=1, chosen_ids=True)
@pytest.mark.lengthy
def test_neighbours_of_a_large_id_cancel_nothing(api: Api, orders: Orders) -> None:
    """Cancels ids close to those of pending orders above 2^53 and near 2^63: ids that are the same as a double, one of
    them with a fraction of zero, that agree in the low 32 bits only, or that have one digit more or less at the end.
    The orders are still pending afterwards, as another is to which nothing was done."""
    draw = api.rng.randrange
    doubles = [2**54 + 4 * draw(10**6)]
    wanted = [2**53 + 1 + 4 * draw(10**6), INT64.stop - ids.ENDS - 1 - 2 * draw(200), 2**33 + 2**20 + draw(2**20)]
    (control,) = orders.take(pending=1).pending  # first: a chosen id may spoil those to come
    taken = orders.place_listed(api.unmistakable([*doubles, *wanted]))
    placed = taken.pending
    # What looks for an id by its first digits may find any order that begins with them: the others are not to be hit.
    others = [str(known) for known in (taken.listing.ids if taken.listing else ()) if known not in placed]
    tried = []
    for order in placed:
        shorter, *longer = ids.digits_of(order)
        apart = [] if any(known.startswith(str(shorter)) for known in others) else [shorter]
        near = dict.fromkeys([*ids.neighbours(order), order % 2**32, order % 2**31, *apart, *longer])
        aliases = [alias for alias in near if alias in INT64 and alias not in (*placed, control)]
        rounded = [f"{alias}.0" for alias in aliases if float(alias) == float(order)]
        tried.append(cancel_aliases(api, [*aliases, *rounded[:1]]))
    exact(api, placed, control, tried)


@requirement("CANCEL-9", mode=Mode.FULL, pending=1, chosen_ids=True)
@pytest.mark.xdist_group("edges")
@pytest.mark.alone
def test_ids_beyond_int64_cancel_nothing(api: Api, orders: Orders, already_met: bool) -> None:
    """Cancels numbers beyond int64 while orders have the ids at its ends, which such a number may become where it is
    clamped or overflows: the orders are still pending afterwards, as another is to which nothing was done. The check of
    CANCEL-1 about the id 0 may have seen it already."""
    if already_met:
        return
    (control,) = orders.take(pending=1).pending  # first: a chosen id may spoil those to come
    placed = place_each(orders, api.unmistakable(ids.AT_THE_ENDS))
    if not placed:
        raise outcomes.Excluded("no order can be placed with an id at an end of int64")
    tried = cancel_aliases(api, ids.BEYOND)
    try:
        exact(api, placed, control, [tried] * len(placed))
    except outcomes.Failed:
        # Unless no such order can be listed and cancelled, whatever comes between.
        for answer in api.send_all(map(api.ask_cancel, orders.place_listed(placed).pending)):
            verify.step(answer, 204, "CANCEL-1")
        raise


@requirement("CANCEL-9", mode=Mode.FULL, pending=1, chosen_ids=True)
@pytest.mark.xdist_group("edges")
@pytest.mark.alone
def test_malformed_ids_do_not_cancel_the_order_zero(api: Api, orders: Orders, already_met: bool) -> None:
    """Cancels ids that are no numbers, and numbers beyond int64, while an order has the id 0, which many languages turn
    them into: that order is still pending afterwards, as another is to which nothing was done. The check of CANCEL-1
    about that id may have seen it already."""
    if already_met:
        return
    nothing_is_like_zero(api)
    (control,) = orders.take(pending=1).pending
    orders.place([0])
    if 0 not in api.listing().ids:
        raise outcomes.Excluded(NO_ORDER_ZERO)
    exact(api, [0], control, [cancel_aliases(api, (*ids.OF_ZERO, *ids.BEYOND))])


@requirement("CANCEL-9", mode=Mode.GUARDED)
def test_malformed_ids_do_not_succeed(api: Api) -> None:
    """Cancels ids that are no integers though they have digits, such that no order could be meant: no success. A page
    of a firewall that comes with 200 is none."""
    none_succeeds(api, cancel_malformed(api, ids.WITH_DIGITS))


@requirement("CANCEL-9", mode=Mode.GUARDED)
def test_ids_without_digits_do_not_succeed(api: Api) -> None:
    """The same with ids that have no digits at all, unless an order could be mistaken for one with the id 0."""
    none_succeeds(api, cancel_malformed(api, ids.WITHOUT_DIGITS))


def none_succeeds(api: Api, by_kind: dict[str, Answer]) -> None:
    """Demand that none of these cancels has succeeded. Raises Inconclusive where none was answered."""
    answers = list(by_kind.values())
    no_success(api, answers)
    if all(answer.status is None for answer in answers):  # from a firewall, some may get none
        verify.settled(answers[0])


def claims_success(answer: Answer) -> bool:
    """Whether a cancel of what may be malformed was answered as one that succeeded. A page for people is what some
    firewalls send with 200 in place of a refusal."""
    page = answer.status == 200 and answer.media_type == "text/html"
    return answer.succeeded and not page


def no_success(api: Api, answers: list[Answer]) -> None:
    """Demand that no cancel of a malformed id has succeeded: whatever else it gets, from a firewall, too, will do. A
    failure is certain unless the cancel of an absent id succeeds as well: then no id is looked at (CANCEL-5)."""
    for answer in answers:
        if claims_success(answer):
            wanted = "no success, since the id is malformed"
            raise outcomes.Failed(wanted, verify.describe(answer), answer, certain=not absent_succeeds(api))


def absent_succeeds(api: Api) -> bool:
    """Whether the cancel of an id that no order has succeeds; False where none is known, or nothing answers."""
    with suppress(outcomes.Inconclusive, ServiceGone):
        return api.cancel(api.absent(anew=False)[0]).succeeded
    return False


def cancel_malformed(api: Api, kinds: dict[str, str]) -> dict[str, Answer]:
    """Cancel ids that are no integers; the answers by the kind of the id. Where none may be sent, raises Inconclusive,
    or Excluded for ids without digits, since there is an order that those could be taken for."""
    answers = cancel_kinds(api, kinds)
    if not answers and kinds is ids.WITHOUT_DIGITS:
        raise outcomes.Excluded(
            "an order in the listing could be taken for order 0, which is what an id without digits becomes in many "
            "languages"
        )
    if not answers:
        raise outcomes.Inconclusive("the listing leaves no room for malformed ids that no order could be mistaken for")
    return answers


def cancel_kinds(api: Api, kinds: dict[str, str]) -> dict[str, Answer]:
    """Cancel ids of these kinds, made from one that is absent, where no order could be meant; the answers by kind."""
    (number,) = api.absent()
    filled = ids.filled(kinds, number, api.rng)
    permitted = {kind: text for kind, segment in filled.items() if (text := spelled(api, segment))}
    sent = api.send_all(api.ask_cancel(text, allowed=Allowed.OPEN) for text in permitted.values())
    return dict(zip(permitted, sent, strict=True))


def exact(api: Api, orders: list[int], control_order: int, tried: list[list[Answer]]) -> None:
    """Demand that each of `orders` is still pending after what was `tried`: the cancels of its own aliases, which are
    in the same place as the order, and those of the others'. To `control_order` nothing was done."""
    *ended, control = api.send_all(api.ask_cancel(order) for order in (*orders, control_order))
    for order, end, answers in zip(orders, ended, tried, strict=True):
        hit = [answer for answer in answers if claims_success(answer)]
        asked = sorted(answers, key=claims_success, reverse=True)
        if not hit:  # then any of them may have done it
            asked += chain(*(others for others in tried if others is not answers))
        aliases = ", ".join(dict.fromkeys(cut(answer.request.path.rpartition("/")[2], SHOWN) for answer in asked))
        since = f"cancels were sent for {aliases} only, not for {order}"
        verify.still_pending(end, control, since=since, shown_by=hit[:2] or asked, certain=bool(hit))


@requirement("CANCEL-11", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_malformed_ids_are_client_errors(api: Api, orders: Orders, observe: Observations) -> None:
    """Cancels ids that are no integers though they have digits, such that no order could be meant: a 4xx each time.
    Which one is observed, and so is what integers outside int64 and unusual spellings get."""
    for topic, kinds in (("ids outside int64", ids.OUTSIDE), ("unusual spellings of an id", ids.UNUSUAL)):
        seen(observe, topic, cancel_kinds(api, kinds))
    client_errors(orders, observe, cancel_malformed(api, ids.WITH_DIGITS))


@requirement("CANCEL-11", mode=Mode.GUARDED)
@pytest.mark.lengthy
def test_ids_without_digits_are_client_errors(api: Api, orders: Orders, observe: Observations) -> None:
    """The same with ids that have no digits at all, unless an order could be mistaken for one with the id 0."""
    client_errors(orders, observe, cancel_malformed(api, ids.WITHOUT_DIGITS))


def seen(observe: Observations, topic: str, answers: dict[str, Answer]) -> None:
    """Observe the statuses of answers, by the kind of the id."""
    observe(topic, {kind: answer.status for kind, answer in answers.items()}, *list(answers.values())[:1])


def client_errors(orders: Orders, observe: Observations, answers: dict[str, Answer]) -> None:
    """Observe the answers to malformed ids, by the kind of the id, and demand a client error of each."""
    seen(observe, "malformed ids", answers)
    # What got no answer, from a firewall perhaps, proves neither way, and comes last.
    for kind, answer in sorted(answers.items(), key=lambda item: item[1].status is None):
        gets_client_error(orders, answer, kind)
