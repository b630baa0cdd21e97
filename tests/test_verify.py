"""The vocabulary of the checks, where an answer may be odd and right."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from built import LIST, answered

from conformance import verify
from conformance.transport.answer import Answer

Order = dict[str, Any]


def listed(*orders: Order) -> Answer:
    return answered(LIST, 200, json.dumps(orders).encode())


A, B, NAMELESS = {"id": 1, "quantity": 1}, {"id": 2, "quantity": 2}, {"quantity": 2}


@pytest.mark.parametrize(
    ("before", "after", "raises"),
    [
        ([A, B], [A, B], None),
        ([A, B], [B, {**A, "quantity": 9}], verify.Failed),
        ([A, B], [A], verify.Failed),
        ([A], [A], verify.Inconclusive),
        # No field is required (section 2): an element without id may be any order, however many there were before.
        ([A, B], [A, NAMELESS], verify.Inconclusive),
        ([A, B, NAMELESS], [A, NAMELESS], verify.Inconclusive),
        ([A, B, NAMELESS], [NAMELESS], verify.Failed),
    ],
    ids=str,
)
def test_orders_listed_as_before(before: list[Order], after: list[Order], raises: type[BaseException] | None) -> None:
    known = verify.listing(listed(*before))
    with contextlib.nullcontext() if raises is None else pytest.raises(raises):
        verify.unchanged([1, 2], known, listed(*after), since="it was read")
