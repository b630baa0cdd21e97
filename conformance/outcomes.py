"""How a check ends that does not pass: one of these exceptions.

- `Failed`: what the check is about went wrong. It says what was expected and received, and shows the exchange.
- `Inconclusive`: a step that the check only uses went wrong, or no answer came. It names the requirement that owns
  the step, so that readers can tell the cause from its consequences.
- `Excluded`: this cannot be decided here. `Disturbed`: not while other checks run.
"""

from __future__ import annotations

from _pytest.outcomes import Skipped  # what `pytest.skip.Exception` is, in a form that can be subclassed and typed

from conformance.text import either
from conformance.transport.answer import Answer


class Failed(AssertionError):
    """The service breaks the requirement: what was expected, what was received, and the answers that show it.

    A `certain` failure cannot be the consequence of another fault. The first answer shows the failure; the `last` one
    does if the answers belong to steps that have to be taken in order. `kept` says that the steps went over one
    connection, `at_once` that all requests were sent at the same time, `waited` that some time passed before the last
    step.
    """

    def __init__(
        self,
        expected: str,
        received: str,
        *answers: Answer,
        certain: bool = False,
        last: bool = False,
        kept: bool = False,
        at_once: bool = False,
    ) -> None:
        super().__init__(f"expected {expected}; received {received}")
        self.certain = certain
        self.last = last
        self.kept = kept
        self.at_once = at_once
        self.waited = False
        self.expected = expected
        self.received = received
        self.answers = answers


class Inconclusive(Skipped):
    """This should have been decided, and could not be. `owners` are the requirements of which one owns the step that
    went wrong."""

    def __init__(self, reason: str, *owners: str) -> None:
        super().__init__(f"{reason} (see {either(owners)})" if owners else reason)
        self.reason = reason
        self.owners = owners


class Excluded(Skipped):
    """This cannot be decided here; the message says why."""


class Disturbed(Excluded):
    """What was `seen` speaks against the service, unless other checks caused it that ran at the same time. The command
    runs the check again while no other does (`side_by_side`)."""

    def __init__(self, seen: str) -> None:
        super().__init__(f"{seen}, while other checks ran: -n 1 tells whether they caused it")
