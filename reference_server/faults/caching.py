"""Faults of what is kept from one answer for the next: buffers, listings, and the entity tags and dates that tell
whether those are the same (RFC 9110 section 8.8)."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import Order, Outcome
from ..registry import fault

#: Orders from which on writing a listing takes long enough for two of them to meet.
LONG = 500
#: When the service was deployed, in seconds since the epoch.
DEPLOYED = 1_759_734_000


@fault("LIST-1")
def writes_long_listings_into_one_buffer(service: Service) -> None:
    """Writes listings into one buffer that all requests share: long ones that are asked for at once get mixed up."""
    lock, writing, mixed = Lock(), [0], [False]
    inner = service.list_orders

    def list_orders(request: Request) -> Response:
        response = inner(request)
        if len(service.store.all()) < LONG:
            return response
        with lock:
            writing[0] += 1
            mixed[0] = writing[0] > 1
        time.sleep(0.02)
        with lock:
            writing[0] -= 1
            if mixed[0]:
                response.body = response.body[: len(response.body) // 2]
        return response

    service.list_orders = list_orders


def _this_minute(orders: list[Order]) -> int:
    """A number that is another one each minute."""
    return int(time.monotonic() // 60)


def _kept(
    service: Service, which: Callable[[Request], bool], mark: Callable[[list[Order]], object] = _this_minute
) -> None:
    """Keeps the listing, for requests of which this is true, for as long as the mark of the orders is the same."""
    kept: dict[object, list[Order]] = {}
    amend.listing(service, lambda request, orders: kept.setdefault(mark(orders), orders) if which(request) else orders)


@fault("LIST-3")
def tags_listings_by_their_length(service: Service) -> None:
    """Makes the entity tag of the number of orders: who has a listing keeps it when one came for one that went."""
    amend.tagged(service, lambda response: f'"{len(service.store.all())}"')


@fault("LIST-3")
def tags_every_listing_alike(service: Service) -> None:
    """Gives the listing an entity tag that never changes, and answers 304 to whoever has it."""
    amend.tagged(service, lambda response: '"orders"')


@fault("LIST-3")
def tags_listings_by_their_cancels(service: Service) -> None:
    """Makes the entity tag of the number of cancels: who has a listing keeps it when an order was placed."""
    cancelled: list[Order] = []
    amend.when(service, Outcome.CANCELLED, cancelled.append)
    amend.tagged(service, lambda response: f'"{len(cancelled)}"')


@fault("LIST-3")
def dates_every_listing_alike(service: Service) -> None:
    """Says that the listing was modified when the service was deployed, and answers 304 to whoever has one of then."""
    amend.dated(service, lambda response: DEPLOYED)


@fault("LIST-3")
def lists_as_before_while_there_are_as_many(service: Service) -> None:
    """Keeps a listing for as long as there are as many orders."""
    _kept(service, lambda request: True, len)


def _number_and_largest(orders: list[Order]) -> object:
    """How many orders there are, and the largest id in 31 bits."""
    return len(orders), max((order.id for order in orders if order.id < 2**31), default=0)


@fault("LIST-3")
def lists_as_before_while_as_many_have_the_same_largest_id(service: Service) -> None:
    """Keeps a listing for as long as there are as many orders with the same largest id."""
    _kept(service, lambda request: True, _number_and_largest)


@fault("LIST-3")
def tags_listings_by_their_number_and_largest_id(service: Service) -> None:
    """Makes the entity tag of the number of orders and of their largest id."""
    amend.tagged(service, lambda response: f'"{_number_and_largest(service.store.all())}"')


@fault("LIST-3")
def lists_as_before_to_browsers(service: Service) -> None:
    """Keeps a listing for a minute for clients that accept HTML."""
    _kept(service, lambda request: "text/html" in request.headers.get("accept", ""))


@fault("LIST-3")
def lists_as_before_to_clients_that_take_nothing_compressed(service: Service) -> None:
    """Keeps a listing for a minute for clients that send no Accept-Encoding, or `identity`, and no query."""
    _kept(
        service, lambda request: request.headers.get("accept-encoding", "identity") == "identity" and not request.query
    )


@fault("LIST-3")
def keeps_a_listing_that_was_read_before_an_order_was_placed(service: Service) -> None:
    """Keeps a listing until anything changes, and takes what changes while it reads one for part of that."""
    kept: list[tuple[list[Order], list[Order]]] = []
    inner = service.listed

    def listed(request: Request) -> list[Order]:
        if not kept or kept[0][0] != service.store.all():
            orders = list(inner(request))
            time.sleep(0.02)
            kept[:] = [(service.store.all(), orders)]
        return kept[0][1]

    service.listed = listed


@fault("LIST-3")
def joins_listings_of_the_same_key(service: Service) -> None:
    """Gives a listing that is asked for while another one is being written out for the same key what that one reads."""
    lock = Lock()
    under_way: dict[str, Future[list[Order]]] = {}
    inner = service.listed

    def listed(request: Request) -> list[Order]:
        key = amend.authorization(request)
        with lock:
            first = key not in under_way
            joined = under_way.setdefault(key, Future())
        if first:
            joined.set_result(list(inner(request)))
            time.sleep(0.06)
            with lock:
                del under_way[key]
        return joined.result()

    service.listed = listed


@fault("HTTP-1")
def fails_where_nothing_has_changed(service: Service) -> None:
    """Gives the listing an entity tag, and answers 500 to whoever has the same one already."""
    amend.tagged(service, lambda response: f'"{hash(tuple(service.store.all()))}"', 500)


@fault("HTTP-1")
def sees_other_where_nothing_has_changed(service: Service) -> None:
    """Gives the listing a date, and answers 303 to whoever has one of the same date."""
    amend.dated(service, lambda response: DEPLOYED, 303)


@fault("AUTH-3")
def keeps_409_for_any_bearer_token(service: Service) -> None:
    """Keeps a 409 for a minute by the path, in front of what looks whether a bearer token is the key."""
    kept: dict[str, tuple[float, Response]] = {}
    inner = service.respond

    def respond(request: Request) -> Response:
        if not amend.is_cancel(request) or not request.headers.get("authorization", "").startswith("Bearer "):
            return inner(request)
        since, response = kept.get(request.path, (0.0, None))
        if response is None or time.monotonic() > since + 60:
            response = inner(request)
        if response.status == 409:
            kept[request.path] = (time.monotonic(), response)
        return response

    service.respond = respond


@fault("LIST-6")
def keeps_listings_by_their_query(service: Service) -> None:
    """Keeps a listing that was asked for with a query, and answers the same query with it."""
    kept: dict[str, list[Order]] = {}
    amend.listing(service, lambda request, orders: kept.setdefault(request.query, orders) if request.query else orders)
