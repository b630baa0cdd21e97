"""`evidence.har`: every exchange of a run as HTTP Archive (HAR) 1.2, and back.

The format is that of w3c.github.io/web-performance/specs/HAR; browsers, proxies and editors open it. What it has no
field for is in fields of our own, which begin with an underscore as the format demands. A request without an answer has
the status 0, as in browsers. A long body that occurred before is not written again: `_body_of` has the number of the
exchange that shows it. There is one entry per line.

The messages to the state provider are evidence, too: they are in `_messages`, before the entries.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict
from urllib.parse import parse_qsl

import harfile
import msgspec

from conformance.reporting.run import Run
from conformance.transport.evidence import Exchange, first_field

#: The fields of an exchange that HAR has no name for, written with an underscore before them.
_OWN = (
    "number",
    "check",
    "findings",
    "credential",
    "operation",
    "allowed",
    "order_id",
    "shell_headers",
    "started",
    "seconds",
    "via",
    "trouble",
    "detail",
    "revealed_key",
    "body_sha256",
    "body_cut",
)
#: Likewise, and written only where there is something to say.
_SPARE = ("shell_user", "key_plain", "undecided", "proven", "extra", "kept_open", "waited", "crowded")
_USUAL = {
    own.name: own.default if own.default_factory is MISSING else own.default_factory()
    for own in fields(Exchange)
    if own.name in _SPARE
}
#: Characters of a body from which on it is written once.
_LONG = 4096
_ENCODER = msgspec.json.Encoder()


class HarError(ValueError):
    """What was given is not an `evidence.har` that this suite wrote; the message says why."""


class _Params(TypedDict, total=False):
    ids: list[Any]


class _Message(TypedDict, total=False):
    """What readers rely on in a message to the state provider."""

    params: _Params
    answer: dict[str, Any]


@dataclass(frozen=True)
class Archive:
    """What is in an `evidence.har`: exchanges in the order of their numbers, messages to the state provider."""

    suite_version: str
    exchanges: list[Exchange]
    messages: list[dict[str, Any]]


def render(run: Run) -> Iterator[str]:
    """The evidence of `run` as the text of a HAR file, in printable ASCII; line by line, since there may be a hundred
    megabytes of it."""
    log = {
        "version": "1.2",
        "creator": {"name": "store-orders-conformance", "version": run.suite_version},
        "comment": f"{run.target}: {run.base_url}",
        "_messages": list(run.messages),
    }
    yield f'{{"log": {_line(log)[:-1]}, "entries": [\n'
    first: dict[str, int] = {}  # long bodies, and which exchange shows each
    for place, exchange in enumerate(run.exchanges, 1):
        yield f"{_line(_entry(exchange, first))}{',' if place < len(run.exchanges) else ''}\n"
    yield "]}}\n"


def _line(data: dict[str, Any]) -> str:
    """`data` in printable ASCII: msgspec takes a seventh of the time, and escapes nothing that JSON can do without."""
    with suppress(UnicodeEncodeError):  # surrogates: bytes that are no UTF-8
        line = _ENCODER.encode(data)
        if line.isascii() and b"\x7f" not in line:
            return line.decode()
    return json.dumps(data, separators=(",", ":")).replace("\x7f", "\\u007f")


def _entry(exchange: Exchange, first: dict[str, int]) -> dict[str, Any]:
    milliseconds = round(exchange.seconds * 1000, 3)
    shown_by = first.setdefault(exchange.body, exchange.number) if len(exchange.body) >= _LONG else exchange.number
    again = shown_by if shown_by != exchange.number else None
    response = _response(exchange, again).asdict()
    if again is not None:
        response["content"]["_body_of"] = again
    return {
        "startedDateTime": datetime.fromtimestamp(exchange.started, UTC).isoformat(),
        "time": milliseconds,
        "request": _request(exchange).asdict(),
        "response": response,
        "timings": harfile.Timings(send=0, wait=milliseconds, receive=0).asdict(),
        "cache": {},
        "comment": f"{exchange.check}: {exchange.line} -> {exchange.received}",
        **{f"_{name}": getattr(exchange, name) for name in _OWN},
        **{f"_{name}": value for name in _SPARE if (value := getattr(exchange, name)) != _USUAL[name]},
    }


def read(text: str | bytes) -> Archive:
    """What is in a HAR file that `render` wrote. Raises HarError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HarError(f"not JSON: {error}") from error
    try:
        log = data["log"]
        exchanges = sorted((_exchange(entry) for entry in log["entries"]), key=lambda exchange: exchange.number)
        _fill_in(exchanges, log["entries"])
        messages = log.get("_messages", [])
        msgspec.convert(messages, list[_Message])
        return Archive(log["creator"]["version"], exchanges, messages)
    except KeyError as error:
        raise HarError(f"not written by this suite: no {error.args[0]!r}") from error
    except (TypeError, AttributeError, ValueError, OverflowError, OSError, msgspec.ValidationError) as error:
        raise HarError(f"not a HAR file: {error}") from error


def _fill_in(exchanges: Iterable[Exchange], entries: Iterable[dict[str, Any]]) -> None:
    """Give the exchanges whose body was written with another one theirs."""
    by_number = {exchange.number: exchange for exchange in exchanges}
    for entry in entries:
        shown_by = entry["response"]["content"].get("_body_of")
        if shown_by is not None:
            by_number[entry["_number"]].body = by_number[shown_by].body


def _request(exchange: Exchange) -> harfile.Request:
    body = exchange.request_body
    query = exchange.url.partition("?")[2]
    return harfile.Request(
        method=exchange.method,
        url=exchange.url,
        httpVersion=exchange.http_version or "HTTP/1.1",
        headers=_records(exchange.request_headers),
        queryString=_records(parse_qsl(query, keep_blank_values=True)),
        postData=None
        if body is None
        else harfile.PostData(first_field(exchange.request_headers, "content-type"), text=body),
        bodySize=len((body or "").encode("utf-8", "surrogatepass")),
    )


def _response(exchange: Exchange, again: int | None) -> harfile.Response:
    """The answer; without its body where that of the exchange `again` is the same."""
    return harfile.Response(
        status=exchange.status or 0,
        statusText=exchange.reason,
        httpVersion=exchange.http_version,
        headers=_records(exchange.headers),
        content=_content(exchange, again),
        redirectURL=first_field(exchange.headers, "location"),
        comment=exchange.received if exchange.status is None else None,
    )


def _content(exchange: Exchange, again: int | None) -> harfile.Content:
    body: str | None = exchange.body
    encoding = note = None
    if again is not None:
        body, note = None, f"the same body as in exchange {again}"
    elif not exchange.body.isascii():
        try:
            exchange.body.encode()
        except UnicodeEncodeError:  # no UTF-8: other readers could make nothing of it as text
            body, encoding = base64.b64encode(exchange.raw_body).decode(), "base64"
    if exchange.body_cut:
        kept = len(exchange.raw_body)
        note = f"the first {kept:,} of {exchange.body_size:,} bytes, sha256 of all {exchange.body_sha256}"
    return harfile.Content(
        size=exchange.body_size,
        mimeType=first_field(exchange.headers, "content-type"),
        text=body,
        encoding=encoding,
        comment=note,
    )


def _records(pairs: list[tuple[str, str]]) -> list[harfile.Record]:
    return [harfile.Record(name, value) for name, value in pairs]


def _exchange(entry: dict[str, Any]) -> Exchange:
    request, response = entry["request"], entry["response"]
    content, posted = response["content"], request.get("postData")
    body = content.get("text", "")
    if content.get("encoding") == "base64":
        body = base64.b64decode(body, validate=True).decode("utf-8", "surrogateescape")
    data = {
        **{name: entry[f"_{name}"] for name in _OWN},
        **{name: entry[f"_{name}"] for name in _SPARE if f"_{name}" in entry},
        "method": request["method"],
        "url": request["url"],
        "request_headers": [(record["name"], record["value"]) for record in request["headers"]],
        "request_body": None if posted is None else posted["text"],
        "status": response["status"] or None,
        "reason": response["statusText"],
        "http_version": response["httpVersion"],
        "headers": [(record["name"], record["value"]) for record in response["headers"]],
        "body": body,
        "body_size": content["size"],
    }
    exchange = msgspec.convert(data, Exchange)  # whose types the writers rely on
    # And on this: a moment, spans of time that are finite, a body that has bytes.
    datetime.fromtimestamp(exchange.started, UTC)
    timedelta(seconds=exchange.seconds + (exchange.waited or 0))
    exchange.body.encode("utf-8", "surrogateescape")
    return exchange
