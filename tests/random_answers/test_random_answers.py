"""A service that answers at random never gets a pass on a requirement that an answer does not meet.

`random_judge.py FIRST LAST` tries any other seeds; hundreds were.
"""

from __future__ import annotations

import random

import pytest
from oracle import breaches
from random_judge import KEY, Found, judge_all
from random_service import CALLERS, OBJECTS, PARTS, RandomService, rates

from conformance.contract import catalogue
from conformance.contract.catalogue import Level
from reference_server.messages import Request

#: Together they show nearly all kinds of breach that the oracle knows: some everywhere, some in one answer of hundreds.
SEEDS = (20, 61, 70, 239, 317)


@pytest.fixture(scope="module")
def found() -> list[Found]:
    return list(judge_all(SEEDS, workers=2))


def test_no_requirement_passes_that_an_answer_did_not_meet(found: list[Found]) -> None:
    assert {each.seed: each.unseen for each in found if each.unseen} == {}


def test_a_required_one_that_was_not_met_is_never_conformant(found: list[Found]) -> None:
    rows = catalogue.load().requirements
    for each in found:
        unmet = [breach for breach in each.breaches if all(rows[row].level is Level.REQUIRED for row in breach)]
        assert each.exit_status in ((1, 3) if unmet else (0, 1, 3)), each


def test_the_seeds_are_worth_their_time(found: list[Found]) -> None:
    known = {row for each in found for breach in each.breaches for row in breach}
    assert len(known) >= 25
    assert sum(list(each.statuses.values()).count("passed") > 30 for each in found) >= 3
    assert all(each.requests > 200 for each in found)


def test_the_oracle_has_nothing_to_say_of_the_correct_service() -> None:
    chance = RandomService(0, KEY)
    chance.rates = dict.fromkeys(chance.rates, 0.0)
    chance.service.store.place_ids([11, 12], next(iter(chance.service.store.all())).status)
    headers = {"authorization": f"Bearer {KEY}"}
    for method, path in (("GET", ""), ("DELETE", "/11"), ("DELETE", "/11"), ("DELETE", "/99"), ("DELETE", "/x")):
        for sent in (headers, {}, {"authorization": "Bearer nobody"}, {"authorization": "Basic nobody"}):
            chance.service.answer(Request(method, f"/v1/store/orders{path}", headers=sent))
    assert len(chance.exchanges) == 20
    assert {breach for exchange in chance.exchanges for breach in breaches(exchange, KEY)} == set()


def test_every_seed_draws_something_anew() -> None:
    for seed in range(50):
        drawn = rates(random.Random(seed))
        assert len(drawn) == len(PARTS) * len(OBJECTS) * len(CALLERS)
        assert any(drawn.values())
