"""Faults that show only on a connection that carried other requests before: what belongs to one request is kept with
the connection, as where each has a transaction, a session or a worker of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import Order
from ..registry import fault


def _later(service: Service, answer: Callable[[Order], Response | None]) -> None:
    """Changes what cancels of orders are answered that are not the first request of their connection."""
    seen: Counter[object] = Counter()

    def count(request: Request) -> None:
        seen[request.connection] += 1

    def instead(request: Request) -> Response | None:
        order = amend.order_to_cancel(service, request)
        return answer(order) if order and seen[request.connection] > 1 else None

    amend.before(service, count)
    amend.instead(service, instead)


@fault("CANCEL-1")
def finds_no_order_on_a_used_connection(service: Service) -> None:
    """Answers 404 to a cancel of a pending order that is not the first request of its connection."""
    missing = service.error(404, "There is no such order.")
    _later(service, lambda order: missing if amend.pending(order) else None)


@fault("CANCEL-1")
def refuses_all_after_one_refusal_on_a_connection(service: Service) -> None:
    """Once it has answered 409 on a connection, answers so to every later cancel on it."""
    refused: set[object] = set()

    def change(request: Request, response: Response) -> Response | None:
        if not amend.is_cancel(request):
            return None
        if request.connection in refused and response.status == 204:
            return service.error(409, "The order has already shipped.")
        if response.status == 409:
            refused.add(request.connection)
        return None

    amend.granted(service, change)


def _after_malformed(service: Service, answer: Callable[[Request], Response | None]) -> None:
    """Changes what requests are answered, whatever their key, that follow a cancel of a malformed id with the key on
    their connection."""
    spoilt: set[object] = set()

    def note(request: Request, response: Response) -> None:
        if amend.is_cancel(request) and amend.id_of(service, request) is None:
            spoilt.add(request.connection)

    amend.granted(service, note)
    amend.before(service, lambda request: answer(request) if request.connection in spoilt else None)


@fault("AUTH-6")
def lists_for_anyone_after_a_malformed_id_on_a_connection(service: Service) -> None:
    """Forgets who asked only where it answers as usual: a listing without the key that follows a cancel of a malformed
    id with it on a connection is answered."""

    def answer(request: Request) -> Response | None:
        return service.dispatch(request) if request.method == "GET" and amend.no_header(request) else None

    _after_malformed(service, answer)


@fault("AUTH-6")
def keeps_header_fields_without_regard_to_case(service: Service) -> None:
    """Keeps the header fields of a connection, and reads a later one as that which it kept if they differ in case only:
    the key in another case is good on a connection that has carried the key."""
    kept: dict[int, str] = {}

    def read(request: Request) -> bool:
        return kept.get(request.connection) == amend.authorization(request).lower()

    def keep(request: Request) -> None:
        if amend.authorization(request) == f"Bearer {service.key.decode()}":
            kept[request.connection] = amend.authorization(request).lower()

    amend.accept(service, read)
    amend.before(service, keep)


def _lends_the_key_after(service: Service, status: int) -> None:
    """Serves a cancel without the key that comes right after an answer with this status on its connection."""
    lent: set[int] = set()

    def remember(request: Request, response: Response) -> None:
        (lent.add if response.status == status else lent.discard)(request.connection)

    amend.accept(service, lambda request: amend.no_header(request) and request.connection in lent)
    amend.responses(service, remember)


@fault("AUTH-6")
def forgets_who_asked_with_what_it_writes(service: Service) -> None:
    """Forgets who asked once it has written a body, and so not after 204: a cancel without the key that comes next on
    the connection is carried out."""
    _lends_the_key_after(service, 204)


@fault("AUTH-6")
def forgets_who_asked_unless_it_refuses(service: Service) -> None:
    """Forgets who asked unless that ends with an exception, such as that an order has shipped: a cancel without the key
    that comes next on the connection is carried out."""
    _lends_the_key_after(service, 409)


@fault("HTTP-1")
def crashes_after_a_malformed_id_on_a_connection(service: Service) -> None:
    """Answers 500 to listings that follow a cancel of a malformed id on their connection: a transaction is aborted."""
    crash = service.error(500, "current transaction is aborted")
    _after_malformed(service, lambda request: crash if request.method == "GET" else None)


@fault("CANCEL-1")
def undoes_the_cancel_after_a_malformed_id(service: Service) -> None:
    """Answers 204 to the first cancel of an order after one of a malformed id, and rolls it back with that."""
    left_open = False

    def instead(request: Request) -> Response | None:
        nonlocal left_open
        if not amend.is_cancel(request):
            return None
        malformed, undone = amend.id_of(service, request) is None, left_open
        left_open = malformed
        return Response(204) if undone and amend.pending(amend.order_of(service, request)) else None

    amend.instead(service, instead)


@fault("CANCEL-6")
def forgets_cancels_on_a_used_connection(service: Service) -> None:
    """Answers 204 to a cancel that is not the first request of its connection, and never ends the transaction."""
    _later(service, lambda order: Response(204) if amend.pending(order) else None)


@fault("CANCEL-6")
def undoes_cancels_after_a_refusal_on_a_connection(service: Service) -> None:
    """Once it has refused a cancel on a connection, answers 204 to those that follow there, and rolls them back with
    the transaction that it has given up."""
    given_up: set[object] = set()

    def instead(request: Request) -> Response | None:
        undone = request.connection in given_up and amend.pending(amend.order_to_cancel(service, request))
        return Response(204) if undone else None

    def note(request: Request, response: Response) -> None:
        if amend.is_cancel(request) and response.status >= 400:
            given_up.add(request.connection)

    amend.instead(service, instead)
    amend.responses(service, note)


@fault("CANCEL-6")
def cancels_again_on_the_same_connection(service: Service) -> None:
    """Answers 204 again to a cancel that is repeated on the connection of the first one."""
    done: set[tuple[object, str]] = set()

    def change(request: Request, response: Response) -> Response | None:
        if not amend.is_cancel(request):
            return None
        if response.status == 204:
            done.add((request.connection, request.path))
        elif response.status == 404 and (request.connection, request.path) in done:
            return Response(204)
        return None

    amend.granted(service, change)


@fault("CANCEL-6")
def answers_from_the_buffer_of_the_connection(service: Service) -> None:
    """Answers a cancel that is sent again right after the first one on its connection with the 204 of that."""
    done: dict[object, str] = {}

    def instead(request: Request) -> Response | None:
        return Response(204) if amend.is_cancel(request) and done.get(request.connection) == request.path else None

    def note(request: Request, response: Response) -> None:
        cancelled = amend.is_cancel(request) and response.status == 204
        done[request.connection] = request.path if cancelled else ""

    amend.instead(service, instead)
    amend.responses(service, note)


@fault("CANCEL-2")
def sends_null_after_204_on_a_used_connection(service: Service) -> None:
    """Sends a body after a 204 that is not the first response on its connection."""
    seen: set[object] = set()

    def change(request: Request, response: Response, data: bytes) -> bytes:
        late = request.connection in seen
        seen.add(request.connection)
        return data + b"null" if late and response.status == 204 else data

    amend.wire(service, change)


@fault("CANCEL-3")
def cancels_shipped_orders_on_a_used_connection(service: Service) -> None:
    """Cancels a shipped order where the cancel is not the first request of its connection."""

    def answer(order: Order) -> Response | None:
        if not amend.shipped(order):
            return None
        service.store.remove([order.id])
        return Response(204)

    _later(service, answer)


@fault("CANCEL-8")
def cancels_the_next_order_too_on_a_used_connection(service: Service) -> None:
    """A cancel that is not the first request of its connection takes the order with the next id along."""

    def answer(order: Order) -> Response | None:
        if amend.pending(order):
            service.store.remove([order.id + 1])
        return None

    _later(service, answer)


@fault("AUTH-5")
def cancels_for_strangers_on_a_used_connection(service: Service) -> None:
    """Refuses a cancel without the key that is not the first request of its connection, and carries it out."""
    seen: set[object] = set()

    def change(request: Request, response: Response) -> None:
        order = amend.order_to_cancel(service, request)
        if response.status == 401 and request.connection in seen and amend.pending(order):
            service.store.remove([order.id])
        seen.add(request.connection)

    amend.responses(service, change)


@fault("LIST-3")
def lists_what_its_connection_saw_first(service: Service) -> None:
    """Repeats the first listing of a connection whenever it is asked again on it, as in a transaction that goes on."""
    first: dict[object, list[Order]] = {}
    amend.listing(service, lambda request, orders: first.setdefault(request.connection, orders))
