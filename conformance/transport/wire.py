"""Raw connections, for what an HTTP client hides: bytes after a 204, kept-alive connections, requests completed
together.

Guard, pace and record are those of the client.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NoReturn

import h11

from conformance.transport import connecting
from conformance.transport.answer import Answer
from conformance.transport.body import Miscoded, Unreadable
from conformance.transport.client import Client
from conformance.transport.connecting import NoTunnelError, ProxyError, left
from conformance.transport.error_messages import in_plain_words
from conformance.transport.evidence import Trouble
from conformance.transport.http11 import BROKEN, MOST_BEFORE, Incoming, outgoing
from conformance.transport.request import Headers, Request
from conformance.transport.retries import pause

#: For how many seconds to wait for bytes after the end of a response, if the service keeps the connection open.
QUIET = 0.2
#: Within how many seconds each of several connections must be opened.
OPENED = 2.0
#: How many bytes show what an answer begins with.
BEGINNING = 40
#: How a service announces that it closes a connection on which it waited too long for a request (RFC 9110 section
#: 15.5.9).
GIVEN_UP = re.compile(rb"HTTP/1\.[01] 408\b")


class _SpentError(ConnectionError):
    """The connection, which had carried other requests, will bring no answer to the current one; the message says
    why."""


class Wire:
    """Opens raw connections to the target of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Whether the service takes several connections while it waits for the ends of requests; None until that shows.
        self.takes_several: bool | None = None

    def connect(self) -> Connection:
        """A new connection; use it in a `with` block."""
        return Connection(self._client)

    @contextmanager
    def receiving(self, connections: Sequence[Connection]) -> Iterator[list[Answer]]:
        """Receive the answers due on `connections` while the block does something else, all at the same time, since a
        service may wait until one of them is read. Gives a list that holds the answers after the block, in the order of
        the connections, not recorded yet."""
        answers: list[Answer] = []
        due = [self._client.overlapping.submit(connection.receive, keep=False) for connection in connections]
        try:
            yield answers
        finally:
            answers += [each.result() for each in due]

    def keep(self, answer: Answer) -> None:
        """Record an answer that was received with `keep=False`; only one thread may record."""
        self._client.keep(answer)

    def pass_turns(self, count: int) -> None:
        """Use up `count` turns of the rate limit, for requests that went out together without waiting for theirs."""
        self._client.endpoint.pace.pass_turns(count)


class Connection:
    """One connection, which carries requests one after the other for as long as the service keeps it open.

    It is used on three levels. `prepare`, `release` and `receive` send a request except for its end, send its end, and
    read the answer. `set_off` and `conclude` do this for one request, and wait and retry as the service asks.
    `exchange` does both in turn. Whatever sends raises guard.Refused and ServiceGone.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._endpoint = client.endpoint
        self._socket: socket.socket | None = None
        self._ahead = b""  # what was received before the end of the request was sent
        self._held = b""  # the end of the prepared request, until it is released
        self._pending: Answer | None = None  # of the request that was prepared last
        self._previous: Answer | None = None  # the answer before that
        self._closing = False  # whether no other request can follow the one at hand
        self._fresh = True  # whether nothing was sent on this connection before the request at hand
        self._released = False  # whether all of the request was sent
        self._heard = False  # whether some of the answer has arrived
        self._deadline = 0.0  # when the answer has to be complete, by the monotonic clock
        self._since = 0.0  # when what was set off went out first, by the same
        self._again: Callable[[], None]  # prepares what was set off

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def left_open(self) -> bool:
        """Whether the service has left the connection open for another request; the outcome is recorded."""
        found = self._close_unless_quiet()
        if self._pending is not None:
            self._pending.exchange.kept_open = found
        return found

    def _close_unless_quiet(self) -> bool:
        """Close the connection if no other request can be sent on it, and return whether one can. Bytes that have
        arrived since the last answer belong to no request: they are recorded as following that answer, and end it."""
        came = self._unasked()
        if came and self._pending is not None:
            self._client.add_extra(self._pending, came)
        if came is not None:
            self.close()
        return came is None

    def _unasked(self) -> bytes | None:
        """The bytes that have arrived although no request is complete: None if the connection is open and quiet, b"" if
        it is closed, or if the service announces that it closes it (408)."""
        if self._socket is None:
            return b""
        self._socket.settimeout(0)
        try:  # TLS has no peeking: what is there is taken
            came = self._socket.recv(MOST_BEFORE)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except OSError:
            return b""
        return b"" if GIVEN_UP.match(came) else came

    def close(self) -> None:
        """Close the connection, perhaps after an interruption, while a thread reads from it. Shutting it down first
        ends that read, which might otherwise go on, on another connection with the same file descriptor."""
        closing, self._socket, self._ahead = self._socket, None, b""
        if closing is not None:
            with suppress(OSError):  # the service was first
                socket.socket.shutdown(closing, socket.SHUT_RDWR)  # not that of TLS, whose state is the reader's
            closing.close()

    def exchange(self, request: Request, *, last: bool = False, minimal: bool = False) -> Answer:
        """Send `request` and read its answer; `last` asks the service to close the connection after it.

        `minimal` sends no header fields but the credential's own, Host, and User-Agent, which clients should send (RFC
        9110 section 10.1.5) and firewalls ask for. A 429 or 503 is retried as the service asks. A GET that finds the
        connection just closed is sent again on a new one, recorded, if its end had not been sent: only then is it
        certain that nobody received it.
        """
        self.set_off(request, last=last, minimal=minimal)
        answer = self.conclude()
        if minimal:
            answer.sender = self._minimal
        return answer

    def _minimal(self, request: Request) -> Answer:
        """The answer to a minimal request on a new connection."""
        with type(self)(self._client) as connection:
            return connection.exchange(request, minimal=True)

    def send_among_others(self, request: Request) -> None:
        """Send a request while others are under way, as the last one on this connection. `receive` reads the answer;
        answers are to be recorded in the order in which the requests were sent."""
        self.prepare(request, last=True, within=OPENED)
        self.release()

    def set_off(self, request: Request, *, last: bool = False, minimal: bool = False) -> None:
        """Begin an `exchange` that `conclude` ends; the client may send other requests in between."""
        self._since = time.monotonic()
        self._again = partial(self.prepare, request, last=last, minimal=minimal)
        self._again()
        self.release()

    def conclude(self) -> Answer:
        """The answer to the request that was set off. It is recorded after whatever was sent in between."""
        while True:
            answer = self.receive()
            # On a new connection a GET is not left unsent again.
            unsent = answer.exchange.trouble == Trouble.UNSENT and answer.request.method == "GET"
            if not unsent and not self._holds_for_retry(answer):
                return answer
            self._again()
            self.release()

    def _holds_for_retry(self, answer: Answer) -> bool:
        """Whether the request is to be sent again after this answer; until then, nothing else goes out."""
        return self._endpoint.hold_for_retry(answer.exchange, pause(answer), self._since)

    def prepare(
        self, request: Request, *, last: bool = False, minimal: bool = False, within: float | None = None
    ) -> None:
        """Send all of `request` except for its last two bytes, which `release` sends. `within` says that several
        requests are prepared side by side: if no connection is made within so many seconds, the service accepts none
        before it has answered the others (see `kept_waiting`)."""
        self._client.guard.check(request.method, request.path)
        self._endpoint.before(request)
        self._fresh = not self._close_unless_quiet()
        headers = self._headers(request, last=last, minimal=minimal)
        self._closing = last
        self._deadline = time.monotonic() + self._endpoint.timeout
        recorder = self._client.recorder
        self._previous = self._pending
        self._pending = Answer(request, recorder.begin(request, self._endpoint.url(request), headers, "wire"))
        self._client.touch(self._pending)  # now, since a listing by the client may come before the answer
        self._pending.exchange.crowded = within is not None or self._endpoint.crowded
        message = outgoing(self._endpoint, request, headers)
        self._held = message[-2:]
        self._released = self._heard = False
        connected_by = self._deadline if within is None else min(self._deadline, time.monotonic() + within)
        try:
            if self._socket is None:
                self._socket = connecting.connect(self._endpoint, connected_by)
            self._socket.settimeout(left(self._deadline))
            self._socket.sendall(message[:-2])
        except OSError as error:
            self._trouble(error)
            if connected_by < self._deadline and isinstance(error, TimeoutError) and time.monotonic() < self._deadline:
                self._answer.exchange.trouble = Trouble.WAITING
                self._answer.exchange.detail = f"no connection within {within:g} s, while others wait for their end"

    @property
    def kept_waiting(self) -> bool:
        """Whether no connection was made in time for the prepared request."""
        return self._answer.exchange.trouble == Trouble.WAITING

    def release(self) -> None:
        """Send the rest of the prepared request."""
        if self._socket is None or self._answer.exchange.trouble:
            return
        try:
            if not self._fresh:
                self._look_ahead()
            self._socket.settimeout(left(self._deadline))
            self._socket.sendall(self._held)
            self._released = True
        except OSError as error:
            self._trouble(error)

    def _look_ahead(self) -> None:
        """Check that the connection has stayed open while all but the end of the request was sent. Bytes that have
        arrived by then may be the answer: for some services the head of a request is enough. Raises ConnectionError."""
        came = self._unasked()
        if came == b"":
            raise ConnectionResetError("the connection was closed before the end of the request")
        if came and not came.startswith(b"HTTP"[: len(came)]):
            self._spoilt_by(came)
        self._ahead = came or b""

    def _spoilt_by(self, came: bytes) -> NoReturn:
        """Record bytes that came in place of an answer as following the previous one. Raises _SpentError."""
        if self._previous is not None:
            self._client.add_extra(self._previous, came)
        raise _SpentError(
            "the service sent something behind the previous answer, which spoilt the connection for others"
        )

    def receive(self, *, keep: bool = True) -> Answer:
        """Read the answer to the prepared request, and record it unless `keep` is false. A request that was never
        released gets no answer, and the connection is closed."""
        answer = self._answer
        if not self._released and answer.exchange.trouble is None:
            answer.exchange.trouble, answer.exchange.detail = Trouble.UNSENT, "its end was not sent"
        if answer.exchange.trouble is None:
            try:
                self._read(answer)
            except Unreadable as error:
                answer.exchange.trouble, answer.exchange.detail = Trouble.TOO_LARGE, str(error)
            except BROKEN as error:
                self._trouble(error)
        exchange = answer.exchange
        self._client.note(answer)
        self._endpoint.after(answer.request, exchange)
        if self._closing or exchange.trouble:
            self.close()
        if keep:
            self._client.keep(answer)
        return answer

    def _headers(self, request: Request, *, last: bool, minimal: bool) -> Headers:
        headers = self._endpoint.headers(request, connection="close" if last else "keep-alive")
        kept = {"host", "user-agent", *(name.lower() for name, _ in request.credential.headers)}
        return tuple((name, value) for name, value in headers if not minimal or name.lower() in kept)

    @property
    def _answer(self) -> Answer:
        if self._pending is None:
            raise RuntimeError("prepare a request first")
        return self._pending

    def _read(self, answer: Answer) -> None:
        exchange = answer.exchange
        incoming = Incoming(answer.request.method, self._endpoint.max_body)
        try:
            while not incoming.take(self._receive()):
                pass
        except (h11.RemoteProtocolError, ConnectionResetError):
            if not incoming.foreign:
                raise
            if not self._fresh:
                before, status_line, _ = (incoming.begins + self._rest()).partition(b"HTTP/1.")
                if status_line:
                    self._spoilt_by(before)
            begins = incoming.begins[:BEGINNING].splitlines()[0]
            raise h11.RemoteProtocolError(f"illegal status line: {begins!r}") from None
        finally:
            answer.headers = incoming.headers
            exchange.reason, exchange.http_version = incoming.reason, incoming.http_version
        if incoming.status == 408 and incoming.last and not self._fresh:
            raise _SpentError("the service closed the connection, which had carried other requests, as idle (408)")
        exchange.status, answer.body = incoming.status, incoming.body
        extra = incoming.extra + (self._rest() if self._closing else b"")
        given_up = GIVEN_UP.match(extra) is not None
        answer.extra = b"" if given_up else extra
        self._closing = self._closing or incoming.last or given_up

    def _receive(self) -> bytes:
        if self._socket is None:
            return b""
        data, self._ahead = self._ahead, b""
        if not data:
            self._socket.settimeout(left(self._deadline))
            data = self._socket.recv(65536)
        self._heard = self._heard or bool(data)
        return data

    def _rest(self) -> bytes:
        """The bytes that arrive until the service closes the connection as asked, or is silent for QUIET seconds."""
        rest, self._ahead = self._ahead, b""
        try:
            while self._socket is not None and len(rest) < 4096:
                self._socket.settimeout(min(QUIET, left(self._deadline)))
                chunk = self._socket.recv(4096)
                if not chunk:
                    break
                rest += chunk
        except OSError:  # quiet, or reset: nothing more to see
            pass
        return rest

    def _trouble(self, error: OSError | h11.RemoteProtocolError | Miscoded) -> None:
        exchange = self._answer.exchange
        if isinstance(error, NoTunnelError) and self._endpoint.scheme == "http":
            exchange.trouble, exchange.detail = Trouble.NO_RAW, str(error)
        elif self._http_2_only(error):
            exchange.trouble, exchange.detail = Trouble.NO_RAW, "the service speaks HTTP/2 only"
        elif isinstance(error, TimeoutError):
            exchange.trouble, exchange.detail = Trouble.TIMEOUT, self._endpoint.too_late
        elif self._socket is None:
            exchange.trouble = Trouble.UNREACHABLE
            told = "" if isinstance(error, ProxyError) else f"no connection to {self._endpoint.authority}: "
            exchange.detail = f"{told}{error}"
        elif isinstance(error, _SpentError) or (not self._fresh and not self._heard):
            exchange.trouble = Trouble.CLOSED if self._released else Trouble.UNSENT
            closed = "the service closed the connection, which had carried other requests, before an answer"
            exchange.detail = str(error) if isinstance(error, _SpentError) else closed
        else:
            exchange.ended_early(in_plain_words(error) or type(error).__name__, heard=self._heard)
        exchange.status = None

    def _http_2_only(self, error: Exception) -> bool:
        """Whether the service speaks HTTP/2 only. Some services say so in the TLS handshake (RFC 7301 section 3.2).
        Others select no protocol there and drop the connection: they count as such if all their answers so far were in
        HTTP/2."""
        if isinstance(error, ssl.SSLError) and "no application protocol" in str(error).lower().replace("_", " "):
            return True
        agreed = not isinstance(self._socket, ssl.SSLSocket) or self._socket.selected_alpn_protocol() is not None
        given_up = self._fresh and not isinstance(error, TimeoutError)
        return not agreed and given_up and self._endpoint.versions == {"HTTP/2"}
