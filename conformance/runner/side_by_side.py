"""Checks side by side, in forked processes: as many as `-n` says, or enough if a run would mostly wait for a distant
service.

    units of items ─▶ queue ─▶ worker 1 … n, each like the one process of a run near by
                                  └─▶ reports ─▶ the command's own process, which collects them

A fork has everything imported and collected already: eight of them start in the time of one worker of pytest-xdist,
which plain pytest uses. A unit is one item, or all items of one `xdist_group`, which share something.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, cast

import pytest

from conformance.runner.items import check_of, process_in, report_of, target_of
from conformance.runner.process import Process
from conformance.runner.reported import CheckReport
from conformance.signals import ENDING, held_back, undisturbed
from conformance.states.provider import given_meanwhile
from conformance.transport.retries import too_many
from conformance.verdict import Status

#: Seconds in which a process that was told to end returns its orders.
GRACE = 90.0
#: After so many seconds without a report, the command's own process loads what writing the reports needs: usually the
#: checks that need the store to themselves are running then, and the processors have little to do.
LULL = 0.3
#: The rank of the checks that need the store to themselves.
LAST = 3


class SideBySide:
    """A pytest plugin that replaces its loop over the tests."""

    def __init__(self, silenced: object, workers: str | None) -> None:
        """`silenced` is the plugin that shows progress, which workers do without. `workers` is how many there should
        be: a number; None for as many as the service can take (`capacity`); auto for that, or one per processor if that
        is more. If the store uses ids again, there is only one in any case."""
        self._silenced = silenced
        self._workers = workers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all items in as many processes as there should be; None if this process is the only one."""
        own = process_in(session.config)
        if self._workers in (None, "auto"):
            count = max(own.side_by_side, (os.cpu_count() or 1) if self._workers else 1)
        else:
            count = int(self._workers)
        if own.one_at_a_time:
            count = 1
        if count < 2 or session.shouldstop or session.testsfailed:
            return None
        own.share(Path(tempfile.mkdtemp(prefix="conformance-")))
        Pool(session, own, self._silenced).run(count)
        return True


class Pool:
    """The workers that share the items of one session, as seen from the command's own process and from each of them."""

    def __init__(self, session: pytest.Session, own: Process, silenced: object) -> None:
        """`own` is the process of the run, `silenced` a plugin that the workers do without."""
        self._session = session
        self._own = own
        self._silenced = silenced
        self._workers: dict[Connection, _Worker] = {}
        self._numbers = itertools.count(1)
        self._ending = False
        self._units = _units(session.items)
        self._unit_of = {item.nodeid: unit for unit in self._units for item in unit}
        self._kept_back: dict[str, tuple[CheckReport, list[pytest.TestReport]]] = {}  # by node id
        self._queue, numbers = os.pipe()
        os.write(numbers, b"".join(number.to_bytes(2, "big") for number in range(len(self._units))))
        os.close(numbers)

    def run(self, count: int) -> None:
        """Run all items in `count` workers, and pass on the reports."""
        try:
            for _ in range(min(count, len(self._units))):
                self._start()
            self._collect()
            self._settle()
        except KeyboardInterrupt:
            self._end()
            self._settle(over=True)
            raise
        finally:
            for worker in self._workers.values():  # that nobody would listen to any more
                worker.process.kill()
            os.close(self._queue)

    # --- the command's own process

    def _start(self, left: Sequence[pytest.Item] = ()) -> None:
        """Fork a worker. It runs the items that another one `left`, and then takes units."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # or it is written twice
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe(duplex=False)
        name = f"process {next(self._numbers)}"
        process = context.Process(target=self._work, args=(name, ours, theirs, left), name=name)
        with held_back():
            process.start()
            theirs.close()  # before the next one is forked, which would hold it open
            self._workers[ours] = _Worker(process, name)

    def _collect(self, until: float = math.inf) -> None:
        """Pass on what the workers report, until all have ended or time is up. A worker that dies is replaced."""
        while self._workers and time.monotonic() < until:
            ready = cast(list[Connection], wait(list(self._workers), timeout=LULL))
            if not ready:
                from conformance.reporting import writing

                writing.prepare()
            for pipe in ready:
                try:
                    with undisturbed():  # or half a message would be lost
                        kind, told = pipe.recv()
                except (EOFError, OSError):
                    self._lost(pipe)
                else:
                    self._take_in(pipe, kind, told)

    def _take_in(self, pipe: Connection, kind: str, told: Any) -> None:
        """Act on one message of a worker."""
        worker = self._workers[pipe]
        match kind:
            case "begun":
                worker.item, worker.done, worker.reports = told, False, []
            case "report":
                config = self._session.config
                report = config.hook.pytest_report_from_serializable(config=config, data=told)
                worker.reports.append(report)
                worker.done = report.when == "teardown"
                if worker.done:
                    self._done(worker.reports)
            case "unfinished":
                self._own.collect(told)
            case "broken":
                self._own.crashed = True
                sys.stderr.write(f"the suite itself failed; please report this:\n{told}\n")
            case "ended":
                for target, warnings in told.items():
                    self._own.collections[target].warnings += warnings
                self._let_go(pipe)

    def _done(self, reports: list[pytest.TestReport]) -> None:
        """Pass on the reports of an item. If anything in them speaks against the service, or others of its unit may,
        they are kept back until `_settle` knows which orders other checks held at that time."""
        report = report_of(reports[-1])
        if report is not None and (report.unfavourable or len(self._unit_of[reports[-1].nodeid]) > 1):
            self._kept_back[reports[-1].nodeid] = (report, reports)
        else:
            self._pass_on(reports)

    def _settle(self, *, over: bool = False) -> None:
        """Pass on what was kept back, unless other checks that ran at the same time may have caused it. Such a unit
        runs again, while no other does. If the run is `over`, its checks count as not finished."""
        for report, _ in self._kept_back.values():
            self._own.collect(report)
        shared = {
            name: given_meanwhile(message for report in collection.reports.values() for message in report.messages)
            for name, collection in self._own.collections.items()
        }
        again: list[tuple[pytest.Item, CheckReport]] = []
        for unit in self._units:
            kept = [(item, *self._kept_back.pop(item.nodeid)) for item in unit if item.nodeid in self._kept_back]
            if _disturbed([report for _, report, _ in kept], unit, shared[target_of(unit[0])]):
                again += ((item, report) for item, report, _ in kept)
            else:
                for _, _, reports in kept:
                    self._pass_on(reports)
        for _, report in again:
            report.cut_short()
        items = [] if over else [item for item, _ in again]
        for item, following in itertools.zip_longest(items, items[1:]):
            self._session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _pass_on(self, reports: list[pytest.TestReport]) -> None:
        for report in reports:
            self._session.config.hook.pytest_runtest_logreport(report=report)

    def _lost(self, pipe: Connection) -> None:
        """Note that a worker has died, and let another one continue after its current item."""
        lost = self._let_go(pipe)
        unit = self._unit_of.get(lost.item, [])
        place = next((place for place, item in enumerate(unit) if item.nodeid == lost.item), 0)
        item = unit[place] if unit and not lost.done else None
        self._own.lost(check_of(item), target_of(item) if item else "", lost.name)
        if lost.item and not self._ending:  # one that has begun nothing would be followed by others like it
            self._start(unit[place + 1 :])

    def _let_go(self, pipe: Connection) -> _Worker:
        ended = self._workers.pop(pipe)
        pipe.close()
        ended.process.join()
        return ended

    def _end(self) -> None:
        """Make all workers cut their checks short, and collect their last reports."""
        self._ending = True
        for worker in self._workers.values():
            if worker.process.pid is not None and worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGINT)
        self._collect(until=time.monotonic() + GRACE)

    # --- the workers

    def _work(self, name: str, other: Connection, pipe: Connection, left: Sequence[pytest.Item]) -> None:
        """The life of a worker after the fork: it runs units, and reports through its end of the `pipe`; `other` is the
        command's end."""
        session, own = self._session, self._own
        # What only the command's own process reads: else nobody here would notice that it was killed.
        for end in (other, *self._workers):
            end.close()
        config = session.config
        own.become(name)
        config.pluginmanager.unregister(self._silenced)
        config.pluginmanager.register(_Sender(config, pipe))
        try:
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
                for unit in self._taken(left):
                    for item, following in zip(unit, [*unit[1:], None], strict=True):
                        _send(pipe, "begun", item.nodeid)
                        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            except KeyboardInterrupt:
                session._setupstate.teardown_exact(None)  # gives back the orders of the check
                if (told := own.unfinished()) is not None:
                    _send(pipe, "unfinished", told)
            _send(pipe, "ended", own.give_back())
        except BrokenPipeError:  # there is nobody any more whom this could be for
            session._setupstate.teardown_exact(None)
        except Exception:  # of the suite itself; what is held then is given back by the ledger
            _send(pipe, "broken", own.clean(traceback.format_exc()))
            _send(pipe, "ended", {})
        own.close()

    def _taken(self, left: Sequence[pytest.Item]) -> Iterator[Sequence[pytest.Item]]:
        """The units of this worker: what is `left` of one, then those it takes from the queue."""
        if left:
            yield left
        while number := os.read(self._queue, 2):
            yield self._units[int.from_bytes(number, "big")]


@dataclass
class _Worker:
    """A forked process, with the item that it began last, whether that is done, and the reports of it."""

    process: ForkProcess
    name: str
    item: str = ""  # its node id
    done: bool = False
    reports: list[pytest.TestReport] = field(default_factory=list)


class _Sender:
    """Sends the reports of a worker to the command's own process."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config = config
        self._pipe = pipe

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        _send(self._pipe, "report", data)


def _send(pipe: Connection, kind: str, told: Any) -> None:
    with undisturbed():  # half a message would end the conversation
        pipe.send((kind, told))


def _disturbed(reports: list[CheckReport], unit: list[pytest.Item], shared: set[str]) -> bool:
    """Whether other checks may have caused what the reports of a unit have against the service: a check says so itself;
    a check of the unit held an order with the same id as another check, by accident, and so is among those that
    `shared` one; or nothing failed, and a check met a limit on simultaneous requests."""
    if not any(report.unfavourable for report in reports):
        return False
    if any(report.disturbed for report in reports):
        return True
    if not shared.isdisjoint(check.id for check in map(check_of, unit) if check):
        return True
    limited = any(too_many(exchange) for report in reports for exchange in report.exchanges)
    return limited and not any(report.status is Status.FAILED for report in reports)


def _units(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """What one process takes at a time, in the order of `items`, except that what takes long comes first: large units,
    then checks that send one request after the other down a connection of their own or are marked `lengthy`, then those
    with orders of their own. Checks that need the store to themselves come last, in the order of `items`."""
    units: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        group = item.get_closest_marker("xdist_group")
        units.setdefault((target_of(item), group.args[0] if group else item.nodeid), []).append(item)

    def rank(item: pytest.Item) -> int:
        fixtures = getattr(item, "fixturenames", ())
        if item.get_closest_marker("alone") is not None:
            return LAST
        if "wire" in fixtures or item.get_closest_marker("lengthy") is not None:
            return 0
        return 1 if "orders" in fixtures else 2

    def place(unit: list[pytest.Item]) -> tuple[bool, int, int]:
        alone = rank(unit[0]) == LAST
        return (alone, 0 if alone else -len(unit), rank(unit[0]))

    return sorted(units.values(), key=place)
