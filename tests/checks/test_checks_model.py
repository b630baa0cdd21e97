"""The model as values: what cancelling does to each state, and whose fault a difference is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.budgets import BUDGETS
from conformance.checks import model
from conformance.checks.model import NAMES, TOURS, Kind, Step
from conformance.contract import catalogue
from conformance.contract.transitions import CANCELLING, LISTED, State

NAME = st.sampled_from(NAMES)
STEPS = st.one_of(
    st.just(Step(Kind.LIST)),
    NAME.map(lambda name: Step(Kind.CANCEL, (name,))),
    NAME.map(lambda name: Step(Kind.KEYLESS, (name,))),
    st.tuples(NAME, NAME).map(lambda names: Step(Kind.AT_ONCE, names)),
)
SEQUENCES = st.lists(STEPS, max_size=12)


def test_only_a_pending_order_is_ever_cancelled() -> None:
    assert {state for state, row in CANCELLING.items() if 204 in row.statuses} == {State.PENDING}
    assert {state for state, row in CANCELLING.items() if row.after is not state} == {State.PENDING}


@given(st.sampled_from(State), st.integers(1, 5))
def test_cancelling_further_changes_nothing_more(state: State, times: int) -> None:
    after = CANCELLING[state].after
    for _ in range(times):
        after = CANCELLING[after].after
    assert after is CANCELLING[state].after


@given(SEQUENCES, NAME, st.sampled_from(State))
def test_a_cause_is_a_required_row(before: list[Step], name: str, state: State) -> None:
    rows = [catalogue.load().requirements[owner] for owner in model.causes(before, name, state)]
    assert {row.level for row in rows} == {"required"}


@given(st.sampled_from(State), NAME)
def test_with_nothing_before_it_is_the_cancel_itself(state: State, name: str) -> None:
    assert model.causes([], name, state) == (CANCELLING[state].owner,)


@given(SEQUENCES, SEQUENCES)
def test_what_is_done_to_orders_that_are_not_there_never_matters(before: list[Step], after: list[Step]) -> None:
    for state in (State.CANCELLED, State.ABSENT):
        assert model.causes([*before, *after], "A", state) == (CANCELLING[state].owner,)


@pytest.mark.parametrize(
    ("before", "name", "state", "owners"),
    [
        ((Step(Kind.LIST),), "A", State.PENDING, "LIST-9"),
        ((Step(Kind.CANCEL, ("B",)),), "A", State.PENDING, "CANCEL-8"),
        ((Step(Kind.CANCEL, ("S",)),), "A", State.PENDING, "CANCEL-8"),
        ((Step(Kind.CANCEL, ("Z",)), Step(Kind.LIST)), "S", State.SHIPPED, "CANCEL-8"),
        ((Step(Kind.CANCEL, ("S",)),), "S", State.SHIPPED, "CANCEL-4"),
        ((Step(Kind.CANCEL, ("S",)), Step(Kind.CANCEL, ("B",))), "S", State.SHIPPED, "CANCEL-8 CANCEL-4"),
        ((Step(Kind.AT_ONCE, ("S", "S")),), "S", State.SHIPPED, "CANCEL-4"),
        ((Step(Kind.KEYLESS, ("A",)),), "A", State.PENDING, "AUTH-5"),
        ((Step(Kind.KEYLESS, ("B",)),), "A", State.PENDING, "AUTH-5"),
        ((Step(Kind.KEYLESS, ("B",)), Step(Kind.CANCEL, ("B",))), "A", State.PENDING, "CANCEL-8"),
        ((Step(Kind.AT_ONCE, ("B", "B")),), "A", State.PENDING, "CANCEL-8"),
    ],
)
def test_causes(before: Sequence[Step], name: str, state: State, owners: str) -> None:
    assert model.causes(before, name, state) == tuple(owners.split())


@given(SEQUENCES)
def test_a_key_is_spent_only_by_requests_without_it(before: list[Step]) -> None:
    spent = any(step.kind is Kind.KEYLESS for step in before)
    assert model.refusal_of_the_key({step.kind for step in before}) == ("AUTH-6" if spent else "AUTH-1")


def test_the_first_tour_takes_every_kind_of_step_on_every_order() -> None:
    assert {step.kind for step in TOURS[0]} == set(Kind)
    assert {name for step in TOURS[0] for name in step.orders} == set(NAMES)


def test_tours_take_no_more_rounds_than_what_is_made_up() -> None:
    assert max(map(len, TOURS)) <= BUDGETS["standard"].steps


def test_steps_read_as_words() -> None:
    assert [str(step) for step in TOURS[0][:3]] == ["list", "cancel B", "cancel C without the key"]
    assert str(Step(Kind.AT_ONCE, ("A", "B"))) == "cancel A and B at once"


def test_states_that_are_listed_are_those_that_cancelling_tells_apart() -> None:
    assert {CANCELLING[state].owner for state in LISTED} == {"CANCEL-1", "CANCEL-3"}


# --- shortening


@given(st.lists(STEPS, min_size=1, max_size=20), st.data())
def test_shortened_to_what_is_needed(steps: list[Step], data: st.DataObject) -> None:
    """A sequence goes wrong as soon as these kinds of step were taken in this order: no more is left of it."""
    needed = [step.kind for step in steps if data.draw(st.booleans())] or [steps[0].kind]

    def still_wrong(candidate: Sequence[Step]) -> Sequence[Step] | None:
        left = list(needed)
        for place, step in enumerate(candidate, 1):
            if left and step.kind is left[0]:
                left.pop(0)
            if not left:
                return candidate[:place]
        return None

    assert [step.kind for step in model.shortened(still_wrong(steps) or steps, still_wrong)] == needed


def test_shortened_cancels_one_at_a_time_where_that_is_enough() -> None:
    def still_wrong(candidate: Sequence[Step]) -> Sequence[Step] | None:
        return candidate if any("B" in step.orders for step in candidate) else None

    found = model.shortened([Step(Kind.LIST), Step(Kind.AT_ONCE, ("A", "B"))], still_wrong)
    assert found == [Step(Kind.CANCEL, ("B",))]


def test_shortening_ends_where_nothing_shows_again() -> None:
    played: list[Sequence[Step]] = []
    assert model.shortened(TOURS[0], played.append) == TOURS[0]
    assert len(played) < 3 * len(TOURS[0])
