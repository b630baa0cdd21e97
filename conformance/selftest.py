"""`selftest`: proves that each check can fail, and that none fails a correct service.

Every fault of the reference server, and every correct variant of it, is served in a process of its own and judged by
the whole suite. A fault is caught only if the requirement that it breaks failed; a variant is left alone only if no
required one did.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import secrets
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from importlib.resources import files
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from conformance import matrix, plugin, progress, running, universal
from conformance.check import all_checks
from conformance.contract import catalogue
from conformance.matrix import Case, Judged
from conformance.reporting.run import Run
from conformance.target import UNNAMED, ConfigError
from conformance.verdict import Status
from conformance.writing import replace
from reference_server.faults import FAULTS
from reference_server.running import Running, build
from reference_server.variants import VARIANTS

KEY_VARIABLE = "STORE_ORDERS_SELFTEST_KEY"
#: Workers and servers are forked from this process, which has imported all that they need.
FORK = multiprocessing.get_context("fork")


def cases() -> list[Case]:
    """Every fault and every variant of the reference server."""
    order = list(catalogue.load().requirements)
    faults = sorted(FAULTS.values(), key=lambda fault: order.index(fault.requirement))
    return [Case(fault.name, fault.requirement, fault.description) for fault in faults] + [
        Case(variant.name, None, variant.description) for variant in VARIANTS.values()
    ]


class _Keep:
    """Keeps the run of a pytest session, and has nothing printed."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self._config = config
        config.pluginmanager.unregister(name="terminalreporter")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self.runs = plugin.runs(self._config)


@contextmanager
def served(case: Case) -> Iterator[tuple[str, str]]:
    """Serve `case` in a process of its own, forked so that it starts at once: its base URL and that of its states."""
    key = os.environ[KEY_VARIABLE] = secrets.token_urlsafe(24)
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=_serve, args=(case, key, theirs))
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.terminate()
        process.join()


def _serve(case: Case, key: str, pipe: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faults, variants = ([case.name], []) if case.requirement else ([], [case.name])
    service = build(key.encode(), faults=faults, variants=variants)
    with Running(service, states_port=0) as server, suppress(EOFError):
        pipe.send((server.base_url, server.states_url))
        pipe.recv()  # until the other end is closed


def judge(case: Case, seed: int, budget: str) -> Judged:
    """Serve `case` and run the whole suite against it, in this process."""
    running.seclude()
    started = time.monotonic()
    with served(case) as (base_url, states_url):
        values = {
            "base_url": base_url,
            "api_key_env": KEY_VARIABLE,
            "states_url": states_url,
            "seed": seed,
            "budget": budget,
        }
        keep = _Keep()
        status = int(pytest.main(running.arguments([UNNAMED], values, None), plugins=[keep]))
    run = keep.runs[0]
    ended = {status: tuple(row.requirement.id for row in run.requirements if row.status is status) for status in Status}
    return Judged(
        case,
        ended[Status.FAILED],
        ended[Status.INCONCLUSIVE],
        status,
        round(time.monotonic() - started, 2),
        run.requests,
        {row.requirement.id: row.reason for row in run.requirements if row.reason},
        tuple(
            _named(check.id, check.requirement)
            for row in run.requirements
            for check in row.checks
            if row.requirement.id == case.requirement and check.status is Status.FAILED
        ),
    )


def _named(check: str, requirement: str) -> str:
    """The name of a check in proofs: its id, for the judges of every exchange with the requirement."""
    return f"{check} for {requirement}" if check == universal.EVERY_EXCHANGE else check


def every_check() -> tuple[str, ...]:
    """The names of all checks, of requirements that a server can break."""
    own = [check.id for check in all_checks() if check.requirement not in matrix.NO_FAULT]
    return (*own, *(_named(universal.EVERY_EXCHANGE, requirement) for requirement in universal.JUDGES))


def proofs() -> matrix.Proofs:
    """The proofs on record: those that every seed gives. Written from the `proofs.json` of several selftests."""
    return cast(matrix.Proofs, json.loads((files("conformance") / "proofs.json").read_text(encoding="utf-8")))


def _spare_the_collector() -> None:
    """Have the garbage collector leave alone what was imported, and come less often: a tenth of the time was its."""
    gc.freeze()
    gc.set_threshold(100_000)


def judge_all(chosen: list[Case], seed: int, budget: str, workers: int) -> Iterator[Judged]:
    """Judge `chosen` in parallel, each as it is done. The workers are forked, so that they need not import anew. The
    variants come first: some are slow, and at the end everyone would wait for them."""
    first = sorted(chosen, key=lambda case: case.requirement is not None)
    with ProcessPoolExecutor(workers, mp_context=FORK, initializer=_spare_the_collector) as pool:
        for done in as_completed(pool.submit(judge, case, seed, budget) for case in first):
            yield done.result()


def run(names: tuple[str, ...], seed: int, budget: str, workers: int, folder: Path) -> int:
    """Judge the cases that `names` select (faults, variants, requirements, families; all of them where there is none),
    print and write the matrix, and return 0 if it is as it should be, else 1. Raises ConfigError."""
    everything = cases()
    chosen = [case for case in everything if not names or case.matches(names)]
    unknown = [name for name in names if not any(case.matches((name,)) for case in everything)]
    if unknown:
        raise ConfigError(f"{unknown[0]!r} is no fault, variant, requirement or family; `faults` lists them")
    console = Console(highlight=False)
    started = time.monotonic()
    found: dict[Case, Judged] = {}
    with progress.bar(len(chosen)) as advance:
        for judged in judge_all(chosen, seed, budget, workers):
            found[judged.case] = judged
            advance(judged.case.requirement or "variants")
            if not judged.good:
                progress.line(matrix.complaint(judged))
    ordered = [found[case] for case in chosen]
    seconds = round(time.monotonic() - started, 1)
    proof = matrix.Matrix(ordered, seconds, complete=not names, proofs=proofs(), checks=every_check())
    console.print(matrix.text(proof), markup=False, soft_wrap=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, render in matrix.WRITERS.items():
        replace(folder / name, render(proof).encode())
    console.print(f"Written to {folder}", markup=False, style="dim", soft_wrap=True)
    return 0 if proof.good else 1
