"""Makes up what generated checks send, in a process of its own, while the run begins.

To load Hypothesis and Schemathesis and to draw takes a third of a run near by; and where several processes share the
checks, each would do it for itself.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

from conformance.checks import generation, test_model, test_schema
from conformance.checks.generation import Call


def calls(seed: int, target: str, budget: str, checks: Iterable[str]) -> list[Call]:
    """What these checks will have made up for a target at first, in the order in which they come."""
    chosen = list(checks)
    found: list[Call] = []
    if any(check.startswith("model.") for check in chosen):
        own = test_model.derived(seed, target)
        found.append(("sequences", test_model.BUDGETS[budget].arguments(own)))
    for check in chosen:
        maker = test_schema.Maker(seed, target, check, budget)
        found += [("requests", maker.arguments(kind)) for kind in test_schema.KINDS.get(check, ())]
    return found


def begin(wanted: list[Call]) -> None:
    """Have `wanted` made up by a process that is forked here, for `generation` to take from it. If it dies, this
    process makes up what is lacking."""
    if not wanted:
        return
    sys.stdout.flush()  # or it would be written twice
    sys.stderr.flush()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    context.Process(target=_work, args=(wanted, theirs), name="generation", daemon=True).start()
    theirs.close()
    generation.expect(_received(ours))


def _work(wanted: list[Call], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the run ends this process
    with suppress(BrokenPipeError):  # the run has ended
        for call in wanted:
            pipe.send((call, generation.make(call)))


def _received(pipe: Connection) -> Iterator[tuple[Call, object]]:
    try:
        while True:
            yield pipe.recv()
    except (EOFError, OSError):
        pipe.close()
