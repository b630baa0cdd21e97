"""Makes a `Run` of the reports of its checks: numbers the exchanges, folds the judges' findings, draws the verdict."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from conformance import __version__
from conformance.check import Check
from conformance.configuration.settings import Settings
from conformance.contract import catalogue
from conformance.judging import doubts, facts, judges, universal
from conformance.reporting.run import Circumstances, Observed, Run
from conformance.runner.reported import OWN_PROCESS, CheckReport
from conformance.states.provider import given
from conformance.target import Target
from conformance.transport.curl import curl
from conformance.transport.evidence import PREFLIGHT, Exchange, Trouble
from conformance.transport.request import Operation
from conformance.verdict import (
    OTHER_EXCHANGES,
    CheckResult,
    Status,
    Verdict,
    Waiver,
    fold,
    unneeded_waivers,
    verdict,
)

#: The warning about checks that ran again, in the command's own process, after others had run them.
RUN_AGAIN = (
    "checks ran side by side, and may have got in each other's way: two held an order with the same id, since the "
    "store gave the id of a cancelled order to a new one, or they met a limit on simultaneous requests; checks in "
    "which anything went wrong ran again one by one, and only the second time counts (with -n 1 all run one by one): {}"
)
#: The warning about unanswered requests for which nobody can be blamed.
UNANSWERED = (
    "{} of {} requests got no answer in time while others were under way, the first of them {}; no requirement fails "
    "for that, since a limit, which the specification does not show, or a firewall may be the reason"
)
#: The warning about a provider that may place orders elsewhere.
NOT_THERE = (
    "no order that the state provider handed out was ever listed, and no cancel found one: does the provider place "
    "orders in the store of this service?"
)
#: The reason for requirements that every exchange is judged by, if not all requirements are selected.
NOT_SELECTED = "judged only on what the checks of the selected requirements send; a complete run sends more"
#: The libraries that generate requests: another version of them generates others.
TOOLS = ("hypothesis", "schemathesis")


@dataclass
class Collection:
    """What a run against one target has collected so far."""

    target: Target
    started: datetime
    reports: dict[str, CheckReport] = field(default_factory=dict)
    preflight: list[Exchange] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    wrong_keys: tuple[str, ...] = ()
    clean: Callable[[str], str] = str  # takes secrets out of a text
    pointless: bool = False  # the look before the run found no service to judge

    def add(self, report: CheckReport) -> None:
        """Add the report of a check. Identical bodies are kept once."""
        for exchange in report.exchanges:
            exchange.body = sys.intern(exchange.body)
        self.reports[report.check] = report

    def is_finished(self, checks: Iterable[Check]) -> bool:
        """Whether each of these checks has come to its end."""
        reports = [self.reports.get(check.id) for check in checks]
        return all(report is not None and report.finished for report in reports)

    @property
    def order(self) -> tuple[tuple[str, ...], ...]:
        """For each process, the checks in the order in which they ran there; the command's own process comes first."""
        found: dict[str, list[CheckReport]] = {OWN_PROCESS: []}
        for report in self.reports.values():
            found.setdefault(report.process, []).append(report)
        ordered = (sorted(reports, key=lambda report: report.place) for reports in found.values())
        return tuple(tuple(report.check for report in reports) for reports in ordered)


def build(
    collection: Collection,
    checks: Sequence[Check],
    settings: Settings,
    waivers: Mapping[str, Waiver],
    *,
    finished: datetime,
    complete: bool,
    process_lost: bool = False,
    command: str,
) -> Run:
    """The run that `collection` amounts to. Selected checks without a report are inconclusive if the run is not
    `complete`; in a complete run they were deselected. `process_lost` says that a process ended unexpectedly, as
    opposed to an interruption."""
    exchanges = _number(collection.preflight, 0)
    reports: list[CheckReport] = []
    results: list[CheckResult] = []
    observed: list[Observed] = []
    for check in checks:
        report = collection.reports.get(check.id)
        if report is not None:
            first = len(exchanges)
            exchanges += _number(report.exchanges, first)
            reports.append(report)
            results.append(_result(check, report, first))
            observed += (
                Observed(topic, value, tuple(first + n for n in numbers))
                for topic, value, numbers in report.observations
            )
        elif not complete and check.requirement in settings.selected:
            why = "a process of the run ended unexpectedly" if process_lost else "the run was cut short"
            results.append(CheckResult(check.id, check.requirement, Status.INCONCLUSIVE, f"not run: {why}"))
    if not collection.pointless:
        results += _judged(exchanges, settings, collection.target)
    for topic, (value, numbers) in facts.observed(exchanges).items():
        observed.append(Observed(topic, value, tuple(numbers)))
    requirements = fold(catalogue.load().requirements.values(), results, waivers)
    drawn = verdict(requirements, strict=settings.strict, complete=complete)
    passed = exchanges if drawn is Verdict.CONFORMANT else []  # else the reasons for the verdict tell of them
    started = collection.started
    return Run(
        target=collection.target.name,
        base_url=collection.clean(collection.target.base_url),
        mode=str(collection.target.mode),
        verdict=drawn,
        requirements=tuple(requirements),
        suite_version=__version__,
        catalogue=catalogue.load().digest,
        started=_rfc3339(started),
        finished=_rfc3339(finished),
        seconds=round((finished - started).total_seconds(), 3),
        seed=settings.seed,
        budget=settings.budget,
        strict=settings.strict,
        complete=complete,
        process_lost=process_lost,
        requests=len(exchanges),
        command=collection.clean(command),
        observations=_by_topic(observed, collection.clean),
        warnings=tuple(dict.fromkeys(_warnings(collection, reports, passed, unneeded_waivers(requirements, waivers)))),
        circumstances=_circumstances(collection, settings, waivers),
        exchanges=tuple(exchanges),
        messages=(*collection.messages, *(message for report in reports for message in report.messages)),
    )


def _warnings(
    collection: Collection, reports: Iterable[CheckReport], passed: Sequence[Exchange], unneeded: Iterable[str]
) -> Iterator[str]:
    """What readers should know about the run itself. `passed` are the exchanges of a conformant run, `unneeded` the
    requirements whose waiver covers no failure."""
    yield from collection.warnings
    for report in reports:
        yield from report.warnings
    if _placed_elsewhere(reports):
        yield NOT_THERE
    again, *side_by_side = collection.order
    if again and side_by_side:
        yield RUN_AGAIN.format(", ".join(again))
    if late := [each for each in passed if _left_waiting(each)]:
        yield UNANSWERED.format(len(late), len(passed), f"{late[0].line} (exchange {late[0].number})")
    for requirement in unneeded:
        yield f"the waiver for {requirement} is no longer needed: it passed"


def _placed_elsewhere(reports: Iterable[CheckReport]) -> bool:
    """Whether the service seems to know none of the orders that the state provider handed out. A fault may hide orders
    from listings, or from cancels, but hardly all of them from both."""
    orders = given(message for report in reports for message in report.messages)
    exchanges = [exchange for report in reports for exchange in report.exchanges if exchange.status is not None]
    if {exchange.status for exchange in exchanges if exchange.order_id in orders} - {401, 404}:
        return False
    listings = [each for each in exchanges if each.operation == Operation.LIST and each.status == 200]
    if not orders or not listings or any(listing.body_cut for listing in listings):
        return False
    return not any(orders.intersection(re.findall(r"-?[0-9]+", listing.body)) for listing in listings)


def _left_waiting(exchange: Exchange) -> bool:
    """Whether a request was never answered; if others were under way, no requirement fails for that."""
    return exchange.trouble == Trouble.TIMEOUT and exchange.crowded and exchange.check != PREFLIGHT


def _judged(exchanges: list[Exchange], settings: Settings, target: Target) -> Iterator[CheckResult]:
    """What all exchanges together say about the selected requirements that every exchange is judged by, or can cast
    doubt on."""
    rows = catalogue.load().requirements
    for requirement in (*judges.JUDGES, *doubts.ROWS):
        if requirement in settings.selected:
            if requirement in judges.JUDGES and len(settings.selected) < len(rows):
                yield CheckResult(OTHER_EXCHANGES, requirement, Status.EXCLUDED, NOT_SELECTED)
            folded = universal.fold(requirement, rows[requirement].expected_of_each_answer, exchanges)
            if folded is not None:
                yield _with_curl(folded, exchanges, target)


def _circumstances(collection: Collection, settings: Settings, waivers: Mapping[str, Waiver]) -> Circumstances:
    target, states = collection.target, collection.target.states
    kind = "none" if states is None else "lists" if states.static else "url" if states.url else "command"
    return Circumstances(
        selected=tuple(row for row in catalogue.load().requirements if row in settings.selected),
        order=collection.order,
        wrong_keys=collection.wrong_keys,
        key_variable=target.shell.key,
        curl_options=target.shell.options,
        states=kind,
        pending=states.pending if states else (),
        shipped=states.shipped if states else (),
        bulk_orders=target.bulk_orders,
        proxied=target.proxy is not None,
        tools=tuple((tool, version(tool)) for tool in TOOLS),
        waivers=tuple(waivers.values()),
        protected=target.protected,
        protected_as=target.protected_as,
    )


def _number(exchanges: list[Exchange], first: int) -> list[Exchange]:
    for number, exchange in enumerate(exchanges, first):
        exchange.number = number
    return exchanges


def _result(check: Check, report: CheckReport, first: int) -> CheckResult:
    failure = report.failure
    if failure is not None and failure.exchange is not None:
        failure = replace(failure, exchange=first + failure.exchange)
    return CheckResult(
        check.id,
        check.requirement,
        report.status,
        report.message,
        seconds=report.seconds,
        exchanges=tuple(range(first, first + len(report.exchanges))),
        failure=failure,
        owners=tuple(report.owners),
        certain=report.certain,
    )


def _with_curl(result: CheckResult, exchanges: list[Exchange], target: Target) -> CheckResult:
    if result.failure is None or result.failure.exchange is None:
        return result
    line = curl(exchanges[result.failure.exchange], target.shell)
    return replace(result, failure=replace(result.failure, curl=line))


def _by_topic(observed: Iterable[Observed], clean: Callable[[str], str]) -> tuple[Observed, ...]:
    """One observation for each topic that has any, in the order of the catalogue."""
    found: dict[str, list[Observed]] = {}
    for fact in observed:
        found.setdefault(fact.topic, []).append(fact)
    return tuple(_merged(found[topic], clean) for topic in catalogue.load().observations if topic in found)


def _merged(found: list[Observed], clean: Callable[[str], str]) -> Observed:
    """One observation for a topic: its value, or the values if they differ; without secrets, which a body may have
    contained."""
    values = [_cleaned(fact.value, clean) for fact in found]
    different = [value for place, value in enumerate(values) if value not in values[:place]]
    numbers = tuple(sorted({number for fact in found for number in fact.exchanges}))
    return Observed(found[0].topic, different[0] if len(different) == 1 else different, numbers)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {clean(str(name)): _cleaned(item, clean) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item, clean) for item in value]
    return clean(value) if isinstance(value, str) else value


def _rfc3339(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
