"""The service: from a request to its response, without sockets (specification, sections 4, 5 and 7).

`Service` is a set of parts, each an ordinary attribute that holds a function. The correct function of every
part is a method of the class. Whoever wants the service different - a fault, a variant - puts another
function into one attribute, usually around the one that was there; nothing in this module knows about that.
"""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from hmac import compare_digest
from typing import NamedTuple
from urllib.parse import unquote

from .messages import Request, Response
from .orders import INT64_MAX, INT64_MIN, Order, OrderStore, Outcome
from .wire import render

JsonObject = dict[str, object]

ORDERS = "/store/orders"
JOURNAL_LENGTH = 10_000

_ID = re.compile(r"0|-?[1-9][0-9]*")
_LONGEST_ID = len(str(INT64_MIN))

CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    413: "CONTENT_TOO_LARGE",
    414: "URI_TOO_LONG",
    417: "EXPECTATION_FAILED",
    431: "REQUEST_HEADER_FIELDS_TOO_LARGE",
    500: "INTERNAL_SERVER_ERROR",
    501: "NOT_IMPLEMENTED",
    505: "HTTP_VERSION_NOT_SUPPORTED",
}


class Credentials(Enum):
    """What a request's `Authorization` header is worth (section 5)."""

    VALID = "valid"
    MISSING = "missing"
    INVALID = "invalid"


class Entry(NamedTuple):
    """One line of the journal: what was received, whether it truly carried the key, what was answered."""

    method: str
    path: str
    authorized: bool
    order_id: int | None
    status: int


class Service:
    """The Store Orders Service over one store, for one API key."""

    def __init__(self, store: OrderStore, key: bytes, base: str = "/v1") -> None:
        """Takes the orders, the API key as sent in a header, and the path that all others are relative to."""
        self.store = store
        self.key = key
        self.base = base
        self.collection = base + ORDERS
        self.journal: deque[Entry] = deque(maxlen=JOURNAL_LENGTH)
        self.verbose = False
        self.cannot: set[str] = set()
        """What state control must not offer: the names of states, or "ids" for chosen ones."""

        # The parts, from the outside in.
        self.write: Callable[[Request, Response], bytes] = render
        self.respond: Callable[[Request], Response] = self.authenticate_then_dispatch
        self.authenticate: Callable[[Request], Credentials] = self.bearer_credentials
        self.same_key: Callable[[bytes], bool] = self.equals_key
        self.refuse: Callable[[Request, Credentials], Response] = self.unauthorized
        self.dispatch: Callable[[Request], Response] = self.route
        self.list_orders: Callable[[Request], Response] = self.answer_listing
        self.listed: Callable[[Request], Iterable[Order]] = self.all_orders
        self.write_listing: Callable[[list[Order]], bytes] = remembering_the_last(self.listing_json)
        self.order_fields: Callable[[Order], JsonObject] = order_fields
        self.cancel_order: Callable[[Request, str], Response] = self.answer_cancel
        self.read_id: Callable[[str], int | None] = read_id
        self.cancel: Callable[[int], Outcome] = store.cancel
        self.error_fields: Callable[[int, str], JsonObject] = error_fields
        self.encode: Callable[[object], bytes] = encode

    def answer(self, request: Request) -> Response:
        """Answers any request, and notes it in the journal. What goes wrong inside is a 500 with an Error."""
        try:
            response = self.respond(request)
        except Exception as problem:
            print(f"internal error: {type(problem).__name__}", file=sys.stderr)
            if self.verbose:
                sys.excepthook(type(problem), problem, problem.__traceback__)
            response = self.error(500, "Something went wrong in the service.")
        order_id = read_id(request.path.partition(ORDERS + "/")[2])
        genuine = self.equals_key(self.bearer_token(request) or b"")
        self.journal.append(Entry(request.method, request.path, genuine, order_id, response.status))
        if self.verbose:
            print(f"{request.method} {request.path} {response.status}", file=sys.stderr)
        return response

    def reject(self, status: int, message: str) -> Response:
        """The answer to bytes that are no request to this service; the connection ends with it."""
        response = self.error(status, message)
        response.close = True
        return response

    # --- authentication (section 5) ---

    def authenticate_then_dispatch(self, request: Request) -> Response:
        """Every operation needs the key, so nothing else is looked at before it (sections 4 and 5)."""
        credentials = self.authenticate(request)
        if credentials is not Credentials.VALID:
            return self.refuse(request, credentials)
        return self.dispatch(request)

    def bearer_credentials(self, request: Request) -> Credentials:
        """Takes a request, gives what its bearer token is worth (section 5)."""
        token = self.bearer_token(request)
        if token is None:
            return Credentials.MISSING
        return Credentials.VALID if self.same_key(token) else Credentials.INVALID

    def bearer_token(self, request: Request) -> bytes | None:
        """The token of `Authorization: Bearer <token>`, `None` without that scheme, which is in any case."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return token.strip(" ").encode("latin-1") if scheme.lower() == "bearer" else None

    def equals_key(self, given: bytes) -> bool:
        """Whether these bytes are the API key, in a time that does not tell how much is right (section 5)."""
        return compare_digest(given, self.key)

    def unauthorized(self, request: Request, credentials: Credentials) -> Response:
        """401 with an Error, the same whatever was asked for (section 5), and the challenge of RFC 6750."""
        response = self.error(401, "The API key is missing or invalid.")
        detail = ', error="invalid_token"' if credentials is Credentials.INVALID else ""
        response.headers["WWW-Authenticate"] = f'Bearer realm="store-orders"{detail}'
        return response

    # --- routing (section 4) ---

    def route(self, request: Request) -> Response:
        """Takes an authenticated request, gives the answer of the operation it names (section 4).

        What the specification does not show: another path is 404, another method 405, and HEAD is GET without
        its body.
        """
        path = request.path
        if "%" in path:  # an encoded slash separates nothing, so it stays encoded
            path = unquote(path.replace("%2F", "%252F").replace("%2f", "%252F"), "latin-1")
        if path == self.collection:
            if request.method in ("GET", "HEAD"):
                return self.list_orders(request)
            return self.other_method(request, "GET, HEAD, OPTIONS")
        order_id = path.removeprefix(self.collection + "/")
        if order_id not in ("", path) and "/" not in order_id:
            if request.method == "DELETE":
                return self.cancel_order(request, order_id)
            return self.other_method(request, "DELETE, OPTIONS")
        return self.error(404, "There is no such resource.")

    def other_method(self, request: Request, allowed: str) -> Response:
        """OPTIONS is answered with what is allowed, any other method with 405 and the same."""
        if request.method == "OPTIONS":
            return Response(204, headers={"Allow": allowed})
        response = self.error(405, "This resource does not support this method.")
        response.headers["Allow"] = allowed
        return response

    # --- the operations (sections 4.1 and 4.2) ---

    def answer_listing(self, request: Request) -> Response:
        """listOrders: 200 with the array of all orders; no parameter is looked at (section 4.1)."""
        return _json(200, self.write_listing(list(self.listed(request))))

    def listing_json(self, orders: list[Order]) -> bytes:
        """The listing of these orders as JSON text."""
        return self.encode(list(map(self.order_fields, orders)))

    def all_orders(self, request: Request) -> Iterable[Order]:
        """The orders that the listing holds: all of them (sections 4.1 and 8)."""
        return self.store.all()

    def answer_cancel(self, request: Request, text: str) -> Response:
        """cancelOrder: takes the id as in the path; 204, 404 or 409 (section 4.2), 400 if it is no id."""
        order_id = self.read_id(text)
        if order_id is None:
            return self.error(400, "The order id must be a whole number.")
        outcome = self.cancel(order_id)
        if outcome is Outcome.CANCELLED:
            return Response(204)
        if outcome is Outcome.REFUSED:
            return self.error(409, "The order has already shipped, so it cannot be cancelled.")
        return self.error(404, "There is no such order.")

    # --- bodies (section 2) ---

    def error(self, status: int, message: str) -> Response:
        """A response whose body is an Error (sections 2 and 7)."""
        return self.json(status, self.error_fields(status, message))

    def json(self, status: int, value: object) -> Response:
        """A response with this value as its JSON body (section 1)."""
        return _json(status, self.encode(value))


def remembering_the_last(write: Callable[[list[Order]], bytes]) -> Callable[[list[Order]], bytes]:
    """`write`, called only where the orders differ from those of the call before: most listings repeat the last."""
    last: tuple[list[Order], bytes] | None = None

    def written(orders: list[Order]) -> bytes:
        nonlocal last
        known = last
        if known is None or known[0] != orders:
            last = known = (orders, write(orders))
        return known[1]

    return written


def _json(status: int, body: bytes) -> Response:
    return Response(status, body, {"Content-Type": "application/json"})


def read_id(text: str) -> int | None:
    """Takes the id as it stands in the path, gives the integer, or `None` if it is malformed (section 4.2).

    Exactly one spelling per integer: no plus sign, no leading zeros. An integer outside int64 is well-formed,
    and no order has it.
    """
    if not _ID.fullmatch(text):
        return None
    return int(text) if len(text) <= _LONGEST_ID else INT64_MAX + 1


def order_fields(order: Order) -> JsonObject:
    """Takes an order, gives its JSON object (Order, section 2)."""
    return {
        "id": order.id,
        "petId": order.pet_id,
        "quantity": order.quantity,
        "shipDate": order.ship_date,
        "complete": order.complete,
    }


def error_fields(status: int, message: str) -> JsonObject:
    """Takes the HTTP status and a text for people, gives the JSON object (Error, section 2)."""
    return {"code": CODES[status], "message": message, "status": status}


def encode(value: object) -> bytes:
    """Takes a value, gives it as one JSON text in UTF-8 (section 1)."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
