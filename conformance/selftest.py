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
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from conformance.contract import catalogue
from conformance.reference import ReferenceServer
from conformance.settings import BUDGETS

KEY_VARIABLE = "STORE_ORDERS_SELFTEST_KEY"


@dataclass(frozen=True)
class Case:
    """A server to judge: a fault with the requirement that it breaks, or a variant, with none."""

    name: str
    requirement: str | None
    description: str

    @property
    def option(self) -> str:
        """The option of the reference server that makes it so."""
        return "--fault" if self.requirement else "--variant"


@dataclass(frozen=True)
class Judged:
    """What the suite said of a case: the requirements that failed and those that could not be decided."""

    case: Case
    failed: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    exit_status: int = 0
    seconds: float = 0.0
    requests: int = 0
    messages: dict[str, str] = field(default_factory=dict)

    @property
    def further(self) -> tuple[str, ...]:
        """Required requirements that failed beside the one that the fault breaks."""
        rows = catalogue.load().requirements
        return tuple(id_ for id_ in self.failed if id_ != self.case.requirement and rows[id_].level == "required")

    @property
    def good(self) -> bool:
        """Whether the fault was caught, or the variant left alone and decided."""
        if self.case.requirement:
            return self.case.requirement in self.failed
        return not self.further and self.exit_status == 0


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


if __name__ == "__main__":
    import sys

    words = sys.argv[1:]
    chosen = [
        case
        for case in cases()
        if not words
        or case.name in words
        or case.requirement in words
        or ("variants" in words and not case.requirement)
    ]
    found = []
    for judged in judge_all(chosen, 1, BUDGETS[0], 2):
        found.append(judged)
        mark = "ok" if judged.good and not judged.further else "EXTRA" if judged.good else "BAD"
        if mark != "ok":
            print(
                mark,
                judged.case.name,
                judged.case.requirement,
                "failed",
                judged.failed,
                "inconclusive",
                judged.inconclusive[:12],
                judged.seconds,
                flush=True,
            )
            for id_ in dict.fromkeys((*judged.further, *judged.inconclusive[:2])):
                print("     ", id_, judged.messages.get(id_, "")[:260])
    print(
        len(found),
        "judged",
        sum(j.good for j in found),
        "good",
        sum(len(j.further) for j in found if j.case.requirement) / max(1, len(found)),
        "further",
        sum(j.seconds for j in found),
    )
