"""Faults of what is kept from one answer for the next: buffers, and entity tags (RFC 9110 section 8.8.3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from .. import amend
from ..api import Service
from ..messages import Request, Response
from .registry import fault

#: Orders from which on writing a listing takes long enough for two of them to meet.
LONG = 500


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


def _tagged(service: Service, tag: Callable[[], str]) -> None:
    """Sends listings with this entity tag, and 304 to who has it already."""

    def change(request: Request, response: Response) -> Response | None:
        if not amend.is_listing(request, response):
            return None
        if request.headers.get("if-none-match") == tag():
            return Response(304, headers={"ETag": tag()})
        response.headers["ETag"] = tag()
        return None

    amend.granted(service, change)


@fault("LIST-3")
def tags_listings_by_their_length(service: Service) -> None:
    """Makes the entity tag of the number of orders: who has a listing keeps it when one came for one that went."""
    _tagged(service, lambda: f'"{len(service.store.all())}"')


@fault("LIST-3")
def tags_every_listing_alike(service: Service) -> None:
    """Gives the listing an entity tag that never changes, and answers 304 to whoever has it."""
    _tagged(service, lambda: '"orders"')
