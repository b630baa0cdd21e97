"""The listing as read: what is right stays unobjected, what is wrong is named with its index; the fast way and the
thorough way agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from patience import within
from test_contract_validators import NO_OBJECT, ORDERS

from conformance.contract.jsontext import INT64, NotJson, parse
from conformance.contract.listing import CHUNK, FEW, MANY, SHOWN, Listing, Order, alike, changes
from conformance.contract.validators import order_problems


def listing(elements: list[Any] | str) -> Listing:
    text = elements if isinstance(elements, str) else json.dumps(elements)
    found = Listing.read(text.encode())
    assert found is not None
    return found


PLAIN = {"id": 1, "petId": 2, "quantity": 3, "shipDate": "2026-11-21T07:00:00Z", "complete": True}
EXTENDED = {**PLAIN, "customer": "Jane Dœ", "gift": None}


def told(found: Listing | None) -> Any:
    """All that a listing tells."""
    if found is None:
        return None
    return (
        len(found.elements),
        {number: found.by_id[number] for number in found.by_id},
        found.ids,
        found.without_id,
        found.doubled_ids(),
        found.problems(),
        found.unconventional_dates(),
        found.unconventional_integers(),
        found.doubled_names,
    )


def agree(body: bytes) -> None:
    """Both ways say the same of `body`: the same listing, or that it is none."""
    said = []
    for way in (lambda: Listing.of(parse(body)), lambda: Listing.read(body)):
        try:
            said.append(told(way()))
        except NotJson as error:
            said.append(str(error))
    assert said[0] == said[1]


#: What may stand for a value: right, wrong, odd.
WRITTEN = st.sampled_from(
    [
        "1", "-0", "3.0", "1e2", "01", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 500,
        "true", "null", '"x"', '"\\ud800"', '"\\u0031"', "[]", "{}", "NaN", '"2026-11-21T07:00:00Z"',
        '"2026-11-21T07:00:00"', '"2026-02-30T07:00:00Z"', '"2026-12-31T23:59:60Z"', '"2026-12-31t23:59:59z"', '"id"',
        '"2026-W47-6T07:00:00Z"', '"a\tb"',
    ]
)  # fmt: skip
NAMES = st.sampled_from(["id", "petId", "quantity", "shipDate", "complete", "further", "\\u0069d", ""])
OBJECTS = st.lists(st.tuples(NAMES, WRITTEN), max_size=6).map(
    lambda pairs: "{" + ",".join(f'"{name}": {value}' for name, value in pairs) + "}"
)


#: What may come before it, so often that the thorough way would be long.
BEFORE = st.sampled_from([[], [PLAIN], [PLAIN] * MANY, [EXTENDED] * MANY, [PLAIN, EXTENDED] * MANY])


@given(st.lists(OBJECTS | WRITTEN, max_size=4), BEFORE)
def test_both_ways_agree_on_whatever_is_written(elements: list[str], before: list[Any]) -> None:
    agree(f"[{','.join([*map(json.dumps, before), *elements])}]".encode())


@given(st.lists(ORDERS | NO_OBJECT, max_size=4), BEFORE, st.data())
def test_both_ways_agree_on_damaged_bytes(elements: list[Any], ahead: list[Any], data: st.DataObject) -> None:
    body = json.dumps([*ahead, *elements, PLAIN]).encode()
    place = data.draw(st.integers(max(0, len(body) - 200), len(body) - 1))
    agree(body[:place] + data.draw(st.binary(max_size=2)) + body[place + 1 :])


@given(st.binary(max_size=20))
@example(b"")
@example(b"\xef\xbb\xbf[]")
@example(b"[" * 100_000)
@example(b"[" + b'{"quantity": ' + b"1" * 5_000 + b"}]")
def test_both_ways_agree_on_anything(body: bytes) -> None:
    agree(body)


def test_further_fields_are_nothing_odd() -> None:
    """Elements that have some are not looked at one by one."""
    found = listing([{**PLAIN, "further": number} for number in range(3 * FEW)])
    assert found._odd == []
    assert found.problems() == []
    assert found.by_id[PLAIN["id"]]["further"] == 3 * FEW - 1
    odd = listing([{**PLAIN, "further": number} for number in range(FEW)] + [{"id": 7, "further": 1, "complete": 1}])
    assert odd.problems() == [f"element {FEW}: complete is the integer 1, not a boolean"]


def test_only_what_stands_near_something_odd_is_looked_at_closely() -> None:
    found = listing([PLAIN] * CHUNK + [{"id": 3, "further": 1}])
    assert [type(element) for element in found.elements[-2:]] == [Order, dict]
    assert listing([PLAIN] * 3 + [{"id": INT64.stop}]).problems() == [f"element 3: id is {INT64.stop}, outside int64"]


@given(st.lists(ORDERS | NO_OBJECT, max_size=8))
def test_every_element_is_judged(elements: list[Any]) -> None:
    """The number of problems is that of the elements, each judged alone; only SHOWN of a kind are spelled."""
    found = listing(elements)
    alone = sum(len(order_problems(element)) for element in elements)
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
    found = listing([{"id": "1"}, 1, None, [], {"id": None}, {}, {"id": 7}])
    assert (found.without_id, found.odd_ids) == (6, 2)
    assert listing([{}, {"id": 7}]).odd_ids == 0


@pytest.mark.parametrize("body", ["{}", '{"orders": []}', "null", "3", '"[]"'])
def test_what_is_no_array_is_no_listing(body: str) -> None:
    assert Listing.read(body.encode()) is None


def test_unconventional_dates_are_those_that_are_only_iso8601() -> None:
    elements = [{"shipDate": text} for text in ("2026-11-21T07:00:00Z", "2026-11-21T07:00:00", "soon")] + [
        {"shipDate": 1},
        {},
        3,
    ]
    assert listing(elements).unconventional_dates() == [
        "element 1: shipDate is '2026-11-21T07:00:00', which is not RFC 3339"
    ]


def test_unconventional_integers_and_doubled_names() -> None:
    body = '[{"id": 3.0, "petId": 4, "further": 5.0}, {"quantity": 6e0, "id": 0.5}, {"id": 1, "id": 1}, 7.0]'
    assert listing(body).unconventional_integers() == [
        "element 0: id is written 3.0",
        "element 1: quantity is written 6e0",
        "the name 'id' occurs twice in one object",
    ]


def test_a_large_listing_is_judged_in_good_time() -> None:
    element = {"id": 1, "petId": 2, "quantity": 3, "shipDate": "2026-11-21T07:00:00Z", "complete": True}
    body = json.dumps([{**element, "id": number} for number in range(20_000)]).encode()

    def judge() -> None:
        found = Listing.read(body)
        assert found is not None
        assert found.problems() == [] == found.doubled_ids()
        assert len(found.by_id) == 20_000

    assert within(100, judge)


def test_alike_is_what_agrees_in_the_fields_of_the_contract() -> None:
    order = {"id": 1, "petId": 2, "quantity": 3, "shipDate": "2026-03-01T12:00:00Z", "complete": False}
    assert alike(order, {**order, "shipDate": "2026-03-01T13:00:00+01:00", "age": 4}, shipped=True)
    other = {**order, "complete": not order["complete"]}
    assert alike(order, other, shipped=True, later=True)  # fulfilled meanwhile
    assert not alike(order, other, shipped=True)
    assert not alike(order, other, later=True)
    assert alike(order, {**order, "shipDate": "2026-03-02T12:00:00Z"})  # expected, and reckoned from others
    for changed in (
        {"petId": 3},
        {"quantity": 4},
        {"shipDate": "2026-03-01T12:00:01Z"},
        {"shipDate": "2026-03-01T12:00:00"},  # a local time: of no offset that is known
        {"shipDate": "soon"},
        {"shipDate": None},
        {"complete": True},
    ):
        assert not alike(order, {**order, **changed}, shipped=True)
    large = listing('[{"id": 9007199258379235}]').by_id
    for text, same in (("9007199258379235e0", True), ("9007199258379235.0", True), ("9007199258379236e0", False)):
        assert alike(*large.values(), *listing(f'[{{"id": {text}}}]').by_id.values()) is same
    for name in order:  # none is required
        assert alike(order, {key: value for key, value in order.items() if key != name})


def test_changes_are_told_by_the_fields_that_differ() -> None:
    before = listing('[{"id": 1, "quantity": 2, "complete": false, "note": "a"}]').by_id[1]
    now = listing('[{"id": 1, "quantity": 2.0e0, "complete": true, "note": "b"}]').by_id[1]
    assert changes({**now, "quantity": 2}, before) == '{"complete": true} where {"complete": false} was'
    now = listing('[{"id": 1, "quantity": 3.0}]').by_id[1]
    assert changes(now, before) == '{"quantity": 3.0} where {"quantity": 2} was'
    assert changes(None, "é\ud800") == 'null where "é\\ud800" was'
    now, before = {"petId": ["x", None]}, {"petId": {"a": 1}}
    assert changes(now, before) == '{"petId": ["x", null]} where {"petId": {"a": 1}} was'
