"""What generated checks send, made up from a seed: requests by Schemathesis, sequences of steps by Hypothesis.

    openapi.yaml ──amended──▶ Schemathesis (quick: plain Hypothesis) ──▶ generated_requests
                              state machine of Hypothesis            ──▶ generated_sequences

The same arguments give the same, in every process; nothing is sent from here. Both libraries are imported when first
needed, which is never where another process makes everything up (`conformance.ahead`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from conformance.budgets import Budget
from conformance.checks import generated_requests, generated_sequences, secluded
from conformance.checks.generated_requests import Made
from conformance.checks.model import Step

#: What is made up, by its name in `_MAKERS`, and what whoever makes it up is given.
Call = tuple[str, tuple[Any, ...]]


class Source(Protocol):
    """Where things are made up ahead (`conformance.ahead`)."""

    def __getitem__(self, call: Call, /) -> Any:
        """What `call` makes up. Raises KeyError where it is not made up there."""


_made: dict[Call, Any] = {}
_ahead: Source = {}


def expect(ahead: Source) -> None:
    """Take from `ahead` what it makes up, instead of making it up here."""
    global _ahead
    _ahead = ahead


def make(call: Call) -> Any:
    """What `call` makes up; the same for every service that is judged by this process, and in every other process."""
    if call not in _made:
        try:
            _made[call] = _ahead[call]
        except KeyError:
            name, arguments = call
            secluded.load()
            _made[call] = _MAKERS[name](*arguments)
    return _made[call]


def derived_seed(*words: object) -> int:
    """A random number of 64 bits that derives from these words alone."""
    return random.Random(":".join(map(str, words))).getrandbits(64)


def sequences(budget: Budget, seed: int) -> Sequence[Sequence[Step]]:
    """Sequences of steps, one for each walk of the `budget` at most."""
    return cast(Sequence[Sequence[Step]], make(("sequences", (budget, seed))))


def requests(kind: str, budget: Budget, seed: int) -> Sequence[Made]:
    """Different requests of a `kind` in `generated_requests.KINDS`, the shortest first."""
    return cast(Sequence[Made], make(("requests", (kind, budget, seed))))


_MAKERS: dict[str, Callable[..., Any]] = {
    "sequences": generated_sequences.made,
    "requests": generated_requests.made,
}
