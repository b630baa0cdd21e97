"""A service of raw bytes on loopback: its answers are written out, so that tests can have any at all."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

#: What is done once a request has been read from a connection: send pieces, wait, leave it open or close it.
Reply = Callable[["Conversation"], None]


@dataclass
class Conversation:
    """One connection as the service sees it: the request at hand, its number on the connection and of all."""

    connection: socket.socket
    request: bytes
    turn: int
    number: int
    ended: threading.Event

    def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        """Send pieces, with a pause after each but the last."""
        for place, piece in enumerate(pieces):
            if place:
                self.ended.wait(pause)
            self.connection.sendall(piece)

    def trickle(self, data: bytes, pause: float) -> None:
        """Send one byte at a time until the client has had enough."""
        for byte in data:
            if self.ended.wait(pause):
                return
            self.connection.sendall(bytes([byte]))

    def hang_up(self) -> None:
        """Close the connection; the service reads no further request from it."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


@dataclass
class RawService:
    """A listening service; `requests` are what it has read, head and body, in order of arrival."""

    reply: Reply
    context: ssl.SSLContext | None = None
    requests: list[bytes] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def base_url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        """Close everything and wait until every thread is done."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                with self._lock:
                    self._open.append(connection)
                _shake_hands(connection)
            turn = 0
            while (request := _request(connection)) is not None:
                with self._lock:
                    number = len(self.requests)
                    self.requests.append(request)
                    self.times.append(time.monotonic())
                self.reply(Conversation(connection, request, turn, number, self._ended))
                turn += 1
        except OSError:
            pass
        finally:
            connection.close()


def _shake_hands(connection: socket.socket) -> None:
    """The handshake; where it fails, what is said of that arrives, since the rest is read (RFC 9112 section 9.6)."""
    assert isinstance(connection, ssl.SSLSocket)
    try:
        connection.do_handshake()
    except OSError:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
        raise


def _request(connection: socket.socket) -> bytes | None:
    """One request with its body, None where the client has hung up."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536) if connection.fileno() >= 0 else b""
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def head(status: str, *fields: str, version: str = "1.1") -> bytes:
    """The head of an answer: `head("204 No Content", "Connection: close")`."""
    return "\r\n".join([f"HTTP/{version} {status}", *fields, "", ""]).encode("latin-1")


def answer(status: str, body: bytes = b"", *fields: str, media: str = "application/json") -> bytes:
    """A whole answer with Content-Length."""
    typed = [f"Content-Type: {media}"] if body else []
    return head(status, *typed, f"Content-Length: {len(body)}", *fields) + body


def always(data: bytes, *, close: bool = True) -> Reply:
    """Answers everything with the same bytes."""

    def reply(conversation: Conversation) -> None:
        conversation.send(data)
        if close:
            conversation.hang_up()

    return reply


@contextlib.contextmanager
def serving(reply: Reply | bytes, context: ssl.SSLContext | None = None) -> Iterator[RawService]:
    """A running service for as long as the block lasts."""
    service = RawService(always(reply) if isinstance(reply, bytes) else reply, context)
    try:
        yield service
    finally:
        service.stop()
