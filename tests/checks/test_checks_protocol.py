"""Which addresses need no https (BASE-2): those of this machine, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import command

from conformance.urls import is_loopback
from reference_server.running import Running, build

KEY = "sk-Protocol.Key_1742"


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


def test_the_key_in_the_clear_is_a_failure_that_no_exchange_shows(tmp_path: Path) -> None:
    with Running(build(KEY.encode())) as server:
        proxy = server.base_url.removesuffix("/v1")  # the reference takes requests for any host
        words = ("--base-url", "http://orders.example/v1", "--proxy", proxy, "--api-key-env", "K")
        done = command(tmp_path, "run", *words, "--strict", "--only", "BASE-2", K=KEY)
    assert done.status == 1, done.said
    assert "received http://orders.example/v1\n" in done.out
    assert "curl" not in done.out
    assert command(tmp_path, "audit", "reports/target").status == 0
