"""The suite as a pytest plugin: options, fixtures, outcomes to statuses.

    worker (or the one process)                        controller (or the one process)
    item ─▶ excluded? target dead? ─▶ check ─▶ Report ──▶ Collection ─▶ Run ─▶ reports, exit status

With `-n` the controller starts the reference server, looks at the targets and collects; the workers run the checks.
What a check reported is plain data in `report.conformance`; it crosses from a worker as JSON, since xdist's own channel
takes no number above 2^31 and no text that is not UTF-8.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from _pytest._code.code import TerminalRepr

from conformance import collect, preflight, settings, verify, waivers
from conformance.check import Check, all_checks, of_function
from conformance.collect import Collection
from conformance.configuration import adjusted, resolve
from conformance.ending import ENDING
from conformance.reference import Address, ReferenceServer
from conformance.reported import OWN_PROCESS, Report
from conformance.reporting.run import Run
from conformance.session import Session, redactor_of
from conformance.settings import Settings
from conformance.states.leases import return_left
from conformance.target import REFERENCE, ConfigError, Target
from conformance.transport.endpoint import Endpoint
from conformance.verdict import Exit, Outcome, Status, Waiver

if TYPE_CHECKING:
    from filelock import ReadWriteLock

PLUGIN = "conformance"
pytest_plugins = ["conformance.fixtures"]
#: Prefix of the names under which pytest keeps our options, so that they never meet those of others.
DEST = "conformance_"
#: The file that tells workers that the run is cut short.
STOP = "stop"
#: How many independent requests of one check are in flight where several processes share the checks: a round of the
#: model's walks has up to two for each walk.
IN_FLIGHT = 32


@dataclass
class Shared:
    """What the controller tells its workers: plain data."""

    seed: int
    reference: dict[str, str] | None = None
    dead: dict[str, str] = field(default_factory=dict)
    counts_on: list[str] = field(default_factory=list)  # the targets whose stores count on from a chosen id
    folder: str | None = None  # of files by which workers keep together


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of a Store Orders Service")
    group.addoption(
        "--target", dest=f"{DEST}target", action="append", default=[], metavar="NAME", help="a target, or reference"
    )
    for flag, arguments in settings.OPTIONS.items():
        # pytest itself and its plugins have options called --strict, --timeout and --base-url.
        group.addoption(f"--conformance-{flag[2:]}", dest=DEST + settings.name_of(flag), **arguments)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: runs while no other check does; alone('late'): after the others")
    config.addinivalue_line("markers", "lengthy: waits for one answer after the other, and should begin early")
    config.addinivalue_line("markers", "xdist_group(name): checks that one process runs, since they share something")
    for library in ("httpcore", "httpx", "hpack", "h2"):  # whose debug logs hold header fields
        logging.getLogger(library).setLevel(logging.WARNING)
    if config.pluginmanager.has_plugin(PLUGIN):  # an audit's, which runs the checks on a record
        return
    try:
        config.pluginmanager.register(Plugin.of(config), PLUGIN)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if of_function(metafunc.function) is not None:
        names = plugin_of(metafunc.config).targets
        metafunc.parametrize("session", list(names), indirect=True, scope="session")


def plugin_of(config: pytest.Config) -> Plugin:
    """The suite's plugin in a session; once that has ended, `runs` and `unwritten` tell what came of it."""
    return cast(Plugin, config.pluginmanager.get_plugin(PLUGIN))


def run_collected(session: pytest.Session, own: Plugin) -> None:
    """Run the checks that `session` has collected as `own` says, which takes the place of the plugin there was."""
    session.config.pluginmanager.unregister(name=PLUGIN)
    session.config.pluginmanager.register(own, PLUGIN)
    own.begin()
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    own.conclude(cut_short=False)


class Plugin:
    """One pytest process of the suite: the only one, the controller, or a worker."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        shared: Shared,
        targets: dict[str, Target | None],
        waivers: dict[str, Waiver],
    ) -> None:
        """`targets` are by name; the reference is None until its server runs."""
        self.config = config
        self.settings = settings
        self.shared = shared
        self.targets = targets
        self.waivers = waivers
        self.is_worker = hasattr(config, "workerinput")
        self.sessions: dict[str, Session] = {}
        self.collections: dict[str, Collection] = {}
        self.runs: list[Run] = []  # one for each target, once they have ended
        self.unwritten: set[str] = set()  # the targets whose results could not be written
        self.interrupted = False
        self.crashed = False  # a worker ended unexpectedly
        self._concluded = False
        self.exit: Exit | None = None  # once there are results
        self._process = str(getattr(config, "workerinput", {}).get("workerid", OWN_PROCESS))
        self.side_by_side = 1  # how many checks to have under way at once; what `preflight.side_by_side` found
        self.one_at_a_time = False  # whatever the command line says
        self._count = 0  # of the checks that this process has begun
        self._server: ReferenceServer | None = None
        self.reports: dict[str, Report] = {}  # of the checks that are under way, by node id

    @classmethod
    def of(cls, config: pytest.Config) -> Plugin:
        """As the options say, and in a worker the controller. Raises ConfigError."""
        told: dict[str, Any] | None = getattr(config, "workerinput", {}).get(PLUGIN)
        values = {
            name.removeprefix(DEST): value for name, value in vars(config.option).items() if name.startswith(DEST)
        }
        if told is not None:
            values["seed"] = told["seed"]
        chosen = settings.read(tuple(values["target"]), values)
        today = datetime.now(UTC).date()
        accepted = waivers.read(chosen.waivers, today) if chosen.waivers is not None else {}
        shared = Shared(**told) if told is not None else Shared(chosen.seed)
        targets = {target.name if target else REFERENCE: target for target in resolve(chosen.targets, chosen.options)}
        if shared.reference is not None:
            targets[REFERENCE] = adjusted(Address(**shared.reference).target(), chosen.options)
        return cls(config, chosen, shared, targets, accepted)

    # --- before the checks

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if self.is_worker:  # the controller says when it is over, and has what is under way finished first
            for number in ENDING:
                signal.signal(number, signal.SIG_IGN)
        if self.is_worker or self.config.option.collectonly:
            return
        try:
            self.begin()
        except KeyboardInterrupt:  # pytest itself would end here without a result
            self.interrupted = True
            session.shouldstop = "interrupted"
        except ConfigError as error:  # certificates that cannot be used
            raise pytest.UsageError(str(error)) from None

    def begin(self) -> None:
        """Start the reference server if need be, and look at each target. Raises ConfigError, with nothing sent."""
        if REFERENCE in self.targets and self.targets[REFERENCE] is None:
            self._server = ReferenceServer()
            address = self._server.address
            self.shared.reference = dict(vars(address))
            self.targets[REFERENCE] = adjusted(address.target(), self.settings.options)
        for target in self.targets.values():
            if target is not None:
                Endpoint(target).look_at_certificates()
        workers = getattr(self.config.option, "numprocesses", None)
        if isinstance(workers, int) and workers > 1:
            self.shared.folder = tempfile.mkdtemp(prefix="conformance-")
        for name in self.targets:
            session = self.session(name)
            self.collections[name] = Collection(
                session.target,
                datetime.now(UTC),
                wrong_keys=session.wrong_keys,
                clean=self.clean,
            )
            self.look(name)

    def look(self, name: str) -> None:
        """Look at a target before the first check, and take down what was seen."""
        session, collection = self.session(name), self.collections[name]
        try:
            reason = preflight.look(session)
            if reason:
                self.shared.dead[name] = reason
                collection.pointless = True
            elif (trouble := preflight.look_at_provider(session)) is not None:
                session.warnings.append(trouble)
            session.warnings += preflight.shortcomings(session)
            if session.ids_used_again:
                session.warnings.append(preflight.USED_AGAIN)
                self.one_at_a_time = True
            if session.counts_on:
                self.shared.counts_on.append(name)
            if not reason:
                counted = preflight.side_by_side(session)
                self.side_by_side = min(self.side_by_side, counted) if len(self.collections) > 1 else counted
        finally:
            collection.preflight, collection.messages = session.recorder.take()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[PLUGIN] = dict(vars(self.shared))

    @property
    def folder(self) -> Path | None:
        """Where the processes of this run keep what keeps them together, if there are several."""
        return Path(self.shared.folder) if self.shared.folder else None

    def session(self, name: str) -> Session:
        """The session of a target in this process, made when first asked for."""
        if name not in self.sessions:
            target = self.targets[name]
            if target is None:
                raise RuntimeError("the reference server is not running")
            self.sessions[name] = Session(target, self.shared.seed, self.folder, self.settings.selected)
            if self.side_by_side > 1:
                self.sessions[name].client.widen(IN_FLIGHT)
        return self.sessions[name]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {check.id: place for place, check in enumerate(all_checks())}
        names = list(self.targets)
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            check = check_of(item)
            chosen = check is None or check.requirement in self.settings.selected
            (kept if chosen else dropped).append(item)

        def place(item: pytest.Item) -> tuple[int, bool, bool, bool, int]:
            check = check_of(item)
            if check is None:
                return (0, False, False, False, -1)
            alone = item.get_closest_marker("alone")
            late = alone is not None and "late" in alone.args
            # A store that was emptied for a check may stay empty: that is for the last one to meet.
            return (names.index(target_of(item)), bool(alone), check.needs.empty_store, late, order[check.id])

        items[:] = sorted(kept, key=place)
        if dropped:
            self.config.hook.pytest_deselected(items=dropped)

    # --- what checks side by side need of it

    def share(self, folder: Path) -> None:
        """Keep together with processes that are about to be forked, by files in `folder`."""
        importlib.import_module("filelock")  # or each of them would load it
        self.shared.folder = str(folder)
        for own in self.sessions.values():
            own.share(folder)

    def become(self, name: str) -> None:
        """Be the plugin of a process that was forked, as a worker of pytest-xdist would be, with nothing begun."""
        self.is_worker = True
        self._process, self._count = name, 0
        self.sessions.clear()  # those of the process that was forked; they have no connection open

    def close(self) -> None:
        """Close what this process has open."""
        for own in self.sessions.values():
            own.close()

    def unfinished(self) -> list[Report]:
        """What the checks that an interruption cut short have to report."""
        for report in self.reports.values():
            report.cut_short()
        return list(self.reports.values())

    def collect(self, report: Report) -> None:
        """Take in what a check reported."""
        if report.target in self.collections:
            self.collections[report.target].add(report)

    def lost(self, item: pytest.Item | None, process: str) -> None:
        """Note that a process has ended unexpectedly, while it ran `item`."""
        self.crashed = True
        check = check_of(item)
        if item is not None and check is not None:
            self.collect(Report.crashed(check.id, target_of(item), process))

    # --- one check

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if (check := check_of(item)) is None:
            return (yield)
        with self._lock(item):
            self._count += 1
            self.reports[item.nodeid] = Report(check.id, target_of(item), Status.PASSED, self._process, self._count)
            outcome = yield
        if self.is_worker and self.folder is not None and (self.folder / STOP).exists():
            item.session.shouldstop = "the run was cut short"
        return outcome

    def _lock(self, item: pytest.Item) -> AbstractContextManager[Any]:
        """Keeps checks that want the store to themselves apart from those of other workers."""
        if self.folder is None:
            return nullcontext()
        return self._store.write_lock() if item.get_closest_marker("alone") else self._store.read_lock()

    @cached_property
    def _store(self) -> ReadWriteLock:
        from filelock import ReadWriteLock  # most runs have one process

        return ReadWriteLock(Path(self.shared.folder or "") / "store.db")

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass. The process that will write the reports has them for loading what that takes."""
        end = time.monotonic() + seconds
        if not self.is_worker:
            from conformance import writing

            writing.prepare()
        time.sleep(max(0.0, end - time.monotonic()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.excinfo is not None and isinstance(call.excinfo.value, verify.Failed):
            # The message says it all; a traceback of the suite would not help, and takes long to make.
            item.repr_failure = lambda *_, said=str(call.excinfo.value), **__: said  # type: ignore[method-assign]
        outcome = yield
        vars(item).pop("repr_failure", None)
        report = self.reports.get(item.nodeid)
        if report is None:
            return outcome
        report.seconds = round(report.seconds + call.duration, 6)
        if call.excinfo is not None:
            self.classify(report, call.excinfo.value)
            if isinstance(call.excinfo.value, verify.Failed):
                outcome.longrepr = f"{report.message}\n{report.failure and report.failure.get('curl')}"
        # Tracebacks quote values, and what was captured may hold anything.
        if isinstance(outcome.longrepr, TerminalRepr):
            outcome.longrepr = self.clean(str(outcome.longrepr))
        outcome.sections = [(name, self.clean(content)) for name, content in outcome.sections]
        if outcome.when == "teardown":
            session = self.sessions.get(target_of(item))
            if session is not None:
                report.warnings += map(self.clean, session.warnings)
                session.warnings.clear()
            told = report.to_json()
            outcome.conformance = json.dumps(told) if self.is_worker else told  # type: ignore[attr-defined]
            del self.reports[item.nodeid]
        return outcome

    def classify(self, report: Report, error: BaseException) -> None:
        """Note in the report of a check what it raised."""
        target = self.targets[report.target]
        assert target is not None, "no check is run before there is a target"
        report.ended_with(error, target.key_variable, self.clean)

    # --- no secret in what is printed

    def clean(self, text: str) -> str:
        """`text` without the secrets of any target."""
        for redactor in dict.fromkeys(redactor_of(target) for target in self.targets.values() if target is not None):
            text = redactor.clean(text)
        return text

    def _veil(self, shown: TerminalRepr) -> None:
        text = self.clean(str(shown))
        shown.toterminal = lambda tw: tw.line(text)  # type: ignore[method-assign]

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: TerminalRepr) -> None:
        self._veil(excrepr)

    # --- after the checks

    @pytest.hookimpl(tryfirst=True)  # others find it decoded
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = getattr(report, "conformance", None)
        if told is None or self.is_worker:
            return
        if isinstance(told, str):
            report.conformance = told = json.loads(told)  # type: ignore[attr-defined]
        self.collect(Report.from_json(told))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """xdist has lost the worker that ran `crashitem`. Its check has a result all the same."""
        self.crashed = True
        match = re.fullmatch(r".*::test_(\w+)\[(.*)\](@.*)?", crashitem)
        if match is None or match[2] not in self.collections:
            return
        for check in all_checks():
            if check.id.partition(".")[2] == match[1]:
                report.conformance = Report.crashed(check.id, match[2], report.node.gateway.id).to_json()

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self) -> None:
        self.interrupted = True
        memo = getattr(self.config.pluginmanager.get_plugin("terminalreporter"), "_keyboardinterrupt_memo", None)
        if memo is not None:  # --full-trace prints it
            self._veil(memo)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        if not self.is_worker and self.folder is not None:
            (self.folder / STOP).touch()  # to workers in the midst of a check: let it be the last one
        try:
            return (yield)  # pytest tears down what an interruption left open: orders are given back here
        finally:
            failed = exitstatus == pytest.ExitCode.INTERNAL_ERROR or session.shouldfail or session.shouldstop
            self.conclude(cut_short=self.interrupted or self.crashed or bool(failed))
            if self.exit is not None:
                session.exitstatus = self.exit

    def pytest_unconfigure(self) -> None:
        """pytest skips the end of a session whose start was interrupted, a moment after the look, too."""
        if self.interrupted and not self._concluded:
            self.conclude(cut_short=True)

    def _gather(self) -> None:
        """Take in what workers reported while the run was being cut short, and return what dead ones held."""
        late = getattr(self.config.pluginmanager.get_plugin("dsession"), "queue", None)
        while late is not None and not late.empty():
            name, told = late.get()
            if name == "testreport":
                self.pytest_runtest_logreport(told["rep"])
        for name, own in self.sessions.items():
            if self.folder is not None and own.provider is not None:
                own.warnings += return_left(own.provider, self.folder, name)

    def conclude(self, *, cut_short: bool) -> None:
        """Draw the verdict from what was reported, write the results, and stop what `begin` has started."""
        self._concluded = True
        for report in self.unfinished():
            self.collect(report)
        if not self.is_worker:
            self._gather()
        for name, own in self.sessions.items():
            if name in self.collections:
                self.collections[name].warnings += map(self.clean, own.warnings)
            own.close()
        if self._server is not None:
            self._server.stop()
        if self.is_worker or not self.collections:
            return
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        if not cut_short and not any(collection.reports for collection in self.collections.values()):
            return
        for collection in self.collections.values():
            run = collect.build(
                collection,
                all_checks(),
                self.settings,
                self.waivers,
                finished=datetime.now(UTC),
                complete=not cut_short,
                process_lost=self.crashed and not self.interrupted,
                command=_command(),
            )
            self.runs.append(run)
            self._write(run)
        status = Outcome([run.verdict for run in self.runs], self.interrupted).exit_status
        # A verdict without its evidence is none to pass a gate with.
        self.exit = Exit.INCOMPLETE if status is Exit.CONFORMANT and self.unwritten else status

    def _write(self, run: Run) -> None:
        """Write the results of a run where they are wanted; where that is not possible it is said, and noted."""
        if self.settings.report_dir is None:
            return
        from conformance.writing import write  # loaded by now, or when there is no hurry any more

        try:
            write(run, self.settings.report_dir / run.target)
        except OSError as error:
            self.unwritten.add(run.target)
            with suppress(OSError):  # the terminal may be gone
                sys.stderr.write(f"the results of {run.target} could not be written: {error}\n")


# --- small things


def check_of(item: Any) -> Check | None:
    """The check that a test item runs, or None."""
    return of_function(getattr(item, "function", None))


def target_of(item: Any) -> str:
    """The name of the target that a test item is about."""
    return str(item.callspec.params["session"])


def _command() -> str:
    """How the run was started; its arguments hold no secrets, since no option takes one."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
