"""Other deployments: busy, slow, limited, behind a longer path."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from urllib.parse import unquote

from .. import amend
from ..api import ORDERS, Service
from ..messages import Request, Response
from ..orders import Order, Outcome, Status
from ..registry import variant


@variant()
def is_shared_with_busy_clients(service: Service) -> None:
    """Has other clients that place, ship and cancel orders between any two requests."""
    mine: deque[int] = deque(service.store.place(10, Status.PENDING))
    lock = threading.Lock()

    def act(request: Request) -> None:
        with lock:
            mine.extend(service.store.place(2, Status.PENDING))
            service.store.change(mine[-1], status=Status.SHIPPED)
            service.store.change(mine[0], quantity=1)
            while len(mine) > 20:
                service.store.remove([mine.popleft()])

    amend.before(service, act)
    service.cannot.add("no orders")


@variant()
def cancels_and_ships_behind_your_back(service: Service) -> None:
    """Has orders of others that change their status from one request to the next, each there all the time."""
    others = service.store.place(6, Status.PENDING)
    turn = itertools.cycle((Status.SHIPPED, Status.PENDING))

    def act(request: Request) -> None:
        status = next(turn)
        for order_id in others:
            service.store.change(order_id, status=status, complete=status is Status.SHIPPED)

    amend.before(service, act)
    service.cannot.add("no orders")


def _forbidden() -> Response:
    """The answer of a firewall that knows nothing of the service behind it."""
    return Response(403, b"<h1>Forbidden</h1>", {"Content-Type": "text/html"})


@variant()
def demands_a_user_agent(service: Service) -> None:
    """Answers 403 to requests without User-Agent, as firewalls in front of it do."""
    amend.responses(service, lambda request, _: None if "user-agent" in request.headers else _forbidden())


@variant()
def refuses_fields_beyond_ascii(service: Service) -> None:
    """Answers 403 to header fields that hold more than ASCII, as firewalls in front of it do."""

    def refused(request: Request, response: Response) -> Response | None:
        return None if "".join(request.headers.values()).isascii() else _forbidden()

    amend.responses(service, refused)


@variant("CANCEL-11")
def is_behind_a_firewall_that_says_200(service: Service) -> None:
    """Has a firewall in front that answers U+0000 and line breaks in a path with a page, which it sends with 200."""
    page = Response(200, b"<h1>The requested URL was rejected.</h1>", {"Content-Type": "text/html"})
    amend.before(service, lambda request: page if re.search("%0[0aA]", request.path) else None)


@variant()
def refuses_accept_charset(service: Service) -> None:
    """Has a firewall in front that answers 403 to a request with the deprecated field Accept-Charset."""
    amend.before(service, lambda request: _forbidden() if "accept-charset" in request.headers else None)


@variant()
def wants_a_token_with_every_origin(service: Service) -> None:
    """Answers 422 to a request with an Origin, since it has no token against forgery, as Rails does."""
    page = Response(422, b"<h1>The change you wanted was rejected.</h1>", {"Content-Type": "text/html"})
    amend.before(service, lambda request: page if "origin" in request.headers else None)


@variant()
def takes_no_conditions_from_anyone(service: Service) -> None:
    """Answers 400 to conditions (RFC 9110 section 13), whoever asks."""
    conditions = {"if-none-match", "if-modified-since"}
    amend.before(service, lambda request: None if conditions.isdisjoint(request.headers) else Response(400))


@variant()
def forbids_every_origin(service: Service) -> None:
    """Has a filter in front that answers 403 to a request with an Origin, since none is on its list."""
    amend.before(service, lambda request: _forbidden() if "origin" in request.headers else None)


def rejected(request: Request) -> Response:
    """The page of a firewall, with 200."""
    page = (
        b"<html><title>Request Rejected</title><body>The requested URL was rejected. Your support ID is: 4711.</body>"
    )
    return Response(200, page, {"Content-Type": "text/html; charset=utf-8"})


@variant()
def rejects_a_query_with_200(service: Service) -> None:
    """Has a firewall in front that sends a page of its own, with 200, to a query with a parameter called where."""
    amend.before(service, lambda request: rejected(request) if "where=" in request.query else None)


@variant()
def rejects_any_query_with_200(service: Service) -> None:
    """Lists no orders for any query, but a page of its own, with 200: the contract has no parameter."""
    amend.instead(service, lambda request: rejected(request) if request.query and request.method == "GET" else None)


@variant()
def limits_the_length_of_requests(service: Service) -> None:
    """Has a gateway in front that answers 414 to a long request target and 431 to long header fields."""

    def answer(request: Request) -> Response | None:
        if len(request.path) + len(request.query) > 250:
            return Response(414)
        return Response(431) if sum(map(len, request.lines)) > 600 else None

    amend.before(service, answer)


@variant()
def refuses_long_queries_with_404(service: Service) -> None:
    """Has IIS in front, which answers 404 (404.15) with a page to a query of more than 2,048 characters."""
    page = b"<h1>404.15 - Query String Too Long</h1>"
    amend.before(
        service,
        lambda request: Response(404, page, {"Content-Type": "text/html"}) if len(request.query) > 2048 else None,
    )


@variant()
def answers_health_checks_in_front(service: Service) -> None:
    """Has a server in front that answers 200 and a word to any request of those who look whether all is well."""

    def answer(request: Request) -> Response | None:
        agent = request.headers.get("user-agent", "")
        looks = any(name in agent for name in ("ELB-HealthChecker", "kube-probe", "GoogleHC"))
        return Response(200, b"healthy\n", {"Content-Type": "text/plain"}) if looks else None

    amend.before(service, answer)


@variant()
def refuses_fields_with_an_underscore(service: Service) -> None:
    """Answers 400 to a request with an underscore in the name of a header field, as some servers before programs do."""
    amend.before(service, lambda request: Response(400) if any("_" in n for n in request.headers) else None)


@variant()
def gives_removed_ids_to_others(service: Service) -> None:
    """Has somebody else place an order, with the id of one that was removed, as soon as the store was emptied."""
    clear, old = service.store.clear, service.store.all()[0].id
    number = itertools.count(1)

    def cleared() -> None:
        clear()
        service.store.place_ids([old], Status.PENDING)
        service.store.change(old, pet_id=next(number))

    service.store.clear = cleared  # type: ignore[method-assign]


def _slow(service: Service, seconds: float, which: Callable[[Request], bool]) -> None:
    """Lets requests of which this is true wait for so many seconds."""

    def wait(request: Request) -> None:
        if which(request):
            time.sleep(seconds)

    amend.before(service, wait)


@variant()
def is_slow(service: Service) -> None:
    """Takes 30 milliseconds for every request."""
    _slow(service, 0.03, lambda request: True)


@variant()
def cancels_slowly(service: Service) -> None:
    """Takes 60 milliseconds for every cancel."""
    _slow(service, 0.06, amend.is_cancel)


@variant()
def is_slow_now_and_then(service: Service) -> None:
    """Takes half a second for every fiftieth request."""
    due = amend.every(50)
    _slow(service, 0.5, lambda request: due())


@variant()
def locks_what_is_being_cancelled(service: Service) -> None:
    """Answers 423 to a cancel that comes while another one of the same id is under way, whether an order has it or
    not."""
    lock, under_way, inner = threading.Lock(), set[str](), service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        with lock:
            if text in under_way:
                return Response(423)
            under_way.add(text)
        try:
            time.sleep(0.003)
            return inner(request, text)
        finally:
            with lock:
                under_way.remove(text)

    service.cancel_order = cancel_order


@variant()
def serves_one_request_at_a_time(service: Service) -> None:
    """Lets every request wait for the one before, of whatever connection."""
    lock = threading.Lock()
    inner = service.respond

    def respond(request: Request) -> Response:
        with lock:
            return inner(request)

    service.respond = respond


def _sends_away(service: Service, n: int, status: int, retry_after: str | None, body: bytes = b"") -> None:
    """Answers every n-th request with this status before it looks at anything."""
    due = amend.every(n)
    headers = {"Content-Type": "text/plain"} | ({"Retry-After": retry_after} if retry_after else {})
    amend.before(service, lambda request: Response(status, body, headers) if due() else None)


@variant()
def limits_the_rate(service: Service) -> None:
    """Answers 429 with Retry-After: 1 to every fortieth request."""
    _sends_away(service, 40, 429, "1", b"slow down")


@variant()
def limits_the_rate_without_saying_when_to_return(service: Service) -> None:
    """Answers 429 without Retry-After to every fiftieth request."""
    _sends_away(service, 50, 429, None, b"slow down")


@variant()
def is_unavailable_now_and_then(service: Service) -> None:
    """Answers 503 with Retry-After: 1 to every fortieth request."""
    _sends_away(service, 40, 503, "1")


@variant()
def is_unavailable_until_a_date(service: Service) -> None:
    """Answers 503 with Retry-After as a date, long past, to every fortieth request."""
    _sends_away(service, 40, 503, "Fri, 31 Dec 1999 23:59:59 GMT")


@variant()
def serves_behind_a_longer_path(service: Service) -> None:
    """Has a base address with more segments before /v1."""
    service.base = "/shops/7/api" + service.base
    service.collection = service.base + ORDERS


@variant()
def repeats_a_path_that_looks_like_that_of_a_file(service: Service) -> None:
    """Has a base address that begins with /app, and writes the path of the request, decoded, into every Error."""
    service.base = "/app" + service.base
    service.collection = service.base + ORDERS

    def change(request: Request, response: Response) -> None:
        if response.status in (400, 401, 404, 409):
            fields = json.loads(response.body)
            path = unquote(request.path)
            response.body = service.encode({**fields, "message": f"{fields['message']} ({path})", "instance": path})

    amend.responses(service, change)


def _lists_for_a_while(service: Service, until: Callable[[], float]) -> None:
    """Answers 204 at once, and goes on listing the order until the time that is given for it."""
    leaving: dict[int, tuple[Order, float]] = {}

    def leave(order: Order) -> None:
        leaving[order.id] = (order, until())

    def change(request: Request, orders: list[Order]) -> list[Order]:
        present, now = {order.id for order in orders}, time.monotonic()
        late = [order for order, end in list(leaving.values()) if end > now and order.id not in present]
        return orders + late

    amend.when(service, Outcome.CANCELLED, leave)
    amend.listing(service, change)
    service.cannot.add("no orders")


@variant()
def cancels_by_a_queue(service: Service) -> None:
    """Answers 204 at once and removes the order from the listing a tenth of a second later."""
    _lists_for_a_while(service, lambda: time.monotonic() + 0.1)


@variant()
def sweeps_cancelled_orders_out(service: Service) -> None:
    """Answers 204 at once and removes all cancelled orders from the listing together, every half a second."""
    _lists_for_a_while(service, lambda: (time.monotonic() * 2 // 1 + 1) / 2)
