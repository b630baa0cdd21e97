"""Faults in which orders are listed, and what listing does to them: LIST-3, LIST-7 and LIST-9."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, timedelta

from .. import amend
from ..api import JsonObject, Service
from ..messages import Request, Response
from ..orders import Order, Outcome, Status
from ..registry import fault

# --- LIST-3: every order ---


@fault("LIST-3")
def leaves_out_shipped_orders(service: Service) -> None:
    """Lists pending orders only."""
    amend.leave_out(service, amend.shipped)


@fault("LIST-3")
def leaves_out_pending_orders(service: Service) -> None:
    """Lists shipped orders only."""
    amend.leave_out(service, amend.pending)


@fault("LIST-3")
def leaves_out_shipped_orders_for_clients_of_json(service: Service) -> None:
    """Lists pending orders only to clients that accept application/json by name."""

    def change(request: Request, orders: list[Order]) -> Iterable[Order]:
        return filter(amend.pending, orders) if amend.names_json(request) else orders

    amend.listing(service, change)


@fault("LIST-3")
def leaves_out_complete_orders(service: Service) -> None:
    """Lists orders that are not complete only."""
    amend.leave_out(service, lambda order: order.complete)


@fault("LIST-3")
def leaves_out_the_newest_order(service: Service) -> None:
    """Stops one order short of the end."""
    amend.listing(service, lambda request, orders: orders[:-1])


@fault("LIST-3")
def leaves_out_the_oldest_order(service: Service) -> None:
    """Starts with the second order."""
    amend.listing(service, lambda request, orders: orders[1:])


@fault("LIST-3")
def leaves_out_an_order_by_itself(service: Service) -> None:
    """Lists no order where there is but one."""
    amend.listing(service, lambda request, orders: orders if len(orders) > 1 else [])


@fault("LIST-3")
def lists_nothing_where_nothing_is_pending(service: Service) -> None:
    """Lists no order where none is pending."""
    amend.listing(service, lambda request, orders: orders if any(map(amend.pending, orders)) else [])


@fault("LIST-3")
def lists_nothing_where_nothing_has_shipped(service: Service) -> None:
    """Lists no order where none has shipped."""
    amend.listing(service, lambda request, orders: orders if any(map(amend.shipped, orders)) else [])


@fault("LIST-3")
def leaves_out_large_quantities(service: Service) -> None:
    """Lists no order of more than nine units."""
    amend.leave_out(service, lambda order: order.quantity > 9)


@fault("LIST-3")
def lists_one_order_for_each_pet(service: Service) -> None:
    """Lists the first order only of those for the same pet."""
    amend.listing(service, lambda request, orders: {order.pet_id: order for order in orders[::-1]}.values())


@fault("LIST-3")
def lists_what_was_there_at_the_first_listing(service: Service) -> None:
    """Keeps the first listing and repeats it until an order is cancelled."""
    kept: list[Order] = []

    def change(request: Request, orders: list[Order]) -> list[Order]:
        if not kept or any(service.store.get(order.id) is None for order in kept):
            kept[:] = orders
        return list(kept)

    amend.listing(service, change)


@fault("LIST-3")
def lists_new_orders_the_second_time(service: Service) -> None:
    """Shows an order from the second listing on after it was placed."""
    seen: set[int] = set()

    def change(request: Request, orders: list[Order]) -> list[Order]:
        shown = [order for order in orders if order.id in seen]
        seen.update(order.id for order in orders)
        return shown

    amend.listing(service, change)


@fault("LIST-3")
def leaves_out_an_order_every_third_time(service: Service) -> None:
    """Leaves the newest order out of every third listing."""
    due = amend.every(3)
    amend.listing(service, lambda request, orders: orders[:-1] if due() else orders)


@fault("LIST-3")
def leaves_out_an_order_every_fiftieth_time(service: Service) -> None:
    """Leaves the newest order out of every fiftieth listing."""
    due = amend.every(50)
    amend.listing(service, lambda request, orders: orders[:-1] if due() else orders)


@fault("LIST-3")
def leaves_out_an_order_right_after_a_cancel(service: Service) -> None:
    """Leaves the newest order out of the first listing after an order was cancelled."""
    cancelled: list[Order] = []

    def change(request: Request, orders: list[Order]) -> list[Order]:
        if not cancelled:
            return orders
        cancelled.clear()
        return orders[:-1]

    amend.when(service, Outcome.CANCELLED, cancelled.append)
    amend.listing(service, change)


@fault("LIST-3")
def leaves_out_every_tenth_id(service: Service) -> None:
    """Lists no order whose id can be divided by ten."""
    amend.leave_out(service, lambda order: order.id % 10 == 0)


def _while_cancelling(service: Service, change: Callable[[list[int], list[Order]], list[Order]]) -> None:
    """Makes cancels take five thousandths of a second, and changes the listing meanwhile; the change is given the ids
    that are being cancelled."""
    under_way: list[int] = []
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        under_way.append(order_id)
        time.sleep(0.005)
        outcome = inner(order_id)
        under_way.remove(order_id)
        return outcome

    def listed(request: Request, orders: list[Order]) -> list[Order]:
        cancelling = list(under_way)
        return change(cancelling, orders) if cancelling else orders

    service.cancel = cancel
    amend.listing(service, listed)


@fault("LIST-3")
def lists_nothing_while_it_cancels(service: Service) -> None:
    """Lists no order at all while one is being cancelled."""
    _while_cancelling(service, lambda cancelling, orders: [])


@fault("LIST-3")
def leaves_out_newer_orders_while_it_cancels(service: Service) -> None:
    """Lists no order with a higher id than one that is just being cancelled."""
    _while_cancelling(service, lambda cancelling, orders: [order for order in orders if order.id <= min(cancelling)])


@fault("LIST-3")
def leaves_out_shipped_orders_that_are_being_refused(service: Service) -> None:
    """Lists no order that somebody is trying to cancel just then, not even one that has shipped: it skips what is
    locked."""
    locked: set[int] = set()

    def decide(order_id: int, order: Order | None) -> None:
        if amend.shipped(order):
            locked.add(order_id)
            time.sleep(0.02)
            locked.discard(order_id)

    amend.before_cancel(service, decide)
    amend.leave_out(service, lambda order: order.id in locked)


# --- LIST-7: no orders ---


def _when_empty(service: Service, body: bytes) -> None:
    amend.listing_body(service, lambda found: body if found == b"[]" else found)


@fault("LIST-7")
def lists_null_when_empty(service: Service) -> None:
    """Answers null when there are no orders."""
    _when_empty(service, b"null")


@fault("LIST-7")
def lists_an_object_when_empty(service: Service) -> None:
    """Answers {} when there are no orders."""
    _when_empty(service, b"{}")


@fault("LIST-7")
def lists_nothing_when_empty(service: Service) -> None:
    """Answers an empty body when there are no orders."""
    _when_empty(service, b"")


@fault("LIST-7")
def lists_an_empty_order_when_empty(service: Service) -> None:
    """Answers an array with one object without fields when there are no orders."""
    _when_empty(service, b"[{}]")


@fault("LIST-7")
def lists_with_404_when_empty(service: Service) -> None:
    """Answers 404 with [] when there are no orders."""

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and response.body == b"[]":
            response.status = 404

    amend.granted(service, change)


# --- LIST-9: reading changes nothing ---


def _after_listing(service: Service, change: Callable[[list[Order]], None]) -> None:
    """Does something with the orders that were just listed."""
    inner = service.list_orders

    def list_orders(request: Request) -> Response:
        response = inner(request)
        change(service.store.all())
        return response

    service.list_orders = list_orders


def _when_listed(service: Service, times: int, change: Callable[[Order], object]) -> None:
    """Does something with each order when it is listed for this very time."""
    counts: Counter[int] = Counter()
    lock = threading.Lock()

    def count(orders: list[Order]) -> None:
        with lock:
            counts.update(order.id for order in orders)
            due = [order for order in orders if counts[order.id] == times]
        for order in due:
            change(order)

    _after_listing(service, count)


@fault("LIST-9")
def ships_what_was_listed_twice(service: Service) -> None:
    """Ships a pending order when it is listed the second time."""
    _when_listed(service, 2, lambda order: service.store.change(order.id, status=Status.SHIPPED))


@fault("LIST-9")
def completes_what_was_listed_a_moment_later(service: Service) -> None:
    """Marks orders as complete a fifth of a second after they were listed."""
    later = amend.later(service)

    def change(orders: list[Order]) -> None:
        def mark() -> None:
            for order in orders:
                service.store.change(order.id, complete=True)

        later(mark)

    _after_listing(service, change)


@fault("LIST-9")
def cancels_what_was_listed_three_times(service: Service) -> None:
    """Cancels a pending order when it is listed the third time."""
    _when_listed(service, 3, lambda order: service.store.cancel(order.id))


@fault("LIST-9")
def reopens_shipped_orders_by_listing(service: Service) -> None:
    """Makes a shipped order pending when it is listed the second time."""
    _when_listed(service, 2, lambda order: service.store.change(order.id, status=Status.PENDING))


@fault("LIST-9")
def counts_readings_in_the_quantity(service: Service) -> None:
    """Adds one to the quantity of the newest order each time it is listed."""

    def change(orders: list[Order]) -> None:
        for order in orders[-1:]:
            service.store.change(order.id, quantity=order.quantity + 1)

    _after_listing(service, change)


@fault("LIST-9")
def completes_what_was_listed(service: Service) -> None:
    """Marks a pending order as complete once it was listed."""

    def change(orders: list[Order]) -> None:
        for order in orders:
            if amend.pending(order) and not order.complete:
                service.store.change(order.id, complete=True)

    _after_listing(service, change)


@fault("LIST-9")
def moves_the_date_with_each_listing(service: Service) -> None:
    """Writes another shipDate of pending orders into every listing."""
    readings = itertools.count()

    def fields_of(order: Order, fields: JsonObject) -> JsonObject:
        if amend.shipped(order):
            return fields
        return {**fields, "shipDate": f"{date(2026, 5, 1) + timedelta(days=next(readings))}T10:00:00Z"}

    amend.orders(service, fields_of)


@fault("LIST-9")
def cancels_by_any_method(service: Service) -> None:
    """Takes any method at the address of an order for a cancel: GET, HEAD and OPTIONS, too."""

    def answer(request: Request) -> Response | None:
        collection, _, text = request.path.rpartition("/")
        safe = request.method in ("GET", "HEAD", "OPTIONS")
        return service.cancel_order(request, text) if safe and collection == service.collection else None

    amend.instead(service, answer)
