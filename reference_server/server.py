"""Listeners and connections: sockets on one side, an application of requests and responses on the other.

A thread of a pool serves each connection, kept alive until the client closes it, is silent for too long, or sends what
cannot be understood. Clients may do anything: every way of going wrong ends in an Error answer, a closed
connection, or both.
"""

from __future__ import annotations

import itertools
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NamedTuple, Protocol

from .messages import Request, Response
from .wire import MOST_BODY, DisconnectedError, RejectedError, Stream, read_request

_RECEIVE = 64 * 1024
_LINGER_SECONDS = 1.0
_LINGER_BYTES = 4 * 1024 * 1024
_MOST_CONNECTIONS = 1024
_connection_numbers = itertools.count(1)


class Timeouts(NamedTuple):
    """How long to wait, in seconds."""

    read: float = 10.0
    """For the rest of a request, once its first byte is there."""
    idle: float = 120.0
    """For the next request. Long, since a client that reuses a connection just being closed gets an error."""
    write: float = 60.0
    """For the client to take an answer."""


TIMEOUTS = Timeouts()


class Application(Protocol):
    """What a listener serves."""

    def answer(self, request: Request) -> Response:
        """Answers a request; never raises."""

    def reject(self, status: int, message: str) -> Response:
        """Answers what is no request."""

    @property
    def write(self) -> Callable[[Request, Response], bytes]:
        """What turns the response to a request into every byte to send: see `wire.render`."""


class Listener(HTTPServer):
    """One address on which an application is served.

    Not `ThreadingHTTPServer`, which starts a thread for each connection: that took a third of the time of a request.
    """

    allow_reuse_address = True
    request_queue_size = 512

    def __init__(
        self, application: Application, host: str, port: int, timeouts: Timeouts, most_body: int = MOST_BODY
    ) -> None:
        """Takes what to serve and where (port 0: a free one), how long to wait and how many bytes of a body to read,
        and listens at once."""
        self.application = application
        self.most_body = most_body
        self.timeouts = timeouts
        self._open: set[socket.socket] = set()
        self._threads = ThreadPoolExecutor(_MOST_CONNECTIONS, thread_name_prefix="connection")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Connection)

    def server_bind(self) -> None:
        """Binds, without the look-up of the host's name that `HTTPServer` does for its own pages. Raises `OSError`."""
        try:
            socketserver.TCPServer.server_bind(self)
        except OSError as problem:
            host, port = self.server_address[:2]
            raise OSError(problem.errno, f"port {port!r} of {host!r}: {problem.strerror}") from None

    @property
    def origin(self) -> str:
        """Scheme, host and port, as a URL begins with them."""
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def start(self) -> None:
        """Serves from a thread of its own."""
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Ends the listening and every connection."""
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Has a connection served by a thread that is free, or a new one."""
        self._threads.submit(self._serve, request, client_address)

    def _serve(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)

    def get_request(self) -> tuple[socket.socket, object]:
        """Accepts a connection, and remembers it for `stop`."""
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Closes a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is no news: clients vanish."""


class _Connection(BaseHTTPRequestHandler):
    """One connection. The life of it is that of `http.server`; how a request is read is `wire`'s."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def handle(self) -> None:
        """Serves one request after the other until the connection is to be closed."""
        self._number = next(_connection_numbers)
        self._deadline = 0.0
        self._stream = Stream(self._receive)
        super().handle()

    def handle_one_request(self) -> None:
        """Reads a request and answers it; sets `close_connection` when it was the last."""
        application, timeouts = self.server.application, self.server.timeouts
        self.close_connection = True
        began = False
        try:
            self._deadline = time.monotonic() + timeouts.idle
            self._stream.wait()
            began = True
            self._deadline = time.monotonic() + timeouts.read
            request = read_request(self._stream, self.server.most_body, self._number, self.connection.sendall)
            began = False
            message, last = _answered(application, request)
            self._send(message)
            self.close_connection = last
        except RejectedError as rejected:
            self.refuse(rejected.status, rejected.message)
        except TimeoutError:
            if began:
                self.refuse(408, "The request did not arrive in time.")
        except (DisconnectedError, OSError):
            return

    def _receive(self) -> bytes:
        self.connection.settimeout(max(self._deadline - time.monotonic(), 0.001))
        received: bytes = self.connection.recv(_RECEIVE)
        return received

    def _send(self, message: bytes) -> None:
        # Not all of it by `sendall`, which with a time limit first asks the system whether anything would go: that, and
        # to set the limit, took a tenth of the time of a cancel. Receiving has set one, so nothing blocks here.
        try:
            sent = os.write(self.connection.fileno(), message)
        except BlockingIOError:
            sent = 0
        if sent < len(message):
            self.connection.settimeout(self.server.timeouts.write)
            self.connection.sendall(memoryview(message)[sent:])

    def refuse(self, status: int, message: str) -> None:
        """Answers and closes, but reads on for a moment: closing on unread bytes would lose the answer."""
        connection, application = self.connection, self.server.application
        with suppress(OSError):
            connection.settimeout(_LINGER_SECONDS)
            connection.sendall(_refused(application, status, message))
            connection.shutdown(socket.SHUT_WR)
            deadline, left = time.monotonic() + _LINGER_SECONDS, _LINGER_BYTES
            while left > 0 and time.monotonic() < deadline and (received := connection.recv(_RECEIVE)):
                left -= len(received)


def answer_at_once(application: Application, sent: bytes) -> bytes:
    """Every byte that a connection of its own gives for the one request in `sent`, without there being a connection."""
    pieces = iter((sent,))
    stream = Stream(lambda: next(pieces, b""))
    try:
        request = read_request(stream, MOST_BODY, next(_connection_numbers), lambda interim: None)
        return _answered(application, request)[0]
    except RejectedError as rejected:
        return _refused(application, rejected.status, rejected.message)
    except DisconnectedError:
        return b""


def _answered(application: Application, request: Request) -> tuple[bytes, bool]:
    """What to send for a request, and whether it is the last thing on its connection."""
    response = application.answer(request)
    response.close |= request.close
    return application.write(request, response), response.close


def _refused(application: Application, status: int, message: str) -> bytes:
    return application.write(Request("", ""), application.reject(status, message))
