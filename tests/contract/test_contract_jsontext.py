"""JSON texts: what RFC 8259 admits is read as `json` reads it, everything else is refused with a reason."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import within

from conformance.contract import jsontext
from conformance.contract.jsontext import (
    INT64,
    MAX_DEPTH,
    NotJson,
    Number,
    TooDeep,
    integer,
    parse,
    type_name,
    values,
)

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 2]))
def test_reads_what_json_writes(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    read = parse(text.encode("utf-8", "surrogatepass" if ascii_only else "replace"))
    assert read.value == json.loads(text.encode("utf-8", "replace"))
    assert read.doubled_names == []


@given(VALUES)
def test_types_survive(value: Any) -> None:
    """A boolean is no integer and 3.0 is no 3: both compare equal in Python, so equality does not show it."""

    def shape(item: Any) -> Any:
        if isinstance(item, dict):
            return {name: shape(inner) for name, inner in item.items()}
        return [shape(inner) for inner in item] if isinstance(item, list) else type_name(item)

    read = parse(json.dumps(value).encode()).value
    assert shape(read) == shape(json.loads(json.dumps(value), parse_float=Number))


@given(st.text(st.sampled_from('[]{}",:0123456789.eE+-truefalsn\\u \n\t'), max_size=20) | st.text(max_size=20))
def test_agrees_with_json_on_what_is_json(text: str) -> None:
    """What `json` refuses is refused; what it takes is taken, save what it should not take."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    body = text.encode("utf-8", "replace")
    try:
        expected = json.loads(body.decode(), parse_constant=refuse)
    except ValueError:
        with pytest.raises(NotJson):
            parse(body)
    else:
        assert parse(body).value == expected


@given(st.binary(max_size=30))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        parse(body)
    except NotJson as error:
        reason = str(error)
    else:
        reason = "read"
    assert reason


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b" \r\n\t", "empty"),
        (b"\xef\xbb\xbf[]", "byte-order mark"),
        ('["ü"]'.encode("latin-1"), "not UTF-8: .* at byte 2"),
        ("[]".encode("utf-16"), "not UTF-8"),
        (b'["\xed\xa0\x80"]', "not UTF-8"),
        (b"[NaN]", "NaN is no JSON value"),
        (b"[Infinity]", "Infinity is no JSON value"),
        (b"[-Infinity]", "-Infinity is no JSON value"),
        (b"[] []", "Extra data at line 1 column 4"),
        (b"[]\0", "Extra data"),
        (b"[],", "Extra data"),
        (b"[1,]", "line 1 column"),
        (b"{'a': 1}", "line 1 column 2"),
        (b"[01]", "line 1 column 3"),
        (b"[+1]", "line 1 column 2"),
        (b"[.5]", "line 1 column 2"),
        (b"[1.]", "line 1 column 3"),
        (b"[0x10]", "line 1 column 3"),
        (b'["\n"]', "control character"),
        (b'["\\x"]', "escape"),
        (b"\xc2\xa0[]", "line 1 column 1"),
        (b"[1 /* one */]", "line 1 column 4"),
        (b'["a\nb"]', "Invalid control character at line 1 column 4"),
        (b"undefined", "line 1 column 1"),
        (b"[" * 200_000, "brackets do not match"),
        (b'{"a":' * 200_000, "brackets do not match"),
    ],
)
def test_what_is_no_json_text(body: bytes, said: str) -> None:
    with pytest.raises(NotJson, match=said):
        parse(body)


def test_lone_surrogates_are_read() -> None:
    """RFC 8259 section 8.2 admits them by its grammar; what they mean is nobody's to say."""
    assert parse(b'["\\ud800"]').value == ["\ud800"]


@pytest.mark.parametrize(
    ("body", "doubled"),
    [
        (b'{"a": 1, "a": 2}', ["a"]),
        (b'{"a": 1, "\\u0061": 2}', ["a"]),
        (b'[{"a": 1, "a": 1, "a": 1, "b": 0, "b": 0}]', ["a", "b"]),
        (b'[{"a": {"c": 1, "c": 2}}, {"a": 3}]', ["c"]),
        (b'[{"a": 1}, {"a": 1}]', []),
    ],
)
def test_doubled_names_are_kept_in_mind(body: bytes, doubled: list[str]) -> None:
    assert parse(body).doubled_names == doubled


def test_of_doubled_names_the_last_counts() -> None:
    assert parse(b'{"a": 1, "a": 2}').value == {"a": 2}


def test_many_doubled_names_are_found_quickly() -> None:
    """In one pass over the names: a service that repeats one does not stop the suite."""
    body = ("{" + ",".join(f'"n{i}":0' for i in range(20_000)) + ',"n0":0}').encode()
    assert parse(body).doubled_names == ["n0"]
    assert within(40, lambda: parse(body))  # not quadratic


@given(st.integers())
def test_integers_are_exact(number: int) -> None:
    assert integer(parse(str(number).encode()).value) == number


@pytest.mark.parametrize("rest", [b",]", b", NaN]", b', "\n"]', b"", b', {"a": ' * 199])
def test_what_follows_a_long_integer_is_looked_at_all_the_same(rest: bytes) -> None:
    with pytest.raises(NotJson):
        parse(b"[" + b"9" * 5_000 + rest)


@pytest.mark.parametrize("digits", [5_000, 200_000])
def test_integers_of_any_length_are_read(digits: int) -> None:
    """Python refuses to convert more than 4,300 digits; the JSON text is one all the same."""
    value = parse(b"-" + b"9" * digits).value
    assert isinstance(value, Number)
    assert value.text == "-" + "9" * digits
    assert integer(value) is None


@given(st.integers(INT64.start, INT64.stop - 1), st.integers(0, 30))
def test_integers_by_value(number: int, zeros: int) -> None:
    """`3.0`, `3e0`, `0.3e1`: the integer three, written otherwise."""
    digits, sign = str(abs(number)), "-" if number < 0 else ""
    spellings = [
        f"{number}.{'0' * (zeros + 1)}",
        f"{number}e0",
        f"{sign}0.{digits}E+{len(digits)}",
        f"{number}{'0' * zeros}e-{zeros}",
    ]
    for spelling in spellings:
        assert integer(parse(spelling.encode()).value) == number, spelling


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_fractions_are_no_integers(number: Decimal) -> None:
    text = f"{number:e}"
    value = parse(text.encode()).value
    expected = int(number) if number in (-(2**63), *[number.to_integral_value()]) and int(number) in INT64 else None
    assert integer(value) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-1e400",
        "1e999999999999999999999",
        "9223372036854775808.0",
        "1e-999999999999999999999",
        "0.1",
    ],
)
def test_numbers_out_of_reach_are_no_integers(text: str) -> None:
    value = parse(text.encode()).value
    assert isinstance(value, Number)
    assert value.integral is None
    assert value.text == text
    assert not math.isnan(value)


@pytest.mark.parametrize("value", [True, False, None, "3", [3], {"a": 3}])
def test_other_values_are_no_integers(value: object) -> None:
    assert integer(value) is None


def nested(depth: int) -> bytes:
    """Arrays and objects in turn, so many levels deep, beside strings that hold brackets."""
    pairs = [(b'{"]": "[[", "a":', b"}") if level % 2 else (b'["}\\"]", ', b"]") for level in range(depth)]
    return b"".join(start for start, _ in pairs) + b"1" + b"".join(end for _, end in reversed(pairs))


def test_nesting_is_read_to_its_limit_and_past_it_left_open() -> None:
    assert parse(nested(MAX_DEPTH)).value
    with pytest.raises(TooDeep, match=r"deeper than 200 levels, .* \(RFC 8259 section 9\)"):
        parse(nested(MAX_DEPTH + 1))
    assert parse(b"[" + b"[{}]," * 1000 + b'"' + b"[" * 1000 + b'"]')
    with pytest.raises(NotJson, match="line 1"):
        parse(nested(MAX_DEPTH)[:-1] + b",")


@pytest.mark.parametrize("bracket", [b"[]", b"{}"])
def test_a_tower_of_brackets_takes_time_by_its_height(bracket: bytes) -> None:
    """Eight times as high, it takes about eight times as long, with room for three times more than that."""

    def climb(height: int) -> None:
        with pytest.raises(NotJson):
            parse(bracket[:1] * height + bracket[1:] * height)

    assert within(24, lambda: climb(400_000), lambda: climb(50_000))


def test_values_are_found_however_deep() -> None:
    found = list(values(parse(b'{"a": [1, 2.0, {"b": [true, null, "4"]}], "c": [[]], "d": {}}').value))
    containers = [item for item in found if isinstance(item, dict | list)]
    assert sorted(repr(item) for item in found if item not in containers) == ["'4'", "1", "2.0", "None", "True"]
    assert sorted(map(len, containers)) == [0, 0, 1, 1, 3, 3, 3]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"null", "null"),
        (b"true", "boolean"),
        (b"3", "integer"),
        (b"3.0", "number"),
        (b'"3"', "string"),
        (b"[]", "array"),
        (b"{}", "object"),
    ],
)
def test_types_have_the_names_of_json(body: bytes, name: str) -> None:
    assert type_name(parse(body).value) == name


def test_the_limit_of_digits_is_below_that_of_python() -> None:
    assert jsontext.MAX_DIGITS < 4300
