"""An answer as checks see it, and what can be read in it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from conformance.contract.jsontext import JsonText, NotJson, parse
from conformance.contract.listing import Listing
from conformance.contract.traces import Traces, traces
from conformance.contract.transitions import State
from conformance.transport.evidence import Exchange
from conformance.transport.request import Headers, Request
from conformance.transport.sightings import Sightings, sightings

#: Most services give the same few answers again and again. Their bodies, and what was parsed from them, are kept for
#: later answers with the same body: up to so many bytes each, and so many bodies. Longer ones are shared only while a
#: check holds one.
KEPT, MOST_KEPT = 256 * 1024, 32
#: A quoted value of a parameter, in which a comma or a semicolon separates nothing.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?$)')


class Text:
    """A body, and what can be read in it."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    @property
    def json(self) -> JsonText:
        """The body as JSON. Raises NotJson."""
        if isinstance(self._read, NotJson):
            raise self._read.with_traceback(None)
        return self._read

    @cached_property
    def _read(self) -> JsonText | NotJson:
        try:
            return parse(self.body)
        except NotJson as error:
            return error

    @cached_property
    def listing(self) -> Listing | None:
        """The body as a listing; None if it is not a JSON array."""
        try:
            return Listing.read(self.body, lambda: self.json)
        except NotJson:
            return None

    @cached_property
    def sightings(self) -> Sightings:
        """What the body, as a listing, shows besides plain ids."""
        return sightings(self.body, self.listing)

    @cached_property
    def traces(self) -> Traces:
        """What the body of a failed request should not show."""
        return traces(self.body, None if isinstance(self._read, NotJson) else self._read)


@dataclass
class Answer:
    """A request and its answer as checks see them, in full; `exchange` is what goes on record."""

    request: Request
    exchange: Exchange
    headers: Headers = ()
    body: bytes = b""
    extra: bytes = b""  # what came after the end of the response on its connection (seen by `wire` only)
    before: State | None = None  # of a cancel: the state of its order when it was sent, where that is sure
    touched: bool = False  # whether the guard was told of a cancel
    lacking: tuple[int, ...] = ()  # orders of the suite's own, to which nothing was done, that a listing does not show
    aged: frozenset[int] = frozenset()  # of a listing: orders that the suite had been given a while before
    spared: frozenset[int] = frozenset()  # orders of these that were placed while the listing was under way
    sender: Callable[[Request], Answer] | None = field(default=None, repr=False)

    def repeat(self) -> Answer:
        """The answer to the same request, sent again."""
        return self.ask(self.request)

    def ask(self, request: Request) -> Answer:
        """The answer to another request, sent in the same way."""
        if self.sender is None:
            raise RuntimeError("an answer that was never kept cannot be asked for again")
        return self.sender(request)

    @property
    def status(self) -> int | None:
        """The HTTP status; None if there was no complete answer."""
        return self.exchange.status

    @property
    def succeeded(self) -> bool:
        """Whether the status is a 2xx."""
        return self.exchange.succeeded

    @property
    def client_error(self) -> bool:
        """Whether the status is a 4xx."""
        return self.status is not None and 400 <= self.status < 500

    def header(self, name: str) -> str | None:
        """The value of a header field, several of that name joined by commas (RFC 9110 section 5.3); None if there is
        none."""
        return self._fields.get(name.lower())

    @cached_property
    def _fields(self) -> dict[str, str]:
        return fields(self.headers)

    @property
    def media_type(self) -> str:
        """The media type without parameters, in lower case; empty if there is none. If several fields, or one field,
        give different types, all of them, joined by commas: clients disagree which one counts (RFC 9110 section
        8.3)."""
        plain = _QUOTED.sub("", self.header("content-type") or "")
        sent = (each.partition(";")[0].strip().lower() for each in plain.split(","))
        return ", ".join(dict.fromkeys(filter(None, sent)))

    @cached_property
    def text(self) -> Text:
        """The body as text. Answers of one client with the same body share it, and what was parsed from it."""
        return Text(self.body)

    @property
    def json(self) -> JsonText:
        """The body as JSON. Raises NotJson."""
        return self.text.json

    @property
    def json_object(self) -> dict[str, Any] | None:
        """The body as a JSON object; None if it is not one."""
        try:
            value = self.json.value
        except NotJson:
            return None
        return value if isinstance(value, dict) else None

    @property
    def listing(self) -> Listing | None:
        """The body as a listing; None if it is not a JSON array."""
        return self.text.listing


Observer = Callable[[Answer], None]


def fields(headers: Headers) -> dict[str, str]:
    """The values of header fields by their names in lower case, several of one name joined by commas (RFC 9110 section
    5.3)."""
    found: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def decoded(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Header fields as text, a character for each byte."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)


class Texts:
    """The bodies of one service; identical ones are held, and read, once."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[str, Text] = WeakValueDictionary()
        self._kept: deque[Text] = deque(maxlen=MOST_KEPT)

    def share(self, answer: Answer) -> None:
        """Let `answer` share the body, and what was parsed from it, with an earlier answer that has the same."""
        text = self._known.setdefault(answer.exchange.body_sha256, answer.text)
        if text is answer.text and len(text.body) <= KEPT:
            self._kept.append(text)
        if text.body == answer.body:  # as it is not where a record that is audited lies
            answer.text, answer.body = text, text.body
