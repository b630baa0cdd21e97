"""AUTH-5, AUTH-7 to AUTH-9: what a refusal does, and what it tells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress, zip_longest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import credentials, invalid_keys
from conformance.checks.authentication.steps import cancel_each
from conformance.checks.cancelling.steps import place_far
from conformance.contract.jsontext import NotJson
from conformance.contract.listing import alike
from conformance.contract.validators import as_json, shown
from conformance.target import Mode, Secret, Target
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY

#: How many times more a cancel is refused where refusals seem to tell orders apart.
MORE = 4

# --- AUTH-5: a refused cancel has no effect


@requirement("AUTH-5", mode=Mode.FULL, pending=5)
def test_refused_cancel_leaves_a_pending_order(api: Api, orders: Orders, key: Secret, target: Target) -> None:
    """Has cancels of pending orders refused: without key, with near misses, with the key in wrong places. Afterwards
    each is listed as before, and can still be cancelled with the key, like another order to which nothing was done."""
    taken = orders.take_listed(pending=5)
    *tried, control_order = taken.pending
    proxied = target.proxy is not None
    batteries = (
        [NOBODY],
        invalid_keys.near_misses(key.reveal())[:8],
        [
            *credentials.misplaced(key.reveal(), proxied=proxied)[::3],
            *credentials.in_query(key.reveal(), fitting=True)[::3],
        ],
        credentials.malformed(key.reveal()),
    )
    pairs = [(order, who) for order, battery in zip(tried, batteries, strict=True) for who in battery]
    given = api.send_all(api.ask_cancel(order, who) for order, who in pairs)
    refusals = [[answer for answer, (of, _) in zip(given, pairs, strict=True) if of == order] for order in tried]
    for answers in refusals:
        for answer in answers:
            if not verify.refusal(answer):
                said = f"{answer.exchange.in_words}, no refusal"
                raise outcomes.Inconclusive(said, "AUTH-2", "AUTH-3", "AUTH-4")
    between = api.list()
    *ended, control = api.send_all(map(api.ask_cancel, (*tried, control_order)))
    for end, answers in zip(ended, refusals, strict=True):
        labels = ", ".join(answer.exchange.credential for answer in answers[:3])
        verify.still_pending(end, control, since=f"a cancel with {labels} was refused", shown_by=answers)
    if taken.listing is not None:
        if not alike(verify.listing(between).by_id.get(control_order), taken.listing.by_id.get(control_order)):
            raise outcomes.Inconclusive(f"order {control_order}, to which nothing was done, changed as well", "LIST-9")
        since = "cancels of it were refused"
        verify.unchanged(tried, taken.listing, between, since=since, shown_by=[*chain(*refusals)])


@requirement("AUTH-5", mode=Mode.FULL, shipped=2)
def test_refused_cancel_leaves_a_shipped_order(api: Api, orders: Orders, key: Secret) -> None:
    """Has cancels of a shipped order refused for lack of a key: it is listed as before, and still shipped, like another
    order to which nothing was done."""
    taken = orders.take_listed(shipped=2)
    order, control = taken.shipped
    since = "cancels of it were refused"
    answers = cancel_each(api, [order], [NOBODY, *invalid_keys.telling(key.reveal())])
    for answer in answers:
        verify.step(answer, 401, "AUTH-2", "AUTH-3")
    if taken.listing is not None:
        verify.unchanged([], taken.listing, api.list(), shipped=[order], since=since, shown_by=answers)
    verify.still_shipped(api.cancel(order), lambda: api.cancel(control), since=since, shown_by=answers)


@requirement("AUTH-5", mode=Mode.FULL, chosen_ids=True)
def test_refused_cancel_leaves_orders_with_far_ids(api: Api, orders: Orders, key: Secret) -> None:
    """Has the cancels of half of some pending orders refused, without key and with a near miss; the ids are above 2^31,
    above 2^53 and below zero. They can still be cancelled, like the others."""
    refused, controls = zip(*place_far(api, orders), strict=True)
    refusals = cancel_each(api, refused, [NOBODY, invalid_keys.near_misses(key.reveal())[0]])
    for refusal in refusals:
        verify.step(refusal, 401, "AUTH-2", "AUTH-3")
    ended, others = api.send_all(map(api.ask_cancel, refused)), api.send_all(map(api.ask_cancel, controls))
    for end, other in zip(ended, others, strict=True):
        verify.still_pending(end, other, since="cancels without the key were refused", shown_by=refusals)


# --- AUTH-7 to AUTH-9: recommended


def challenged(*answers: Answer) -> None:
    """Demand a 401 with a Bearer challenge (RFC 9110 section 15.5.2) of each request."""
    for answer in answers:
        verify.step(answer, 401, "AUTH-2", "AUTH-3")
    verify.meets("AUTH-7", *answers)


@requirement("AUTH-7")
def test_refused_listing_carries_a_challenge(api: Api, key: Secret) -> None:
    """Has listings refused without key and with a wrong one: WWW-Authenticate names Bearer."""
    challenged(api.list(NOBODY), api.list(invalid_keys.near_misses(key.reveal())[0]))


@requirement("AUTH-7", mode=Mode.GUARDED)
def test_refused_cancel_carries_a_challenge(api: Api, key: Secret) -> None:
    """Has cancels refused without key and with a wrong one: WWW-Authenticate names Bearer."""
    challenged(*cancel_each(api, api.absent(), [NOBODY, invalid_keys.near_misses(key.reveal())[0]]))


def same_as_bearer(answers: list[Answer]) -> None:
    """Demand that no request was refused for how it spells the scheme (RFC 9110 section 11.1)."""
    for answer in answers:
        if verify.settled(answer).status in (400, 401, 403):
            verify.not_sporadic(answer, 200, 404)
            raise outcomes.Failed(
                "the key accepted, since the name of a scheme is case-insensitive", verify.describe(answer), answer
            )


@requirement("AUTH-8")
def test_scheme_in_any_case_lists(api: Api, key: Secret) -> None:
    """Lists with the valid key behind `bearer`, `BEARER` and `bEaReR`: accepted."""
    verify.step(api.list(), 200, "LIST-1")
    same_as_bearer(api.send_all(api.ask_list(scheme) for scheme in credentials.schemes(key.reveal())))


@requirement("AUTH-8", mode=Mode.GUARDED)
def test_scheme_in_any_case_cancels(api: Api, key: Secret) -> None:
    """Cancels an order that does not exist with the valid key behind other spellings of the scheme: accepted."""
    (order,) = api.absent()
    verify.step(api.cancel(order), 404, "CANCEL-5")
    same_as_bearer(cancel_each(api, [order], credentials.schemes(key.reveal())))


def told(answer: Answer) -> tuple[object, ...]:
    """What a refused cancel tells: its status, and the `code` and `message` of its body."""
    verify.step(answer, 401, "AUTH-2", "AUTH-3")
    try:
        body = answer.json.value
    except NotJson:
        return (answer.status, answer.body)
    if not isinstance(body, dict):
        return (answer.status, as_json(body))
    return (answer.status, body.get("code"), body.get("message"))


def told_again(answers: Sequence[Answer], kept: Sequence[bool]) -> list[set[str]]:
    """Everything that each of the refused cancels is told, also when it is repeated a few times in turn with the
    others; only what is `kept` is compared."""
    seen: list[set[str]] = [set() for _ in answers]
    for round_ in range(1 + MORE):
        for found, answer in zip(seen, answers, strict=True):
            found.add(repr([*compress(told(answer.repeat() if round_ else answer), kept)]))
    return seen


def in_words(told: tuple[object, ...]) -> str:
    """What `told` found, for a message."""
    status, *words = told
    if len(words) == 2:
        return f"{status} with {as_json(dict(zip(('code', 'message'), words, strict=True)))}"
    return f"{status} with the body {shown(words[0])}"


@requirement("AUTH-9", mode=Mode.FULL, pending=1, shipped=1)
def test_refusal_does_not_tell_whether_the_order_exists(api: Api, orders: Orders, key: Secret) -> None:
    """Has cancels of a pending, a shipped and two absent orders refused, without key and with a wrong one: status, code
    and message are the same for all, except where they differ between the absent ones, as with a time or the path."""
    taken = orders.take_listed(pending=1, shipped=1)
    absent = api.absent(2)
    ids = {"absent": absent[0], "pending": taken.pending[0], "shipped": taken.shipped[0], "absent too": absent[1]}
    for wrong in (NOBODY, invalid_keys.near_misses(key.reveal())[0]):
        asked = api.send_all(api.ask_cancel(order, wrong) for order in ids.values())
        answers = dict(zip(ids, asked, strict=True))
        words = {state: told(answer) for state, answer in answers.items()}
        kept = [one == other for one, other in zip_longest(words["absent"], words["absent too"])]
        for state in ("pending", "shipped"):
            if list(compress(words[state], kept)) != list(compress(words["absent"], kept)):
                seen = told_again([answers[state], answers["absent"]], kept)
                if seen[0] & seen[1]:  # which words there are depends on something else, the instance perhaps
                    continue
                if len(seen[0] | seen[1]) > len(seen):
                    raise outcomes.Inconclusive("what a refused cancel tells varies with each request", "ERR-3")
                raise outcomes.Failed(
                    "the same status, code and message whether the order exists or not",
                    f"{in_words(words[state])} for a {state} order; {in_words(words['absent'])} for an absent one",
                    answers[state],
                    answers["absent"],
                )
