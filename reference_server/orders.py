"""Orders, their store, and what cancelling does to each state (specification, sections 2 and 3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# Ids from here on are far out: the counter of a new store does not begin above orders with such ids.
FAR_ID = 2**31


class Status(Enum):
    """The states of an order that the specification names (section 3); a cancelled order is gone."""

    PENDING = "pending"
    SHIPPED = "shipped"


class Outcome(Enum):
    """What became of an attempt to cancel (section 3)."""

    CANCELLED = "cancelled"
    REFUSED = "refused"
    ABSENT = "absent"


# The transition table of section 3; `None` stands for an order that does not exist.
OUTCOMES: Mapping[Status | None, Outcome] = {
    Status.PENDING: Outcome.CANCELLED,
    Status.SHIPPED: Outcome.REFUSED,
    None: Outcome.ABSENT,
}


class Order(NamedTuple):
    """One order: the fields of section 2, and the status, which the interface does not show."""

    id: int
    pet_id: int
    quantity: int
    ship_date: str
    complete: bool
    status: Status


_PETS = (4, 8, 4, 15, 8, 16, 23)
_QUANTITIES = (1, 2, 3, 5, 10, 250)
_FRACTIONS = ("", ".5", ".120", "", ".000001", ".999")
_DATES = 840  # after so many, every part of a date repeats
_OFFSETS = ("Z", "+00:00", "+02:00", "-05:30", "+14:00", "Z", "-00:00")


def sample_order(order_id: int, status: Status) -> Order:
    """An order (section 2) made from its id alone, so that placing an id again gives the same order.

    Takes the id and the status; gives an order whose other fields differ from its neighbours', some sharing a
    pet. A far-out id brings a far-out `petId`, so that exactness over int64 can be seen on both.
    """
    n = abs(order_id)
    return Order(
        id=order_id,
        pet_id=order_id if n >= FAR_ID else _PETS[n % len(_PETS)],
        quantity=_QUANTITIES[n % len(_QUANTITIES)],
        ship_date=_ship_date(n % _DATES),
        complete=n % 3 == 0,
        status=status,
    )


@cache
def _ship_date(n: int) -> str:
    day, hour, second = f"{2024 + n % 5}-{1 + n % 12:02}-{1 + n % 28:02}", n % 24, n * 7 % 60
    fraction, offset = _FRACTIONS[n % len(_FRACTIONS)], _OFFSETS[n % len(_OFFSETS)]
    return f"{day}T{hour:02}:{n % 60:02}:{second:02}{fraction}{offset}"


class OrderStore:
    """Every order placed in the store (section 4.1), in memory and safe to use from many threads."""

    def __init__(self, orders: Iterable[Order] = ()) -> None:
        """Takes the orders that are there from the start."""
        self._lock = threading.RLock()
        self._orders: dict[int, Order] = {order.id: order for order in orders}
        self._counter = max((known for known in self._orders if known < FAR_ID), default=0) + 1
        self._ahead: set[int] = set()  # ids that were placed before the counter has come to them
        self.next_id: Callable[[], int] = self.count_up

    def __len__(self) -> int:
        """The number of orders."""
        return len(self._orders)

    def all(self) -> list[Order]:
        """Every order, oldest first, as they are at one moment (section 4.1)."""
        with self._lock:
            return list(self._orders.values())

    def get(self, order_id: int) -> Order | None:
        """The order with this id, or `None`."""
        return self._orders.get(order_id)

    def cancel(self, order_id: int) -> Outcome:
        """Cancels an order if its status allows it; check and change are one step (section 3).

        Takes the id; gives the outcome. Of simultaneous calls for one order exactly one is `CANCELLED`.
        """
        with self._lock:
            order = self._orders.get(order_id)
            outcome = OUTCOMES[order.status if order else None]
            if outcome is Outcome.CANCELLED:
                del self._orders[order_id]
            return outcome

    def place(self, count: int, status: Status) -> list[int]:
        """Places that many new orders in this status and gives their ids, which no order had before."""
        with self._lock:
            return self.place_ids([self.next_id() for _ in range(count)], status)

    def place_ids(self, ids: Iterable[int], status: Status) -> list[int]:
        """Places an order under each of these ids, in place of one that has it, and gives the ids.

        The counter stays where it is: one order near 2^63 must not push every later id there.
        """
        with self._lock:
            placed = {order_id: sample_order(order_id, status) for order_id in ids}
            self._orders.update(placed)
            self._ahead.update(order_id for order_id in placed if order_id >= self._counter)
            return list(placed)

    def change(self, order_id: int, **fields: Any) -> None:
        """Gives an order other values in these fields, if it is there."""
        with self._lock:
            order = self._orders.get(order_id)
            if order:
                self._orders[order_id] = order._replace(**fields)

    def remove(self, ids: Iterable[int]) -> None:
        """Takes these orders away, whatever their status; an id that no order has is ignored."""
        with self._lock:
            for order_id in ids:
                self._orders.pop(order_id, None)

    def clear(self) -> None:
        """Takes every order away."""
        with self._lock:
            self._orders.clear()

    def count_up(self) -> int:
        """The next id that no order had before, counting up; chosen ones are passed over."""
        with self._lock:
            while self._counter in self._ahead:
                self._ahead.remove(self._counter)
                self._counter += 1
            order_id = self._counter
            self._counter += 1
            return order_id
