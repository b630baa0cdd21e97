"""HTTP/1.1 on the wire: bytes to a request, a response to bytes (RFC 9112). No sockets, no service.

The handlers of `http.server` call this instead of their own `parse_request`: that one uses the header parser for
mail, which costs more than everything else here together, and leaves bodies, chunks, limits and deadlines to its user.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from http import HTTPStatus

from .messages import Request, Response

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
_TARGET = re.compile(r"[\x21-\x7e\x80-\xff]+")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[^\n]*)?")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


# How much of a request is read before it is refused: bytes of a line and of the whole head, headers, bytes of the body.
_MOST_LINE = 8 * 1024
_MOST_HEAD = 64 * 1024
_MOST_HEADERS = 100
MOST_BODY = 1024 * 1024


class RejectedError(Exception):
    """What was received is no request; `status` and `message` say how to refuse it."""

    def __init__(self, status: int, message: str) -> None:
        """Takes the HTTP status and a text for people that quotes nothing of what was received."""
        super().__init__(message)
        self.status = status
        self.message = message


class DisconnectedError(Exception):
    """The client went away, or stayed silent, between two requests or in the middle of one."""


class Stream:
    """What a client sends, in whole lines and known lengths instead of the pieces in which it arrives."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        """Takes a function that gives the next bytes, and none at the end."""
        self._receive = receive
        self._buffer = b""

    def fill(self) -> None:
        """Waits for more bytes."""
        received = self._receive()
        if not received:
            raise DisconnectedError
        self._buffer += received

    def wait(self) -> None:
        """Waits until there is a byte to read."""
        while not self._buffer:
            self.fill()

    def head(self) -> str:
        """The request line and the headers, without the empty line that ends them."""
        self._buffer = self._buffer.lstrip(b"\r\n")
        while not (end := _END_OF_HEAD.search(self._buffer)):
            self._check_head(self._buffer)
            self.fill()
            if self._buffer[:2] in (b"\r\n", b"\n"):
                self._buffer = self._buffer.lstrip(b"\r\n")
        head, self._buffer = self._buffer[: end.start()], self._buffer[end.end() :]
        self._check_head(head)
        return head.decode("latin-1")

    @staticmethod
    def _check_head(head: bytes) -> None:
        if head and not _TOKEN.match(head[:1].decode("latin-1")):  # TLS, for one, whose client waits for an answer
            raise RejectedError(400, "The request line is malformed.")
        if len(head) > _MOST_LINE and head.find(b"\n", 0, _MOST_LINE + 2) < 0:
            raise RejectedError(414, "The request line is too long.")
        if len(head) > _MOST_HEAD:
            raise RejectedError(431, "The request headers are too long.")

    def line(self, limit: int) -> bytes:
        """The next line without its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > limit:
                raise RejectedError(400, "A line of the chunked body is too long.")
            self.fill()
        line, self._buffer = self._buffer[:end], self._buffer[end + 1 :]
        return line.removesuffix(b"\r")

    def exactly(self, length: int) -> bytes:
        """The next so many bytes."""
        pieces = [self._buffer]
        missing = length - len(self._buffer)
        while missing > 0:  # collected apart: appending to one buffer would copy it with every piece
            self._buffer = b""
            self.fill()
            pieces.append(self._buffer)
            missing -= len(self._buffer)
        whole = b"".join(pieces)
        self._buffer = whole[length:]
        return whole[:length]


def read_request(stream: Stream, most_body: int, connection: int, go_on: Callable[[bytes], object]) -> Request:
    """Reads one request with its body.

    Takes the stream, how many bytes its body may have, the number of the connection, and a function that sends the
    interim answer for which a client may wait before it sends its body. Raises `RejectedError` for what is no request.
    """
    first, *lines = stream.head().replace("\r\n", "\n").split("\n")
    method, target, version = _request_line(first)
    headers = _headers(lines)
    if version == "1.1" and ("host" not in headers or "," in headers["host"]):
        raise RejectedError(400, "A request needs exactly one Host header.")
    body = _body(stream, headers, version, most_body, go_on) if _has_body(headers) else b""
    if not target.startswith("/"):  # the absolute form, as sent to proxies
        target = "/" + target.partition("://")[2].partition("/")[2] if "://" in target else target
    path, _, query = target.partition("?")
    close = version == "1.0" or "close" in headers.get("connection", "").lower()
    return Request(method, path, query, headers, body, connection, close, lines)


def _request_line(line: str) -> tuple[str, str, str]:
    parts = line.split(" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
        raise RejectedError(400, "The request line is malformed.")
    method, target, protocol = parts
    if protocol in ("HTTP/1.1", "HTTP/1.0"):
        return method, target, protocol[5:]
    if re.fullmatch(r"HTTP/[0-9]\.[0-9]", protocol):
        raise RejectedError(505, "This version of HTTP is not supported.")
    raise RejectedError(400, "The request line is malformed.")


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > _MOST_HEADERS:
        raise RejectedError(431, "There are too many request headers.")
    headers: dict[str, str] = {}
    for line in lines:
        header = _HEADER.fullmatch(line)
        if not header:
            raise RejectedError(400, "A request header is malformed.")
        name, value = header[1].lower(), header[2]
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _has_body(headers: dict[str, str]) -> bool:
    return "content-length" in headers or "transfer-encoding" in headers


def _body(
    stream: Stream, headers: dict[str, str], version: str, most_body: int, go_on: Callable[[bytes], object]
) -> bytes:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and (length is not None or version == "1.0"):
        raise RejectedError(400, "The length of the request body is ambiguous.")
    if coding is not None and coding.lower() != "chunked":
        raise RejectedError(501, "This transfer coding is not supported.")
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 20):
        raise RejectedError(400, "The Content-Length of the request is malformed.")
    if length is not None and int(length) > most_body:
        raise RejectedError(413, "The request body is too long.")
    expectation = headers.get("expect", "")
    if expectation and version == "1.1":
        if expectation.lower() != "100-continue":
            raise RejectedError(417, "This expectation cannot be met.")
        go_on(CONTINUE)
    return stream.exactly(int(length)) if length is not None else _chunks(stream, most_body)


def _chunks(stream: Stream, most_body: int) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while True:
        size = _CHUNK_SIZE.fullmatch(stream.line(_MOST_LINE))
        if not size:
            raise RejectedError(400, "The chunked body is malformed.")
        length = int(size[1], 16)
        total += length
        if total > most_body:
            raise RejectedError(413, "The request body is too long.")
        if length == 0:
            break
        chunks.append(stream.exactly(length))
        if stream.line(2):
            raise RejectedError(400, "The chunked body is malformed.")
    trailers = 0
    while stream.line(_MOST_LINE):
        trailers += 1
        if trailers > _MOST_HEADERS:
            raise RejectedError(431, "There are too many trailers.")
    return b"".join(chunks)


def render(request: Request, response: Response) -> bytes:
    """Takes a response and the request it answers, gives every byte to send.

    204 ends with its headers: no body, no `Content-Length`, no `Transfer-Encoding` (section 4.2 of the
    specification; RFC 9110, section 8.6). HEAD has the headers of GET and no body.
    """
    status = response.status
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}", f"Date: {http_date()}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    has_body = status >= 200 and status not in (204, 304)
    if has_body:
        lines.append(f"Content-Length: {len(response.body)}")
    if response.close:
        lines.append("Connection: close")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head + response.body if has_body and request.method != "HEAD" else head


_date = (0, "")


def http_date() -> str:
    """The time now as an HTTP date (RFC 9110, section 5.6.7), made once a second."""
    global _date
    now = int(time.time())
    if _date[0] != now:  # the pair is replaced as one, so threads never see a time with another's text
        _date = (now, time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now)))
    return _date[1]
