"""What a figure is, and how two things are timed side by side."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.runner.reference import Address, ReferenceServer

KEY_VARIABLE = "STORE_ORDERS_BENCHMARK_KEY"
#: Seconds that any one command may take.
LIMIT = 900.0


@dataclass(frozen=True)
class Figure:
    """One figure: a ratio (or a count where nothing can be compared), the most it should be, and what it came from."""

    says: str
    value: float
    aim: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None without one."""
        return None if self.aim is None else self.value <= self.aim


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes, in seconds of the wall clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def side_by_side(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, list[float]]:
    """The median of how many times longer `one` takes than `other`, run in turn so that both meet the same noise, and
    the median seconds of each."""
    pairs = [(seconds(one), seconds(other)) for _ in range(rounds)]
    ratio = statistics.median(first / second for first, second in pairs)
    return round(ratio, 3), [round(statistics.median(times), 3) for times in zip(*pairs, strict=True)]


@contextmanager
def reference(*arguments: str) -> Iterator[Address]:
    """A reference server in a process of its own."""
    server = ReferenceServer(arguments)
    try:
        yield server.address
    finally:
        server.stop()


def suite(address: Address, folder: Path, *arguments: str, allowed: Sequence[int] = (0,)) -> dict[str, Any]:
    """Run the suite as a user would, from the shell, and return its results. Raises RuntimeError for a status that is
    not `allowed`."""
    words = [sys.executable, "-m", "conformance", "run", "--base-url", address.base_url, "--states-url"]
    words += [address.states_url, "--api-key-env", KEY_VARIABLE, "--report-dir", str(folder), *arguments]
    done = shell(words, {KEY_VARIABLE: address.key}, allowed)
    found = next(folder.rglob("results.json"), None)
    if found is None:
        raise RuntimeError(f"no results: {done.stdout[-400:]}{done.stderr[-400:]}")
    results: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return results


def shell(
    words: Sequence[str],
    variables: dict[str, str] | None = None,
    allowed: Sequence[int] = (0,),
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in `folder` if that is given. Raises RuntimeError for a status that is not
    `allowed`."""
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LIMIT, cwd=folder, env=environment, check=False
    )
    if done.returncode not in allowed:
        said = f"{done.stderr[-600:]}{done.stdout[-600:]}"
        raise RuntimeError(f"{' '.join(words[:4])} … exited with {done.returncode}: {said}")
    return done


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="conformance-benchmark-") as folder:
        yield Path(folder)
