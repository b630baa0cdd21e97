"""The suite against a random service, and what the oracle says of the same exchanges."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import pytest
from oracle import Breach, breaches
from random_service import RandomService

from conformance.commands import running
from conformance.reporting.run import Run
from conformance.runner import embedding
from conformance.runner.items import process_in
from conformance.target import UNNAMED
from reference_server.running import Running

KEY = "sk-Random.Key_20311"
KEY_VARIABLE = "STORE_ORDERS_RANDOM_KEY"
FORK = multiprocessing.get_context("fork")


class Found(NamedTuple):
    """What a run against one seed came to: the status of each requirement, how often each breach was answered, and
    answers that show those breaches of which every requirement that they could be of passed."""

    seed: int
    exit_status: int
    requests: int
    statuses: dict[str, str]
    breaches: Counter[Breach]
    unseen: dict[Breach, str]


class _Keep:
    def __init__(self) -> None:
        self.runs: list[Run] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self.runs = process_in(self.config).runs


def judge(seed: int) -> Found:
    """Serve the random service of `seed` and run the whole suite against it, in this process."""
    os.environ[KEY_VARIABLE] = KEY
    chance = RandomService(seed, KEY)
    keep = _Keep()
    with Running(chance.service, states_port=0) as server, contextlib.redirect_stderr(io.StringIO()):
        values = {"base_url": server.base_url, "states_url": server.states_url, "api_key_env": KEY_VARIABLE}
        asked = {**values, "seed": seed, "budget": "quick"}
        status = embedding.main(running.options_for([UNNAMED], asked, None), [keep, embedding.Quiet()])
    (run,) = keep.runs
    statuses = {row.requirement.id: str(row.status) for row in run.requirements}
    seen: Counter[Breach] = Counter()
    unseen: dict[Breach, str] = {}
    for exchange in chance.exchanges:
        for breach in breaches(exchange, KEY):
            seen[breach] += 1
            if all(statuses[row] == "passed" for row in breach):
                request = exchange.request
                unseen[breach] = f"{request.method} {request.path} {exchange.status} {exchange.body[:100]!r}"
    return Found(seed, status, run.requests, statuses, seen, unseen)


def judge_all(seeds: Iterable[int], workers: int) -> Iterator[Found]:
    """Judge many, in processes forked from this one."""
    with ProcessPoolExecutor(workers, mp_context=FORK) as pool:
        yield from pool.map(judge, seeds)


def main() -> int:
    """`random_judge.py FIRST LAST`: judge these seeds, a line for each; 1 if a breach of one passed."""
    first, last = map(int, sys.argv[1:])
    status = 0
    for found in judge_all(range(first, last + 1), workers=os.cpu_count() or 1):
        ended = Counter(found.statuses.values())
        told = ", ".join(f"{ended[word]} {word}" for word in ("passed", "failed", "inconclusive", "excluded"))
        print(f"seed {found.seed}: exit status {found.exit_status}, {told}; {found.breaches.total()} breaches")
        for breach, shown in found.unseen.items():
            status = 1
            print(f"    {' or '.join(breach)} passed: {shown}")
    return status


if __name__ == "__main__":
    sys.exit(main())
