"""What every report says about a run, and in which order; the formats differ only in how they write it.

Verdict and coverage come first, then what failed (required before recommended), what is waived, what could not be
decided, what was excluded, and the observed facts. The order within each follows the catalogue.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.contract.catalogue import Level
from conformance.reporting.run import Run
from conformance.target import Shell
from conformance.text import plural
from conformance.transport.curl import WAIT, curl
from conformance.transport.evidence import Exchange, handed_out
from conformance.transport.request import Operation
from conformance.verdict import (
    EVERY_EXCHANGE,
    EXERCISED,
    NO_CHECK,
    CheckResult,
    Failure,
    RequirementResult,
    Status,
    Verdict,
    counts,
    coverage,
)

#: What differs from check to check if the cause is the same: quoted messages to a state provider, and ids.
_ASKED = re.compile(r'\{"state": .*?(?:\}\}|…)')
_IDS = re.compile(r"(?:(?<=/orders/)|(?<=\border ))-?[0-9]+\b|(?<![:.\w])-?[0-9]{4,}\b")
#: The order that a curl line cancels.
_CANCELLED = re.compile(r"/store/orders/(-?[0-9]+)\b")
#: How many further failed checks a line names, and how many orders in one state.
_NAMED, _ORDERS = 3, 4
#: The statuses in the order in which a line counts them.
_TOLD = (Status.PASSED, Status.FAILED, Status.WAIVED, Status.INCONCLUSIVE, Status.EXCLUDED)


def score(run: Run) -> str:
    """The coverage in words: `31 of 31 required exercised; recommended: 11 passed, 1 failed`."""
    table = counts(run.requirements)
    waived = table[Level.REQUIRED][Status.WAIVED]
    told = [(table[Level.RECOMMENDED][status], status) for status in _TOLD]
    words = ", ".join(f"{count} {status}" for count, status in told if count)
    return (
        f"{coverage(run.requirements)} required exercised"
        + (f", {waived} of them failed and waived" if waived else "")
        + (f"; recommended: {words}" if words else "")
    )


def headline(run: Run) -> str:
    """Verdict and coverage: `conformant, 31 of 31 required exercised; recommended: 12 passed`."""
    lacking = shortfall(run)
    return f"{run.verdict}{f' ({lacking})' if lacking else ''}, {score(run)}"


def shortfall(run: Run) -> str:
    """What leaves the run as a whole without a verdict, whatever its requirements ended as; empty if nothing does."""
    if run.process_lost:
        return "a process of the run ended unexpectedly"
    if not run.complete:
        return "the run was cut short"
    statuses = {result.status for result in run.requirements}
    if statuses & EXERCISED or undecided(run):
        return ""
    return f"nothing of what was selected {'could' if Status.INCONCLUSIVE in statuses else 'can'} be checked here"


def with_status(run: Run, status: Status) -> list[RequirementResult]:
    """The requirements that ended in `status`, required before recommended."""
    found = [result for result in run.requirements if result.status is status]
    return sorted(found, key=lambda result: result.requirement.level is not Level.REQUIRED)


def gates(run: Run, result: RequirementResult) -> bool:
    """Whether `result` counts for the verdict of `run`."""
    return run.strict or result.requirement.level is Level.REQUIRED


def undecided(run: Run) -> list[RequirementResult]:
    """What keeps `run` from a verdict: inconclusive requirements that gate."""
    return [result for result in with_status(run, Status.INCONCLUSIVE) if gates(run, result)]


@dataclass(frozen=True)
class Group:
    """Requirements with the same reason; if reasons differ only in ids, this is the first one."""

    reason: str
    results: list[RequirementResult]


def by_reason(results: Iterable[RequirementResult]) -> list[Group]:
    """Requirements grouped by the reason for their status, in the order in which the reasons first appear."""
    return _grouped((result.reason, result) for result in results)


def excluded(run: Run) -> list[Group]:
    """The excluded requirements by reason."""
    return by_reason(result for result in run.requirements if result.status is Status.EXCLUDED)


def in_part(run: Run) -> list[Group]:
    """The requirements that were exercised without some of their checks, by the reason for that."""
    return _grouped(
        (check.message, result)
        for result in run.requirements
        if result.status is not Status.EXCLUDED
        for check in result.checks
        if check.status is Status.EXCLUDED
    )


def _grouped(pairs: Iterable[tuple[str, RequirementResult]]) -> list[Group]:
    causes: dict[str, list[tuple[str, RequirementResult]]] = {}
    for reason, result in pairs:
        causes.setdefault(_IDS.sub("…", _ASKED.sub("{…}", reason)), []).append((reason, result))
    groups = []
    for found in causes.values():
        reasons = list(dict.fromkeys(reason for reason, _ in found))
        said = (reasons[0] or "none given") + (f" (and {len(reasons) - 1} more like it)" if reasons[1:] else "")
        groups.append(Group(said, list({result.requirement.id: result for _, result in found}.values())))
    return groups


def ids(results: Iterable[RequirementResult]) -> str:
    """The ids of requirements for a list in a line; three or more consecutive ones by their ends: `LIST-1 to LIST-4,
    LIST-6`."""
    runs: list[list[str]] = []
    for result in results:
        family, _, number = result.requirement.id.partition("-")
        if runs and runs[-1][-1] == f"{family}-{int(number) - 1}":
            runs[-1].append(result.requirement.id)
        else:
            runs.append([result.requirement.id])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def told(value: Any) -> str:
    """An observed value in words: `letters: 400, null: 404`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_aside(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return "; ".join(map(told, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _aside(value: Any) -> str:
    """A value within another: in brackets if it has commas of its own."""
    return f"({told(value)})" if isinstance(value, Mapping | list | tuple) and len(value) > 1 else told(value)


def name(check: CheckResult) -> str:
    """The id of `check`; empty for the stand-in of a requirement without checks."""
    return "" if check.id == NO_CHECK else check.id


def explained(check: CheckResult) -> str:
    """The id of a check, and how to find out what it does."""
    return f"{check.id} (explain {check.requirement} says what it does)"


@dataclass(frozen=True)
class Evidence:
    """Why a check of a requirement failed, ready to be written: `shown` is exchange `number` in words, `orders` the
    orders that it is about."""

    check: CheckResult
    expected: str
    received: str
    number: int | None
    shown: str
    orders: str
    curl: str


def evidence(run: Run, result: RequirementResult) -> list[Evidence]:
    """What the checks of `result` have against the service, what tells most first.

    Failed checks come before others; then those whose exchange cancelled an order; then what all exchanges of the run
    say together, which has how often it was; and what can be repeated without waiting comes before what cannot. An
    inconclusive check has evidence where it failed for a cause that is another requirement's.
    """
    against = [check for check in result.checks if check.status is Status.FAILED or check.failure is not None]
    requirement_of = _requirement_of(run)
    return [
        _evidence_of(run, result, check, requirement_of)
        for check in sorted(against, key=lambda check: _rank(run, check))
    ]


def _rank(run: Run, check: CheckResult) -> tuple[bool, ...]:
    """How much `check` tells, as a sort key: less for what tells more."""
    failure = check.failure
    shown = run.by_number.get(failure.exchange) if failure and failure.exchange is not None else None
    has_cancelled = shown is not None and shown.operation == Operation.CANCEL and shown.succeeded
    waits = failure is not None and WAIT in (failure.curl or "").splitlines()
    return check.status is not Status.FAILED, not has_cancelled, check.id != EVERY_EXCHANGE, waits


def _evidence_of(
    run: Run, result: RequirementResult, check: CheckResult, requirement_of: Mapping[str, str]
) -> Evidence:
    """The evidence of one check of `result`; without a failure on record, its message and its last exchange are all
    there is."""
    last = check.exchanges[-1] if check.exchanges else None
    failure = check.failure or Failure(result.requirement.expectation, check.message, last)
    number = failure.exchange
    exchange = None if number is None else run.by_number.get(number)
    line = failure.curl
    if line is None and exchange is not None:
        line = curl(exchange, shell(run))
    universal = check.id == EVERY_EXCHANGE
    return Evidence(
        check,
        expected=failure.expected,
        received=failure.received,
        number=number,
        shown="" if number is None else described(number, exchange, requirement_of if universal else {}),
        orders=orders(run, exchange.check if universal and exchange else check.id, line or ""),
        curl=line or "",
    )


def also(found: Iterable[Evidence]) -> str:
    """The checks that failed behind the first, which is shown: `2 more checks of this requirement failed: a, b`; empty
    where there are none."""
    further = [shown.check.id for shown in found if shown.check.status is Status.FAILED][1:]
    if not further:
        return ""
    left = f" and {len(further) - _NAMED} more" if len(further) > _NAMED else ""
    return f"{plural(len(further), 'more check')} of this requirement failed: {', '.join(further[:_NAMED])}{left}"


def orders(run: Run, sender: str, lines: str) -> str:
    """The orders that the state provider had placed for the check `sender`, whose requests these `curl` lines repeat,
    and any others that the lines cancel: `1 pending (71001), 1 shipped (71002)`. Empty where there are none, or where
    the lines cancel only orders that it did not place."""
    named = set(_CANCELLED.findall(lines))
    emptied = False
    placed: dict[str, dict[str, None]] = {}
    for message in run.messages:
        own = message.get("check") == sender
        state = str(message.get("state")).removesuffix(" orders")
        emptied |= own and state == "no"
        for order in handed_out(message):
            if own or order in named:
                placed.setdefault(state, {})[order] = None
    if named and named.isdisjoint(order for found in placed.values() for order in found):
        return ""
    told = [f"{len(found):,} {state} ({_ids(found, named)})" for state, found in placed.items()]
    return ", ".join(told) + (", in a store that was emptied before" if emptied and told else "")


def _ids(found: Iterable[str], first: Collection[str]) -> str:
    """Some of the ids `found`, those in `first` before the others."""
    ordered = sorted(found, key=lambda order: order not in first)
    return ", ".join(ordered[:_ORDERS]) + (", …" if len(ordered) > _ORDERS else "")


def described(number: int, exchange: Exchange | None, requirement_of: Mapping[str, str]) -> str:
    """An exchange in one line, with the check that sent it if `requirement_of` has that; only its number if there is no
    evidence."""
    if exchange is None:
        return f"exchange {number}"
    owner = requirement_of.get(exchange.check)
    sender = f", sent by {exchange.check} of {owner}" if owner else ""
    return f"{exchange.line} -> {exchange.received} (exchange {number}{sender})"


#: Why a `curl` line may be answered differently than in the run: because it is about orders that were returned, because
#: bytes followed an answer, and in general.
GIVEN_BACK = (
    "A run returns its orders when it ends. Before you paste a line, place orders in the states given for it, and put "
    "their ids into the line. Leave an id that no order had as it is."
)
HIDDEN = "curl does not show bytes that follow an answer; curl -v says whether there are any (Excess found)."
ALONE = (
    "Each line opens a connection of its own. If a failure shows only on a kept-alive connection, among simultaneous "
    "requests or after many requests, repeat it by the same run with --only {ids} --seed {seed}."
)


def before_pasting(run: Run, pasted: Iterable[Evidence]) -> list[str]:
    """What to know before pasting the `curl` lines of this evidence, one paragraph each. Orders from lists in the
    configuration are in no message to a provider: with such lists, orders matter if a line cancels one."""
    by_hand = run.mode == "full" and not any(message.get("action") == "setup" for message in run.messages)
    shown = [each for each in pasted if each.curl]
    orders_matter = any(each.orders or (by_hand and " -X DELETE " in each.curl) for each in shown)
    known = []
    if orders_matter:
        known.append(GIVEN_BACK)
    if any(each.check.requirement in ("CANCEL-2", "HTTP-2") for each in shown):
        known.append(HIDDEN)
    if shown:
        requirement_of = _requirement_of(run)
        sent_by = (run.by_number[each.number].check for each in shown if each.number in run.by_number)
        found = [each.check.requirement for each in shown]
        found += [requirement_of[check] for check in sent_by if check in requirement_of]
        known.append(ALONE.format(ids=",".join(dict.fromkeys(found)), seed=run.seed))
    return known


def _requirement_of(run: Run) -> dict[str, str]:
    """The requirement of each check of `run`, by the id of the check."""
    return {check.id: row.requirement.id for row in run.requirements for check in row.checks}


def shell(run: Run) -> Shell:
    """What the run's `curl` lines need to know of its target."""
    made = run.circumstances
    return Shell(made.key_variable, made.curl_options) if made else Shell()


def meaning(run: Run) -> str:
    """The verdict of `run` as a sentence, for first-time readers."""
    if run.verdict is Verdict.NON_CONFORMANT:
        required = any(result.requirement.level is Level.REQUIRED for result in with_status(run, Status.FAILED))
        return f"At least one {'requirement' if required else 'recommendation'} of the contract is not kept."
    besides = " but what is waived" if any(gates(run, each) for each in with_status(run, Status.WAIVED)) else ""
    if run.verdict is Verdict.CONFORMANT:
        return f"Nothing that was exercised breaks a requirement of the contract{besides}."
    if lacking := shortfall(run):
        return f"{lacking[0].upper()}{lacking[1:]}; what was found breaks no requirement{besides}."
    return f"Nothing that decides the verdict failed{besides}, but something could not be decided."
