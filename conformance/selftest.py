"""`selftest`: proves that each check can fail, and that none fails a correct service.

Every fault of the reference server, and every correct variant of it, is served in a process of its own and judged by
the whole suite. A fault is caught only if the requirement that it breaks failed; a variant is left alone only if no
required one did.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console

from conformance import matrix, progress
from conformance.contract import catalogue
from conformance.matrix import Case, Judged
from conformance.reference import ReferenceServer
from conformance.target import ConfigError
from conformance.writing import replace

KEY_VARIABLE = "STORE_ORDERS_SELFTEST_KEY"


def cases() -> list[Case]:
    """Every fault and every variant of the reference server."""
    from reference_server.faults import FAULTS
    from reference_server.variants import VARIANTS

    order = list(catalogue.load().requirements)
    faults = sorted(FAULTS.values(), key=lambda fault: order.index(fault.requirement))
    return [Case(fault.name, fault.requirement, fault.description) for fault in faults] + [
        Case(variant.name, None, variant.description) for variant in VARIANTS.values()
    ]


def judge(case: Case, seed: int, budget: str) -> Judged:
    """Serve `case` and run the whole suite against it, in this process."""
    import contextlib
    import io

    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    package = files("conformance")
    started = time.monotonic()
    server = ReferenceServer([case.option, case.name])
    try:
        address = server.address
        os.environ[KEY_VARIABLE] = address.key
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            arguments = ["-c", str(package / "suite.ini"), "--rootdir", str(package), "-p", "conformance.plugin", "-q"]
            arguments += ["--conformance-base-url", address.base_url, "--conformance-api-key-env", KEY_VARIABLE]
            arguments += ["--conformance-states-url", address.states_url, "--conformance-report-dir", folder]
            arguments += [
                "--conformance-seed",
                str(seed),
                "--conformance-budget",
                budget,
                "--pyargs",
                "conformance.checks",
            ]
            with contextlib.redirect_stdout(io.StringIO()):
                status = int(pytest.main(arguments))
            results = json.loads((Path(folder) / "target" / "results.json").read_text(encoding="utf-8"))
    finally:
        server.stop()
    return _judged(case, results, status, time.monotonic() - started)


def _judged(case: Case, results: dict[str, Any], status: int, seconds: float) -> Judged:
    rows = results["requirements"]
    messages = {
        row["id"]: next((check.get("message", "") for check in row["checks"] if check["status"] == row["status"]), "")
        for row in rows
        if row["status"] in ("failed", "inconclusive")
    }
    return Judged(
        case,
        tuple(row["id"] for row in rows if row["status"] == "failed"),
        tuple(row["id"] for row in rows if row["status"] == "inconclusive"),
        status,
        round(seconds, 2),
        results["run"]["requests"],
        messages,
    )


def judge_all(chosen: list[Case], seed: int, budget: str, workers: int) -> Iterator[Judged]:
    """Judge `chosen` in parallel, each as it is done. The workers are forked, so that they need not import anew."""
    import conformance.plugin  # noqa: F401 - imported before the fork, for all workers

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for done in as_completed(pool.submit(judge, case, seed, budget) for case in chosen):
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
    found: dict[str, Judged] = {}
    with progress.bar(len(chosen)) as advance:
        for judged in judge_all(chosen, seed, budget, workers):
            found[judged.case.name] = judged
            advance(judged.case.requirement or "variants")
            if not judged.good:
                progress.line(matrix.complaint(judged))
    ordered = [found[case.name] for case in chosen]
    proof = matrix.Matrix(ordered, round(time.monotonic() - started, 1), complete=not names)
    console.print(matrix.text(proof), markup=False, soft_wrap=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, render in matrix.WRITERS.items():
        replace(folder / name, render(proof).encode())
    console.print(f"Written to {folder}", markup=False, style="dim", soft_wrap=True)
    return 0 if proof.good else 1
