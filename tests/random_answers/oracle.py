"""What the contract says of one exchange, in plain words: which requirements the answer does not meet.

Written from the specification alone and sharing nothing with the suite, so that the two can be held against each other.
It says less than the suite does: only what one answer shows for certain, of a request that leaves no doubt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from random_service import Exchange

from reference_server.orders import Status

#: One answer can break one of several requirements, and nothing in it tells which: then one of them must not pass.
Breach = tuple[str, ...]

LISTED = {"GET": (200, 401), "DELETE": (204, 401, 404, 409)}
#: Answers of a gateway, which prove neither way.
NEITHER = (502, 503, 504)
USUAL = ("host", "user-agent", "accept", "accept-encoding", "accept-language", "connection", "authorization")
TOKEN = r"[A-Za-z0-9._~+/-]+=*"
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")


def breaches(exchange: Exchange, key: str) -> Iterator[Breach]:
    """The requirements that the answer of `exchange` does not meet."""
    yield from _lifecycle(exchange)
    if exchange.request.method == "GET" and exchange.path.startswith("/pets/"):
        if 200 <= exchange.status < 300 and not _has_key(exchange, key):
            yield ("PET-1",)
        return
    operation = (exchange.request.method, exchange.path == "/store/orders")
    if operation not in (("GET", True), ("DELETE", False)) or exchange.status in NEITHER:
        return
    if exchange.status >= 400 and re.search(rb"Traceback \(most recent|/var/www/", exchange.body):
        yield ("ERR-4",)
    if exchange.status == 204 and exchange.request.method == "DELETE" and "content-length" in exchange.fields:
        yield ("CANCEL-12",)
    if operation == ("GET", True) and exchange.request.query and _has_key(exchange, key):
        yield from _orders(exchange, "LIST-6")
    if operation[0] == "DELETE" and exchange.order is None:
        return
    yield from _credentials(exchange, key)
    if exchange.request.query or _unclear(exchange, key):
        return
    yield from _statuses(exchange)
    yield from _errors(exchange)
    if _has_key(exchange, key):
        yield from _listing(exchange) if operation[0] == "GET" else _cancel(exchange)


# --- who asks (section 5)


def _authorization(exchange: Exchange) -> str | None:
    return exchange.request.headers.get("authorization")


def _has_key(exchange: Exchange, key: str) -> bool:
    return _authorization(exchange) == f"Bearer {key}"


def _unclear(exchange: Exchange, key: str) -> bool:
    """Whether more may be wrong about the request than who asks: credentials that begin like a bearer token and are
    none, fields that no server need take or that say something else than the key, and more of them than is short."""
    given = _authorization(exchange) or ""
    if given and not re.fullmatch(f"(Bearer|(?!bear)[A-Za-z-]+) {TOKEN}", given, re.IGNORECASE):
        return True
    further = _further(exchange)
    if any(key not in value or "_" in name or (name == "cookie" and " " in value) for name, value in further.items()):
        return True
    return sum(map(len, (given, *further.values()))) > 2 * len(key) + 6


def _further(exchange: Exchange) -> dict[str, str]:
    """The header fields that not every client sends."""
    return {name: value for name, value in exchange.request.headers.items() if name not in USUAL}


def _credentials(exchange: Exchange, key: str) -> Iterator[Breach]:
    given, status = _authorization(exchange), exchange.status
    elsewhere = [exchange.request.query, *exchange.request.headers.values()]
    if _has_key(exchange, key):
        if status == 401 and not (exchange.request.query or exchange.cancelled or exchange.spoiled):
            yield ("AUTH-1", "AUTH-6")
    elif status == 401 or (status not in LISTED[exchange.request.method]):
        return
    elif given is None and not any(key in value for value in elsewhere):
        if status < 300 or not _further(exchange):
            yield ("AUTH-2",)
    elif given is not None and re.fullmatch(f"Bearer {TOKEN}", given):
        yield ("AUTH-3",)
    elif given is None or not re.fullmatch(f"bearer {TOKEN}", given.lower()):
        yield ("AUTH-4",)


# --- statuses and bodies, whoever asks (sections 2, 4, 7)


def _statuses(exchange: Exchange) -> Iterator[Breach]:
    unsure = exchange.cancelled or exchange.spoiled
    if exchange.status not in LISTED[exchange.request.method] and not (unsure and 400 <= exchange.status < 500):
        yield ("HTTP-1",)


def _json(exchange: Exchange) -> Any:
    """The body as JSON, sent as such; ValueError where it is not."""
    if exchange.fields.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ValueError("media type")

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(exchange.body.decode(), parse_constant=refuse)


def _errors(exchange: Exchange) -> Iterator[Breach]:
    if exchange.status == 401 and not re.search("(^|, )Bearer", exchange.fields.get("www-authenticate", "")):
        yield ("AUTH-7",)
    if exchange.status == 409 and exchange.body:
        try:
            _json(exchange)
        except ValueError:
            yield ("ERR-5",)
    if exchange.status not in (401, 404):
        return
    try:
        error = _json(exchange)
    except ValueError:
        yield ("ERR-1",)
        return
    if not isinstance(error, dict) or any(type(error.get(name)) is not str for name in ("code", "message")):
        yield ("ERR-1",)
        return
    number = error.get("status")
    if isinstance(number, bool) or not isinstance(number, int | float) or number != int(number):
        yield ("ERR-1",)
        return
    if number != exchange.status:
        yield ("ERR-2",)
    if not error["code"].strip() or not error["message"].strip():
        yield ("ERR-3",)


def _lifecycle(exchange: Exchange) -> Iterator[Breach]:
    if exchange.fields.get("deprecation") == "true" or exchange.fields.get("sunset") == "2031-02-03":
        yield ("PET-2",)


# --- the listing (sections 2 and 4.1)


def _listing(exchange: Exchange) -> Iterator[Breach]:
    if exchange.status != 200:
        return
    try:
        orders = _json(exchange)
    except ValueError:
        orders = None
    if exchange.empty:
        if orders != []:
            yield ("LIST-7", "LIST-1")
        return
    if not isinstance(orders, list):
        yield ("LIST-1",)
        return
    wrong = [order for order in orders if not _is_order(order)]
    if wrong:
        yield ("LIST-2",)
    ids = [order["id"] for order in orders if isinstance(order, dict) and type(order.get("id")) is int]
    if len(set(ids)) < len(ids):
        yield ("LIST-4",)
    yield from _orders(exchange, "LIST-3")
    for order in orders:
        if isinstance(order, dict) and not wrong:
            if not str(order.get("shipDate", "Z")).endswith("Z") and not re.search(
                r"[+-]\d\d:\d\d$", order["shipDate"]
            ):
                yield ("LIST-10",)
            if any(isinstance(order.get(name), float) for name in ("id", "petId", "quantity")):
                yield ("LIST-11",)


def _is_order(order: Any) -> bool:
    if not isinstance(order, dict):
        return False
    for name in ("id", "petId", "quantity"):
        value = order.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            return False
        if name != "quantity" and not -(2**63) <= value < 2**63:
            return False
    date = order.get("shipDate", "2031-02-03T04:05:06Z")
    return isinstance(date, str) and bool(DATE_TIME.fullmatch(date)) and isinstance(order.get("complete", True), bool)


def _orders(exchange: Exchange, requirement: str) -> Iterator[Breach]:
    """All orders that were handed out and not cancelled are in the listing."""
    if exchange.status != 200:
        return
    try:
        orders = _json(exchange)
    except ValueError:
        return
    if not isinstance(orders, list):
        return
    ids = {order["id"] for order in orders if isinstance(order, dict) and type(order.get("id")) is int}
    without_id = len(orders) - len(ids)
    lacking = exchange.live - ids
    if len(lacking) > without_id:
        yield ("LIST-3", "LIST-5", "LIST-8") if len(exchange.live) > 1000 else ("LIST-3", "LIST-8", requirement)


# --- cancelling (sections 3 and 4.2)


def _cancel(exchange: Exchange) -> Iterator[Breach]:
    status = exchange.status
    if exchange.spoiled or status == 401 or status not in LISTED["DELETE"]:
        return
    if exchange.cancelled:
        if status == 204:
            yield ("CANCEL-6", "CANCEL-7")
    elif exchange.order == 0:  # ids that are no numbers are sent before, and some services take them for this one
        return
    elif exchange.state is Status.PENDING and status != 204:
        yield ("CANCEL-1", "AUTH-5") if exchange.touched else ("CANCEL-1",)
    elif exchange.state is Status.SHIPPED and status != 409:
        yield ("CANCEL-3", "CANCEL-4", "AUTH-5") if exchange.touched else ("CANCEL-3",)
    elif not exchange.existed and status != 404:
        yield ("CANCEL-5",)
