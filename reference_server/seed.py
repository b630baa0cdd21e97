"""The orders that the store starts with: from the package, from a file, or any number of samples."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .orders import INT64_MAX, INT64_MIN, Order, Status, sample_order

SEED = Path(__file__).with_name("data") / "orders.json"
MOST_AT_START = 10_000_000


class BadOrdersError(Exception):
    """The orders asked for cannot be had; the text says why."""


def initial_orders(source: str | None) -> list[Order]:
    """Takes a number, the name of a file, or `None` for the packaged seed; gives the orders (section 2)."""
    if source is not None and re.fullmatch("-?[0-9]+", source):
        return sample_orders(int(source))
    return read_orders(SEED if source is None else Path(source))


def sample_orders(count: int) -> list[Order]:
    """That many orders with ids from 1, every third one shipped (section 3)."""
    if not 0 <= count <= MOST_AT_START:
        raise BadOrdersError(f"the number of orders is 0 to {MOST_AT_START}, not {count}")
    return [sample_order(n, Status.PENDING if n % 3 else Status.SHIPPED) for n in range(1, count + 1)]


def read_orders(file: Path) -> list[Order]:
    """Takes a JSON file, a list of Order objects with a `status` besides; gives the orders (section 2).

    Only `id` must be there; what else is missing is made up.
    """
    try:
        objects = json.loads(file.read_bytes())
    except OSError as problem:
        raise BadOrdersError(f"cannot read {file}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise BadOrdersError(f"{file} is not JSON, or nested too deeply") from None
    if not isinstance(objects, list):
        raise BadOrdersError(f"{file} must hold a list of orders")
    orders = [_order(found, f"{file}, order {n}") for n, found in enumerate(objects, 1)]
    if len({order.id for order in orders}) < len(orders):
        raise BadOrdersError(f"{file} has an id twice")
    return orders


def _order(found: object, where: str) -> Order:
    if not isinstance(found, dict):
        raise BadOrdersError(f"{where}: must be an object")
    unknown = found.keys() - {"id", "petId", "quantity", "shipDate", "complete", "status"}
    if unknown:
        raise BadOrdersError(f"{where}: unknown field {sorted(unknown)[0]}")
    try:
        status = Status(found.get("status", "pending"))
    except ValueError:
        raise BadOrdersError(f"{where}: status must be pending or shipped") from None
    order_id = _integer(found.get("id"), f"{where}: id")
    sample = sample_order(order_id, status)
    ship_date, complete = found.get("shipDate", sample.ship_date), found.get("complete", sample.complete)
    if not isinstance(ship_date, str) or not isinstance(complete, bool):
        raise BadOrdersError(f"{where}: shipDate must be a string and complete a boolean")
    return Order(
        id=order_id,
        pet_id=_integer(found.get("petId", sample.pet_id), f"{where}: petId"),
        quantity=_integer(found.get("quantity", sample.quantity), f"{where}: quantity"),
        ship_date=ship_date,
        complete=complete,
        status=status,
    )


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not INT64_MIN <= value <= INT64_MAX:
        raise BadOrdersError(f"{what} must be an int64 integer")
    return value
