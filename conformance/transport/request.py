"""Requests as checks describe them: the operation, the credential, and which answers the contract allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from urllib.parse import unquote

from conformance.text import beginning

Headers = tuple[tuple[str, str], ...]


class Operation(StrEnum):
    """The operations of the contract, by their ids in section 4, and what else is requested."""

    LIST = "listOrders"
    CANCEL = "cancelOrder"
    PET = "pet lookup"
    OTHER = "other"


#: The statuses that each operation lists (sections 4.1 and 4.2).
STATUSES = {Operation.LIST: frozenset({200, 401}), Operation.CANCEL: frozenset({204, 401, 404, 409})}


class Allowed(StrEnum):
    """Which answers are allowed to a request, beyond what the contract demands."""

    LISTED = "a status that the operation lists"
    ANY_4XX = "also any 4xx: the order may have been cancelled before, or a server may mind the length of the request"
    SAME = "also 304, and any 4xx: the request asks whether the listing is the same as before, which is not shown"
    OPEN = "any: the request is not well-formed, or not one that the contract describes"


#: The most characters of a header field that a message shows.
FIELD = 80
#: From this many characters of a credential on, a server may object to its length.
LONG = 4096


@dataclass(frozen=True)
class Credential:
    """What a request presents for authentication: header fields, and a label that is safe to print.

    For a `curl` line, if one is possible, `shell` writes the value of the header fields in terms of `$KEY`, and
    `shell_user` the user and password of Basic; `plain` says that the key stands unencoded in the query or the body.
    """

    label: str
    headers: Headers = ()
    query: str = ""
    body: str = ""  # of the request, which is a cancel
    body_type: str = "application/x-www-form-urlencoded"
    valid: bool = False
    malformed: bool = False  # not even the form of a bearer credential: 400 is as good as 401 (RFC 6750 section 3.1)
    respelled: bool = False  # the key, under a spelling of the scheme that is recommended to be taken (AUTH-8)
    bulky: bool = False  # makes the request long: limits of size are not shown (section 8)
    shell: str | None = None
    shell_user: str = ""
    plain: bool = False

    @property
    def long(self) -> bool:
        """Whether a server may refuse a request with this credential for its length, and close the connection at
        once."""
        return self.bulky or (not self.valid and sum(len(value) for _, value in self.headers) > LONG)

    @property
    def undefined(self) -> bool:
        """Whether it stands where the operation defines nothing, so that any client error may be about that."""
        return bool(self.query or self.body)

    @property
    def allows(self) -> Allowed:
        """Which answers it allows: more than the listed statuses if something else is wrong with it than being no key,
        since a service may object to that first."""
        if self.undefined or self.malformed:
            return Allowed.OPEN
        return Allowed.ANY_4XX if self.long or self.respelled else Allowed.LISTED

    def shown(self, name: str, value: str) -> str | None:
        """What is recorded of a header field of a request: its label if it belongs to the credential, else None."""
        if (name, value) not in self.headers:
            return None
        return f"Bearer <{self.label}>" if value.startswith("Bearer ") else f"<{self.label}>"


NOBODY = Credential("no credentials")

#: What curl and many other clients send as Accept.
ANYTHING = "*/*"


@dataclass(frozen=True)
class Request:
    """One request to the service; `path` is relative to the base URL and already percent-encoded. With `whole` it is
    the entire request target (RFC 9112 section 3.2), possibly outside the base URL, so only GET without credentials is
    allowed. `accept` is the Accept field, unless `headers` have one; None leaves it out, which accepts anything (RFC
    9110 section 12.5.1)."""

    method: str
    path: str
    credential: Credential = NOBODY
    query: str = ""
    headers: Headers = ()
    body: bytes | None = None
    allowed: Allowed = Allowed.LISTED
    whole: bool = False
    accept: str | None = ANYTHING

    def __post_init__(self) -> None:
        if self.whole and (self.method != "GET" or self.credential != NOBODY):
            raise ValueError("to a target that may be any nothing is sent but GET without credentials")

    @cached_property
    def operation(self) -> Operation:
        """The operation of the contract that method and path belong to."""
        if self.whole:
            return Operation.OTHER
        if self.method == "GET" and self.path == "/store/orders":
            return Operation.LIST
        if self.method == "DELETE" and self.path.startswith("/store/orders/"):
            return Operation.CANCEL
        if self.method == "GET" and self.path.startswith("/pets/"):
            return Operation.PET
        return Operation.OTHER

    @cached_property
    def order_id(self) -> str | None:
        """The path segment of a cancel that stands for `orderId`, decoded; None for other requests."""
        if self.operation is not Operation.CANCEL:
            return None
        return unquote(self.path.removeprefix("/store/orders/"))

    @property
    def full_query(self) -> str:
        """The query of the request and of its credential together."""
        return "&".join(part for part in (self.query, self.credential.query) if part)


def with_fields(fields: Iterable[tuple[str, str]]) -> str:
    """These header fields for "received", long ones cut; empty if there are none."""
    written = [f"{name}: {value}" for name, value in fields]
    return f", asked with {' and '.join(beginning(each, FIELD) for each in written)}" if written else ""
