"""CANCEL-1, CANCEL-3, CANCEL-6, CANCEL-7, AUTH-6, LIST-3: requests at once (specification, sections 3, 4.1 and 5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import filterfalse

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import invalid_keys
from conformance.checks.cancelling.steps import cancelled_once
from conformance.checks.listing.steps import listed_meanwhile, none_missing
from conformance.checks.together import AT_ONCE, FEWER_AT_ONCE, Crowd, cancel_at_once, under_way
from conformance.contract.transitions import State
from conformance.target import Mode, Secret, Target
from conformance.transport.answer import Answer
from conformance.transport.evidence import Trouble
from conformance.transport.request import NOBODY, Allowed, Operation
from conformance.transport.retries import turned_away
from conformance.transport.wire import Wire

ROUNDS = 8
#: How many seconds apart an order is looked for again: a part of a service may be slower than others to have it leave
#: the listing.
MOMENTS = (0.3, 1.0, 2.0)
#: Rounds of requests of several kinds at once, and the cancels in each that listings overlap with.
MIXED, CANCELS = 3, 3
#: How often each of three listings is asked for at once, to be more than pools of connections hold: ten, as a rule.
CROWD = 8
#: Seconds after which an order is placed among listings, round by round: a service takes its time to begin with them,
#: and not long to be done.
PLACED = (0.0, 0.003, 0.01)
#: Where a listing takes between so many seconds and so many, an order is placed after each of these parts of that time,
#: in one of which the service is at work on the listing: the connection takes a round trip, too, or several. Where a
#: listing takes longer, nobody can hit that moment.
BRIEF, LONG, ON_THE_WAY = 0.015, 0.12, (0.15, 0.25, 0.4, 0.5, 0.6)
#: How often a request that was answered wrongly among others is sent again alone.
TRIES = 4


@requirement("CANCEL-3", mode=Mode.FULL, shipped=2)
def test_shipped_order_is_refused_however_many_ask(api: Api, wire: Wire, orders: Orders) -> None:
    """Cancels a shipped order on several connections at once, released together, after cancelling another one twice in
    turn: no success."""
    order, control = orders.take(shipped=2).shipped
    for owner in ("CANCEL-3", "CANCEL-4"):
        verify.step(api.cancel(control), 409, owner)
    crowd = Crowd()
    for size in (AT_ONCE, *FEWER_AT_ONCE):
        answers = crowd.saw(cancel_at_once(api, wire, [order] * size))
        if successes := [answer for answer in answers if answer.succeeded]:
            raise outcomes.Failed(
                f"none of {size} simultaneous cancels of a shipped order succeeding, as cancels in turn do not",
                statuses(answers),
                *successes[:2],
                at_once=True,
            )
        for answer in answers:  # which error it is where others ask at the same time, 423 perhaps, is not shown
            verify.settled(answer)
        if crowd.fits:
            break
    crowd.decides()


@requirement("CANCEL-7", mode=Mode.FULL, pending=ROUNDS + 2)
def test_one_of_simultaneous_cancels_succeeds(
    api: Api, wire: Wire, orders: Orders, moment: Callable[[float], None]
) -> None:
    """Cancels one pending order on several connections at once, released together, over several rounds: each time
    exactly one is answered 204. If an order that is cancelled alone after them is no longer listed, neither are
    they."""
    twice, spare, *rounds = orders.take_listed(pending=ROUNDS + 2).pending
    cancelled_once(api, twice)
    crowd = Crowd()
    won: dict[int, Answer] = {}
    for order in rounds:
        answers = cancel_at_once(api, wire, [order] * crowd.size)
        let_in = crowd.saw(answers)
        successes = [answer for answer in answers if answer.succeeded]
        if len(successes) > 1:
            raise outcomes.Failed(
                f"one success of {len(answers)} simultaneous cancels of one order",
                f"{len(successes)} successes: {statuses(answers)}",
                *successes[:3],
                at_once=True,
            )
        for success in successes:
            won[order] = success
        if len(let_in) < len(answers):
            continue  # this round shows no more than that
        for answer in answers:
            verify.settled(answer)
        if not successes:
            for answer in filter(verify.unlisted, answers):  # that is no refusal
                verify.step(answer, 204, "HTTP-1")
            verify.step(api.cancel(spare), 204, "CANCEL-1")
            raise outcomes.Failed(
                f"one success of {len(answers)} simultaneous cancels of one order",
                f"none: {statuses(answers)}, while another pending order could be cancelled",
                *answers[:3],
                at_once=True,
            )
    if won:
        gone_for_good(api, spare, won, moment)
    crowd.decides()


def gone_for_good(api: Api, alone: int, cancelled: Mapping[int, Answer], moment: Callable[[float], None]) -> None:
    """Demand that the orders `cancelled`, each by one of several cancels at once, with the answer to that one, are not
    listed where an order that is cancelled `alone` after them is gone: else the cancels that came too late have brought
    them back. Since a service may have cancelled orders leave the listing when it likes, this takes half of them to be
    there, still so after some moments."""
    verify.step(api.cancel(alone), 204, "CANCEL-1")
    for pause in (0.0, *MOMENTS):
        moment(pause)
        answer = api.list()
        found = verify.listing(answer)
        back = [order for order in cancelled if order in found.by_id]
        if alone in found.by_id or found.without_id or len(back) < len(cancelled) / 2:
            return
    raise outcomes.Failed(
        "orders cancelled by simultaneous requests to be gone from the listing, as "
        f"order {alone} is, which was cancelled alone after them",
        f"{'orders' if back[1:] else 'order'} {', '.join(map(str, back))} still listed",
        cancelled[back[0]],
        answer,
        last=True,
    )


@requirement("CANCEL-1", mode=Mode.FULL, pending=2 * AT_ONCE)
@pytest.mark.xdist_group("several orders at once")
def test_several_orders_are_cancelled_at_once(api: Api, wire: Wire, orders: Orders, met: set[str]) -> None:
    """Cancels several pending orders at once, released together, in two rounds: 204. Each is then cancelled again: one
    that was refused at first, and is cancelled now that it is asked for alone, was pending. That none is cancelled
    twice serves the check of CANCEL-6, too."""
    again: list[Answer] = []
    for round_ in in_rounds(api, wire, orders):
        for first, second in twice(api, round_):
            if first.status in (404, 409):
                alone = second if second.status == 204 else first.repeat()
                if alone.status == 204:
                    raise outcomes.Failed(
                        "204, since the order is pending, whatever other orders are cancelled at the same time",
                        f"{verify.describe(first)}, and 204 when it was asked for again",
                        first,
                        alone,
                    )
            verify.step(first, 204, "CANCEL-1")
            again.append(second)
    if not any(verify.settled(answer).succeeded for answer in again):
        met.add("concurrency.orders_cancelled_at_once_stay_cancelled")


@requirement("CANCEL-6", mode=Mode.FULL, pending=2 * AT_ONCE)
@pytest.mark.xdist_group("several orders at once")
def test_orders_cancelled_at_once_stay_cancelled(api: Api, wire: Wire, orders: Orders, already_met: bool) -> None:
    """Cancels several pending orders at once, released together, in two rounds: none of them can be cancelled again,
    which would be possible if one cancel had undone another. The check of CANCEL-1 may have seen that already."""
    if already_met:
        return
    for round_ in in_rounds(api, wire, orders):
        none_again(api, round_, "others")


@requirement("CANCEL-6", mode=Mode.FULL, pending=MIXED * CANCELS)
@pytest.mark.lengthy
def test_orders_cancelled_among_other_requests_stay_cancelled(api: Api, orders: Orders, key: Secret) -> None:
    """Over several rounds, cancels orders while listings are requested, with and without the key, and cancels of an
    order that does not exist are refused: none of them can be cancelled again, which would be possible if one of those
    requests had written back what it had read before."""
    left = orders.take_listed(pending=MIXED * CANCELS).pending
    (absent,) = api.absent(anew=False)
    strangers = [NOBODY, invalid_keys.telling(key.reveal())[-1]]
    others = [api.ask_list(), api.ask_list(NOBODY), *(api.ask_cancel(absent, who) for who in (api.key, *strangers))]
    decided: list[Answer] = []
    for _ in range(MIXED):
        chosen, left = left[:CANCELS], left[CANCELS:]
        cancels = [api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in chosen]
        answers = api.send_all([*others, *cancels], at_once=True)
        let_in = [*filterfalse(turned_away, answers[len(others) :])]
        decided += let_in
        none_again(api, let_in, "other requests")
    some_let_in(decided)


def in_rounds(api: Api, wire: Wire, orders: Orders) -> Iterator[list[Answer]]:
    """The answers to cancels of several pending orders at once, in two rounds, or in more and smaller ones if some are
    turned away. A cancel that was turned away is left out, and not sent again, since it may have been carried out."""
    left = orders.take_listed(pending=2 * AT_ONCE).pending
    crowd = Crowd()
    while len(left) > 1:
        chosen, left = left[: crowd.size], left[crowd.size :]
        yield crowd.saw(cancel_at_once(api, wire, chosen))


def twice(api: Api, first: list[Answer]) -> list[tuple[Answer, Answer]]:
    """The answers to cancels, and to the same ones after all of these."""
    return list(zip(first, api.send_all(answer.request for answer in first), strict=True))


def none_again(api: Api, cancels: list[Answer], others: str) -> None:
    """Demand that none of these `cancels`, which were sent at once with `others`, succeeds a second time."""
    for first, second in twice(api, cancels):
        verify.step(first, 204, "CANCEL-1")
        if verify.settled(second).succeeded:
            raise outcomes.Failed(
                f"no success, since order {second.exchange.order_id} was cancelled at once with {others}",
                verify.describe(second),
                first,
                second,
            )


def some_let_in(answers: Sequence[Answer]) -> None:
    """Raise Inconclusive where none of the requests at once was let in, and Excluded where none can have overlapped."""
    if not answers:
        raise outcomes.Inconclusive(f"all requests that were sent at once were turned away; {verify.FEWER}", "HTTP-1")
    verify.overlapped(answers)


def statuses(answers: list[Answer]) -> str:
    """The statuses of several answers, in order."""
    return ", ".join(answer.exchange.received for answer in answers)


# --- AUTH-6: each request on its own


@requirement("AUTH-6")
@pytest.mark.lengthy
def test_credentials_are_not_mixed_up(api: Api, key: Secret, target: Target) -> None:
    """Sends requests with the key, without one and with a wrong one at once, over several rounds: listings; unless the
    mode is observe, cancels of an order that does not exist; and in full mode also enough listings to exhaust a
    connection pool. None is answered by the credentials of another. A mix-up counts only if the request is answered
    correctly each time it is sent again alone."""
    who = [api.key, NOBODY, invalid_keys.telling(key.reveal())[-1]]
    absent = api.absent() if target.mode > Mode.OBSERVE else []
    decided: list[Answer] = []
    for _ in range(MIXED):
        who = [*who[1:], who[0]]  # a service may go by the first of them, or by the last
        lists = [api.ask_list(one) for one in who]
        others = [api.ask_cancel(order, one) for order in absent for one in who] or lists
        answers = [*filterfalse(turned_away, api.send_all([*lists, *others, *lists], at_once=True))]
        decided += answers
        not_mixed_up(answers)
    if target.mode is Mode.FULL:
        crowd = api.send_all([api.ask_list(one) for one in who] * CROWD, at_once=True)
        # Who answers one after the other may be too late for the last of them.
        not_mixed_up([each for each in filterfalse(turned_away, crowd) if each.exchange.trouble != Trouble.TIMEOUT])
    some_let_in(decided)


@requirement("AUTH-6", mode=Mode.FULL, pending=MIXED)
def test_cancels_of_one_order_are_not_mixed_up(api: Api, orders: Orders, key: Secret) -> None:
    """Cancels a pending order with the key, without one and with a wrong one at once, over several rounds: none is
    answered by the credentials of another. A mix-up counts only if the request is answered correctly when it is sent
    again alone."""
    who = [api.key, NOBODY, invalid_keys.telling(key.reveal())[-1]]
    decided: list[Answer] = []
    for order in orders.take(pending=MIXED).pending:
        who = [*who[1:], who[0]]
        asked = [api.ask_cancel(order, one) for one in who]
        answers = [*filterfalse(turned_away, api.send_all(asked, at_once=True))]
        decided += answers
        not_mixed_up(answers)
    verify.overlapped(decided)


def not_mixed_up(answers: Sequence[Answer]) -> None:
    """Demand that none of these requests, sent at once with several credentials, was answered by those of another."""
    for answer in filter(mistaken, answers):
        alone = [answer.repeat() for _ in range(TRIES)]
        for again in alone:
            by_its_own(again)
        valid = answer.request.credential.valid
        raise outcomes.Failed(
            f"{'the valid key accepted' if valid else '401'}, whatever is asked at the same time",
            f"{verify.describe(answer)} with {answer.exchange.credential} among requests with other credentials, "
            f"and {alone[0].exchange.received} when it was sent alone",
            answer,
            alone[0],
        )
    for answer in answers:
        by_its_own(answer)


def mistaken(answer: Answer) -> bool:
    """Whether a request was taken for one with other credentials: the key refused, or done what needs it."""
    if answer.request.credential.valid:
        return answer.status == 401
    return answer.succeeded or answer.status in (404, 409)


def by_its_own(answer: Answer) -> None:
    """Raise Inconclusive where an answer is wrong whatever came at the same time."""
    if not answer.request.credential.valid:
        verify.step(answer, 401, "AUTH-2", "AUTH-3")
    elif verify.settled(answer).status == 401 or verify.unlisted(answer):
        verify.step(answer, 200 if answer.request.operation is Operation.LIST else 404, "AUTH-1")


# --- LIST-3: every order


@requirement("LIST-3", mode=Mode.FULL, pending=MIXED * CANCELS + 1, shipped=1)
def test_orders_are_listed_while_others_are_cancelled(api: Api, orders: Orders) -> None:
    """Cancels some orders and lists at once, over several rounds: each listing holds the orders that were not
    cancelled."""
    taken = orders.take_listed(pending=MIXED * CANCELS + 1, shipped=1)
    left = [*taken.pending, *taken.shipped]
    for _ in range(MIXED):
        chosen, left = left[:CANCELS], left[CANCELS:]
        listed_meanwhile(api, chosen, left, taken.shipped)


@requirement("LIST-3", pending=3 * (len(PLACED) + len(ON_THE_WAY)), placing=True)
def test_orders_placed_during_listings_are_listed(api: Api, wire: Wire, orders: Orders, target: Target) -> None:
    """Over several rounds, has orders placed while listings are under way, and lists: once after those listings, and
    once next to them. The order is there, whatever those listings had read before it was placed, and the service has
    kept. They are judged like any listing, except for that order."""
    for pause in PLACED:
        beside = placed_meanwhile(api, wire, orders, target, pause)
    takes = beside.exchange.seconds
    for part in ON_THE_WAY if BRIEF < takes < LONG else ():
        placed_meanwhile(api, wire, orders, target, part * takes)


def placed_meanwhile(api: Api, wire: Wire, orders: Orders, target: Target, pause: float) -> Answer:
    """One round of `test_orders_placed_during_listings_are_listed`, with orders placed a `pause`, in seconds, after the
    listings are sent. Gives the answer to the listing beside those."""
    orders.take(pending=1)  # whatever was kept before that is to be read anew
    with under_way(api, wire) as meanwhile:
        time.sleep(pause)
        meanwhile += orders.take(pending=1).pending
    none_missing(api, meanwhile, State.PENDING, api.list(), target)
    with under_way(api, wire) as meanwhile, wire.connect() as connection:
        time.sleep(pause)
        meanwhile += orders.take(pending=1).pending
        connection.send_among_others(api.ask_list())
        beside = connection.receive(keep=False)
    wire.keep(beside)  # behind those that it was sent after
    if beside.status == 200 and beside.listing is not None:  # there may be no room for it beside the others
        none_missing(api, meanwhile, State.PENDING, beside, target)
    return beside
