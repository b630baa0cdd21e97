"""What generated checks send, derived from a seed: requests by Schemathesis, sequences of steps by Hypothesis.

    openapi.yaml ──amended──▶ Schemathesis (quick: plain Hypothesis) ──▶ generated_requests
                              state machine of Hypothesis            ──▶ generated_sequences

The same arguments give the same result in every process; nothing is sent from here. Both libraries are imported when
first needed, which is never if another process generates everything (`conformance.runner.ahead`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from conformance.budgets import Budget
from conformance.checks import generated_requests, generated_sequences, isolated_hypothesis
from conformance.checks.generated_requests import GeneratedRequest
from conformance.checks.model import Step

#: The name of a generator in `_GENERATORS`, and its arguments.
Call = tuple[str, tuple[Any, ...]]


class Source(Protocol):
    """What was generated elsewhere (`conformance.runner.ahead`), by the call that generates it."""

    def __getitem__(self, call: Call, /) -> Any:
        """The result of `call`. Raises KeyError where there is none."""


_generated: dict[Call, Any] = {}
_ahead: Source = {}


def expect(ahead: Source) -> None:
    """Take results from `ahead`, as far as it has them, instead of generating them here."""
    global _ahead
    _ahead = ahead


def generate(call: Call) -> Any:
    """The result of `call`, generated once in this process and the same in every other one."""
    if call not in _generated:
        try:
            _generated[call] = _ahead[call]
        except KeyError:
            name, arguments = call
            isolated_hypothesis.load()
            _generated[call] = _GENERATORS[name](*arguments)
    return _generated[call]


def derived_seed(*words: object) -> int:
    """A random 64-bit number that depends on these words alone."""
    return random.Random(":".join(map(str, words))).getrandbits(64)


def sequences(budget: Budget, seed: int) -> Sequence[Sequence[Step]]:
    """Sequences of steps, at most one for each walk of the `budget`."""
    return cast(Sequence[Sequence[Step]], generate(("sequences", (budget, seed))))


def requests(kind: str, budget: Budget, seed: int) -> Sequence[GeneratedRequest]:
    """Different requests of a `kind` in `generated_requests.KINDS`, the shortest first."""
    return cast(Sequence[GeneratedRequest], generate(("requests", (kind, budget, seed))))


_GENERATORS: dict[str, Callable[..., Any]] = {
    "sequences": generated_sequences.generate,
    "requests": generated_requests.generate,
}
