"""A request and a response as plain values, between the wire and the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Request(NamedTuple):
    """One well-formed HTTP request, its body read to the end."""

    method: str
    path: str
    """As sent: percent-encoded, without the query."""
    query: str = ""
    """What follows the question mark, as sent."""
    headers: Mapping[str, str] = {}
    """By lower-case name; repeated ones joined by a comma. `encode("latin-1")` gives the bytes sent."""
    body: bytes = b""
    connection: int = 0
    """A number that no other connection of this process has."""
    close: bool = False
    """Whether the client wants, or its HTTP version means, one request on this connection."""
    lines: Sequence[str] = ()
    """The header fields as sent, a line each."""


class Response:
    """What to answer. The lengths and dates that every response needs are left to the wire."""

    __slots__ = ("body", "close", "headers", "status")

    def __init__(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, close: bool = False
    ) -> None:
        """Takes the status, the body, further headers, and whether the connection ends with this response."""
        self.status = status
        self.body = body
        self.headers: dict[str, str] = dict(headers) if headers else {}
        self.close = close
