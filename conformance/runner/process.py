"""The life of a run in one process, whatever runs the checks there: from the probe of each target to the results.

A run has one process; or one that controls it, and workers that each run a part of the checks. This module knows
nothing of pytest: `plugin` calls it from pytest's hooks.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.check import Check, all_checks, checks_of, places
from conformance.configuration.settings import Settings
from conformance.configuration.targets import adjusted
from conformance.console.streams import complain
from conformance.reporting.run import Run
from conformance.runner import capacity, collect, preflight
from conformance.runner.collect import Collection
from conformance.runner.reference import ReferenceServer
from conformance.runner.reported import OWN_PROCESS, CheckReport
from conformance.runner.session import Session, redactor_of
from conformance.states.leases import return_left
from conformance.target import REFERENCE, Target
from conformance.transport.endpoint import tls_settings
from conformance.verdict import Exit, Status, Waiver, exit_status

if TYPE_CHECKING:
    from filelock import ReadWriteLock

#: The file that tells workers that the run is cut short.
STOP = "stop"
#: How many independent requests of one check are in flight if several processes share the checks: a round of the
#: model's walks has up to two for each walk.
IN_FLIGHT = 32


@dataclass
class Shared:
    """What the controller tells its workers: plain data."""

    seed: int
    reference: dict[str, str] | None = None
    dead: dict[str, str] = field(default_factory=dict)
    counts_on: list[str] = field(default_factory=list)  # the targets whose stores count on from a chosen id
    folder: str | None = None  # with the files that workers share: pace, locks, ledgers, the sign to stop


class Process:
    """One process of a run: the only one, the controller, or a worker."""

    def __init__(
        self,
        settings: Settings,
        shared: Shared,
        targets: dict[str, Target | None],
        waivers: dict[str, Waiver],
        *,
        worker: str | None = None,
        controls: bool = False,
    ) -> None:
        """`targets` are by name; the reference is None until its server runs. `worker` is the name of this process if
        it is a worker; `controls` says that it has workers, which begin after it."""
        self.settings = settings
        self.shared = shared
        self.targets = targets
        self.waivers = waivers
        self.is_worker = worker is not None
        self.sessions: dict[str, Session] = {}
        self.collections: dict[str, Collection] = {}
        self.check: Check | None = None  # the one under way
        self.report: CheckReport | None = None  # what that one has to report so far
        self.runs: list[Run] = []  # one for each target, once they have ended
        self.unwritten: set[str] = set()  # the targets whose results could not be written
        self.exit: Exit | None = None  # once there are results
        self.interrupted = False
        self.crashed = False  # a worker ended unexpectedly
        self.concluded = False
        self._capacities: list[int] = []  # of the targets that there is a point in judging
        self.one_at_a_time = False  # whether checks must not run side by side, whatever the command line says
        self._name = worker or OWN_PROCESS
        self._controls = controls
        self._count = 0  # of the checks that this process has begun
        self._server: ReferenceServer | None = None

    # --- before the checks

    def begin(self) -> None:
        """Start the reference server if needed, and probe each target. Raises ConfigError, with nothing sent, and
        OSError if that server does not start."""
        if REFERENCE in self.targets and self.targets[REFERENCE] is None:
            self._server = ReferenceServer()
            address = self._server.address
            self.shared.reference = dict(vars(address))
            self.targets[REFERENCE] = adjusted(address.target(), self.settings.options)
        for target in self.targets.values():
            if target is not None and urlsplit(target.base_url).scheme == "https":
                tls_settings(target)
        if self._controls:
            self.shared.folder = tempfile.mkdtemp(prefix="conformance-")
        for name in self.targets:
            session = self.session(name)
            self.collections[name] = Collection(
                session.target, datetime.now(UTC), wrong_keys=session.wrong_keys, clean=self.clean
            )
            self.probe(name)

    def probe(self, name: str) -> None:
        """Probe a target before the first check, and note the outcome in its collection."""
        session, collection = self.session(name), self.collections[name]
        try:
            reason = preflight.probe_service(session)
            if not reason and (trouble := preflight.probe_provider(session)) is not None:
                session.warnings.append(trouble)
            if session.came_late is not None:
                reason = preflight.CAME_LATE.format(session.came_late)
            if reason:
                self.shared.dead[name] = reason
                collection.pointless = True
            session.warnings += [*preflight.shortcomings(session), *preflight.remarks(session)]
            self.one_at_a_time |= session.one_at_a_time
            if session.counts_on:
                self.shared.counts_on.append(name)
            if not reason:
                self._capacities.append(capacity.adapt(session, capacity.measure(session)))
        finally:
            collection.preflight, collection.messages = session.recorder.take()

    @property
    def side_by_side(self) -> int:
        """How many checks to run at once: as many as every target can take, according to `capacity`."""
        return min(self._capacities, default=1)

    def session(self, name: str) -> Session:
        """The session of a target in this process, made when first asked for."""
        if name not in self.sessions:
            target = self.targets[name]
            if target is None:
                raise RuntimeError("the reference server is not running")
            self.sessions[name] = Session(target, self.shared.seed, self.folder, self.settings.selected)
            # The probe, before there were workers, was answered: if no connection is made now, it may be restarting.
            self.sessions[name].endpoint.answered = self.is_worker
            if self.side_by_side > 1:
                self.sessions[name].client.widen(IN_FLIGHT)
        return self.sessions[name]

    def place(self, check: Check, target: str, marks: frozenset[str]) -> tuple[int, ...] | None:
        """The position of a check in the order of the run, as a sort key; `marks` are the names of its marks in pytest.
        None if its requirement is not selected."""
        if check.requirement not in self.settings.selected:
            return None
        # A store that was emptied for a check may stay empty, so such checks come last.
        ordered = ("alone" in marks, check.needs.empty_store, "last" in marks, "first" not in marks)
        return (list(self.targets).index(target), *map(int, ordered), places()[check.id])

    # --- several processes

    @property
    def folder(self) -> Path | None:
        """The folder that the processes of this run share, if there are several."""
        return Path(self.shared.folder) if self.shared.folder else None

    def share(self, folder: Path) -> None:
        """Share pace and locks, through files in `folder`, with the processes that are about to be forked."""
        from filelock import ReadWriteLock  # noqa: F401 - or each of them would load it, and sqlite3 with it

        self.shared.folder = str(folder)
        for own in self.sessions.values():
            own.share(folder)

    def become(self, name: str) -> None:
        """Turn this forked copy into the worker `name`, which has begun nothing yet."""
        self.is_worker = True
        self._name, self._count = name, 0
        self.sessions.clear()  # those of the process that was forked; they have no connection open

    def lock(self, *, alone: bool) -> AbstractContextManager[Any]:
        """A lock to hold while a check runs: one that needs the store to itself (`alone`) runs while no other process
        runs any."""
        if self.folder is None:
            return nullcontext()
        return self._store.write_lock() if alone else self._store.read_lock()

    @cached_property
    def _store(self) -> ReadWriteLock:
        from filelock import ReadWriteLock  # most runs have one process

        return ReadWriteLock(Path(self.shared.folder or "") / "store.db")

    def stop_workers(self) -> None:
        """Tell the workers to stop after their current check."""
        if not self.is_worker and self.folder is not None:
            (self.folder / STOP).touch()

    @property
    def is_told_to_stop(self) -> bool:
        """Whether this is a worker of a run that is cut short."""
        return self.is_worker and self.folder is not None and (self.folder / STOP).exists()

    # --- one check

    def start(self, check: Check, target: str) -> None:
        """Begin a check, and a report of it."""
        self._count += 1
        self.check, self.report = check, CheckReport(check.id, target, Status.PASSED, self._name, self._count)

    def done(self) -> CheckReport | None:
        """The report of the check that has just ended."""
        report, self.check, self.report = self.report, None, None
        return report

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`. The process that will write the reports uses the time to load what that needs."""
        end = time.monotonic() + seconds
        if not self.is_worker:
            from conformance.reporting import writing

            writing.prepare()
        time.sleep(max(0.0, end - time.monotonic()))

    def classify(self, report: CheckReport, error: BaseException) -> None:
        """Note in the report of a check what it raised."""
        target = self.targets[report.target]
        assert target is not None, "no check is run before there is a target"
        report.ended_with(error, target.shell, self.clean)

    def collect(self, report: CheckReport) -> None:
        """Take in what a check reported."""
        if report.target in self.collections:
            self.collections[report.target].add(report)

    def lost(self, check: Check | None, target: str, process: str) -> None:
        """Note that a process ended unexpectedly while it ran `check` on `target`."""
        self.crashed = True
        if check is not None:
            self.collect(CheckReport.crashed(check.id, target, process))

    def unfinished(self) -> CheckReport | None:
        """The report of the check that an interruption cut short, if there is one."""
        if (report := self.done()) is not None:
            report.cut_short()
        return report

    def clean(self, text: str) -> str:
        """`text` without the secrets of any target."""
        for redactor in dict.fromkeys(redactor_of(target) for target in self.targets.values() if target is not None):
            text = redactor.clean(text)
        return text

    def give_back(self) -> dict[str, list[str]]:
        """Return the orders that this worker still holds. Gives the warnings by target about orders that could not be
        returned; no report of a check has these."""
        for own in self.sessions.values():
            own.give_back()
        return {name: list(map(self.clean, own.warnings)) for name, own in self.sessions.items()}

    # --- after the checks

    def close(self) -> None:
        """Close what this process has open."""
        for own in self.sessions.values():
            own.close()

    def conclude(self, *, cut_short: bool) -> None:
        """Draw the verdict from the reports, write the results, and stop what `begin` started."""
        self.concluded = True
        if (report := self.unfinished()) is not None:
            self.collect(report)
        self._return_orders()
        self.close()
        if self._server is not None:
            self._server.stop()
        if self.is_worker:
            return
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        reported = any(collection.reports for collection in self.collections.values())
        if reported or self.interrupted or (cut_short and self.collections):
            self._draw_verdicts(cut_short=cut_short)

    def _return_orders(self) -> None:
        """Return what this process still holds, and what workers held that have died."""
        for name, own in self.sessions.items():
            own.give_back()
            if not self.is_worker and self.folder is not None and own.provider is not None:
                own.warnings += return_left(own.provider, self.folder, name)
            if name in self.collections:
                self.collections[name].warnings += map(self.clean, own.warnings)

    def _draw_verdicts(self, *, cut_short: bool) -> None:
        """Make a run of the reports on each target, write it, and determine the exit status."""
        for collection in self.collections.values():
            # An interruption may come when the checks of one target have all ended, and those of the next have not.
            done = self.interrupted and not self.crashed and collection.is_finished(checks_of(self.settings.selected))
            run = collect.build(
                collection,
                all_checks(),
                self.settings,
                self.waivers,
                finished=datetime.now(UTC),
                complete=done or not cut_short,
                process_lost=self.crashed and not self.interrupted,
                command=_command(),
            )
            self.runs.append(run)
            self._write(run)
        status = exit_status([run.verdict for run in self.runs], interrupted=self.interrupted)
        # A verdict without its evidence is none to pass a gate with.
        self.exit = Exit.INCOMPLETE if status is Exit.CONFORMANT and self.unwritten else status

    def _write(self, run: Run) -> None:
        """Write the results of a run if they are wanted; if that fails, say so and remember it."""
        if self.settings.report_dir is None:
            return
        from conformance.reporting.writing import write  # loaded by now, or when there is no hurry any more

        try:
            write(run, self.settings.report_dir / run.target)
        except OSError as error:
            self.unwritten.add(run.target)
            complain(f"the results of {run.target} could not be written: {error}")


def _command() -> str:
    """How the run was started. No option holds a secret, but the query of a state provider's URL may."""
    told = (re.sub(r"(://[^?]*)\?.*", r"\1?<query>", argument) for argument in sys.argv[1:])
    program = Path(sys.argv[0])
    if program.name == "__main__.py":  # python -m
        program = program.parent
    name = "store-orders-conformance" if program.name == "conformance" else program.name
    return " ".join([name, *told])
