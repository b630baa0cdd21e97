"""Requests as bytes, and responses from bytes. They are read by h11, whose `trailing_data` tells what followed their
end."""

from __future__ import annotations

from functools import cache

import h11

from conformance.transport.answer import decoded, fields
from conformance.transport.body import Body, Miscoded
from conformance.transport.endpoint import Endpoint
from conformance.transport.error_messages import LONGEST_HEAD
from conformance.transport.request import Headers, Request

#: How many bytes are kept of the beginning of an answer, and of what came unasked before one.
MOST_BEFORE = 4096
#: What is raised if there is no complete answer, or none that can be understood.
BROKEN = (OSError, h11.RemoteProtocolError, Miscoded)


class Incoming:
    """The response to a request as it arrives, read by h11 (RFC 9112)."""

    def __init__(self, method: str, limit: int) -> None:
        """`method` is that of the request, since the meaning of a response depends on it; `limit` is for its body, in
        bytes."""
        self.status: int | None = None
        self.reason = ""
        self.http_version = ""
        self.headers: Headers = ()
        self.body = b""
        self.begins = b""  # what came, up to MOST_BEFORE bytes
        self._limit = limit
        self._taken: Body | None = None
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._protocol.send(_request(method))
        self._protocol.send(h11.EndOfMessage())

    def take(self, data: bytes) -> bool:
        """Add what was received (no bytes: the connection has ended); returns whether the response is complete.

        Raises Unreadable, Miscoded and h11.RemoteProtocolError, also for a connection that ended early.
        """
        if len(self.begins) < MOST_BEFORE:
            self.begins += data[: MOST_BEFORE - len(self.begins)]
        self._protocol.receive_data(data)
        while (event := self._protocol.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                self.headers = decoded(event.headers.raw_items())
                self.http_version = f"HTTP/{event.http_version.decode()}"
                self.reason = event.reason.decode("latin-1")
                self._taken = Body(fields(self.headers).get("content-encoding", ""), self._limit)
                self.status = event.status_code
            elif isinstance(event, h11.Data) and self._taken is not None:
                self._taken.take(event.data)
            elif isinstance(event, h11.EndOfMessage) and self._taken is not None:
                self.body = self._taken.whole()
                return True
        return False

    @property
    def foreign(self) -> bool:
        """Whether the bytes received do not begin like HTTP."""
        return bool(self.begins) and not self.begins.startswith(b"HTTP"[: len(self.begins)])

    @property
    def extra(self) -> bytes:
        """What came after the end of the response."""
        return self._protocol.trailing_data[0]

    @property
    def last(self) -> bool:
        """Whether no other response can follow on this connection."""
        return self._protocol.their_state in (h11.MUST_CLOSE, h11.CLOSED)


def outgoing(endpoint: Endpoint, request: Request, headers: Headers) -> bytes:
    """Every byte of `request` with these header fields."""
    lines = [f"{request.method} {endpoint.path(request)} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (request.body or b"")


@cache
def _request(method: str) -> h11.Request:
    """A request for h11's bookkeeping: only the method of the one that is sent matters to its answer."""
    return h11.Request(method=method, target="/", headers=[("Host", "localhost")])
