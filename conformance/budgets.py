"""How hard generated checks search: the budgets that a run can choose from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How much is generated and sent. Sequences of steps are played as walks against the model of the service."""

    requests: int  # different ones of each kind
    schemathesis: bool  # whether it makes the requests up: loading it takes a second
    walks: int
    steps: int  # of each walk, at most
    shortening: int  # further walks, once one has gone wrong


BUDGETS = {
    "quick": Budget(requests=6, schemathesis=False, walks=3, steps=8, shortening=40),
    "standard": Budget(requests=10, schemathesis=True, walks=12, steps=14, shortening=80),
    "thorough": Budget(requests=150, schemathesis=True, walks=120, steps=40, shortening=200),
}
