"""A served reference server and raw connections to it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from patience import PATIENCE

from reference_server.running import Running, build
from reference_server.server import Timeouts

KEY = "sk-Reference.Key_42"
AUTHORIZED = {"authorization": f"Bearer {KEY}"}


#: For tests of time-outs: with this mark a server waits 0.3 s for the rest of a request.
IMPATIENT = pytest.mark.parametrize("running", [0.3], indirect=True, ids=["impatient"])


@pytest.fixture
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    """The correct server with state control, patient, since the machine may be busy."""
    timeouts = Timeouts(read=getattr(request, "param", PATIENCE))
    with Running(build(KEY.encode()), states_port=0, timeouts=timeouts) as running:
        yield running


def port_of(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


@pytest.fixture
def raw(running: Running) -> Callable[..., bytes]:
    """Sends bytes on a new connection and gives all that comes back until the server closes it."""

    def exchange(data: bytes, *, finish: bool = True) -> bytes:
        with socket.create_connection(("127.0.0.1", port_of(running.base_url)), timeout=PATIENCE) as client:
            client.sendall(data)
            if finish:
                client.shutdown(socket.SHUT_WR)
            received = b""
            while piece := client.recv(65536):
                received += piece
            return received

    return exchange
