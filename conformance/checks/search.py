"""The search for a walk that goes wrong.

The shortest sequence that shows the fault tells which requirement is to blame (`model`).

    tours, then what Hypothesis generates ──▶ shortened ──▶ the requirement to blame

One tour goes over a single connection, as with clients that have a pool: what a service keeps with a connection (a
transaction, what it has read, who was there) shows only there.

If checks run side by side, since the service is far away, so do walks, in step: the first steps of all are sent
together, then the second ones. If one goes wrong, another may be the cause, so all are repeated one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest

from conformance import outcomes
from conformance.api import Api, OneConnection, Orders, Severed
from conformance.budgets import Budget
from conformance.checks import generation, model
from conformance.checks.model import Kind, Step
from conformance.checks.walks import Sent, Walk, Wrong
from conformance.transport.endpoint import ServiceGone
from conformance.transport.guard import Refused
from conformance.transport.wire import Wire

#: How the ids of the checks that share a search begin.
CHECKS = "model."
#: What stops a search.
ENDS = (outcomes.Inconclusive, outcomes.Excluded, ServiceGone, Refused)
#: How often a sequence is played again before the fault counts as seen only once.
REPLAYS = 3
#: How many walks a search makes besides those of its budget: the tours, and the one over a single connection.
FIXED_WALKS = len(model.TOURS) + 1


def seed_for(target: str, seed: int) -> int:
    """The seed of the sequences that are generated for a target in a run with this `seed`."""
    return generation.derived_seed(seed, target, "model")


def orders_for(budget: Budget) -> tuple[int, int]:
    """How many pending and how many shipped orders a search takes from a provider, if nothing goes wrong."""
    walks = FIXED_WALKS + budget.walks
    return walks * len(model.PENDING_NAMES), walks * len(model.SHIPPED_NAMES)


class Search:
    """A search for a sequence that goes wrong, and then for a shorter one."""

    def __init__(
        self,
        api: Api,
        orders: Orders,
        budget: Budget,
        *,
        limit: int | None = None,
        seed: int = 0,
        pending: Sequence[str] = model.PENDING_NAMES,
        shipped: Sequence[str] = model.SHIPPED_NAMES,
        in_step: bool = False,
        wire: Wire | None = None,
    ) -> None:
        """It makes at most `limit` walks, by default those of its `budget`, each with orders of these names. With a
        `wire`, one of them goes over a single connection."""
        self._api = api
        self._orders = orders
        self._budget = budget
        self._seed = seed
        self._pending = pending
        self._shipped = shipped
        self._in_step = in_step
        self._wire = wire
        self._left = FIXED_WALKS + budget.walks if limit is None else limit
        self.wrong: Wrong | None = None  # the shortest sequence that went wrong
        self.ended: BaseException | None = None  # what kept the search from going on
        self.judged: set[str] = set()
        self._kinds: set[Kind] = set()
        self._absent: list[int] = []
        self._single: OneConnection | None = None  # of the walk under way that has a connection of its own

    def make(self) -> None:
        """Play walks until one goes wrong, then shorter ones until none does."""
        if not self._in_step:
            self._one_by_one()
        else:
            suspect = self._side_by_side([*model.TOURS, *self._generated, *self._over_one_connection])
            if isinstance(suspect, Wrong) and suspect.lasting:
                self.wrong = suspect
            elif suspect is not None:  # it may be that walks were in each other's way
                self.judged.clear()
                self._absent = []
                self._one_by_one()
                if self.wrong is None and isinstance(suspect, Wrong):
                    self.wrong = suspect
        if self.wrong is not None and not self.wrong.lasting:
            self._left = self._budget.shortening
            model.shortened(self.wrong.steps, partial(self.play, kept=self.wrong.kept))
        if self.wrong is not None and self.wrong.owner == "LIST-9" and self._in_step:
            self._see_again(self.wrong)

    def _see_again(self, wrong: Wrong) -> None:
        """Play a sequence of listings in which an order changed once more. If that does not happen again, the cancel of
        a check that ran beside may have changed the order."""
        self._left = REPLAYS
        if not any(self.play(wrong.steps, kept=wrong.kept) for _ in range(REPLAYS)):
            self.wrong = None
            once = f"expected {wrong.expected}; received {wrong.received}, once: a check beside may have changed it"
            self.ended = self.ended or outcomes.Inconclusive(once, "CANCEL-4", "CANCEL-8")

    @property
    def _generated(self) -> Sequence[Sequence[Step]]:
        return generation.sequences(self._budget, self._seed)

    @property
    def _over_one_connection(self) -> Sequence[Sequence[Step]]:
        return () if self._wire is None else (model.TOUR_OF_ONE_CONNECTION,)

    def _due(self) -> Iterator[tuple[Sequence[Step], bool]]:
        """The sequences to play, each with whether it goes over one connection. Generated ones are fetched only when
        they are due."""
        yield from ((steps, False) for steps in model.TOURS)
        yield from ((steps, True) for steps in self._over_one_connection)
        yield from ((steps, False) for steps in self._generated)

    def _one_by_one(self) -> None:
        """Play sequences until one goes wrong."""
        for steps, kept in self._due():
            if not self._goes_on or self.play(steps, kept=kept) is not None:
                return

    @property
    def _goes_on(self) -> bool:
        return self._left > 0 and self.ended is None

    def play(self, steps: Sequence[Step], *, kept: bool = False) -> Sequence[Step] | None:
        """Play a sequence, on one connection if `kept`. Returns the steps up to the one that went wrong; None if none
        did, or if the search cannot go on."""
        if not self._goes_on:
            return None
        self._left -= 1
        walks: list[Walk] = []
        try:
            walks = self._set_out(1, kept=kept)
            for step in steps:
                self._take_each([(walks[0], step)])
        except Wrong as wrong:
            if wrong.lasting:
                self._left = 0
            if self.wrong is None or len(wrong.steps) <= len(self.wrong.steps):
                self.wrong = wrong
            return wrong.steps
        except ENDS as error:
            self.ended = error
        finally:
            self._conclude(walks)
        return None

    def _set_out(self, count: int, *, kept: bool) -> list[Walk]:
        """`count` walks with fresh orders: the first one, which is the most thorough, has the newest. If `kept`, the
        last one has a connection of its own."""
        single = self._single = OneConnection(self._api, self._wire) if kept and self._wire else None
        if single is not None:
            single.set_off(self._api.ask_list())  # what it sees now, it should not go on seeing
        early: list[Sent] = []
        try:
            # Ids of their own for each walk: what one of them left in a cache is nothing that another has done.
            self._absent = self._api.absent(count, anew=not self._absent)
        finally:
            if single is not None:
                with suppress(Severed):
                    early.append(Sent("list, before these orders were placed", single.conclude()))
        pending, shipped = len(self._pending), len(self._shipped)
        taken = self._orders.take(pending=count * pending, shipped=count * shipped)
        walks = []
        for number in reversed(range(count)):
            ids = {
                **dict(zip(self._pending, taken.pending[number * pending :], strict=False)),
                **dict(zip(self._shipped, taken.shipped[number * shipped :], strict=False)),
                model.ABSENT_NAME: self._absent[number],
            }
            walks.append(Walk(self._api, self._orders, ids, self._kinds, single if number == 0 else None))
        walks[-1].trail += early
        return walks

    def _side_by_side(self, sequences: Sequence[Sequence[Step]]) -> BaseException | None:
        """Play all sequences in step; returns what ended that, if anything did."""
        walks: list[Walk] = []
        try:
            walks = self._set_out(len(sequences), kept=True)
            for steps in zip_longest(*sequences):
                self._take_each([(w, step) for w, step in zip(walks, steps, strict=True) if step is not None])
        except (Wrong, *ENDS) as error:
            return error
        finally:
            self._conclude(walks)
        return None

    def _conclude(self, walks: Sequence[Walk]) -> None:
        if self._single is not None:
            self._single.close()
        for walk in walks:
            self.judged |= walk.judged

    def _take_each(self, due: Sequence[tuple[Walk, Step]]) -> None:
        """Take one step of each of several walks."""
        started = [(walk, walk.take(step)) for walk, step in due]
        asked = [(walk, playing, requests) for walk, playing in started if (requests := next(playing, None))]
        for walk, _, requests in asked:
            if walk.connection is not None:
                walk.connection.set_off(*requests)
        at_once = any(step.kind is Kind.AT_ONCE for _, step in due)
        others = [one for walk, _, requests in asked if walk.connection is None for one in requests]
        try:
            answers = iter(self._api.send_all(others, at_once=at_once) if others else ())
        finally:  # what was set off goes on record, whatever comes of the others
            kept = {walk: walk.conclude() for walk, _, _ in asked if walk.connection is not None}
        for walk, playing, requests in asked:
            own = kept[walk] if walk in kept else [next(answers) for _ in requests]
            if not own:
                continue
            try:
                playing.send(own)
            except StopIteration:
                pass
            except Severed:
                walk.over = True
