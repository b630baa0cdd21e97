"""A Store Orders Service on FastAPI and uvicorn, written from the specification alone.

Usage: STORE_KEY=... python fastapi_vendor.py '{"again": 409, "fault": "race"}'; prints {"port", "states_port"} when it
listens. Every setting decides something that the specification leaves open; `fault` breaks one thing that it does not.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

KEY = os.environ["STORE_KEY"]
INT64 = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Form:
    """The decisions of this vendor."""

    base: str = ""
    again: int = 404
    cancelled: str = "gone"  # or "listed", "marked"
    conflict: str = "error"  # or "none", "html", "detail"
    malformed: int = 422
    loose_ids: bool = False  # pydantic's own reading: " 7", "+7" and "7.0" are 7
    odd_orders: bool = False
    ids: str = "sequential"  # or "spread"
    noise: float = 0.0  # seconds between two acts of other clients
    crowd: int = 6
    exact_ids: bool = True
    empties: bool = True
    pets: bool = False
    fault: str = ""


FORM = Form(**json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))


def fault(*names: str) -> bool:
    return FORM.fault in names


class Status(StrEnum):
    PENDING = "pending"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"


@dataclass
class Record:
    id: int
    status: Status
    suite: bool = False
    pet: int = field(default_factory=lambda: random.randint(1, 4))
    quantity: int = field(default_factory=lambda: random.randint(1, 9))
    ships: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(days=random.randint(-9, 9)))

    def as_json(self) -> dict[str, Any]:
        order: dict[str, Any] = {
            "id": self.id,
            "petId": self.pet,
            "quantity": self.quantity,
            "shipDate": self.ships.isoformat(),
            "complete": self.status is Status.SHIPPED,
        }
        if FORM.cancelled == "marked":
            order["status"] = self.status
        if fault("optional-as-null") and self.status is Status.PENDING:
            order["shipDate"] = None
        if fault("naive-date"):
            order["shipDate"] = self.ships.replace(tzinfo=None).isoformat()
        if fault("date-only"):
            order["shipDate"] = self.ships.date().isoformat()
        if fault("ids-as-text"):
            order["id"] = str(self.id)
        if fault("large-ids-as-text") and abs(self.id) > 2**53:
            order["id"] = str(self.id)
        if fault("decimal-quantity"):
            order["quantity"] = float(self.quantity)
        if fault("infinite-quantity"):
            order["quantity"] = float("nan")
        return order


class Store:
    """Every order, under the lock that makes a cancel one step."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.lock = asyncio.Lock()
        self.last = 100

    def place(self, status: Status, order_id: int | None = None, *, suite: bool = False) -> Record:
        if order_id is None:
            self.last += 1
            order_id = self.last if FORM.ids == "sequential" else random.randint(*INT64)
        self.records[order_id] = record = Record(order_id, status, suite)
        return record

    async def live(self) -> None:
        """Other clients at work on orders of their own."""
        while True:
            await asyncio.sleep(FORM.noise)
            theirs = [record for record in self.records.values() if not record.suite]
            act = random.random()
            if act < 0.4 or not theirs:
                self.place(Status.PENDING)
            elif act < 0.6:
                random.choice(theirs).status = Status.SHIPPED
            else:
                del self.records[random.choice(theirs).id]


store = Store()


class Problem(StarletteHTTPException):
    """An answer with an Error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        challenge = {"WWW-Authenticate": "Bearer"} if status == 401 and not fault("no-challenge") else None
        super().__init__(status, message, challenge)
        self.code = code


def error(status: int, code: str, message: str, headers: Any = None) -> Response:
    body: dict[str, Any] = {"code": code, "message": message, "status": status}
    if fault("framework-errors"):
        body = {"detail": message}
    if fault("framework-404") and status == 404:
        body = {"detail": "Not Found"}
    if fault("error-status-name"):
        body["status"] = "error"
    if fault("error-status-constant"):
        body["status"] = 400
    return JSONResponse(body, status, headers)


# ---------------------------------------------------------------- authentication
def accepted(token: str) -> bool:
    if fault("key-stripped-of-punctuation"):
        return token.replace("-", "").lower() == KEY.replace("-", "").lower()
    if fault("key-72-bytes"):  # what bcrypt does with a long key
        return token[:72] == KEY[:72]
    if fault("key-compared-with-zip"):
        return all(a == b for a, b in zip(token, KEY, strict=False))
    if fault("key-sorted"):
        return sorted(token) == sorted(KEY)
    if fault("key-compared-as-text"):  # raises TypeError where there is more than ASCII in it
        return secrets.compare_digest(token, KEY)
    return secrets.compare_digest(token.encode(), KEY.encode())


trusted: set[tuple[str, int]] = set()


async def authenticated(request: Request) -> None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    client = request.client
    assert client is not None
    if fault("trusts-the-connection") and (client.host, client.port) in trusted:
        return
    if fault("forgets-delete") and request.method == "DELETE":
        return
    if fault("key-in-query") and request.query_params.get("access_token") == KEY:
        return
    if kind.lower() != "bearer" or not accepted(token.strip()):
        raise Problem(403 if fault("forbidden") else 401, "unauthorized", "A valid API key is needed.")
    trusted.add((client.host, client.port))


# ---------------------------------------------------------------- the service
@asynccontextmanager
async def life(_: FastAPI) -> AsyncIterator[None]:
    for number in range(FORM.crowd):
        store.place(Status.SHIPPED if number % 3 == 0 else Status.PENDING)
    noise = asyncio.create_task(store.live()) if FORM.noise else None
    yield
    if noise:
        noise.cancel()


app = FastAPI(lifespan=life, openapi_url=None, redirect_slashes=False)
PREFIX = FORM.base + "/v1"
OrderId = Annotated[int | str, Path()] if not FORM.loose_ids else Annotated[int, Path()]


@app.exception_handler(StarletteHTTPException)
async def on_problem(_: Request, problem: StarletteHTTPException) -> Response:
    return error(problem.status_code, getattr(problem, "code", "http_error"), str(problem.detail), problem.headers)


@app.exception_handler(RequestValidationError)
async def on_malformed(request: Request, problem: RequestValidationError) -> Response:
    # Dependencies and parameters are judged together: without a key, the key comes first.
    try:
        await authenticated(request)
    except Problem as refusal:
        if not fault("422-before-401"):
            return await on_problem(request, refusal)
    return error(FORM.malformed, "malformed", "orderId is not an int64.")


@app.get(PREFIX + "/store/orders", dependencies=[Depends(authenticated)])
async def list_orders(request: Request, skip: int = 0, limit: int = 100) -> Response:
    everyone = store.records.values()
    shown = [one for one in everyone if one.status is not Status.CANCELLED or FORM.cancelled != "gone"]
    if fault("skip-and-limit"):
        shown = shown[skip : skip + limit]
    if fault("limit-parameter") and "limit" in request.query_params:
        shown = shown[:limit]
    if fault("newest-first-20"):
        shown = shown[::-1][:20]
    if fault("only-open"):
        shown = [record for record in shown if record.status is Status.PENDING]
    if fault("reading-ships"):
        for record in store.records.values():
            record.status = Status.SHIPPED if record.suite and record.status is Status.PENDING else record.status
    body: Any = [record.as_json() for record in shown]
    if FORM.odd_orders and not (FORM.empties and not body):
        body += [{}, {"complete": True}, {"petId": -(2**63), "colour": None}]
    if fault("envelope"):
        body = {"items": body, "total": len(body)}
    if fault("no-content-when-empty") and not body:
        return Response(status_code=204)
    text = json.dumps(body, ensure_ascii=False)
    return Response(text, media_type="text/plain" if fault("list-as-text") else "application/json")


async def cancel(order_id: int) -> Response:
    record = store.records.get(order_id)
    if fault("cuts-to-32-bits"):
        record = record or next((one for one in store.records.values() if (one.id - order_id) % 2**32 == 0), None)
    if record is None:
        if fault("absent-is-fine"):
            return Response(status_code=204)
        raise Problem(404, "order_not_found", f"There is no order {order_id}.")
    if record.status is Status.CANCELLED:
        if fault("cancels-again"):
            return Response(status_code=204)
        raise Problem(FORM.again, "already_cancelled", "The order was cancelled before.")
    if record.status is Status.SHIPPED:
        return shipped(record)
    if fault("race"):
        await asyncio.sleep(0.02)  # the database
    if fault("forgets-to-commit"):
        return Response(status_code=204)
    if fault("takes-the-pet-along"):
        for other in store.records.values():
            if other.suite and other.pet == record.pet and other.status is Status.PENDING:
                other.status = Status.CANCELLED
    if fault("touches-every-row"):
        for other in store.records.values():
            other.ships += timedelta(seconds=1)
    record.status = Status.CANCELLED
    if fault("200-with-order"):
        return JSONResponse(record.as_json())
    return Response(status_code=204)


def shipped(record: Record) -> Response:
    if fault("reverses-shipped"):
        record.status = Status.CANCELLED
        return Response(status_code=204)
    if fault("refuses-and-cancels"):
        record.status = Status.CANCELLED
    if fault("shipped-is-422"):
        raise Problem(422, "already_shipped", "The order has shipped.")
    if FORM.conflict == "none":
        return Response(status_code=409)
    if FORM.conflict == "html":
        return HTMLResponse("<p>shipped</p>", 409)
    if FORM.conflict == "detail":
        return JSONResponse({"detail": "shipped"}, 409)
    raise Problem(409, "already_shipped", "The order has shipped.")


@app.delete(PREFIX + "/store/orders/{order_id}", dependencies=[Depends(authenticated)])
async def cancel_order(order_id: OrderId, request: Request) -> Response:  # type: ignore[valid-type]
    text = request.path_params["order_id"]
    digits = text.removeprefix("-")
    if not FORM.loose_ids and not (digits.isascii() and digits.isdecimal()):
        raise Problem(FORM.malformed, "malformed", "orderId is not an int64.")
    number = int(order_id)
    if fault("overflow") and not INT64[0] < number < 2**62:
        return Response("Internal Server Error", 500, media_type="text/plain")
    if fault("positive-only") and number < 1:
        raise Problem(422, "malformed", "orderId should be greater than 0.")
    if fault("race"):
        return await cancel(number)
    async with store.lock:
        return await cancel(number)


if FORM.pets or fault("open-pets"):

    @app.get(PREFIX + "/pets/{pet_id}", dependencies=[] if fault("open-pets") else [Depends(authenticated)])
    async def pet(pet_id: int) -> Response:
        return JSONResponse({"id": pet_id}, headers={"Deprecation": "@1767225600"})


@app.middleware("http")
async def around(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    if fault("works-before-the-key") and request.method == "DELETE":
        text = request.url.path.rpartition("/")[2]
        if text.isdecimal() and (record := store.records.get(int(text))) and record.status is Status.PENDING:
            answer = await call_next(request)
            record.status = Status.CANCELLED
            return answer
    return await call_next(request)


# ---------------------------------------------------------------- the state provider
states = FastAPI(openapi_url=None)


@states.post("/_states")
async def change_state(request: Request) -> dict[str, Any]:
    message = json.loads(await request.body())
    params = message["params"]
    if message["action"] == "teardown":
        for order_id in params["orderIds"]:
            store.records.pop(order_id, None)
        return {}
    if message["state"] == "no orders":
        if not FORM.empties:
            raise HTTPException(501)
        store.records.clear()
        return {}
    if "ids" in params and not FORM.exact_ids:
        raise HTTPException(501)
    status = Status(message["state"].split()[0])
    wanted = params["ids"] if "ids" in params else [None] * params["count"]
    return {"orderIds": [store.place(status, order_id, suite=True).id for order_id in wanted]}


async def main() -> None:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    servers = [uvicorn.Server(uvicorn.Config(one, log_level="warning", access_log=False)) for one in (app, states)]
    port, states_port = (one.getsockname()[1] for one in sockets)
    print(json.dumps({"port": port, "states_port": states_port}), flush=True)
    await asyncio.gather(*(server.serve(sockets=[one]) for server, one in zip(servers, sockets, strict=True)))


if __name__ == "__main__":
    random.seed(uuid.uuid4().int)
    asyncio.run(main())
