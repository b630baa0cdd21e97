"""The states of an order, and how a cancel with the key is answered in each (sections 3 and 4.2).

state        cancelled with the key     next state     owner of another answer
pending      204                        cancelled      CANCEL-1
shipped      409                        shipped        CANCEL-3
cancelled    4xx                        cancelled      CANCEL-6
absent       404                        absent         CANCEL-5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The state of an order, as far as cancelling is concerned."""

    PENDING = "pending"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"
    ABSENT = "absent"


@dataclass(frozen=True)
class Transition:
    """How the cancel of an order in some state is answered, the state after it, and the requirement that says so."""

    statuses: frozenset[int]
    expected: str  # the statuses, in words
    after: State
    owner: str


CANCELLING: Mapping[State, Transition] = {
    State.PENDING: Transition(frozenset({204}), "204", State.CANCELLED, "CANCEL-1"),
    State.SHIPPED: Transition(frozenset({409}), "409", State.SHIPPED, "CANCEL-3"),
    State.CANCELLED: Transition(frozenset(range(400, 500)), "no success, but a 4xx", State.CANCELLED, "CANCEL-6"),
    State.ABSENT: Transition(frozenset({404}), "404", State.ABSENT, "CANCEL-5"),
}
#: The states in which an order is in the listing.
LISTED = frozenset({State.PENDING, State.SHIPPED})
