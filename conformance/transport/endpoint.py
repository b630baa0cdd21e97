"""What the HTTP client and the raw sockets share: addresses, header fields, TLS, pace, and when to give up."""

from __future__ import annotations

import errno
import random
import ssl
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from pathlib import Path
from urllib.parse import urlsplit

from conformance import __version__
from conformance.target import ConfigError, RateLimit, Target
from conformance.transport.evidence import Exchange, Trouble
from conformance.transport.request import Headers, Operation, Request
from conformance.urls import port_of

#: How many requests to one operation may go unanswered, in a row and in all, before the run stops asking: each costs
#: the whole time-out.
GIVE_UP_AFTER, GIVE_UP_AFTER_IN_ALL = 4, 20
#: The most seconds that one request, and all of a process together, wait because the service answered 429, or 503 with
#: Retry-After; and the least, for a Retry-After of 0 or a time in the past.
MAX_WAIT, MAX_WAIT_IN_ALL, LEAST_WAIT = 65.0, 300.0, 0.2
#: Processes that waited for the same moment spread their requests over so many seconds, unless a rate limit does that:
#: requests that were turned away because they came together would come together again.
SPREAD = 0.1
#: A service that answered before and now accepts no connection may be restarting: the seconds between attempts to reach
#: it, and the seconds within which failed attempts count as one.
RESTART_WAIT, RESTART = 0.5, 3.0
USER_AGENT = f"store-orders-conformance/{__version__}"


class ServiceGone(Exception):
    """The service stopped answering earlier; the request was not sent."""


def host_and_port(host: str, port: int) -> str:
    """Host and port as they stand in a URL, with brackets around an IPv6 address."""
    return f"{f'[{host}]' if ':' in host else host}:{port}"


class Pace:
    """Lets requests through no faster than a rate limit, and none before a time that the service asked for."""

    def __init__(self, limit: RateLimit | None, shared: Path | None = None) -> None:
        """`shared` is a file through which several processes keep one pace, as for `share`."""
        self._interval = limit.interval if limit else 0.0
        # When the next request may go out, by the monotonic clock, which all processes share.
        self._free = memoryview(bytearray(8)).cast("d")
        self.held = 0.0  # seconds for which the service asked
        self._lock = threading.Lock()
        self._others: AbstractContextManager[object] = nullcontext()
        self._spread = 0.0
        self._over = threading.Event()
        if shared is not None:
            self.share(shared)

    def share(self, file: Path) -> None:
        """Keep one pace with the other processes that use the same file. If the file is new, it starts with the state
        of this process."""
        from filelock import FileLock  # most runs have one process, and need not wait for it to load

        self._others = FileLock(f"{file}.lock", poll_interval=0.001)
        self._spread = SPREAD
        with self._others:
            if not file.exists():
                file.write_bytes(self._free)
            with file.open("r+b") as opened:
                self._free = memoryview(mmap(opened.fileno(), 8)).cast("d")

    def wait(self, count: int = 1) -> None:
        """Sleep until `count` requests may go out together; the next request then waits for as many turns. Raises
        ServiceGone once the run is over."""
        while not self._over.is_set():
            if self._interval:
                with self._lock, self._others:
                    now, turn = time.monotonic(), self._free[0]
                    if turn <= now:  # taken now, not ahead: who wakes late would come close to the next one
                        self._free[0] = now + count * self._interval
            else:
                now, turn = time.monotonic(), self._free[0]
                if turn > now:
                    turn += random.uniform(0.0, self._spread)
            if turn <= now:
                return
            self._over.wait(turn - now)
        raise ServiceGone("not sent: the run was interrupted")

    def end(self) -> None:
        """Let no further request through, and wake those that wait: an interrupted run waits for their threads."""
        self._over.set()

    def pass_turns(self, count: int) -> None:
        """Leave so many turns of the rate limit unused."""
        with self._lock, self._others:
            self._free[0] = max(time.monotonic(), self._free[0]) + count * self._interval

    def hold(self, seconds: float) -> None:
        """Let nothing through for `seconds` from now."""
        with self._lock, self._others:
            now = time.monotonic()
            free = max(self._free[0], now)
            self._free[0] = max(free, now + seconds)
            self.held += self._free[0] - free


def tls_settings(target: Target) -> ssl.SSLContext:
    """New TLS settings for `target`: the system's authorities or its own bundle, and its client certificate. Raises
    ConfigError if its certificates cannot be used."""
    try:
        context = ssl.create_default_context(cafile=target.ca_bundle)
        # From 3.13 on, Python refuses home-made authorities that most clients take (no key usage in them): whether
        # a service can be judged does not hang on the interpreter.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if target.client_cert:
            context.load_cert_chain(target.client_cert)
    except (ssl.SSLError, OSError) as error:
        what = "the CA bundle or client certificate cannot be used"
        hint = "both are PEM files, the client's holding certificate and private key"
        if not isinstance(error, ssl.SSLError) and error.errno == errno.EINVAL:  # OpenSSL has asked in vain
            what = "the private key of the client certificate has a passphrase, which nobody was there to enter"
            hint = "make the run in a terminal, or give a key without one (openssl pkey)"
        raise ConfigError(f"target {target.name!r}: {what}: {error}; {hint}") from None
    return context


@dataclass
class _Silence:
    """How many requests to one operation went unanswered, in a row and in all. Those that overlap, or fail during one
    restart, count as one: a request that begins before `until`, in seconds since the epoch, counts with the previous
    one."""

    in_a_row: int = 0
    in_all: int = 0
    until: float = 0.0

    @property
    def is_final(self) -> bool:
        """Whether the run stops asking."""
        return self.in_a_row >= GIVE_UP_AFTER or self.in_all >= GIVE_UP_AFTER_IN_ALL


class Endpoint:
    """A target's address as the transports use it, with the state that all connections to it share."""

    def __init__(self, target: Target, pace: Pace | None = None, *, crowded: bool = False) -> None:
        """Has a pace of its own, unless given one to share; `crowded` if other processes send requests to the same
        service."""
        self.crowded = crowded
        self.target = target
        parts = urlsplit(target.base_url)
        self.scheme = parts.scheme
        self.host = parts.hostname or ""
        self.port = port_of(parts)
        self.authority = parts.netloc
        self.base_path = parts.path
        self.timeout = target.timeout
        self.max_body = target.max_body
        self.pace = pace or Pace(target.rate_limit)
        self._silence = {operation: _Silence() for operation in Operation}
        self.gone: dict[str, str] = {}  # by operation that was silent, what is said once the run stops asking for it
        self.answered = False  # whether there was ever an answer: if there is no connection, it may be restarting
        self.versions: set[str] = set()  # the versions of HTTP that it answered in

    @cached_property
    def proxy(self) -> str:
        """Host and port of the proxy in front of the service; empty if there is none."""
        if not self.target.proxy:
            return ""
        parts = urlsplit(self.target.proxy)
        return host_and_port(parts.hostname or "", port_of(parts))

    @property
    def too_late(self) -> str:
        """What is said of an answer that was not complete in time."""
        return f"no complete answer within {self.timeout:g} s (--timeout)"

    @cached_property
    def ssl_context(self) -> ssl.SSLContext:
        """The TLS settings of the target."""
        return tls_settings(self.target)

    @cached_property
    def raw_ssl_context(self) -> ssl.SSLContext:
        """The same for raw connections, which speak and offer HTTP/1.1 only."""
        settings = tls_settings(self.target)
        settings.set_alpn_protocols(["http/1.1"])
        return settings

    def path(self, request: Request) -> str:
        """The request target: base path, path and query."""
        query = request.full_query
        base = "" if request.whole else self.base_path
        return f"{base}{request.path}{'?' if query else ''}{query}"

    def url(self, request: Request) -> str:
        """The absolute URL of `request`."""
        target = self.path(request)
        absolute = request.whole and not target.startswith("/")
        return target if absolute else f"{self.scheme}://{self.authority}{target}"

    def headers(self, request: Request, *, connection: str) -> Headers:
        """The header fields of `request` in the order in which they are sent."""
        own = (*request.credential.headers, *request.headers)
        given = {name.lower() for name, _ in own}
        usual = (
            ("Host", self.authority),
            ("User-Agent", USER_AGENT),
            *((("Accept", request.accept),) if request.accept is not None else ()),
            ("Accept-Encoding", "gzip, deflate"),
            ("Connection", connection),
        )
        fields = [field for field in usual if field[0].lower() not in given]
        fields += own
        if request.body is not None:
            fields.append(("Content-Length", str(len(request.body))))
        return tuple(fields)

    def before(self, request: Request, *, paced: bool = False) -> None:
        """Wait for this request's turn, unless the caller did (`paced`). Raises ServiceGone if the run has stopped
        asking for its operation."""
        if self._silence[request.operation].is_final:
            raise ServiceGone(self.gone[request.operation])
        if not paced:
            self.pace.wait()

    def after(self, request: Request, exchange: Exchange) -> None:
        """Note whether `request` got an answer. Unanswered requests that overlapped count as one, since each may have
        blocked the others; so do those that fail during one restart."""
        operation, silence = request.operation, self._silence[request.operation]
        if exchange.trouble in (Trouble.UNSENT, Trouble.WAITING):  # it was not asked for one
            return
        if exchange.trouble not in (Trouble.UNREACHABLE, Trouble.TIMEOUT):
            silence.in_a_row = 0
            self.answered = True
            self.versions |= {exchange.http_version} - {""}
        elif exchange.started >= silence.until:
            lasting = RESTART if exchange.trouble == Trouble.UNREACHABLE else exchange.seconds
            silence.until = exchange.started + lasting
            silence.in_a_row += 1
            silence.in_all += 1
            last = silence.in_a_row >= GIVE_UP_AFTER
            count = f"the last {GIVE_UP_AFTER}" if last else str(GIVE_UP_AFTER_IN_ALL)
            self.gone[operation] = f"not sent: {count} requests to {operation} got no answer ({exchange.detail})"

    def hold_for_retry(self, exchange: Exchange, delay: float | None, since: float) -> bool:
        """Hold everything back, if a request that was first sent at `since` (monotonic) is to be retried after
        `exchange`, and return whether it is: because the answer asks for that in `delay` seconds, or because no
        connection was made, so that nothing was sent, and the service may be restarting. No request goes out until
        then, and `exchange.waited` says how long that is. False if there is no reason to retry, or if the wait would
        exceed MAX_WAIT or MAX_WAIT_IN_ALL."""
        if delay is None and exchange.trouble == Trouble.UNREACHABLE and self.answered:
            delay = RESTART_WAIT
        if delay is None:
            return False
        pause = max(delay, LEAST_WAIT)
        late = time.monotonic() + pause > since + MAX_WAIT
        if late or self.pace.held + pause > MAX_WAIT_IN_ALL:
            return False
        self.pace.hold(pause)
        exchange.waited = delay
        return True
