"""The report of one check on a target, which crosses from a worker to the run that collects it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from conformance import outcomes
from conformance.target import Shell
from conformance.transport.curl import WAIT, at_once, curl, in_turn, on_one_connection
from conformance.transport.evidence import Exchange
from conformance.verdict import Failure, Status

#: The name of the command's own process; workers have names of their own.
OWN_PROCESS = "main"
#: Why a check did not finish.
UNFINISHED = "not finished: the run was cut short"
CRASHED = "not finished: the worker that ran this check ended unexpectedly"
#: How many curl lines a failure has, unless they are steps: the first ones, and the last, to which the others may lead.
SPELLED = 6


@dataclass
class CheckReport:
    """The report of one check on a target, with its exchanges, whose numbers count within the check. The check ran in
    `process`, as number `place`."""

    check: str
    target: str
    status: Status
    process: str = OWN_PROCESS
    place: int = 0
    message: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    owners: list[str] = field(default_factory=list)
    certain: bool = False
    disturbed: bool = False  # see `outcomes.Disturbed`
    finished: bool = True
    exchanges: list[Exchange] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    observations: list[tuple[str, Any, list[int]]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def unfavourable(self) -> bool:
        """Whether anything in it speaks against the service, or leaves a requirement undecided."""
        undecided = any(exchange.undecided for exchange in self.exchanges)
        return undecided or self.disturbed or self.status in (Status.FAILED, Status.INCONCLUSIVE)

    def ended_with(self, error: BaseException, shell: Shell, clean: Callable[[str], str]) -> None:
        """Note that the check raised `error`. Its curl lines are for `shell`; `clean` removes secrets from a text."""
        if isinstance(error, outcomes.Failed):
            self.status, self.certain, self.message = Status.FAILED, error.certain, str(error)
            self.failure = self._failure(error, shell, clean)
        elif isinstance(error, outcomes.Excluded):
            self.status, self.message = Status.EXCLUDED, str(error)
            self.disturbed = isinstance(error, outcomes.Disturbed)
        elif isinstance(error, outcomes.Inconclusive):
            self.status, self.message = Status.INCONCLUSIVE, error.reason
            self.owners = list(error.owners)
        else:
            said = f"the suite itself failed here, which says nothing of the service: {type(error).__name__}: {error}"
            self.warnings.append(clean(f"check {self.check}: {said}; please report this"))
            if self.status is not Status.FAILED:  # as it may be where giving orders back goes wrong
                self.status, self.message = Status.INCONCLUSIVE, said
        self.message = clean(self.message)

    def _failure(self, error: outcomes.Failed, shell: Shell, clean: Callable[[str], str]) -> Failure:
        """What the check expected and received, with the exchange that shows it and curl lines that repeat it."""
        failure = Failure(clean(error.expected), clean(error.received))
        if not error.answers:
            return failure
        lines = [curl(answer.exchange, shell) for answer in error.answers]
        if error.kept:
            lines = [on_one_connection(lines)]
        elif error.at_once:
            lines = [at_once(lines)]
        else:
            lines = [*in_turn(lines[:-1]), lines[-1]]
        if len(lines) > SPELLED and not error.last:
            lines = [*lines[: SPELLED - 1], lines[-1]]
        if error.waited:
            lines.insert(-1, WAIT)
        shown = error.answers[-1 if error.last else 0].exchange
        return replace(
            failure,
            curl="\n".join(lines),
            # The checks of the model share a search: what one of them has met is no exchange of the others.
            exchange=shown.number if shown.check == self.check else None,
        )

    def cut_short(self, reason: str = UNFINISHED) -> None:
        """Note that the check did not finish: whatever it had found is not its result."""
        self.status, self.message, self.failure = Status.INCONCLUSIVE, reason, None
        self.owners, self.certain, self.finished = [], False, False

    @classmethod
    def crashed(cls, check: str, target: str, process: str) -> CheckReport:
        """The report of a check whose process was lost while it ran: nothing else is known."""
        lost = cls(check, target, Status.INCONCLUSIVE, process=process, place=sys.maxsize)
        lost.cut_short(CRASHED)
        lost.warnings = [f"check {check}: {CRASHED}"]
        return lost
