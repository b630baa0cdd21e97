"""Ways to change one part of a service from outside, for faults and variants.

Each function puts something around the part that is there, so that several changes of one part add up.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from email.utils import formatdate
from functools import partial
from typing import TypeGuard

from .api import Credentials, JsonObject, Service
from .messages import Request, Response
from .orders import Order, Outcome, Status

_MOMENT = 0.2  # seconds


def every(n: int) -> Callable[[], bool]:
    """Gives a function that is true each n-th time it is called: for failures that come and go."""
    counter = itertools.count(1)
    return lambda: next(counter) % n == 0


def is_cancel(request: Request) -> bool:
    """Whether this request asks to cancel something."""
    return request.method == "DELETE"


def is_listing(request: Request, response: Response) -> bool:
    """Whether this is the listing, successfully answered."""
    return request.method == "GET" and response.status == 200


def id_of(service: Service, request: Request) -> int | None:
    """The id that a request names in its path, if it is well-formed."""
    return service.read_id(request.path.rpartition("/")[2])


def order_of(service: Service, request: Request) -> Order | None:
    """The order that a request names in its path, if there is one."""
    order_id = id_of(service, request)
    return None if order_id is None else service.store.get(order_id)


def order_to_cancel(service: Service, request: Request) -> Order | None:
    """The order that a request asks to cancel, if it asks for that and there is one."""
    return order_of(service, request) if is_cancel(request) else None


def place_of(service: Service, order: Order) -> int:
    """How many orders were placed before this one and are still there."""
    return [other.id for other in service.store.all()].index(order.id)


def no_header(request: Request) -> bool:
    """Whether a request has no Authorization header."""
    return "authorization" not in request.headers


def names_json(request: Request) -> bool:
    """Whether a client accepts application/json by name, and nothing else."""
    return request.headers.get("accept") == "application/json"


def names_nothing(request: Request) -> bool:
    """Whether a client does not say what it accepts: it accepts anything (RFC 9110 section 12.5.1)."""
    return "accept" not in request.headers


def authorization(request: Request) -> str:
    """The Authorization header of a request, or nothing."""
    return request.headers.get("authorization", "")


def pending(order: Order | None) -> TypeGuard[Order]:
    """Whether there is an order, and it is pending."""
    return order is not None and order.status is Status.PENDING


def shipped(order: Order | None) -> TypeGuard[Order]:
    """Whether there is an order, and it has shipped."""
    return order is not None and order.status is Status.SHIPPED


Change = Callable[[Request, Response], Response | None]
"""What a fault or variant makes of a response: it may alter what it is given, or give another."""


def _then(inner: Callable[..., Response], change: Change) -> Callable[..., Response]:
    def changed(request: Request, *more: object) -> Response:
        response = inner(request, *more)
        return change(request, response) or response

    return changed


def before(service: Service, answer: Callable[[Request], Response | None]) -> None:
    """Does something before anything of a request is looked at, even its key, and may answer it."""
    inner = service.respond
    service.respond = lambda request: answer(request) or inner(request)


def beyond(service: Service, most: int, answer: Callable[[Request], Response]) -> None:
    """Answers listings, whoever asks for them, that come while so many are under way; each takes a moment."""
    inner, lock, under_way = service.respond, threading.Lock(), 0

    def respond(request: Request) -> Response:
        nonlocal under_way
        if request.method != "GET" or request.path != service.collection:
            return inner(request)
        with lock:
            under_way += 1
            late = under_way > most
        try:
            time.sleep(0.01)
            return answer(request) if late else inner(request)
        finally:
            with lock:
                under_way -= 1

    service.respond = respond


def responses(service: Service, change: Change) -> None:
    """Changes every response, 401 included."""
    service.respond = _then(service.respond, change)


def granted(service: Service, change: Change) -> None:
    """Changes every response to a request that carried the key."""
    service.dispatch = _then(service.dispatch, change)


def instead(service: Service, answer: Callable[[Request], Response | None]) -> None:
    """Answers requests that carried the key, but leaves those to the service for which this gives `None`."""
    inner = service.dispatch
    service.dispatch = lambda request: answer(request) or inner(request)


def paths(service: Service, read: Callable[[Request], str]) -> None:
    """Reads another path in requests that carried the key."""
    inner = service.dispatch
    service.dispatch = lambda request: inner(request._replace(path=read(request)))


def refusals(service: Service, change: Change) -> None:
    """Changes every 401."""
    service.refuse = _then(service.refuse, change)


def credentials(service: Service, judge: Callable[[Request, Credentials], Credentials]) -> None:
    """Changes what a request's credentials are worth."""
    inner = service.authenticate
    service.authenticate = lambda request: judge(request, inner(request))


def accept(service: Service, also: Callable[[Request], bool]) -> None:
    """Takes requests for authenticated that otherwise are not."""

    def judge(request: Request, found: Credentials) -> Credentials:
        return Credentials.VALID if found is not Credentials.VALID and also(request) else found

    credentials(service, judge)


def accept_keys(service: Service, also: Callable[[bytes, bytes], bool]) -> None:
    """Takes wrong bearer tokens, not malformed ones, for the key; the condition is given token and key."""
    inner = service.same_key
    service.same_key = lambda given: inner(given) or (given != b"" and b" " not in given and also(given, service.key))


def listing(service: Service, change: Callable[[Request, list[Order]], Iterable[Order]]) -> None:
    """Changes which orders the listing holds."""
    inner = service.listed
    service.listed = lambda request: change(request, list(inner(request)))


def leave_out(service: Service, which: Callable[[Order], bool]) -> None:
    """Lists all orders but these."""
    listing(service, lambda request, orders: [order for order in orders if not which(order)])


def listing_body(service: Service, change: Callable[[bytes], bytes]) -> None:
    """Changes the bytes of the listing."""
    inner = service.list_orders

    def list_orders(request: Request) -> Response:
        response = inner(request)
        response.body = change(response.body)
        return response

    service.list_orders = list_orders


def tagged(service: Service, tag: Callable[[Response], str], status: int = 304) -> None:
    """Sends listings with this entity tag, and 304, or another status, to whoever has it (RFC 9110 section 13.1.2)."""
    _validated(service, "ETag", "if-none-match", tag, status)


def dated(service: Service, seconds: Callable[[Response], float], status: int = 304) -> None:
    """Sends listings with the date when they became what they are, in seconds since the epoch, and 304, or another
    status, to whoever has one of that date (RFC 9110 section 13.1.3)."""
    date = partial(formatdate, usegmt=True)
    _validated(service, "Last-Modified", "if-modified-since", lambda response: date(seconds(response)), status)


def _validated(service: Service, name: str, condition: str, value: Callable[[Response], str], status: int) -> None:
    def change(request: Request, response: Response) -> Response | None:
        if not is_listing(request, response):
            return None
        response.headers[name] = value(response)
        if request.headers.get(condition) != response.headers[name]:
            return None
        return Response(status, headers={name: response.headers[name]})

    granted(service, change)


def orders(service: Service, change: Callable[[Order, JsonObject], JsonObject]) -> None:
    """Changes the JSON object of each order."""
    inner = service.order_fields
    service.order_fields = lambda order: change(order, inner(order))
    service.write_listing = service.listing_json  # may differ each time, so nothing is remembered


def dates(service: Service, form: str) -> None:
    """Writes dates in another form, which `strftime` knows."""
    orders(
        service,
        lambda order, fields: {**fields, "shipDate": datetime.fromisoformat(order.ship_date).strftime(form)},
    )


def errors(service: Service, change: Callable[[JsonObject], JsonObject], *statuses: int) -> None:
    """Changes the JSON object of the errors with one of these statuses."""
    inner = service.error_fields

    def error_fields(status: int, message: str) -> JsonObject:
        fields = inner(status, message)
        return change(fields) if status in statuses else fields

    service.error_fields = error_fields


def after_cancel(service: Service, change: Callable[[int, Outcome], Outcome | None]) -> None:
    """Does something after each attempt to cancel, and may give another outcome."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        outcome = inner(order_id)
        return change(order_id, outcome) or outcome

    service.cancel = cancel


def when(service: Service, outcome: Outcome, act: Callable[[Order], object]) -> None:
    """Does something with each order whose cancel has this outcome; it is given the order as it was before."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        order = service.store.get(order_id)
        found = inner(order_id)
        if order and found is outcome:
            act(order)
        return found

    service.cancel = cancel


def later(service: Service) -> Callable[[Callable[[], object]], None]:
    """Gives what puts an act off by a moment, to the first request after that."""
    due: deque[tuple[float, Callable[[], object]]] = deque()

    def catch_up(request: Request) -> None:
        with suppress(IndexError):  # another request may have taken it
            while due and due[0][0] < time.monotonic():
                due.popleft()[1]()

    before(service, catch_up)
    return lambda act: due.append((time.monotonic() + _MOMENT, act))


def before_cancel(service: Service, decide: Callable[[int, Order | None], Outcome | None]) -> None:
    """Decides an attempt to cancel by the id and the order that has it; `None` leaves it alone."""
    inner = service.cancel
    service.cancel = lambda order_id: decide(order_id, service.store.get(order_id)) or inner(order_id)


def outcomes(service: Service, outcome: Outcome, which: Callable[[Order], bool]) -> None:
    """Gives this outcome for some of the orders, and does nothing to them."""
    before_cancel(service, lambda order_id, order: outcome if order and which(order) else None)


def accepting(service: Service, media_type: str | None, status: int, which: Callable[[Order | None], bool]) -> None:
    """Answers cancels by clients whose Accept names this media type, or that send none if it is `None`, with an error,
    for some orders or for none."""

    def answer(request: Request) -> Response | None:
        accept = request.headers.get("accept")
        named = is_cancel(request) and (media_type in accept if media_type and accept else media_type == accept)
        if not named or id_of(service, request) is None or not which(order_of(service, request)):
            return None
        return service.error(status, "This order is not for you.")

    instead(service, answer)


def read_ids(service: Service, read: Callable[[str], int | None]) -> None:
    """Reads ids from the path that otherwise would be malformed."""
    inner = service.read_id

    def read_id(text: str) -> int | None:
        found = inner(text)
        return read(text) if found is None else found

    service.read_id = read_id


def find(service: Service, other: Callable[[int], Iterable[int]]) -> None:
    """Cancels another order when none has the id: the first of these ids that one has."""
    inner = service.cancel

    def cancel(order_id: int) -> Outcome:
        if service.store.get(order_id) is None:
            order_id = next((known for known in other(order_id) if service.store.get(known)), order_id)
        return inner(order_id)

    service.cancel = cancel


def repeated_cancels(service: Service, change: Callable[[Response], Response]) -> None:
    """Changes the 404 to the cancel of an order that was cancelled before."""
    cancelled: set[int] = set()
    inner = service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        repeated = service.read_id(text) in cancelled
        response = inner(request, text)
        return change(response) if repeated and response.status == 404 else response

    when(service, Outcome.CANCELLED, lambda order: cancelled.add(order.id))
    service.cancel_order = cancel_order


def wire(service: Service, change: Callable[[Request, Response, bytes], bytes]) -> None:
    """Changes the bytes of every response. Setting `response.close` ends the connection after them."""
    inner = service.write
    service.write = lambda request, response: change(request, response, inner(request, response))
