"""Good and bad bytes on a real socket."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from patience import PATIENCE
from served import IMPATIENT, KEY, port_of

from reference_server.orders import Status
from reference_server.running import Running, build
from reference_server.server import Timeouts

Raw = Callable[..., bytes]
HEAD = f"Host: x\r\nAuthorization: Bearer {KEY}\r\n".encode()
LIST = b"GET /v1/store/orders HTTP/1.1\r\n" + HEAD


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    return int(answer[9:12])


def assert_refused(answer: bytes, expected: int) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(answer) == expected
    assert b"Connection: close" in head
    assert json.loads(body)["status"] == expected


def test_204_ends_with_its_headers(raw: Raw) -> None:
    answer = raw(b"DELETE /v1/store/orders/101 HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert status(answer) == 204
    assert answer.endswith(b"\r\n\r\n")
    assert b"content-length" not in answer.lower()
    assert b"transfer-encoding" not in answer.lower()


def test_requests_may_be_pipelined_on_one_connection(raw: Raw) -> None:
    answer = raw((LIST + b"\r\n") * 3)
    assert answer.count(b"HTTP/1.1 200 OK") == 3


def test_head_has_the_length_and_no_body(raw: Raw) -> None:
    answer = raw(b"HEAD /v1/store/orders HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"Content-Length: 0" not in answer


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\n\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"G[T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/9.1\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/x\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /" + b"a" * 100_000, 414),
        (LIST + b"A: " + b"b" * 70_000 + b"\r\n\r\n", 431),
        (LIST + b"A: b\r\n" * 101 + b"\r\n", 431),
        (LIST + b"Content-Length: x\r\n\r\n", 400),
        (LIST + b"Content-Length: -1\r\n\r\n", 400),
        (LIST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (LIST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (LIST + b"Content-Length: 99999999999\r\n\r\n", 413),
        (LIST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
        (LIST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (LIST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", 400),
        (LIST + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413),
        (LIST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 9000, 400),
        (LIST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
        (LIST + b"Expect: miracles\r\nContent-Length: 1\r\n\r\nx", 417),
    ],
)
def test_bad_input_gets_an_error(
    raw: Raw, request_bytes: bytes, expected: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert_refused(raw(request_bytes, finish=False), expected)
    assert capfd.readouterr().err == ""


def test_an_endless_body_is_cut_off_with_an_answer(raw: Raw) -> None:
    body = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(40))
    assert_refused(raw(LIST + b"Transfer-Encoding: chunked\r\n\r\n" + body), 413)


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000_000,
    ],
)
def test_bodies_are_read_and_ignored(raw: Raw, body: bytes) -> None:
    answer = raw(LIST + body + LIST + b"\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    cancel = b"DELETE /v1/store/orders/105 HTTP/1.1\r\n" + HEAD
    assert status(raw(cancel + body)) == 204


def test_expect_continue_is_answered_first(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", port_of(running.base_url)), timeout=PATIENCE) as client:
        client.sendall(LIST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        assert status(client.recv(65536)) == 200


@IMPATIENT
@pytest.mark.parametrize("half", [b"GET /v1/st", LIST, LIST + b"Content-Length: 10\r\n\r\nabc"])
def test_half_a_request_times_out_with_an_answer(raw: Raw, half: bytes) -> None:
    assert_refused(raw(half, finish=False), 408)


def test_what_cannot_become_a_request_is_refused_at_once(raw: Raw) -> None:
    """A client that speaks TLS sends no line, and waits."""
    assert_refused(raw(b"\x16\x03\x01\x02\x00\x01", finish=False), 400)


@IMPATIENT
def test_a_dripping_request_times_out_as_a_whole(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", port_of(running.base_url)), timeout=PATIENCE) as client:
        began = time.monotonic()
        for byte in LIST:
            client.sendall(bytes([byte]))
            time.sleep(0.02)
            if time.monotonic() - began > 0.5:
                break
        assert status(client.recv(65536)) == 408


def test_silent_and_vanishing_clients_leave_no_trace(
    raw: Raw, running: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    assert raw(b"") == b""
    assert raw(LIST) == b""
    address = ("127.0.0.1", port_of(running.base_url))
    for _ in range(5):
        client = socket.create_connection(address)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall((LIST + b"\r\n") * 50)
        client.close()
    assert status(raw(LIST + b"\r\n")) == 200
    assert capfd.readouterr().err == ""


@contextmanager
def asking_for_much(orders: int, write: float) -> Iterator[tuple[socket.socket, Running]]:
    """A client with a small buffer to which a listing is being sent that is larger than what a connection holds."""
    service = build(KEY.encode())
    service.store.place(orders, Status.PENDING)
    with Running(service, timeouts=Timeouts(write=write)) as running, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", port_of(running.base_url)))
        asked = f"GET /v1/store/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
        client.sendall(asked.encode())
        client.recv(1, socket.MSG_PEEK)
        yield client, running


def received(client: socket.socket) -> bytes:
    pieces = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def test_who_takes_an_answer_slowly_gets_all_of_it() -> None:
    with asking_for_much(60_000, write=PATIENCE) as (client, _):
        time.sleep(0.2)  # the server waits for this one
        body = received(client).partition(b"\r\n\r\n")[2]
    assert len(json.loads(body)) >= 60_000


def test_who_takes_no_answer_is_not_waited_for() -> None:
    with asking_for_much(60_000, write=0.1) as (client, running):
        deadline = time.monotonic() + PATIENCE
        while running._listeners[0]._open and time.monotonic() < deadline:
            time.sleep(0.01)
        body = received(client).partition(b"\r\n\r\n")[2]
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)


def test_other_forms_of_a_correct_request(raw: Raw) -> None:
    assert status(raw(b"\r\n\r\n" + LIST + b"\r\n")) == 200
    assert status(raw(LIST.replace(b"\r\n", b"\n") + b"\n")) == 200
    assert status(raw(LIST.replace(b"GET /", b"GET http://x/") + b"\r\n")) == 200
    assert status(raw(LIST.replace(b"Authorization:", b"aUTHORIZATION:   ") + b"\r\n")) == 200
    assert b" 200 OK" in raw(LIST.replace(b"/1.1", b"/1.0").replace(b"Host: x\r\n", b"") + b"\r\n", finish=False)
    closing = raw(LIST + b"Connection: close\r\n\r\n", finish=False)
    assert status(closing) == 200
    assert b"Connection: close" in closing


def test_an_ordinary_client_reuses_its_connection(running: Running) -> None:
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}"}) as client:
        for _ in range(3):
            assert client.get(running.base_url + "/store/orders").json()[0]["id"] == 101
            assert client.delete(running.base_url + "/store/orders/102").status_code == 409
        assert client.delete(running.base_url + "/store/orders/101").status_code == 204


def test_one_of_many_simultaneous_cancels_succeeds(running: Running) -> None:
    statuses: list[int] = []
    start = threading.Barrier(8)
    address = ("127.0.0.1", port_of(running.base_url))

    def cancel() -> None:
        with socket.create_connection(address, timeout=PATIENCE) as client:
            start.wait()
            client.sendall(b"DELETE /v1/store/orders/101 HTTP/1.1\r\n" + HEAD + b"\r\n")
            statuses.append(status(client.recv(65536)))

    threads = [threading.Thread(target=cancel) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [204] + [404] * 7


def test_stopping_closes_the_open_connections(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", port_of(running.base_url)), timeout=PATIENCE) as client:
        client.sendall(LIST + b"\r\n")
        client.recv(65536)
        running.stop()
        assert client.recv(100) == b""
