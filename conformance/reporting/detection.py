"""The detection matrix: each fault, the requirement that it breaks, and the requirements that failed. Pure.

`Proofs` say in addition which checks have to fail on which faults. A requirement mostly has several checks: if one of
them were deleted or weakened, another would still catch the fault, and nobody would notice. `Stops` say on which faults
of other requirements a check must not pass, since a step that it uses goes wrong there. `Sent` says how much each check
sends, since one that tries less than before may still fail on every fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from conformance.contract import catalogue

#: Requirements that no server can break, so that no fault can test their checks, with what tests them instead.
NO_FAULT = {"BASE-2": "the scheme is the deployment's; the tests of the suite break it"}
#: Every other requirement has at least so many faults.
LEAST_FAULTS = 2

#: Check -> the faults of its requirement that it has to fail on, whatever the seed.
Proofs = Mapping[str, Sequence[str]]
#: Check -> faults of other requirements that it must not pass on, whatever the seed.
Stops = Mapping[str, Sequence[str]]
#: Check -> the least that it sends to the correct server, whatever the seed: how many requests, and how many different
#: values in them (paths, parameters, header fields, credentials, bodies).
Sent = Mapping[str, Sequence[int]]


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
