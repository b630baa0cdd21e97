"""From checks to requirements to a verdict to an exit status. Pure: values in, values out.

    checks of a requirement ──worst──▶ its status ──causes, waivers──▶ its status ──▶ verdict ──▶ exit status

The status of a requirement is the worst that any of its checks found, in the order of `Status`; an excluded check does
not count if another one ran. Only required rows decide the verdict; with `strict`, recommended rows do as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Any

from conformance.contract.catalogue import Level, Requirement
from conformance.text import either


class Status(StrEnum):
    """How a requirement (or one check of it) ended, worst first."""

    FAILED = "failed"  # decided: the requirement is broken
    WAIVED = "waived"  # failed, and covered by a waiver that has not expired
    INCONCLUSIVE = "inconclusive"  # it should have been decided, and could not be
    PASSED = "passed"  # decided: the requirement is met
    EXCLUDED = "excluded"  # it cannot be decided here


#: The id that stands in for a check where a requirement has none.
NO_CHECK = "none"
#: The id of the check that the judges of every exchange make up.
EVERY_EXCHANGE = "every_exchange"
#: The id that stands for the exchanges that these judges would also have seen, had all requirements been selected.
OTHER_EXCHANGES = "other_exchanges"
#: The statuses that say something about the service.
EXERCISED = frozenset({Status.PASSED, Status.FAILED, Status.WAIVED})


class Verdict(StrEnum):
    """What a run says about its target."""

    CONFORMANT = "conformant"
    NON_CONFORMANT = "non-conformant"
    INCOMPLETE = "incomplete"


class Exit(IntEnum):
    """The exit statuses of the command. 0, 1 and 3 are those of `run`; 2 and 130 mean the same for every command."""

    CONFORMANT = 0
    NON_CONFORMANT = 1
    USAGE = 2
    INCOMPLETE = 3
    INTERRUPTED = 130


@dataclass(frozen=True)
class Failure:
    """Why a check failed: what the contract demands, and what the service did."""

    expected: str
    received: str
    exchange: int | None = None
    curl: str | None = None


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check against one target; `exchanges` are numbers in the run's evidence."""

    id: str
    requirement: str
    status: Status
    message: str = ""
    seconds: float = 0.0
    exchanges: tuple[int, ...] = ()
    failure: Failure | None = None
    owners: tuple[str, ...] = ()  # if inconclusive: the requirements that own, or may own, what went wrong
    certain: bool = False  # if failed: this cannot be the consequence of another failure


@dataclass(frozen=True)
class Waiver:
    """A known failure that its owner has accepted until `expires` (an ISO date)."""

    requirement: str
    reason: str
    expires: str
    link: str | None = None


@dataclass(frozen=True)
class RequirementResult:
    """A requirement, the checks of it, and the status that these amount to."""

    requirement: Requirement
    status: Status
    checks: tuple[CheckResult, ...] = ()
    waiver: Waiver | None = None

    @property
    def reason(self) -> str:
        """Why it ended so: the message of the first check with its status (FAILED if it is waived). Messages that only
        point back to this requirement come last. If it is excluded: the message that most of its checks have."""
        status = Status.FAILED if self.status is Status.WAIVED else self.status
        telling = [check for check in self.checks if check.status is status and check.message]
        said = Counter(check.message for check in telling)
        telling.sort(key=lambda check: check.message.endswith(f"(see {self.requirement.id})"))
        if status is Status.EXCLUDED:
            telling.sort(key=lambda check: -said[check.message])
        return telling[0].message if telling else ""


@dataclass(frozen=True)
class Coverage:
    """How many requirements of a level were exercised, of how many there are."""

    exercised: int
    total: int

    def __str__(self) -> str:
        return f"{self.exercised} of {self.total}"


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of `statuses`; EXCLUDED if there are none."""
    found = set(statuses)
    return next((status for status in Status if status in found), Status.EXCLUDED)


def fold(
    requirements: Iterable[Requirement],
    checks: Iterable[CheckResult],
    waivers: Mapping[str, Waiver] | None = None,
) -> list[RequirementResult]:
    """The result of every requirement, in the given order: its checks, and their worst status.

    A requirement without any check result is EXCLUDED as not selected. If nothing required failed, a breach that the
    exchanges prove makes its requirement FAILED, since no other failure can be the cause. A failure that `waivers` (by
    requirement id) cover is WAIVED. A failure that another failure may have caused is INCONCLUSIVE, even if that one is
    waived: whoever waived it has to say whether this is only a consequence.
    """
    requirements, checks = list(requirements), list(checks)
    required = {requirement.id for requirement in requirements if requirement.level is Level.REQUIRED}
    if not any(check.status is Status.FAILED and check.requirement in required for check in checks):
        checks = [replace(check, status=Status.FAILED) if _unexplained(check) else check for check in checks]
    by_requirement: dict[str, list[CheckResult]] = {}
    for check in checks:
        by_requirement.setdefault(check.requirement, []).append(check)
    waivers = waivers or {}
    results = [_alone(row, by_requirement.get(row.id, []), waivers.get(row.id)) for row in requirements]
    failed = {row.requirement.id for row in results if row.status is Status.FAILED}
    return _spared(_attributed(results), failed)


def _alone(requirement: Requirement, checks: list[CheckResult], waiver: Waiver | None) -> RequirementResult:
    """The result of a requirement by its own checks and its own waiver, whatever became of others."""
    if not checks:
        checks = [CheckResult(NO_CHECK, requirement.id, Status.EXCLUDED, "not selected")]
    status = worst(check.status for check in checks)
    if waiver and status is Status.FAILED:
        return RequirementResult(requirement, Status.WAIVED, tuple(checks), waiver)
    return RequirementResult(requirement, status, tuple(checks))


def _unexplained(check: CheckResult) -> bool:
    """Whether this is a breach that the exchanges prove, left undecided because its cause may lie elsewhere."""
    return check.id == EVERY_EXCHANGE and check.status is Status.INCONCLUSIVE and check.failure is not None


def _attributed(results: list[RequirementResult]) -> list[RequirementResult]:
    """The results with their causes. A requirement that failed becomes INCONCLUSIVE if one that it rests on failed,
    too, unless a check of it is `certain`: then it is a cause itself. An undecided check names those of its owners that
    failed, or the failures that its owners are put down to."""
    by_id = {row.requirement.id: row for row in results}
    failed = {id_: row for id_, row in by_id.items() if row.status in (Status.FAILED, Status.WAIVED)}

    def causes(row: RequirementResult) -> list[str]:
        """The failed requirements that a failure of `row` is put down to; none if it stands on its own."""
        if row.status is not Status.FAILED or any(check.certain for check in row.checks):
            return []
        return list(dict.fromkeys(root for id_ in row.requirement.rests_on if id_ in failed for root in roots(id_)))

    def roots(id_: str) -> list[str]:
        """The failures that a failed requirement is put down to in the end: those behind it, or else itself."""
        return causes(failed[id_]) or [id_]

    own = {id_ for id_, row in failed.items() if not causes(row)}
    leads = {id_: causes(row) or _owners(row) for id_, row in by_id.items()}
    attributed = []
    for row in results:
        checks = tuple(_pointing(check, _failed_causes(check.owners, own, leads)) for check in row.checks)
        status = row.status
        if found := causes(row):
            waived = all(failed[id_].status is Status.WAIVED for id_ in found)
            what = "is waived; waive this as well if that is its cause" if waived else "failed; fix that first"
            note = f"not judged, since it rests on {' and '.join(found)}, which {what}. Seen: "
            status = Status.INCONCLUSIVE
            checks = _noted(checks, Status.FAILED, note, status=status, owners=tuple(found))
        attributed.append(replace(row, status=status, checks=checks))
    return attributed


def _owners(row: RequirementResult) -> list[str]:
    """The requirements that own, or may own, what went wrong in the undecided checks of `row`."""
    return [owner for check in row.checks if check.status is Status.INCONCLUSIVE for owner in check.owners]


def _failed_causes(owners: Iterable[str], failed: Collection[str], leads: Mapping[str, Iterable[str]]) -> list[str]:
    """Those of `owners` that are in `failed`; if none is, those that the owners lead to, and so on."""
    seen: set[str] = set()
    nearest = list(dict.fromkeys(owners))
    while nearest:
        if found := [owner for owner in nearest if owner in failed]:
            return found
        seen.update(nearest)
        nearest = list(dict.fromkeys(next_ for owner in nearest for next_ in leads.get(owner, ()) if next_ not in seen))
    return []


def _pointing(check: CheckResult, failed: list[str]) -> CheckResult:
    """An undecided check, with the requirements to look at added to its message: those that `failed`, or else its
    owners. The judges of every exchange name no owner that has not failed, since that is only one of several possible
    causes."""
    if check.status is not Status.INCONCLUSIVE or not check.owners:
        return check
    if failed:
        return replace(check, message=f"{check.message} (see {' and '.join(failed)}, which failed)")
    if check.id == EVERY_EXCHANGE:
        return check
    return replace(check, message=f"{check.message} (see {either(check.owners)})")


def _spared(results: list[RequirementResult], failed: Collection[str]) -> list[RequirementResult]:
    """The results with the effect of waivers on other requirements: if a waived failure is the only reason why a
    requirement is undecided, that one is EXCLUDED, and so is whatever is undecided because of it. Whoever waived the
    cause has accepted that its consequences stay open. Requirements that `failed` before causes were attributed are not
    spared."""
    accepted = {row.requirement.id for row in results if row.status is Status.WAIVED}
    while True:
        spared = [row if row.requirement.id in failed else _without_consequences(row, accepted) for row in results]
        more = {row.requirement.id for row, before in zip(spared, results, strict=True) if row != before}
        if not more:
            return spared
        results, accepted = spared, accepted | more


def _without_consequences(row: RequirementResult, accepted: set[str]) -> RequirementResult:
    """`row`; EXCLUDED if each of its undecided checks has an owner among the `accepted` requirements."""
    own = row.requirement.id
    # A check that points back to its own requirement says nothing of the cause.
    telling = [check for check in row.checks if check.status is Status.INCONCLUSIVE and check.owners != (own,)]
    if row.status is not Status.INCONCLUSIVE or not telling or not all(accepted & {*check.owners} for check in telling):
        return row
    note = "not decided while its cause is waived: "
    checks = _noted(row.checks, Status.INCONCLUSIVE, note, status=Status.EXCLUDED)
    return replace(row, status=worst(check.status for check in checks), checks=checks)


def _noted(checks: Iterable[CheckResult], which: Status, note: str, **other: Any) -> tuple[CheckResult, ...]:
    """`checks`; those with the status `which` get `note` before their message, and the `other` values."""
    return tuple(
        replace(check, message=note + check.message, **other) if check.status is which else check for check in checks
    )


def unneeded_waivers(results: Iterable[RequirementResult], waivers: Mapping[str, Waiver]) -> list[str]:
    """The ids whose waiver is not needed: the requirement passed."""
    return [
        result.requirement.id
        for result in results
        if result.requirement.id in waivers and result.status is Status.PASSED
    ]


def verdict(results: Iterable[RequirementResult], *, strict: bool = False, complete: bool = True) -> Verdict:
    """NON_CONFORMANT if a gating requirement failed; else INCOMPLETE if one is inconclusive, if nothing at all was
    exercised, or if the run was not `complete`; else CONFORMANT. Required rows gate; with `strict`, recommended rows do
    as well."""
    rows = list(results)
    gating = {row.status for row in rows if strict or row.requirement.level is Level.REQUIRED}
    if Status.FAILED in gating:
        return Verdict.NON_CONFORMANT
    if Status.INCONCLUSIVE in gating or not complete or not any(row.status in EXERCISED for row in rows):
        return Verdict.INCOMPLETE
    return Verdict.CONFORMANT


def counts(results: Iterable[RequirementResult]) -> dict[Level, Counter[Status]]:
    """How many requirements of each level ended in each status."""
    table: dict[Level, Counter[Status]] = {level: Counter(dict.fromkeys(Status, 0)) for level in Level}
    for result in results:
        table[result.requirement.level][result.status] += 1
    return table


def coverage(results: Iterable[RequirementResult], level: Level = Level.REQUIRED) -> Coverage:
    """How many requirements of `level` were exercised: passed, failed or waived."""
    own = [result for result in results if result.requirement.level is level]
    return Coverage(sum(result.status in EXERCISED for result in own), len(own))


#: The worst verdict of several targets counts: they stand in this order.
_EXITS = {
    Verdict.NON_CONFORMANT: Exit.NON_CONFORMANT,
    Verdict.INCOMPLETE: Exit.INCOMPLETE,
    Verdict.CONFORMANT: Exit.CONFORMANT,
}


def exit_status(verdicts: Collection[Verdict], *, interrupted: bool) -> Exit:
    """The exit status of a run with these verdicts, one for each target, if it was not `interrupted`. Without any
    verdict it is a usage error, never a success."""
    if interrupted:
        return Exit.INTERRUPTED
    return next((status for verdict, status in _EXITS.items() if verdict in verdicts), Exit.USAGE)
