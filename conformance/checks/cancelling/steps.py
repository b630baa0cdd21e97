"""What several checks of cancelling do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.checks import ids
from conformance.contract.jsontext import INT64, NotJson
from conformance.contract.validators import error_problems
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Headers


def cancels(api: Api, orders: Orders, order: int, headers: Headers = (), *, or_minds: bool = False) -> Answer:
    """Cancel a pending order and demand 204, at once and not only when asked again. With `or_minds`, the service may
    also mind the header fields, with a client error that is not listed. Returns the answer."""
    answer = api.send(api.ask_cancel(order, headers=headers, allowed=Allowed.ANY_4XX if or_minds else Allowed.LISTED))
    if or_minds and verify.turned_down(answer):
        return answer
    not_made_up(api, orders, order, answer)
    if orders.by_hand and answer.status in (404, 409):
        raise verify.perhaps_used(order, answer)
    since = "the order is pending"
    if answer.status in (404, 409):
        again = answer.repeat()
        if again.status == 204:
            received = f"{verify.describe(answer)}, and 204 when it was asked for again"
            raise outcomes.Failed(f"204, since {since}", received, answer, again)
    verify.status(answer, 204, since=since)
    return answer


def refuses(api: Api, orders: Orders, order: int, headers: Headers = ()) -> Answer:
    """Cancel a shipped order and demand 409."""
    answer = api.send(api.ask_cancel(order, headers=headers))
    not_made_up(api, orders, order, answer)
    gets(orders, answer, 409, since=orders.has_shipped)
    return answer


@contextmanager
def unless_nothing_is_cancelled(orders: Orders, answer: Answer) -> Iterator[None]:
    """Puts a failure down to CANCEL-1 if the cancel of a pending order is refused like the one that got this `answer`,
    as by a service that has no such operation."""
    try:
        yield
    except outcomes.Failed:
        if not answer.succeeded and orders.pending_gets(answer.status):
            said = f"{answer.exchange.in_words}, and so was the cancel of a pending order"
            raise outcomes.Inconclusive(said, "CANCEL-1") from None
        raise


def gets(orders: Orders, answer: Answer, expected: int, *, since: str) -> None:
    """Demand the `expected` status of a cancel that has to be refused."""
    with unless_nothing_is_cancelled(orders, answer):
        verify.status(answer, expected, since=since)


def place_far(api: Api, orders: Orders, *, shipped: bool = False) -> list[tuple[int, int]]:
    """Place orders with ids above 2^31, above 2^53 and, if the provider can, below zero, in pairs of the same kind: one
    to do something to, and one as a control. Raises Excluded if there are none."""
    pairs: list[tuple[int, int]] = []
    for draw in (ids.large, ids.below_zero):
        with suppress(outcomes.Excluded):
            # None near the ends of int64: so few doubles lie there that other checks would find no room for theirs.
            chosen, controls = draw(api.rng)[:2], draw(api.rng)[:2]
            known = set(api.unmistakable([*chosen, *controls]))
            kinds = [pair for pair in zip(chosen, controls, strict=True) if known.issuperset(pair) and len({*pair}) > 1]
            orders.place([*chain(*kinds)], shipped=shipped)
            pairs += kinds
    if not pairs:
        raise outcomes.Excluded("no order can be placed with such an id, or none that no other could be mistaken for")
    return pairs


def place_each(orders: Orders, wanted: Iterable[int], *, shipped: bool = False) -> list[int]:
    """Place orders with these ids one by one; gives those that could be placed."""
    placed: list[int] = []
    for order in wanted:
        with suppress(outcomes.Excluded):
            taken = orders.place([order], shipped=shipped)
            placed += taken.shipped if shipped else taken.pending
    return placed


def not_made_up(api: Api, orders: Orders, order: int, answer: Answer) -> None:
    """Raise Inconclusive if the provider may have made an order up: neither its cancel, which got this `answer`, nor
    the listing knows it, and the listing does not know the next one from the provider either. The listing is read only
    now, so that reading it cannot have changed the order (LIST-9)."""
    if verify.settled(answer).status != 404:
        return
    found = api.list().listing
    if found is None or not found.left_out([order]):
        return
    if orders.by_hand:
        raise verify.perhaps_used(order, answer)
    orders.take_listed(pending=1)  # raises Inconclusive unless the listing shows it


def gets_client_error(orders: Orders, answer: Answer, kind: str = "") -> None:
    """Demand a client error, with any status, for a malformed id of this `kind`, if given."""
    if not verify.settled(answer).client_error:
        verify.not_sporadic(answer, *range(400, 500))
        expected = f"a client error for a malformed id{f' ({kind})' if kind else ''}"
        with unless_nothing_is_cancelled(orders, answer):
            raise outcomes.Failed(expected, verify.describe(answer), answer)


def cancelled_once(api: Api, order: int) -> None:
    """Cancel a pending order, and again. Raises Inconclusive if that succeeds as well."""
    verify.step(api.cancel(order), 204, "CANCEL-1")
    if verify.settled(api.cancel(order, allowed=Allowed.ANY_4XX)).succeeded:
        raise outcomes.Inconclusive("an order can be cancelled twice one after the other", "CANCEL-6")


def stays_cancelled(*steps: Answer, since: str = "a cancelled order is not pending") -> None:
    """Demand that an order cancelled by the first of these `steps` is not cancelled again by the last; any refusal will
    do."""
    again = verify.settled(steps[-1])
    if again.succeeded:
        raise outcomes.Failed(f"no success, since {since}", verify.describe(again), *steps, last=True)


def body_kind(answer: Answer) -> str:
    """What a body is, in the words of the observation."""
    if not answer.body:
        return "none"
    try:
        value = answer.json.value
    except NotJson:
        return answer.media_type or "no media type"
    return "other JSON" if error_problems(value) else "an Error"


#: Why nothing can be said of the id 0: some databases number such an order themselves.
NO_ORDER_ZERO = "the listing shows no order with the id 0, although one was placed"


def nothing_is_like_zero(api: Api) -> frozenset[int]:
    """The ids in the listing. Raises Excluded if one of them could be mistaken for 0. Only this listing counts, not all
    ids ever seen: those at the ends of int64, gone by now, are 0 in their low bits."""
    shown = api.listing().ids
    if any(order % 2**31 == 0 for order in shown):
        raise outcomes.Excluded("an order in the listing could be mistaken for one with the id 0")
    return shown


def cancel_aliases(api: Api, aliases: Sequence[int | str]) -> list[Answer]:
    """Cancel those aliases that can hit nobody else's order: integers, any of which may be the id of an order that an
    earlier run cancelled, and strings that are not ids."""

    def allowed(alias: int | str) -> Allowed:
        return Allowed.ANY_4XX if isinstance(alias, int) and alias in INT64 else Allowed.OPEN

    harmless = [(alias, segment) for alias in aliases if (segment := spelled(api, str(alias))) is not None]
    return api.send_all(api.ask_cancel(segment, allowed=allowed(alias)) for alias, segment in harmless)


def spelled(api: Api, segment: str) -> str | None:
    """The first way to write this path segment that can hit nobody else's order; None if each could."""
    return next(filter(api.permits, ids.spellings(segment)), None)
