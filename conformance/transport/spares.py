"""Connections that are opened before a request needs them. To open one takes as long as an answer where the service is
far away, so a request that goes out on a spare one is answered in half the time."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import Any

#: How many are kept, and for how many seconds: a service may hang up on a client that sends nothing.
MANY, FRESH = 8, 0.5


class Spares:
    """Spare connections to one address; none unless `wanted`."""

    def __init__(self) -> None:
        self.wanted = False
        self._there: tuple[socket.AddressFamily, Any] | None = None  # the address
        self._kept: deque[tuple[float, socket.socket]] = deque()  # oldest first, with when it was begun (monotonic)
        self._lock = Lock()

    def take(self) -> socket.socket | None:
        """The oldest connection that is ready; None if there is none."""
        with self._lock:
            while self.wanted and self._kept:
                begun, spare = self._kept[0]
                fresh, ready = time.monotonic() - begun < FRESH, _ready(spare)
                if fresh and ready is None:
                    break
                self._kept.popleft()
                if fresh and ready:
                    return spare
                spare.close()
        return None

    def met(self, connection: socket.socket) -> None:
        """Learn the address from a `connection` to it, and open as many as are wanted."""
        if self._there is None:
            with suppress(OSError):  # the other side may have hung up
                self._there = connection.family, connection.getpeername()
        if self.wanted:
            self._open()

    @contextmanager
    def idle(self, seconds: float) -> Iterator[list[bool]]:
        """Keep as many open as ever are kept, while a request is sent on another connection, but at most for so many
        seconds: a service that attends to one connection at a time waits for what they send. Afterwards the list holds
        whether all were open to the end."""
        held: list[bool] = []
        self._open()
        timer = Timer(seconds, self.close)
        timer.start()
        try:
            yield held
        finally:
            timer.cancel()
            timer.join()
            with self._lock:
                held.append(len(self._kept) == MANY and all(_ready(spare) for _, spare in self._kept))
            self.close()

    def close(self) -> None:
        """Close those that are kept."""
        with self._lock:
            while self._kept:
                self._kept.pop()[1].close()

    def _open(self) -> None:
        """Begin to open as many as are missing."""
        with self._lock, suppress(OSError):  # then a request opens its own
            while self._there is not None and len(self._kept) < MANY:
                family, address = self._there
                spare = socket.socket(family)
                self._kept.append((time.monotonic(), spare))
                spare.setblocking(False)
                spare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                spare.connect_ex(address)


def _ready(connection: socket.socket) -> bool | None:
    """Whether a request can go out on a connection that is being opened; None while that is under way. It cannot where
    the other side has refused, hung up, or said something unasked."""
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLOUT)
    events = poll.poll(0)
    return events[0][1] == select.POLLOUT if events else None
