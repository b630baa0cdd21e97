"""What was taken from the provider, and giving it back.

Each check owns its orders: it takes them here and they are returned when it ends, whatever happened to it. What the
provider does not take back is kept in a list for the reader; it is never held against the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.states.provider import CannotDo, Provider, ProviderError, State, setup, teardown
from conformance.transport.guard import Guard


@dataclass(frozen=True)
class Allotment:
    """The static ids set aside for one check."""

    pending: tuple[int, ...] = ()
    shipped: tuple[int, ...] = ()


class Leases:
    """The orders that one check holds. With static lists there is no provider, and the allotment is all there is."""

    def __init__(self, provider: Provider | None, guard: Guard, allotment: Allotment | None = None) -> None:
        self._provider = provider
        self._guard = guard
        self._static = {
            State.PENDING: list(allotment.pending if allotment else ()),
            State.SHIPPED: list(allotment.shipped if allotment else ()),
        }
        self._held: list[tuple[State, list[int]]] = []

    def take(self, state: State, count: int) -> list[int]:
        """`count` orders in `state`. Raises ProviderError."""
        if count == 0:
            return []
        if self._provider is None:
            ids, self._static[state] = self._static[state][:count], self._static[state][count:]
            if len(ids) < count:
                raise ProviderError(f"the static list of {state} has too few ids left for this check")
            self._guard.hand_out(ids, _word(state))
            return ids
        return self._set_up(self._provider, state, {"count": count})

    def place(self, state: State, ids: list[int]) -> list[int]:
        """Orders in `state` with exactly these ids. Raises ProviderError, and CannotDo where ids cannot be chosen."""
        if self._provider is None:
            raise CannotDo("static lists have no orders with chosen ids")
        return self._set_up(self._provider, state, {"ids": ids})

    def empty_store(self) -> None:
        """Have the provider remove all orders. Raises ProviderError and CannotDo."""
        if self._provider is None:
            raise CannotDo("static lists cannot empty the store")
        setup(self._provider, State.EMPTY, {})

    def give_back(self) -> list[str]:
        """Return everything that is held; a sentence for each set of orders that could not be returned."""
        left_behind = []
        for state, ids in self._held:
            try:
                if self._provider is not None:
                    teardown(self._provider, state, ids)
            except ProviderError as error:
                left_behind.append(
                    f"orders left behind ({state}): {', '.join(map(str, ids[:20]))}"
                    f"{f' and {len(ids) - 20} more' if len(ids) > 20 else ''}: {error}"
                )
            self._guard.take_back(ids)
        self._held.clear()
        return left_behind

    def _set_up(self, provider: Provider, state: State, params: dict[str, Any]) -> list[int]:
        try:
            ids = setup(provider, state, params)
        except ProviderError as error:
            if error.placed:  # not what was asked for, so nothing is done with them, but they are there
                self._held.append((state, list(error.placed)))
            raise
        self._held.append((state, ids))
        self._guard.hand_out(ids, _word(state))
        return ids


def _word(state: State) -> str:
    return state.value.removesuffix(" orders")
