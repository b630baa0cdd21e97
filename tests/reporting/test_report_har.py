"""`evidence.har` follows HAR 1.2 and brings every exchange back as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_runs import EVERY, broken, exchange, failing, run

from conformance.reporting import har
from conformance.reporting.run import Run

TEXT = st.text(st.characters(codec=None), max_size=30)
BODY = st.binary(max_size=30).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=3)


def rendered(made: Run) -> str:
    return "".join(har.render(made))


@pytest.mark.parametrize("name", EVERY)
def test_comes_back_as_it_went(name: str) -> None:
    made = EVERY[name]()
    assert har.read(rendered(made)).exchanges == list(made.exchanges)


@given(
    st.builds(
        exchange,
        number=st.integers(0, 9999),
        body=BODY,
        status=st.none() | st.integers(100, 599),
        url=TEXT,
        reason=TEXT,
        detail=TEXT,
        trouble=st.none() | TEXT,
        headers=PAIRS,
        request_headers=PAIRS,
        request_body=st.none() | TEXT,
        http_version=st.sampled_from(["", "HTTP/1.0", "HTTP/2"]),
        seconds=st.floats(0, 1e4),
        started=st.floats(0, 4e9),
        findings=st.dictionaries(TEXT, st.none() | TEXT, max_size=2),
        body_cut=st.booleans(),
        revealed_key=st.booleans(),
        order_id=st.none() | TEXT,
        shell_headers=st.lists(TEXT, max_size=2),
    )
)
def test_any_exchange_comes_back(made: har.Exchange) -> None:
    text = rendered(run([], (made,)))
    assert all(" " <= character <= "~" or character == "\n" for character in text)
    assert har.read(text).exchanges == [made]


def test_has_what_the_format_demands() -> None:
    log = json.loads(rendered(failing()))["log"]
    assert log["version"] == "1.2"
    assert log["creator"] == {"name": "store-orders-conformance", "version": "0.1.0"}
    for entry in log["entries"]:
        assert datetime.fromisoformat(entry["startedDateTime"]).tzinfo
        assert entry["time"] == pytest.approx(sum(v for v in entry["timings"].values() if v > 0))
        assert entry.keys() >= {"request", "response", "cache", "comment", "_check", "_number", "_findings"}
        assert entry["request"].keys() >= {
            "method",
            "url",
            "httpVersion",
            "cookies",
            "headers",
            "queryString",
        }
        assert entry["response"].keys() >= {"status", "statusText", "httpVersion", "content", "redirectURL"}
        assert all(name.startswith("_") for name in entry.keys() - HAR_ENTRY)


HAR_ENTRY = {"startedDateTime", "time", "request", "response", "cache", "timings", "comment"}


def test_a_cut_body_has_its_size_and_digest() -> None:
    made = exchange(0, body="[" + " " * 100, body_size=500_000, body_cut=True, body_sha256="ab" * 32)
    content = json.loads(rendered(run([], (made,))))["log"]["entries"][0]["response"]["content"]
    assert content["size"] == 500_000
    assert "ab" * 32 in content["comment"]


def test_no_answer_is_status_zero_with_the_reason() -> None:
    response = json.loads(rendered(failing()))["log"]["entries"][3]["response"]
    assert response["status"] == 0
    assert "no answer in 5 s" in response["comment"]


def test_exchanges_come_in_the_order_of_their_numbers() -> None:
    made = replace(failing(), exchanges=tuple(reversed(failing().exchanges)))
    assert [e.number for e in har.read(rendered(made)).exchanges] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"log": {}}', '{"log": {"entries": [{}]}}', '{"log": {"entries": 3}}', b"\xff"]
)
def test_says_that_something_is_not_ours(text: str | bytes) -> None:
    with pytest.raises(har.HarError):
        har.read(text)


@pytest.mark.parametrize("odd", [True, 1e300, ["x"], {"a": 1}], ids=repr)
def test_what_has_another_type_is_refused_where_it_is_read(odd: Any) -> None:
    """The writers rely on the types, and would end with a trace."""
    document = json.loads(rendered(failing()))
    entry = document["log"]["entries"][0]
    for place, name in (
        (entry, "_check"), (entry, "_credential"), (entry, "_operation"), (entry, "_started"),
        (entry["request"], "url"), (entry["response"]["content"], "text"), (entry["response"]["headers"][0], "name"),
    ):  # fmt: skip
        kept, place[name] = place[name], odd
        with pytest.raises(har.HarError):
            har.read(json.dumps(document))
        place[name] = kept
    assert har.read(json.dumps(document)).exchanges == list(failing().exchanges)


def test_a_browsers_har_is_not_ours() -> None:
    document = json.loads(rendered(broken("x")))
    for entry in document["log"]["entries"]:
        del entry["_number"]
    with pytest.raises(har.HarError, match="not written by this suite"):
        har.read(json.dumps(document))
