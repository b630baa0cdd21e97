"""The detection matrix: each fault, the requirement that it breaks, and the requirements that failed. Pure.

`Proofs` say in addition which checks have to fail on which faults. A requirement mostly has several checks: if one of
them were deleted or weakened, another would still catch the fault, and nobody would notice. `Stops` say on which faults
of other requirements a check must not pass, since a step that it uses goes wrong there. `Sent` says how much each check
sends, since one that tries less than before may still fail on every fault.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from conformance import __version__
from conformance.contract import catalogue
from conformance.reporting.pages import page
from conformance.transport.evidence import Exchange

#: Requirements that no server can break, so that no fault can test their checks, with what tests them instead.
NO_FAULT = {"BASE-2": "the scheme is the deployment's; the tests of the suite break it"}
#: Every other requirement has at least so many faults.
LEAST_FAULTS = 2

#: Check -> the faults of its requirement that it has to fail on, whatever the seed.
Proofs = Mapping[str, Sequence[str]]
#: Check -> faults of other requirements that it must not pass on, whatever the seed.
Stops = Mapping[str, Sequence[str]]
#: Faults that are put on record for each way in which a check stops.
STOPS = 2
#: Check -> the least that it sends to the correct server, whatever the seed: how many requests, and how many different
#: values in them (paths, parameters, header fields, credentials, bodies).
Sent = Mapping[str, Sequence[int]]
#: Ids, dates and ports are random, and differ by the seed.
_DRAWN = re.compile(r"[0-9]{4,}")
#: What differs between reasons that a check gives at one step: addresses, what is quoted, numbers but for statuses.
_VARIES = re.compile(r"\S+://\S+|'[^']*'|-?[0-9]{4,}|\(see [^)]*\)|\b[0-9]{1,2}\b")


@dataclass(frozen=True)
class Case:
    """A server to judge: a fault with the requirement that it breaks, or a variant without one, and the recommended
    requirements that the variant does not follow."""

    name: str
    requirement: str | None
    description: str
    leaves: frozenset[str] = frozenset()

    def matches(self, names: tuple[str, ...]) -> bool:
        """Whether one of `names` is its own name, its requirement, the family of that, or, for a variant,
        `variants`."""
        kinds = ("VARIANTS",) if self.requirement is None else (self.requirement, self.requirement.partition("-")[0])
        return any(name == self.name or name.upper() in kinds for name in names)


@dataclass(frozen=True)
class Judged:
    """What the suite said of a case: the requirements that failed or could not be decided; in `checks` the failed
    checks of the requirement that the fault breaks; and in `stopped` all other checks that failed or could not be
    decided, each with the reason."""

    case: Case
    failed: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    exit_status: int = 0
    seconds: float = 0.0
    requests: int = 0
    messages: dict[str, str] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    stopped: dict[str, str] = field(default_factory=dict)

    @property
    def further(self) -> tuple[str, ...]:
        """Required requirements that failed besides the one that the fault breaks."""
        rows = catalogue.load().requirements
        return tuple(id_ for id_ in self.failed if id_ != self.case.requirement and rows[id_].level == "required")

    @property
    def good(self) -> bool:
        """Whether the fault was caught; or the variant was decided, and failed only what it does not follow."""
        if self.case.requirement:
            return self.case.requirement in self.failed
        return self.case.leaves == set(self.failed) and self.exit_status == 0


@dataclass(frozen=True)
class Matrix:
    """The outcome of a selftest; `complete` if it judged every case, `checks` are all checks. `sent` is what they sent
    to the correct server, `due` what they are known to send. `proofs` and `stops` are those on record."""

    judged: list[Judged]
    seconds: float
    complete: bool = True
    proofs: Proofs = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    sent: Sent = field(default_factory=dict)
    due: Sent = field(default_factory=dict)
    stops: Stops = field(default_factory=dict)

    @cached_property
    def faults(self) -> list[Judged]:
        """The faults among what was judged."""
        return [judged for judged in self.judged if judged.case.requirement]

    @cached_property
    def variants(self) -> list[Judged]:
        """The correct variants among what was judged."""
        return [judged for judged in self.judged if not judged.case.requirement]

    @property
    def tally(self) -> tuple[str, str]:
        """How many faults were caught, and how many variants left alone, of how many."""
        caught, left_alone = (sum(judged.good for judged in found) for found in (self.faults, self.variants))
        return (
            f"{caught} of {len(self.faults)} faults caught",
            f"{left_alone} of {len(self.variants)} correct variants left alone",
        )

    @property
    def missed(self) -> list[Judged]:
        """Faults that were not caught, and variants that were not left alone."""
        return [judged for judged in self.judged if not judged.good]

    @property
    def uncovered(self) -> list[str]:
        """Requirements with fewer than LEAST_FAULTS faults, where all were judged."""
        counted = Counter(judged.case.requirement for judged in self.faults)
        rows = catalogue.load().requirements
        return [id_ for id_ in rows if self.complete and id_ not in NO_FAULT and counted[id_] < LEAST_FAULTS]

    @property
    def lost(self) -> list[str]:
        """What checks no longer see, in sentences: recorded faults on which they did not fail."""
        seen = {judged.case.name: judged.checks for judged in self.faults}
        return [
            f"{check} {'no longer fails' if check in self.checks else 'is gone, which failed'} on {fault}"
            for check, faults in self.proofs.items()
            for fault in faults
            if fault in seen and check not in seen[fault]
        ]

    @property
    def passing(self) -> list[str]:
        """Checks that pass on a fault which should have stopped them, in sentences."""
        seen = {judged.case.name: {*judged.stopped, *judged.checks} for judged in self.faults}
        return [
            f"{check} passes on {fault}, on which it did not"
            for check, faults in self.stops.items()
            for fault in faults
            if fault in seen and check not in seen[fault]
        ]

    @property
    def unproven(self) -> list[str]:
        """Checks that are known to fail on no fault, if all cases were judged."""
        shown = {check for check, faults in self.proofs.items() if faults}
        return [check for check in self.checks if self.complete and check not in shown]

    @property
    def less(self) -> list[str]:
        """Checks that send less than recorded, in sentences."""
        what = ("requests", "different values")
        return [
            f"{check} sends {sent} {each} to the correct server; on record: {due}"
            for check, dues in self.due.items()
            for each, sent, due in zip(what, self.sent.get(check, (0, 0)), dues, strict=True)
            if sent < due
        ]

    @property
    def further_per_fault(self) -> float:
        """Required requirements that failed beside the one that a fault breaks, on average."""
        return sum(len(judged.further) for judged in self.faults) / len(self.faults) if self.faults else 0.0

    @property
    def good(self) -> bool:
        """Whether everything is as it should be."""
        return not (self.missed or self.uncovered or self.lost or self.passing or self.unproven or self.less)


def complaint(judged: Judged) -> str:
    """What is wrong with a case, in a line or two."""
    case = judged.case
    if case.requirement:
        instead = ", ".join(judged.failed) or "nothing"
        said = judged.messages.get(case.requirement, "")
        return f"MISSED {case.name}: {case.requirement} did not fail, {instead} did. {said}"
    wrong = [id_ for id_ in (*judged.failed, *judged.inconclusive) if id_ not in case.leaves]
    reasons = [f"{id_}: {judged.messages.get(id_, '')}" for id_ in wrong[:3]]
    reasons += [f"{id_} did not fail" for id_ in sorted(case.leaves - set(judged.failed))]
    return f"WRONGED {case.name}: exit status {judged.exit_status}. {'; '.join(reasons)}"


def text(matrix: Matrix) -> str:
    """The matrix in short, for the console: the counts, and whatever is wrong."""
    lines = [
        f"{', '.join(matrix.tally)}, {matrix.further_per_fault:.2f} further required requirements failed per fault, "
        f"{matrix.seconds:.0f} s",
    ]
    beside = [judged for judged in matrix.faults if judged.further]
    if beside:
        lines.append("further failures:")
        lines += [f"  {j.case.name} ({j.case.requirement}): {', '.join(j.further)}" for j in beside]
    lines += [complaint(judged) for judged in matrix.missed]
    lines += [f"UNCOVERED {id_}: fewer than {LEAST_FAULTS} faults" for id_ in matrix.uncovered]
    lines += [f"LOST {sentence}" for sentence in matrix.lost]
    lines += [f"PASSING {sentence}" for sentence in matrix.passing]
    lines += [f"UNPROVEN {check}: no fault is on record that it fails on" for check in matrix.unproven]
    lines += [f"LESS {sentence}" for sentence in matrix.less]
    return "\n".join(lines)


def as_json(matrix: Matrix) -> str:
    """The matrix as JSON, for programs."""
    document = {
        "suite": __version__,
        "seconds": matrix.seconds,
        "faults": len(matrix.faults),
        "variants": len(matrix.variants),
        "missed": [judged.case.name for judged in matrix.missed],
        "uncovered": matrix.uncovered,
        "lost": matrix.lost,
        "passing": matrix.passing,
        "unproven": matrix.unproven,
        "less": matrix.less,
        "further_per_fault": round(matrix.further_per_fault, 3),
        "cases": [
            {
                "name": judged.case.name,
                "requirement": judged.case.requirement,
                "description": judged.case.description,
                "failed": list(judged.failed),
                "checks": list(judged.checks),
                "inconclusive": list(judged.inconclusive),
                "good": judged.good,
                "exit_status": judged.exit_status,
                "seconds": judged.seconds,
                "requests": judged.requests,
            }
            for judged in matrix.judged
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def markdown(matrix: Matrix) -> str:
    """The matrix as Markdown, for the documentation. Without times, so that it changes only when a result does."""
    lines = [
        "# Detection matrix",
        "",
        f"{'; '.join(matrix.tally)}; {matrix.further_per_fault:.2f} further required requirements failed per fault. "
        "Written by `store-orders-conformance selftest`.",
        "",
        "| fault | what it does | breaks | failed beside it |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {j.case.name} | {j.case.description} | {j.case.requirement}{'' if j.good else ' **(missed)**'} "
        f"| {', '.join(id_ for id_ in j.failed if id_ != j.case.requirement)} |"
        for j in matrix.faults
    ]
    lines += ["", "| correct variant | what it does | left alone |", "|---|---|---|"]
    lines += [f"| {j.case.name} | {j.case.description} | {'yes' if j.good else '**no**'} |" for j in matrix.variants]
    return "\n".join(lines) + "\n"


def as_html(matrix: Matrix) -> str:
    """The matrix as a page: cases down, requirements across, a mark where a requirement failed."""
    rows = catalogue.load().requirements.values()
    seen = [row for row in rows if any(row.id in (j.case.requirement, *j.failed) for j in matrix.judged)]
    return page("detection.html.jinja", summary=text(matrix).splitlines()[0], rows=seen, cases=matrix.judged)


def proofs_of(judged: Iterable[Judged]) -> str:
    """The proofs that one selftest found, as JSON: check -> the faults of its requirement that it failed on."""
    found: dict[str, list[str]] = {}
    for each in judged:
        for check in each.checks:
            found.setdefault(check, []).append(each.case.name)
    return _as_record(found)


def stops_of(judged: Iterable[Judged]) -> str:
    """The stops that one selftest found, as JSON: check -> faults of other requirements that it did not pass on, the
    first few for each reason that it gave."""
    found: dict[str, list[str]] = {}
    given: Counter[tuple[str, str]] = Counter()
    for each in judged:
        for check, reason in each.stopped.items():
            kind = check, _VARIES.sub("", reason)
            given[kind] += 1
            if given[kind] <= STOPS:
                found.setdefault(check, []).append(each.case.name)
    return _as_record(found)


def _as_record(faults: Mapping[str, Iterable[str]]) -> str:
    """The faults found for each check as JSON, all sorted."""
    return json.dumps({check: sorted(faults[check]) for check in sorted(faults)}, indent=1) + "\n"


def sent_by(exchanges: Iterable[Exchange]) -> dict[str, list[int]]:
    """What each check sent in these exchanges, as `Sent` has it."""
    requests: Counter[str] = Counter()
    things: dict[str, set[str]] = {}
    for exchange in exchanges:
        requests[exchange.check] += 1
        things.setdefault(exchange.check, set()).update(_DRAWN.sub("0", thing) for thing in _things(exchange))
    return {check: [requests[check], len(things[check])] for check in sorted(requests)}


def sent_of(sent: Sent) -> str:
    """`sent` as JSON, with a line for each check."""
    lines = ",\n".join(f" {json.dumps(check)}: {json.dumps(counts)}" for check, counts in sorted(sent.items()))
    return f"{{\n{lines}\n}}\n"


def _things(exchange: Exchange) -> Iterator[str]:
    path, _, query = exchange.url.partition("?")
    yield f"{exchange.method} {path}"
    yield from query.split("&")
    yield from (f"{name}: {value}" for name, value in exchange.request_headers)
    yield exchange.credential
    yield f"body {exchange.request_body}"


WRITERS: dict[str, Callable[[Matrix], str]] = {
    "matrix.json": as_json,
    "matrix.md": markdown,
    "matrix.html": as_html,
    "proofs.json": lambda matrix: proofs_of(matrix.judged),
    "stops.json": lambda matrix: stops_of(matrix.faults),
    "sent.json": lambda matrix: sent_of(matrix.sent),
}
