"""A service that answers at random: statuses, header fields, JSON, and what a cancel does are drawn from a seed.

The reference server answers, then any part of its answer may be drawn anew. Which parts, for which requests and how
often is drawn from the seed as well: one service is wrong about everything, the next about shipped orders, rarely. A
draw depends on the request and on how often it came before, not on the time, so a seed repeats itself. What was asked
and what was answered is kept, with what the contract needs to be judged by: the orders that were handed out.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from reference_server.api import Service
from reference_server.messages import Request, Response
from reference_server.orders import Status
from reference_server.running import build

PARTS = ("effect", "status", "body", "type", "fields")
OBJECTS = ("list", "pending", "shipped", "cancelled", "absent", "other")
CALLERS = ("key", "nobody", "stranger")

STATUSES = (200, 200, 204, 204, 400, 401, 401, 403, 404, 404, 409, 409, 410, 422, 302, 500, 503)
TYPES = ("application/json", "application/json; charset=utf-8", "text/html", "text/json", "")
TEXTS = (
    "UNAUTHORIZED",
    "Order not found.",
    "",
    " ",
    "Traceback (most recent call last)",
    "see /var/www/orders.py",
    "ж",
)
VALUES = (
    None,
    True,
    0,
    -7,
    2**63,
    1.5,
    3.0,
    "",
    "1",
    "tomorrow",
    [],
    {},
    "2031-02-03T04:05:06Z",
    "2031-02-03T04:05:06",
)
FIELDS = ("id", "petId", "quantity", "shipDate", "complete")
HEADERS = (
    ("WWW-Authenticate", "Basic realm=orders"),
    ("WWW-Authenticate", 'Digest nonce="Bearer", Bearer'),
    ("Content-Length", "0"),
    ("Deprecation", "true"),
    ("Deprecation", "@1688169599"),
    ("Sunset", "2031-02-03"),
    ("Location", "/v2/store/orders"),
    ("Cache-Control", "no-store"),
)


class Exchange(NamedTuple):
    """What was asked and answered. `order` is the id in a cancel's path, where it is one; what follows is about that
    order when the request came. A spoiled order is one of which it is no longer plain what it is: something was done to
    it that should not have been, or the answer did not tell what was done."""

    request: Request
    path: str
    status: int
    fields: Mapping[str, str]
    body: bytes
    order: int | None
    state: Status | None  # what it was handed out as; None where it is not handed out
    existed: bool  # whether there ever was such an order
    touched: bool  # whether a cancel of it was sent before
    spoiled: bool
    cancelled: bool  # whether cancelling it was answered with 204
    live: frozenset[int]  # all orders that are handed out and not spoiled, and that no cancel was sent for
    empty: bool  # whether the store is empty


class RandomService:
    """The random service of one seed; `service` is what to serve, `exchanges` what came of it."""

    def __init__(self, seed: int, key: str) -> None:
        self.seed = seed
        self.key = key
        self.exchanges: list[Exchange] = []
        self.service: Service = build(key.encode(), orders="5")
        self.rates = rates(random.Random(f"rates {seed}"))
        self._asked: Counter[str] = Counter()
        self._handed: dict[int, Status] = {}
        self._spoiled: set[int] = set()
        self._cancelled: set[int] = set()
        self._touched: set[int] = set()
        self._ever = {order.id for order in self.service.store.all()}
        self._lock = threading.RLock()
        self._correct = self.service.respond
        self.service.respond = self.respond
        self._note_orders()

    def _note_orders(self) -> None:
        store = self.service.store
        self._remove, place, place_ids = store.remove, store.place, store.place_ids

        def noted(ids: list[int], status: Status) -> list[int]:
            for order in ids:
                self._handed[order] = status
                self._ever.add(order)
                self._spoiled.discard(order)
                self._cancelled.discard(order)
                self._touched.discard(order)
            return ids

        def removed(ids: Iterable[int]) -> None:
            with self._lock:
                ids = list(ids)
                for order in ids:
                    self._handed.pop(order, None)
                self._remove(ids)

        def clear() -> None:
            removed([order.id for order in store.all()])

        def placed(count: int, status: Status) -> list[int]:
            with self._lock:
                return noted(place(count, status), status)

        def placed_ids(ids: Iterable[int], status: Status) -> list[int]:
            with self._lock:
                return noted(place_ids(ids, status), status)

        store.place, store.place_ids = placed, placed_ids  # type: ignore[method-assign]
        store.remove, store.clear = removed, clear  # type: ignore[method-assign]

    def respond(self, request: Request) -> Response:
        """The correct answer, parts of it drawn anew, on record. One request at a time, so that the record is true."""
        with self._lock:
            path = request.path.removeprefix(self.service.base)
            order = order_in(path) if request.method == "DELETE" else None
            known = {
                "order": order,
                "state": self._handed.get(order) if order is not None else None,
                "existed": order in self._ever,
                "touched": order in self._touched,
                "spoiled": order in self._spoiled,
                "cancelled": order in self._cancelled,
                "live": frozenset(self._handed) - self._spoiled - self._touched,
                "empty": not len(self.service.store),
            }
            fields = sorted((name, value) for name, value in request.headers.items() if name != "host")
            token = f"{request.method} {request.path}?{request.query} {fields}"
            self._asked[token] += 1
            rng = random.Random(f"{self.seed} {token} {self._asked[token]}")
            if order is not None:
                self._touched.add(order)
            correct = self._correct(request)
            status = correct.status
            response = self._drawn(rng, request, path, correct, known)
            if order is not None and response.status != status:
                self._spoiled.add(order)
            elif order is not None and status == 204:
                self._cancelled.add(order)
            fields = {name.lower(): value for name, value in response.headers.items()}
            self.exchanges.append(Exchange(request, path, response.status, fields, response.body, **known))
            return response

    # --- drawing anew

    def _drawn(
        self, rng: random.Random, request: Request, path: str, response: Response, known: Mapping[str, Any]
    ) -> Response:
        who = caller(request, self.key)
        what = about(request, path, known)

        def strikes(part: str) -> bool:
            return rng.random() < self.rates[part, what, who]

        if strikes("effect"):
            self._do_something(rng, known["order"])
        if strikes("status"):
            response = self.plausible(rng.choice(STATUSES), response)
        if strikes("body") and response.status != 204:
            response.body = a_body(rng, response.status, response.body)
        if strikes("type"):
            response.headers.pop("Content-Type", None)
            if media_type := rng.choice(TYPES):
                response.headers["Content-Type"] = media_type
        if strikes("fields"):
            name, value = rng.choice(HEADERS)
            if name != "Content-Length" or response.status == 204:
                response.headers[name] = value
            if rng.random() < 0.3:
                response.headers.pop("WWW-Authenticate", None)
        return response

    def plausible(self, status: int, response: Response) -> Response:
        """An answer with this status as the reference server would give it, whatever was asked."""
        if status == response.status:
            return response
        if status == 200:
            fields = self.service.order_fields
            return self.service.json(200, [fields(order) for order in self.service.store.all()])
        if status in (204, 302):
            return Response(status)
        return self.service.json(status, {"code": f"E{status}", "message": "No.", "status": status})

    def _do_something(self, rng: random.Random, order: int | None) -> None:
        """Cancel, bring back or change the order that was asked for, or another that was handed out."""
        if order not in self._handed or rng.random() < 0.3:
            order = rng.choice(sorted(self._handed)) if self._handed else None
        if order is None:
            return
        self._spoiled.add(order)
        match rng.randrange(3):
            case 0:
                self._remove([order])
            case 1:
                type(self.service.store).place_ids(self.service.store, [order], rng.choice(list(Status)))
            case 2:
                self.service.store.change(order, quantity=rng.randrange(100))


def rates(rng: random.Random) -> dict[tuple[str, str, str], float]:
    """How often each part of the answer to each kind of request by each kind of caller is drawn anew."""
    cells = [(part, what, who) for part in PARTS for what in OBJECTS for who in CALLERS]
    rate = rng.choice((0.02, 0.1, 0.3, 1.0))
    match rng.randrange(5):
        case 0:
            struck = set(cells)
        case 1:
            struck = {cell for cell in cells if rng.random() < 0.15}
        case 2:
            part = rng.choice(PARTS)
            struck = {cell for cell in cells if cell[0] == part}
        case 3:
            what = rng.choice(OBJECTS)
            struck = {cell for cell in cells if cell[1] == what}
        case _:
            struck = {rng.choice(cells)}
    return {cell: rate if cell in struck else 0.0 for cell in cells}


def caller(request: Request, key: str) -> str:
    """Who asks: somebody with the key where it belongs, somebody without Authorization, or anybody else."""
    given = request.headers.get("authorization")
    return "key" if given == f"Bearer {key}" else "nobody" if given is None else "stranger"


def about(request: Request, path: str, known: Mapping[str, Any]) -> str:
    """What a request is about."""
    if request.method == "GET" and path == "/store/orders":
        return "list"
    if known["order"] is None:
        return "other"
    if known["cancelled"]:
        return "cancelled"
    return {Status.PENDING: "pending", Status.SHIPPED: "shipped", None: "absent"}[known["state"]]


def order_in(path: str) -> int | None:
    """The id in the path of a cancel, if it is one that int64 holds, plainly written."""
    found = re.fullmatch(r"/store/orders/(0|-?[1-9][0-9]{0,18})", path)
    number = int(found[1]) if found else 2**63
    return number if -(2**63) <= number < 2**63 else None


# --- bodies, right and wrong


def a_body(rng: random.Random, status: int, right: bytes) -> bytes:
    """Another body for an answer with this status: mostly one that looks like what belongs there."""
    if rng.random() < 0.1:
        return rng.choice((b"", b"null", b"[]", b"{}", b"[1]", b"<html>", b'{"code"', b"[NaN]", b"\xff", right + b"]"))
    if status == 200:
        return _text(_a_listing(rng, json.loads(right) if right[:1] == b"[" else []))
    return _text(_an_error(rng, status))


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _a_listing(rng: random.Random, orders: list[Any]) -> object:
    if not orders:
        return [{"id": 1}]
    place = rng.randrange(len(orders))
    match rng.randrange(7):
        case 0:
            del orders[place]
        case 1:
            orders.append(orders[place])
        case 2:
            orders[place] = rng.choice(VALUES)
        case 3:
            return {"orders": orders}
        case 4:
            return orders[: rng.choice((0, 20, 100))]
        case 5:
            orders[place][rng.choice(FIELDS)] = rng.choice(VALUES)
        case 6:
            orders[place].pop(rng.choice(FIELDS))
    return orders


def _an_error(rng: random.Random, status: int) -> object:
    error: dict[str, object] = {"code": rng.choice(TEXTS), "message": rng.choice(TEXTS), "status": status}
    match rng.randrange(5):
        case 0:
            error["status"] = rng.choice((200, 400, 401, 404, 409, 500))
        case 1:
            error[rng.choice(list(error))] = rng.choice(VALUES)
        case 2:
            del error[rng.choice(list(error))]
        case 3:
            return rng.choice(([error], {"error": error}, "Not found", None))
    return error
