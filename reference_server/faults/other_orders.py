"""Faults of which order is cancelled, and how often: CANCEL-7 to CANCEL-9 and CANCEL-11."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import INT64_MAX, INT64_MIN, Order, Outcome, Status
from .registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


# --- CANCEL-7: exactly one of several ---


def _races(service: Service, window: float) -> None:
    """Looks at the status, waits, and then cancels whatever became of the order meanwhile."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not amend.pending(order):
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
        if not order or not amend.pending(order):
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
        if not order or not amend.pending(order):
            return None
        time.sleep(0.02)
        if service.store.cancel(order_id) is CANCELLED:
            return CANCELLED
        service.store.place_ids([order_id], Status.SHIPPED)
        return REFUSED

    amend.before_cancel(service, decide)


# --- CANCEL-8: no other order ---


def _takes_along(
    service: Service, which: Callable[[Order, Order], bool], act: str = "remove", after: Outcome = CANCELLED
) -> None:
    """Does something to other orders when one is cancelled, or has this outcome; the condition is given that one and
    the other."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        order = service.store.get(order_id)
        outcome = inner(order_id)
        if order and outcome is after:
            for other in [other for other in service.store.all() if which(order, other)]:
                if act == "remove":
                    service.store.remove([other.id])
                elif act == "ship":
                    service.store.change(other.id, status=Status.SHIPPED)
                else:
                    service.store.change(other.id, quantity=other.quantity + order.quantity)
        return outcome

    service.cancel = cancel


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
def cancels_the_tenth_next_order_too(service: Service) -> None:
    """Cancels the order whose id is ten higher as well, if pending."""
    _takes_along(service, lambda order, other: other.id == order.id + 10 and amend.pending(other))


@fault("CANCEL-8")
def cancels_the_next_order_a_moment_later(service: Service) -> None:
    """Cancels the order with the next higher id as well, a fifth of a second later."""
    later = amend.later(service, 0.2)

    def after(order_id: int, outcome: Outcome) -> None:
        if outcome is CANCELLED:
            later(lambda: service.store.cancel(order_id + 1))

    amend.after_cancel(service, after)


@fault("CANCEL-8")
def cancels_all_orders_of_the_pet(service: Service) -> None:
    """Cancels every pending order of the same pet."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and amend.pending(other))


@fault("CANCEL-8")
def removes_shipped_orders_of_the_pet(service: Service) -> None:
    """Removes the shipped orders of the same pet as well when a pending one is cancelled."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and amend.shipped(other))


@fault("CANCEL-8")
def cancels_the_pending_orders_of_a_refused_pet(service: Service) -> None:
    """Refuses to cancel a shipped order, and cancels the pending ones of the same pet."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and amend.pending(other), after=REFUSED)


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
    _takes_along(service, lambda order, other: amend.pending(other), act="ship")


@fault("CANCEL-8")
def moves_the_quantity_to_the_next_order(service: Service) -> None:
    """Adds the quantity of a cancelled order to the one with the next higher id."""
    _takes_along(service, lambda order, other: other.id == order.id + 1, act="add")


@fault("CANCEL-8")
def cancels_by_part_of_the_id(service: Service) -> None:
    """Cancels also the orders whose id begins with the id of the cancelled one."""
    _takes_along(service, lambda order, other: str(other.id).startswith(str(order.id)) and amend.pending(other))


@fault("CANCEL-8")
def cancels_another_order_every_third_time(service: Service) -> None:
    """Cancels the newest pending order as well with every third cancel."""
    due = amend.every(3)

    def change(order_id: int, outcome: Outcome) -> None:
        pending = [order.id for order in service.store.all() if amend.pending(order)]
        if outcome is CANCELLED and due():
            service.store.remove(pending[-1:])

    amend.after_cancel(service, change)


# --- CANCEL-9: exactly this id ---


def _pending_ids(service: Service, which: Callable[[int], bool]) -> Iterable[int]:
    return [order.id for order in service.store.all() if which(order.id)]


#: What `object[name]` finds in JavaScript whatever the object holds.
_IN_EVERY_OBJECT = ("constructor", "toString", "valueOf", "hasOwnProperty")


def _asks_for_inherited(request: Request) -> bool:
    return amend.is_cancel(request) and request.path.rpartition("/")[2] in _IN_EVERY_OBJECT


@fault("CANCEL-9")
def cancels_what_every_object_has(service: Service) -> None:
    """Answers 204 to the ids constructor and toString, which any object of its language has."""
    amend.instead(service, lambda request: Response(204) if _asks_for_inherited(request) else None)


@fault("CANCEL-9")
def reads_ids_in_32_bits(service: Service) -> None:
    """Cancels the order whose id equals the one asked for modulo 2^32."""
    amend.find(service, lambda asked: _pending_ids(service, lambda known: (known - asked) % 2**32 == 0))


@fault("CANCEL-9")
def reads_ids_as_signed_32_bits(service: Service) -> None:
    """Cancels the order whose id is the lower 32 bits of the one asked for, taken with sign."""
    amend.find(service, lambda asked: [(asked + 2**31) % 2**32 - 2**31])


@fault("CANCEL-9")
def reads_ids_through_a_double(service: Service) -> None:
    """Cancels an order whose id equals the one asked for as a double."""
    amend.find(service, lambda asked: _pending_ids(service, lambda known: float(known) == float(asked)))


@fault("CANCEL-9")
def rounds_ids(service: Service) -> None:
    """Reads ids as numbers of JavaScript, so that it cancels the order whose id is the nearest double."""
    inner = service.cancel
    service.cancel = lambda order_id: inner(int(float(order_id)))


@fault("CANCEL-9")
def finds_an_order_by_the_beginning_of_its_id(service: Service) -> None:
    """Cancels the order whose id begins with the one asked for, as LIKE '1234%' does, if that has four digits or more
    and there is one such order."""

    def other(asked: int) -> Iterable[int]:
        found = list(_pending_ids(service, lambda known: str(known).startswith(str(asked))))
        return found if len(found) == 1 and asked >= 1000 else []

    amend.find(service, other)


@fault("CANCEL-9")
def reads_ten_digits_of_an_id(service: Service) -> None:
    """Cancels the order 1234567890 when asked for 12345678901, since its column holds ten digits."""
    amend.find(service, lambda asked: [int(str(asked)[:10])])


@fault("CANCEL-9")
def reads_ids_without_sign(service: Service) -> None:
    """Cancels the order 5 when asked for -5."""
    amend.find(service, lambda asked: [-asked])


@fault("CANCEL-9")
def clamps_ids_to_int64(service: Service) -> None:
    """Cancels the order at the end of int64 when asked for a number beyond it."""
    inner = service.read_id

    def read_id(text: str) -> int | None:
        return inner(text) if inner(text) is None else min(max(int(text), INT64_MIN), INT64_MAX)

    service.read_id = read_id


@fault("CANCEL-9")
def lets_ids_overflow(service: Service) -> None:
    """Cancels the order whose id is the lower 64 bits of the one asked for, taken with sign."""
    amend.find(service, lambda asked: [(asked + 2**63) % 2**64 - 2**63])


@fault("CANCEL-9")
def reads_the_digits_at_the_beginning(service: Service) -> None:
    """Cancels the order 123 when asked for 123abc."""

    def read(text: str) -> int | None:
        digits = re.match(r"-?[0-9]{1,18}", text)
        return int(digits[0]) if digits else None

    amend.read_ids(service, read)


@fault("CANCEL-9")
def takes_several_ids(service: Service) -> None:
    """Cancels the orders 1 and 2 when asked for 1,2."""

    def answer(request: Request) -> Response | None:
        texts = unquote(request.path.rpartition("/")[2]).split(",")
        if not amend.is_cancel(request) or len(texts) < 2:
            return None
        ids = [service.read_id(text) for text in texts]
        outcomes = [service.cancel(number) for number in ids if number is not None]
        return Response(204) if Outcome.CANCELLED in outcomes else None

    amend.instead(service, answer)


@fault("CANCEL-9")
def reads_an_id_up_to_a_null_character(service: Service) -> None:
    """Cancels the order 123 when asked for 123%00x."""
    amend.read_ids(service, lambda text: int(text.split("\0")[0]) if re.fullmatch(r"\d{1,18}\0.*", text) else None)


@fault("CANCEL-9")
def prefers_the_id_in_the_query(service: Service) -> None:
    """Cancels the order that the query names, whatever the path says."""
    inner = service.dispatch

    def dispatch(request: Request) -> Response:
        named = re.search(r"\borderId=(-?[0-9]+)", request.query)
        path = f"{service.collection}/{named[1]}" if named and amend.is_cancel(request) else request.path
        return inner(request._replace(path=path))

    service.dispatch = dispatch


@fault("CANCEL-9")
def ignores_the_fraction_of_an_id(service: Service) -> None:
    """Cancels the order 123 when asked for 123.5."""
    amend.read_ids(
        service, lambda text: int(text.split(".")[0]) if re.fullmatch(r"[0-9]{1,18}\.[0-9]+", text) else None
    )


@fault("CANCEL-9")
def takes_an_ending_for_a_format(service: Service) -> None:
    """Cancels the order 123 when asked for 123.5 or 123.json."""
    amend.read_ids(service, lambda text: int(text.split(".")[0]) if re.fullmatch(r"[0-9]{1,18}\.\w+", text) else None)


def _malformed(service: Service, pattern: str, answer: Callable[[], Response | None]) -> None:
    """Does something when asked for an id that is no integer and matches; `None` leaves the answer as it is."""
    inner = service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        malformed = service.read_id(text) is None and re.fullmatch(pattern, text)
        return (answer() if malformed else None) or inner(request, text)

    service.cancel_order = cancel_order


def _remove_pending(service: Service, which: slice) -> None:
    """Removes these of the pending orders, which are in the order in which they were placed."""
    service.store.remove([order.id for order in service.store.all() if amend.pending(order)][which])


@fault("CANCEL-9")
def cancels_everything_for_an_id_of_letters(service: Service) -> None:
    """Answers 204 to an id of letters, which it takes for none, and cancels every pending order."""

    def answer() -> Response:
        _remove_pending(service, slice(None))
        return Response(204)

    _malformed(service, r"[A-Za-z]+", answer)


@fault("CANCEL-9")
def reports_a_cancel_of_a_malformed_id(service: Service) -> None:
    """Answers 204 to an id that is no integer, and does nothing."""
    _malformed(service, r".*", lambda: Response(204))


@fault("CANCEL-9")
def removes_all_orders_for_an_undefined_id(service: Service) -> None:
    """Answers 400 to undefined, null and NaN, and cancels every pending order all the same."""
    _malformed(service, r"undefined|null|NaN", lambda: _remove_pending(service, slice(None)))


@fault("CANCEL-9")
def removes_the_newest_order_for_an_id_of_letters(service: Service) -> None:
    """Answers 400 to an id of letters, and cancels the newest pending order all the same."""
    _malformed(service, r"[A-Za-z]+", lambda: _remove_pending(service, slice(-1, None)))


# --- CANCEL-11: malformed ids (recommended) ---


def _fails_on(service: Service, pattern: str) -> None:
    """Answers 500 to ids that match."""
    _malformed(service, pattern, lambda: service.error(500, "Something went wrong in the service."))


@fault("CANCEL-11")
def fails_on_what_every_object_has(service: Service) -> None:
    """Answers 500 to the ids constructor and toString, which any object of its language has."""
    failed = service.error(500, "It is no order.")
    amend.instead(service, lambda request: failed if _asks_for_inherited(request) else None)


@fault("CANCEL-11")
def fails_on_malformed_ids(service: Service) -> None:
    """Answers 500 to an id that is no integer."""
    _fails_on(service, r".*")


@fault("CANCEL-11")
def fails_on_letters_in_an_id(service: Service) -> None:
    """Answers 500 to an id of letters only."""
    _fails_on(service, r"[A-Za-z]+")


@fault("CANCEL-11")
def fails_on_letters_after_an_id(service: Service) -> None:
    """Answers 500 to an id with letters after its digits."""
    _fails_on(service, r"[0-9]+[A-Za-z]+")


@fault("CANCEL-11")
def fails_on_an_undefined_id(service: Service) -> None:
    """Answers 500 to undefined and NaN, which scripts send for an id that they do not have."""
    _fails_on(service, r"undefined|NaN")


@fault("CANCEL-11")
def fails_on_a_null_character(service: Service) -> None:
    """Answers 500 to an id with the character U+0000, as a database does that cannot store it."""
    _fails_on(service, r".*\0.*")


@fault("CANCEL-11")
def fails_on_what_is_no_utf_8(service: Service) -> None:
    """Answers 500 to an id with a byte that UTF-8 never has."""
    _fails_on(service, r".*[\xf8-\xff].*")


@fault("CANCEL-11")
def fails_on_a_uuid(service: Service) -> None:
    """Answers 500 to an id that is a UUID."""
    _fails_on(service, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@fault("CANCEL-9")
def takes_what_is_no_number_for_zero(service: Service) -> None:
    """Reads 0 where an id begins with no digit, so that `abc` cancels the order 0 if there is one."""
    amend.read_ids(service, lambda text: None if re.match(r"[-+]?[0-9]", text) else 0)


@fault("CANCEL-9")
def reads_the_first_line_of_an_id(service: Service) -> None:
    """Reads a number up to the end of its line, as patterns with `^` and `$` do in some languages."""
    amend.read_ids(service, lambda text: int(text.split("\n")[0]) if re.fullmatch(r"-?[0-9]{1,18}\n.*", text) else None)
