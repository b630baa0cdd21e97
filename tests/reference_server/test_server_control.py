"""The state provider protocol and the log."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest
from patience import PATIENCE, within
from served import KEY

from reference_server.running import Running, build


def change(running: Running, state: str, action: str = "setup", **params: Any) -> httpx.Response:
    assert running.states_url
    return httpx.post(running.states_url, json={"state": state, "action": action, "params": params})


def listed(running: Running) -> list[int]:
    answer = httpx.get(running.base_url + "/store/orders", headers={"Authorization": f"Bearer {KEY}"})
    return [order["id"] for order in answer.json()]


def cancel(running: Running, order_id: int) -> int:
    url = f"{running.base_url}/store/orders/{order_id}"
    return httpx.delete(url, headers={"Authorization": f"Bearer {KEY}"}).status_code


def test_orders_are_placed_and_taken_away(running: Running) -> None:
    pending = change(running, "pending orders", count=3).json()["orderIds"]
    shipped = change(running, "shipped orders", count=2).json()["orderIds"]
    assert len({*pending, *shipped}) == 5
    assert {*pending, *shipped} <= set(listed(running))
    assert cancel(running, pending[0]) == 204
    assert cancel(running, shipped[0]) == 409
    for _ in range(2):
        answer = change(running, "pending orders", "teardown", orderIds=[*pending, *shipped, 424242])
        assert (answer.status_code, answer.json()) == (200, {})
    assert not {*pending, *shipped} & set(listed(running))


def test_chosen_ids_are_placed_and_renewed(running: Running) -> None:
    ids = [-(2**63), 0, 2**53 + 1, 2**63 - 1]
    for _ in range(2):
        assert change(running, "pending orders", ids=ids).json() == {"orderIds": ids}
        assert [cancel(running, order_id) for order_id in ids] == [204] * 4


def test_the_store_is_emptied(running: Running) -> None:
    assert change(running, "no orders").json() == {}
    assert listed(running) == []


def test_a_large_setup_is_quick(running: Running) -> None:
    def place() -> None:
        assert len(change(running, "pending orders", count=1100).json()["orderIds"]) == 1100

    assert within(10, place)  # client and server are in this process
    assert len(listed(running)) % 1100 == 8


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"{}",
        b'{"state": "cancelled orders"}',
        b'{"state": ["pending orders"]}',
        b'{"state": "pending orders", "action": "explode"}',
        b'{"state": "pending orders", "params": []}',
        b'{"state": "pending orders", "params": {"count": -1}}',
        b'{"state": "pending orders", "params": {"count": true}}',
        b'{"state": "pending orders", "params": {"count": 1e9}}',
        b'{"state": "pending orders", "params": {"ids": 5}}',
        b'{"state": "pending orders", "params": {"ids": ["5"]}}',
        b'{"state": "pending orders", "params": {"ids": [9223372036854775808]}}',
        b'{"state": "pending orders", "action": "teardown", "params": {"orderIds": {}}}',
        b"\xff",
    ],
)
def test_malformed_messages_are_refused(running: Running, message: bytes) -> None:
    assert running.states_url
    answer = httpx.post(running.states_url, content=message)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)
    assert len(listed(running)) == 8


def test_the_log_shows_what_was_received(running: Running) -> None:
    assert running.states_url
    log = running.states_url.replace("/_states", "/_log")
    cancel(running, 102)
    httpx.get(running.base_url + "/store/orders", headers={"Authorization": "Bearer wrong"})
    orders = "/v1/store/orders"
    assert httpx.get(log).json() == [
        {"method": "DELETE", "path": orders + "/102", "authorized": True, "orderId": 102, "status": 409},
        {"method": "GET", "path": orders, "authorized": False, "orderId": None, "status": 401},
    ]
    assert httpx.delete(log).status_code == 204
    assert httpx.get(log).json() == []
    assert httpx.put(log).status_code == 405
    assert httpx.get(running.states_url).status_code == 405


def test_what_is_no_request_is_refused_in_json(running: Running) -> None:
    url = httpx.URL(running.states_url or "")
    with socket.create_connection((url.host, url.port or 0), PATIENCE) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        head, _, body = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"error": "The request line is malformed."}


def test_the_service_itself_has_no_state_control(running: Running) -> None:
    for path in ("/_states", "/_log"):
        answer = httpx.get(running.base_url.removesuffix("/v1") + path, headers={"Authorization": f"Bearer {KEY}"})
        assert answer.status_code == 404


def test_a_token_may_guard_it() -> None:
    with Running(build(KEY.encode()), states_port=0, states_token=b"tok") as running:
        assert running.states_url
        assert change(running, "no orders").status_code == 401
        for token, expected in (("wrong", 401), ("tok", 200)):
            answer = httpx.post(
                running.states_url, json={"state": "no orders"}, headers={"Authorization": f"Bearer {token}"}
            )
            assert answer.status_code == expected


def test_what_a_variant_cannot_do_is_told(running: Running) -> None:
    running.service.cannot |= {"ids", "no orders"}
    for answer in (change(running, "no orders"), change(running, "pending orders", ids=[5])):
        assert answer.status_code == 501
        assert isinstance(answer.json()["error"], str)
    assert len(listed(running)) == 8
    assert change(running, "pending orders", count=2).status_code == 200
