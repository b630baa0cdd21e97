"""The store and its transition table."""

from __future__ import annotations

import sys
import threading
import time
from datetime import datetime

from reference_server.orders import INT64_MAX, INT64_MIN, OrderStore, Outcome, Status, sample_order


def test_a_pending_order_is_cancelled_once_and_is_gone() -> None:
    store = OrderStore()
    [order_id] = store.place(1, Status.PENDING)
    assert store.cancel(order_id) is Outcome.CANCELLED
    assert store.cancel(order_id) is Outcome.ABSENT
    assert store.all() == []


def test_a_shipped_order_is_refused_and_unchanged() -> None:
    store = OrderStore()
    [order_id] = store.place(1, Status.SHIPPED)
    before = store.get(order_id)
    assert store.cancel(order_id) is Outcome.REFUSED
    assert store.cancel(order_id) is Outcome.REFUSED
    assert store.get(order_id) == before


def test_new_ids_count_up_and_are_never_given_again() -> None:
    store = OrderStore([sample_order(41, Status.PENDING), sample_order(INT64_MAX, Status.PENDING)])
    assert store.place(2, Status.PENDING) == [42, 43]
    store.remove([42, 43, 44])
    store.place_ids([45, 100], Status.PENDING)
    store.remove([45])
    assert store.place(3, Status.SHIPPED) == [44, 46, 47], "a chosen id leaves the counter where it is"


def test_placing_chosen_ids_again_renews_them() -> None:
    store = OrderStore()
    ids = [INT64_MIN, -1, 0, 2**53 + 1, INT64_MAX]
    assert store.place_ids(ids, Status.SHIPPED) == ids
    assert store.place_ids(ids, Status.PENDING) == ids
    assert [order.id for order in store.all()] == ids
    assert {order.status for order in store.all()} == {Status.PENDING}
    store.clear()
    assert len(store) == 0


def test_sample_orders_vary_and_have_valid_dates() -> None:
    orders = [sample_order(n, Status.PENDING) for n in range(1000)]
    for order in orders:
        assert datetime.fromisoformat(order.ship_date).tzinfo is not None
    assert len({order.ship_date for order in orders}) > 800
    assert len({order.ship_date[19:] for order in orders}) > 20
    assert {order.complete for order in orders} == {True, False}
    assert len({order.pet_id for order in orders[:7]}) < 7, "neighbours share a pet"
    assert sample_order(2**53 + 1, Status.PENDING).pet_id == 2**53 + 1


def test_one_of_many_simultaneous_cancels_succeeds() -> None:
    store = OrderStore()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for order_id in store.place(30, Status.PENDING):
            start = threading.Barrier(8)
            outcomes: list[Outcome] = []

            def cancel(
                order_id: int = order_id,
                start: threading.Barrier = start,
                outcomes: list[Outcome] = outcomes,
            ) -> None:
                start.wait()
                outcomes.append(store.cancel(order_id))

            threads = [threading.Thread(target=cancel) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(outcome.value for outcome in outcomes) == ["absent"] * 7 + ["cancelled"]
    finally:
        sys.setswitchinterval(interval)


def test_a_large_store_stays_quick() -> None:
    """A hundred times as many orders, and it takes as long: each the shortest of some tries, with room for chance."""

    def took(orders: int) -> float:
        store = OrderStore()
        store.place(orders, Status.PENDING)
        began = time.process_time()
        for order_id in range(1, 501):
            store.cancel(order_id)
        store.place(500, Status.PENDING)
        return time.process_time() - began

    assert min(took(50_000) for _ in range(5)) < 10 * min(took(500) for _ in range(5))
