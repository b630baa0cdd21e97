"""The suite against a random service, and what the oracle says of the same exchanges."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import pytest
from oracle import Breach, breaches
from random_service import RandomService

from conformance import plugin, running
from conformance.target import UNNAMED
from reference_server.running import Running

KEY = "sk-Random.Key_20311"
KEY_VARIABLE = "STORE_ORDERS_RANDOM_KEY"
FORK = multiprocessing.get_context("fork")


class Found(NamedTuple):
    """What a run against one seed came to: the status of each requirement, how often each breach was seen."""

    seed: int
    exit_status: int
    statuses: dict[str, str]
    breaches: Counter[Breach]
    requests: int
    shown: dict[Breach, list[str]]  # where a breach that nothing accounts for was seen

    @property
    def unseen(self) -> list[Breach]:
        """The breaches of which every requirement that they could be of passed."""
        return sorted(breach for breach in self.breaches if all(self.statuses[row] == "passed" for row in breach))


class _Keep:
    def __init__(self) -> None:
        self.runs: list[plugin.Run] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self.config = config
        config.pluginmanager.unregister(name="terminalreporter")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self.runs = plugin.runs(self.config)


def judge(seed: int) -> Found:
    """Serve the random service of `seed` and run the whole suite against it, in this process."""
    os.environ.update({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", KEY_VARIABLE: KEY})
    chance = RandomService(seed, KEY)
    keep = _Keep()
    with Running(chance.service, states_port=0) as server, contextlib.redirect_stderr(io.StringIO()):
        values = {"base_url": server.base_url, "states_url": server.states_url, "api_key_env": KEY_VARIABLE}
        asked = {**values, "seed": seed, "budget": "quick"}
        status = int(pytest.main(running.arguments([UNNAMED], asked, None), plugins=[keep]))
    (run,) = keep.runs
    seen = Counter(breach for exchange in chance.exchanges for breach in breaches(exchange, KEY))
    statuses = {row.requirement.id: str(row.status) for row in run.requirements}
    found = Found(seed, status, statuses, seen, run.requests, {})
    ends = {check.id: f"{check.status}: {check.message[:150]}" for row in run.requirements for check in row.checks}
    for breach in found.unseen:
        lines = found.shown.setdefault(breach, [])
        for exchange in chance.exchanges:
            if breach in set(breaches(exchange, KEY)):
                asked = f"{exchange.request.method} /v1{exchange.path}"
                by = {e.check for e in run.exchanges if e.url.endswith(f"/v1{exchange.path}") and e.status == exchange.status and e.method == exchange.request.method}
                if len(by) > 3: by = {e.check for e in run.exchanges if e.url.endswith(f"/v1{exchange.path}") and e.status == exchange.status and e.method == exchange.request.method and e.body_sha256 == __import__("hashlib").sha256(exchange.body).hexdigest()}
                lines.append(f"{asked} {exchange.status} {exchange.body[:60]!r} by {[(b, ends.get(b)) for b in by]}")
    return found


def judge_all(seeds: range, workers: int) -> Iterator[Found]:
    """Judge many, in processes forked from this one."""
    with ProcessPoolExecutor(workers, mp_context=FORK) as pool:
        yield from pool.map(judge, seeds)


if __name__ == "__main__":
    import sys

    first, last = map(int, sys.argv[1:3])
    for found in judge_all(range(first, last) if len(sys.argv) < 4 else [int(w) for w in sys.argv[3].split(",")], workers=2):
        ends = Counter(found.statuses.values())
        print(found.seed, found.exit_status, found.requests, dict(ends), "UNSEEN" if found.unseen else "")
        for breach in found.unseen:
            print("    ", breach, found.breaches[breach])
            for line in found.shown[breach]:
                print("          ", line)
