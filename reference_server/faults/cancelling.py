"""Faults of what a cancel answers: CANCEL-1, CANCEL-3 to CANCEL-6 and CANCEL-10."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import FAR_ID, INT64_MAX, INT64_MIN, Order, Outcome, Status, sample_order
from .registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


def _accepting(service: Service, media_type: str, status: int, which: Callable[[Order | None], bool]) -> None:
    """Answers clients whose Accept names this media type with an error, for some orders or for none."""

    def answer(request: Request) -> Response | None:
        named = amend.is_cancel(request) and media_type in request.headers.get("accept", "")
        well_formed = named and service.read_id(request.path.rpartition("/")[2]) is not None
        if not well_formed or not which(amend.order_of(service, request)):
            return None
        return service.error(status, "This order is not for you.")

    amend.instead(service, answer)


# --- CANCEL-1: a pending order is cancelled ---


@fault("CANCEL-1")
def refuses_to_cancel_anything(service: Service) -> None:
    """Answers 409 for every order, pending ones too."""
    amend.outcomes(service, REFUSED, amend.pending)


@fault("CANCEL-1")
def finds_no_pending_order(service: Service) -> None:
    """Answers 404 for pending orders."""
    amend.outcomes(service, ABSENT, amend.pending)


@fault("CANCEL-1")
def refuses_complete_pending_orders(service: Service) -> None:
    """Answers 409 for a pending order that is marked as complete."""
    amend.outcomes(service, REFUSED, lambda order: amend.pending(order) and order.complete)


@fault("CANCEL-1")
def refuses_large_pending_orders(service: Service) -> None:
    """Answers 409 for a pending order of more than nine units."""
    amend.outcomes(service, REFUSED, lambda order: amend.pending(order) and order.quantity > 9)


@fault("CANCEL-1")
def finds_no_pending_order_with_an_even_id(service: Service) -> None:
    """Answers 404 for a pending order whose id is even."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and order.id % 2 == 0)


@fault("CANCEL-1")
def finds_no_pending_order_with_a_negative_id(service: Service) -> None:
    """Answers 404 for a pending order whose id is below zero, as a path pattern of digits does."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and order.id < 0)


@fault("CANCEL-1")
def finds_no_order_in_the_first_place(service: Service) -> None:
    """Answers 404 for the order in the first place of the store, since it takes the place 0 for none."""
    amend.outcomes(service, ABSENT, lambda order: order == service.store.all()[0])


@fault("CANCEL-1")
def refuses_to_cancel_the_only_order(service: Service) -> None:
    """Answers 409 for a pending order where there is no other."""
    amend.outcomes(service, REFUSED, lambda order: amend.pending(order) and len(service.store) == 1)


@fault("CANCEL-1")
def leaves_the_first_order_where_it_is(service: Service) -> None:
    """Answers 204 for the first order of the store and keeps it, as a list whose head is never unlinked."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        return CANCELLED if order and amend.pending(order) and order == service.store.all()[0] else None

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def keeps_the_last_order(service: Service) -> None:
    """Answers 204 for the only order of the store, each time, and keeps it."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        return CANCELLED if order and amend.pending(order) and len(service.store) == 1 else None

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def cancels_at_the_third_attempt(service: Service) -> None:
    """Answers 409 to the first two cancels of a pending order, and cancels with the third."""
    asked: Counter[int] = Counter()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not amend.pending(order):
            return None
        asked[order_id] += 1
        return REFUSED if asked[order_id] < 3 else None

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def refuses_every_third_pending_order(service: Service) -> None:
    """Answers 409 to every third cancel of a pending order."""
    due = amend.every(3)
    amend.outcomes(service, REFUSED, lambda order: amend.pending(order) and due())


@fault("CANCEL-1")
def cancels_and_answers_404(service: Service) -> None:
    """Cancels a pending order and answers 404."""
    amend.after_cancel(service, lambda order_id, outcome: ABSENT if outcome is CANCELLED else None)


@fault("CANCEL-1")
def reports_two_cancels_and_does_the_second(service: Service) -> None:
    """Answers 204 to the first cancel of a pending order and does nothing; the second cancels it."""
    asked: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not amend.pending(order) or order_id in asked:
            return None
        asked.add(order_id)
        return CANCELLED

    amend.before_cancel(service, decide)


def _place(service: Service, order: Order) -> int:
    """How many orders were placed before this one and are still there."""
    return [other.id for other in service.store.all()].index(order.id)


@fault("CANCEL-1")
def finds_no_pending_order_beyond_its_first_page(service: Service) -> None:
    """Looks for a pending order in a first page of 1,000 that it fetches inside, and answers 404 if it is not there."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and _place(service, order) >= 1000)


@fault("CANCEL-1")
def finds_no_pending_order_but_the_newest(service: Service) -> None:
    """Looks for a pending order among the newest 100, and answers 404 if it is not there."""
    amend.outcomes(
        service, ABSENT, lambda order: amend.pending(order) and len(service.store) - _place(service, order) > 100
    )


@fault("CANCEL-1")
def reports_a_cancel_among_many_and_does_nothing(service: Service) -> None:
    """Answers 204 for a pending order that its cache of 1,000 does not hold, and writes nothing to where it is."""
    amend.outcomes(service, CANCELLED, lambda order: amend.pending(order) and _place(service, order) >= 1000)


def _remembers_what_it_did_not_find(service: Service, seconds: float) -> None:
    """Answers 404 for an id that no order had when it was asked for, for so long, whether one has it by now or not."""
    since: dict[int, float] = {}

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if time.monotonic() - since.get(order_id, float("-inf")) < seconds:
            return ABSENT
        if not order:
            since[order_id] = time.monotonic()
        return None

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def remembers_for_a_second_what_it_did_not_find(service: Service) -> None:
    """Answers 404 for a second after there was no such order, although one has been placed with the id since."""
    _remembers_what_it_did_not_find(service, 1.0)


@fault("CANCEL-1")
def remembers_for_ever_what_it_did_not_find(service: Service) -> None:
    """Answers 404 for ever after there was no such order, although one has been placed with the id since."""
    _remembers_what_it_did_not_find(service, float("inf"))


@fault("CANCEL-1")
def finds_no_order_for_clients_that_announce_no_body(service: Service) -> None:
    """Answers 404 to a cancel with Content-Length: 0."""

    def answer(request: Request) -> Response | None:
        empty = amend.is_cancel(request) and request.headers.get("content-length") == "0"
        return service.error(404, "There is no such order.") if empty else None

    amend.instead(service, answer)


@fault("CANCEL-1")
def takes_the_id_0_for_none(service: Service) -> None:
    """Answers 404 for an order with the id 0."""
    amend.outcomes(service, ABSENT, lambda order: order.id == 0)


@fault("CANCEL-1")
def finds_no_pending_order_for_clients_of_json(service: Service) -> None:
    """Answers 404 for a pending order to a client that accepts application/json by name."""
    _accepting(service, "application/json", 404, lambda order: order is not None and amend.pending(order))


@fault("CANCEL-1")
def refuses_pending_orders_to_browsers(service: Service) -> None:
    """Answers 409 for a pending order to a client that accepts HTML."""
    _accepting(service, "text/html", 409, lambda order: order is not None and amend.pending(order))


@fault("CANCEL-1")
def finds_nothing_at_the_end_of_a_page_of_500(service: Service) -> None:
    """Searches the store in pages of 500, and does not look at the last order of each."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and _place(service, order) % 500 == 499)


# --- CANCEL-3: a shipped order is refused ---


@fault("CANCEL-3")
def cancels_the_first_shipped_order(service: Service) -> None:
    """Cancels the first of the shipped orders, since it takes the place 0 among them for none."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if order is None or next(filter(amend.shipped, service.store.all()), None) != order:
            return None
        service.store.remove([order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-3")
def finds_no_shipped_order_in_the_first_place(service: Service) -> None:
    """Answers 404 for a shipped order in the first place of the store."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and order == service.store.all()[0])


@fault("CANCEL-3")
def finds_nothing_where_nothing_is_pending(service: Service) -> None:
    """Answers 404 to any cancel where no order is pending."""
    amend.outcomes(service, ABSENT, lambda order: not any(map(amend.pending, service.store.all())))


@fault("CANCEL-3")
def finds_no_shipped_order(service: Service) -> None:
    """Answers 404 for shipped orders."""
    amend.outcomes(service, ABSENT, amend.shipped)


@fault("CANCEL-3")
def claims_to_cancel_shipped_orders(service: Service) -> None:
    """Answers 204 for a shipped order and does nothing."""
    amend.outcomes(service, CANCELLED, amend.shipped)


def _cancels_shipped(service: Service, which: Callable[[Order], bool]) -> None:
    """Cancels shipped orders of which this is true."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or amend.pending(order) or not which(order):
            return None
        service.store.remove([order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-3")
def cancels_shipped_orders(service: Service) -> None:
    """Cancels shipped orders like pending ones."""
    _cancels_shipped(service, lambda order: True)


@fault("CANCEL-3")
def cancels_shipped_orders_by_force(service: Service) -> None:
    """Cancels a shipped order where the query says force=true."""

    def answer(request: Request) -> Response | None:
        order = amend.order_of(service, request) if amend.is_cancel(request) else None
        if order is None or not amend.shipped(order) or "force=true" not in request.query:
            return None
        service.store.remove([order.id])
        return Response(204)

    amend.instead(service, answer)


@fault("CANCEL-3")
def cancels_shipped_orders_with_far_ids(service: Service) -> None:
    """Cancels a shipped order whose id a double cannot hold, since it finds no status for what it rounds it to."""
    _cancels_shipped(service, lambda order: order.id > 2**53)


@fault("CANCEL-3")
def finds_no_shipped_order_with_a_negative_id(service: Service) -> None:
    """Answers 404 for a shipped order whose id is below zero."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and order.id < 0)


@fault("CANCEL-3")
def cancels_shipped_orders_that_are_incomplete(service: Service) -> None:
    """Takes complete for the status, and cancels a shipped order that is not marked as complete."""
    _cancels_shipped(service, lambda order: not order.complete)


@fault("CANCEL-3")
def finds_no_shipped_order_every_third_time(service: Service) -> None:
    """Answers 404 to every third cancel of a shipped order."""
    due = amend.every(3)
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and due())


@fault("CANCEL-3")
def finds_no_shipped_order_for_clients_of_json(service: Service) -> None:
    """Answers 404 for a shipped order to a client that accepts application/json by name."""
    _accepting(service, "application/json", 404, lambda order: order is not None and amend.shipped(order))


@fault("CANCEL-3")
def finds_no_shipped_order_beyond_its_first_page(service: Service) -> None:
    """Looks for a shipped order in a first page of 1,000 that it fetches inside, and answers 404 if it is not there."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and _place(service, order) >= 1000)


@fault("CANCEL-3")
def cancels_shipped_orders_among_many(service: Service) -> None:
    """Cancels a shipped order whose status is not among the first 1,000 that it keeps at hand."""
    _cancels_shipped(service, lambda order: _place(service, order) >= 1000)


@fault("CANCEL-3")
def cancels_the_shipped_order_0(service: Service) -> None:
    """Looks the status of an order up if its id is true, and so cancels a shipped order with the id 0."""
    _cancels_shipped(service, lambda order: order.id == 0)


@fault("CANCEL-3")
def cancels_the_shipped_order_at_the_end_of_int64(service: Service) -> None:
    """Looks for the status before the id after this one, and so cancels a shipped order with the id 2^63 - 1."""
    _cancels_shipped(service, lambda order: order.id == INT64_MAX)


@fault("CANCEL-3")
def finds_no_shipped_order_at_the_beginning_of_int64(service: Service) -> None:
    """Answers 404 for a shipped order with the id -2^63, which has no counterpart above zero."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and order.id == INT64_MIN)


@fault("CANCEL-3")
def finds_no_shipped_order_0(service: Service) -> None:
    """Answers 404 for a shipped order with the id 0, whose shipment it takes for that of no order."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and order.id == 0)


@fault("CANCEL-3")
def cancels_shipped_orders_for_two_at_once(service: Service) -> None:
    """Notes who looks at a shipped order, and cancels it for whoever comes while another is being refused."""
    refusing: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not order or not amend.shipped(order):
            return None
        if order_id in refusing:
            service.store.remove([order_id])
            return CANCELLED
        refusing.add(order_id)
        time.sleep(0.02)
        refusing.discard(order_id)
        return REFUSED

    amend.before_cancel(service, decide)


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
def cancels_refused_orders_a_moment_later(service: Service) -> None:
    """Answers 409 and a fifth of a second later cancels the shipped order anyway."""
    later = amend.later(service, 0.2)
    _after_refusal(service, lambda order: later(lambda: service.store.remove([order.id])))


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
        if not order or not amend.shipped(order):
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
def takes_the_id_zero_for_none(service: Service) -> None:
    """Answers 400 for the id 0, as if it were missing, unless an order has it."""

    def answer(request: Request) -> Response | None:
        zero = amend.is_cancel(request) and request.path == f"{service.collection}/0"
        return service.error(400, "No id.") if zero and not amend.order_of(service, request) else None

    amend.instead(service, answer)


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
    _accepting(service, "application/json", 409, lambda order: order is None)


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


@fault("CANCEL-1")
def loses_a_cancel_to_another_order(service: Service) -> None:
    """Keeps one version for all orders, and answers 404 to a cancel of a pending order during which another order was
    cancelled."""
    inner = service.cancel
    lock = threading.Lock()
    cancelled: list[int] = []

    def cancel(order_id: int) -> Outcome:
        order = service.store.get(order_id)
        seen = len(cancelled)
        time.sleep(0.02)
        with lock:
            if order and amend.pending(order) and set(cancelled[seen:]) - {order_id}:
                return ABSENT
            outcome = inner(order_id)
            if outcome is Outcome.CANCELLED:
                cancelled.append(order_id)
            return outcome

    service.cancel = cancel
