"""Services that misbehave in every way, each below a path of its own on one port, and each by one small function.

/NAME/v1            misbehaves from the first request on
/NAME/after9/v1     is the reference server for nine requests, and misbehaves from then on
/NAME/cancels/v1    is the reference server, but misbehaves at cancels
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import urlsplit

from raw_service import Conversation, RawService, answer, head

LISTING = b'[{"id": 101, "petId": 1, "quantity": 1}]'
JSON = "Content-Type: application/json"
#: What acts on whoever shows it as it is: terminals, browsers, Markdown, XML, the log of a pipeline.
ACTING = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m<script>alert(1)</script>]]>\"'><img src=x onerror=alert(1)>"
    "\x00\x08\x0b\x7f::error title=owned::owned%0A::add-mask::x ![x](https://owned.example/x.png) `|` [/][bold]"
)


def for_ever(talk: Conversation, piece: bytes) -> None:
    """Send `piece` until the client has had enough."""
    block = piece * max(1, 65536 // len(piece))
    while not talk.ended.is_set():
        talk.send(block)


def silence(talk: Conversation) -> None:
    talk.ended.wait(60)


def cut(data: bytes) -> Callable[[Conversation], None]:
    def reply(talk: Conversation) -> None:
        talk.send(data)
        talk.hang_up()

    return reply


def endless(start: bytes, piece: bytes) -> Callable[[Conversation], None]:
    def reply(talk: Conversation) -> None:
        talk.send(start)
        for_ever(talk, piece)

    return reply


def trickled(data: bytes) -> Callable[[Conversation], None]:
    return lambda talk: talk.trickle(data, 0.1)


@cache
def gigabyte(coding: str) -> bytes:
    """A gigabyte of nothing in about a megabyte: gzip in a hundred members, deflate in one piece."""
    if coding == "gzip":
        return gzip.compress(b"\0" * 10_000_000) * 100
    packer = zlib.compressobj()
    return b"".join(packer.compress(b"\0" * 10_000_000) for _ in range(100)) + packer.flush()


def bomb(coding: str) -> Callable[[Conversation], None]:
    return lambda talk: cut(answer("200 OK", gigabyte(coding), f"Content-Encoding: {coding}"))(talk)


def long_string(talk: Conversation) -> None:
    size = 200_000_000
    talk.send(head("200 OK", JSON, f"Content-Length: {size + 4}") + b'["')
    for _ in range(200):
        talk.send(b"x" * 1_000_000)
    talk.send(b'"]')
    talk.hang_up()


def json_body(body: bytes) -> Callable[[Conversation], None]:
    return cut(answer("200 OK", body))


def injected(status: str) -> Callable[[Conversation], None]:
    """What acts on readers, wherever an answer has text; a head that holds controls is no head."""
    plain = "".join(char for char in ACTING if " " <= char <= "~")
    quoted = json.dumps(ACTING)
    body = f'{{"code": {quoted}, "message": {quoted}, "status": {quoted}, {quoted}: 1}}'
    if status.startswith("200"):
        body = f'[{{"id": {quoted}, "shipDate": {quoted}, {quoted}: 1, {quoted}: 2}}, {quoted}]'
    fields = (f"X-Acting: {plain}", f"WWW-Authenticate: Basic {plain}", f"Deprecation: {plain}")
    return cut(answer(f"{status} {plain}", body.encode(), *fields, media=f"application/{plain}"))


def key_everywhere(talk: Conversation) -> None:
    """The credential that came, in every part of the answer."""
    found = re.search(rb"(?i)authorization: *(?:bearer +)?([^\r]+)", talk.request)
    key = found[1].decode("latin-1") if found else "none"
    body = f'{{"code": "{key}", "message": "no {key[:12]} {key[6:]}", "status": 500}}'.encode()
    cut(answer(f"500 {key}", body, f"X-Key: {key}", f"Set-Cookie: {key}={key}"))(talk)


#: Name -> what it does once it has read a request.
BEHAVIOURS: dict[str, Callable[[Conversation], None]] = {
    "silent": silence,
    "head-for-ever": endless(b"HTTP/1.1 200 OK\r\n", b"X-Further: yes\r\n"),
    "line-for-ever": endless(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "slow-head": trickled(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: yes\r\n" * 999),
    "slow-body": trickled(head("200 OK", JSON, "Content-Length: 9999") + b" " * 9999),
    "ten-gigabytes": endless(head("200 OK", JSON, f"Content-Length: {10 * 2**30}"), b" "),
    "chunks-for-ever": endless(head("200 OK", JSON, "Transfer-Encoding: chunked"), b"1000\r\n" + b" " * 4096 + b"\r\n"),
    "crumbs-for-ever": endless(head("200 OK", JSON, "Transfer-Encoding: chunked"), b"1\r\n \r\n"),
    "until-closed-for-ever": endless(head("200 OK", JSON), b"[[[["),
    "gzip-bomb": bomb("gzip"),
    "deflate-bomb": bomb("deflate"),
    "interim-for-ever": endless(b"", head("102 Processing")),
    "slow-interim": trickled(head("103 Early Hints") * 99),
    "closes-at-once": cut(b""),
    "closes-in-status": cut(b"HTTP/1.1 2"),
    "closes-in-head": cut(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "closes-in-body": cut(answer("200 OK", LISTING)[:-5]),
    "closes-in-chunk": cut(head("200 OK", JSON, "Transfer-Encoding: chunked") + b"50\r\n[{"),
    "two-lengths": cut(head("200 OK", JSON, "Content-Length: 2", "Content-Length: 3") + b"[] "),
    "negative-length": cut(head("200 OK", JSON, "Content-Length: -1") + b"[]"),
    "odd-chunk": cut(head("200 OK", JSON, "Transfer-Encoding: chunked") + b"-5\r\n[]\r\n0\r\n\r\n"),
    "no-status-line": cut(b"[]\r\n\r\n"),
    "http-0.9": cut(LISTING),
    "http-9": cut(b"HTTP/9.9 200 OK\r\n\r\n[]"),
    "status-of-letters": cut(b"HTTP/1.1 OK 200\r\n\r\n[]"),
    "status-999": cut(answer("999 Odd", LISTING)),
    "switches-protocols": cut(head("101 Switching Protocols", "Upgrade: x") + b"\0" * 50),
    "answers-twice": cut(answer("200 OK", LISTING) * 2),
    "not-gzip": cut(answer("200 OK", LISTING, "Content-Encoding: gzip")),
    "not-asked-for": cut(answer("200 OK", LISTING, "Content-Encoding: br")),
    "half-gzip": cut(answer("200 OK", gzip.compress(LISTING)[:-9], "Content-Encoding: gzip")),
    "deep-arrays": json_body(b"[" * 100_000 + b"]" * 100_000),
    "deep-objects": json_body(b'[{"id": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]"),
    "long-numbers": json_body(b'[{"id": %b, "quantity": 1e%b}]' % (b"9" * 1_000_000, b"9" * 1_000_000)),
    "long-fraction": json_body(b'[{"id": 0.%b, "petId": -%b.5}]' % (b"1" * 1_000_000, b"7" * 1_000_000)),
    "long-string": long_string,
    "wide-string": json_body(b'["' + "🎉".encode() + b"x" * 15_000_000 + b'"]'),
    "many-values": json_body(b"[" + b"{}," * 5_000_000 + b"{}]"),
    "invalid-utf-8": json_body(b'[{"id": 101, "note": "\xff\xfe"}]'),
    "lone-surrogates": json_body(b'[{"id": 101, "shipDate": "\\ud800", "\\udfff": 1}]'),
    "doubled-names": json_body(b'[{"id": 101, "id": 102, "id": 103}]'),
    "not-a-number": json_body(b'[{"id": NaN, "petId": Infinity}]'),
    "nothing-but-nul": json_body(b"\0" * 1000),
    "redirects": cut(answer("307 Temporary Redirect", b"", "Location: /elsewhere/v1/store/orders")),
    "busy-for-ever": cut(answer("429 Too Many Requests", b"", "Retry-After: 1")),
    "busy-for-a-year": cut(answer("503 Service Unavailable", b"", "Retry-After: 31536000")),
    "acts-in-head": cut(answer(f"500 {ACTING[:60]}", b"", f"X-Acting: {ACTING[:60]}")),
    "acts-in-raw-body": json_body(ACTING.encode()),
    "acts-in-200": injected("200"),
    "acts-in-401": injected("401"),
    "acts-in-404": injected("404"),
    "acts-in-500": injected("500"),
    "key-everywhere": key_everywhere,
}  # fmt: skip


class HostileService:
    """All of them on one port, in front of a reference server at `upstream` (its base URL)."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._served: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._service = RawService(self._reply)

    def base_url(self, name: str, when: str = "") -> str:
        """The base URL of one; `when` is empty, `after9`, or `cancels`."""
        return f"http://127.0.0.1:{self._service.port}/{'/'.join(filter(None, (name, when)))}/v1"

    def requests(self, name: str) -> Iterator[bytes]:
        """What it has read, in order of arrival."""
        return (request for request in self._service.requests if f" /{name}/".encode() in request.split(b"\r\n")[0])

    def stop(self) -> None:
        self._service.stop()

    def _reply(self, talk: Conversation) -> None:
        method, target, _ = talk.request.split(b"\r\n")[0].decode("latin-1").split(" ", 2)
        found = re.match(r"/([^/]+)(?:/(?:after([0-9]+)|(cancels)))?(/v1/.*)", target)
        if found is None:
            talk.send(answer("404 Not Found"))
            talk.hang_up()
            return
        name, after, cancels, path = found.groups()
        with self._lock:
            self._served[f"{name} {after}"] += 1
            number = self._served[f"{name} {after}"]
        good = number <= int(after) if after else method != "DELETE" if cancels else False
        if good:
            self._pass_on(talk, method, path)
        else:
            BEHAVIOURS[name](talk)

    def _pass_on(self, talk: Conversation, method: str, path: str) -> None:
        """What the reference server answers, on a connection that is closed then."""
        lines = talk.request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        upstream = http.client.HTTPConnection(self._upstream.hostname or "", self._upstream.port, timeout=10)
        upstream.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in (line.split(": ", 1) for line in lines):
            if name.lower() != "connection":
                upstream.putheader(name, value)
        upstream.endheaders()
        reply = upstream.getresponse()
        body = reply.read()
        fields = [f"{name}: {value}" for name, value in reply.getheaders() if name.lower() != "connection"]
        talk.send(head(f"{reply.status} {reply.reason}", *fields, "Connection: close") + body)
        talk.hang_up()
        upstream.close()
