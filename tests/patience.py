"""How long tests wait, and how they measure: they share their machine, and it may stand still for minutes."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds to wait for what should come: only what never comes fails.
PATIENCE = 900.0
#: How often something is measured before it counts as too long.
TRIES = 4


def count() -> None:
    """What other work is measured by: some hundredths of a second of a processor."""
    sum(range(1_000_000))


def within(most: float, work: Callable[[], object], measure: Callable[[], object] = count) -> bool:
    """Whether `work` takes less than `most` times as long as `measure`, in one of some tries. Seconds would tell of the
    machine: where others slow it down, all takes ten or thirty times as long for a while, in processor time too."""
    return any(_seconds(work) < most * _seconds(measure) for _ in range(TRIES))


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
