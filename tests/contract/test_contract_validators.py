"""Orders, errors and listings: what is right stays unobjected, what is wrong is named with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract.jsontext import INT64, parse
from conformance.contract.validators import (
    ERROR_FIELDS,
    ORDER_FIELDS,
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
        ("quantity", "1e20", None),
        ("quantity", "-1E+400", None),
        ("quantity", "1e-1", "quantity is the number 1e-1, not an integer"),
        ("quantity", "0.5", "quantity is the number 0.5, not an integer"),
        ("id", "1e20", "id is 1e20, outside int64"),
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


def test_quotations_are_in_words_of_json() -> None:
    assert [shown(value) for value in (None, True, 1, "x")] == ["null", "true", "1", "'x'"]


@given(st.text() | st.integers() | st.lists(st.text()), st.integers(10, 100))
def test_quotations_are_cut(value: object, limit: int) -> None:
    text = shown(value, limit)
    assert len(text) <= limit + len("… (123456789 characters)")
    if len(repr(value)) <= limit:
        assert text == repr(value)
