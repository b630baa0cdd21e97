"""Faults of the cancel of an order that does not exist, or no longer: CANCEL-5 and CANCEL-6."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import FAR_ID, Order, Outcome, Status, sample_order
from ..registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


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
def cancels_whatever_is_asked_for(service: Service) -> None:
    """Answers 204 for an id that no order ever had, and for what is no id at all: nothing is ever missing."""
    _absent(service, CANCELLED, lambda order_id: True)
    amend.instead(service, lambda request: Response(204) if _no_id(service, request) else None)


def _no_id(service: Service, request: Request) -> bool:
    return amend.is_cancel(request) and amend.id_of(service, request) is None


@fault("CANCEL-5")
def refuses_what_does_not_exist(service: Service) -> None:
    """Answers 409 for an id that no order ever had."""
    _absent(service, REFUSED, lambda order_id: True)


def _not_found(service: Service, answer: Callable[[], Response], which: Callable[[int | None], bool]) -> None:
    """Answers so for some of the ids that no order has, in place of 404."""

    def change(request: Request, response: Response) -> Response | None:
        missed = amend.is_cancel(request) and response.status == 404
        return answer() if missed and which(amend.id_of(service, request)) else None

    amend.granted(service, change)


@fault("CANCEL-5")
def says_with_200_that_there_is_no_such_order(service: Service) -> None:
    """Answers 200 for an id that no order ever had, with an Error that says that there is no such order."""
    had: set[int | None] = {None}

    def note(order_id: int, order: Order | None) -> None:
        if order:
            had.add(order_id)

    amend.before_cancel(service, note)
    said = {"code": "absent", "message": "No such order.", "status": 404}
    _not_found(service, lambda: service.json(200, said), lambda order_id: order_id not in had)


@fault("CANCEL-5")
def takes_an_id_that_no_order_has_for_malformed(service: Service) -> None:
    """Answers 400 for an id that no order has, or has any more."""
    _not_found(service, lambda: service.error(400, "No such order."), lambda order_id: order_id is not None)


@fault("CANCEL-5")
def cancels_the_order_zero(service: Service) -> None:
    """Answers 204 for the id 0, which no order has."""
    _absent(service, CANCELLED, lambda order_id: order_id == 0)


@fault("CANCEL-5")
def takes_the_id_zero_for_none(service: Service) -> None:
    """Answers 400 for the id 0, as if it were missing, unless an order has it."""

    def answer(request: Request) -> Response | None:
        zero = amend.is_cancel(request) and request.path == f"{service.collection}/0"
        return service.error(400, "No id.") if zero and not amend.order_of(service, request) else None

    amend.instead(service, answer)


@fault("CANCEL-5")
def refuses_the_order_zero(service: Service) -> None:
    """Answers 409 for the id 0, which no order has."""
    _absent(service, REFUSED, lambda order_id: order_id == 0)


@fault("CANCEL-5")
def cancels_negative_ids_that_do_not_exist(service: Service) -> None:
    """Answers 204 for a negative id that no order has."""
    _absent(service, CANCELLED, lambda order_id: order_id < 0)


@fault("CANCEL-5")
def refuses_far_ids_that_do_not_exist(service: Service) -> None:
    """Answers 409 for an id that no order has and 32 bits cannot hold."""
    _absent(service, REFUSED, lambda order_id: not -FAR_ID <= order_id < FAR_ID)


@fault("CANCEL-5")
def lists_what_it_did_not_find(service: Service) -> None:
    """Answers 404 to the cancel of an absent order, and lists one with that id from then on."""
    cancelled: set[int] = set()
    made: dict[int, Order] = {}

    def note(order_id: int, outcome: Outcome) -> None:
        if outcome is CANCELLED:
            cancelled.add(order_id)
        if outcome is ABSENT and order_id not in cancelled:
            made[order_id] = sample_order(order_id, Status.PENDING)

    def change(request: Request, orders: list[Order]) -> Iterable[Order]:
        if not orders:  # as when the store was emptied
            made.clear()
        return {order.id: order for order in (*made.values(), *orders)}.values()

    amend.after_cancel(service, note)
    amend.listing(service, change)


@fault("CANCEL-5")
def cancels_anything_in_an_empty_store(service: Service) -> None:
    """Answers 204 for any id while there is no order."""
    _absent(service, CANCELLED, lambda order_id: not len(service.store))


@fault("CANCEL-5")
def cancels_what_does_not_exist_every_third_time(service: Service) -> None:
    """Answers 204 to every third cancel of an id that no order ever had."""
    due = amend.every(3)
    _absent(service, CANCELLED, lambda order_id: due())


@fault("CANCEL-5")
def refuses_what_does_not_exist_for_clients_of_json(service: Service) -> None:
    """Answers 409 for an id that no order has to a client that accepts application/json by name."""
    amend.accepting(service, "application/json", 409, lambda order: order is None)


def _near(service: Service, outcome: Outcome) -> None:
    """Gives this outcome for ids that no order has, within 50 of one that an order has."""
    _absent(service, outcome, lambda order_id: any(abs(order.id - order_id) <= 50 for order in service.store.all()))


@fault("CANCEL-5")
def cancels_what_is_next_to_an_order(service: Service) -> None:
    """Answers 204 for an id that no order ever had, if one has an id close to it."""
    _near(service, CANCELLED)


@fault("CANCEL-5")
def refuses_what_is_next_to_an_order(service: Service) -> None:
    """Answers 409 for an id that no order ever had, if one has an id close to it."""
    _near(service, REFUSED)


@fault("CANCEL-5")
def takes_absent_orders_for_shipped_for_scripts(service: Service) -> None:
    """Answers 409 for an order that does not exist to the scripts of a browser, by their Accept."""
    amend.accepting(service, "text/plain", 409, lambda order: order is None)


@fault("CANCEL-5")
def takes_absent_orders_for_shipped_without_accept(service: Service) -> None:
    """Answers 409 for an order that does not exist to a client that sends no Accept."""
    amend.accepting(service, None, 409, lambda order: order is None)


# --- CANCEL-6: never twice ---


@fault("CANCEL-6")
def answers_204_to_repeated_cancels(service: Service) -> None:
    """Answers 204 to every further cancel of an order that was cancelled."""
    _cancels_again(service, lambda order_id: True)


def _cancels_again(service: Service, which: Callable[[int], bool]) -> None:
    """Answers 204 to further cancels of an order that was cancelled, if it has such an id."""
    cancelled: set[int] = set()

    def change(order_id: int, outcome: Outcome) -> Outcome | None:
        if outcome is CANCELLED:
            cancelled.add(order_id)
        return CANCELLED if outcome is ABSENT and order_id in cancelled and which(order_id) else None

    amend.after_cancel(service, change)


def _cancels_again_for(service: Service, media_type: str) -> None:
    """Answers 204 to a further cancel by clients whose Accept names this media type."""
    cancelled: set[int] = set()
    amend.when(service, CANCELLED, lambda order: cancelled.add(order.id))

    def answer(request: Request) -> Response | None:
        named = amend.is_cancel(request) and media_type in request.headers.get("accept", "")
        again = named and amend.id_of(service, request) in cancelled and not amend.order_of(service, request)
        return Response(204) if again else None

    amend.instead(service, answer)


@fault("CANCEL-6")
def cancels_again_for_browsers(service: Service) -> None:
    """Answers 204 to a further cancel by a client that accepts HTML."""
    _cancels_again_for(service, "text/html")


@fault("CANCEL-6")
def cancels_again_for_scripts(service: Service) -> None:
    """Answers 204 to a further cancel by the scripts of a browser, by their Accept."""
    _cancels_again_for(service, "text/plain")


@fault("CANCEL-6")
def cancels_far_ids_again(service: Service) -> None:
    """Answers 204 to a further cancel of an order whose id a double cannot hold: it notes another as cancelled."""
    _cancels_again(service, lambda order_id: order_id > 2**53)


@fault("CANCEL-6")
def cancels_negative_ids_again(service: Service) -> None:
    """Answers 204 to a further cancel of an order whose id is below zero, since it notes the id without its sign."""
    _cancels_again(service, lambda order_id: order_id < 0)


@fault("CANCEL-6")
def reports_a_cancel_and_does_nothing(service: Service) -> None:
    """Answers 204 for a pending order and leaves it pending."""
    amend.outcomes(service, CANCELLED, amend.pending)


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


@fault("CANCEL-6")
def writes_back_all_orders_as_it_read_them(service: Service) -> None:
    """Reads all orders for a cancel and a fiftieth of a second later writes the others back, some cancelled since."""
    lock = threading.Lock()
    under_way: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        with lock:
            read = {other.id for other in service.store.all() if amend.pending(other)}
            if order_id in under_way:
                return ABSENT
            if order_id not in read:
                return None
            under_way.add(order_id)
        time.sleep(0.02)
        with lock:
            under_way.discard(order_id)
            there = {other.id for other in service.store.all()}
            service.store.place_ids(sorted(read - there - {order_id}), Status.PENDING)
            service.store.remove([order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-6")
def remembers_the_last_twenty_cancels(service: Service) -> None:
    """Remembers twenty cancels, and makes the order of the oldest pending again at the next one."""
    cancelled: list[Order] = []
    remove, clear = service.store.remove, service.store.clear

    def remember(order: Order) -> None:
        cancelled.append(order)
        if len(cancelled) > 20:
            service.store.place_ids([cancelled.pop(0).id], Status.PENDING)

    def forget(ids: Iterable[int]) -> None:
        removed = set(ids)
        cancelled[:] = [order for order in cancelled if order.id not in removed]
        remove(removed)

    def forget_all() -> None:
        cancelled.clear()
        clear()

    amend.when(service, CANCELLED, remember)
    service.store.remove, service.store.clear = forget, forget_all  # type: ignore[method-assign]


@fault("CANCEL-6")
def brings_cancelled_orders_back_with_a_listing(service: Service) -> None:
    """Makes a cancelled order pending again when the orders are listed."""
    cancelled: list[Order] = []

    def change(request: Request, orders: list[Order]) -> list[Order]:
        while cancelled:
            service.store.place_ids([cancelled.pop().id], Status.PENDING)
        return service.store.all()

    amend.when(service, CANCELLED, cancelled.append)
    amend.listing(service, change)


@fault("CANCEL-6")
def writes_back_what_it_read_for_a_listing(service: Service) -> None:
    """Reads all orders for a listing and a fiftieth of a second later writes back those that were cancelled since."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        time.sleep(0.02)
        gone = {order.id for order in orders} - {order.id for order in service.store.all()}
        service.store.place_ids([order.id for order in orders if order.id in gone & cancelled], Status.PENDING)
        return orders

    cancelled: set[int] = set()
    amend.when(service, CANCELLED, lambda order: cancelled.add(order.id))
    amend.listing(service, change)


@fault("CANCEL-6")
def brings_the_last_cancelled_order_back_with_a_new_one(service: Service) -> None:
    """Makes the order that was cancelled last pending again when another one is placed."""
    cancelled: list[int] = []
    place = service.store.place

    def place_both(count: int, status: Status) -> list[int]:
        placed = place(count, status)
        service.store.place_ids(cancelled, Status.PENDING)
        cancelled.clear()
        return placed

    def note(order: Order) -> None:
        cancelled[:] = [order.id]

    amend.when(service, CANCELLED, note)
    service.store.place = place_both  # type: ignore[method-assign]


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


@fault("CANCEL-6")
def brings_cancelled_orders_back_with_a_refused_key(service: Service) -> None:
    """Makes a cancelled order pending again once a further cancel of it came without the key."""
    cancelled: set[int] = set()

    def change(request: Request, response: Response) -> None:
        order_id = amend.id_of(service, request)
        if order_id in cancelled and amend.is_cancel(request):
            cancelled.discard(order_id)
            service.store.place_ids([order_id], Status.PENDING)

    amend.when(service, CANCELLED, lambda order: cancelled.add(order.id))
    amend.refusals(service, change)
