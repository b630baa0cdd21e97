"""Sends requests: guarded, paced, limited in time and size, recorded. The only module that imports httpx.

Every request has a connection of its own. That costs a handshake, and makes sure that an answer never belongs to an
earlier request, that a server may close connections at will without a retry being needed, and that bytes after one
answer cannot spoil the next. Checks about kept-alive connections use `wire` instead.
"""

from __future__ import annotations

import re
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from threading import Lock
from typing import Any

import h11
import httpx
from h2.exceptions import H2Error

from conformance.target import DEFAULT_MAX_BODY
from conformance.transport.answer import Answer, Observer, Texts, decoded
from conformance.transport.body import Body, Miscoded, Unreadable
from conformance.transport.concurrency import TOGETHER, Concurrency
from conformance.transport.deadline import DeadlineBackend
from conformance.transport.endpoint import USER_AGENT, Endpoint, ServiceGone
from conformance.transport.error_messages import UNHEARD, in_plain_words
from conformance.transport.evidence import Exchange, Recorder, Trouble
from conformance.transport.guard import Guard
from conformance.transport.request import Allowed, Operation, Request
from conformance.transport.retries import WAIT_UNTOLD, pause, too_many

#: Seconds after which a shipped order may have been fulfilled.
A_WHILE = 0.4
#: How often a refusal in HTTP/2 is retried. If any answer is allowed, a 503 is retried as often, and for so many
#: seconds at least: it may mean a restart, or be the way in which a gateway refuses what it does not support (Varnish
#: answers a Range of items so, with Retry-After).
WAITS, OPEN_WAIT = 2, 10.0


class Client:
    """Sends requests to one target, and passes each answer to an observer before anyone else sees it."""

    def __init__(self, endpoint: Endpoint, guard: Guard, recorder: Recorder, observer: Observer) -> None:
        self.endpoint = endpoint
        self.guard = guard
        self.recorder = recorder
        self._observer = observer
        # A transport without an httpx.Client: redirects, cookies and authentication must not happen by themselves.
        self._http = _transport(endpoint)
        self._extensions = {"timeout": httpx.Timeout(endpoint.timeout).as_dict()}
        self.texts = Texts()
        self.concurrency = Concurrency()
        self._keeps_to_503 = False
        self._turn = Lock()  # held while a request that was one too many at once is sent again
        # Both pools keep their threads: starting one takes as long as a nearby service takes to answer.
        self._threads = ThreadPoolExecutor(TOGETHER, thread_name_prefix="send")
        #: For requests that must overlap: it has as many threads as are ever needed.
        self.overlapping = ThreadPoolExecutor(sys.maxsize, thread_name_prefix="send")

    def send(self, request: Request) -> Answer:
        """Send one request and return its answer, after waiting as long as the service asked for (429, 503), or for its
        restart.

        Raises guard.Refused and ServiceGone. Without a complete answer the status is None, and the exchange says why
        (`trouble`).
        """
        return self.send_all([request])[0]

    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
        """Send independent requests in whatever way is fastest. With `at_once` all are sent at the same time, unless
        the service accepts only one at a time, or the answers would not fit into memory. The answers are in the order
        of the requests. Raises like `send`."""
        ordered = list(requests)
        for request in ordered:
            self.guard.check(request.method, request.path)
        try:
            attempts = self._attempts_of_all(ordered, at_once=at_once)
        except KeyboardInterrupt:
            self.endpoint.pace.end()  # else the threads would go on waiting, and the process for them
            raise
        self.keep(*(answer for tries in attempts for answer in tries))
        return self._last(ordered, attempts)

    def _attempts_of_all(self, ordered: Sequence[Request], *, at_once: bool) -> list[Sequence[Answer]]:
        """For each of these requests, sent as `send_all` says, the answers to it and to its retries."""
        attempts: list[Sequence[Answer]] = []
        while len(attempts) < len(ordered):
            rest = ordered[len(attempts) :]
            if self.concurrency.alone(len(ordered), at_once=at_once):
                attempts.append(self._again(self._attempts(rest[0])))  # among requests of other processes
            elif at_once:
                self.endpoint.pace.wait(len(rest))
                attempts += self.overlapping.map(partial(self._attempts, crowded=True, paced=True), rest)
            else:
                sent = self._threads.map(partial(self._attempts, crowded=True), rest[: self.concurrency.at_most])
                together = list(sent)  # all of them, before any is sent again alone
                settled = [self._again(tries) for tries in together]
                met_limit = map(_met_limit, together, settled)
                self.concurrency.one_by_one |= any(met_limit)  # from now on
                self.concurrency.narrow(answer.exchange for tries in settled for answer in tries)
                attempts += settled
        return attempts

    def _last(self, requests: Iterable[Request], attempts: Iterable[Sequence[Answer]]) -> list[Answer]:
        """The last answer to each request. Raises ServiceGone for a request that was never sent."""
        answers = []
        for request, tries in zip(requests, attempts, strict=True):
            if not tries:
                raise ServiceGone(self.endpoint.gone[request.operation])
            answers.append(tries[-1])
        return answers

    def keep(self, *answers: Answer) -> None:
        """Record the answers to requests that were under way together, learn from them which orders exist, and pass
        them to the observer."""
        for answer in answers:  # all cancels first, since a listing may be the later one of two sent together
            self.touch(answer)
        for answer in answers:
            self._keep(answer)

    def touch(self, answer: Answer) -> None:
        """Note, once, in which state the order of this cancel was."""
        if not answer.touched and answer.request.order_id is not None:
            answer.touched, answer.before = True, self.guard.touch(answer.request.order_id)

    def _keep(self, answer: Answer) -> None:
        answer.sender = self.send
        self.guard.heard(answer.exchange.started, answer.exchange.started + answer.exchange.seconds)
        if answer.exchange.operation == Operation.LIST:
            self._learn_orders(answer)
        self._observer(answer)
        self.recorder.keep(answer.exchange)

    def _learn_orders(self, answer: Answer) -> None:
        """Tell the guard which orders the answer to a listing shows, and the answer which orders it should have
        shown."""
        # With a query, or with unusual header fields, orders may be shown without their ids.
        plain = not answer.request.query and answer.request.allowed is not Allowed.OPEN
        if answer.listing is not None:
            if plain and answer.status == 200:  # the body of an error may be an array, too
                self.guard.saw_listing(answer.listing.ids)
            else:
                self.guard.remember(answer.listing.ids)
            answer.aged = self.guard.held(A_WHILE)
            answer.lacking = tuple(sorted(answer.listing.left_out(self.guard.untouched.keys() - answer.spared)))
        elif answer.status != 200:
            return
        seen = answer.text.sightings
        # Without the key, a page or the word of a health check is no listing in another form.
        plain = plain and (answer.listing is not None or answer.request.credential.valid)
        self.guard.remember(seen.ids, unidentified=plain and seen.unidentified, incomplete=plain and seen.incomplete)

    def note(self, answer: Answer) -> None:
        """Write the answer into its exchange, now that it is complete."""
        exchange = answer.exchange
        self.recorder.answer(exchange, answer.headers, answer.body, answer.extra)
        self.recorder.end(exchange)
        self.concurrency.saw(len(answer.body))
        self.texts.share(answer)

    def add_extra(self, answer: Answer, came: bytes) -> None:
        """Add bytes that arrived after an answer which is already on record, and have it judged again."""
        answer.extra += came
        self.recorder.answer(answer.exchange, answer.headers, answer.body, answer.extra)
        self._observer(answer)
        self.recorder.judged(answer.exchange)

    def widen(self, together: int) -> None:
        """Set how many independent requests may be in flight at once."""
        self._threads.shutdown()
        self._threads = ThreadPoolExecutor(together, thread_name_prefix="send")
        self.concurrency.together = together

    def close(self) -> None:
        """Close what is open."""
        for threads in (self._threads, self.overlapping):
            threads.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def _attempts(self, request: Request, *, crowded: bool = False, paced: bool = False) -> Sequence[Answer]:
        """The answers to `request` and to its retries: all but the last asked to retry later. There are none if the run
        has given up on the operation. `crowded` says that other requests of this process may overlap with it; `paced`,
        that the caller has already waited for the rate limit."""
        since = time.monotonic()
        answers: list[Answer] = []
        with ExitStack() as turn:
            while True:
                try:
                    self.endpoint.before(request, paced=paced and not answers)
                except ServiceGone:
                    return answers
                answer = self._once(request, crowded or self.endpoint.crowded)
                self.concurrency.timed(answer.exchange)
                self.endpoint.after(request, answer.exchange)
                answers.append(answer)
                if self._is_final(answer, since) and len(answers) > WAITS:
                    return answers
                if not self.endpoint.hold_for_retry(answer.exchange, pause(answer), since):
                    return answers
                if crowded and len(answers) == 1:  # else all retries would come together again
                    turn.enter_context(self._turn)

    def _is_final(self, answer: Answer, since: float) -> bool:
        """Whether `answer`, a refusal that may be temporary, is likely to stay. `since` is when its request was first
        sent, by the monotonic clock. Once a 503 has outlasted OPEN_WAIT, later ones are believed at once."""
        if answer.status == 503 and answer.request.allowed is Allowed.OPEN:
            self._keeps_to_503 |= time.monotonic() > since + OPEN_WAIT
            return self._keeps_to_503
        return answer.exchange.trouble == Trouble.REFUSED

    def _again(self, tries: Sequence[Answer]) -> Sequence[Answer]:
        """`tries`; and if the request was one too many at once, also the answers to it when it is sent alone. This
        excludes cancels with the key, since the first one may have taken effect."""
        if not _one_too_many(tries):
            return tries
        last = tries[-1]
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
            # Over TLS, HTTP/2 might send several requests down one connection: hence a transport for each.
            http = _transport(self.endpoint) if self.endpoint.scheme == "https" else self._http
            response = http.handle_request(outgoing)
            answer.headers = decoded(response.headers.raw)
            exchange.reason, exchange.http_version = response.reason_phrase, response.http_version
            try:
                answer.body = _read(response, self.endpoint.max_body)
                exchange.status = response.status_code
            finally:
                response.close()
                if http is not self._http:
                    http.close()
        except (httpx.TransportError, H2Error, Unreadable, Miscoded) as error:
            if isinstance(_told(error), h11.LocalProtocolError):
                raise  # our own mistake; of an HTTP/2 service's mistakes, httpx speaks alike
            self._trouble(exchange, error, begun=response is not None)
        self.note(answer)
        return answer

    def _trouble(self, exchange: Exchange, error: Exception, *, begun: bool) -> None:
        """Write into `exchange` why there is no complete answer, and whether one had `begun`."""
        if isinstance(error, Unreadable):
            self.concurrency.saw(self.endpoint.max_body)
            exchange.trouble, exchange.detail = Trouble.TOO_LARGE, str(error)
        elif isinstance(error, httpx.TimeoutException):
            exchange.trouble, exchange.detail = Trouble.TIMEOUT, self.endpoint.too_late
        elif isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
            exchange.trouble, exchange.detail = Trouble.UNREACHABLE, _plain(error, self.endpoint)
        elif _refused(error):
            exchange.trouble = Trouble.REFUSED
            exchange.detail = "the service refused the request, before it did anything, as HTTP/2 lets it"
        else:
            heard = begun or not (isinstance(error, httpx.NetworkError) or UNHEARD in str(error))
            exchange.ended_early(_plain(error, self.endpoint), heard=heard)


def _one_too_many(tries: Sequence[Answer]) -> bool:
    """Whether the last of these answers means that the request was one too many at once."""
    return bool(tries) and too_many(tries[-1].exchange)


def _met_limit(tries: Sequence[Answer], settled: Sequence[Answer]) -> bool:
    """Whether a request was one too many among others. It was not if the service also hangs up on it when it is
    alone."""
    return _one_too_many(tries) and (len(settled) == len(tries) or settled[-1].exchange.trouble != Trouble.BROKEN)


def _read(response: httpx.Response, limit: int) -> bytes:
    body = Body(response.headers.get("content-encoding", ""), limit)
    for piece in response.iter_raw():
        body.take(piece)
    return body.whole()


def _cause(error: BaseException) -> BaseException:
    """The root cause of an error, following its chain. An error raised `from None` is its own cause."""
    while below := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = below
    return error


def _told(error: BaseException) -> object:
    """What httpcore heard from h11 or h2, an event or an error of theirs, or None: it passes that on as an argument."""
    return next(iter(_cause(error).args), None)


def _refused(error: Exception) -> bool:
    """Whether the service says in HTTP/2 that it did nothing of what was asked: it is about to stop, or has too much to
    do (RFC 9113 section 8.7)."""
    from h2.errors import ErrorCodes
    from h2.events import ConnectionTerminated, StreamReset

    event = _told(error)
    if isinstance(event, ConnectionTerminated):
        return event.last_stream_id == 0
    return isinstance(event, StreamReset) and event.error_code == ErrorCodes.REFUSED_STREAM


def _plain(error: Exception, endpoint: Endpoint) -> str:
    """The error in the words of its cause, with the address if there was no connection."""
    cause = _cause(error)
    text = in_plain_words(cause) or in_plain_words(error) or type(cause).__name__
    if isinstance(error, httpx.ProxyError):
        return f"the proxy {endpoint.proxy} opens no tunnel to {endpoint.authority}: {text}"
    if isinstance(error, httpx.ConnectError) and endpoint.proxy and not isinstance(cause, ssl.SSLError):
        return f"no connection to the proxy {endpoint.proxy}: {text}"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to {endpoint.authority}: {text}"
    return text


def _transport(endpoint: Endpoint) -> httpx.BaseTransport:
    secure = endpoint.scheme == "https"
    return _with_deadline(
        endpoint.timeout,
        verify=endpoint.ssl_context if secure else False,
        http2=secure,  # if the service offers it (ALPN)
        proxy=endpoint.target.proxy,
    )


def _with_deadline(seconds: float, **settings: Any) -> httpx.HTTPTransport:
    """A transport with one connection for each request, and `seconds` for everything that happens on it."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    transport = httpx.HTTPTransport(limits=limits, **settings)
    # httpx limits single reads only, so an answer that trickles in would never end: the deadline for the whole answer
    # is set below it, where bytes are read. httpx has no public way to pass a network backend (encode/httpx#1500).
    transport._pool._network_backend = DeadlineBackend(seconds)
    return transport


class JsonCaller:
    """Posts JSON to one URL that is not the service (a state provider). Each answer must be complete within `timeout`
    seconds."""

    def __init__(self, url: str, token: str | None, timeout: float, tls: Callable[[], ssl.SSLContext]) -> None:
        """`tls` gives the settings for https."""
        self._url = url
        self._timeout = timeout
        self._headers = {"User-Agent": USER_AGENT, "Accept": "application/json", "Connection": "close"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._extensions = {"timeout": httpx.Timeout(timeout).as_dict()}
        secure = url.lower().startswith("https:")  # http needs no authorities, which take long to load
        self._http = _with_deadline(timeout, verify=tls() if secure else False)

    def post(self, message: object) -> tuple[int, bytes]:
        """Status and body of the answer to `message`. A rate limit (429) is waited out, for as long as an answer may
        take. Raises OSError if there is no answer, and TimeoutError if none comes in time."""
        until = time.monotonic() + self._timeout
        while True:
            status, wait, body = self._post(message)
            if status != 429:
                return status, body
            if time.monotonic() + wait > until:
                raise TimeoutError("it kept answering 429")
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
            raise ConnectionError(in_plain_words(error) or type(error).__name__) from None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
