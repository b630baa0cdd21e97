"""What a listing that was asked for with a query parameter has left out, and how the parameters are heaped."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from built import LIST, VALID, answered
from held import held

from conformance import outcomes
from conformance.api import Taken
from conformance.checks import ids, test_edges
from conformance.checks.listing import test_all_at_once, test_empty, test_exact_ids, test_orders
from conformance.checks.listing.steps import nothing_left_out
from conformance.checks.listing.test_all_at_once import LONGEST_QUERY, QUERIES, ends_early, heaped
from conformance.contract.listing import Listing
from conformance.outcomes import Disturbed, Excluded, Failed, Inconclusive
from conformance.runner.direct import DirectSession
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Request
from reference_server import amend, messages

WHOLE = b'[{"id": 1}, {"id": 2}, {"id": 3}]'


def listing(*elements: Any) -> Listing:
    found = Listing.read(json.dumps(elements).encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("elements", "left_out"),
    [
        ([{"id": 1}, {"id": 2}, {"id": 3}], set()),
        ([{"id": 4}, {"id": 3}, {"id": 2}, {"id": 1}], set()),
        ([{}, {}, {}], set()),  # fields that nobody has
        ([{"petId": 1}, {"id": 2}, {"petId": 1}], set()),
        ([{}, {}, {}, {}], set()),
        ([{}, {}], {1, 2, 3}),
        ([{"id": 1}, {}], {2, 3}),
        ([{"id": 1}, {"id": 2}], {3}),
        ([], {1, 2, 3}),
    ],
)
def test_what_a_query_leaves_out(elements: list[Any], left_out: set[int]) -> None:
    steady = frozenset({1, 2, 3})
    found = listing(*elements)
    assert set(found.left_out(steady)) == left_out
    asked = Request("GET", "/store/orders", VALID, "fields=id", allowed=Allowed.OPEN)
    answer = answered(asked, 200, json.dumps(elements).encode())
    answer.sender = lambda request: answer if request.query else answered(LIST, 200, WHOLE)
    if not left_out:
        nothing_left_out(steady, found, answer)
        return
    more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
    with pytest.raises(outcomes.Failed, match=rf"\?fields=id.*without order {min(left_out)}{more}, listed before"):
        nothing_left_out(steady, found, answer)


@pytest.mark.parametrize("listed", [(WHOLE, WHOLE), (b'[{"id": 1}, {"id": 3}]', WHOLE)])
def test_an_order_that_others_place_anew_is_not_left_out_by_a_query(listed: tuple[bytes, bytes]) -> None:
    """It was not in the store for a moment: next time it is listed, or is not listed where nothing is asked, either."""
    asked = replace(LIST, query="limit=1", allowed=Allowed.OPEN)
    without_2, without_3 = (
        answered(asked, 200, body) for body in (b'[{"id": 1}, {"id": 3}]', b'[{"id": 1}, {"id": 2}]')
    )
    plain, queried = itertools.cycle(listed), itertools.cycle([without_3, without_2])
    without_2.sender = lambda request: next(queried) if request.query else answered(LIST, 200, next(plain))
    assert without_2.listing is not None
    nothing_left_out(frozenset({1, 2, 3}), without_2.listing, without_2)


def test_only_readings_of_the_same_orders_show_that_reading_moves_a_date() -> None:
    def readings(*others: int) -> list[Listing]:
        days = range(1, 1 + len(others))
        return [
            listing({"id": 1, "shipDate": f"2026-11-{day:02}T00:00:00Z"}, {"id": other})
            for day, other in zip(days, others, strict=True)
        ]

    test_orders.steady_date(1, readings(2, 3, 4, 5, 6, 7, 8), [], crowded=False)
    with pytest.raises(Failed, match="no more than 1 of 7 listings"):
        test_orders.steady_date(1, readings(*[2] * 7), [], crowded=False)
    with pytest.raises(Disturbed, match="while other checks ran"):
        test_orders.steady_date(1, readings(2, 3, 4, 5, 6, 7, 8), [], crowded=True)


@pytest.mark.parametrize(
    ("hours", "moved"),
    [
        ((0, 1, 2, 3, 4, 5, 6), True),
        ((6, 5, 4, 3, 2, 1, 0), True),
        ((0, 1, 2, 0, 1, 2, 0), False),
        ((3, 9, 1, 7, 5, 0, 8), False),
    ],
)
def test_a_date_that_goes_back_and_forth_was_not_moved_by_reading(hours: tuple[int, ...], moved: bool) -> None:
    """As where each replica reckons for itself, or an estimate scatters: nobody demands that it holds still."""
    readings = [listing({"id": 1, "shipDate": f"2026-11-24T{hour:02}:00:00Z"}) for hour in hours]
    with pytest.raises(Failed) if moved else nullcontext():
        test_orders.steady_date(1, readings, [], crowded=False)


def test_heaps_hold_every_parameter_once() -> None:
    heaps = heaped(QUERIES)
    parts = [heap.split("&") for heap in heaps]
    assert {part for heap in parts for part in heap} == {part for query in QUERIES for part in query.split("&")}
    for heap in parts:
        names = [part.partition("=")[0] for part in heap]
        assert len(set(names)) == len(names)
    assert all(len(heap) <= LONGEST_QUERY for heap in heaps)


def test_heaps_are_split_where_they_grow_long() -> None:
    queries = [f"name{number}={'x' * 90}" for number in range(40)]
    heaps = heaped(queries)
    assert all(len(heap) <= LONGEST_QUERY for heap in heaps)
    assert [part for heap in heaps for part in heap.split("&")] == queries
    assert len(heaps) == 3


@pytest.mark.parametrize(
    ("placed", "lost", "early"),
    [
        ([1, 2, 3, 4], [3, 4], True),
        ([1, 2, 3, 4], [1, 2], True),  # the newest are shown
        ([40, 10, 30, 20], [40, 30], True),  # in the order of the ids
        ([40, 10, 30, 20], [30, 20], True),  # in the order of placing
        ([1, 2, 3, 4], [1, 3], False),
        ([1, 2, 3, 4], [2, 3], False),
        ([1, 2, 3, 4], [4], False),  # the newest order alone may be late
        ([1, 2, 3, 4], [1, 2, 3, 4], False),
    ],
)
def test_where_pages_end(placed: list[int], lost: list[int], early: bool) -> None:
    assert ends_early(placed, placed, lost) is early


def test_where_pages_of_one_state_end() -> None:
    placed, pending = [1, 2, 3, 4, 5, 6, 7], [2, 3, 4]
    assert ends_early(placed, pending, [1, 5])  # the newest of the shipped are shown
    assert ends_early(placed, pending, [3, 4])
    assert ends_early(placed, pending, [4, 5, 6, 7])
    assert not ends_early(placed, pending, [1, 5, 6, 7])  # no shipped order is
    assert not ends_early(placed, pending, pending)


@pytest.mark.parametrize("bulk_orders", [1001, 1005, 1050, 1100])
def test_a_limit_of_a_thousand_is_seen_with_more(bulk_orders: int) -> None:
    session, api, orders = held("stops-after-one-thousand", bulk_orders=bulk_orders)
    with pytest.raises(Failed, match="all orders in one listing"):
        test_all_at_once.test_no_hidden_page(api, orders, session.target, set())


@pytest.mark.parametrize("already_met", [True, False])
def test_who_places_fewer_than_a_page_may_hold_does_not_see_that_there_is_none(already_met: bool) -> None:
    session, api, orders = held(bulk_orders=1000)
    with pytest.raises(Excluded, match="pages of 1,000 or more go unnoticed"):
        test_all_at_once.test_no_hidden_page(api, orders, session.target, set())
    with pytest.raises(Excluded, match="bulk_orders is 1000"):
        test_all_at_once.test_no_order_is_hidden_while_others_are_cancelled(api, orders, session.target, already_met)


def test_a_small_page_is_seen_by_who_places_few() -> None:
    session, api, orders = held("stops-after-one-hundred", bulk_orders=200)
    with pytest.raises(Failed, match="all orders in one listing"):
        test_all_at_once.test_no_hidden_page(api, orders, session.target, set())


def test_a_provider_that_does_not_empty_the_store_is_not_held_against_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, api, orders = held()
    monkeypatch.setattr(orders, "empty_store", lambda: None)
    with pytest.raises(Inconclusive, match="the provider may be at fault"):
        test_empty.test_empty_store_is_an_empty_array(api, orders, set())


def test_a_provider_that_keeps_cancelled_orders_where_those_stay_listed_is_not_held_against_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, api, orders = held(variants=["keeps-listing-cancelled-orders"])
    service = session.service

    def cancel_all() -> None:
        for order in service.store.all():
            service.cancel(order.id)
            service.store.remove([order.id])

    monkeypatch.setattr(orders, "empty_store", cancel_all)
    with pytest.raises(Inconclusive, match="is still listed, also after the state provider said"):
        test_empty.test_empty_store_is_an_empty_array(api, orders, set())


def test_a_provider_that_empties_the_store_of_another_service_is_no_fault_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, api, orders = held()
    monkeypatch.setattr(orders, "empty_store", lambda: None)
    monkeypatch.setattr(orders, "take", lambda pending: Taken(api.absent(pending)))
    with pytest.raises(Inconclusive, match="does it place orders in the store of this service"):
        test_empty.test_empty_store_is_an_empty_array(api, orders, set())


def lists_no_ids(session: DirectSession) -> None:
    amend.orders(session.service, lambda _, fields: {name: value for name, value in fields.items() if name != "id"})


def test_numbers_that_no_double_holds_stand_in_for_nothing() -> None:
    """The elements of other clients may have any."""
    assert test_exact_ids.stand_in(2**53 + 1, frozenset({10**399, -(10**309)})) is None
    assert test_exact_ids.stand_in(2**53 + 1, frozenset({10**399, 2**53})) == 2**53
    test_exact_ids.exact_pets(*with_pets({2**32: 2**32, 2**60 + 1: 10**399}))


def with_pets(pets: dict[int, int]) -> tuple[list[int], Listing, Answer]:
    """Orders that were placed, with their `pets`, and the listing that has them."""
    found = listing(*({"id": order, "petId": pet} for order, pet in pets.items()))
    return list(pets), found, answered(LIST, 200, b"[]")


def test_a_pet_with_a_number_near_that_of_the_order_is_another_pet() -> None:
    """Unless all orders that a double holds have their own ids as pets."""
    for lost in ({2**53 + 1: 2**53}, {2**60 + 1001: 2**60 + 1024}, {2**60 + 1001: 1152921504606848000}):
        with pytest.raises(Failed, match="petId"):
            test_exact_ids.exact_pets(*with_pets({7: 1, 2**32: 2**32, **lost}))
    test_exact_ids.exact_pets(*with_pets({7: 1, 2**32: 2**32, 2**60 + 1001: 2**60 + 1002}))
    for others in ({}, {2**32: 2**32 + 1}, {2**32: 2**32, 2**60 + 1: 2**60 + 1}):
        test_exact_ids.exact_pets(*with_pets({7: 1, 2**53 + 1: 2**53, **others}))


def test_a_value_that_is_no_text_can_be_asked_for() -> None:
    """A lone surrogate, which JSON can carry and UTF-8 cannot."""
    found = listing({"id": 1, "shipDate": "\ud83d"}, {"id": 2, "shipDate": "a b"}, {"id": 3, "shipDate": "a b"})
    assert list(test_all_at_once.of_few(found)) == ["id=1", "shipDate=%3F"]


def test_where_nothing_has_an_id_no_other_requirement_is_blamed() -> None:
    session, api, orders = held()
    lists_no_ids(session)
    with pytest.raises(Inconclusive, match=r"elements of the listing have no id$"):
        test_exact_ids.test_ids_beyond_a_double(api, orders)


def test_what_a_refused_cancel_removes_is_not_taken_for_what_has_no_id() -> None:
    session, api, orders = held()
    lists_no_ids(session)
    store = session.service.store
    store.clear()

    def remove_another(request: messages.Request, response: messages.Response) -> None:
        if request.path.endswith(f"/{ids.EDGES[-1]}") and response.status == 409:
            store.remove([0])

    amend.responses(session.service, remove_another)
    with pytest.raises(Inconclusive, match=r"elements of the listing have no id$"):
        test_edges.test_orders_with_edge_ids_are_listed(api, orders, set())
