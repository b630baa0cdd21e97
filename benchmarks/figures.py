"""The figures of the suite. Each function measures one, in a few seconds when `quick`, and returns it."""

from __future__ import annotations

import http.server
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from benchmarks import listing
from benchmarks.figure import KEY_VARIABLE, Figure, reference, seconds, shell, side_by_side, suite, workplace
from conformance.runner.reference import Address

#: Requests of one connection in the figure about the reference server, and how many are sent one behind the other: to
#: wake a process for each takes as long as to answer it, and on some machines longer.
REQUESTS, IN_A_ROW = 2000, 20
#: How often each side of the figure about large listings is measured.
ROUNDS = 3


def overhead(quick: bool) -> Figure:
    """A standard run, from shell to exit, over a bare loop that sends the same requests with the same client."""
    rounds = 1 if quick else 5
    with workplace() as folder, reference() as address:
        results = suite(address, folder, "--seed", "1")
        har = next(folder.rglob("evidence.har"))
        bare = [sys.executable, "-m", "benchmarks.replay", str(har)]
        ratio, times = side_by_side(
            lambda: suite(address, folder / "again", "--seed", "1"),
            lambda: shell(bare, {KEY_VARIABLE: address.key}),
            rounds,
        )
    details = {"requests": results["run"]["requests"], "run seconds": times[0], "loop seconds": times[1]}
    return Figure("standard run, from shell to exit, over a bare loop sending the same requests", ratio, 1.5, details)


def large_listing(quick: bool) -> Figure:
    """A listing fully verified, over `json.loads` of the same bytes; each in a process of its own."""
    sizes = (100_000,) if quick else (1_000, 10_000, 100_000, 1_000_000)
    found = {size: _listing(size, "sound") for size in sizes}
    largest = found[sizes[-1]]
    details: dict[str, Any] = {f"time at {size:,}": each["time"] for size, each in found.items()}
    details["memory"] = largest["memory"]
    if not quick:
        details["time with one broken element"] = _listing(sizes[-1], "broken")["time"]
        details["time with a field of its own in each"] = _listing(sizes[-1], "extended")["time"]
    return Figure(
        f"{sizes[-1]:,} orders verified, over json.loads of the same bytes",
        largest["time"],
        1.6,
        details,
    )


def _listing(size: int, kind: str) -> dict[str, float]:
    """How much more time and memory it takes to verify such a listing than to load it."""
    ratios: dict[str, list[float]] = {"time": [], "memory": []}
    with workplace() as folder:
        file = folder / "listing.json"
        file.write_bytes(listing.body(size, kind))

        def measured(way: str) -> dict[str, float]:
            words = [sys.executable, "-m", "benchmarks.listing", way, str(file), str(size), kind]
            return dict(json.loads(shell(words).stdout))

        for _ in range(ROUNDS):
            verified, loaded = measured("verify"), measured("loads")
            for name, found in ratios.items():
                found.append(verified[name] / loaded[name])
    return {name: round(statistics.median(found), 3) for name, found in ratios.items()}


def distance(quick: bool) -> Figure:
    """A standard run against a service 100 ms away, in seconds: the slowest of some seeds, each with other steps."""
    seeds = ("1",) if quick else ("1", "2", "3", "4", "5")
    with workplace() as folder, reference() as address, far(address, 100) as remote:
        near = seconds(lambda: suite(address, folder / "near", "--seed", "1"))
        took = [seconds(lambda: suite(remote, folder, "--seed", seed)) for seed in seeds]  # noqa: B023 - called at once
    details = {"near": round(near, 1), "median": round(statistics.median(took), 1), "seeds": len(seeds)}
    return Figure("seconds of a standard run at 100 ms, the slowest", round(max(took), 1), 10, details)


def workers(quick: bool) -> Figure:
    """Runs with several workers against a service that takes 20 ms: how much of a worker's time is lost."""
    times: dict[int, float] = {}
    statuses: list[list[tuple[str, str]]] = []
    with workplace() as folder, reference() as address, far(address, 20) as remote:
        for count in (1, 2) if quick else (1, 2, 4):
            started = time.perf_counter()
            results = suite(remote, folder / str(count), "--seed", "1", "-n", str(count))
            times[count] = time.perf_counter() - started
            statuses.append([(row["id"], row["status"]) for row in results["requirements"]])
    same = all(each == statuses[0] for each in statuses)
    details = {f"-n {count}": round(took, 1) for count, took in times.items()}
    speedup = {f"speed-up of -n {count}": round(times[1] / took, 2) for count, took in times.items() if count > 1}
    most = max(times)
    lost = round(times[most] / times[1], 2)
    return Figure(f"time of -n {most} over -n 1 at 20 ms", lost, None, {**details, **speedup, "identical": same})


def reference_server(quick: bool) -> Figure:
    """Cancels on one kept-alive connection, some in a row, against a handler of http.server that does nothing."""
    rounds = 3 if quick else 7
    bare = ("-c", "from benchmarks.figures import serve_nothing; serve_nothing()")
    with reference() as address, listening(*bare) as port:
        ours = urlsplit(address.base_url).port
        assert ours is not None
        ask = f"DELETE /v1/store/orders/999 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {address.key}\r\n\r\n"
        ratio, times = side_by_side(
            lambda: _converse(ours, ask.encode(), b"404"), lambda: _converse(port, ask.encode(), b"204"), rounds
        )
    rates = {"requests a second": round(REQUESTS / times[0]), "of the bare handler": round(REQUESTS / times[1])}
    return Figure("time for a cancel, over a bare handler of http.server", ratio, None, rates)


def _converse(port: int, ask: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(ask)
        size = len(connection.recv(65536))
        for _ in range(REQUESTS // IN_A_ROW):
            connection.sendall(ask * IN_A_ROW)
            answers = b""
            while len(answers) < size * IN_A_ROW:
                answers += connection.recv(65536)
            if {answers[place + 9 : place + 12] for place in range(0, len(answers), size)} != {status}:
                raise RuntimeError(f"answered {answers[:40]!r}")


class _Nothing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the second answer waits for the client to acknowledge the first

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@contextmanager
def listening(*arguments: str) -> Iterator[int]:
    """A process of Python that listens for as long as this lasts; the port, which it prints first."""
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def serve_nothing() -> None:
    """Serve, and print the port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Nothing)
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def far(address: Address, milliseconds: float) -> Iterator[Address]:
    """The same service, at a distance."""
    port = urlsplit(address.base_url).port
    with listening("-m", "benchmarks.proxy", str(port), str(milliseconds)) as nearby:
        yield replace(address, base_url=address.base_url.replace(str(port), str(nearby)))


def selftest(quick: bool) -> Figure:
    """Seconds of the selftest for each fault and variant, of which it judges several at a time."""
    names = ["CANCEL-3"] if quick else []
    with workplace() as folder:
        words = [sys.executable, "-m", "conformance", "selftest", "--report-dir", str(folder), *names]
        took = seconds(lambda: shell(words))
        matrix = json.loads((folder / "matrix.json").read_text(encoding="utf-8"))
    cases = len(matrix["cases"])
    details = {"cases": cases, "seconds": round(took, 1), "processors": os.cpu_count()}
    return Figure("seconds for each fault and variant", round(took / cases, 3), None, details)
