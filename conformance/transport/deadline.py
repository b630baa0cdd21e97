"""A time limit on everything that happens on a connection; httpx limits single reads only. Bytes arrive here, so GOAWAY
frames are filtered here, too."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable

import httpcore

from conformance.transport.goaway import GoAwayFilter


class DeadlineBackend(httpcore.NetworkBackend):
    """Connections that end `limit` seconds after they began, whatever trickles in. Connecting may take as long again
    for each address of the host."""

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
        secure = inner.get_extra_info("ssl_object")
        self._filter = GoAwayFilter() if secure is not None and secure.selected_alpn_protocol() == "h2" else None

    def _left(self, late: type[Exception]) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise late("deadline")
        return left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            came = self._inner.read(max_bytes, self._left(httpcore.ReadTimeout))
            read = self._filter.filtered(came) if self._filter else came
            if read or not came:  # no bytes: the connection has ended
                return read

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
