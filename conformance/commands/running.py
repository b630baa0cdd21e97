"""`run`: the checks under pytest, with progress while they run and a summary afterwards."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.budgets import BUDGETS
from conformance.check import Check, checks_of, exclusions
from conformance.checks.generation import Call
from conformance.configuration import settings, waivers
from conformance.configuration.settings import Settings
from conformance.configuration.targets import resolve
from conformance.console.streams import complain, give_up_unwritable
from conformance.console.terminal import Console
from conformance.contract import catalogue
from conformance.reporting import console as printed
from conformance.reporting.files import make_folder, validate_folder
from conformance.reporting.run import Run
from conformance.runner import ahead, embedding, preflight
from conformance.runner.items import process_in, report_of
from conformance.runner.side_by_side import SideBySide
from conformance.signals import ENDING
from conformance.target import REFERENCE, Target
from conformance.text import plural
from conformance.verdict import Exit, Status

if TYPE_CHECKING:
    from rich.progress import Progress

#: After so many seconds of silence, a log is told how far the run has come.
SILENCE = 10.0


def run(targets: tuple[str, ...], values: dict[str, Any], workers: str | None, generator: ahead.Ahead | None) -> int:
    """Judge `targets` and return the exit status. The `generator`, if any, generates what checks send. Raises
    ConfigError before anything is sent."""
    chosen = settings.read(targets, values)
    resolved = resolve(chosen.targets, chosen.options)
    settings.validate_workers(workers)
    waivers.read(chosen.waivers, datetime.now(UTC).date())
    folder = Path(values["report_dir"])
    make_folder(folder)
    names = [target.name if target else REFERENCE for target in resolved]
    for name in names:
        validate_folder(folder / name)
    checks = checks_of(chosen.selected)
    watch = _Watch(names, checks)
    if generator is not None:
        generator.generate(_to_generate(chosen, resolved, checks))
    options = options_for(names, {**values, "seed": chosen.seed}, None if ahead.FORKING else workers)
    interruption = _Interruption()
    for number in ENDING:
        signal.signal(number, interruption.arrive)
    beside = [SideBySide(watch, workers)] if ahead.FORKING else []
    try:
        status = embedding.main(options, [embedding.Quiet(), watch, interruption, *beside])
    except KeyboardInterrupt:  # before pytest had begun its session, which heeds it
        status = pytest.ExitCode.INTERRUPTED
    runs = watch.runs
    try:
        _conclude(runs, folder, chosen.seed, watch.unwritten)
    except OSError as error:  # what could be written is written: whoever does not read this has it there
        complain(f"the summary could not be written: {error}")
        give_up_unwritable()
    return _exit_status(status, runs)


def _exit_status(ended: int, runs: list[Run]) -> int:
    """The exit status of a command with these results, whose pytest has `ended` with a status of its own."""
    if ended in (pytest.ExitCode.INTERRUPTED, Exit.INTERRUPTED):
        if not runs:
            complain("interrupted before the first request")
        elif all(run.complete for run in runs):
            complain("interrupted after the last check: the results are complete")
        return Exit.INTERRUPTED
    if not runs:
        return Exit.INCOMPLETE if ended in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR) else Exit.USAGE
    return ended


def _to_generate(chosen: Settings, targets: list[Target | None], checks: Sequence[Check]) -> list[Call]:
    """What is to be generated for the checks that will run."""
    wanted: list[Call] = []
    for target in targets:
        left_out = exclusions(checks, target) if target else {}
        runnable = [check for check in checks if check.id not in left_out]
        wanted += ahead.calls(chosen.seed, target.name if target else REFERENCE, BUDGETS[chosen.budget], runnable)
    return wanted


def options_for(names: list[str], values: dict[str, Any], workers: str | None) -> list[str]:
    """The options of pytest for a run against the targets `names`, with the options of the command in `values`."""
    options = ["-p", "xdist.plugin", "-n", str(workers)] if workers not in (None, "1") else []
    for name in names:
        options += ["--target", name]
    for flag, described in settings.OPTIONS.items():
        value = values.get(settings.name_of(flag))
        ours = f"--conformance-{flag[2:]}"
        if described.get("action") == "store_true":
            if value:
                options.append(ours)
        elif isinstance(value, list):
            options += [f"{ours}={one}" for one in value]
        elif value is not None:
            options.append(f"{ours}={value}")
    return options


def _conclude(runs: list[Run], folder: Path, seed: int, unwritten: Collection[str]) -> None:
    """Print the summary of each run, where its files are (unless it is `unwritten`), and how to repeat it."""
    console = Console(highlight=False)
    for each in runs:
        console.print()
        printed.summary(each, console)
        sent = f"{plural(each.requests, 'request')} in {each.seconds:.1f} s, seed {seed}"
        where = "not written" if each.target in unwritten else f"{folder / each.target}{os.sep}"
        console.print(f"{sent}. Results: {where}", markup=False, style="dim", soft_wrap=True)
        # More processes are no help where the store allows but one.
        alone = {preflight.USED_AGAIN, preflight.FOLLOWS_LARGEST}.intersection(each.warnings)
        if not alone and (hint := printed.hint(each)):
            console.print(hint, markup=False, style="dim", soft_wrap=True)
        _tell_github(each)


def _tell_github(run: Run) -> None:
    """On GitHub, annotate a run and add it to the job summary."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in printed.github_annotations(run):
            print(line)
    if step_summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        from conformance.reporting import summary

        try:
            with Path(step_summary).open("a", encoding="utf-8") as file:
                file.write(summary.render(run))
        except OSError as error:
            complain(f"$GITHUB_STEP_SUMMARY could not be written: {error}")


class _Interruption:
    """Ends the run at the first signal. Python drops exceptions in some of its callbacks, so it is also noted.

    Pipelines send a second signal soon after the first; it must not prevent orders from being returned.
    """

    def __init__(self) -> None:
        self._arrived = False

    def arrive(self, number: int, frame: object) -> None:
        """The signal handler."""
        if self._arrived:
            return
        self._arrived = True
        raise KeyboardInterrupt(f"signal {number}")

    def pytest_runtest_logstart(self) -> None:
        if self._arrived:
            raise KeyboardInterrupt


class _Watch:
    """Shows progress: a bar on a terminal; elsewhere a line for each family of requirements, and, if that takes long,
    how many checks are done."""

    def __init__(self, names: list[str], checks: Sequence[Check]) -> None:
        self.runs: list[Run] = []
        self.unwritten: set[str] = set()  # the targets of those whose results could not be written
        self._rows = catalogue.load().requirements
        self._requirement = {check.id: check.requirement for check in checks}
        self._left = Counter((name, self._rows[check.requirement].family) for name in names for check in checks)
        self._found: dict[tuple[str, str], Counter[Status]] = {}
        self._several = len(names) > 1
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._total = len(names) * len(checks)
        self._config: pytest.Config | None = None
        self._told = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self._config = config
        if self._console.is_live:
            from conformance.console import progress

            self._bar = progress.drawn(self._console)
            self._task = self._bar.add_task("looking", total=self._total)
            self._bar.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = report_of(report)
        if told is None or told.check not in self._requirement:
            return
        family = self._rows[self._requirement[told.check]].family
        label = f"{told.target} {family}" if self._several else family
        place = (told.target, family)
        self._found.setdefault(place, Counter())[told.status] += 1
        with suppress(OSError):  # the terminal may be gone, or the disk that this goes to full
            if self._bar is not None:
                self._bar.update(self._task, advance=1, description=label)
                return
            done = sum(self._found[place].values())
            if done == self._left[place]:
                counted = ", ".join(
                    f"{self._found[place][status]} {status}" for status in Status if self._found[place][status]
                )
                self._tell(f"{label} checks: {counted}")
            elif time.monotonic() - self._told > SILENCE:
                self._tell(f"{sum(map(Counter.total, self._found.values()))} of {self._total} checks done")

    def _tell(self, line: str) -> None:
        self._told = time.monotonic()
        self._console.print(line, markup=False, soft_wrap=True)

    def pytest_internalerror(self, excrepr: object) -> bool:
        self._stop()
        sys.stderr.write(f"the suite itself failed; please report this:\n{excrepr}\n")
        return True  # pytest need not say it again

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._stop()
            sys.stderr.write(f"the suite itself failed; please report this:\n{report.longreprtext}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self._stop()
        if self._config is not None:
            own = process_in(self._config)
            self.runs, self.unwritten = own.runs, own.unwritten

    def _stop(self) -> None:
        if self._bar is not None:
            with suppress(OSError):
                self._bar.stop()
            self._bar = None
