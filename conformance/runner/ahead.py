"""Generates what the generated checks send, in a process of its own, while the run starts.

Loading Hypothesis and Schemathesis and drawing examples takes a third of a run against a nearby service; and if several
processes share the checks, each would do so for itself. So this process is forked before anything else, and told what
to generate as soon as that is known. The results lie in a folder, one file for each call, where every process of the
run finds them. This module imports next to nothing.
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.budgets import Budget
from conformance.signals import ENDING, held_back

if TYPE_CHECKING:
    from conformance.check import Check
    from conformance.checks.generation import Call

#: On other systems, a process that has loaded system libraries must not be forked.
FORKING = sys.platform == "linux"
#: After so many seconds the run itself generates what is still missing.
PATIENCE = 60.0


class Ahead:
    """The generating process, as a mapping from calls to their results."""

    def __init__(self, budget: Budget, *, at_once: bool = True) -> None:
        """Fork the process, for a run with this budget. It loads the libraries `at_once`, or only when there is
        something to generate. If it dies, the run generates what is missing."""
        sys.stdout.flush()  # or it would be written twice
        sys.stderr.flush()
        context = multiprocessing.get_context("fork")
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-")
        self._files: dict[Call, Path] = {}
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(budget, at_once, theirs, self._pipe), daemon=True)
        with held_back():
            self.process.start()
        theirs.close()

    def generate(self, wanted: list[Call]) -> None:
        """Start generating the results of `wanted`; `generation` takes them from here, in this process and its
        forks."""
        from conformance.checks import generation

        if not wanted:
            self.close()
            return
        self._files = {call: Path(self._folder.name, str(number)) for number, call in enumerate(wanted)}
        with suppress(OSError):
            self._pipe.send(self._files)
        generation.expect(self)

    def __getitem__(self, call: Call) -> Any:
        """The result of `call`, once it is there. Raises KeyError if it will never be."""
        file = self._files[call]
        late = time.monotonic() + PATIENCE
        while not file.exists():
            # The process sends nothing over the pipe: if that is readable, the process has ended.
            if (self._pipe.poll(0.005) or time.monotonic() > late) and not file.exists():
                raise KeyError(call)
        return pickle.loads(file.read_bytes())

    def close(self) -> None:
        """End the process, and remove its results."""
        self._files = {}
        self.process.kill()
        self.process.join()
        self._pipe.close()
        self._folder.cleanup()


@contextmanager
def begun(budget: Budget, *, at_once: bool = True) -> Iterator[Ahead | None]:
    """The process, as `Ahead` starts it, for the duration of a run; None if it cannot be started, so that the run
    generates everything itself."""
    generator = None
    if FORKING:
        with suppress(OSError):  # no temporary folder, no further process
            generator = Ahead(budget, at_once=at_once)
    try:
        yield generator
    finally:
        if generator is not None:
            generator.close()


def _work(budget: Budget, at_once: bool, pipe: Connection, other: Connection) -> None:
    other.close()  # or the end of the run would go unnoticed
    for number in ENDING - {signal.SIGTERM}:
        signal.signal(number, signal.SIG_IGN)  # of the terminal: the run ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    with suppress(Exception):  # the run has ended; or it meets the same error as it generates this, and reports it
        wanted = None if at_once else pipe.recv()
        gc.disable()  # to look for garbage among what is loaded for good takes a sixth of the time
        from conformance.checks import generation, isolated_hypothesis

        isolated_hypothesis.load()
        if budget.schemathesis:
            import_module("schemathesis.openapi")
        gc.freeze()
        gc.enable()
        for call, file in (wanted or pipe.recv()).items():
            unfinished = file.with_suffix(".unfinished")
            unfinished.write_bytes(pickle.dumps(generation.generate(call)))
            unfinished.rename(file)


def calls(seed: int, target: str, budget: Budget, checks: Iterable[Check]) -> list[Call]:
    """The calls that these checks make for a target at first, in the order of a run in one process."""
    from conformance.checks import search, test_schema

    chosen = list(checks)
    found: list[Call] = []
    if any(check.id.startswith(search.CHECKS) for check in chosen):
        found.append(("sequences", (budget, search.seed_for(target, seed))))
    for check in chosen:
        requests = test_schema.GeneratedRequests(seed, target, check.requirement, budget)
        found += [("requests", requests.arguments(kind)) for kind in test_schema.GENERATED.get(check.id, ())]
    return list(dict.fromkeys(found))
