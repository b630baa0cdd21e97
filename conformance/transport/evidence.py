"""What went over the wire: requests as checks describe them, exchanges as they are recorded, secrets taken out.

Secrets are removed here, once, when an exchange is recorded; what the reports write was never in possession of them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import string
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import chain, pairwise
from typing import Any
from urllib.parse import quote, unquote

#: Bytes of a body that the evidence keeps whole: a listing of some 10,000 orders. Of a longer one it keeps the
#: beginning, the length and the digest.
RECORDED_BODY, BEGINNING = 1024 * 1024, 4096
#: Bytes of bodies that one process keeps in all, as JSON writes them, equal ones counted once; then only the beginning
#: of each further one.
RECORDED_IN_ALL = 100_000_000
#: A part of the key of this length or more is as secret as the key.
SECRET_PART = 8
#: Characters that are looked for before a whole secret is: no more than the shortest has.
ANCHOR = 4
KEY_LABEL = "<key>"
#: What marks the place where a quotation was cut.
ELLIPSIS = "…"
#: What a short key leaves in the middle of a longer text in base64.
SHORTEST_BASE64 = 6
#: Texts of at most so many characters are cleaned once: the same few header fields and bodies come again and again.
REMEMBERED = 4096
MOST_REMEMBERED = 1024

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

Headers = tuple[tuple[str, str], ...]


class Operation(StrEnum):
    """The operations of the contract, by their ids in section 4, and what is beside them."""

    LIST = "listOrders"
    CANCEL = "cancelOrder"
    PET = "pet lookup"
    OTHER = "other"


class Allowed(StrEnum):
    """Which answers the contract leaves open for a request."""

    LISTED = "a status that the operation lists"
    REPEATED = "also any 4xx: the order was cancelled before"
    OPEN = "any: the request is not well-formed, or not one that the contract describes"


@dataclass(frozen=True)
class Credential:
    """What a request shows for authentication: header fields and a label that is safe to print.

    `shell` writes the value for a `curl` line in terms of `$KEY`, where that is possible.
    """

    label: str
    headers: Headers = ()
    query: str = ""
    valid: bool = False
    malformed: bool = False  # not even the form of a bearer credential: 400 is as good as 401 (RFC 6750 section 3.1)
    shell: str | None = None

    def shown(self, name: str, value: str) -> str | None:
        """What goes on record of a header field of a request: its label, if it belongs to the credential, else None."""
        if (name, value) not in self.headers:
            return None
        return f"Bearer <{self.label}>" if value.startswith("Bearer ") else f"<{self.label}>"


NOBODY = Credential("no credentials")


@dataclass(frozen=True)
class Request:
    """One request to the service; `path` is relative to the base URL and already percent-encoded."""

    method: str
    path: str
    credential: Credential = NOBODY
    query: str = ""
    headers: Headers = ()
    body: bytes | None = None
    allowed: Allowed = Allowed.LISTED

    @cached_property
    def operation(self) -> Operation:
        """The operation of the contract that method and path belong to."""
        if self.method == "GET" and self.path == "/store/orders":
            return Operation.LIST
        if self.method == "DELETE" and self.path.startswith("/store/orders/"):
            return Operation.CANCEL
        if self.method == "GET" and self.path.startswith("/pets/"):
            return Operation.PET
        return Operation.OTHER

    @cached_property
    def order_id(self) -> str | None:
        """The path segment that a cancel has for its `orderId`, decoded; None for other requests."""
        if self.operation is not Operation.CANCEL:
            return None
        return unquote(self.path.removeprefix("/store/orders/"))

    @property
    def full_query(self) -> str:
        """The query of the request and of its credential together."""
        return "&".join(part for part in (self.query, self.credential.query) if part)


class Trouble(StrEnum):
    """Why a request got no complete answer, by whose responsibility that is."""

    UNREACHABLE = "unreachable"  # no connection: refused, unknown host, TLS
    TIMEOUT = "timeout"  # no complete answer within the limit
    TOO_LARGE = "too large"  # the answer passed a limit of the suite
    BROKEN = "broken"  # the connection ended or the framing failed: no complete HTTP response (HTTP-2)
    CLOSED = "closed"  # the service closed an idle connection just as it was to be used again: its good right
    UNSENT = "unsent"  # the same before the end of the request was sent, so that nobody can have received it


@dataclass
class Exchange:
    """One request and what came back, without secrets; the unit of evidence.

    `number` is its place in the run, given when the run's exchanges are brought together. `status` is None where there
    was no complete answer, and `trouble` with `detail` says why. `body` is what was received, with what is no UTF-8 as
    Python's `surrogateescape` has it, so that the bytes can be told from it.
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
    started: float = 0.0  # seconds since the epoch
    seconds: float = 0.0
    via: str = "client"  # or "wire": a raw socket, on a connection of its own
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
    waited: float | None = None  # seconds after which the same was asked again, as the service had it (Retry-After)
    crowded: bool = False  # whether a 429 may be due to the number of processes that sent requests
    trouble: str | None = None
    detail: str = ""
    revealed_key: bool = False
    check: str = ""
    number: int = -1
    findings: dict[str, str | None] = field(default_factory=dict)  # requirement -> problem, None where it was met
    undecided: dict[str, str] = field(default_factory=dict)  # requirement -> why this exchange proves neither way

    def to_json(self) -> dict[str, Any]:
        """As plain data, to cross from a worker to the run that collects it."""
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Exchange:
        """Back from `to_json`."""
        exchange = cls(**data)
        exchange.request_headers = [(name, value) for name, value in data["request_headers"]]
        exchange.headers = [(name, value) for name, value in data["headers"]]
        return exchange

    @property
    def received(self) -> str:
        """The answer in a few words: "204 No Content", or what went wrong instead."""
        if self.status is None:
            return f"no answer ({self.detail or self.trouble})"
        return f"{self.status} {self.reason}".strip()

    @property
    def raw_body(self) -> bytes:
        """The bytes of `body`."""
        return self.body.encode("utf-8", "surrogateescape")

    @property
    def line(self) -> str:
        """The request in a few words: method, path, credential."""
        return f"{self.method} {self.url} with {self.credential}"


class Redactor:
    """Takes the key, what is made from it, and long parts of it out of text, and puts a label there.

    Known values are replaced as they are, escaped and in base64; what is left of the key in any stretch of SECRET_PART
    characters or more becomes "<part of the key>", in any case and also backwards.
    """

    def __init__(self, key: str) -> None:
        self._labels: dict[str, str] = {}
        self._spelt: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._anchors: dict[str, set[str]] = {}
        starts = range(len(key) - SECRET_PART + 1)
        ways = (key.translate(_ASCII_LOWER), key[::-1].translate(_ASCII_LOWER))
        self._parts = {text[i : i + SECRET_PART] for text in ways for i in starts}
        half = SECRET_PART // 2  # each part holds a whole one of these, which are few
        self._blocks = {text[i : i + half] for text in ways for i in range(0, len(key) - half + 1, half)}
        self.add(key, KEY_LABEL)

    def add(self, value: str, label: str) -> None:
        """Replace `value` by `label` from now on. What is made from the key and too short to tell of it stays."""
        if len(value) < ANCHOR and label != KEY_LABEL:
            return
        for form in (value, quote(value, safe=""), *_escaped_forms(value), *_base64_forms(value)):
            self._labels.setdefault(form, label)
        self._spelt.update(dict.fromkeys(_spelt_out(value), label))
        self._ordered = sorted(self._labels, key=len, reverse=True)
        self._whole = [form for form, known in (*self._labels.items(), *self._spelt.items()) if known == KEY_LABEL]
        self._known.clear()
        self._anchors = {}

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        if len(text) > REMEMBERED:
            return self._cleaned(text)
        if text not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[text] = self._cleaned(text)
        return self._known[text]

    def _cleaned(self, text: str) -> str:
        if ELLIPSIS in text:
            text = self._without_beginnings(text)
        if "%" in text or "\\u" in text:
            for value, label in self._spelt.items():
                text = text.replace(value, label)
        anchors = self._anchors or _anchors(self._ordered)
        self._anchors = anchors
        if present := _present(anchors, text):
            possible = set().union(*(anchors[anchor] for anchor in present))
            for value in self._ordered:
                if value in possible:
                    text = text.replace(value, self._labels[value])
        return self._without_parts(text)

    def reveals(self, text: str) -> bool:
        """Whether `text` holds the key itself, in any form."""
        return any(map(text.__contains__, self._whole))

    def _without_beginnings(self, text: str) -> str:
        """`text` without what is left of a secret where a quotation was cut, which is marked by an ellipsis."""
        forms = [pair for pair in (*self._labels.items(), *self._spelt.items()) if pair[0][:SECRET_PART] in text]
        *cut, rest = text.split(ELLIPSIS)
        for place, piece in enumerate(cut if forms else ()):
            begun = [
                (start, label)
                for form, label in forms
                if (start := piece.rfind(form[:SECRET_PART], -len(form))) >= 0 and form.startswith(piece[start:])
            ]
            if begun:
                start, label = min(begun)
                cut[place] = piece[:start] + label
        return ELLIPSIS.join([*cut, rest])

    def _without_parts(self, text: str) -> str:
        # Unlike lower(), translate() never changes the length; it takes five times as long.
        lowered = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
        if not _present(self._blocks, lowered):
            return text
        covered: list[tuple[int, int]] = []
        for part in self._parts:
            start = lowered.find(part)
            while start >= 0:
                covered.append((start, start + len(part)))
                start = lowered.find(part, start + 1)
        if not covered:
            return text
        covered.sort()
        merged = [covered[0]]
        for start, end in covered[1:]:
            if start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        edges = [0, *(edge for span in merged for edge in span), len(text)]
        kept = [text[a:b] for a, b in list(pairwise(edges))[::2]]
        return "<part of the key>".join(kept)


def _anchors(forms: list[str]) -> dict[str, set[str]]:
    """A few characters of the middle of each form, where most are alike, with all forms for which they stand: as few
    as can be. Where none of these are, no form is, and they are looked for in a fraction of the time."""
    middles = {form: form[max(0, len(form) // 2 - 8) :][:16] for form in forms}
    held = {
        form: [text[i : i + ANCHOR] for i in range(max(1, len(text) - ANCHOR + 1))] for form, text in middles.items()
    }
    counts = Counter(chain.from_iterable(held.values()))
    found: dict[str, set[str]] = {}
    for form, parts in held.items():
        found.setdefault(max(parts, key=counts.__getitem__), set()).add(form)
    return found


def _present(stretches: Collection[str], text: str) -> set[str]:
    """Those of `stretches` that are in `text`. In a long one, whether a single character is takes a tenth of the time
    to tell."""
    if len(text) > REMEMBERED:
        there = {character for character in set("".join(stretches)) if character in text}
        stretches = {stretch for stretch in stretches if there.issuperset(stretch)}
    return {stretch for stretch in stretches if stretch in text}


def _escaped_forms(value: str) -> list[str]:
    """What `value` looks like inside a JSON string, with and without escaped slashes, and inside HTML."""
    quoted = json.dumps(value)[1:-1]
    return [quoted, quoted.replace("/", "\\/"), html.escape(value)]


def _spelt_out(value: str) -> list[str]:
    """What `value` looks like with every character escaped, in a URL and in a JSON string."""
    codes = [ord(char) for char in value]
    urls = ("".join(f"%{code:02x}" for code in codes), "".join(f"%{code:02X}" for code in codes))
    strings = ("".join(f"\\u{code:04x}" for code in codes), "".join(f"\\u{code:04X}" for code in codes))
    return [*urls, *strings]


def _base64_forms(value: str) -> list[str]:
    """What `value` looks like inside base64, at each of the three alignments, without the ends that depend on its
    neighbours."""
    forms = []
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + value.encode()).decode().rstrip("=")
        skip = (0, 2, 3)[lead]
        core = encoded[skip:] if (lead + len(value.encode())) % 3 == 0 else encoded[skip:-1]
        if len(core) >= SHORTEST_BASE64:
            forms += [core, core.replace("+", "-").replace("/", "_")]
    return forms


class Recorder:
    """Keeps what one process sent for one target: its exchanges with the service, in the order in which requests were
    made, and the messages to the state provider."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.exchanges: list[Exchange] = []
        self.messages: list[dict[str, Any]] = []
        self.check = ""
        self._left = RECORDED_IN_ALL
        self._texts: dict[str, str] = {}

    def begin(self, request: Request, url: str, headers: Headers, via: str) -> Exchange:
        """A new exchange for `request`, with the clock started; `headers` are all that will be sent."""
        clean = self.redactor.clean
        return Exchange(
            method=request.method,
            url=clean(url),
            request_headers=[(name, request.credential.shown(name, value) or clean(value)) for name, value in headers],
            credential=request.credential.label,
            operation=request.operation.value,
            allowed=request.allowed.name,
            order_id=None if request.order_id is None else clean(request.order_id),
            request_body=None if request.body is None else clean(request.body.decode("utf-8", "replace")),
            shell_headers=[
                f"{name}: {request.credential.shell or request.credential.shown(name, value)}"
                for name, value in request.credential.headers
            ],
            started=time.time(),
            via=via,
            check=self.check,
        )

    def answer(self, exchange: Exchange, headers: Headers, body: bytes, extra: bytes = b"") -> None:
        """Write header fields, body, and what followed it into `exchange`, cleaned and cut."""
        text = body[:RECORDED_BODY].decode("utf-8", "surrogateescape")
        exchange.revealed_key = self.redactor.reveals(text) or any(self.redactor.reveals(v) for _, v in headers)
        exchange.headers = [(self.redactor.clean(name), self.redactor.clean(value)) for name, value in headers]
        cleaned = self.redactor.clean(text)
        exchange.body = self._kept(cleaned, whole=len(body) <= RECORDED_BODY)
        exchange.body_size = len(body)
        exchange.body_sha256 = hashlib.sha256(body).hexdigest()
        exchange.body_cut = len(body) > RECORDED_BODY or len(exchange.body) < len(cleaned)
        exchange.extra = self.redactor.clean(extra.decode("latin-1"))

    def end(self, exchange: Exchange) -> None:
        """Stop the clock of `exchange`."""
        exchange.seconds = round(max(0.0, time.time() - exchange.started), 6)
        exchange.reason = self.redactor.clean(exchange.reason)
        exchange.detail = self.redactor.clean(exchange.detail)

    def keep(self, exchange: Exchange) -> None:
        """Put `exchange`, which has been judged, on record: what the judges quote is cleaned as well."""
        clean = self.redactor.clean
        for row, problem in exchange.findings.items():
            exchange.findings[row] = problem and clean(problem)
        for row, reason in exchange.undecided.items():
            exchange.undecided[row] = clean(reason)
        self.exchanges.append(exchange)

    def _kept(self, text: str, *, whole: bool) -> str:
        """What is kept of a body: equal ones once, and no more than there is room for."""
        if len(text) <= BEGINNING or text in self._texts:
            return self._texts.get(text, text)
        size = len(json.dumps(text))
        if size > self._left or not whole:
            return text[:BEGINNING]
        self._left -= size
        return self._texts.setdefault(text, text)

    def message(self, message: dict[str, Any]) -> None:
        """Keep a message to the state provider with what came of it, cleaned."""
        self.messages.append({"check": self.check, **self._cleaned(message)})

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

    def since(self, mark: int) -> list[Exchange]:
        """The exchanges kept after the first `mark` of them."""
        return self.exchanges[mark:]


#: Header fields that a curl line leaves to curl, and those that it has to forbid where they were not sent.
CURLS = frozenset({"host", "accept-encoding", "connection", "content-length", "user-agent"})
UNASKED = ("User-Agent", "Accept")


def curl(exchange: Exchange, key_variable: str) -> str:
    """A command line that repeats `exchange`, with the key as `$key_variable`."""
    words = ["curl -sS -i"]
    if exchange.method != "GET":
        words.append(f"-X {exchange.method}")
    for field_ in exchange.shell_headers:
        named = re.sub(r"\$(?:\{KEY([^}]*)\}|KEY\b)", rf"${{{key_variable}\1}}", _in_double_quotes(field_))
        words.append(f'-H "{named}"')
    words += [f"-H {_in_single_quotes(field_)}" for field_ in _unusual(exchange)]
    if exchange.request_body is not None:
        words.append(f"--data-binary {_in_single_quotes(exchange.request_body)}")
    words.append(_in_single_quotes(exchange.url))
    return " ".join(words)


def _unusual(exchange: Exchange) -> list[str]:
    """The header fields of `exchange`, credentials aside, that curl would send otherwise, or does not know of."""
    sent = {name.lower(): f"{name}: {value}" for name, value in exchange.request_headers}
    known = CURLS | {field_.partition(":")[0].lower() for field_ in exchange.shell_headers}
    unusual = [field_ for name, field_ in sent.items() if name not in known and field_.lower() != "accept: */*"]
    return [*unusual, *(f"{name}:" for name in UNASKED if name.lower() not in sent)]


def _in_double_quotes(text: str) -> str:
    # What a credential's `shell` writes in terms of $KEY stays for the shell to fill in.
    return re.sub(r'["\\`]', r"\\\g<0>", text)


def _in_single_quotes(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
