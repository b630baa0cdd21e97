"""Walks: sequences of steps played against the service and the model together.

A walk is a sequence of steps on orders of its own. The first answer that the model does not expect ends it, and names
the requirement to blame. `search` makes walks, and shortens those that go wrong.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from conformance import outcomes, verify
from conformance.api import Api, OneConnection, Orders, Severed
from conformance.checks import model
from conformance.checks.model import Kind, Step
from conformance.contract.listing import alike, changes
from conformance.contract.transitions import CANCELLING, LISTED, State
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, STATUSES, Allowed, Operation, Request
from conformance.transport.retries import too_many

#: How many orders are tried to see whether only this one is not as it should be.
CONTROLS = 3

#: Yields requests that are to be sent together, and is sent the answers to them.
Playing = Generator[list[Request], list[Answer], None]


class Sent(NamedTuple):
    """A request of a walk, in words, and its answer; `aside` if it was not a step, but served to find the cause."""

    label: str
    answer: Answer
    aside: bool = False


class Wrong(AssertionError):
    """A walk got an answer that the model does not expect."""

    def __init__(
        self,
        owner: str,
        expected: str,
        received: str,
        walk: Walk,
        answer: Answer | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        """`answer` is the wrong one, if that is not the last."""
        super().__init__(f"{owner}: expected {expected}; received {received}")
        self.owner = owner
        self.kept = walk.connection is not None  # all on one connection
        self.lasting = lasting  # no later walk can go right either, so a shorter one would show nothing
        self.expected = expected
        self.received = received
        self.steps = tuple(walk.steps)
        self.trail = tuple(walk.trail)
        self._answer = answer

    @property
    def shown_by(self) -> list[Answer]:
        """The answers to the steps, the wrong one last: of simultaneous ones it may be any."""
        return sorted((sent.answer for sent in self.trail if not sent.aside), key=lambda answer: answer is self._answer)


class Walk:
    """One sequence of steps, played against the service and the model together."""

    def __init__(
        self,
        api: Api,
        orders: Orders,
        ids: dict[str, int],
        kinds: set[Kind],
        connection: OneConnection | None,
    ) -> None:
        """`ids` are those of fresh orders, by name: nothing that earlier walks did can have touched them. `kinds` are
        those of all steps of the search so far. With a `connection`, all requests go over that, and the walk ends when
        it does."""
        self.connection = connection
        self.over = False
        self._api = connection or api
        self._orders = orders
        self._kinds = kinds
        self.ids = ids
        self.states = {
            **dict.fromkeys(self.ids, State.PENDING),
            **dict.fromkeys(model.SHIPPED_NAMES, State.SHIPPED),
            model.ABSENT_NAME: State.ABSENT,
        }
        self.steps: list[Step] = []
        self.trail: list[Sent] = []
        self.judged: set[str] = set()
        self._seen: dict[str, tuple[Any, int]] = {}  # by name: how it was first listed, and after how many steps

    def take(self, step: Step) -> Playing:
        """Take one step: a generator that yields the requests to send, and is sent the answers. Raises Wrong, and
        whatever keeps the suite from going on. A step about an order that this walk does not have is skipped."""
        if self.over or any(name not in self.ids for name in step.orders):
            return
        before = tuple(self.steps)
        self.steps.append(step)
        self._kinds.add(step.kind)
        match step.kind:
            case Kind.LIST:
                yield from self._list(before)
            case Kind.KEYLESS:
                yield from self._keyless(step, before)
            case Kind.CANCEL:
                (name,) = step.orders
                answers = yield [self._ask(name)]
                self._take_down(str(step), before, answers)
                self._judge(name, answers[0], before)
            case Kind.AT_ONCE:
                yield from self._at_once(step, before)

    # --- the steps

    def _list(self, before: Sequence[Step]) -> Playing:
        answers = yield [self._api.ask_list()]
        self._take_down("list", before, answers)
        (answer,) = answers
        found = verify.listing(answer)
        live = [name for name, state in self.states.items() if state in LISTED and name in self.ids]
        named = {self.ids[name]: name for name in live}
        if lost := found.left_out(named):
            self._lost(named[lost[0]], (*before, Step(Kind.LIST)), answer)
        for name in live:
            element = found.by_id.get(self.ids[name])
            if element is None:
                continue
            first, place = self._seen.setdefault(name, (element, len(self.steps)))
            between = (*before[place:], Step(Kind.LIST))
            owners = model.causes(between, name, self.states[name])
            shipped = self.states[name] is State.SHIPPED
            later = self.ids[name] in answer.aged
            if not alike(element, first, shipped=shipped, later=later):
                received = changes(element, first, shipped=shipped, later=later)
                raise Wrong(owners[0], f"{self._named(name)} listed as before", received, self)
            self.judged |= {"LIST-3", *owners} if place < len(self.steps) else {"LIST-3"}

    def _keyless(self, step: Step, before: Sequence[Step]) -> Playing:
        (name,) = step.orders
        answers = yield [self._api.ask_cancel(self.ids[name], NOBODY)]
        self._take_down(str(step), before, answers)
        if answers[0].status != 401:
            lent = self.connection is not None and any(sent.answer.request.credential.valid for sent in self.trail)
            owner = "AUTH-6" if lent else "AUTH-2"
            raise Wrong(owner, "401 without the key", verify.describe(answers[0]), self)
        self.judged.add("AUTH-2")

    def _at_once(self, step: Step, before: Sequence[Step]) -> Playing:
        one, other = step.orders
        same = one == other
        race = same and self.states[one] is State.PENDING
        answers = yield [self._ask(name, Allowed.ANY_4XX if same else None) for name in step.orders]
        if any(too_many(answer.exchange) for answer in answers):  # what was done then nobody can tell: the walk ends
            self.over = True
            return
        self._take_down(str(step), before, answers)
        if not race:
            # One of two for the same order may be told that it is locked meanwhile (423): that error is not shown.
            locked = [same and each.client_error and each.status not in STATUSES[Operation.CANCEL] for each in answers]
            for name, partner, answer, late in zip(step.orders, (other, one), answers, locked, strict=True):
                also = () if same else (Step(Kind.CANCEL, (partner,)),)
                if all(locked) or not late:
                    self._judge(name, answer, (*before, *also))
            return
        statuses = " and ".join(answer.exchange.received for answer in answers)
        expected = f"204 and a refusal for two cancels of {self._named(one)} at once"
        successes = [answer for answer in answers if answer.status == 204]
        if len(successes) > 1:
            raise Wrong("CANCEL-7", expected, statuses, self)
        if not successes:
            if self._again(one, before, 204):
                raise Wrong("CANCEL-7", expected, f"{statuses}, and 204 when asked once more", self)
            owner, *_ = model.causes(before, one, State.PENDING)
            if self._fresh(State.PENDING, before) is False:
                raise Wrong("CANCEL-1", expected, statuses, self)
            raise Wrong("CANCEL-7" if owner == "CANCEL-1" else owner, expected, statuses, self)
        self.states[one] = State.CANCELLED
        self.judged.add("CANCEL-7")

    # --- what an answer says of one order

    def _judge(self, name: str, answer: Answer, before: Sequence[Step]) -> None:
        """Demand that the cancel of an order was answered as its state requires, and move on to the next state."""
        state = self.states[name]
        due = CANCELLING[state]
        owner, *others = model.causes(before, name, state)
        if answer.status in due.statuses:
            self.states[name] = due.after
            self.judged |= {due.owner, owner, *others}
            return
        expected = f"{due.expected} for {self._named(name)}, which is {state}"
        if state in LISTED:
            owner = self._blame(name, answer, before, expected)
        raise Wrong(owner, expected, answer.exchange.received, self, answer)

    def _lost(self, name: str, before: Sequence[Step], listing: Answer) -> None:
        """Raise Wrong for an order that is not in the listing: for LIST-3 if a cancel finds it, else for whatever
        removed it."""
        answer = self._send(f"cancel {name}, to see whether it exists", before, self._ask(name))
        state = self.states[name]
        expected = f"{self._named(name)}, which is {state}, in the listing"
        if answer.status in CANCELLING[state].statuses:
            cause, *_ = model.causes(before, name, state)
            owner = cause if cause in ("AUTH-5", "CANCEL-4") else "LIST-3"  # a refusal of this very order hides it
            raise Wrong(owner, expected, f"{verify.listing(listing).size} without it, though it exists", self)
        raise Wrong(self._blame(name, answer, before, expected), expected, "an order that is gone", self)

    def _blame(self, name: str, answer: Answer, before: Sequence[Step], expected: str) -> str:
        """The requirement to blame if the cancel of a pending or shipped order got another answer than it should.
        Raises Wrong if the answer is right when asked again, and Inconclusive if the order may not be in the state that
        its provider says."""
        state = self.states[name]
        due = CANCELLING[state]
        if answer.status != 204 and self._again(name, before, *due.statuses):
            received = f"{answer.exchange.received}, and {due.expected} when asked again"
            raise Wrong(due.owner, expected, received, self, answer)
        owner, *_ = model.causes(before, name, state)
        if owner != due.owner:
            fresh = self._fresh(state, before)
            if fresh or (fresh is None and name in self._seen):
                return owner
        if answer.status == 404 and name not in self._seen:
            found = self._api.list().listing
            if found is not None and found.left_out([self.ids[name]]):
                raise verify.unknown(self.ids[name])
        if state is State.PENDING and self._orders.by_hand and answer.status in (404, 409):
            raise verify.perhaps_used(self.ids[name], answer)
        return due.owner

    def _again(self, name: str, before: Sequence[Step], *statuses: int) -> bool:
        """Whether one of two further cancels of an order gets one of `statuses`."""
        for _ in range(2):
            answer = self._send(f"cancel {name} again", before, self._ask(name, Allowed.ANY_4XX))
            if answer.status in statuses:
                return True
        return False

    def _fresh(self, state: State, before: Sequence[Step]) -> bool | None:
        """Whether orders, each placed just now so that nothing was done to it, answer as those in `state` must; None if
        there are none left to compare with."""
        pending = int(state is State.PENDING)
        for _ in range(CONTROLS):
            try:
                taken = self._orders.take(pending=pending, shipped=1 - pending)
            except outcomes.Inconclusive:
                return None
            (order,) = (*taken.pending, *taken.shipped)
            label = f"cancel order {order}, placed just now, to compare"
            answer = self._send(label, before, self._api.ask_cancel(order))
            if answer.status not in CANCELLING[state].statuses:
                return False
        return True

    # --- small things

    def _ask(self, name: str, allowed: Allowed | None = None) -> Request:
        usual = Allowed.ANY_4XX if self.states[name] is State.CANCELLED else Allowed.LISTED
        return self._api.ask_cancel(self.ids[name], allowed=allowed or usual)

    def _send(self, label: str, before: Sequence[Step], request: Request) -> Answer:
        """Send a request that is not a step, and record it in the trail."""
        answer = self._api.send(request)
        self._take_down(label, before, [answer], aside=True)
        return answer

    def _take_down(self, label: str, before: Sequence[Step], answers: Sequence[Answer], *, aside: bool = False) -> None:
        """Record answers in the trail. Raises Inconclusive for those that prove nothing here."""
        self.trail += [Sent(label, answer, aside) for answer in answers]
        for answer in answers:
            verify.settled(answer)
            if answer.request.credential.valid:
                if answer.status == 401:
                    self._key_refused(label, before, answer)
                self.judged |= {"AUTH-1", model.refusal_of_the_key({step.kind for step in before})}
            if verify.unlisted(answer):
                said = f"{answer.exchange.in_words}, which its operation does not list"
                raise outcomes.Inconclusive(said, "HTTP-1")

    def _key_refused(self, label: str, before: Sequence[Step], answer: Answer) -> None:
        """Raise Wrong for a refusal of the valid key. Whose fault that is depends on whether it was refused once, only
        here, or everywhere from now on."""
        again, elsewhere = answer.repeat(), self._api.list()
        self.trail.append(Sent(f"{label} again", again, aside=True))
        self.trail.append(Sent("list, to see whether the key is refused there too", elsewhere, aside=True))
        lasting = again.status == elsewhere.status == 401
        kinds = {step.kind for step in before} | (self._kinds if lasting else set())
        steady = again.status == 401 or self.connection is not None  # repeated over another one
        owner = model.refusal_of_the_key(kinds) if steady else "AUTH-1"
        raise Wrong(owner, "the valid key accepted", verify.describe(answer), self, lasting=lasting)

    def conclude(self) -> list[Answer]:
        """The answer to what was set off on the connection of this walk; none if it was severed, which ends the
        walk."""
        assert self.connection is not None, "nothing was set off"
        try:
            return [self.connection.conclude()]
        except Severed:
            self.over = True
            return []

    def _named(self, name: str) -> str:
        return f"order {name} ({self.ids[name]})"
