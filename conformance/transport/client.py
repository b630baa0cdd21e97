"""Sending requests: guarded, paced, limited in time and size, recorded. The only module that imports httpx.

Every request has a connection of its own. That costs a handshake and buys certainty: an answer can never belong to an
earlier request, a server may close connections at will without a retry being needed, and bytes after one answer cannot
spoil the next. Checks about kept-alive connections use `wire` instead.
"""

from __future__ import annotations

import re
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from threading import Lock
from weakref import WeakValueDictionary

import httpcore
import httpx
from h2.exceptions import H2Error

from conformance.contract.jsontext import JsonText, NotJson, parse
from conformance.contract.listing import Listing
from conformance.contract.traces import Traces, traces
from conformance.target import DEFAULT_MAX_BODY
from conformance.transport.body import Body, Miscoded, Unreadable
from conformance.transport.endpoint import USER_AGENT, Endpoint, ServiceGone
from conformance.transport.evidence import Exchange, Headers, Operation, Recorder, Request, Trouble
from conformance.transport.guard import Guard
from conformance.transport.sightings import Sightings, sightings

#: Bytes of a head that httpcore takes in, what h11 says of a longer one, and what we do.
LONGEST_HEAD = 100 * 1024
HEAD_TOO_LONG = "Receive buffer too long"
LONG_HEAD = f"the head of the answer, or of a chunk of it, is longer than {LONGEST_HEAD} bytes"
#: What httpcore says of a connection that ended before an answer.
UNHEARD = "Server disconnected without sending a response"
#: What h11, httpcore and sockets say of answers that are none, and the same without their terms.
_PLAIN_WORDS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (
            f"(?:{UNHEARD}|can't handle event type ConnectionClosed |peer unexpectedly closed connection).*",
            "the connection was closed before the head of an answer was complete",
        ),
        (
            r"peer closed connection .* \(received (\d+) bytes, expected (\d+)\)",
            r"the connection was closed after \1 of the \2 bytes that Content-Length announces",
        ),
        (
            r"peer closed connection .* \(incomplete chunked read\)",
            "the connection was closed before the last chunk of the body",
        ),
        (r"\[Errno \d+\] Connection reset by peer", "the connection was reset"),
        (r"\[Errno \d+\] Broken pipe", "the connection was closed before the request was sent"),
        ("illegal status line: (.*)", r"the answer begins with no status line of HTTP: \1"),
        ("no response line received", "the answer begins with no status line of HTTP"),
        ("illegal header line: (.*)", r"a header line is malformed: \1"),
        ("continuation line at start of headers", "the first header line begins with a blank"),
        ("Illegal header (name|value) (.*)", r"the \1 of a header field is malformed: \2"),
        ("bad Content-Length", "Content-Length is no number"),
        ("conflicting Content-Length headers", "there are several fields Content-Length, which differ"),
        ("multiple Transfer-Encoding headers", "there are several fields Transfer-Encoding"),
        ("illegal chunk header: (.*)", r"the size of a chunk of the body is malformed: \1"),
        (r"malformed chunk footer: (.*) \(expected .*\)", r"a chunk of the body does not end where its size says: \1"),
    )
)
#: Bytes up to which a body, and what was read in it, is kept for later answers that bring the same, and how many are:
#: most services give the same few answers again and again. Longer ones are only shared while a check holds them.
KEPT, MOST_KEPT = 256 * 1024, 32
#: Once an answer has more bytes than this, independent requests are sent one by one: bodies that arrive together are
#: each held in memory, while equal ones that arrive one after the other are held once. So are those that are meant to
#: overlap, if all that they may bring is more than the second number.
HEAVY, TOO_HEAVY = 2_000_000, 256_000_000
#: Seconds to wait after a 429 without Retry-After.
WAIT_UNTOLD = 1.0
#: Independent requests in flight at once.
TOGETHER = 8
#: While a service answers within so many seconds, independent requests are sent one by one: handing them to threads
#: and back would take longer than waiting for the answer.
NEAR = 0.004


class Text:
    """A body, and what there is to read in it."""

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
        """The body as a listing, None where it is no JSON array."""
        try:
            return Listing.read(self.body, lambda: self.json)
        except NotJson:
            return None

    @cached_property
    def sightings(self) -> Sightings:
        """What the body as a listing shows besides plain ids."""
        return sightings(self.body, self.listing)

    @cached_property
    def traces(self) -> Traces:
        """What the body of a failed request should not show."""
        return traces(self.body, None if isinstance(self._read, NotJson) else self._read)


@dataclass
class Answer:
    """A request and the answer to it as checks see it: in full, while `exchange` is what goes on record."""

    request: Request
    exchange: Exchange
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    extra: bytes = b""  # what came after the end of the response on its connection (seen by `wire` only)
    order: str | None = None  # what the order of a cancel was before, where that is sure: pending, shipped, absent
    lacking: tuple[int, ...] = ()  # orders of the suite's own, to which nothing was done, that a listing does not show
    sender: Callable[[Request], Answer] | None = field(default=None, repr=False)

    def repeat(self) -> Answer:
        """The answer to the same request, sent once more."""
        if self.sender is None:
            raise RuntimeError("an answer that was never kept cannot be repeated")
        return self.sender(self.request)

    @property
    def status(self) -> int | None:
        """The HTTP status, None where there was no complete answer."""
        return self.exchange.status

    @property
    def succeeded(self) -> bool:
        """Whether the status is a 2xx."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def client_error(self) -> bool:
        """Whether the status is a 4xx."""
        return self.status is not None and 400 <= self.status < 500

    def header(self, name: str) -> str | None:
        """The value of a header field, of several of that name joined by commas (RFC 9110 section 5.3)."""
        return self._fields.get(name.lower())

    @cached_property
    def _fields(self) -> dict[str, str]:
        return fields(self.headers)

    @property
    def media_type(self) -> str:
        """The media type without parameters, in lower case; empty where there is none."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @cached_property
    def text(self) -> Text:
        """The body as text; answers of one client with the same body have it, and read it, together."""
        return Text(self.body)

    @property
    def json(self) -> JsonText:
        """The body as JSON. Raises NotJson."""
        return self.text.json

    @property
    def listing(self) -> Listing | None:
        """The body as a listing, None where it is no JSON array."""
        return self.text.listing


Observer = Callable[[Answer], None]


def fields(headers: Headers) -> dict[str, str]:
    """The values of header fields by their names in small letters, those of one name joined by commas (RFC 9110 section
    5.3)."""
    found: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


class Client:
    """Sends requests to one target, and hands each answer to an observer before anyone else sees it."""

    def __init__(self, endpoint: Endpoint, guard: Guard, recorder: Recorder, observer: Observer) -> None:
        self.endpoint = endpoint
        self.guard = guard
        self.recorder = recorder
        self._observer = observer
        # The transport and no httpx.Client around it: redirects, cookies and authentication are nothing that may happen
        # by themselves here.
        self._http = _transport(endpoint)
        self._extensions = {"timeout": httpx.Timeout(endpoint.timeout).as_dict()}
        self._texts: WeakValueDictionary[str, Text] = WeakValueDictionary()
        self._kept: deque[Text] = deque(maxlen=MOST_KEPT)
        self._largest = 0
        self._near = False
        self.one_by_one = False  # whether the service is never to be sent requests together
        self._turn = Lock()  # of whoever sends a request again that was one of too many at once
        self._at_most: int | None = None  # how many leave together, once a limit of the service has shown
        self._threads = ThreadPoolExecutor(TOGETHER, thread_name_prefix="send")

    def send(self, request: Request) -> Answer:
        """Send one request and return its answer, after waiting out what the service asked for (429, 503), or its
        restart.

        Raises guard.Refused, and ServiceGone. A request that gets no answer is returned too, with `trouble` noted.
        """
        return self.send_all([request])[0]

    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
        """Send independent requests in whatever way takes least time, or all of them `at_once` where it matters that
        they overlap: then they go one by one only where the service never takes several, or where their answers would
        not fit into memory. The answers come in the order of the requests. Raises like `send`."""
        ordered = list(requests)
        for request in ordered:
            self.guard.check(request.method, request.path)
        attempts: list[Sequence[Answer]] = []
        while len(attempts) < len(ordered):
            rest = ordered[len(attempts) :]
            alone = len(ordered) == 1 or self.one_by_one or self._largest * len(ordered) > TOO_HEAVY
            if alone or (not at_once and (self._near or self._at_most == 1 or self._largest > HEAVY)):
                attempts.append(self._attempts(rest[0]))
            elif at_once:
                with ThreadPoolExecutor(len(rest), thread_name_prefix="send") as threads:
                    attempts += threads.map(partial(self._attempts, crowded=True), rest)
            else:
                tried = self._threads.map(partial(self._attempts, crowded=True), rest[: self._at_most])
                settled = [self._alone(tries) if tries else tries for tries in list(tried)]
                self._narrow(settled)
                attempts += settled
        self.keep(*(answer for tries in attempts for answer in tries))
        for request, tries in zip(ordered, attempts, strict=True):
            if not tries:
                raise ServiceGone(self.endpoint.gone[request.operation])
        return [tries[-1] for tries in attempts]

    def keep(self, *answers: Answer) -> None:
        """Record answers to requests that were under way together, learn from them what orders there are, and let the
        observer see them."""
        for answer in answers:  # first, since a listing may have come after a cancel that was sent with it
            self.touch(answer)
        for answer in answers:
            self._keep(answer)

    def touch(self, answer: Answer) -> None:
        """Learn what the order was whose cancel is under way, unless that was done before."""
        if answer.order is None and answer.request.order_id is not None:
            answer.order = self.guard.touch(answer.request.order_id)

    def _keep(self, answer: Answer) -> None:
        answer.sender = self.send
        plain = not answer.request.query  # with a query orders may be shown without the ids that they have
        if answer.exchange.operation == Operation.LIST and answer.listing is not None:
            whole = plain and answer.status == 200  # an error may have an array for its body
            (self.guard.saw_listing if whole else self.guard.remember)(answer.listing.ids)
            lacking = self.guard.untouched.keys() - answer.listing.ids
            answer.lacking = tuple(sorted(lacking)) if len(lacking) > answer.listing.without_id else ()
        if answer.exchange.operation == Operation.LIST and (answer.listing is not None or answer.status == 200):
            seen = answer.text.sightings
            self.guard.remember(seen.ids, nameless=plain and seen.nameless, countless=plain and seen.countless)
        self._observer(answer)
        self.recorder.keep(answer.exchange)

    def note(self, answer: Answer) -> None:
        """Write what came into the exchange of `answer`, now that nothing more will come."""
        exchange = answer.exchange
        self.recorder.answer(exchange, answer.headers, answer.body, answer.extra)
        self.recorder.end(exchange)
        self._largest = max(self._largest, len(answer.body))
        self.share(answer)

    def share(self, answer: Answer) -> None:
        """Have `answer` use the body of another one, and what was read in it, if that is the same."""
        text = self._texts.setdefault(answer.exchange.body_sha256, answer.text)
        if text is answer.text and len(text.body) <= KEPT:
            self._kept.append(text)
        if text.body == answer.body:  # as it is not where a record that is audited lies
            answer.text, answer.body = text, text.body

    def widen(self, together: int) -> None:
        """Have so many independent requests in flight at once."""
        self._threads.shutdown()
        self._threads = ThreadPoolExecutor(together, thread_name_prefix="send")

    def _narrow(self, attempts: Iterable[Sequence[Answer]]) -> None:
        """Have half as many in flight where one was answered 429, in the end one: the limit may be on those at once,
        and whoever meets it is told to wait for seconds."""
        if any(answer.status == 429 for tries in attempts for answer in tries):
            self._at_most = max(1, (self._at_most or TOGETHER) // 2)

    def close(self) -> None:
        """Close what is open."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def _attempts(self, request: Request, *, crowded: bool = False) -> Sequence[Answer]:
        since = time.monotonic()
        answers: list[Answer] = []
        with ExitStack() as turn:
            while True:
                try:
                    self.endpoint.before(request)
                except ServiceGone:
                    return answers
                answer = self._once(request, crowded or self.endpoint.crowded)
                self._near = answer.exchange.seconds < NEAR
                self.endpoint.after(request, answer.exchange)
                answers.append(answer)
                if not self.endpoint.waits(answer.exchange, pause(answer), since):
                    return answers
                if crowded and len(answers) == 1:  # else all would come again together
                    turn.enter_context(self._turn)

    def _alone(self, tries: Sequence[Answer]) -> Sequence[Answer]:
        """`tries`, and where the last of a request was one too many at once, those of the same request without others.
        From then on they are sent one by one. A cancel with the key is not sent again: it may have been done."""
        last = tries[-1]
        if not too_many(last.exchange):
            return tries
        self.one_by_one = True
        if last.request.method != "GET" and last.request.credential.valid:
            return tries
        last.exchange.waited = 0.0
        return [*tries, *self._attempts(last.request)]

    def _once(self, request: Request, crowded: bool) -> Answer:
        headers = self.endpoint.headers(request, connection="close")
        url = self.endpoint.url(request)
        exchange = self.recorder.begin(request, url, headers, "client")
        exchange.crowded = crowded
        answer = Answer(request, exchange)
        response = None
        try:
            sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            outgoing = httpx.Request(
                request.method, url, headers=sent, content=request.body, extensions=self._extensions
            )
            # Over TLS that may be HTTP/2, which would send several requests down one connection: hence one of its own.
            http = _transport(self.endpoint) if self.endpoint.scheme == "https" else self._http
            response = http.handle_request(outgoing)
            try:
                answer.body = _read(response, self.endpoint.max_body)
                answer.headers = tuple(
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw
                )
                exchange.reason = response.reason_phrase
                exchange.http_version = response.http_version
                exchange.status = response.status_code
            finally:
                response.close()
                if http is not self._http:
                    http.close()
        except Unreadable as error:
            self._largest = self.endpoint.max_body
            exchange.trouble, exchange.detail = Trouble.TOO_LARGE, str(error)
        except httpx.TimeoutException:
            exchange.trouble = Trouble.TIMEOUT
            exchange.detail = f"no complete answer within {self.endpoint.timeout:g} s (--timeout)"
        except (httpx.ConnectError, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
            exchange.trouble, exchange.detail = Trouble.UNREACHABLE, _plain(error, self.endpoint)
        except (httpx.NetworkError, httpx.ProtocolError, H2Error, Miscoded) as error:
            if isinstance(error, httpx.LocalProtocolError) and self.endpoint.scheme == "http":
                raise  # that one is ours; in HTTP/2 it is how httpx reports frames that are none
            heard = response is not None or not (isinstance(error, httpx.NetworkError) or UNHEARD in str(error))
            exchange.trouble, exchange.detail = broken(exchange, heard=heard), _plain(error, self.endpoint)
            if HEAD_TOO_LONG in exchange.detail:
                exchange.trouble, exchange.detail = Trouble.TOO_LARGE, LONG_HEAD
        self.note(answer)
        return answer


def retry_after(answer: Answer) -> float | None:
    """The seconds to wait that a 429 or 503 asks for with Retry-After (RFC 9110 section 10.2.3), else None."""
    text = answer.header("retry-after")
    if answer.status not in (429, 503) or text is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        return float(text)
    when = _date(text)
    if when is None:
        return None
    clocks = (datetime.now(UTC), _date(answer.header("date") or ""))  # ours, and where it is told the service's own
    return max(0.0, min((when - now).total_seconds() for now in clocks if now is not None))


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def pause(answer: Answer) -> float | None:
    """The seconds to wait before the request goes out once more, None where it does not. A 429 that names no time is
    waited out, too: rate limits are not shown (section 8), and RFC 6585 section 4 leaves Retry-After open."""
    delay = retry_after(answer)
    return WAIT_UNTOLD if delay is None and answer.status == 429 else delay


def turned_away(answer: Answer) -> bool:
    """Whether the request may have been one too many at once, or too soon: no limits are shown (section 8)."""
    exchange = answer.exchange
    refused = exchange.crowded and exchange.trouble == Trouble.UNREACHABLE
    return refused or too_many(exchange) or pause(answer) is not None


def too_many(exchange: Exchange) -> bool:
    """Whether the service took the request and gave it up, as one of too many at once."""
    return exchange.crowded and (exchange.status == 503 or exchange.trouble == Trouble.DROPPED)


def broken(exchange: Exchange, *, heard: bool) -> Trouble:
    """What it is if a connection ended within `exchange`, after some of an answer was `heard` or before."""
    return Trouble.DROPPED if exchange.crowded and not heard else Trouble.BROKEN


def _read(response: httpx.Response, limit: int) -> bytes:
    body = Body(response.headers.get("content-encoding", ""), limit)
    for piece in response.iter_raw():
        body.take(piece)
    return body.whole()


def _plain(error: Exception, endpoint: Endpoint) -> str:
    """The error in the words of its cause, with the address where there was no connection."""
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    text = in_plain_words(cause) or in_plain_words(error) or type(cause).__name__
    if "WRONG_VERSION_NUMBER" in text:
        text += " (what answers there does not speak TLS: http:// in base_url?)"
    if isinstance(error, httpx.ProxyError):
        return f"the proxy {endpoint.proxy} opens no tunnel to {endpoint.authority}: {text}"
    if isinstance(error, httpx.ConnectError) and endpoint.proxy and not isinstance(cause, ssl.SSLError):
        return f"no connection to the proxy {endpoint.proxy}: {text}"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to {endpoint.authority}: {text}"
    return text


def in_plain_words(error: BaseException) -> str:
    """What is wrong with an answer, without the terms of the library that says so; as it says it, where that is
    seldom."""
    for pattern, plain in _PLAIN_WORDS:
        if found := pattern.fullmatch(str(error)):
            return re.sub(r"""(?:bytearray\()?\bb('.*'|".*")\)?""", r"\1", found.expand(plain))
    return str(error)


def _transport(endpoint: Endpoint) -> httpx.BaseTransport:
    secure = endpoint.scheme == "https"
    transport = httpx.HTTPTransport(
        verify=endpoint.ssl_context if secure else False,
        http2=secure,  # if the service offers it (ALPN)
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        proxy=endpoint.target.proxy,
    )
    # httpx has time-outs for single reads only, so an answer that trickles in would never end: the deadline for all of
    # it sits below, where the bytes are read. httpx offers no public way to pass a network backend (encode/httpx#1500).
    transport._pool._network_backend = _DeadlineBackend(endpoint.timeout)
    return transport


class _DeadlineBackend(httpcore.NetworkBackend):
    """Connections that end `limit` seconds after they began, whatever trickles in. To connect may take as long for each
    address that a name has."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        deadline = time.monotonic() + self._limit
        stream = self._inner.connect_tcp(host, port, self._limit, local_address, socket_options)
        return _DeadlineStream(stream, deadline)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def _left(self, late: type[Exception]) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise late("deadline")
        return left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._left(httpcore.ConnectTimeout)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class JsonCaller:
    """Posts JSON to one URL that is not the service (a state provider); an answer has `timeout` seconds in all."""

    def __init__(self, url: str, token: str | None, timeout: float, tls: Callable[[], ssl.SSLContext]) -> None:
        """Over https it has the settings `tls`."""
        self._url = url
        self._timeout = timeout
        self._headers = {"User-Agent": USER_AGENT, "Accept": "application/json", "Connection": "close"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._extensions = {"timeout": httpx.Timeout(timeout).as_dict()}
        secure = url.lower().startswith("https:")  # authorities take long to load, and http has no use for them
        self._http = httpx.HTTPTransport(
            verify=tls() if secure else False, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self._http._pool._network_backend = _DeadlineBackend(timeout)

    def post(self, message: object) -> tuple[int, bytes]:
        """Status and body of the answer to `message`. What limits a rate (429) is waited out, as long as an answer may
        take. Raises OSError where there is no answer, TimeoutError where none comes in time."""
        until = time.monotonic() + self._timeout
        while True:
            status, wait, body = self._post(message)
            if status != 429:
                return status, body
            if time.monotonic() + wait > until:
                raise TimeoutError("answered 429")
            time.sleep(wait)

    def _post(self, message: object) -> tuple[int, float, bytes]:
        try:
            request = httpx.Request("POST", self._url, headers=self._headers, json=message, extensions=self._extensions)
            response = self._http.handle_request(request)
            try:
                asked = response.headers.get("retry-after", "")
                wait = max(WAIT_UNTOLD, float(asked) if re.fullmatch(r"[0-9]{1,3}", asked) else 0.0)
                return response.status_code, wait, _read(response, DEFAULT_MAX_BODY)
            finally:
                response.close()
        except httpx.TimeoutException:
            raise TimeoutError("no answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, Unreadable, Miscoded) as error:
            raise ConnectionError(str(error) or type(error).__name__) from None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
