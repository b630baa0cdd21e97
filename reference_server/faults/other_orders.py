"""Faults of how often an order is cancelled, and what becomes of others: CANCEL-7 and CANCEL-8."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from .. import amend
from ..api import Service
from ..orders import Order, Outcome, Status
from ..registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


# --- CANCEL-7: exactly one of several ---


def _races(service: Service, window: float) -> None:
    """Looks at the status, waits, and then cancels whatever became of the order meanwhile."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.pending(order):
            return None
        time.sleep(window)
        service.store.remove([order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-7")
def looks_and_cancels_in_two_steps(service: Service) -> None:
    """Lets a fiftieth of a second pass between looking at an order and cancelling it."""
    _races(service, 0.02)


@fault("CANCEL-7")
def looks_and_cancels_in_two_quick_steps(service: Service) -> None:
    """Lets three thousandths of a second pass between looking at an order and cancelling it."""
    _races(service, 0.003)


@fault("CANCEL-7")
def lets_none_of_several_cancels_win(service: Service) -> None:
    """Refuses every one of several simultaneous cancels with 409, and leaves the order pending."""
    lock = threading.Lock()
    together: dict[int, int] = {}

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.pending(order):
            return None
        with lock:
            together[order_id] = together.get(order_id, 0) + 1
        time.sleep(0.02)
        with lock:
            alone = together[order_id] == 1
        time.sleep(0.02)
        with lock:
            together[order_id] -= 1
        return None if alone else REFUSED

    amend.before_cancel(service, decide)


@fault("CANCEL-7")
def lets_two_of_several_cancels_win(service: Service) -> None:
    """Answers 204 to a second cancel that comes while the first is still being answered."""
    answering: set[int] = set()

    def change(order_id: int, outcome: Outcome) -> Outcome | None:
        if outcome is CANCELLED:
            answering.add(order_id)
            time.sleep(0.02)
            answering.discard(order_id)
        elif outcome is ABSENT and order_id in answering:
            answering.discard(order_id)
            return CANCELLED
        return None

    amend.after_cancel(service, change)


@fault("CANCEL-7")
def ships_what_a_late_cancel_finds_gone(service: Service) -> None:
    """A cancel that comes too late to be the one of several puts the order back, as one that has shipped."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.pending(order):
            return None
        time.sleep(0.02)
        if service.store.cancel(order_id) is CANCELLED:
            return CANCELLED
        service.store.place_ids([order_id], Status.SHIPPED)
        return REFUSED

    amend.before_cancel(service, decide)


# --- CANCEL-8: no other order ---


def _takes_along(service: Service, which: Callable[[Order, Order], bool], outcome: Outcome = CANCELLED) -> None:
    """Removes other orders when one is cancelled, or has this outcome; the condition is given that one and the
    other."""

    def act(order: Order) -> None:
        service.store.remove([other.id for other in service.store.all() if which(order, other)])

    amend.when(service, outcome, act)


def _with_the_first(service: Service, lost: slice) -> None:
    """Loses these of the others when the first order of the store is cancelled."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        first = [order.id for order in service.store.all()[:1]]
        outcome = inner(order_id)
        if outcome is Outcome.CANCELLED and first == [order_id]:
            service.store.remove([order.id for order in service.store.all()[lost]])
        return outcome

    service.cancel = cancel


@fault("CANCEL-8")
def loses_all_with_the_first_order(service: Service) -> None:
    """Removes every order when the first of the store is cancelled, since the others hung on it."""
    _with_the_first(service, slice(None))


@fault("CANCEL-8")
def loses_the_last_order_with_the_first(service: Service) -> None:
    """Removes the last order as well when the first one is cancelled: it counts on from the place 0 to -1."""
    _with_the_first(service, slice(-1, None))


@fault("CANCEL-8")
def cancels_the_next_order_too(service: Service) -> None:
    """Cancels the order with the next higher id as well, if pending."""
    _takes_along(service, lambda order, other: other.id == order.id + 1 and amend.pending(other))


@fault("CANCEL-8")
def cancels_the_previous_order_too(service: Service) -> None:
    """Cancels the order with the next lower id as well, if pending."""
    _takes_along(service, lambda order, other: other.id == order.id - 1 and amend.pending(other))


@fault("CANCEL-8")
def cancels_the_order_of_the_other_sign_too(service: Service) -> None:
    """Cancels the order with the same id but for its sign as well, if pending."""
    _takes_along(service, lambda order, other: other.id == -order.id and amend.pending(other))


@fault("CANCEL-8")
def removes_shipped_orders_with_the_same_low_bits(service: Service) -> None:
    """Removes shipped orders as well whose ids equal that of the cancelled one modulo 2^32."""
    _takes_along(service, lambda order, other: (other.id - order.id) % 2**32 == 0 and amend.shipped(other))


@fault("CANCEL-8")
def removes_shipped_orders_that_begin_with_the_same_digits(service: Service) -> None:
    """Removes shipped orders as well whose ids begin with that of the cancelled one."""
    _takes_along(service, lambda order, other: str(other.id).startswith(str(order.id)) and amend.shipped(other))


@fault("CANCEL-8")
def cancels_the_tenth_next_order_too(service: Service) -> None:
    """Cancels the order whose id is ten higher as well, if pending."""
    _takes_along(service, lambda order, other: other.id == order.id + 10 and amend.pending(other))


@fault("CANCEL-8")
def cancels_the_next_order_a_moment_later(service: Service) -> None:
    """Cancels the order with the next higher id as well, a fifth of a second later."""
    later = amend.later(service)
    amend.when(service, CANCELLED, lambda order: later(lambda: service.store.cancel(order.id + 1)))


@fault("CANCEL-8")
def cancels_all_orders_of_the_pet(service: Service) -> None:
    """Cancels every pending order of the same pet."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and amend.pending(other))


@fault("CANCEL-8")
def cancels_orders_alike_but_for_the_id(service: Service) -> None:
    """Cancels what is equal in every field but the id: none of a few orders, and some of very many."""
    _takes_along(service, lambda order, other: other._replace(id=order.id) == order)


@fault("CANCEL-8")
def removes_shipped_orders_of_the_pet(service: Service) -> None:
    """Removes the shipped orders of the same pet as well when a pending one is cancelled."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and amend.shipped(other))


@fault("CANCEL-8")
def cancels_the_pending_orders_of_a_refused_pet(service: Service) -> None:
    """Refuses to cancel a shipped order, and cancels the pending ones of the same pet."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and amend.pending(other), REFUSED)


@fault("CANCEL-8")
def completes_the_shipped_orders_of_a_refused_pet(service: Service) -> None:
    """Refuses to cancel a shipped order, and sets the flag complete of the other shipped ones of the same pet."""

    def act(order: Order) -> None:
        for other in service.store.all():
            if amend.shipped(other) and other.pet_id == order.pet_id and other.id != order.id:
                service.store.change(other.id, complete=True)

    amend.when(service, REFUSED, act)


@fault("CANCEL-8")
def counts_a_repeated_cancel_for_the_pet(service: Service) -> None:
    """Answers 404 to a further cancel of an order, and adds one to the quantities of all orders of the same pet."""
    pets: dict[int, int] = {}

    def change(order_id: int, outcome: Outcome) -> None:
        if outcome is Outcome.ABSENT and order_id in pets:
            for other in service.store.all():
                if other.pet_id == pets[order_id]:
                    service.store.change(other.id, quantity=other.quantity + 1)

    amend.when(service, CANCELLED, lambda order: pets.update({order.id: order.pet_id}))
    amend.after_cancel(service, change)


@fault("CANCEL-8")
def reopens_the_next_of_a_refused_order(service: Service) -> None:
    """Refuses to cancel a shipped order, and makes the one with the next higher id pending."""

    def act(order: Order) -> None:
        if service.store.get(order.id + 1):
            service.store.change(order.id + 1, status=Status.PENDING)

    amend.when(service, REFUSED, act)


@fault("CANCEL-8")
def removes_the_oldest_other_order_that_has_shipped(service: Service) -> None:
    """Refuses to cancel a shipped order, and removes the first of the others that have shipped."""

    def act(order: Order) -> None:
        others = [other.id for other in service.store.all() if amend.shipped(other) and other.id != order.id]
        service.store.remove(others[:1])

    amend.when(service, REFUSED, act)


@fault("CANCEL-8")
def adds_one_to_the_other_orders_of_the_pet(service: Service) -> None:
    """Adds one to the quantity of every other order of the same pet when one is cancelled."""

    def act(order: Order) -> None:
        for other in service.store.all():
            if other.pet_id == order.pet_id:
                service.store.change(other.id, quantity=other.quantity + 1)

    amend.when(service, CANCELLED, act)


@fault("CANCEL-8")
def cancels_what_a_double_cannot_tell_apart(service: Service) -> None:
    """Cancels the orders as well whose ids a double cannot tell from that of the cancelled one."""
    _takes_along(service, lambda order, other: float(other.id) == float(order.id))


@fault("CANCEL-8")
def cancels_earlier_orders_of_the_pet(service: Service) -> None:
    """Cancels the orders of the same pet with a lower id as well, as done with."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and other.id < order.id)


@fault("CANCEL-8")
def cancels_everything_pending(service: Service) -> None:
    """Cancels every pending order."""
    _takes_along(service, lambda order, other: amend.pending(other))


@fault("CANCEL-8")
def removes_shipped_orders_too(service: Service) -> None:
    """Removes the shipped orders as well when a pending one is cancelled."""
    _takes_along(service, lambda order, other: amend.shipped(other))


@fault("CANCEL-8")
def ships_the_other_orders(service: Service) -> None:
    """Ships the other pending orders when one is cancelled."""

    def act(order: Order) -> None:
        for other in filter(amend.pending, service.store.all()):
            service.store.change(other.id, status=Status.SHIPPED)

    amend.when(service, CANCELLED, act)


@fault("CANCEL-8")
def moves_the_dates_of_all_other_orders_by_a_second(service: Service) -> None:
    """Writes every other order when one is cancelled, and adds a second to its shipDate, if it has shipped, too."""

    def act(order: Order) -> None:
        for other in service.store.all():
            moved = datetime.fromisoformat(other.ship_date) + timedelta(seconds=1)
            service.store.change(other.id, ship_date=moved.isoformat())

    amend.when(service, CANCELLED, act)


@fault("CANCEL-8")
def writes_back_what_it_read_without_what_was_placed(service: Service) -> None:
    """Cancels one order after the other, takes a twentieth of a second to write all others back as it had read them,
    and loses what was placed meanwhile."""
    lock = threading.Lock()

    def decide(order_id: int, _: Order | None) -> Outcome | None:
        with lock:
            if not amend.pending(service.store.get(order_id)):
                return None
            read = {order.id for order in service.store.all()}
            time.sleep(0.05)
            lost = [order.id for order in service.store.all() if order.id not in read]
            service.store.remove([*lost, order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-8")
def moves_the_quantity_to_the_next_order(service: Service) -> None:
    """Adds the quantity of a cancelled order to the one with the next higher id."""

    def act(order: Order) -> None:
        other = service.store.get(order.id + 1)
        if other:
            service.store.change(other.id, quantity=other.quantity + order.quantity)

    amend.when(service, CANCELLED, act)


@fault("CANCEL-8")
def cancels_by_part_of_the_id(service: Service) -> None:
    """Cancels also the orders whose id begins with the id of the cancelled one."""
    _takes_along(service, lambda order, other: str(other.id).startswith(str(order.id)) and amend.pending(other))


@fault("CANCEL-8")
def cancels_another_order_every_third_time(service: Service) -> None:
    """Cancels the newest pending order as well with every third cancel."""
    due = amend.every(3)

    def act(order: Order) -> None:
        if due():
            service.store.remove([other.id for other in service.store.all() if amend.pending(other)][-1:])

    amend.when(service, CANCELLED, act)


@fault("CANCEL-8")
def cancels_the_first_order_for_one_that_it_does_not_find(service: Service) -> None:
    """Answers 404 for an id that no order has, and cancels the first order of the store if that is pending."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        first = next(iter(service.store.all()), None)
        if order is None and amend.pending(first):
            service.store.remove([first.id])
        return None

    amend.before_cancel(service, decide)
