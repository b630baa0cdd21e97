"""CANCEL, AUTH, LIST: what only shows after several requests (specification, sections 3 to 5).

One search for a walk that goes wrong (`search`) serves all checks of a run: the first of them makes it, and its
requests stand with that check. The check whose requirement is to blame then takes the same steps once more, so that it
has evidence of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from conformance import outcomes
from conformance.api import Api, Orders
from conformance.budgets import Budget
from conformance.check import Check, requirement
from conformance.checks import model
from conformance.checks.search import REPLAYS, Search, seed_for
from conformance.checks.walks import Wrong
from conformance.target import Mode, Target
from conformance.transport.wire import Wire

#: The orders that a check is sure to need: those of one walk with static lists. Elsewhere each walk takes its own.
PENDING, SHIPPED = 3, 1
#: What shares a search is for one process.
pytestmark = pytest.mark.xdist_group("model")


@dataclass
class Shared:
    """What the checks of a run share: the search, once it is made, and which of them has made it."""

    search: Search | None = None
    maker: str = ""


@pytest.fixture(scope="session")
def shared(session: object) -> Shared:
    """The search of the run against one target, not yet made: `session` stands for the target."""
    return Shared()


@dataclass
class Walks:
    """What a check works with: the search of the run, and what it takes to make it or to play a sequence of it."""

    shared: Shared
    api: Api
    orders: Orders
    target: Target
    budget: Budget
    seed: int
    check: Check
    shown_in: Callable[[str], None]
    in_step: bool = False
    wire: Wire | None = None

    def decide(self) -> None:
        """Demand that no walk of the search broke the requirement of the check."""
        owner = self.check.requirement
        own = self.shared.search is None
        search = self.shared.search or self._search()
        if own:
            self.shared.search, self.shared.maker = search, self.check.id
            search.make()
        else:
            self.shown_in(self.shared.maker)
        wrong = search.wrong
        if wrong is not None and wrong.owner == owner:
            self._fail(wrong if own else self._replayed(wrong))
        if wrong is None and search.ended is not None:
            raise search.ended
        if owner not in search.judged:
            if wrong is None:
                raise outcomes.Excluded("the generated sequences came to nothing that tests this")
            ended = f"ended with an answer that speaks against {wrong.owner}, before anything that tests this"
            raise outcomes.Excluded(f"the generated sequences {ended}")

    def _search(self, limit: int | None = None) -> Search:
        if self.orders.by_hand:  # there are no more than the check has
            return Search(
                self.api,
                self.orders,
                replace(self.budget, shortening=0),
                limit=1,
                pending=model.PENDING_NAMES[:PENDING],
                shipped=model.SHIPPED_NAMES[:SHIPPED],
            )
        return Search(
            self.api,
            self.orders,
            self.budget,
            limit=limit,
            seed=self.seed,
            in_step=self.in_step,
            wire=self.wire,
        )

    def _replayed(self, wrong: Wrong) -> Wrong:
        """The same fault, seen by this check; where it does not show again, as it was seen first."""
        for _ in range(REPLAYS):
            search = self._search(limit=1)
            search.play(wrong.steps, kept=wrong.kept)
            if search.wrong is not None and search.wrong.owner == wrong.owner:
                return search.wrong
        return wrong

    def _fail(self, wrong: Wrong) -> None:
        steps = [
            f"  {number}. {sent.label}: {sent.answer.exchange.received}"
            + ("   <- here" if sent.answer is wrong.shown_by[-1] else "")
            for number, sent in enumerate(wrong.trail, 1)
        ]
        where = ", all on one connection" if wrong.kept else ""
        received = "\n".join([f"{wrong.received}, in these steps on orders placed for them{where}:", *steps])
        raise outcomes.Failed(wrong.expected, received, *wrong.shown_by, last=True, kept=wrong.kept)


@pytest.fixture
def walks(
    shared: Shared,
    api: Api,
    wire: Wire,
    orders: Orders,
    target: Target,
    budget: Budget,
    seed: int,
    crowded: bool,
    own_check: Check,
    shown_in: Callable[[str], None],
) -> Walks:
    """The walks of the run; what Hypothesis makes up derives from the seed and the target alone."""
    own_seed = seed_for(target.name, seed)
    return Walks(shared, api, orders, target, budget, own_seed, own_check, shown_in, crowded, wire)


# --- the checks: one for each requirement that a walk can put the blame on


@requirement("AUTH-1", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_keep_the_key_valid(walks: Walks) -> None:
    """Sequences of listing and cancelling, made up and shortened: none ends with 401 to the valid key."""
    walks.decide()


@requirement("AUTH-2", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_let_nobody_in(walks: Walks) -> None:
    """Sequences of cancels without the key, of orders in every state: 401 to each."""
    walks.decide()


@requirement("AUTH-5", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_with_refused_keys_leave_orders(walks: Walks) -> None:
    """Sequences with cancels without the key between other steps: no order is another afterwards."""
    walks.decide()


@requirement("AUTH-6", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_mix_credentials(walks: Walks) -> None:
    """Sequences of requests with and without the key in any order: each is judged by its own credentials."""
    walks.decide()


@requirement("LIST-3", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_lose_no_order_from_the_listing(walks: Walks) -> None:
    """Sequences of listing and cancelling: an order that can still be cancelled, or is still refused, is in every
    listing."""
    walks.decide()


@requirement("LIST-9", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_of_listings_change_nothing(walks: Walks) -> None:
    """Sequences in which an order changes: never is listing alone enough for that."""
    walks.decide()


@requirement("CANCEL-1", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_cancel_pending_orders(walks: Walks) -> None:
    """Sequences of steps on other orders, and then a cancel of a pending one: 204, and not only when asked again."""
    walks.decide()


@requirement("CANCEL-3", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_refuse_shipped_orders(walks: Walks) -> None:
    """Sequences of steps on other orders, and then a cancel of a shipped one: 409, and not only when asked again."""
    walks.decide()


@requirement("CANCEL-4", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_leave_refused_orders(walks: Walks) -> None:
    """Sequences in which a shipped order is refused, with other steps before it is looked at or refused again: it stays
    as it was."""
    walks.decide()


@requirement("CANCEL-5", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_find_no_absent_order(walks: Walks) -> None:
    """Sequences of cancels of orders that exist and of one that does not: 404 to that one every time."""
    walks.decide()


@requirement("CANCEL-6", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_cancel_nothing_twice(walks: Walks) -> None:
    """Sequences with any steps between two cancels of one order: the second never succeeds."""
    walks.decide()


@requirement("CANCEL-7", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_with_cancels_at_once(walks: Walks) -> None:
    """Sequences in which two cancels of one pending order are sent at once: one of them is answered 204."""
    walks.decide()


@requirement("CANCEL-8", mode=Mode.FULL, pending=PENDING, shipped=SHIPPED)
def test_sequences_touch_no_other_order(walks: Walks) -> None:
    """Sequences of cancels, refused ones among them: no order but the one named is changed, however many others were
    cancelled before."""
    walks.decide()
