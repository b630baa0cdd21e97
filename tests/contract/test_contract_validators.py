"""Orders, errors and listings: what is right stays unobjected, what is wrong is named with its place."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract.jsontext import INT64, parse
from conformance.contract.validators import (
    ERROR_FIELDS,
    ORDER_FIELDS,
    SHOWN,
    Listing,
    error_problems,
    order_problems,
    shown,
)

INT64S = st.integers(INT64.start, INT64.stop - 1)
DATES = st.datetimes().map(lambda moment: f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}Z")
RIGHT = {
    "id": INT64S,
    "petId": INT64S,
    "quantity": st.integers(),
    "shipDate": DATES,
    "complete": st.booleans(),
}
FURTHER = st.dictionaries(
    st.text().filter(lambda name: name not in ORDER_FIELDS),
    st.none() | st.text() | st.lists(st.integers()),
    max_size=3,
)
ORDERS = st.builds(lambda known, further: {**known, **further}, st.fixed_dictionaries({}, optional=RIGHT), FURTHER)
NO_NUMBER: st.SearchStrategy[Any] = st.none() | st.booleans() | st.text() | st.just([]) | st.just({}) | st.just(0.5)
WRONG = {
    "id": NO_NUMBER | st.integers(INT64.stop) | st.integers(max_value=INT64.start - 1),
    "petId": NO_NUMBER | st.integers(INT64.stop) | st.integers(max_value=INT64.start - 1),
    "quantity": NO_NUMBER,
    "shipDate": st.none() | st.booleans() | st.integers() | st.just("2026-11-21") | st.just("soon") | st.just([]),
    "complete": st.none() | st.integers() | st.text() | st.just([]),
}
ERRORS = st.builds(
    lambda known, further: {**further, **known},
    st.fixed_dictionaries({"code": st.text(), "message": st.text(), "status": st.integers()}),
    FURTHER,
)
NO_OBJECT = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers(), max_size=2)


def read(value: Any) -> Any:
    """`value` as it comes out of a body."""
    return parse(json.dumps(value).encode()).value


def listing(elements: list[Any] | str) -> Listing:
    text = elements if isinstance(elements, str) else json.dumps(elements)
    found = Listing.of(parse(text.encode()))
    assert found is not None
    return found


@given(ORDERS)
def test_every_field_may_be_missing_and_others_be_there(order: dict[str, Any]) -> None:
    assert order_problems(read(order)) == []


@given(ORDERS, st.data(), st.sampled_from(ORDER_FIELDS))
def test_a_field_of_the_wrong_type_is_named(order: dict[str, Any], data: st.DataObject, name: str) -> None:
    value = data.draw(WRONG[name])
    (problem,) = order_problems(read({**order, name: value}))
    assert problem.startswith(f"{name} is ")


@given(NO_OBJECT)
def test_what_is_no_object_is_no_order_and_no_error(value: object) -> None:
    assert "not an object" in order_problems(read(value))[0]
    assert "not an object" in error_problems(read(value))[0]


@given(ERRORS)
def test_errors_may_have_further_fields(error: dict[str, Any]) -> None:
    assert error_problems(read(error)) == []


@given(ERRORS, st.sampled_from(ERROR_FIELDS))
def test_a_missing_field_of_an_error_is_named(error: dict[str, Any], name: str) -> None:
    assert error_problems(read({field: value for field, value in error.items() if field != name})) == [
        f"{name} is missing"
    ]


@given(ERRORS, st.sampled_from(ERROR_FIELDS), st.none() | st.booleans() | st.just([]) | st.just(0.5))
def test_a_wrong_field_of_an_error_is_named(error: dict[str, Any], name: str, value: object) -> None:
    (problem,) = error_problems(read({**error, name: value}))
    assert problem.startswith(f"{name} is ")


@pytest.mark.parametrize(
    ("field", "written", "problem"),
    [
        ("id", "9223372036854775807", None),
        ("id", "-9223372036854775808", None),
        ("id", "9223372036854775808", "id is 9223372036854775808, outside int64"),
        ("id", "3.0", None),
        ("id", "3e2", None),
        ("id", "3.5", "id is the number 3.5, not an integer"),
        ("id", "true", "id is the boolean true, not an integer"),
        ("id", "null", "id is null, not an integer"),
        ("id", '"3"', "id is the string '3', not an integer"),
        ("quantity", "9223372036854775808", None),  # no format: any integer
        ("quantity", "1" * 500, None),
        ("quantity", "-" + "1" * 5000, None),
        ("quantity", "0.5", "quantity is the number 0.5, not an integer"),
        ("complete", "1", "complete is the integer 1, not a boolean"),
        ("complete", '"true"', "complete is the string 'true', not a boolean"),
        ("shipDate", '"2026-11-21"', "shipDate is '2026-11-21', not an ISO 8601 date with time"),
        ("shipDate", "1795244400", "shipDate is the integer 1795244400, not a string"),
        ("shipDate", "{}", "shipDate is an object, not a string"),
        ("petId", "[1]", "petId is an array, not an integer"),
    ],
)
def test_fields_as_written(field: str, written: str, problem: str | None) -> None:
    assert order_problems(parse(f'{{"{field}": {written}}}'.encode()).value) == ([problem] if problem else [])


@given(st.lists(ORDERS | NO_OBJECT, max_size=8))
def test_every_element_is_judged(elements: list[Any]) -> None:
    """The number of problems is that of the elements, each judged alone; only SHOWN of a kind are spelled."""
    found = listing(elements)
    alone = sum(len(order_problems(element)) for element in found.elements)
    said = found.problems()
    if alone <= SHOWN:
        assert len(said) == alone
    assert bool(said) == bool(alone)


def test_the_last_of_many_elements_is_judged() -> None:
    assert listing([{}] * 50_000 + [{"complete": 1}]).problems() == [
        "element 50000: complete is the integer 1, not a boolean"
    ]


def test_problems_of_a_kind_are_counted() -> None:
    said = listing([{"id": "a", "complete": None}] * 5 + [{"id": 1}]).problems()
    assert said[:2] == [
        "element 0: id is the string 'a', not an integer",
        "element 0: complete is null, not a boolean",
    ]
    assert len(said) == 2 * SHOWN + 1
    assert said[-1] == "and 4 more of these kinds"


@given(st.lists(st.fixed_dictionaries({}, optional={"id": st.integers(0, 5)}), max_size=12))
def test_ids_of_a_listing(elements: list[dict[str, int]]) -> None:
    found = listing(elements)
    ids = [element["id"] for element in elements if "id" in element]
    assert found.ids == set(ids)
    assert found.without_id == len(elements) - len(ids)
    assert sorted(found.doubled_ids()) == sorted({number for number in ids if ids.count(number) > 1})


def test_ids_are_compared_by_value_and_exactly() -> None:
    assert listing('[{"id": 3}, {"id": 3.0}, {"id": 3e0}]').doubled_ids() == [3]
    assert listing([{"id": 2**53}, {"id": 2**53 + 1}]).doubled_ids() == []
    assert listing([{"id": True}, {"id": 1}]).doubled_ids() == []
    assert listing([{"id": "1"}, 1, None, [], {"id": None}]).without_id == 5


@pytest.mark.parametrize("body", ["{}", '{"orders": []}', "null", "3", '"[]"'])
def test_what_is_no_array_is_no_listing(body: str) -> None:
    assert Listing.of(parse(body.encode())) is None


def test_unconventional_dates_are_those_that_are_only_iso8601() -> None:
    elements = [{"shipDate": text} for text in ("2026-11-21T07:00:00Z", "2026-11-21T07:00:00", "soon")] + [
        {"shipDate": 1},
        {},
        3,
    ]
    assert listing(elements).unconventional_dates() == [
        "element 1: shipDate is '2026-11-21T07:00:00', ISO 8601 but not RFC 3339"
    ]


def test_unconventional_integers_and_doubled_names() -> None:
    body = '[{"id": 3.0, "petId": 4, "further": 5.0}, {"quantity": 6e0, "id": 0.5}, {"id": 1, "id": 1}, 7.0]'
    assert listing(body).unconventional_integers() == [
        "element 0: id is written 3.0",
        "element 1: quantity is written 6e0",
        "the name 'id' stands twice in one object",
    ]


@given(st.text() | st.integers() | st.lists(st.text()), st.integers(10, 100))
def test_quotations_are_cut(value: object, limit: int) -> None:
    text = shown(value, limit)
    assert len(text) <= limit + len("… (123456789 characters)")
    if len(repr(value)) <= limit:
        assert text == repr(value)


def test_a_large_listing_is_judged_in_good_time() -> None:
    element = {"id": 1, "petId": 2, "quantity": 3, "shipDate": "2026-11-21T07:00:00Z", "complete": True}
    body = json.dumps([{**element, "id": number} for number in range(20_000)]).encode()
    started = time.perf_counter()
    found = Listing.of(parse(body))
    assert found is not None
    assert found.problems() == [] == found.doubled_ids()
    assert len(found.by_id) == 20_000
    assert time.perf_counter() - started < 5
