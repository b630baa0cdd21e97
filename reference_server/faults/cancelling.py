"""Faults of cancelling: CANCEL-1 to CANCEL-12."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import FAR_ID, Order, Outcome, Status
from .registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


def _decides(service: Service, outcome: Outcome, which: Callable[[Order], bool]) -> None:
    """Gives this outcome for some of the orders, and does nothing to them."""
    amend.before_cancel(service, lambda order_id, order: outcome if order and which(order) else None)


def _pending(order: Order) -> bool:
    return order.status is Status.PENDING


def _shipped(order: Order) -> bool:
    return order.status is Status.SHIPPED


# --- CANCEL-1: a pending order is cancelled ---


@fault("CANCEL-1")
def refuses_to_cancel_anything(service: Service) -> None:
    """Answers 409 for every order, pending ones too."""
    _decides(service, REFUSED, _pending)


@fault("CANCEL-1")
def finds_no_pending_order(service: Service) -> None:
    """Answers 404 for pending orders."""
    _decides(service, ABSENT, _pending)


@fault("CANCEL-1")
def refuses_complete_pending_orders(service: Service) -> None:
    """Answers 409 for a pending order that is marked as complete."""
    _decides(service, REFUSED, lambda order: _pending(order) and order.complete)


@fault("CANCEL-1")
def refuses_large_pending_orders(service: Service) -> None:
    """Answers 409 for a pending order of more than nine units."""
    _decides(service, REFUSED, lambda order: _pending(order) and order.quantity > 9)


@fault("CANCEL-1")
def finds_no_pending_order_with_an_even_id(service: Service) -> None:
    """Answers 404 for a pending order whose id is even."""
    _decides(service, ABSENT, lambda order: _pending(order) and order.id % 2 == 0)


@fault("CANCEL-1")
def cancels_at_the_second_attempt(service: Service) -> None:
    """Answers 409 to the first cancel of a pending order, and cancels with the second."""
    asked: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not _pending(order) or order_id in asked:
            return None
        asked.add(order_id)
        return REFUSED

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def refuses_every_third_pending_order(service: Service) -> None:
    """Answers 409 to every third cancel of a pending order."""
    due = amend.every(3)
    _decides(service, REFUSED, lambda order: _pending(order) and due())


@fault("CANCEL-1")
def cancels_and_answers_404(service: Service) -> None:
    """Cancels a pending order and answers 404."""
    amend.after_cancel(service, lambda order_id, outcome: ABSENT if outcome is CANCELLED else None)


# --- CANCEL-2: nothing after 204 ---


def _after_204(service: Service, extra: bytes, close: bool = False) -> None:
    """Sends these bytes after the headers of 204."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if response.status != 204:
            return data
        if close:
            response.close = True
        return data + extra

    amend.wire(service, change)


@fault("CANCEL-2")
def sends_json_after_204(service: Service) -> None:
    """Sends a JSON object after the headers of 204."""
    _after_204(service, b'{"message":"cancelled"}')


@fault("CANCEL-2")
def sends_json_after_204_and_closes(service: Service) -> None:
    """Sends a JSON object after the headers of 204, then closes the connection."""
    _after_204(service, b'{"message":"cancelled"}', close=True)


@fault("CANCEL-2")
def sends_a_line_break_after_204(service: Service) -> None:
    """Sends an empty line after the headers of 204."""
    _after_204(service, b"\r\n")


@fault("CANCEL-2")
def sends_null_after_204(service: Service) -> None:
    """Sends the JSON text null after the headers of 204."""
    _after_204(service, b"null")


@fault("CANCEL-2")
def ends_chunks_after_204(service: Service) -> None:
    """Sends the end of a chunked body after the headers of 204, which announce none."""
    _after_204(service, b"0\r\n\r\n")


@fault("CANCEL-2")
def sends_a_whole_chunked_body_with_204(service: Service) -> None:
    """Announces and sends a chunked body with 204."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if response.status != 204:
            return data
        return data[:-2] + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"

    amend.wire(service, change)


@fault("CANCEL-2")
def sends_a_counted_body_with_204(service: Service) -> None:
    """Announces and sends a body of two bytes with 204."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        return data if response.status != 204 else data[:-2] + b"Content-Length: 2\r\n\r\n{}"

    amend.wire(service, change)


@fault("CANCEL-2")
def sends_a_body_with_every_second_204(service: Service) -> None:
    """Sends a body after the headers of every second 204."""
    due = amend.every(2)
    amend.wire(service, lambda _, response, data: data + b"{}" if response.status == 204 and due() else data)


# --- CANCEL-3: a shipped order is refused ---


@fault("CANCEL-3")
def finds_no_shipped_order(service: Service) -> None:
    """Answers 404 for shipped orders."""
    _decides(service, ABSENT, _shipped)


@fault("CANCEL-3")
def claims_to_cancel_shipped_orders(service: Service) -> None:
    """Answers 204 for a shipped order and does nothing."""
    _decides(service, CANCELLED, _shipped)


@fault("CANCEL-3")
def cancels_shipped_orders(service: Service) -> None:
    """Cancels shipped orders like pending ones."""

    def change(order_id: int, outcome: Outcome) -> Outcome | None:
        if outcome is not REFUSED:
            return None
        service.store.remove([order_id])
        return CANCELLED

    amend.after_cancel(service, change)


@fault("CANCEL-3")
def cancels_shipped_orders_that_are_incomplete(service: Service) -> None:
    """Takes complete for the status, and cancels a shipped order that is not marked as complete."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or _pending(order) or order.complete:
            return None
        service.store.remove([order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-3")
def finds_no_shipped_order_every_third_time(service: Service) -> None:
    """Answers 404 to every third cancel of a shipped order."""
    due = amend.every(3)
    _decides(service, ABSENT, lambda order: _shipped(order) and due())


# --- CANCEL-4: a refused order stays as it was ---


def _after_refusal(service: Service, change: Callable[[Order], None]) -> None:
    """Does something to a shipped order after refusing to cancel it."""

    def after(order_id: int, outcome: Outcome) -> None:
        order = service.store.get(order_id)
        if outcome is REFUSED and order:
            change(order)

    amend.after_cancel(service, after)


@fault("CANCEL-4")
def cancels_refused_orders(service: Service) -> None:
    """Answers 409 but cancels the shipped order anyway."""
    _after_refusal(service, lambda order: service.store.remove([order.id]))


@fault("CANCEL-4")
def reopens_refused_orders(service: Service) -> None:
    """Answers 409 and makes the shipped order pending, so that the next cancel succeeds."""
    _after_refusal(service, lambda order: service.store.change(order.id, status=Status.PENDING))


@fault("CANCEL-4")
def empties_refused_orders(service: Service) -> None:
    """Answers 409 and sets the quantity of the shipped order to 0."""
    _after_refusal(service, lambda order: service.store.change(order.id, quantity=0))


@fault("CANCEL-4")
def turns_complete_of_refused_orders(service: Service) -> None:
    """Answers 409 and turns the flag complete of the shipped order round."""
    _after_refusal(service, lambda order: service.store.change(order.id, complete=not order.complete))


@fault("CANCEL-4")
def moves_the_date_of_refused_orders(service: Service) -> None:
    """Answers 409 and sets another shipDate."""
    _after_refusal(service, lambda order: service.store.change(order.id, ship_date="2030-01-01T00:00:00Z"))


@fault("CANCEL-4")
def refuses_once_and_then_finds_nothing(service: Service) -> None:
    """Answers 409 to the first cancel of a shipped order and 404 to the next, still listing it."""
    refused: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not _shipped(order):
            return None
        outcome = ABSENT if order_id in refused else REFUSED
        refused.add(order_id)
        return outcome

    amend.before_cancel(service, decide)


# --- CANCEL-5: what does not exist ---


def _absent(service: Service, outcome: Outcome, which: Callable[[int], bool]) -> None:
    """Gives this outcome for some ids that no order has or ever had."""
    had: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if order:
            had.add(order_id)
        return outcome if not order and order_id not in had and which(order_id) else None

    amend.before_cancel(service, decide)


@fault("CANCEL-5")
def cancels_what_does_not_exist(service: Service) -> None:
    """Answers 204 for an id that no order ever had."""
    _absent(service, CANCELLED, lambda order_id: True)


@fault("CANCEL-5")
def refuses_what_does_not_exist(service: Service) -> None:
    """Answers 409 for an id that no order ever had."""
    _absent(service, REFUSED, lambda order_id: True)


@fault("CANCEL-5")
def cancels_the_order_zero(service: Service) -> None:
    """Answers 204 for the id 0, which no order has."""
    _absent(service, CANCELLED, lambda order_id: order_id == 0)


@fault("CANCEL-5")
def cancels_negative_ids_that_do_not_exist(service: Service) -> None:
    """Answers 204 for a negative id that no order has."""
    _absent(service, CANCELLED, lambda order_id: order_id < 0)


@fault("CANCEL-5")
def refuses_far_ids_that_do_not_exist(service: Service) -> None:
    """Answers 409 for an id that no order has and 32 bits cannot hold."""
    _absent(service, REFUSED, lambda order_id: not -FAR_ID <= order_id < FAR_ID)


@fault("CANCEL-5")
def cancels_what_does_not_exist_every_third_time(service: Service) -> None:
    """Answers 204 to every third cancel of an id that no order ever had."""
    due = amend.every(3)
    _absent(service, CANCELLED, lambda order_id: due())


# --- CANCEL-6: never twice ---


@fault("CANCEL-6")
def answers_204_to_repeated_cancels(service: Service) -> None:
    """Answers 204 to every further cancel of an order that was cancelled."""
    cancelled: set[int] = set()

    def change(order_id: int, outcome: Outcome) -> Outcome | None:
        if outcome is CANCELLED:
            cancelled.add(order_id)
        return CANCELLED if outcome is ABSENT and order_id in cancelled else None

    amend.after_cancel(service, change)


@fault("CANCEL-6")
def reports_a_cancel_and_does_nothing(service: Service) -> None:
    """Answers 204 for a pending order and leaves it pending."""
    _decides(service, CANCELLED, _pending)


@fault("CANCEL-6")
def cancels_again_a_moment_later(service: Service) -> None:
    """Answers 204 to a further cancel of the same order unless it comes within a tenth of a second."""
    since: dict[int, float] = {}

    def change(order_id: int, outcome: Outcome) -> Outcome | None:
        if outcome is CANCELLED:
            since[order_id] = time.monotonic()
        again = outcome is ABSENT and time.monotonic() - since.get(order_id, float("inf")) > 0.1
        return CANCELLED if again else None

    amend.after_cancel(service, change)


def _restore(service: Service, cancelled: list[Order]) -> None:
    while cancelled:
        service.store.place_ids([cancelled.pop().id], Status.PENDING)


def _remember(service: Service, cancelled: list[Order]) -> None:
    """Notes every order that is cancelled."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        order = service.store.get(order_id)
        outcome = inner(order_id)
        if order and outcome is CANCELLED:
            cancelled.append(order)
        return outcome

    service.cancel = cancel


@fault("CANCEL-6")
def brings_cancelled_orders_back_with_a_listing(service: Service) -> None:
    """Makes a cancelled order pending again when the orders are listed."""
    cancelled: list[Order] = []
    _remember(service, cancelled)

    def change(request: Request, orders: list[Order]) -> list[Order]:
        _restore(service, cancelled)
        return service.store.all()

    amend.listing(service, change)


@fault("CANCEL-6")
def brings_cancelled_orders_back_with_a_refusal(service: Service) -> None:
    """Makes a cancelled order pending again once a further cancel of it was answered 404."""
    cancelled: set[int] = set()

    def change(order_id: int, outcome: Outcome) -> None:
        if outcome is CANCELLED:
            cancelled.add(order_id)
        elif outcome is ABSENT and order_id in cancelled:
            cancelled.discard(order_id)
            service.store.place_ids([order_id], Status.PENDING)

    amend.after_cancel(service, change)


# --- CANCEL-7: exactly one of several ---


def _races(service: Service, window: float) -> None:
    """Looks at the status, waits, and then cancels whatever became of the order meanwhile."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not _pending(order):
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
        if not order or not _pending(order):
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
    """Answers 204 to a second cancel that comes within five thousandths of a second of the first."""
    since: dict[int, float] = {}

    def change(order_id: int, outcome: Outcome) -> Outcome | None:
        if outcome is CANCELLED:
            since[order_id] = time.monotonic()
        began = since.get(order_id, 0.0) if outcome is ABSENT else 0.0
        if time.monotonic() - began > 0.005:
            return None
        del since[order_id]
        return CANCELLED

    amend.after_cancel(service, change)


# --- CANCEL-8: no other order ---


def _takes_along(service: Service, which: Callable[[Order, Order], bool], act: str = "remove") -> None:
    """Does something to other orders when one is cancelled; the condition is given that one and the other."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        order = service.store.get(order_id)
        outcome = inner(order_id)
        if order and outcome is CANCELLED:
            for other in [other for other in service.store.all() if which(order, other)]:
                if act == "remove":
                    service.store.remove([other.id])
                elif act == "ship":
                    service.store.change(other.id, status=Status.SHIPPED)
                else:
                    service.store.change(other.id, quantity=other.quantity + order.quantity)
        return outcome

    service.cancel = cancel


@fault("CANCEL-8")
def cancels_the_next_order_too(service: Service) -> None:
    """Cancels the order with the next higher id as well, if pending."""
    _takes_along(service, lambda order, other: other.id == order.id + 1 and _pending(other))


@fault("CANCEL-8")
def cancels_the_previous_order_too(service: Service) -> None:
    """Cancels the order with the next lower id as well, if pending."""
    _takes_along(service, lambda order, other: other.id == order.id - 1 and _pending(other))


@fault("CANCEL-8")
def cancels_all_orders_of_the_pet(service: Service) -> None:
    """Cancels every pending order of the same pet."""
    _takes_along(service, lambda order, other: other.pet_id == order.pet_id and _pending(other))


@fault("CANCEL-8")
def cancels_everything_pending(service: Service) -> None:
    """Cancels every pending order."""
    _takes_along(service, lambda order, other: _pending(other))


@fault("CANCEL-8")
def removes_shipped_orders_too(service: Service) -> None:
    """Removes the shipped orders as well when a pending one is cancelled."""
    _takes_along(service, lambda order, other: _shipped(other))


@fault("CANCEL-8")
def ships_the_other_orders(service: Service) -> None:
    """Ships the other pending orders when one is cancelled."""
    _takes_along(service, lambda order, other: _pending(other), act="ship")


@fault("CANCEL-8")
def moves_the_quantity_to_the_next_order(service: Service) -> None:
    """Adds the quantity of a cancelled order to the one with the next higher id."""
    _takes_along(service, lambda order, other: other.id == order.id + 1, act="add")


@fault("CANCEL-8")
def cancels_by_part_of_the_id(service: Service) -> None:
    """Cancels also the orders whose id begins with the id of the cancelled one."""
    _takes_along(service, lambda order, other: str(other.id).startswith(str(order.id)) and _pending(other))


@fault("CANCEL-8")
def cancels_another_order_every_third_time(service: Service) -> None:
    """Cancels the newest pending order as well with every third cancel."""
    due = amend.every(3)

    def change(order_id: int, outcome: Outcome) -> None:
        pending = [order.id for order in service.store.all() if _pending(order)]
        if outcome is CANCELLED and due():
            service.store.remove(pending[-1:])

    amend.after_cancel(service, change)


# --- CANCEL-9: exactly this id ---


def _pending_ids(service: Service, which: Callable[[int], bool]) -> Iterable[int]:
    return [order.id for order in service.store.all() if which(order.id)]


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
def reads_ids_without_sign(service: Service) -> None:
    """Cancels the order 5 when asked for -5."""
    amend.find(service, lambda asked: [-asked])


@fault("CANCEL-9")
def reads_the_digits_at_the_beginning(service: Service) -> None:
    """Cancels the order 123 when asked for 123abc."""

    def read(text: str) -> int | None:
        digits = re.match(r"-?[0-9]{1,18}", text)
        return int(digits[0]) if digits else None

    amend.read_ids(service, read)


@fault("CANCEL-9")
def ignores_the_fraction_of_an_id(service: Service) -> None:
    """Cancels the order 123 when asked for 123.5."""
    amend.read_ids(
        service, lambda text: int(text.split(".")[0]) if re.fullmatch(r"[0-9]{1,18}\.[0-9]+", text) else None
    )


@fault("CANCEL-9")
def takes_an_ending_for_a_format(service: Service) -> None:
    """Cancels the order 123 when asked for 123.json or 123.0."""
    amend.read_ids(
        service, lambda text: int(text.split(".")[0]) if re.fullmatch(r"[0-9]{1,18}\.\w+", text) else None
    )


@fault("CANCEL-9")
def ignores_blanks_around_an_id(service: Service) -> None:
    """Cancels the order 123 when asked for it with a blank after the digits."""
    amend.read_ids(service, lambda text: int(text) if re.fullmatch(r"\s*[1-9][0-9]{0,17}\s*", text) else None)


@fault("CANCEL-9")
def falls_back_to_the_nearest_id(service: Service) -> None:
    """Cancels the pending order with the next higher id, if it is the very next, when none has this one."""
    amend.find(service, lambda asked: [asked + 1])


# --- CANCEL-10: no body, no content type ---


@fault("CANCEL-10")
def wants_a_content_type_to_cancel(service: Service) -> None:
    """Answers 404 to a cancel without the header Content-Type: application/json."""
    _wants(service, lambda request: request.headers.get("content-type", "").startswith("application/json"))


@fault("CANCEL-10")
def wants_a_content_length_to_cancel(service: Service) -> None:
    """Answers 404 to a cancel without the header Content-Length."""
    _wants(service, lambda request: "content-length" in request.headers)


@fault("CANCEL-10")
def wants_a_body_to_cancel(service: Service) -> None:
    """Answers 404 to a cancel without a body."""
    _wants(service, lambda request: bool(request.body))


def _wants(service: Service, satisfied: Callable[[Request], bool]) -> None:
    amend.instead(
        service,
        lambda request: (
            service.error(404, "There is no such order.")
            if amend.is_cancel(request) and not satisfied(request)
            else None
        ),
    )


# --- CANCEL-11, CANCEL-12: recommended ---


def _fails_on(service: Service, pattern: str) -> None:
    """Answers 500 to ids that match."""
    inner = service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        if service.read_id(text) is None and re.fullmatch(pattern, text):
            return service.error(500, "Something went wrong in the service.")
        return inner(request, text)

    service.cancel_order = cancel_order


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


def _header_of_204(service: Service, header: bytes) -> None:
    amend.wire(
        service,
        lambda request, response, data: data[:-2] + header + b"\r\n\r\n" if response.status == 204 else data,
    )


@fault("CANCEL-12")
def sends_content_length_with_204(service: Service) -> None:
    """Sends Content-Length: 0 with 204."""
    _header_of_204(service, b"Content-Length: 0")


@fault("CANCEL-12")
def sends_transfer_encoding_with_204(service: Service) -> None:
    """Sends Transfer-Encoding: chunked with 204, and no chunk."""
    _header_of_204(service, b"Transfer-Encoding: chunked")
