"""Orders borrowed from the state provider, and their return.

Each check has its own orders: it takes them here, and they are returned when it ends, however it ends. Orders that the
provider does not take back are reported in a warning, and never count against the service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.contract.transitions import State
from conformance.signals import undisturbed
from conformance.states.provider import CannotDo, Provider, ProviderAbsent, ProviderError, empty, setup, teardown
from conformance.transport.guard import Guard

#: Every provider has to place so many pending orders; it may refuse to place more.
FEW = 100
#: How many of the orders that were left behind a sentence names.
NAMED = 20
#: The suffix of a ledger's name, and what precedes it in the name of a ledger of orders that outlast their check.
LEDGER, KEPT = ".held", ".kept"


class Leases:
    """The orders that one check holds. With static lists there is no provider, and the check has a share of the
    lists."""

    def __init__(
        self,
        provider: Provider | None,
        guard: Guard,
        share: tuple[Sequence[int], Sequence[int]] = ((), ()),
        ledger: Path | None = None,
    ) -> None:
        """`share` are the pending and the shipped static ids set aside for the check. `ledger` is a file that records
        what is held, so that `return_left` can return it if this process dies."""
        self._provider = provider
        self._ledger = ledger
        self._guard = guard
        self._static = dict(zip((State.PENDING, State.SHIPPED), map(list, share), strict=True))
        self._held: dict[State, list[int]] = {}

    @property
    def by_hand(self) -> bool:
        """Whether the orders come from static lists."""
        return self._provider is None

    @property
    def source(self) -> str:
        """Where an order comes from, in words that follow its id."""
        if self.by_hand:
            return "of the static lists, whose ids serve one run each,"
        return "handed out by the state provider,"

    @property
    def has_shipped(self) -> str:
        """Why a shipped order must be refused; for a hand-written list, also that the list says so."""
        by_hand = ", by the list in the configuration (is it right?)" if self.by_hand else ""
        return f"the order has already shipped{by_hand}"

    def take(self, state: State, count: int) -> list[int]:
        """`count` orders in `state`. Raises CannotDo if the provider says that it has no shipped ones, or not so many;
        and ProviderError if it fails, or says so of a few pending ones, which every provider must have."""
        if count == 0:
            return []
        if self._provider is None:
            ids, self._static[state] = self._static[state][:count], self._static[state][count:]
            if len(ids) < count:
                raise ProviderError(f"the static list of {state} orders has too few ids left for this check")
            self._guard.hand_out(ids, state)
            return ids
        try:
            return self._set_up(self._provider, state, {"count": count})
        except CannotDo as refusal:
            if state is State.PENDING and count <= FEW:
                raise ProviderError(f"{refusal}; a state provider has to place pending orders") from None
            if count > FEW:
                raise CannotDo(
                    f"{refusal}; with a smaller bulk_orders in the configuration it is asked for fewer"
                ) from None
            raise

    def place(self, state: State, ids: list[int]) -> list[int]:
        """Orders in `state` with exactly these ids. Raises ProviderError, and CannotDo if ids cannot be chosen."""
        if self._provider is None:
            raise CannotDo("static lists have no orders with chosen ids")
        return self._set_up(self._provider, state, {"ids": ids})

    def empty_store(self) -> None:
        """Have the provider remove all orders. Raises ProviderError and CannotDo."""
        if self._provider is None:
            raise CannotDo("static lists cannot empty the store")
        empty(self._provider)

    def give_back(self, warnings: list[str]) -> None:
        """Return everything that is held. For each set of orders that could not be returned, a sentence is added to
        `warnings`; a return value would be lost if an interruption arrives meanwhile, which is raised at the end."""
        with undisturbed():
            for state, ids in self._held.items():
                if self._provider is not None:
                    warnings += _returned(self._provider, state, ids)
                self._guard.take_back(ids)
            self._held.clear()
            self._write_down()

    def _set_up(self, provider: Provider, state: State, params: dict[str, Any]) -> list[int]:
        with undisturbed():  # what was placed meanwhile would be nobody's
            try:
                ids = setup(provider, state, params)
            except ProviderError as error:
                # Nothing is done with what was not asked for, or not confirmed, but it may be there.
                if placed := list(error.placed) or self._perhaps(params.get("ids", []), error):
                    self._hold(state, placed)
                raise
            self._hold(state, ids)
        self._guard.hand_out(ids, state)
        return ids

    def _perhaps(self, ids: list[int], error: ProviderError) -> list[int]:
        """Those of the orders with chosen `ids` that a provider may have placed before it failed. An id that a listing
        has shown belongs to somebody else's order; without a listing, each might."""
        if isinstance(error, ProviderAbsent) or not self._guard.listing_read:
            return []
        return [order for order in ids if order not in self._guard.listed]

    def _hold(self, state: State, ids: list[int]) -> None:
        self._held.setdefault(state, []).extend(ids)
        self._write_down()

    def _write_down(self) -> None:
        if self._ledger is None:
            return
        if self._held:
            draft = self._ledger.with_suffix(".draft")  # whole at any moment
            draft.write_text(json.dumps(self._held), encoding="ascii")
            draft.replace(self._ledger)
        else:
            self._ledger.unlink(missing_ok=True)


def return_left(provider: Provider, folder: Path, target: str) -> list[str]:
    """Return the orders of `target` that processes held when they died, according to their ledgers in `folder`. Gives a
    sentence for each set that could not be returned, as `Leases.give_back` does."""
    left_behind = []
    # Not those of a target called TARGET.eu.
    own = re.compile(rf"{re.escape(target)}\.[0-9]+({re.escape(KEPT)})?{re.escape(LEDGER)}")
    for ledger in sorted(path for path in folder.iterdir() if own.fullmatch(path.name)):
        for state, ids in json.loads(ledger.read_text(encoding="ascii")).items():
            left_behind += _returned(provider, State(state), ids)
    return left_behind


def _returned(provider: Provider, state: State, ids: list[int]) -> list[str]:
    """Return orders; gives a sentence if that fails."""
    try:
        teardown(provider, state, ids)
    except ProviderError as error:
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        return [f"orders left behind ({state} orders): {', '.join(map(str, ids[:NAMED]))}{more}: {error}"]
    return []
