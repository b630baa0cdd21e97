"""Faults in the ids that are listed: LIST-4 and LIST-8."""

from __future__ import annotations

from collections.abc import Callable

from .. import amend
from ..api import JsonObject, Service
from ..messages import Request
from ..orders import FAR_ID, INT64_MAX, INT64_MIN, Order
from ..registry import fault

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
        lambda request, orders: [order for order in orders for _ in range(2 if amend.shipped(order) else 1)],
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


# --- LIST-8: exact ids ---


def _ids(service: Service, change: Callable[[int], int], *names: str) -> None:
    """Writes other integers in these fields."""

    def fields_of(order: Order, fields: JsonObject) -> JsonObject:
        exact = {"id": order.id, "petId": order.pet_id}
        return {**fields, **{name: change(exact[name]) for name in names}}

    amend.orders(service, fields_of)


def _double(number: int) -> int:
    return int(float(number))  # beyond int64 for the id at its end


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
    amend.leave_out(service, lambda order: order.id < 0)


@fault("LIST-8")
def leaves_out_far_ids(service: Service) -> None:
    """Lists no order with an id that 32 bits cannot hold."""
    amend.leave_out(service, lambda order: not -FAR_ID <= order.id < FAR_ID)


@fault("LIST-8")
def leaves_out_the_least_id(service: Service) -> None:
    """Lists the orders above -2^63, from which it begins to count, and so not the one with that id."""
    amend.leave_out(service, lambda order: order.id == INT64_MIN)


@fault("LIST-8")
def leaves_out_the_id_0(service: Service) -> None:
    """Lists the orders whose id is true, and so not the one with the id 0."""
    amend.leave_out(service, lambda order: not order.id)


@fault("LIST-8")
def lists_one_of_ids_that_are_the_same_double(service: Service) -> None:
    """Leaves out an order whose id is the same as a double as that of one before it."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        first: dict[float, Order] = {}
        return [order for order in orders if first.setdefault(float(order.id), order) is order]

    amend.listing(service, change)
