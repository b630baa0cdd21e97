"""Which addresses need no https (BASE-2): those of this machine, however they are written."""

from __future__ import annotations

import pytest

from conformance.urls import is_loopback


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost.",
        "orders.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "::ffff:127.0.0.1",
        "127.1",
        "0x7f000001",
    ],
)
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "localhost.example", "api.example", "10.0.0.1", "::ffff:10.0.0.1", "127.0.0.x", "10.1"]
)
def test_another_machine(host: str) -> None:
    assert not is_loopback(host)
