"""The suite as a pytest plugin: options, fixtures, outcomes to statuses.

    worker (or the one process)                             controller (or the one process)
    item ─▶ excluded? target dead? ─▶ check ─▶ CheckReport ──▶ Collection ─▶ Run ─▶ reports, exit status

With `-n` the controller starts the reference server, looks at the targets and collects; the workers run the checks.
What a check reported is a `CheckReport` in `report.conformance`; it crosses from a worker as bytes, since xdist's own
channel takes no number above 2^31 and no text that is not UTF-8.
"""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any

import pytest
from _pytest._code.code import TerminalRepr

from conformance import outcomes
from conformance.check import all_checks, of_function
from conformance.configuration import settings, waivers
from conformance.configuration.targets import adjusted, resolve
from conformance.reporting import outline
from conformance.runner.items import PROCESS, check_of, process_in, report_of, target_of
from conformance.runner.process import Process, Shared
from conformance.runner.reference import Address
from conformance.runner.reported import CheckReport
from conformance.signals import ignore_ending_signals, undisturbed
from conformance.target import REFERENCE, ConfigError
from conformance.text import visible
from conformance.transport.endpoint import ServiceGone
from conformance.transport.guard import Refused
from conformance.verdict import Exit

PLUGIN = "conformance"
pytest_plugins = ["conformance.runner.fixtures"]
#: Prefix of the names under which pytest keeps our options, so that they never meet those of others.
DEST = "conformance_"
#: The marks of checks, each with what it says, as `pytest --markers` lists them.
MARKERS = (
    "alone: runs while no other check does",
    "first: begins what others conclude",
    "last: runs after the others of its kind, alone or not",
    "lengthy: waits for one answer after the other, and should begin early",
    "xdist_group(name): checks that one process runs, since they share something",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of a Store Orders Service")
    group.addoption(
        "--target", dest=f"{DEST}target", action="append", default=[], metavar="NAME", help="a target, or reference"
    )
    for flag, arguments in settings.OPTIONS.items():
        # pytest itself and its plugins have options called --strict, --timeout and --base-url.
        group.addoption(f"--conformance-{flag[2:]}", dest=DEST + settings.name_of(flag), **arguments)


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    for library in ("httpcore", "httpx", "hpack", "h2"):  # whose debug logs hold header fields
        logging.getLogger(library).setLevel(logging.WARNING)
    if config.pluginmanager.has_plugin(PLUGIN):  # that of a `ForProcess`
        return
    try:
        config.pluginmanager.register(Plugin(config, process_of(config)), PLUGIN)
    except ConfigError as error:
        raise _usage_error(error) from None


def _usage_error(error: ConfigError) -> pytest.UsageError:
    """The error, with options named as they are here."""
    flags = "|".join(flag.removeprefix("--") for flag in settings.OPTIONS)
    return pytest.UsageError(re.sub(rf"--({flags})(?![a-z-])", r"--conformance-\1", str(error)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if of_function(metafunc.function) is not None:
        names = process_in(metafunc.config).targets
        metafunc.parametrize("session", list(names), indirect=True, scope="session")


def run_collected(session: pytest.Session, process: Process) -> None:
    """Run the checks that `session` has collected under `process`, in place of the process it had."""
    # One plugin serves each process in turn: pluggy never lets go of one that was registered, or of what it holds.
    session.config.stash[PROCESS] = process
    process.begin()
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    process.conclude(cut_short=False)


def process_of(config: pytest.Config) -> Process:
    """The process of the run that the options describe; in a worker, also the controller. Raises ConfigError."""
    worker = getattr(config, "workerinput", {})
    told: dict[str, Any] | None = worker.get(PLUGIN)
    values = {name.removeprefix(DEST): value for name, value in vars(config.option).items() if name.startswith(DEST)}
    if told is not None:
        values["seed"] = told["seed"]
    chosen = settings.read(tuple(values["target"]), values)
    accepted = waivers.read(chosen.waivers, datetime.now(UTC).date())
    shared = Shared(**told) if told is not None else Shared(chosen.seed)
    targets = {target.name if target else REFERENCE: target for target in resolve(chosen.targets, chosen.options)}
    if shared.reference is not None:
        targets[REFERENCE] = adjusted(Address(**shared.reference).target(), chosen.options)
    workers = getattr(config.option, "numprocesses", None)
    controls = isinstance(workers, int) and workers > 1
    return Process(chosen, shared, targets, accepted, worker=worker.get("workerid"), controls=controls)


class ForProcess:
    """A plugin that makes pytest run the checks for this process instead of the one that its options describe."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.pluginmanager.register(Plugin(config, self._process), PLUGIN)


class Plugin:
    """pytest's hooks: they tell the process of a run what happens, and do what it says."""

    def __init__(self, config: pytest.Config, process: Process) -> None:
        self.config = config
        config.stash[PROCESS] = process

    @property
    def process(self) -> Process:
        """The process whose checks are running."""
        return process_in(self.config)

    # --- before the checks

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if self.process.is_worker:  # the controller says when it is over, and has what is under way finished first
            ignore_ending_signals()
        if self.process.is_worker or self.config.option.collectonly:
            return
        try:
            self.process.begin()
        except KeyboardInterrupt:  # pytest itself would end here without a result
            self.process.interrupted = True
            session.shouldstop = "interrupted"
        except ConfigError as error:  # certificates that cannot be used
            raise _usage_error(error) from None
        except OSError as error:  # the reference server does not start
            pytest.exit(str(error), Exit.INCOMPLETE)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Run nothing after an interruption: xdist would go on, as it does not ask `shouldstop`."""
        if session.shouldstop:
            raise session.Interrupted(str(session.shouldstop))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[PLUGIN] = dict(vars(self.process.shared))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = {item: self._place(item) for item in items}
        dropped = [item for item in items if places[item] is None]
        items[:] = sorted((item for item in items if places[item] is not None), key=lambda item: places[item] or ())
        if dropped:
            self.config.hook.pytest_deselected(items=dropped)

    def _place(self, item: pytest.Item) -> tuple[int, ...] | None:
        """The place of an item among the others, None if it is left out. What is not a check comes first."""
        check = check_of(item)
        if check is None:
            return ()
        return self.process.place(check, target_of(item), frozenset(mark.name for mark in item.iter_markers()))

    # --- one check

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if (check := check_of(item)) is None:
            return (yield)
        alone = item.get_closest_marker("alone") is not None
        with self.process.lock(alone=alone):
            session = self.process.sessions.get(target_of(item))
            if alone and session is not None:
                # By now a process has run all others that are shared out to it, and a check that needs the store to
                # itself may empty it.
                session.give_back()
            self.process.start(check, target_of(item))
            outcome = yield
        if self.process.is_told_to_stop:
            item.session.shouldstop = "the run was cut short"
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, ServiceGone | Refused):
            # What was not sent decides nothing: to pytest, too, such a check is skipped, like any that is inconclusive.
            error = outcomes.Inconclusive(str(error)).with_traceback(error.__traceback__)
            call.excinfo = pytest.ExceptionInfo.from_exception(error)
        elif isinstance(error, outcomes.Failed):
            # The message says it all; a traceback of the suite would not help, and takes long to make.
            said = str(error)
            item.repr_failure = lambda *_, **__: said  # type: ignore[method-assign]
        outcome = yield
        vars(item).pop("repr_failure", None)
        if (report := self.process.report) is None:
            return outcome
        report.seconds = round(report.seconds + call.duration, 6)
        if error is not None:
            self.process.classify(report, error)
        if isinstance(error, outcomes.Failed):
            curl = report.failure and report.failure.curl
            outcome.longrepr = self._printable(f"{report.message}\n{curl}")
            self._expect(item, outcome)
        elif isinstance(outcome.longrepr, tuple):  # skipped: which check, and why, which may quote a state provider
            file, line, _ = item.reportinfo()
            outcome.longrepr = (str(file), (line or 0) + 1, self._printable(f"Skipped: {error}"))
        elif isinstance(outcome.longrepr, TerminalRepr):  # a traceback, which quotes values
            outcome.longrepr = self._printable(str(outcome.longrepr))
        # What was captured may hold anything.
        outcome.sections = [(name, self._printable(content)) for name, content in outcome.sections]
        if outcome.when == "teardown":
            self._attach(report, item, outcome)
        return outcome

    def _attach(self, report: CheckReport, item: pytest.Item, last: pytest.TestReport) -> None:
        """End a check: the `last` report that pytest makes of it carries the check's own, with the warnings so far."""
        session = self.process.sessions.get(target_of(item))
        if session is not None:
            report.warnings += map(self.process.clean, session.warnings)
            session.warnings.clear()
        self.process.done()
        last.conformance = pickle.dumps(report) if self.process.is_worker else report  # type: ignore[attr-defined]

    def _expect(self, item: pytest.Item, failure: pytest.TestReport) -> None:
        """Make pytest count a failure of a waived requirement as expected, so that `-x` does not stop at it."""
        check = check_of(item)
        if check is not None and (waiver := self.process.waivers.get(check.requirement)) is not None:
            failure.outcome, failure.wasxfail = "skipped", self._printable(f"waived: {waiver.reason}")

    # --- no secret in what pytest prints, and nothing that acts on a terminal

    def _printable(self, text: str) -> str:
        return visible(self.process.clean(text), keep="\n")

    def _veil(self, shown: TerminalRepr) -> None:
        text = self._printable(str(shown))
        shown.toterminal = lambda tw: tw.line(text)  # type: ignore[method-assign]

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: TerminalRepr) -> None:
        self._veil(excrepr)

    # --- after the checks

    @pytest.hookimpl(tryfirst=True)  # others find it decoded
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self.process.is_worker and (told := report_of(report)) is not None:
            self.process.collect(told)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """xdist has lost the worker that ran `crashitem`. Its check gets a result nevertheless."""
        self.process.crashed = True
        match = re.fullmatch(r".*::test_(\w+)\[(.*)\](@.*)?", crashitem)
        if match is None or match[2] not in self.process.collections:
            return
        for check in all_checks():
            if check.id.partition(".")[2] == match[1]:
                report.conformance = CheckReport.crashed(check.id, match[2], report.node.gateway.id)

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self) -> None:
        # With -x, xdist ends its loop by a KeyboardInterrupt: that is no interruption.
        enough = getattr(self.config.pluginmanager.get_plugin("dsession"), "shouldstop", False)
        self.process.interrupted = not enough
        memo = getattr(self.config.pluginmanager.get_plugin("terminalreporter"), "_keyboardinterrupt_memo", None)
        if memo is not None:  # --full-trace prints it
            self._veil(memo)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        with undisturbed():  # all checks have ended: what they found is written before an interruption has its way
            self.process.stop_workers()
            try:
                return (yield)  # pytest tears down what an interruption left open: orders are given back here
            finally:
                ended = exitstatus in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.INTERRUPTED)
                failed = ended or session.shouldfail or session.shouldstop
                self._collect_late_reports()
                self.process.conclude(cut_short=self.process.interrupted or self.process.crashed or bool(failed))
                if self.process.exit is not None:
                    session.exitstatus = self.process.exit

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the verdict, which decides the exit status, for users of plain pytest: the run may be incomplete
        although all tests have passed."""
        for run in self.process.runs:
            terminalreporter.write_line(f"{run.target}: {outline.headline(run)}")
            for group in outline.by_reason(outline.undecided(run)):
                terminalreporter.write_line(f"{outline.ids(group.results)} undecided: {visible(group.reason)}")

    def pytest_unconfigure(self) -> None:
        """Conclude here a run that was interrupted at its start: pytest then skips the end of the session."""
        if self.process.interrupted and not self.process.concluded:
            self.process.conclude(cut_short=True)

    def _collect_late_reports(self) -> None:
        """Collect what workers of xdist reported while the run was being cut short."""
        late = getattr(self.config.pluginmanager.get_plugin("dsession"), "queue", None)
        while late is not None and not late.empty():
            name, told = late.get()
            if name == "testreport":
                self.pytest_runtest_logreport(told["rep"])
