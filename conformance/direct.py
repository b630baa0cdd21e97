"""A session with a reference service in this very process: for the selftest, which judges hundreds of them.

The requests of the client are written out as bytes, read and answered by the server's own code, and read back through
h11: nothing of HTTP is left out but the connection, which would take more than half of the time. Raw connections, which
are about just that, go over sockets as ever. That this makes no difference to any status is a test (test_direct.py).
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from typing import Any, cast

from conformance.session import Session
from conformance.states.provider import CannotDo, Provider, ProviderError
from conformance.target import States
from conformance.transport.client import Answer, Client, Observer
from conformance.transport.endpoint import Endpoint
from conformance.transport.evidence import Recorder, Request
from conformance.transport.guard import Guard
from conformance.transport.wire import Connection
from reference_server.api import Service
from reference_server.control import Control, MalformedError, UnsupportedError
from reference_server.server import answer_at_once


@dataclass
class DirectSession(Session):
    """A session with `service`. A server of it is needed for raw connections alone, at the address of the target."""

    service: Service = field(kw_only=True)

    def client_of(self, endpoint: Endpoint, guard: Guard, observer: Observer) -> Client:
        return DirectClient(endpoint, guard, self.recorder, observer, self.service)

    def provider_of(self, states: States) -> Provider:
        return DirectProvider(self.service)


class DirectClient(Client):
    """A client whose connections end in this process."""

    def __init__(
        self, endpoint: Endpoint, guard: Guard, recorder: Recorder, observer: Observer, service: Service
    ) -> None:
        super().__init__(endpoint, guard, recorder, observer)
        self._service = service

    def _once(self, request: Request) -> Answer:
        with _DirectConnection(self, self._service) as connection:
            connection.prepare(request, last=True)
            connection.release()
            answer = connection.receive(keep=False)
        answer.extra, answer.exchange.extra, answer.exchange.via = b"", "", "client"  # as a client sees and says it
        return answer


class _DirectConnection(Connection):
    """A raw connection with no socket in it."""

    def __init__(self, client: Client, service: Service) -> None:
        super().__init__(client)
        self._service = service

    def _connect(self) -> socket.socket:
        return cast(socket.socket, _Line(self._service))


class _Line:
    """What a connection uses of a socket, for one request."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sent = b""
        self._answer: bytes | None = None

    def settimeout(self, seconds: float) -> None:
        pass

    def sendall(self, data: bytes) -> None:
        self._sent += data

    def recv(self, size: int) -> bytes:
        if self._answer is None:
            self._answer = answer_at_once(self._service, self._sent)
        received, self._answer = self._answer[:size], self._answer[size:]
        return received

    def close(self) -> None:
        pass


class DirectProvider:
    """The state provider of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._control = Control(service)

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._control.change(json.dumps(message).encode())
        except UnsupportedError as problem:
            raise CannotDo(str(problem)) from None
        except MalformedError as problem:
            raise ProviderError(str(problem)) from None

    def close(self) -> None:
        pass
