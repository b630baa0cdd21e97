"""A session with a reference service in this very process, for the selftest, which judges hundreds of them.

The client's requests are written as bytes, read and answered by the server's own code, and read back through h11. What
is left out is the connection and its time limit, which would take more than half of the time. Raw connections use
sockets as usual. A test makes sure that no status depends on this (test_direct.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from conformance.runner.session import Session
from conformance.states.provider import CannotDo, Provider
from conformance.target import States
from conformance.transport.answer import Answer, Observer
from conformance.transport.body import Unreadable
from conformance.transport.client import Client
from conformance.transport.concurrency import Concurrency
from conformance.transport.endpoint import Endpoint
from conformance.transport.error_messages import in_plain_words
from conformance.transport.evidence import Exchange, Recorder, Trouble
from conformance.transport.guard import Guard
from conformance.transport.http11 import BROKEN, Incoming, outgoing
from conformance.transport.request import Request
from reference_server.api import Service
from reference_server.control import Control, UnsupportedError
from reference_server.server import answer_at_once


class _AtHand(Concurrency):
    """For a service in this process: handing requests to threads saves no time, and whether that is done must not
    depend on how busy the machine is. What must overlap still does."""

    def __init__(self) -> None:
        super().__init__()
        self.near = True

    def timed(self, exchange: Exchange) -> None:
        pass


@dataclass
class DirectSession(Session):
    """A session with `service`. A server for it, at the address of the target, is needed for raw connections only."""

    service: Service = field(kw_only=True)

    def client_of(self, endpoint: Endpoint, guard: Guard, observer: Observer) -> Client:
        return DirectClient(endpoint, guard, self.recorder, observer, self.service)

    def provider_of(self, states: States) -> Provider:
        return DirectProvider(self.service)


class DirectClient(Client):
    """A client of a service in this process."""

    def __init__(
        self, endpoint: Endpoint, guard: Guard, recorder: Recorder, observer: Observer, service: Service
    ) -> None:
        super().__init__(endpoint, guard, recorder, observer)
        self._service = service
        self.concurrency = _AtHand()

    def _once(self, request: Request, crowded: bool) -> Answer:
        headers = self.endpoint.headers(request, connection="close")
        exchange = self.recorder.begin(request, self.endpoint.url(request), headers, "client")
        exchange.crowded = crowded
        answer = Answer(request, exchange)
        received = answer_at_once(self._service, outgoing(self.endpoint, request, headers))
        incoming, error = _read(request.method, received, self.endpoint.max_body)
        answer.headers, answer.body = incoming.headers, incoming.body
        exchange.reason, exchange.http_version = incoming.reason, incoming.http_version
        if error is None:
            exchange.status = incoming.status
        elif isinstance(error, Unreadable):
            exchange.trouble, exchange.detail = Trouble.TOO_LARGE, str(error)
        else:
            exchange.ended_early(in_plain_words(error), heard=bool(received))
        self.note(answer)
        return answer


@lru_cache(maxsize=500)  # a service gives the same few answers again and again
def _read(method: str, received: bytes, limit: int) -> tuple[Incoming, Exception | None]:
    """What was received, as far as it can be read, and why it cannot be read further."""
    incoming = Incoming(method, limit)
    try:
        if not incoming.take(received):
            incoming.take(b"")
    except (Unreadable, *BROKEN) as error:
        return incoming, error
    return incoming, None


class DirectProvider:
    """The state provider of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._control = Control(service)

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._control.change(json.dumps(message).encode())
        except UnsupportedError as problem:
            raise CannotDo(str(problem)) from None

    def close(self) -> None:
        pass
