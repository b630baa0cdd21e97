"""Sequences of steps against the model of the service, made up by a state machine of Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from conformance.budgets import Budget
from conformance.checks import model
from conformance.checks.model import Kind, Step
from conformance.checks.secluded import alone, profile


def made(budget: Budget, seed: int) -> Sequence[Sequence[Step]]:
    """Sequences for the walks of the `budget`, the same for the same seed. What to do next follows from no answer."""
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    found: list[list[Step]] = []
    with alone():
        # A partial: of a class Hypothesis would read the source first, and parse this whole module for it.
        machine: Any = _machine(found)
        seeded: Any = hypothesis.seed(seed)
        settings = profile(budget.walks, stateful_step_count=budget.steps, report_multiple_bugs=False)
        run_state_machine_as_test(seeded(partial(machine)), settings=settings)
    return found[: budget.walks]


def _machine(found: list[list[Step]]) -> type[Any]:
    """The state machine that adds a sequence to `found` at each of its runs."""
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

    anyone = st.sampled_from(model.NAMES)

    class Machine(RuleBasedStateMachine):
        """Notes down steps."""

        def __init__(self) -> None:
            super().__init__()
            self.steps: list[Step] = []
            found.append(self.steps)

        def take(self, kind: Kind, *names: str) -> None:
            self.steps.append(Step(kind, names))

        @initialize(looked=st.booleans())
        def look(self, looked: bool) -> None:
            if looked:
                self.take(Kind.LIST)

        @rule(name=st.sampled_from(model.PENDING_NAMES))
        def cancel_pending(self, name: str) -> None:
            self.take(Kind.CANCEL, name)

        @rule(name=anyone)
        def cancel(self, name: str) -> None:
            self.take(Kind.CANCEL, name)

        @rule(name=anyone)
        def cancel_without_the_key(self, name: str) -> None:
            self.take(Kind.KEYLESS, name)

        @rule(one=anyone, other=anyone)
        def cancel_together(self, one: str, other: str) -> None:
            self.take(Kind.AT_ONCE, one, other)

        @rule()
        def list_orders(self) -> None:
            self.take(Kind.LIST)

    return Machine
