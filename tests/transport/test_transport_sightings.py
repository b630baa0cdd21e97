"""What may be ids in a listing that does not show them as the contract has it."""

from __future__ import annotations

import pytest
from patience import within

from conformance.contract.jsontext import NotJson
from conformance.contract.listing import Listing
from conformance.contract.transitions import State
from conformance.target import Mode
from conformance.transport.guard import Guard, Refused
from conformance.transport.sightings import MOST_WORDS, Sightings, sightings


def seen(body: bytes) -> Sightings:
    try:
        return sightings(body, Listing.read(body))
    except NotJson:
        return sightings(body, None)


@pytest.mark.parametrize(
    "body",
    [b"[]", b"null\n", b'[{"id": 7}, {"id": 8, "petId": 9}]', b'[{"id": 7, "further": {"id": "8"}}]', b'[{"id": 7.0}]'],
)
def test_plain_ids_are_all_that_there_is(body: bytes) -> None:
    assert seen(body) == Sightings()


@pytest.mark.parametrize(
    "body",
    [
        b'[{"id": "77"}]',
        b'[{"id": "77abc"}]',
        b'[{"id": "order-77"}]',
        b'[{"id": "\\u0037\\u0037"}]',
        '[{"id": "٧٧"}]'.encode(),
        b'[{"id": 77.25}]',
        b'[{"id": [[77]]}]',
        b'[{"id": {"value": 77}}]',
        b'[{"order": 77, "petId": 5}]',
        b'[{"77": {}}]',
        b"[77]",
        b'["77"]',
        b'[{"id": 77, "id": 5}]',
        b'{"orders": [{"id": 77}]}',
        b'[{"id": 77},]',
        b'[{"id": ' + b"1" * 5000 + b"77}]",
    ],
)
def test_what_could_be_an_id_is_taken_for_one(body: bytes) -> None:
    careful = Guard(Mode.GUARDED)
    careful.saw_listing([])
    found = seen(body)
    careful.remember(found.ids, unidentified=found.unidentified, incomplete=found.incomplete)
    assert not found.incomplete
    assert not careful.permits("77" if len(body) < 1000 else str(int("1" * 100 + "77") % 2**31))


def test_the_other_fields_of_an_order_are_no_ids() -> None:
    body = b'[{"petId": 77, "quantity": 78, "shipDate": "2026-11-21T12:00:00Z", "complete": true}]'
    assert seen(body) == Sightings(unidentified=True)


def test_an_order_without_an_id_may_have_any_that_is_in_common_use() -> None:
    careful = Guard(Mode.FULL)
    careful.saw_listing([])
    careful.hand_out([5], State.PENDING)
    careful.remember([], unidentified=True)
    assert careful.permits("5")
    assert careful.permits("5abc")
    assert careful.permits(str(5 + 2**32))
    with pytest.raises(Refused, match="listed without an id"):
        careful.check("DELETE", "/store/orders/6")


def test_ids_past_int64_may_have_been_clamped() -> None:
    assert 2**63 - 1 in seen(b'[{"id": 1%s}]' % (b"0" * 30)).ids


def test_more_than_can_be_looked_at() -> None:
    found = seen(b"[%s]" % b",".join(b'{"id": "%d"}' % number for number in range(MOST_WORDS + 1)))
    assert found.incomplete


@pytest.mark.parametrize("text", ["a", "1", "…", "-", "\\u0031", "1 ", "0x", "1e", "+1"])
def test_no_text_takes_long(text: str) -> None:
    body = (text * 1_000_000)[:1_000_000].encode()
    assert within(60, lambda: sightings(body, None))
