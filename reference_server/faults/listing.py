"""Faults in what the listing holds: LIST-3 to LIST-9."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from .. import amend
from ..api import JsonObject, Service
from ..messages import Request, Response
from ..orders import FAR_ID, INT64_MAX, INT64_MIN, Order, Outcome, Status
from .registry import fault

# --- LIST-3: every order ---


def _leaves_out(service: Service, which: Callable[[Order], bool]) -> None:
    amend.listing(service, lambda request, orders: [order for order in orders if not which(order)])


@fault("LIST-3")
def leaves_out_shipped_orders(service: Service) -> None:
    """Lists pending orders only."""
    _leaves_out(service, lambda order: order.status is Status.SHIPPED)


@fault("LIST-3")
def leaves_out_pending_orders(service: Service) -> None:
    """Lists shipped orders only."""
    _leaves_out(service, lambda order: order.status is Status.PENDING)


@fault("LIST-3")
def leaves_out_complete_orders(service: Service) -> None:
    """Lists orders that are not complete only."""
    _leaves_out(service, lambda order: order.complete)


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
    _leaves_out(service, lambda order: order.quantity > 9)


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
def leaves_out_an_order_right_after_a_cancel(service: Service) -> None:
    """Leaves the newest order out of the first listing after an order was cancelled."""
    cancelled: list[int] = []

    def note(order_id: int, outcome: Outcome) -> None:
        if outcome is Outcome.CANCELLED:
            cancelled[:] = [order_id]

    def change(request: Request, orders: list[Order]) -> list[Order]:
        return orders[:-1] if cancelled and cancelled.pop() else orders

    amend.after_cancel(service, note)
    amend.listing(service, change)


@fault("LIST-3")
def leaves_out_every_tenth_id(service: Service) -> None:
    """Lists no order whose id can be divided by ten."""
    _leaves_out(service, lambda order: order.id % 10 == 0)


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
        if order and order.status is Status.SHIPPED:
            locked.add(order_id)
            time.sleep(0.02)
            locked.discard(order_id)

    amend.before_cancel(service, decide)
    _leaves_out(service, lambda order: order.id in locked)


# --- LIST-4: unique ids ---


@fault("LIST-4")
def lists_the_first_order_twice(service: Service) -> None:
    """Lists the first order once more at the end."""
    amend.listing(service, lambda request, orders: orders + orders[:1])


@fault("LIST-4")
def lists_shipped_orders_twice(service: Service) -> None:
    """Lists every shipped order twice, as a join with two shipments would."""
    amend.listing(
        service,
        lambda request, orders: [order for order in orders for _ in range(2 if order.status is Status.SHIPPED else 1)],
    )


@fault("LIST-4")
def gives_an_id_to_two_orders(service: Service) -> None:
    """Lists the newest id a second time with another pet and quantity."""
    amend.listing(
        service,
        lambda request, orders: (
            orders + [order._replace(pet_id=order.pet_id % 1000 + 1, quantity=77) for order in orders[-1:]]
        ),
    )


@fault("LIST-4")
def repeats_an_order_between_pages(service: Service) -> None:
    """Fetches in pages of 100 inside, and lists the last order of one again as the first of the next."""
    amend.listing(
        service,
        lambda request, orders: [
            order for page in range(0, max(len(orders), 1), 100) for order in orders[max(page - 1, 0) : page + 100]
        ],
    )


# --- LIST-5: however many ---


@fault("LIST-5")
def stops_after_the_newest_fifty(service: Service) -> None:
    """Lists the newest 50 orders."""
    amend.listing(service, lambda request, orders: orders[-50:])


@fault("LIST-5")
def stops_after_one_hundred(service: Service) -> None:
    """Lists 100 orders at most, the oldest."""
    amend.listing(service, lambda request, orders: orders[:100])


@fault("LIST-5")
def stops_after_the_newest_two_hundred(service: Service) -> None:
    """Lists the newest 200 orders."""
    amend.listing(service, lambda request, orders: orders[-200:])


@fault("LIST-5")
def leaves_out_a_last_page_that_is_full(service: Service) -> None:
    """Reads pages of 100 orders, the last with what is left over for its limit: none where it is full."""
    amend.listing(service, lambda request, orders: orders[: max(len(orders) - 1, 0) // 100 * 100 + len(orders) % 100])


@fault("LIST-5")
def stops_after_five_hundred(service: Service) -> None:
    """Lists 500 orders at most, the oldest."""
    amend.listing(service, lambda request, orders: orders[:500])


@fault("LIST-5")
def stops_after_one_thousand(service: Service) -> None:
    """Lists 1,000 orders at most, the oldest."""
    amend.listing(service, lambda request, orders: orders[:1000])


@fault("LIST-5")
def stops_after_the_newest_thousand(service: Service) -> None:
    """Lists the newest 1,000 orders."""
    amend.listing(service, lambda request, orders: orders[-1000:])


@fault("LIST-5")
def stops_after_64_kilobytes(service: Service) -> None:
    """Lists as many orders as fit into 64 KiB."""

    def change(body: bytes) -> bytes:
        return body if len(body) <= 65536 else body[: body.rindex(b"},{", 0, 65534)] + b"}]"

    amend.listing_body(service, change)


@fault("LIST-5")
def loses_one_order_in_a_thousand(service: Service) -> None:
    """Leaves the last order out when there are more than 1,000."""
    amend.listing(service, lambda request, orders: orders[:-1] if len(orders) > 1000 else orders)


@fault("LIST-5")
def pages_what_it_may_not_compress(service: Service) -> None:
    """Lists 50 orders to a client that does not take gzip."""
    amend.listing(
        service, lambda request, orders: orders if "gzip" in request.headers.get("accept-encoding", "") else orders[:50]
    )


@fault("LIST-5")
def pages_for_browsers(service: Service) -> None:
    """Lists 50 orders to those who accept HTML."""
    amend.listing(
        service, lambda request, orders: orders[:50] if "text/html" in request.headers.get("accept", "") else orders
    )


@fault("LIST-5")
def pages_for_programs(service: Service) -> None:
    """Lists 50 orders to those who accept application/json and nothing else."""
    amend.listing(
        service,
        lambda request, orders: orders[:50] if request.headers.get("accept") == "application/json" else orders,
    )


@fault("LIST-5")
def reads_pages_by_offset(service: Service) -> None:
    """Reads 100 orders after the other; where one of those before is cancelled meanwhile, one of the next is lost."""
    inner = service.listed

    def listed(request: Request) -> list[Order]:
        found: list[Order] = []
        while len(found) % 100 == 0 and (page := list(inner(request))[len(found) : len(found) + 100]):
            found += page
            time.sleep(0.002 if len(page) == 100 else 0)
        return found

    service.listed = listed


# --- LIST-6: no filter ---


def _parameters(request: Request) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in request.query.split("&") if pair)
    return {name: value for name, _, value in pairs}


def _filters(service: Service, names: tuple[str, ...], keep: Callable[[str, list[Order]], Iterable[Order]]) -> None:
    """Applies a filter for each of these query parameters that is there."""

    def change(request: Request, orders: list[Order]) -> Iterable[Order]:
        given = _parameters(request)
        return next((keep(given[name], orders) for name in names if name in given), orders)

    amend.listing(service, change)


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


@fault("LIST-6")
def obeys_the_tenant(service: Service) -> None:
    """Lists no order where the query names a tenant, none of which it has."""
    _filters(service, ("tenant", "tenantId", "storeId"), lambda value, orders: [])


@fault("LIST-6")
def goes_on_after_an_id(service: Service) -> None:
    """Lists only orders whose id is above the one that after says."""
    _filters(service, ("after",), lambda value, orders: [o for o in orders if not value.isdigit() or o.id > int(value)])


@fault("LIST-6")
def filters_by_status(service: Service) -> None:
    """Lists only orders of the status in the query."""
    _filters(service, ("status",), lambda value, orders: [o for o in orders if o.status.value == value])


@fault("LIST-6")
def obeys_a_limit(service: Service) -> None:
    """Lists no more orders than the query parameter limit says."""
    _filters(service, ("limit",), lambda value, orders: orders[: _number(value, len(orders))])


@fault("LIST-6")
def obeys_a_page_size(service: Service) -> None:
    """Lists no more orders than per_page, page_size, pageSize or size says."""
    names = ("per_page", "page_size", "pageSize", "size")
    _filters(service, names, lambda value, orders: orders[: _number(value, len(orders))])


@fault("LIST-6")
def wraps_pages(service: Service) -> None:
    """Sends the listing as the content of a page, an object, if the query has page or size."""

    def change(request: Request, response: Response) -> Response | None:
        asked = amend.is_listing(request, response) and _parameters(request).keys() & {"page", "size"}
        return Response(200, b'{"content":' + response.body + b"}", response.headers) if asked else None

    amend.granted(service, change)


@fault("LIST-6")
def obeys_a_page_and_its_size_together(service: Service) -> None:
    """Lists as many orders as size says from the page that page says, if there is nothing else in the query."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        given = _parameters(request)
        if given.keys() != {"page", "size"}:
            return orders
        size = _number(given["size"], len(orders))
        return orders[_number(given["page"], 0) * size :][:size]

    amend.listing(service, change)


@fault("LIST-6")
def turns_pages(service: Service) -> None:
    """Lists the page of 20 orders that the query parameter page names, from 1."""

    def keep(value: str, orders: list[Order]) -> list[Order]:
        page = max(_number(value, 1), 1)
        return orders[20 * (page - 1) : 20 * page]

    _filters(service, ("page",), keep)


@fault("LIST-6")
def obeys_an_offset(service: Service) -> None:
    """Leaves out as many orders as offset, skip or start says."""
    _filters(service, ("offset", "skip", "start"), lambda value, orders: orders[_number(value, 0) :])


@fault("LIST-6")
def filters_by_pet(service: Service) -> None:
    """Lists only orders of the pet in the query."""
    _filters(service, ("petId",), lambda value, orders: [o for o in orders if str(o.pet_id) == value])


@fault("LIST-6")
def filters_by_complete(service: Service) -> None:
    """Lists only orders that are complete, or are not, as the query says."""
    _filters(
        service,
        ("complete",),
        lambda value, orders: [o for o in orders if str(o.complete).lower() == value.lower()],
    )


@fault("LIST-6")
def filters_by_id(service: Service) -> None:
    """Lists only the order whose id is in the query."""
    _filters(service, ("id", "orderId"), lambda value, orders: [o for o in orders if str(o.id) == value])


@fault("LIST-6")
def obeys_a_limit_from_five_on(service: Service) -> None:
    """Lists no more orders than limit says, if that is five at least."""

    def keep(value: str, orders: list[Order]) -> list[Order]:
        limit = _number(value, 0)
        return orders[:limit] if limit >= 5 else orders

    _filters(service, ("limit",), keep)


@fault("LIST-6")
def caps_a_limit_at_a_hundred(service: Service) -> None:
    """Lists 100 orders where limit says 100 or more."""
    _filters(service, ("limit",), lambda value, orders: orders[:100] if _number(value, 0) >= 100 else orders)


@fault("LIST-6")
def pages_as_json_servers_do(service: Service) -> None:
    """Lists the orders from _start to _end, and no more than _limit says."""
    _filters(service, ("_limit", "_end"), lambda value, orders: orders[: _number(value, len(orders))])
    _filters(service, ("_start",), lambda value, orders: orders[_number(value, 0) :])


@fault("LIST-6")
def pages_by_names_in_brackets(service: Service) -> None:
    """Lists no more orders than page[limit] says, from page[offset] on."""
    _filters(service, ("page%5Blimit%5D",), lambda value, orders: orders[: _number(value, len(orders))])
    _filters(service, ("page%5Boffset%5D",), lambda value, orders: orders[_number(value, 0) :])


@fault("LIST-6")
def filters_by_the_start_of_a_period(service: Service) -> None:
    """Lists only orders that ship on the day startDate, start_date or fromDate says, or later."""
    names = ("startDate", "start_date", "fromDate")
    _filters(service, names, lambda value, orders: [o for o in orders if o.ship_date[:10] >= value])


@fault("LIST-6")
def filters_by_the_end_of_a_period(service: Service) -> None:
    """Lists only orders that ship on the day endDate or end_date says, or before."""
    _filters(service, ("endDate", "end_date"), lambda value, orders: [o for o in orders if o.ship_date[:10] <= value])


@fault("LIST-6")
def filters_by_customer(service: Service) -> None:
    """Lists only orders of the customer that customerId or userId names, of which there is none."""
    _filters(service, ("customerId", "userId"), lambda value, orders: [])


@fault("LIST-6")
def finds_nothing_for_a_query(service: Service) -> None:
    """Lists nothing when there is any query."""
    amend.listing(service, lambda request, orders: [] if request.query else orders)


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


# --- LIST-8: exact ids ---


def _ids(service: Service, change: Callable[[int], int], *names: str) -> None:
    """Writes other integers in these fields."""

    def fields_of(order: Order, fields: JsonObject) -> JsonObject:
        exact = {"id": order.id, "petId": order.pet_id}
        return {**fields, **{name: change(exact[name]) for name in names}}

    amend.orders(service, fields_of)


def _double(number: int) -> int:
    return max(min(int(float(number)), INT64_MAX), -INT64_MAX)


def _int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


@fault("LIST-8")
def writes_ids_through_a_double(service: Service) -> None:
    """Writes the id as a double holds it."""
    _ids(service, _double, "id")


@fault("LIST-8")
def writes_pet_ids_through_a_double(service: Service) -> None:
    """Writes the petId as a double holds it."""
    _ids(service, _double, "petId")


@fault("LIST-8")
def writes_ids_in_32_bits(service: Service) -> None:
    """Writes the lower 32 bits of the id, with sign."""
    _ids(service, _int32, "id")


@fault("LIST-8")
def writes_ids_without_sign(service: Service) -> None:
    """Writes negative ids as positive."""
    _ids(service, lambda number: abs(max(number, -INT64_MAX)), "id")


@fault("LIST-8")
def limits_ids_to_53_bits(service: Service) -> None:
    """Writes 2^53 - 1 for every id above it."""
    _ids(service, lambda number: min(number, 2**53 - 1), "id")


@fault("LIST-8")
def writes_sixteen_digits_of_ids(service: Service) -> None:
    """Writes zeros after the first sixteen digits of an id."""

    def rounded(number: int) -> int:
        unit: int = 10 ** max(len(str(abs(number))) - 16, 0)
        return number - number % unit if number >= 0 else -(-number - -number % unit)

    _ids(service, rounded, "id")


@fault("LIST-8")
def leaves_out_negative_ids(service: Service) -> None:
    """Lists no order with a negative id."""
    _leaves_out(service, lambda order: order.id < 0)


@fault("LIST-8")
def leaves_out_far_ids(service: Service) -> None:
    """Lists no order with an id that 32 bits cannot hold."""
    _leaves_out(service, lambda order: not -FAR_ID <= order.id < FAR_ID)


@fault("LIST-8")
def leaves_out_the_least_id(service: Service) -> None:
    """Lists the orders above -2^63, from which it begins to count, and so not the one with that id."""
    _leaves_out(service, lambda order: order.id == INT64_MIN)


@fault("LIST-8")
def leaves_out_the_id_0(service: Service) -> None:
    """Lists the orders whose id is true, and so not the one with the id 0."""
    _leaves_out(service, lambda order: not order.id)


@fault("LIST-8")
def lists_one_of_ids_that_are_the_same_double(service: Service) -> None:
    """Leaves out an order whose id is the same as a double as that of one before it."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        first: dict[float, Order] = {}
        return [order for order in orders if first.setdefault(float(order.id), order) is order]

    amend.listing(service, change)


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
    """Marks orders as complete, or as not complete, a fifth of a second after they were listed."""
    later = amend.later(service, 0.2)

    def change(orders: list[Order]) -> None:
        def mark() -> None:
            for order in orders:
                service.store.change(order.id, complete=not order.complete)

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
    """Marks every order as complete once it was listed."""

    def change(orders: list[Order]) -> None:
        for order in orders:
            if not order.complete:
                service.store.change(order.id, complete=True)

    _after_listing(service, change)


@fault("LIST-9")
def moves_the_date_with_each_listing(service: Service) -> None:
    """Writes another shipDate of pending orders into every listing."""
    readings = itertools.count()

    def fields_of(order: Order, fields: JsonObject) -> JsonObject:
        if order.status is Status.SHIPPED:
            return fields
        return {**fields, "shipDate": f"2026-05-{1 + next(readings) % 28:02}T10:00:00Z"}

    amend.orders(service, fields_of)
