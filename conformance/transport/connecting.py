"""Opens raw connections to a service: to its address or through a forward proxy, with TLS where its URL says so."""

from __future__ import annotations

import re
import socket
import time
from urllib.parse import urlsplit

from conformance.transport.endpoint import Endpoint, host_and_port
from conformance.urls import port_of

#: The most bytes that are read of a proxy's answer.
LONGEST_ANSWER = 65536


class ProxyError(ConnectionError):
    """The proxy is to blame, not the service behind it; the message says so."""


class NoTunnelError(ProxyError):
    """The proxy opens no tunnels, or none to such a port (Squid has a list of those). It may still pass on requests in
    absolute form, which the client sends for plain HTTP."""


def connect(endpoint: Endpoint, deadline: float) -> socket.socket:
    """A connection to the service at `endpoint`, made by the `deadline` (monotonic). Raises OSError."""
    if endpoint.target.proxy:
        connected = _tunnel(endpoint, endpoint.target.proxy, deadline)
    else:
        connected = socket.create_connection((endpoint.host, endpoint.port), left(deadline))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if endpoint.scheme == "https":
        return endpoint.raw_ssl_context.wrap_socket(connected, server_hostname=endpoint.host)
    return connected


def to_host_of(url: str, seconds: float) -> socket.socket:
    """A connection to the host and port of `url`, made within so many seconds. Raises OSError."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", port_of(parts)), seconds)


def left(deadline: float) -> float:
    """The seconds left until `deadline`. Raises TimeoutError if there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _tunnel(endpoint: Endpoint, proxy: str, deadline: float) -> socket.socket:
    """A connection to the service through a forward proxy (RFC 9110 section 9.3.6). Raises OSError."""
    there = host_and_port(endpoint.host, endpoint.port)
    try:
        connected = to_host_of(proxy, left(deadline))
    except TimeoutError:
        raise
    except OSError as error:
        raise ProxyError(f"no connection to the proxy {endpoint.proxy}: {error}") from None
    try:
        head = _answer_to_connect(connected, there, deadline)
    except OSError:
        connected.close()
        raise
    if not re.match(rb"HTTP/1\.[01] 2[0-9][0-9]", head):
        connected.close()
        said = head.partition(b"\r\n")[0][:60].decode("latin-1")
        refused = NoTunnelError if re.match(rb"HTTP/1\.[01] (4[0-9][0-9]|501)", head) else ProxyError
        raise refused(f"the proxy {endpoint.proxy} opens no tunnel to {there}: {said or 'no answer'}")
    return connected


def _answer_to_connect(connected: socket.socket, there: str, deadline: float) -> bytes:
    """What a proxy answers when it is asked for a tunnel: the head, or as much as comes of it. Raises OSError."""
    connected.sendall(f"CONNECT {there} HTTP/1.1\r\nHost: {there}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head and len(head) < LONGEST_ANSWER:
        connected.settimeout(left(deadline))
        received = connected.recv(1)  # no byte more than the head: what follows is the service's
        if not received:
            break
        head += received
    return head
