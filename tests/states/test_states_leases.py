"""What a check takes is given back, whatever happens; static ids are shared out once, the most telling checks first."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from built import target
from hypothesis import given
from hypothesis import strategies as st

from conformance.api import Api, Orders
from conformance.check import MOST_TELLING, Check, Needs, all_checks, allot, shares
from conformance.contract import catalogue
from conformance.contract.transitions import State
from conformance.outcomes import Excluded
from conformance.states.leases import Leases, return_left
from conformance.states.provider import CannotDo, ProviderAbsent, ProviderError, ProviderLate
from conformance.target import Mode, States
from conformance.transport.guard import Guard


class Store:
    """A provider that keeps what it placed, and fails when told to."""

    def __init__(self) -> None:
        self.placed: set[int] = set()
        self.messages: list[dict[str, Any]] = []
        self.answer: dict[str, Any] | None = None
        self.failing: set[int] = set()
        self.refuses = False

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        self.messages.append(message)
        if self.refuses:
            raise CannotDo("501")
        if message["action"] == "teardown":
            ids = set(message["params"]["orderIds"])
            if ids & self.failing:
                raise ProviderError("the store is down")
            self.placed -= ids
            return {}
        if self.answer is not None:
            self.placed |= {number for number in self.answer.get("orderIds", []) if isinstance(number, int)}
            return self.answer
        start = max(self.placed, default=100) + 1
        ids_ = message["params"].get("ids") or list(range(start, start + message["params"].get("count", 0)))
        self.placed |= set(ids_)
        return {"orderIds": ids_}

    def close(self) -> None:
        pass


def leases(
    store: Store | None = None, pending: Sequence[int] = (), shipped: Sequence[int] = ()
) -> tuple[Leases, Guard]:
    guard = Guard(Mode.FULL)
    return Leases(store, guard, (pending, shipped)), guard


def given_back(held: Leases) -> list[str]:
    """What is said of orders that could not be returned."""
    warnings: list[str] = []
    held.give_back(warnings)
    return warnings


def test_no_ids_are_not_asked_for() -> None:
    """A provider that was asked for none might place one of its choice."""
    store = Store()
    with pytest.raises(Excluded, match="could be mistaken"):
        Orders(leases(store)[0], cast(Api, None)).place([])
    assert store.messages == []


def test_orders_are_added_where_they_can_be() -> None:
    """Whatever keeps a provider from placing them, or that there is none, keeps no check from what is there."""
    able, refusing, failing = Store(), Store(), Store()
    refusing.refuses = True
    failing.answer = {"orderIds": [7, 7]}
    held = [leases(store)[0] for store in (able, refusing, failing, None)]
    for each in held:
        Orders(each, cast(Api, None)).add(pending=2, shipped=1)
    assert len(able.placed) == 3
    assert list(map(given_back, held)) == [[], [], [], []]
    assert able.placed == failing.placed == set()


def test_what_is_taken_may_be_cancelled_until_it_is_given_back() -> None:
    store = Store()
    held, guard = leases(store)
    ids = [*held.take(State.PENDING, 2), *held.take(State.SHIPPED, 1), *held.place(State.PENDING, [2**53 + 1])]
    assert store.placed == set(ids)
    assert all(guard.permits(str(number)) for number in ids)
    assert given_back(held) == []
    assert store.placed == set()
    guard.saw_listing(ids)
    assert not any(guard.permits(str(number)) for number in ids)
    told = [(m["state"], m["params"]) for m in store.messages if m["action"] == "teardown"]
    assert told == [
        ("pending orders", {"orderIds": [*ids[:2], *ids[3:]]}),
        ("shipped orders", {"orderIds": ids[2:3]}),
    ]


def test_nothing_is_given_back_twice() -> None:
    store = Store()
    held, _ = leases(store)
    held.take(State.PENDING, 1)
    given_back(held)
    said = len(store.messages)
    assert given_back(held) == []
    assert len(store.messages) == said


def test_taking_none_asks_nobody() -> None:
    store = Store()
    held, _ = leases(store)
    assert held.take(State.PENDING, 0) == []
    assert store.messages == []


def test_what_cannot_be_given_back_is_told_and_the_rest_is() -> None:
    store = Store()
    held, guard = leases(store)
    first, second = held.take(State.PENDING, 30), held.take(State.SHIPPED, 1)
    store.failing = {first[0]}
    (said,) = given_back(held)
    assert said.startswith("orders left behind (pending orders): 101, 102, ")
    assert said.endswith("120 and 10 more: the store is down")
    assert store.placed == set(first)
    assert guard.handed_out == set()
    assert second[0] not in store.placed


def test_everything_is_given_back_after_an_error() -> None:
    store = Store()
    held, _ = leases(store)
    held.take(State.PENDING, 2)
    store.answer = {"nonsense": True}
    with pytest.raises(ProviderError):
        held.take(State.SHIPPED, 1)
    assert given_back(held) == []
    assert store.placed == set()


@pytest.mark.parametrize(
    "answer",
    [{"orderIds": [7, 8, 9]}, {"orderIds": [7]}, {"orderIds": [7, 7]}, {"orderIds": [7, "8"]}],
    ids=["too many", "too few", "twice", "one as a string"],
)
def test_what_a_faulty_answer_names_is_given_back_too(answer: dict[str, Any]) -> None:
    """It was placed, and is nobody else's."""
    store = Store()
    held, guard = leases(store)
    store.answer = answer
    with pytest.raises(ProviderError):
        held.take(State.PENDING, 2)
    assert guard.handed_out == set()
    given_back(held)
    assert store.placed == set()


@pytest.mark.parametrize(
    ("error", "returned"),
    [(ProviderError("exit status 1"), [2**40]), (ProviderLate("60 s"), [2**40]), (ProviderAbsent("refused"), None)],
)
def test_chosen_ids_are_given_back_of_a_provider_that_fails_having_placed_them(
    error: ProviderError, returned: list[int] | None
) -> None:
    """Except one that a listing has shown: that is somebody else's. Without a listing nobody knows whose they are."""

    class Failing(Store):
        def call(self, message: dict[str, Any]) -> dict[str, Any]:
            super().call(message)
            if message["action"] == "setup":
                raise error
            return {}

    store = Failing()
    held, guard = leases(store)
    with pytest.raises(ProviderError):
        held.place(State.PENDING, [8])
    guard.saw_listing([7])
    with pytest.raises(ProviderError):
        held.place(State.PENDING, [7, 2**40])
    given_back(held)
    teardowns = [message["params"]["orderIds"] for message in store.messages if message["action"] == "teardown"]
    assert teardowns == ([returned] if returned else [])


def test_a_refusal_leaves_nothing_behind() -> None:
    store = Store()
    held, guard = leases(store)
    store.refuses = True
    for work in (lambda: held.place(State.PENDING, [1]), held.empty_store, lambda: held.take(State.SHIPPED, 1)):
        with pytest.raises(CannotDo):
            work()
    with pytest.raises(ProviderError, match="a state provider has to place pending orders"):
        held.take(State.PENDING, 1)
    assert guard.handed_out == set()
    assert given_back(held) == []
    with pytest.raises(CannotDo, match="with a smaller bulk_orders in the configuration it is asked for fewer"):
        held.take(State.PENDING, 1055)


def test_emptying_the_store() -> None:
    store = Store()
    held, _ = leases(store)
    held.empty_store()
    assert store.messages == [{"state": "no orders", "action": "setup", "params": {}}]


def interrupt(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """Have an interruption arrive with each further message."""
    call = store.call

    def interrupted(message: dict[str, Any]) -> dict[str, Any]:
        signal.raise_signal(signal.SIGINT)
        return call(message)

    monkeypatch.setattr(store, "call", interrupted)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interruption_waits_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was placed is held when the run is interrupted, and is returned in peace."""
    store = Store()
    held, _ = leases(store)
    interrupt(monkeypatch, store)
    with pytest.raises(KeyboardInterrupt):
        held.take(State.PENDING, 2)
    assert store.placed == {101, 102}
    with pytest.raises(KeyboardInterrupt):
        given_back(held)
    assert store.placed == set()


def test_an_interruption_hides_nothing_that_was_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the provider has the run wait, until somebody has enough of it."""
    store = Store()
    held, _ = leases(store)
    store.failing = set(held.take(State.PENDING, 1))
    interrupt(monkeypatch, store)
    warnings: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        held.give_back(warnings)
    assert warnings == ["orders left behind (pending orders): 101: the store is down"]


def test_what_a_process_held_that_is_no_more_is_returned(tmp_path: Path) -> None:
    store = Store()
    for name, ended in (("a.1.held", True), ("a.1.kept.held", True), ("a.2.held", False), ("b.1.held", True)):
        held = Leases(store, Guard(Mode.FULL), ledger=tmp_path / name)
        held.take(State.PENDING, 2)
        held.take(State.SHIPPED, 1)
        if not ended:
            given_back(held)
    assert return_left(store, tmp_path, "a") == []
    assert len(store.placed) == 3
    other = Leases(store, Guard(Mode.FULL), ledger=tmp_path / "a.eu.1.held")
    (left,) = other.take(State.PENDING, 1)
    assert return_left(store, tmp_path, "a") == []
    assert left in store.placed, "they are of another target, with another store"
    store.failing = {110}
    (tmp_path / "c.1.held").write_text('{"pending": [110, 111]}', encoding="ascii")
    (said,) = return_left(store, tmp_path, "c")
    assert said.startswith("orders left behind (pending orders): 110, 111: ")


# --- static lists


def test_each_static_id_is_used_once() -> None:
    held, guard = leases(None, (1, 2, 3), (9,))
    assert held.take(State.PENDING, 2) == [1, 2]
    assert held.take(State.PENDING, 1) == [3]
    assert held.take(State.SHIPPED, 1) == [9]
    assert guard.handed_out == {1, 2, 3, 9}
    for state in (State.PENDING, State.SHIPPED):
        with pytest.raises(ProviderError, match=f"the static list of {state} orders has too few ids left"):
            held.take(state, 1)


def test_who_says_that_an_order_has_shipped() -> None:
    """A list that is wrong is no fault of the service."""
    assert "by the list in the configuration" in leases(None, (), (9,))[0].has_shipped


def test_static_lists_can_only_be_taken_from() -> None:
    held, guard = leases(None)
    with pytest.raises(CannotDo):
        held.place(State.PENDING, [1])
    with pytest.raises(CannotDo):
        held.empty_store()
    with pytest.raises(ProviderError):
        held.take(State.PENDING, 1)
    assert guard.handed_out == set()
    assert given_back(held) == []


CHECKS = [*all_checks()]


@given(st.integers(0, 80), st.integers(0, 40), st.randoms(use_true_random=False))
def test_static_ids_are_shared_out_once(pending: int, shipped: int, rng: Any) -> None:
    ids = (tuple(range(1, pending + 1)), tuple(range(1001, shipped + 1001)))
    shares = allot(CHECKS, *ids)
    shuffled = CHECKS[:]
    rng.shuffle(shuffled)
    assert allot(shuffled, *ids) == shares
    for place in (0, 1):
        given_out = [number for share in shares.values() for number in share[place]]
        assert len(set(given_out)) == len(given_out)
        assert set(given_out) <= set(ids[place])
    by_id = {check.id: check for check in CHECKS}
    for name, share in shares.items():
        needs = by_id[name].needs
        assert (len(share[0]), len(share[1])) == (needs.pending, needs.shipped)
        assert needs.orders
        assert True not in (needs.chosen_ids, needs.many_orders, needs.empty_store)


def test_requirements_take_turns_and_the_most_telling_come_first() -> None:
    got = list(allot(CHECKS, tuple(range(1, 500)), tuple(range(1001, 1500))))
    by_id = {check.id: check for check in CHECKS}
    rows = [by_id[name].requirement for name in got]
    assert rows[: len(MOST_TELLING)] == list(MOST_TELLING)
    first_turns = len({by_id[name].requirement for name in got if not name.startswith("model.")})
    assert len(set(rows[:first_turns])) == first_turns
    assert [name for name in got if name.startswith("model.")] == got[-sum(n.startswith("model.") for n in got) :]
    assert set(MOST_TELLING) <= catalogue.load().requirements.keys()
    assert by_id[next(iter(allot(CHECKS, (1,), ())))].requirement == MOST_TELLING[0]
    few = {by_id[name].requirement for name in allot(CHECKS, (1, 2), (3,))}
    assert few == {"CANCEL-1", "CANCEL-3", "CANCEL-6"}


def test_what_one_check_cannot_have_is_left_to_the_next() -> None:
    greedy = Check("a.greedy", "CANCEL-1", Needs(Mode.FULL, pending=5), "")
    modest = Check("b.modest", "LIST-9", Needs(Mode.FULL, pending=2), "")
    assert allot([greedy, modest], (1, 2, 3), ()) == {"b.modest": ([1, 2], [])}


def test_checks_that_the_mode_forbids_get_none() -> None:
    states = States(pending=tuple(range(1, 1000)), shipped=tuple(range(1001, 2000)))
    full = shares(CHECKS, target(states=states, mode=Mode.FULL))
    observing = shares(CHECKS, target(states=states, mode=Mode.OBSERVE))
    assert {check.id for check in CHECKS if check.needs.mode is Mode.FULL} & observing.keys() == set()
    assert observing.keys() < full.keys()
    assert shares(CHECKS, target(states=States(url="http://h"))) == {}
    assert shares(CHECKS, target()) == {}
