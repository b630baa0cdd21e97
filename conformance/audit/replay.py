"""Runs the checks of a run again, under pytest as usual, on its record instead of a service.

Each process of the run becomes a target of its own, so that it has its own guard, and its own search that its checks
share. Its checks run in the recorded order.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from conformance import plugin
from conformance.api import Api
from conformance.audit.record import Record, Unsupported
from conformance.audit.transport import ReplayedClient, ReplayedProvider, ReplayedWire
from conformance.check import Check, all_checks
from conformance.configuration.options import Options
from conformance.configuration.settings import Settings
from conformance.reporting.run import Circumstances, Run
from conformance.runner import collect, embedding
from conformance.runner.collect import Collection
from conformance.runner.process import Process, Shared
from conformance.runner.reported import CRASHED, OWN_PROCESS, UNFINISHED, CheckReport
from conformance.runner.session import Session
from conformance.states.provider import Provider
from conformance.target import Mode, Secret, Shell, States, Target
from conformance.transport.answer import Observer
from conformance.transport.client import Client
from conformance.transport.endpoint import Endpoint
from conformance.transport.evidence import PREFLIGHT
from conformance.transport.guard import Guard
from conformance.transport.redaction import Redactor
from conformance.transport.wire import Wire
from conformance.verdict import CheckResult, Status

#: Stands for addresses, which an audit does not use.
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Replayed:
    """The outcome: the run that the evidence amounts to, and where it did not answer what the checks asked."""

    run: Run
    problems: list[tuple[str, str]]


def replay(stated: Run, made: Circumstances, key: str) -> Replayed:
    """Run the checks of `stated` again on its evidence, with `key` standing in for the one of the run."""
    own = Replay(stated, made, key)
    # Nobody reads the tracebacks, of which there are many where evidence does not fit and which take long to make.
    embedding.main(["--tb=no"], [plugin.ForProcess(own), _RaisesInternalErrors(), embedding.Quiet()])
    if not own.runs:
        raise RuntimeError("the checks could not be run")
    run = replace(
        own.runs[0],
        started=stated.started,
        finished=stated.finished,
        seconds=stated.seconds,
        command=stated.command,
    )
    return Replayed(run, own.record.problems)


class _RaisesInternalErrors:
    """Raises internal errors, which pytest would print and turn into a status of its own."""

    def pytest_internalerror(self, excrepr: object) -> None:
        raise RuntimeError(f"the suite itself failed; please report this:\n{excrepr}")


class Replay(Process):
    """A process with a record in place of the target."""

    def __init__(self, stated: Run, made: Circumstances, key: str) -> None:
        chosen = Settings(
            targets=(),
            options=Options(),
            selected=frozenset(made.selected),
            strict=stated.strict,
            budget=stated.budget,
            seed=stated.seed,
            waivers=None,
            report_dir=None,
        )
        target = _target(stated, made, key)
        processes = [OWN_PROCESS, *(f"worker {number}" for number in range(1, len(made.order)))]
        waivers = {waiver.requirement: waiver for waiver in made.waivers}
        super().__init__(chosen, Shared(stated.seed), dict.fromkeys(processes, target), waivers)
        self._target = target
        self._complete, self._process_lost = stated.complete, stated.process_lost
        self._places = {
            (process, check): (number, place)
            for number, (process, checks) in enumerate(zip(processes, made.order, strict=False))
            for place, check in enumerate(checks)
        }
        self._again = bool(made.order) and bool(made.order[0]) and any(made.order[1:])
        results = {check.id: check for row in stated.requirements for check in row.checks}
        self._crashed = {check.id for check in results.values() if check.message == CRASHED}
        self._seconds = {check.id: check.seconds for check in results.values()}
        unfinished = [checks[-1] for checks in made.order if checks and _unfinished(results.get(checks[-1]), stated)]
        # Before the first check there may be nothing at all.
        early = [PREFLIGHT] if not stated.complete and not any(made.order) else []
        self.record = Record(stated, [*unfinished, *early])

    def clean(self, text: str) -> str:
        return text  # there are no secrets here, and what stands in for the key may coincide with anything

    def session(self, name: str) -> Session:
        if name not in self.sessions:
            self.sessions[name] = ReplayedSession(
                self._target,
                self.settings.seed,
                selected=self.settings.selected,
                record=self.record,
                has_seen_more=self._again and name != OWN_PROCESS,
            )
            self.sessions[name].endpoint.crowded = name != OWN_PROCESS  # that runs checks while no other does
        return self.sessions[name]

    def begin(self) -> None:
        collection = Collection(self._target, datetime.now(UTC), wrong_keys=self.session(OWN_PROCESS).wrong_keys)
        self.collections = dict.fromkeys(self.targets, collection)
        with suppress(Unsupported):  # it is noted in the record
            self.probe(OWN_PROCESS)
        if self.shared.counts_on:
            self.shared.counts_on = list(self.targets)
        if self.shared.dead:
            self.shared.dead.update(dict.fromkeys(self.targets, self.shared.dead[OWN_PROCESS]))

    def place(self, check: Check, target: str, marks: frozenset[str]) -> tuple[int, ...] | None:
        return self._places.get((target, check.id))

    def collect(self, report: CheckReport) -> None:
        process = report.target  # which is a target of its own here
        made = replace(report, process=process, seconds=self._seconds.get(report.check, 0.0))
        if made.check in self.record.unfinished:
            if made.check in self._crashed:
                made = CheckReport.crashed(made.check, process, process)
            else:
                made.cut_short()
        self.collections[process].add(made)

    def classify(self, report: CheckReport, error: BaseException) -> None:
        if isinstance(error, Unsupported) or report.check in self.record.unfinished:
            report.status, report.message = Status.INCONCLUSIVE, str(error)
        else:
            super().classify(report, error)

    def wait(self, seconds: float) -> None:
        pass  # the answers are there

    def conclude(self, *, cut_short: bool) -> None:
        for own in self.sessions.values():
            self.collections[OWN_PROCESS].warnings += own.warnings
            own.close()
        self.record.close()
        built = collect.build(
            self.collections[OWN_PROCESS],
            all_checks(),
            self.settings,
            self.waivers,
            finished=datetime.now(UTC),
            complete=self._complete,
            process_lost=self._process_lost,
            command="",
        )
        self.runs.append(built)


class ReplayedApi(Api):
    """The operations for a check of a process that had also run checks which later ran again elsewhere. What it saw in
    those is not on record: the guard may have held something back because of it, which shows in what was not sent."""

    def __init__(self, api: Api, client: Client, record: Record, check: str) -> None:
        super().__init__(client, api.key, api.rng, api.accept)
        self._record = record
        self._check = check

    def permits(self, segment: int | str) -> bool:
        return super().permits(segment) and self._record.names(self._check, str(segment))


@dataclass
class ReplayedSession(Session):
    """A session with the record of one process of a run, which may have seen more than that."""

    record: Record = field(kw_only=True)
    has_seen_more: bool = field(kw_only=True)

    def api(self, check: str) -> Api:
        api = super().api(check)
        return ReplayedApi(api, self.client, self.record, check) if self.has_seen_more else api

    def __post_init__(self) -> None:
        super().__post_init__()
        # The record holds no secrets. What stands in for the key is none, and may coincide with anything.
        self.recorder.redactor = Redactor(secrets.token_hex(32))

    def close(self) -> None:
        self._kept.clear()  # what is returned after the last check is not on record
        super().close()

    def client_of(self, endpoint: Endpoint, guard: Guard, observer: Observer) -> Client:
        return ReplayedClient(endpoint, guard, self.recorder, observer, self.record)

    def wire_of(self, client: Client) -> Wire:
        assert isinstance(client, ReplayedClient)
        return ReplayedWire(client)

    def provider_of(self, states: States) -> Provider:
        return ReplayedProvider(self.record, self.recorder)


def _unfinished(result: CheckResult | None, stated: Run) -> bool:
    """Whether a check, the last of its process, is stated not to have finished: because the run was cut short, or
    because its process was lost."""
    said = result.message if result is not None else ""
    return said == CRASHED or (said == UNFINISHED and not stated.complete)


def _target(stated: Run, made: Circumstances, key: str) -> Target:
    states = None
    if made.states == "lists":
        states = States(pending=made.pending, shipped=made.shipped)
    elif made.states != "none":
        states = States(url=NOWHERE) if made.states == "url" else States(command=(NOWHERE,))
    return Target(
        stated.target,
        stated.base_url,
        Secret(key),
        Mode[stated.mode.upper()],
        Shell(made.key_variable, made.curl_options),
        states,
        protected=made.protected,
        protected_as=made.protected_as,
        bulk_orders=made.bulk_orders,
        proxy=NOWHERE if made.proxied else None,
    )
