"""State control: places the orders that a test wants, and tells what the service received.

Not part of the contract, so it is never on the service's own listener. It speaks the state provider protocol
(`POST`, any path, JSON), and shows the journal at `/_log`.
"""

from __future__ import annotations

import json
import sys
from hmac import compare_digest

from .api import Entry, JsonObject, Service, encode
from .messages import Request, Response
from .orders import INT64_MAX, INT64_MIN, Status
from .wire import render

MOST_IN_A_MESSAGE = 1_000_000
LOG = "/_log"

_STATES: dict[str, Status | None] = {
    "pending orders": Status.PENDING,
    "shipped orders": Status.SHIPPED,
    "no orders": None,
}


class MalformedError(Exception):
    """A message that the protocol does not know; the text says what is wrong with it."""


class UnsupportedError(Exception):
    """A message that this service, in the way it was changed, cannot follow; the text says why."""


class Control:
    """An application, as a listener serves it, that changes the state of one service."""

    def __init__(self, service: Service, token: bytes | None = None) -> None:
        """Takes the service, and the bearer token to ask for, if any."""
        self.service = service
        self.token = token
        self.write = render

    def answer(self, request: Request) -> Response:
        """Takes a request, gives a JSON answer: an object, the log's list, or `{"error": ...}` with 4xx."""
        try:
            if self.token is not None and not self._authorized(request, self.token):
                return _json(401, {"error": "the bearer token is missing or wrong"})
            if request.path == LOG:
                return self._log(request)
            if request.method != "POST":
                return _json(405, {"error": f"POST a state message here; the log is at {LOG}"})
            return _json(200, self.change(request.body))
        except MalformedError as problem:
            return _json(400, {"error": str(problem)})
        except UnsupportedError as problem:
            return _json(501, {"error": str(problem)})
        except Exception as problem:
            print(f"internal error: {type(problem).__name__}", file=sys.stderr)
            return _json(500, {"error": "internal error"})

    def reject(self, status: int, message: str) -> Response:
        """The answer to bytes that are no request."""
        response = _json(status, {"error": message})
        response.close = True
        return response

    def change(self, body: bytes) -> JsonObject:
        """Takes a state message, does what it says, gives the answer. Repeating one does no harm."""
        message = _object(_parsed(body), "the message")
        state = message.get("state")
        if not isinstance(state, str) or state not in _STATES:
            raise MalformedError(f"unknown state; known are: {', '.join(_STATES)}")
        params = _object(message.get("params", {}), "params")
        action = message.get("action", "setup")
        if action == "setup":
            return self._set_up(_STATES[state], params)
        if action == "teardown":
            self.service.store.remove(_ids(params.get("orderIds", []), "orderIds"))
            return {}
        raise MalformedError("unknown action; known are: setup, teardown")

    def _set_up(self, status: Status | None, params: JsonObject) -> JsonObject:
        store = self.service.store
        if status is None:
            if "no orders" in self.service.cannot:
                raise UnsupportedError("this store cannot be emptied")
            store.clear()
            return {}
        if "ids" in params:
            if "ids" in self.service.cannot:
                raise UnsupportedError("this store chooses the ids itself")
            return {"orderIds": store.place_ids(_ids(params["ids"], "ids"), status)}
        count = params.get("count", 1)
        if type(count) is not int or not 0 <= count <= MOST_IN_A_MESSAGE:
            raise MalformedError(f"count must be a whole number from 0 to {MOST_IN_A_MESSAGE}")
        return {"orderIds": store.place(count, status)}

    def _log(self, request: Request) -> Response:
        journal = self.service.journal
        if request.method == "GET":
            return _json(200, [_entry(entry) for entry in journal.copy()])
        if request.method == "DELETE":
            journal.clear()
            return Response(204)
        return _json(405, {"error": "GET reads the log, DELETE clears it"})

    def _authorized(self, request: Request, token: bytes) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and compare_digest(given.strip(" ").encode("latin-1"), token)


def _json(status: int, value: object) -> Response:
    return Response(status, encode(value), {"Content-Type": "application/json"})


def _parsed(body: bytes) -> object:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError("the body must be JSON") from None
    return value


def _object(value: object, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise MalformedError(f"{what} must be a JSON object")
    return value


def _ids(value: object, what: str) -> list[int]:
    if not isinstance(value, list) or len(value) > MOST_IN_A_MESSAGE:
        raise MalformedError(f"{what} must be a list of at most {MOST_IN_A_MESSAGE} ids")
    for order_id in value:
        if type(order_id) is not int or not INT64_MIN <= order_id <= INT64_MAX:
            raise MalformedError(f"{what} must hold int64 integers only")
    return value


def _entry(entry: Entry) -> JsonObject:
    return {
        "method": entry.method,
        "path": entry.path,
        "authorized": entry.authorized,
        "orderId": entry.order_id,
        "status": entry.status,
    }
