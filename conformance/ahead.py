"""Makes up what generated checks send, in a process of its own, while the run begins.

To load Hypothesis and Schemathesis and to draw takes a third of a run near by; and where several processes share the
checks, each would do it for itself. So that process is begun before anything else, and is told what to make up as soon
as that is known. What it makes up lies in a folder, a file for each call, where every process of the run finds it when
it is due. This module imports next to nothing.
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
from conformance.ending import ENDING, held_back

if TYPE_CHECKING:
    from conformance.check import Check
    from conformance.checks.generation import Call

#: Elsewhere a process with libraries of the system in it must not be forked.
FORKING = sys.platform == "linux"
#: Seconds after which what is still not there is made up by the run itself.
PATIENCE = 60.0


class Ahead:
    """The process that makes things up, as a mapping from calls to what they make up."""

    def __init__(self, budget: Budget) -> None:
        """Fork it, for a run with this budget. If it dies, the run makes up what is lacking."""
        sys.stdout.flush()  # or it would be written twice
        sys.stderr.flush()
        context = multiprocessing.get_context("fork")
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-")
        self._files: dict[Call, Path] = {}
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(budget, theirs, self._pipe), daemon=True)
        with held_back():
            self.process.start()
        theirs.close()

    def make(self, wanted: list[Call]) -> None:
        """Have `wanted` made up, for `generation` to take from here in this process and in those forked from it."""
        from conformance.checks import generation

        if not wanted:
            self.close()
            return
        self._files = {call: Path(self._folder.name, str(number)) for number, call in enumerate(wanted)}
        with suppress(OSError):
            self._pipe.send(self._files)
        generation.expect(self)

    def __getitem__(self, call: Call) -> Any:
        """What `call` makes up, once it is there. Raises KeyError where it will not be."""
        file = self._files[call]
        late = time.monotonic() + PATIENCE
        while not file.exists():
            # Nothing is ever sent: that there is something to receive means that the process has ended.
            if (self._pipe.poll(0.005) or time.monotonic() > late) and not file.exists():
                raise KeyError(call)
        return pickle.loads(file.read_bytes())

    def close(self) -> None:
        """End the process, and remove what it made: from now on there is nothing here."""
        self._files = {}
        self.process.kill()
        self.process.join()
        self._pipe.close()
        self._folder.cleanup()


@contextmanager
def begun(budget: Budget) -> Iterator[Ahead | None]:
    """The process, for as long as a run with this budget takes; None where there can be none, and the run makes up
    everything itself."""
    maker = None
    if FORKING:
        with suppress(OSError):  # no temporary folder, no further process
            maker = Ahead(budget)
    try:
        yield maker
    finally:
        if maker is not None:
            maker.close()


def _work(budget: Budget, pipe: Connection, other: Connection) -> None:
    other.close()  # or the end of the run would go unnoticed
    for number in ENDING - {signal.SIGTERM}:
        signal.signal(number, signal.SIG_IGN)  # of the terminal: the run ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    with suppress(Exception):  # the run has ended; or it meets the same error when it makes this up, and reports it
        gc.disable()  # to look for garbage among what is loaded for good takes a sixth of the time
        from conformance.checks import generation, secluded

        secluded.load()
        if budget.schemathesis:
            import_module("schemathesis.openapi")
        gc.freeze()
        gc.enable()
        for call, file in pipe.recv().items():
            unfinished = file.with_suffix(".unfinished")
            unfinished.write_bytes(pickle.dumps(generation.make(call)))
            unfinished.rename(file)


def calls(seed: int, target: str, budget: Budget, checks: Iterable[Check]) -> list[Call]:
    """What these checks will have made up for a target at first, in the order in which they come near by."""
    from conformance.checks import search, test_schema

    chosen = list(checks)
    found: list[Call] = []
    if any(check.id.startswith(search.CHECKS) for check in chosen):
        found.append(("sequences", (budget, search.seed_for(target, seed))))
    for check in chosen:
        maker = test_schema.Maker(seed, target, check.requirement, budget)
        found += [("requests", maker.arguments(kind)) for kind in test_schema.MADE_UP.get(check.id, ())]
    return list(dict.fromkeys(found))
