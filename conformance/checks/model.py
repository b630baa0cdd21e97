"""Sections 3 to 5 of the specification as a model: how a step is answered, what follows from it, and who is to blame.

The table of `contract.transitions` says how a cancel with the key is answered. Without the key the answer is 401, and
every state stays. A listing contains every pending and every shipped order, each as it was, and changes nothing. Of two
simultaneous cancels of one pending order, one gets the 204.

If an order is not in the state that the model expects, something changed it: `causes` finds the requirement in what was
done before. That only makes sense for a sequence from which nothing can be left out, so sequences are shortened first.
Pure: steps and statuses in, requirement ids out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.contract.transitions import CANCELLING, LISTED, State


class Kind(StrEnum):
    """What can be done in one step."""

    LIST = "list"
    CANCEL = "cancel"
    KEYLESS = "cancel without the key"
    AT_ONCE = "cancel at once"


@dataclass(frozen=True)
class Step:
    """One step, with the names of its orders: none for LIST, two for AT_ONCE."""

    kind: Kind
    orders: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case Kind.LIST:
                return "list"
            case Kind.CANCEL:
                return f"cancel {self.orders[0]}"
            case Kind.KEYLESS:
                return f"cancel {self.orders[0]} without the key"
            case Kind.AT_ONCE:
                return f"cancel {self.orders[0]} and {self.orders[1]} at once"


PENDING_NAMES = ("A", "B", "C", "D")
SHIPPED_NAMES = ("S", "T")
ABSENT_NAME = "Z"
NAMES = (*PENDING_NAMES, *SHIPPED_NAMES, ABSENT_NAME)


def causes(before: Sequence[Step], order: str, state: State) -> tuple[str, ...]:
    """The requirements that may be broken if an order is not in `state`, although none of the steps `before` changes
    that; the one to blame comes first. If both the order and others were cancelled, that is CANCEL-8, not CANCEL-4:
    otherwise the sequence would be shorter, without the cancels of the others."""
    keyed = [step for step in before if step.kind in (Kind.CANCEL, Kind.AT_ONCE)]
    keyless = [step for step in before if step.kind is Kind.KEYLESS]
    own = [step for step in keyed if order in step.orders]
    if state not in LISTED:
        return (CANCELLING[state].owner,)
    if any(order in step.orders for step in keyless):
        return ("AUTH-5",)
    if own and len(own) < len(keyed):
        return ("CANCEL-8", "CANCEL-4")
    if keyed:
        return ("CANCEL-4",) if own else ("CANCEL-8",)
    if keyless:
        return ("AUTH-5",)
    return ("LIST-9",) if before else (CANCELLING[state].owner,)


def refusal_of_the_key(before: Collection[Kind]) -> str:
    """The requirement that a 401 to the valid key breaks, after steps of these kinds."""
    return "AUTH-6" if Kind.KEYLESS in before else "AUTH-1"


def _steps(text: str) -> tuple[Step, ...]:
    kinds = {"list": Kind.LIST, "cancel": Kind.CANCEL, "keyless": Kind.KEYLESS, "at-once": Kind.AT_ONCE}
    words = [line.split() for line in text.split(", ")]
    return tuple(Step(kinds[kind], tuple(orders)) for kind, *orders in words)


#: Each search begins with these. The first one touches every requirement that has a check here; the second one asks
#: again and again. They are no longer than generated ones, since walks in step take as many rounds as the longest.
TOURS = (
    _steps(
        "list, cancel B, keyless C, keyless T, cancel S, cancel Z, cancel C, cancel B, list, cancel S, at-once A A, "
        "keyless Z, at-once D T, cancel Z"
    ),
    _steps(
        "cancel Z, cancel C, keyless C, cancel S, cancel C, cancel B, list, cancel S, cancel B, cancel C, list, "
        "cancel Z, cancel S, cancel B"
    ),
)
#: The steps of one more tour, whose requests all go over one kept-alive connection. It begins with a listing before its
#: orders are placed. Requests without the key follow right after a 409 and a 204, which many a service answers by other
#: ways than the rest: what it knows of who asked may outlive them.
TOUR_OF_ONE_CONNECTION = _steps(
    "list, cancel B, cancel B, cancel S, keyless C, cancel Z, cancel C, keyless T, list, cancel S, cancel D, cancel T, "
    "cancel C, list"
)


def shortened(steps: Sequence[Step], still_wrong: Callable[[Sequence[Step]], Sequence[Step] | None]) -> Sequence[Step]:
    """A shorter sequence that is `still_wrong`: halves are left out, then smaller parts, then single steps are
    simplified.

    `still_wrong` plays a sequence and returns the steps up to the one that went wrong, or None.
    """
    size = max(1, len(steps) // 2)
    while True:
        candidates = [*_without(steps, size), *(_simpler(steps) if size == 1 else ())]
        found = next((found for candidate in candidates if (found := still_wrong(candidate)) is not None), None)
        if found is not None:
            steps = found
        elif size > 1:
            size //= 2
        else:
            return steps


def _without(steps: Sequence[Step], size: int) -> Iterator[Sequence[Step]]:
    # The last step is the one that showed it.
    for start in range(0, len(steps) - 1, size):
        yield [*steps[:start], *steps[min(start + size, len(steps) - 1) :]]


def _simpler(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    for place, step in enumerate(steps):
        if step.kind is Kind.AT_ONCE:
            for name in dict.fromkeys(step.orders):
                yield [*steps[:place], Step(Kind.CANCEL, (name,)), *steps[place + 1 :]]
