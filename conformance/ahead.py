"""Makes up what generated checks send, in a process of its own, while the run begins.

To load Hypothesis and Schemathesis and to draw takes a third of a run near by; and where several processes share the
checks, each would do it for itself. So that process is begun before anything else, and is told what to make up as soon
as that is known. This module imports next to nothing.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.checks.generation import Call

#: Elsewhere a process with libraries of the system in it must not be forked.
FORKING = sys.platform == "linux"
#: Signals that end a run.
ENDING = frozenset({signal.SIGINT, signal.SIGTERM})


class Ahead:
    """The process that makes things up."""

    def __init__(self, budget: str) -> None:
        """Fork it, for a run with this budget. If it dies, the run makes up what is lacking."""
        sys.stdout.flush()  # or it would be written twice
        sys.stderr.flush()
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(budget, theirs, self._pipe), daemon=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # or an interruption now would have a trace printed
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        theirs.close()

    def make(self, wanted: list[Call]) -> None:
        """Have `wanted` made up, for `generation` to take from here."""
        from conformance.checks import generation

        with suppress(OSError):
            self._pipe.send(wanted)
        generation.expect(self._received())

    def _received(self) -> Iterator[tuple[Call, object]]:
        with suppress(EOFError, OSError):
            while True:
                yield self._pipe.recv()


def _work(budget: str, pipe: Connection, other: Connection) -> None:
    other.close()  # or the end of the run would go unnoticed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the run ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    with suppress(Exception):  # the run has ended; or it meets the same error when it makes this up, and reports it
        import_module("hypothesis.stateful")
        if budget != "quick":
            import_module("schemathesis.openapi")
        from conformance.checks import generation

        for call in pipe.recv():
            pipe.send((call, generation.make(call)))


def calls(seed: int, target: str, budget: str, checks: Iterable[str]) -> list[Call]:
    """What these checks will have made up for a target at first, in the order in which they come."""
    from conformance.checks import test_model, test_schema

    chosen = list(checks)
    found: list[Call] = []
    if any(check.startswith("model.") for check in chosen):
        own = test_model.derived(seed, target)
        found.append(("sequences", test_model.BUDGETS[budget].arguments(own)))
    for check in chosen:
        maker = test_schema.Maker(seed, target, check, budget)
        found += [("requests", maker.arguments(kind)) for kind in test_schema.KINDS.get(check, ())]
    return found
