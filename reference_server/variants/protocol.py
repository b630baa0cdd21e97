"""Other HTTP: versions, framing, compression, headers."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..registry import variant


def _head(service: Service, change: Callable[[bytes], bytes]) -> None:
    """Changes the status line and the headers of every response, the empty line after them left out."""

    def on_the_wire(request: Request, response: Response, data: bytes) -> bytes:
        head, end, body = data.partition(b"\r\n\r\n")
        return change(head) + end + body

    amend.wire(service, on_the_wire)


def _headers(service: Service, *lines: bytes) -> None:
    """Adds header lines to every response."""
    _head(service, lambda head: b"\r\n".join((head, *lines)))


def _body(service: Service, change: Callable[[Request, bytes], tuple[bytes, bytes] | None]) -> None:
    """Frames bodies in another way; the change is given a body, gives header lines and the bytes to send."""

    def on_the_wire(request: Request, response: Response, data: bytes) -> bytes:
        head, end, body = data.partition(b"\r\n\r\n")
        changed = change(request, body) if body else None
        if not changed:
            return data
        lines, sent = changed
        return head.replace(b"Content-Length: %d" % len(body), lines, 1) + end + sent

    amend.wire(service, on_the_wire)


def _close(service: Service) -> None:
    """Ends the connection with every response."""
    inner = service.write

    def write(request: Request, response: Response) -> bytes:
        response.close = True
        return inner(request, response)

    service.write = write


# --- versions and connections ---


@variant()
def speaks_http_1_0(service: Service) -> None:
    """Answers as HTTP/1.0 and closes every connection."""
    _close(service)
    _head(service, lambda head: head.replace(b"HTTP/1.1", b"HTTP/1.0", 1))


@variant()
def closes_every_connection(service: Service) -> None:
    """Closes every connection after its first response, and says so."""
    _close(service)


@variant()
def closes_connections_now_and_then(service: Service) -> None:
    """Closes the connection after every third response, and says so."""
    due = amend.every(3)

    def change(request: Request, response: Response) -> None:
        response.close |= due()

    amend.responses(service, change)


@variant()
def sends_early_hints(service: Service) -> None:
    """Sends an interim response before the final one."""
    amend.wire(
        service,
        lambda request, _, data: b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n" + data,
    )


@variant()
def sends_100_continue_unasked(service: Service) -> None:
    """Sends two interim responses with status 100 before the final one."""
    amend.wire(service, lambda request, _, data: b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + data)


# --- framing ---


def _chunks(body: bytes, size: int, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    framed = b"".join(b"%X%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces)
    return framed + b"0\r\n" + trailer + b"\r\n"


@variant()
def sends_chunks(service: Service) -> None:
    """Sends every body in chunks of 1,000 bytes."""
    _body(service, lambda request, body: (b"Transfer-Encoding: chunked", _chunks(body, 1000)))


@variant()
def sends_chunks_with_extensions_and_trailers(service: Service) -> None:
    """Sends every body in small chunks with extensions, and headers after the last."""
    _body(
        service,
        lambda request, body: (
            b"Trailer: X-Checksum\r\nTransfer-Encoding: chunked",
            _chunks(body, 97, b';note="a b"', b"X-Checksum: 1\r\n"),
        ),
    )


@variant()
def ends_bodies_by_closing(service: Service) -> None:
    """Sends bodies without a length and closes the connection at their end."""
    _close(service)
    _body(service, lambda request, body: (b"X-Length: unknown", body))


def _compressed(service: Service, name: str, window: int) -> None:
    def change(request: Request, body: bytes) -> tuple[bytes, bytes] | None:
        if name not in request.headers.get("accept-encoding", ""):
            return None
        compressor = zlib.compressobj(wbits=window)
        sent = compressor.compress(body) + compressor.flush()
        lines = f"Content-Encoding: {name}\r\nVary: Accept-Encoding\r\nContent-Length: {len(sent)}"
        return lines.encode(), sent

    _body(service, change)


@variant()
def compresses_with_gzip(service: Service) -> None:
    """Compresses bodies with gzip for clients that accept it."""
    _compressed(service, "gzip", 31)


@variant()
def names_a_coding_of_no_body(service: Service) -> None:
    """Sends Content-Encoding: br with 204."""

    def change(request: Request, response: Response) -> None:
        if response.status == 204:
            response.headers["Content-Encoding"] = "br"

    amend.responses(service, change)


@variant()
def compresses_with_deflate(service: Service) -> None:
    """Compresses bodies with deflate for clients that accept it."""
    _compressed(service, "deflate", 15)


# --- headers ---


@variant()
def writes_header_names_in_small_letters(service: Service) -> None:
    """Writes every header name in small letters."""
    _head(service, lambda head: re.sub(rb"\r\n[^:]+:", lambda name: name[0].lower(), head))


@variant()
def writes_header_names_in_capitals(service: Service) -> None:
    """Writes every header name in capitals, with no blank after the colon."""
    _head(service, lambda head: re.sub(rb"\r\n([^:]+:) ", lambda name: b"\r\n" + name[1].upper(), head))


def _media_type(service: Service, media_type: bytes) -> None:
    _head(service, lambda head: head.replace(b"Content-Type: application/json", b"Content-Type: " + media_type))


@variant()
def writes_the_media_type_in_capitals(service: Service) -> None:
    """Labels bodies Application/JSON; Charset=UTF-8."""
    _media_type(service, b"Application/JSON; Charset=UTF-8")


@variant()
def writes_the_media_type_with_quotes(service: Service) -> None:
    """Labels bodies with parameters in quotes and blanks around the semicolons."""
    _media_type(service, b'application/json ; charset="utf-8" ; note="a;b"')


@variant()
def says_nothing_in_the_status_line(service: Service) -> None:
    """Sends an empty reason phrase."""
    _head(service, lambda head: re.sub(rb"^(HTTP/1.1 [0-9]{3} )[^\r]*", rb"\1", head))


@variant()
def says_other_things_in_the_status_line(service: Service) -> None:
    """Sends reason phrases of its own."""
    _head(service, lambda head: re.sub(rb"^(HTTP/1.1 [0-9]{3} )[^\r]*", rb"\1As you like it", head))


@variant()
def sends_many_headers(service: Service) -> None:
    """Sends the headers of gateways: policies, cookies, entity tags, limits, 4 KB in one line."""
    _headers(
        service,
        b"Set-Cookie: a=b; HttpOnly",
        b"Set-Cookie: c = d ; Path=/",
        b"Set-Cookie: e=f\t; Secure",
        b"Set-Cookie: =g",
        b"Set-Cookie: ",
        b"Strict-Transport-Security: max-age=63072000",
        b"RateLimit-Limit: 100",
        b"RateLimit-Remaining: 1",
        b"ETag: W/\"1\"",
        b"Vary: *",
        b"Server: ",
        b"Content-Security-Policy: " + b"default-src 'none'; " * 200,
    )  # fmt: skip


def _sum(response: Response) -> str:
    """A strong entity tag of a body."""
    return f'"{zlib.crc32(response.body):08x}"'


@variant()
def tags_listings_by_their_bytes(service: Service) -> None:
    """Gives the listing an entity tag, and answers 304 to whoever has the same one already."""
    amend.tagged(service, _sum)


@variant()
def dates_listings(service: Service) -> None:
    """Says when the listing became what it is, and answers 304 to whoever has one of the same second."""
    since: dict[bytes, float] = {}

    def seconds(response: Response) -> float:
        if response.body not in since:
            since.clear()
        return since.setdefault(response.body, time.time())

    amend.dated(service, seconds)


@variant()
def takes_no_conditions(service: Service) -> None:
    """Gives the listing an entity tag, and answers 400 to whoever asks for another one."""
    amend.tagged(service, _sum, 400)


@variant()
def lives_in_another_time(service: Service) -> None:
    """Sends a Date of the year 1999."""
    _head(service, lambda head: re.sub(rb"\r\nDate: [^\r]*", b"\r\nDate: Fri, 31 Dec 1999 23:59:59 GMT", head))


@variant()
def has_no_clock(service: Service) -> None:
    """Sends no Date."""
    _head(service, lambda head: re.sub(rb"\r\nDate: [^\r]*", b"", head))


@variant()
def leaves_bodies_unread(service: Service) -> None:
    """Leaves the body of a request unread, as http.server does, so that it takes this for the beginning of the next
    request on the connection, whose method it does not know then (501)."""
    unread: set[int] = set()

    def answer(request: Request) -> Response | None:
        misread = request.connection in unread
        if request.body:
            unread.add(request.connection)
        return Response(501, b"<p>No such method.", {"Content-Type": "text/html"}, close=True) if misread else None

    amend.before(service, answer)
