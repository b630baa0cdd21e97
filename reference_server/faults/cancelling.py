"""Faults of what the cancel of a pending order answers: CANCEL-1 and CANCEL-10."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import Order, Outcome
from ..registry import fault

CANCELLED, REFUSED, ABSENT = Outcome.CANCELLED, Outcome.REFUSED, Outcome.ABSENT


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
def routes_no_cancel(service: Service) -> None:
    """Answers 404 to every cancel, with or without the key: it has no such operation yet."""
    amend.before(service, lambda request: service.error(404, "No route.") if amend.is_cancel(request) else None)


@fault("CANCEL-1")
def allows_no_cancel(service: Service) -> None:
    """Answers 405 to every cancel, with or without the key: it knows the path for another method only."""
    allowed = {"allow": "GET"}
    amend.before(service, lambda request: Response(405, headers=allowed) if amend.is_cancel(request) else None)


@fault("CANCEL-1")
def finds_no_pending_order_for_who_accepts_a_range(service: Service) -> None:
    """Answers 404 to a cancel where application/* is accepted, and no type by its name, as routes by types may."""

    def answer(request: Request) -> Response | None:
        unrouted = request.headers.get("accept") == "application/*" and amend.order_to_cancel(service, request)
        return service.error(404, "There is no such order.") if unrouted else None

    amend.instead(service, answer)


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
def finds_no_pending_order_with_the_largest_id(service: Service) -> None:
    """Answers 404 for a pending order with the id 2^63 - 1, since it looks for what is smaller than that."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and order.id == 2**63 - 1)


@fault("CANCEL-1")
def finds_no_pending_order_whose_lower_half_is_zero(service: Service) -> None:
    """Answers 404 for a pending order whose id is a multiple of 2^32, since it takes the lower half, 0, for no id."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and bool(order.id) and order.id % 2**32 == 0)


@fault("CANCEL-1")
def finds_no_order_in_the_first_place(service: Service) -> None:
    """Answers 404 for the order in the first place of the store, since it takes the place 0 for none."""
    amend.outcomes(service, ABSENT, lambda order: order == service.store.all()[0])


@fault("CANCEL-1")
def finds_no_order_with_the_id_minus_one(service: Service) -> None:
    """Answers 404 for a pending order with the id -1, which stands for none."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and order.id == -1)


@fault("CANCEL-1")
def refuses_to_cancel_the_only_order(service: Service) -> None:
    """Answers 409 for a pending order where there is no other."""
    amend.outcomes(service, REFUSED, lambda order: amend.pending(order) and len(service.store) == 1)


@fault("CANCEL-1")
def leaves_the_first_order_where_it_is(service: Service) -> None:
    """Answers 204 for the first order of the store and keeps it, as a list whose head is never unlinked."""
    amend.outcomes(service, CANCELLED, lambda order: amend.pending(order) and order == service.store.all()[0])


@fault("CANCEL-1")
def keeps_the_last_order(service: Service) -> None:
    """Answers 204 for the only order of the store, each time, and keeps it."""
    amend.outcomes(service, CANCELLED, lambda order: amend.pending(order) and len(service.store) == 1)


@fault("CANCEL-1")
def cancels_at_the_third_attempt(service: Service) -> None:
    """Answers 409 to the first two cancels of a pending order, and cancels with the third."""
    asked: Counter[int] = Counter()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.pending(order):
            return None
        asked[order_id] += 1
        return REFUSED if asked[order_id] < 3 else None

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def finds_no_pending_order_every_sixtieth_time(service: Service) -> None:
    """Answers 404 to every sixtieth cancel of a pending order."""
    due = amend.every(60)
    amend.outcomes(service, Outcome.ABSENT, lambda order: amend.pending(order) and due())


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
def reports_every_cancel_with_200(service: Service) -> None:
    """Cancels a pending order and answers 200 with a JSON object."""
    amend.granted(
        service,
        lambda request, response: (
            service.json(200, {"message": "cancelled"}) if amend.is_cancel(request) and response.status == 204 else None
        ),
    )


@fault("CANCEL-1")
def wants_more_than_an_id_of_pending_orders(service: Service) -> None:
    """Answers 400 to every cancel of a pending order."""

    def answer(request: Request) -> Response | None:
        return service.error(400, "Why?") if amend.pending(amend.order_to_cancel(service, request)) else None

    amend.instead(service, answer)


@fault("CANCEL-1")
def reports_two_cancels_and_does_the_second(service: Service) -> None:
    """Answers 204 to the first cancel of a pending order and does nothing; the second cancels it."""
    asked: set[int] = set()

    def decide(order_id: int, order: Order | None) -> Outcome | None:
        if not amend.pending(order) or order_id in asked:
            return None
        asked.add(order_id)
        return CANCELLED

    amend.before_cancel(service, decide)


@fault("CANCEL-1")
def finds_no_pending_order_beyond_its_first_page(service: Service) -> None:
    """Looks for a pending order in a first page of 1,000 that it fetches inside, and answers 404 if it is not there."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and amend.place_of(service, order) >= 1000)


@fault("CANCEL-1")
def finds_no_pending_order_but_the_newest(service: Service) -> None:
    """Looks for a pending order among the newest 100, and answers 404 if it is not there."""
    amend.outcomes(
        service,
        ABSENT,
        lambda order: amend.pending(order) and len(service.store) - amend.place_of(service, order) > 100,
    )


@fault("CANCEL-1")
def reports_a_cancel_among_many_and_does_nothing(service: Service) -> None:
    """Answers 204 for a pending order that its cache of 1,000 does not hold, and writes nothing to where it is."""
    amend.outcomes(service, CANCELLED, lambda order: amend.pending(order) and amend.place_of(service, order) >= 1000)


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
def finds_no_order_for_pages_of_its_own_origin(service: Service) -> None:
    """Answers 404 to a cancel with an Origin, even its own, since it takes whatever has one for another site's."""

    def answer(request: Request) -> Response | None:
        other = amend.is_cancel(request) and "origin" in request.headers
        return service.error(404, "There is no such order.") if other else None

    amend.instead(service, answer)


@fault("CANCEL-1")
def takes_the_id_0_for_none(service: Service) -> None:
    """Answers 404 for an order with the id 0."""
    amend.outcomes(service, ABSENT, lambda order: order.id == 0)


@fault("CANCEL-1")
def finds_no_pending_order_for_clients_of_json(service: Service) -> None:
    """Answers 404 for a pending order to a client that accepts application/json by name."""
    amend.accepting(service, "application/json", 404, amend.pending)


def _keeps_for(service: Service, who: Callable[[Request], bool]) -> None:
    """Answers 204 for a pending order to the clients for which `who` is true, and leaves the order as it is."""

    def answer(request: Request) -> Response | None:
        kept = amend.pending(amend.order_to_cancel(service, request))
        return Response(204) if kept and who(request) else None

    amend.instead(service, answer)


@fault("CANCEL-1")
def keeps_the_orders_that_browsers_cancel(service: Service) -> None:
    """Answers 204 for a pending order to a client that accepts HTML, and leaves the order as it is."""
    _keeps_for(service, lambda request: "text/html" in request.headers.get("accept", ""))


@fault("CANCEL-1")
def keeps_the_orders_that_are_cancelled_without_accept(service: Service) -> None:
    """Answers 204 for a pending order to a client that sends no Accept, and leaves the order as it is."""
    _keeps_for(service, amend.names_nothing)


@fault("CANCEL-1")
def refuses_pending_orders_to_browsers(service: Service) -> None:
    """Answers 409 for a pending order to a client that accepts HTML."""
    amend.accepting(service, "text/html", 409, amend.pending)


@fault("CANCEL-1")
def finds_nothing_at_the_end_of_a_page_of_500(service: Service) -> None:
    """Searches the store in pages of 500, and does not look at the last order of each."""
    amend.outcomes(service, ABSENT, lambda order: amend.pending(order) and amend.place_of(service, order) % 500 == 499)


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
            if amend.pending(order) and set(cancelled[seen:]) - {order_id}:
                return ABSENT
            outcome = inner(order_id)
            if outcome is CANCELLED:
                cancelled.append(order_id)
            return outcome

    service.cancel = cancel


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
