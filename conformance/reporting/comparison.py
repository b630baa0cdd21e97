"""Two runs side by side: what got worse, what got better, what is merely different; and a matrix of any number of runs.

The runs may be of two deployments, or of one at two times. A requirement

    regressed   if it failed, and had not before; or if it passed before, and is now waived or undecided
    improved    if it passed, and had failed before, waived or not
    decided     if it passed, and had been undecided or left out before: the service may have met it all along
    differs     in every other case: the later run left it out, waived it or could not decide it, or one of the runs
                does not know it

What a run leaves out is a decision of whoever ran it, and says nothing about the service; it is shown nevertheless. Of
the observations, only those that both runs have are compared, since seeds draw different requests; of counts, only
whether something was seen, since they draw different numbers of requests. `comparison_views` shows it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.contract.catalogue import Level, Requirement
from conformance.reporting import outline
from conformance.reporting.run import Run
from conformance.text import cut, plural
from conformance.verdict import EXERCISED, Status

#: The most characters of a reason, and of an observation.
TEXT = 300
#: Topics whose values count how often something was seen.
_COUNTED = {"compression", "HTTP version", "rate limiting"}
#: Topics whose values are measurements, which hardly ever agree.
_MEASURED = {"orders in one listing", "response times"}
#: Topics whose value says for each status what got it: if a run has no entry for a status, nothing got it.
_BY_STATUS = {"unknown query parameters"}
#: The entry for the requests that generated checks made up, with every status that any of them got.
_MADE_UP = "made up"


@dataclass(frozen=True)
class Change:
    """A requirement with a different status; None if a run does not know it. `reason` is the later run's, empty if it
    passed there."""

    requirement: Requirement
    before: Status | None
    after: Status | None
    reason: str
    gating: bool

    @property
    def text(self) -> str:
        """`passed -> failed`."""
        return f"{self.before or 'unknown'} -> {self.after or 'unknown'}"


@dataclass(frozen=True)
class Difference:
    """A topic, or one entry of it, on which something else was observed."""

    topic: str
    before: str
    after: str
    entry: str = ""

    @property
    def what(self) -> str:
        """`malformed ids: blank`."""
        return f"{self.topic}: {self.entry}" if self.entry else self.topic


@dataclass(frozen=True)
class Comparison:
    """What changed from `a` to `b`: regressions first, then improvements, then what passed once it was decided, then
    other differences."""

    a: Run
    b: Run
    regressions: tuple[Change, ...]
    improvements: tuple[Change, ...]
    decided: tuple[Change, ...]
    others: tuple[Change, ...]
    observed: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def regressed(self) -> bool:
        """Whether a requirement that gates the later run, and is not waived there, got worse."""
        return any(change.gating for change in self.regressions)

    @property
    def verdict(self) -> str:
        """The comparison in a sentence."""
        if self.regressed:
            gating = sum(change.gating for change in self.regressions)
            further = len(self.regressions) - gating
            beside = f" (and {further} recommended or waived)" if further else ""
            return f"regressed: {plural(gating, 'requirement')} got worse{beside}"
        lost = sum(change.before in EXERCISED and change.after is Status.EXCLUDED for change in self.others)
        less = f"; {plural(lost, 'requirement')} no longer exercised" if lost else ""
        if self.regressions:
            return f"no regression that counts; what got worse is recommended only, or waived{less}"
        return f"no regression{less}"


@dataclass(frozen=True)
class Matrix:
    """Each requirement with its status in each run, None if a run does not know it."""

    runs: tuple[Run, ...]
    rows: tuple[tuple[Requirement, tuple[Status | None, ...]], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each run: its target, and its start where two runs have the same target."""
        targets = [run.target for run in self.runs]
        return tuple(
            run.target if targets.count(run.target) == 1 else f"{run.target} {run.started}" for run in self.runs
        )


def compare(a: Run, b: Run) -> Comparison:
    """What changed from run `a` to run `b`, in the order of the catalogue, required before recommended. Among
    regressions, failures come before what could not be decided."""
    changes: dict[str, list[Change]] = {"regressions": [], "improvements": [], "decided": [], "others": []}
    before = {result.requirement.id: result for result in a.requirements}
    after = {result.requirement.id: result for result in b.requirements}
    for requirement in _rows((a, b)):
        old, new = before.get(requirement.id), after.get(requirement.id)
        change = Change(
            requirement,
            old.status if old else None,
            new.status if new else None,
            new.reason if new and new.status is not Status.PASSED else "",
            bool(new and new.status is not Status.WAIVED and outline.gates(b, new)),
        )
        if change.before is not change.after:
            changes[_kind(change)].append(change)
    # What has failed may be why others could not be decided.
    changes["regressions"].sort(key=lambda change: (not change.gating, change.after is not Status.FAILED))
    return Comparison(
        a,
        b,
        **{kind: tuple(found) for kind, found in changes.items()},
        observed=tuple(_differences(a, b)),
        notes=tuple(_notes(a, b)),
    )


def matrix(runs: Sequence[Run]) -> Matrix:
    """The statuses of every requirement in every one of `runs`."""
    by_run = [{result.requirement.id: result.status for result in run.requirements} for run in runs]
    rows = tuple((row, tuple(statuses.get(row.id) for statuses in by_run)) for row in _rows(runs))
    return Matrix(tuple(runs), rows)


def _rows(runs: Iterable[Run]) -> list[Requirement]:
    """The requirements that any of `runs` knows, in the order in which they are met, required first."""
    known: dict[str, Requirement] = {}
    for run in runs:
        for result in run.requirements:
            known.setdefault(result.requirement.id, result.requirement)
    return sorted(known.values(), key=lambda row: row.level is not Level.REQUIRED)


def _kind(change: Change) -> str:
    """The field of a Comparison that `change` belongs to."""
    lost = change.before is Status.PASSED and change.after in (Status.WAIVED, Status.INCONCLUSIVE)
    if change.after is Status.FAILED or lost:
        return "regressions"
    if change.after is not Status.PASSED or change.before is None:
        return "others"
    return "improvements" if change.before in (Status.FAILED, Status.WAIVED) else "decided"


def _differences(a: Run, b: Run) -> Iterable[Difference]:
    before, after = _seen(a), _seen(b)
    same_draw = (a.seed, a.budget, a.suite_version) == (b.seed, b.budget, b.suite_version)
    for topic in before:
        if topic not in after or topic in _MEASURED:
            continue
        old, new = _entries(topic, before[topic]), _entries(topic, after[topic])
        if ("" in old) != ("" in new):  # told in another form
            old, new = ({"": {outline.told(seen[topic])}} for seen in (before, after))
        for entry in {**old, **new}:
            absence_tells = topic in _BY_STATUS and entry != _MADE_UP
            if not (entry in old and entry in new) and not absence_tells:
                continue
            earlier, later = old.get(entry, set()), new.get(entry, set())
            # Requests that another seed has made up may well have another of the same statuses.
            by_chance = entry == _MADE_UP and not same_draw and earlier & later
            if earlier != later and not by_chance:
                yield Difference(topic, _told(earlier), _told(later), entry)


def _seen(run: Run) -> dict[str, list[Any]]:
    """The values observed on each topic; several if they differed within the run."""
    seen: dict[str, list[Any]] = {}
    for observed in run.observations:
        seen.setdefault(observed.topic, []).extend(
            observed.value if isinstance(observed.value, list | tuple) else [observed.value]
        )
    return seen


def _entries(topic: str, values: list[Any]) -> dict[str, set[str]]:
    """What was observed under each label; under the empty one if there are no labels."""
    if topic in _COUNTED:
        labels = [value if isinstance(value, Mapping) else {str(value): 1} for value in values]
        return {"": {str(label) for counted in labels for label, count in counted.items() if count}}
    entries: dict[str, set[str]] = {} if values and all(isinstance(value, Mapping) for value in values) else {"": set()}
    for value in values:
        for label, item in value.items() if isinstance(value, Mapping) else [("", value)]:
            several = item if isinstance(item, list | tuple) else [item]
            entries.setdefault(str(label), set()).update(map(outline.told, several))
    return entries


def _told(values: set[str]) -> str:
    return cut(", ".join(sorted(values)) or "none", TEXT)


def _notes(a: Run, b: Run) -> Iterable[str]:
    """What a reader must know before blaming the service for a difference."""
    if a.catalogue != b.catalogue:
        yield "the runs used different catalogues of requirements"
    if a.suite_version != b.suite_version:
        yield f"the runs used different versions of the suite: {a.suite_version} and {b.suite_version}"
    for what in ("mode", "budget"):
        if getattr(a, what) != getattr(b, what):
            yield f"the runs had a different {what}: {getattr(a, what)} and {getattr(b, what)}"
    if a.strict != b.strict:
        yield f"only {named(a if a.strict else b)} was strict: recommended requirements gate there"
    for run in (a, b):
        if not run.complete:
            yield f"{named(run)}: {outline.shortfall(run)}"


def named(run: Run) -> str:
    """The name of a run that tells it from others of its target."""
    return f"{run.target} {run.started}"
