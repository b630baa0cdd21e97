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
from typing import NamedTuple
from urllib.parse import urlsplit

from raw_service import Conversation, RawService, answer, head

LISTING = b'[{"id": 101, "petId": 1, "quantity": 1}]'
JSON = "Content-Type: application/json"
CHUNKED = head("200 OK", JSON, "Transfer-Encoding: chunked")
#: What acts on whoever shows it as it is: terminals, browsers, Markdown, XML, the log of a pipeline.
ACTING = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m<script>alert(1)</script>]]>\"'><img src=x onerror=alert(1)>"
    "\x00\x08\x0b\x7f::error title=owned::owned%0A::add-mask::x ![x](https://owned.example/x.png) `|` [/][bold]"
)

#: Quoted text that never ends, begun anew with every other character.
ENDLESS_QUOTES = '"\\' * 45_000


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
    first, further = (packer.compress(b"\0" * 10_000_000) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + further * 99  # a block after a full flush refers to none before it; the stream has no end


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


#: What each comes to in the eyes of a run: the words that some check says of it.
LATE, LARGE, LONG, DEEP = "(--timeout)", "(--max-body)", "longer than 102400 bytes", "deeper than 200 levels"
BROKEN, UNASKED, JUDGED = "no complete HTTP response", "requests ask for gzip or deflate", ""


class Hostile(NamedTuple):
    """What a service does once it has read a request, and what that comes to."""

    reply: Callable[[Conversation], None]
    comes_to: str


BEHAVIOURS: dict[str, Hostile] = {
    "silent": Hostile(silence, LATE),
    "head-for-ever": Hostile(endless(b"HTTP/1.1 200 OK\r\n", b"X-Further: yes\r\n"), LONG),
    "line-for-ever": Hostile(endless(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"), LONG),
    "slow-head": Hostile(trickled(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: yes\r\n" * 999), LATE),
    "slow-body": Hostile(trickled(head("200 OK", JSON, "Content-Length: 9999") + b" " * 9999), LATE),
    "ten-gigabytes": Hostile(endless(head("200 OK", JSON, f"Content-Length: {10 * 2**30}"), b" "), LARGE),
    "chunks-for-ever": Hostile(endless(CHUNKED, b"1000\r\n" + b" " * 4096 + b"\r\n"), LARGE),
    "crumbs-for-ever": Hostile(endless(CHUNKED, b"1\r\n \r\n"), LATE),
    "until-closed-for-ever": Hostile(endless(head("200 OK", JSON), b"[[[["), LARGE),
    "gzip-bomb": Hostile(bomb("gzip"), LARGE),
    "deflate-bomb": Hostile(bomb("deflate"), LARGE),
    "interim-for-ever": Hostile(endless(b"", head("102 Processing")), LATE),
    "slow-interim": Hostile(trickled(head("103 Early Hints") * 99), LATE),
    "closes-at-once": Hostile(cut(b""), BROKEN),
    "closes-in-status": Hostile(cut(b"HTTP/1.1 2"), BROKEN),
    "closes-in-head": Hostile(cut(b"HTTP/1.1 200 OK\r\nContent-Le"), BROKEN),
    "closes-in-body": Hostile(cut(answer("200 OK", LISTING)[:-5]), BROKEN),
    "closes-in-chunk": Hostile(cut(CHUNKED + b"50\r\n[{"), BROKEN),
    "two-lengths": Hostile(cut(head("200 OK", JSON, "Content-Length: 2", "Content-Length: 3") + b"[] "), BROKEN),
    "negative-length": Hostile(cut(head("200 OK", JSON, "Content-Length: -1") + b"[]"), BROKEN),
    "odd-chunk": Hostile(cut(CHUNKED + b"-5\r\n[]\r\n0\r\n\r\n"), BROKEN),
    "no-status-line": Hostile(cut(b"[]\r\n\r\n"), BROKEN),
    "http-0.9": Hostile(cut(LISTING), BROKEN),
    "http-9": Hostile(cut(b"HTTP/9.9 200 OK\r\n\r\n[]"), JUDGED),
    "status-of-letters": Hostile(cut(b"HTTP/1.1 OK 200\r\n\r\n[]"), BROKEN),
    "status-999": Hostile(cut(answer("999 Odd", LISTING)), JUDGED),
    "switches-protocols": Hostile(cut(head("101 Switching Protocols", "Upgrade: x") + b"\0" * 50), BROKEN),
    "answers-twice": Hostile(cut(answer("200 OK", LISTING) * 2), JUDGED),
    "not-gzip": Hostile(cut(answer("200 OK", LISTING, "Content-Encoding: gzip")), BROKEN),
    "not-asked-for": Hostile(cut(answer("200 OK", LISTING, "Content-Encoding: br")), UNASKED),
    "half-gzip": Hostile(cut(answer("200 OK", gzip.compress(LISTING)[:-9], "Content-Encoding: gzip")), BROKEN),
    "deep-arrays": Hostile(json_body(b"[" * 100_000 + b"]" * 100_000), DEEP),
    "deep-objects": Hostile(json_body(b'[{"id": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]"), DEEP),
    "long-numbers": Hostile(json_body(b'[{"id": %b, "quantity": 1e%b}]' % (b"9" * 10**6, b"9" * 10**6)), LARGE),
    "long-fraction": Hostile(json_body(b'[{"id": 0.%b, "petId": -%b.5}]' % (b"1" * 10**6, b"7" * 10**6)), LARGE),
    "long-string": Hostile(long_string, LARGE),
    "wide-string": Hostile(json_body(b'["' + "🎉".encode() + b"x" * 15_000_000 + b'"]'), LARGE),
    "many-values": Hostile(json_body(b"[" + b"{}," * 5_000_000 + b"{}]"), LARGE),
    "invalid-utf-8": Hostile(json_body(b'[{"id": 101, "note": "\xff\xfe"}]'), JUDGED),
    "lone-surrogates": Hostile(json_body(b'[{"id": 101, "shipDate": "\\ud800", "\\udfff": 1}]'), JUDGED),
    "doubled-names": Hostile(json_body(b'[{"id": 101, "id": 102, "id": 103}]'), JUDGED),
    "not-a-number": Hostile(json_body(b'[{"id": NaN, "petId": Infinity}]'), JUDGED),
    "nothing-but-nul": Hostile(json_body(b"\0" * 1000), JUDGED),
    "redirects": Hostile(cut(answer("307 Temporary Redirect", b"", "Location: /elsewhere/v1/store/orders")), JUDGED),
    "busy-for-a-year": Hostile(cut(answer("503 Service Unavailable", b"", "Retry-After: 31536000")), JUDGED),
    "acts-in-head": Hostile(cut(answer(f"500 {ACTING[:60]}", b"", f"X-Acting: {ACTING[:60]}")), JUDGED),
    "acts-in-raw-body": Hostile(json_body(ACTING.encode()), JUDGED),
    "acts-in-200": Hostile(injected("200"), JUDGED),
    "acts-in-401": Hostile(injected("401"), JUDGED),
    "acts-in-404": Hostile(injected("404"), JUDGED),
    "acts-in-500": Hostile(injected("500"), JUDGED),
    "key-everywhere": Hostile(key_everywhere, JUDGED),
    "traces-without-end": Hostile(cut(answer("500 Oops", b"at a(" * 50_000, media="text/plain")), JUDGED),
    "quotes-without-end": Hostile(cut(answer("401 No", b"{}", f"WWW-Authenticate: {ENDLESS_QUOTES}")), JUDGED),
    "ellipses": Hostile(json_body(b'["' + "…".encode() * 300_000 + b'"]'), JUDGED),
}  # fmt: skip


class HostileService:
    """All of them on one port, in front of a reference server at `upstream` (its base URL)."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._served: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._service = RawService(self._reply)
        for coding in ("gzip", "deflate"):  # takes longer to make than a client waits
            gigabyte(coding)

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
            BEHAVIOURS[name].reply(talk)

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
