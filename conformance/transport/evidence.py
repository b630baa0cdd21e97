"""What went over the wire: exchanges as they are recorded, with secrets removed."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from conformance.contract.jsontext import INT64
from conformance.transport.body import BARE_DEFLATE
from conformance.transport.error_messages import LONG_HEAD, NO_CERTIFICATE
from conformance.transport.redaction import Redactor
from conformance.transport.request import Headers, Request

#: The most bytes of a body that the evidence keeps whole: a listing of some 10,000 orders. Of a longer body it keeps
#: the beginning, the length and the digest.
RECORDED_BODY, BEGINNING = 1024 * 1024, 4096
#: The most bytes of bodies that one process keeps in all, as JSON writes them, identical ones counted once. After that,
#: only the beginning of each further one.
RECORDED_IN_ALL = 100_000_000
#: The most bytes of a decompressed body that are searched for secrets.
DECOMPRESSED = 8 * RECORDED_BODY
#: Window bits by which zlib tells gzip from deflate by itself.
AUTOMATIC = 47
#: Stands in place of a check for what is sent before the first one.
PREFLIGHT = "preflight"


class Trouble(StrEnum):
    """Why a request got no complete answer, and so whose responsibility that is."""

    UNREACHABLE = "unreachable"  # no connection: refused, unknown host, TLS
    TIMEOUT = "timeout"  # no complete answer within the limit
    TOO_LARGE = "too large"  # the answer passed a limit of the suite
    BROKEN = "broken"  # the connection ended or the framing failed: no complete HTTP response (HTTP-2)
    # The service closed a kept-alive connection just as it was to be used again, which it may at any time; or it sent
    # bytes behind the previous answer, which is blamed for them, so that the next one could not be read.
    CLOSED = "closed"
    REFUSED = "refused"  # the service refused the request before acting on it, so it may be sent again
    UNSENT = "unsent"  # the end of the request was not sent, so no service should have acted on it
    DROPPED = "dropped"  # the connection ended before any answer, while there were others: no limit is shown
    WAITING = "waiting"  # no further connection while others wait for the end of their requests
    NO_RAW = "no raw connection"  # the service speaks HTTP/2 only, or the proxy in front of it opens no tunnel


@dataclass
class Exchange:
    """One request and its answer, without secrets; the unit of evidence.

    `number` counts within the check, and within the run once the checks are collected. `status` is None if there was no
    complete answer; `trouble` and `detail` say why. `body` is the received body, decoded from UTF-8 with
    `surrogateescape`, so that its bytes can be recovered (`raw_body`).
    """

    method: str
    url: str
    request_headers: list[tuple[str, str]]
    credential: str
    operation: str
    allowed: str
    order_id: str | None = None
    request_body: str | None = None
    shell_headers: list[str] = field(default_factory=list)
    shell_user: str = ""  # for `curl -u`, in place of the header fields
    key_plain: bool = False  # whether the key's label in `url` or `request_body` replaces the key itself, not encoded
    started: float = 0.0  # seconds since the epoch
    seconds: float = 0.0
    via: str = "client"  # or "wire": over a raw connection, which may carry several
    status: int | None = None
    reason: str = ""
    http_version: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: str = ""
    body_size: int = 0
    body_sha256: str = ""
    body_cut: bool = False
    extra: str = ""  # what followed the response on its connection, a character for each byte
    kept_open: bool | None = None  # whether the service left the connection open, where a check asked
    waited: float | None = None  # seconds after which the request was sent again, as the service asked (Retry-After)
    crowded: bool = False  # whether other requests of the run may have been under way
    trouble: str | None = None
    detail: str = ""
    revealed_key: bool = False
    check: str = ""
    number: int = -1
    findings: dict[str, str | None] = field(default_factory=dict)  # requirement -> problem, None where it was met
    undecided: dict[str, str] = field(default_factory=dict)  # requirement -> why this exchange proves neither way
    proven: list[str] = field(default_factory=list)  # of these, what it does prove, where nothing else is broken

    @property
    def received(self) -> str:
        """The answer in a few words: "204 No Content", where a redirect leads, or what went wrong."""
        if self.status is None:
            return f"{self.instead} ({self.detail or self.trouble})"
        leads = first_field(self.headers, "location") if 300 <= self.status < 400 else ""
        return f"{self.status} {self.reason}".strip() + (f" to {leads[:100]}" if leads else "")

    @property
    def instead(self) -> str:
        """What there is in place of a complete answer: nothing, or what was not read because of a limit."""
        return "an answer that was not read" if self.trouble == Trouble.TOO_LARGE else "no answer"

    @property
    def succeeded(self) -> bool:
        """Whether the status is a 2xx."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def limited(self) -> bool:
        """Whether the service turned the request away for the time being: 429 Too Many Requests, 503 Service
        Unavailable."""
        return self.status in (429, 503)

    @property
    def closed(self) -> bool:
        """Whether a kept-alive connection was closed before the answer, which is the service's right at any time (RFC
        9112 section 9.5)."""
        return self.trouble in (Trouble.CLOSED, Trouble.UNSENT)

    def ended_early(self, detail: str, *, heard: bool) -> None:
        """Note that the connection ended before the answer did: why, in plain words, and whose responsibility that is.
        `heard` says whether part of the answer had arrived."""
        self.detail = detail
        if detail == LONG_HEAD:
            self.trouble = Trouble.TOO_LARGE
        elif detail == NO_CERTIFICATE:
            self.trouble = Trouble.UNREACHABLE
        else:
            self.trouble = Trouble.DROPPED if self.crowded and not heard else Trouble.BROKEN

    @property
    def raw_body(self) -> bytes:
        """The bytes of `body`."""
        return self.body.encode("utf-8", "surrogateescape")

    @property
    def line(self) -> str:
        """The request in a few words: method, path, credential."""
        return f"{self.method} {self.url} with {self.credential}"

    @property
    def in_words(self) -> str:
        """The request and its answer, as the beginning of a sentence."""
        return f"{self.line} answered {self.received}"


def first_field(headers: Iterable[tuple[str, str]], name: str) -> str:
    """The value of the first header field of this `name`, given in lower case; empty if there is none."""
    return next((value for own, value in headers if own.lower() == name), "")


def handed_out(message: dict[str, Any]) -> list[str]:
    """The ids of the orders that a state provider placed, according to a recorded `message`; none for a teardown. Its
    answer may be anything: whatever is not an int64 is ignored."""
    answer = message.get("answer") if message.get("action") == "setup" else None
    ids = answer.get("orderIds") if isinstance(answer, dict) else None
    return [str(number) for number in ids if type(number) is int and number in INT64] if isinstance(ids, list) else []


def _meant(body: bytes) -> dict[str, str]:
    """Further texts that a reader may find in a body besides its UTF-8, by how: decompressed, if no header field says
    that it is compressed; and without its zero bytes, which UTF-16 and UTF-32 put next to ASCII."""
    try:
        body.decode()
        found = {}
    except UnicodeDecodeError:
        found = {"once decompressed": _decompressed(body)}
    if b"\0" in body:
        found["without its zero bytes"] = body
    return {how: text.replace(b"\0", b"").decode("latin-1") for how, text in found.items()}


def _decompressed(body: bytes) -> bytes:
    """The content of a body in gzip or deflate format, as much as can be read of a damaged one; no bytes if it is
    neither."""
    for start, window in ((0, AUTOMATIC), (0, BARE_DEFLATE), (10, BARE_DEFLATE), (2, BARE_DEFLATE)):
        with suppress(zlib.error):
            if text := zlib.decompressobj(window).decompress(body[start:], DECOMPRESSED):
                return text
    return b""


class Recorder:
    """Keeps what one process sent for one target: exchanges with the service, in the order of the requests, and
    messages to the state provider."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.exchanges: list[Exchange] = []
        self.messages: list[dict[str, Any]] = []
        self.check = ""
        self._left = RECORDED_IN_ALL
        # What was recorded of bodies, by their digest, and of header fields: the same few come again and again.
        self._bodies: dict[str, tuple[str, bool, bool]] = {}
        self._headers: dict[Headers, tuple[Headers, bool]] = {}

    def begin(self, request: Request, url: str, headers: Headers, via: str) -> Exchange:
        """A new exchange for `request`, with the clock started; `headers` are all fields that will be sent."""
        clean, credential = self.redactor.clean, request.credential
        if credential.body:  # or its length would tell that of the key
            headers = tuple(field for field in headers if field[0] != "Content-Length")
        return Exchange(
            method=request.method,
            url=clean(url),
            request_headers=[(name, credential.shown(name, value) or clean(value)) for name, value in headers],
            credential=credential.label,
            operation=request.operation.value,
            allowed=request.allowed.name,
            order_id=None if request.order_id is None else clean(request.order_id),
            request_body=None if request.body is None else clean(request.body.decode("utf-8", "replace")),
            shell_headers=[
                f"{name}: {credential.shown(name, value) if credential.shell is None else credential.shell}"
                for name, value in credential.headers
            ],
            shell_user=credential.shell_user,
            key_plain=credential.plain,
            started=time.time(),
            via=via,
            check=self.check,
        )

    def answer(self, exchange: Exchange, headers: Headers, body: bytes, extra: bytes = b"") -> None:
        """Write header fields, body, and the bytes after it into `exchange`, cleaned and cut."""
        exchange.body_size, exchange.body_sha256 = len(body), hashlib.sha256(body).hexdigest()
        if exchange.body_sha256 not in self._bodies:
            self._bodies[exchange.body_sha256] = self._recorded(body)
        exchange.body, exchange.body_cut, revealed = self._bodies[exchange.body_sha256]
        if headers not in self._headers:
            self._headers[headers] = self._recorded_headers(headers)
        cleaned, reveals = self._headers[headers]
        exchange.headers, exchange.revealed_key = list(cleaned), revealed or reveals
        exchange.extra = self._withheld(extra) or self.redactor.clean(extra.decode("latin-1"))

    def _recorded_headers(self, headers: Headers) -> tuple[Headers, bool]:
        """What is kept of header fields, and whether they reveal the key."""
        clean, reveals = self.redactor.clean, self.redactor.reveals
        cleaned = tuple((clean(name), clean(value)) for name, value in headers)
        return cleaned, any(clean(value) != value and reveals(value) for _, value in headers)

    def _recorded(self, body: bytes) -> tuple[str, bool, bool]:
        """What the evidence keeps of a body, within the limits of size; whether it was cut; and whether the body
        reveals the key."""
        if (withheld := self._withheld(body)) is not None:
            return withheld, False, any(map(self.redactor.reveals, _meant(body).values()))
        text = body[:RECORDED_BODY].decode("utf-8", "surrogateescape")
        kept = cleaned = self.redactor.clean(text)
        if len(cleaned) > BEGINNING:
            size = len(json.dumps(cleaned))
            if size > self._left or len(body) > RECORDED_BODY:
                kept = cleaned[:BEGINNING]
            else:
                self._left -= size
        return (
            kept,
            len(body) > RECORDED_BODY or len(kept) < len(cleaned),
            cleaned != text and self.redactor.reveals(text),
        )

    def _withheld(self, body: bytes) -> str | None:
        """A label in place of a body that holds secrets in another encoding than UTF-8, from which they cannot be
        removed; None if it holds none."""
        for reading, text in _meant(body).items():
            if self.redactor.clean(text) != text:
                return f"<withheld: {reading} it holds the key or a part of it>"
        return None

    def end(self, exchange: Exchange) -> None:
        """Stop the clock of `exchange`."""
        exchange.seconds = round(max(0.0, time.time() - exchange.started), 6)
        exchange.reason = self.redactor.clean(exchange.reason)
        exchange.detail = self.redactor.clean(exchange.detail)

    def judged(self, exchange: Exchange) -> None:
        """Remove secrets from what the judges quote in `exchange`."""
        clean = self.redactor.clean
        for row, problem in exchange.findings.items():
            exchange.findings[row] = problem and clean(problem)
        for row, reason in exchange.undecided.items():
            exchange.undecided[row] = clean(reason)

    def keep(self, exchange: Exchange) -> None:
        """Record `exchange`, which has been judged."""
        self.judged(exchange)
        exchange.number = len(self.exchanges)
        self.exchanges.append(exchange)

    def take(self) -> tuple[list[Exchange], list[dict[str, Any]]]:
        """Hand over the exchanges and messages recorded so far, and forget them."""
        taken = self.exchanges, self.messages
        self.exchanges, self.messages = [], []
        return taken

    def message(self, message: dict[str, Any], started: float) -> None:
        """Record a message to the state provider, sent at `started`, with the answer that has just come, cleaned. Times
        are in seconds since the epoch."""
        times = {"started": started, "ended": max(started, time.time())}
        self.messages.append({"check": self.check, **times, **self._cleaned(message)})

    def _cleaned(self, value: Any) -> Any:
        """Plain data without secrets."""
        if isinstance(value, dict):
            return {self.redactor.clean(name): self._cleaned(item) for name, item in value.items()}
        if isinstance(value, list):
            if all(isinstance(item, int) for item in value):  # ids, which are most of it, at once
                ids = " ".join(map(str, value))
                if self.redactor.clean(ids) == ids:
                    return value
            return [self._cleaned(item) for item in value]
        text = str(value)
        clean = self.redactor.clean(text)
        return value if clean == text else clean
