"""What is made up from the OpenAPI document: always the same, different enough, and nowhere near anybody's order."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import pytest
from built import session

from conformance.budgets import BUDGETS
from conformance.checks.generated_requests import FAR, KINDS, LONGEST, SOON, GeneratedRequest, topic_of
from conformance.checks.generation import requests
from conformance.checks.ids import UNUSED
from conformance.checks.test_schema import out_of_reach
from conformance.contract.jsontext import INT64
from conformance.contract.listing import Listing


def made(what: str, budget: str, seed: int = 5) -> list[GeneratedRequest]:
    return list(requests(what, BUDGETS[budget], seed))


@pytest.mark.parametrize("budget", ["quick", "standard"])
@pytest.mark.parametrize("what", KINDS)
def test_the_same_seed_makes_the_same_requests(what: str, budget: str) -> None:
    found = made(what, budget)
    assert found == made(what, budget)
    assert found != made(what, budget, seed=6)
    assert len(set(found)) == len(found)
    assert 1 <= len(found) <= BUDGETS[budget].requests
    assert found == sorted(found)
    assert all(each.size <= LONGEST for each in found)


@pytest.mark.parametrize("budget", ["quick", "standard"])
def test_far_orders_are_well_formed_and_far(budget: str) -> None:
    for each in made("far orders", budget):
        assert re.fullmatch(r"-?[1-9][0-9]*", each.segment)
        assert int(each.segment) in INT64
        assert abs(int(each.segment)) >= FAR
        assert topic_of(each.segment) == "an id"
        assert each.query == ""


def test_far_orders_keep_clear_of_the_ends_of_int64() -> None:
    """An earlier run has had orders cancelled there, which a service may remember."""
    drawn = [int(each.segment) for seed in range(20) for each in made("far orders", "quick", seed)]
    assert all(INT64.start + UNUSED <= order < INT64.stop - UNUSED for order in drawn)


@pytest.mark.parametrize("budget", ["quick", "standard"])
def test_malformed_ids_are_no_ids(budget: str) -> None:
    kinds = {topic_of(each.segment) for each in made("malformed ids", budget)}
    assert "malformed ids" in kinds
    assert "an id" not in kinds


@pytest.mark.parametrize("budget", ["quick", "standard"])
def test_everything_can_be_written_into_a_request(budget: str) -> None:
    for what in KINDS:
        for each in made(what, budget):
            assert re.fullmatch(r"[!-~]*", each.segment + each.query)
            assert "/" not in each.segment
            for name, value in each.headers:
                assert re.fullmatch(r"[A-Za-z-]+", name)
                assert re.fullmatch(r"[ -~]+", value)
    assert any(each.headers for each in made("listings", budget))
    assert all(parse_qsl(each.query, keep_blank_values=True) for each in made("queries", budget))


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ("1", "an id"),
        ("-9223372036854775808", "an id"),
        ("9223372036854775808", "ids outside int64"),
        ("007", "unusual spellings of an id"),
        ("%2B7", "unusual spellings of an id"),
        ("7.0", "unusual spellings of an id"),
        ("7.5", "malformed ids"),
        ("nan", "malformed ids"),
        ("inf", "malformed ids"),
        ("true", "malformed ids"),
        ("%7B%7D", "malformed ids"),
    ],
)
def test_kinds(segment: str, expected: str) -> None:
    assert topic_of(segment) == expected


def test_a_segment_comes_plain_or_encoded() -> None:
    assert GeneratedRequest.of({"orderId": "a%2Fb"}, {}, {}) == GeneratedRequest.of({"orderId": "a/b"}, {}, {})
    assert unquote(GeneratedRequest.of({"orderId": "a b"}, {}, {}).segment) == "a b"


def test_what_could_be_an_order_now_or_soon_is_out_of_bounds() -> None:
    with session("http://127.0.0.1:9/v1") as opened:
        api = opened.api("schema")
        ids = [1, 2, 3, 1000]
        opened.guard.saw_listing(ids)
        found = Listing([{"id": number} for number in ids])
        reachable = {segment for segment in (
            "3", "3abc", "3.5", "-3", str(2**32 + 3), "1001", "1001x", str(2**32 + 1001), str(1000 + SOON), "true",
            str(2**50 + 2**30), str(1001 + SOON),
        ) if out_of_reach(api, found, segment)}  # fmt: skip
    assert reachable == {"true", str(2**50 + 2**30), str(1001 + SOON)}


def test_nothing_is_read_from_or_written_to_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {what: made(what, "standard") for what in KINDS}
    (tmp_path / "schemathesis.toml").write_text("no = configuration = at all\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert {what: made(what, "standard") for what in KINDS} == before
    assert [path.name for path in tmp_path.iterdir()] == ["schemathesis.toml"]
