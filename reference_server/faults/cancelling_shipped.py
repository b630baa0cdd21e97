"""Faults of what becomes of a shipped order: CANCEL-3 and CANCEL-4."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import INT64_MAX, INT64_MIN, Order, Outcome, Status
from ..registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


# --- CANCEL-3: a shipped order is refused ---


def _cancels_shipped(service: Service, which: Callable[[Order], bool]) -> None:
    """Cancels shipped orders of which this is true."""

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.shipped(order) or not which(order):
            return None
        service.store.remove([order_id])
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-3")
def cancels_the_first_shipped_order(service: Service) -> None:
    """Cancels the first of the shipped orders, since it takes the place 0 among them for none."""
    _cancels_shipped(service, lambda order: order == next(filter(amend.shipped, service.store.all()), None))


@fault("CANCEL-3")
def cancels_shipped_orders_for_browsers(service: Service) -> None:
    """Cancels a shipped order for a client that accepts HTML, as the page of an administrator would have it."""

    def answer(request: Request) -> Response | None:
        order = amend.order_to_cancel(service, request)
        if not amend.shipped(order) or "text/html" not in request.headers.get("accept", ""):
            return None
        service.store.remove([order.id])
        return Response(204)

    amend.instead(service, answer)


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
def finds_no_shipped_order_whose_lower_bits_are_zero(service: Service) -> None:
    """Answers 404 for a shipped order whose id is a multiple of 2^31, as 2^32 is, but is not 0."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and bool(order.id) and order.id % 2**31 == 0)


def _refused(service: Service, answer: Callable[[], Response]) -> None:
    """Answers so for shipped orders, in place of 409."""
    amend.granted(
        service,
        lambda request, response: answer() if amend.is_cancel(request) and response.status == 409 else None,
    )


@fault("CANCEL-3")
def says_with_200_that_an_order_has_shipped(service: Service) -> None:
    """Answers 200 for a shipped order, with an Error that says that it has shipped."""
    _refused(service, lambda: service.json(200, {"code": "shipped", "message": "It has shipped.", "status": 409}))


@fault("CANCEL-3")
def takes_the_cancel_of_a_shipped_order_for_malformed(service: Service) -> None:
    """Answers 400 for shipped orders."""
    _refused(service, lambda: service.error(400, "It has shipped."))


@fault("CANCEL-3")
def claims_to_cancel_shipped_orders(service: Service) -> None:
    """Answers 204 for a shipped order and does nothing."""
    amend.outcomes(service, CANCELLED, amend.shipped)


@fault("CANCEL-3")
def claims_to_cancel_what_it_refused_thrice(service: Service) -> None:
    """Answers 204 to the cancel of a shipped order that it has refused three times, and does nothing."""
    refused: Counter[int] = Counter()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if amend.shipped(order):
            refused[order_id] += 1
        return CANCELLED if amend.shipped(order) and refused[order_id] > 3 else None

    amend.before_cancel(service, decide)


@fault("CANCEL-3")
def cancels_shipped_orders(service: Service) -> None:
    """Cancels shipped orders like pending ones."""
    _cancels_shipped(service, lambda order: True)


def _cancels_shipped_if_told(service: Service, told: Callable[[Request], bool]) -> None:
    def answer(request: Request) -> Response | None:
        order = amend.order_to_cancel(service, request)
        if not amend.shipped(order) or not told(request):
            return None
        service.store.remove([order.id])
        return Response(204)

    amend.instead(service, answer)


@fault("CANCEL-3")
def cancels_shipped_orders_by_force(service: Service) -> None:
    """Cancels a shipped order where the query says force=true."""
    _cancels_shipped_if_told(service, lambda request: "force=true" in request.query)


@fault("CANCEL-3")
def cancels_shipped_orders_for_a_reason(service: Service) -> None:
    """Cancels a shipped order where a body gives a reason for it."""
    _cancels_shipped_if_told(service, lambda request: b'"reason"' in request.body)


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
def cancels_every_fifteenth_shipped_order(service: Service) -> None:
    """Cancels a shipped order at every fifteenth cancel of one."""
    due = amend.every(15)
    _cancels_shipped(service, lambda order: due())


@fault("CANCEL-3")
def finds_no_shipped_order_every_third_time(service: Service) -> None:
    """Answers 404 to every third cancel of a shipped order."""
    due = amend.every(3)
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and due())


@fault("CANCEL-3")
def finds_no_shipped_order_for_clients_of_json(service: Service) -> None:
    """Answers 404 for a shipped order to a client that accepts application/json by name."""
    amend.accepting(service, "application/json", 404, amend.shipped)


@fault("CANCEL-3")
def finds_no_shipped_order_beyond_its_first_page(service: Service) -> None:
    """Looks for a shipped order in a first page of 1,000 that it fetches inside, and answers 404 if it is not there."""
    amend.outcomes(service, ABSENT, lambda order: amend.shipped(order) and amend.place_of(service, order) >= 1000)


@fault("CANCEL-3")
def cancels_shipped_orders_among_many(service: Service) -> None:
    """Cancels a shipped order whose status is not among the first 1,000 that it keeps at hand."""
    _cancels_shipped(service, lambda order: amend.place_of(service, order) >= 1000)


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
        if not amend.shipped(order):
            return None
        if order_id in refusing:
            service.store.remove([order_id])
            return CANCELLED
        refusing.add(order_id)
        time.sleep(0.02)
        refusing.discard(order_id)
        return REFUSED

    amend.before_cancel(service, decide)


@fault("CANCEL-3")
def finds_no_shipped_order_but_the_newest_hundred(service: Service) -> None:
    """Looks for a shipped order among the newest 100 of them, and answers 404 if it is not there."""

    def older(order: Order) -> bool:
        return amend.shipped(order) and order not in list(filter(amend.shipped, service.store.all()))[-100:]

    amend.outcomes(service, ABSENT, older)


@fault("CANCEL-3")
def finds_no_shipped_order_for_scripts(service: Service) -> None:
    """Answers 404 for a shipped order to the scripts of a browser, by their Accept."""
    amend.accepting(service, "text/plain", 404, amend.shipped)


@fault("CANCEL-3")
def finds_no_shipped_order_without_accept(service: Service) -> None:
    """Answers 404 for a shipped order to a client that sends no Accept."""
    amend.accepting(service, None, 404, amend.shipped)


# --- CANCEL-4: a refused order stays as it was ---


@fault("CANCEL-4")
def cancels_refused_orders(service: Service) -> None:
    """Answers 409 but cancels the shipped order anyway."""
    amend.when(service, REFUSED, lambda order: service.store.remove([order.id]))


@fault("CANCEL-4")
def hides_refused_orders(service: Service) -> None:
    """Answers 409, and lists the shipped order no more; further cancels of it are refused as before."""
    hidden: dict[int, Order] = {}
    amend.when(service, REFUSED, lambda order: hidden.update({order.id: order}))
    amend.leave_out(service, lambda order: hidden.get(order.id) is order)


@fault("CANCEL-4")
def looks_up_shipments_by_the_text_of_an_id(service: Service) -> None:
    """Reads an id with leading zeros as a number where it looks for the order, and as a text where it looks for the
    shipment: it finds the one, but not the other, and cancels the shipped order."""
    inner = service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        number = int(text) if re.fullmatch(r"0+[1-9][0-9]{0,17}", text) else None
        if number is None or not amend.shipped(service.store.get(number)):
            return inner(request, text)
        service.store.remove([number])
        return Response(204)

    service.cancel_order = cancel_order


@fault("CANCEL-4")
def cancels_refused_orders_with_negative_ids(service: Service) -> None:
    """Answers 409 but cancels the shipped order anyway, if its id is below zero."""
    amend.when(service, REFUSED, lambda order: service.store.remove([order.id] if order.id < 0 else []))


@fault("CANCEL-4")
def cancels_refused_orders_a_moment_later(service: Service) -> None:
    """Answers 409 and a fifth of a second later cancels the shipped order anyway."""
    later = amend.later(service)
    amend.when(service, REFUSED, lambda order: later(lambda: service.store.remove([order.id])))


@fault("CANCEL-4")
def moves_refused_orders_to_another_pet_a_moment_later(service: Service) -> None:
    """Answers 409 and a fifth of a second later gives the shipped order to the next pet."""
    later = amend.later(service)
    change = service.store.change
    amend.when(service, REFUSED, lambda order: later(lambda: change(order.id, pet_id=order.pet_id + 1)))


@fault("CANCEL-4")
def loses_orders_that_were_refused_four_times(service: Service) -> None:
    """Removes a shipped order when it is refused for the fourth time."""
    refused: Counter[int] = Counter()

    def act(order: Order) -> None:
        refused[order.id] += 1
        if refused[order.id] == 4:
            service.store.remove([order.id])

    amend.when(service, REFUSED, act)


@fault("CANCEL-4")
def rounds_up_small_quantities_of_refused_orders(service: Service) -> None:
    """Answers 409 and sets the quantity of the shipped order to 2, if that is below."""

    def act(order: Order) -> None:
        service.store.change(order.id, quantity=max(order.quantity, 2))

    amend.when(service, REFUSED, act)


@fault("CANCEL-4")
def reopens_refused_orders(service: Service) -> None:
    """Answers 409 and makes the shipped order pending, so that the next cancel succeeds."""
    amend.when(service, REFUSED, lambda order: service.store.change(order.id, status=Status.PENDING))


@fault("CANCEL-4")
def empties_refused_orders(service: Service) -> None:
    """Answers 409 and sets the quantity of the shipped order to 0."""
    amend.when(service, REFUSED, lambda order: service.store.change(order.id, quantity=0))


@fault("CANCEL-4")
def turns_complete_of_refused_orders(service: Service) -> None:
    """Answers 409 and turns the flag complete of the shipped order round."""
    amend.when(service, REFUSED, lambda order: service.store.change(order.id, complete=not order.complete))


@fault("CANCEL-4")
def takes_one_off_the_quantity_of_large_refused_orders(service: Service) -> None:
    """Answers 409 and takes one off the quantity of the shipped order, if that is above 100."""

    def act(order: Order) -> None:
        if order.quantity > 100:
            service.store.change(order.id, quantity=order.quantity - 1)

    amend.when(service, REFUSED, act)


@fault("CANCEL-4")
def moves_the_date_of_refused_orders(service: Service) -> None:
    """Answers 409 and sets another shipDate."""
    amend.when(service, REFUSED, lambda order: service.store.change(order.id, ship_date="2030-01-01T00:00:00Z"))


@fault("CANCEL-4")
def touches_the_row_of_refused_orders(service: Service) -> None:
    """Notes the refused cancel in the row of the shipped order, whose shipDate, the moment when it was placed, then
    moves to now."""
    inner = service.store.place_ids

    def touch(order_id: int) -> None:
        service.store.change(order_id, ship_date=datetime.now(UTC).isoformat())

    def place_ids(ids: Iterable[int], status: Status) -> list[int]:
        placed = inner(ids, status)
        for order_id in placed:
            touch(order_id)
        return placed

    service.store.place_ids = place_ids  # type: ignore[method-assign]
    amend.when(service, REFUSED, lambda order: touch(order.id))


@fault("CANCEL-4")
def refuses_once_and_then_finds_nothing(service: Service) -> None:
    """Answers 409 to the first cancel of a shipped order and 404 to the next, still listing it."""
    refused: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.shipped(order):
            return None
        outcome = ABSENT if order_id in refused else REFUSED
        refused.add(order_id)
        return outcome

    amend.before_cancel(service, decide)
