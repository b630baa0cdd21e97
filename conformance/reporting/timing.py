"""How long answers and checks took, as the page of a run shows it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from math import ceil, floor, log10

from conformance.reporting.run import Run
from conformance.transport.evidence import Exchange
from conformance.verdict import CheckResult

#: Points in the plot.
_POINTS = 2_000


@dataclass(frozen=True)
class Timing:
    """Response times of one operation, in milliseconds; 95 of 100 answers took no longer than `high`."""

    operation: str
    answered: int
    unanswered: int
    median: float
    high: float
    longest: float


@dataclass(frozen=True)
class Plot:
    """Response times on a logarithmic axis: per operation a row of dots (an SVG path) and its median."""

    height: int
    rows: list[tuple[str, float, str, float]]
    ticks: list[tuple[str, float]]


def _by_operation(run: Run) -> dict[str, list[Exchange]]:
    groups: dict[str, list[Exchange]] = {}
    for exchange in run.exchanges:
        groups.setdefault(exchange.operation, []).append(exchange)
    return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def timings(run: Run) -> list[Timing]:
    """The response times of each operation, the one with the most requests first."""
    rows = []
    for operation, exchanges in _by_operation(run).items():
        times = sorted(1000 * exchange.seconds for exchange in exchanges if exchange.status is not None)
        told = (statistics.median(times), times[int(0.95 * len(times))], times[-1]) if times else (0.0, 0.0, 0.0)
        rows.append(Timing(operation, len(times), len(exchanges) - len(times), *told))
    return rows


def plot(run: Run) -> Plot | None:
    """The plot, 640 wide: from 1 ms, or less if an answer was faster, to the next power of ten; None where nothing was
    answered."""
    answered = [max(1000 * exchange.seconds, 0.1) for exchange in run.exchanges if exchange.status is not None]
    if not answered:
        return None
    low = min(0, floor(log10(min(answered))))
    top = max(low + 1, ceil(log10(max(answered))))

    def across(milliseconds: float) -> float:
        return round(24 + 590 * (log10(max(milliseconds, 10**low)) - low) / (top - low), 1)

    rows: list[tuple[str, float, str, float]] = []
    for operation, exchanges in _by_operation(run).items():
        times = [1000 * e.seconds for e in exchanges if e.status is not None]
        if times:
            middle = 38 + 60 * len(rows)
            kept = times[:: max(1, len(times) // _POINTS)]
            # Dots of one row are spread over its height by their place in the run, so that they stay apart.
            dots = "".join(f"M{across(t)} {middle - 12 + 24 * (i * 0.618 % 1):.1f}h0" for i, t in enumerate(kept))
            rows.append((operation, float(middle), dots, across(statistics.median(times))))
    ticks = [(duration(10.0**exponent), across(10.0**exponent)) for exponent in range(low, top + 1)]
    return Plot(60 * len(rows) + 30, rows, ticks)


def slowest(run: Run) -> list[tuple[str, CheckResult]]:
    """The five checks that took longest, each with the id of its requirement."""
    checks = [(result.requirement.id, check) for result in run.requirements for check in result.checks]
    checks.sort(key=lambda pair: (-pair[1].seconds, pair[0], pair[1].id))
    return [pair for pair in checks[:5] if pair[1].seconds > 0]


def duration(milliseconds: float) -> str:
    """A time in words: `0.4 ms`, `12 ms`, `1.5 s`."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"
