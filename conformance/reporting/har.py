"""`evidence.har`: every exchange of a run as HTTP Archive (HAR) 1.2, and back.

The format is that of w3c.github.io/web-performance/specs/HAR; browsers, proxies and editors open it. What
it has no name for stands in fields of our own, which begin with an underscore as the format demands. A
request that got no answer has the status 0, as browsers write it.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import harfile

from conformance.reporting.run import Run
from conformance.transport.evidence import Exchange

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


class HarError(ValueError):
    """What was given is not an `evidence.har` that this suite wrote; the message says why."""


def render(run: Run) -> str:
    """The exchanges of `run` as the text of a HAR file, in printable ASCII, in the order of their numbers."""
    written = io.StringIO()
    creator = harfile.Creator("store-orders-conformance", run.suite_version)
    with harfile.HarFile.open(written, creator=creator, comment=f"{run.target}: {run.base_url}") as har:
        for exchange in run.exchanges:
            _add(har, exchange)
    document = json.loads(written.getvalue())
    for entry, exchange in zip(document["log"]["entries"], run.exchanges, strict=True):
        entry.update({f"_{name}": getattr(exchange, name) for name in _OWN})
    return json.dumps(document, indent=1).replace("\x7f", "\\u007f") + "\n"


def read(text: str | bytes) -> list[Exchange]:
    """The exchanges in a HAR file that `render` wrote, in the order of their numbers. Raises HarError."""
    try:
        entries = json.loads(text)["log"]["entries"]
        return sorted((_exchange(entry) for entry in entries), key=lambda exchange: exchange.number)
    except (ValueError, RecursionError) as error:
        raise HarError(f"not JSON: {error}") from error
    except KeyError as error:
        raise HarError(f"not written by this suite: no {error.args[0]!r}") from error
    except (TypeError, AttributeError) as error:
        raise HarError(f"not a HAR file: {error}") from error


def _add(har: harfile.HarFile, exchange: Exchange) -> None:
    milliseconds = round(exchange.seconds * 1000, 3)
    har.add_entry(
        startedDateTime=datetime.fromtimestamp(exchange.started, UTC),
        time=milliseconds,
        request=_request(exchange),
        response=_response(exchange),
        timings=harfile.Timings(send=0, wait=milliseconds, receive=0),
        comment=f"{exchange.check}: {exchange.line} -> {exchange.received}",
    )


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
        else harfile.PostData(_field(exchange.request_headers, "content-type"), text=body),
        bodySize=len((body or "").encode("utf-8", "surrogatepass")),
    )


def _response(exchange: Exchange) -> harfile.Response:
    kept = len(exchange.body.encode("utf-8", "surrogatepass"))
    note = f"the first {kept:,} of {exchange.body_size:,} bytes, sha256 of all {exchange.body_sha256}"
    return harfile.Response(
        status=exchange.status or 0,
        statusText=exchange.reason,
        httpVersion=exchange.http_version,
        headers=_records(exchange.headers),
        content=harfile.Content(
            size=exchange.body_size,
            mimeType=_field(exchange.headers, "content-type"),
            text=exchange.body,
            comment=note if exchange.body_cut else None,
        ),
        redirectURL=_field(exchange.headers, "location"),
        comment=exchange.received if exchange.status is None else None,
    )


def _records(pairs: list[tuple[str, str]]) -> list[harfile.Record]:
    return [harfile.Record(name, value) for name, value in pairs]


def _field(headers: list[tuple[str, str]], name: str) -> str:
    return next((value for own, value in headers if own.lower() == name), "")


def _exchange(entry: dict[str, Any]) -> Exchange:
    request, response = entry["request"], entry["response"]
    content, posted = response["content"], request.get("postData")
    return Exchange(
        **{name: entry[f"_{name}"] for name in _OWN},
        method=request["method"],
        url=request["url"],
        request_headers=[(record["name"], record["value"]) for record in request["headers"]],
        request_body=None if posted is None else posted["text"],
        status=response["status"] or None,
        reason=response["statusText"],
        http_version=response["httpVersion"],
        headers=[(record["name"], record["value"]) for record in response["headers"]],
        body=content.get("text", ""),
        body_size=content["size"],
    )
