"""LIST-3, HTTP-1: whoever has a listing and asks whether it is still the same (RFC 9110 section 13.1).

The contract describes no such request, so that a client error to it, and 304, are left alone. What it does say is that
the listing holds every order: a 304 after one was placed leaves a client without it.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks.listing.steps import none_missing
from conformance.contract.transitions import State
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Request

#: Seconds after which a date in whole seconds is another one.
A_SECOND = 1.1
#: What a listing came with that is sent in these fields.
CAME_WITH = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}


def by_tag(api: Api, kept: Answer) -> list[Request]:
    """The request for the listing unless it has the entity tag of `kept`, if that has one (section 13.1.2)."""
    return unless(api, "If-None-Match", kept.header("etag"))


def by_date(api: Api, kept: Answer) -> list[Request]:
    """The request for the listing if it was modified after the date of `kept`, if that has one (section 13.1.3)."""
    return unless(api, "If-Modified-Since", kept.header("last-modified"))


def unless(api: Api, name: str, value: str | None) -> list[Request]:
    """The request for the listing with this condition, none where there is no value for it."""
    return [api.ask_list(headers=((name, value),), allowed=Allowed.SAME)] if value else []


@requirement("HTTP-1")
def test_statuses_of_an_unchanged_listing(api: Api) -> None:
    """Where the listing comes with an entity tag or a date, asks with it whether the listing is still the same: 200 or
    304. A client error is left alone."""
    kept = api.list()
    verify.meets("HTTP-1", *api.send_all([*by_tag(api, kept), *by_date(api, kept)]))


@requirement("LIST-3", pending=1, placing=True)
def test_new_order_is_listed_to_who_has_an_older_listing(
    api: Api, orders: Orders, moment: Callable[[float], None]
) -> None:
    """Where the listing comes with an entity tag or a date, has an order placed, after more than a second if it is a
    date, and asks with it whether the listing is still the same: not 304."""
    kept = api.list()
    asked = [*by_tag(api, kept), *by_date(api, kept)]
    if not asked:
        return
    before = verify.listing(kept)
    if by_date(api, kept):
        moment(A_SECOND)
    (order,) = orders.take(pending=1).pending
    if order not in before.by_id:
        shown_again(api, order, asked)


@requirement("LIST-3", mode=Mode.FULL, pending=2, placing=True)
def test_order_is_listed_in_the_place_of_another(api: Api, orders: Orders, target: Target) -> None:
    """Cancels an order and has one placed, so that there are as many as before: it is listed. It is also listed to
    whoever asks with the entity tag of before, where there is one, whether the listing is still the same."""
    (first,) = orders.take(pending=1).pending
    kept = api.list()
    before = verify.listing(kept)
    verify.step(api.cancel(first), 204, "CANCEL-1")
    (second,) = orders.take(pending=1).pending
    none_missing(api, [second], State.PENDING, api.list(), target)
    if second not in before.by_id:
        shown_again(api, second, by_tag(api, kept))


@requirement("LIST-3", mode=Mode.FULL, chosen_ids=True)
def test_order_with_a_smaller_id_is_listed_in_the_place_of_another(api: Api, orders: Orders, target: Target) -> None:
    """The same with chosen ids, while an order with a larger id stays, so that neither how many orders there are nor
    their largest id tells of the new one: it is listed."""
    _, order = replaced_below_the_largest(api, orders)
    none_missing(api, [order], State.PENDING, api.list(), target)


@requirement("LIST-3", mode=Mode.FULL, chosen_ids=True)
def test_order_with_a_smaller_id_is_listed_to_who_has_an_older_listing(api: Api, orders: Orders) -> None:
    """The same, asked for with the entity tag of before, where the listing comes with one, whether it is still the
    same: not 304."""
    if by_tag(api, api.list()):
        kept, order = replaced_below_the_largest(api, orders)
        shown_again(api, order, by_tag(api, kept))


def replaced_below_the_largest(api: Api, orders: Orders) -> tuple[Answer, int]:
    """Have two orders placed, list, cancel the one with the smaller id, and have another one placed whose id is smaller
    than that of the other, too. Returns the answer to the listing, and the last order."""
    base = 10**9 + api.rng.randrange(10**6, 10**8)
    wanted = api.unmistakable(range(base, base + 100, 10))
    if len(wanted) < 3:
        raise outcomes.Excluded(
            "nearly all of the ids to be chosen could be mistaken for those of orders in the listing"
        )
    first, order, largest = wanted[:3]
    orders.place([first, largest])
    kept = api.list()
    verify.listing(kept)
    verify.step(api.cancel(first), 204, "CANCEL-1")
    orders.place([order])
    return kept, order


def shown_again(api: Api, order: int, asked: list[Request]) -> None:
    """Demand that a client which `asked` with what it was given before an order was placed is not told that the listing
    is still the same, where that holds the order."""
    for answer in api.send_all(asked):
        if answer.status == 304 and order in api.listing().by_id:
            ((name, _),) = answer.request.headers
            raise outcomes.Failed(
                f"200 with order {order}, which was placed after the listing whose {CAME_WITH[name]} is sent",
                verify.describe(answer),
                answer,
            )
