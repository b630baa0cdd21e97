"""Which orders have something in common with one that is cancelled, and which are cancelled among many."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from commands import command

from conformance.checks.cancelling.test_others import kin
from conformance.checks.many import inner
from conformance.contract.listing import Listing
from reference_server.messages import Request, Response
from reference_server.orders import Status
from reference_server.running import Running, build

DAY, OTHER_DAY = "2026-11-21T07:00:00Z", "2026-11-22T07:00:00Z"


@pytest.mark.parametrize(
    ("own", "others", "found"),
    [
        ({"petId": 4}, [{"petId": 4}, {"petId": 5}, {}], [1]),
        ({}, [{"petId": 4}, {}], [2]),  # the same pet: none
        ({"petId": 4, "shipDate": DAY}, [{"petId": 5, "shipDate": DAY}, {"shipDate": OTHER_DAY}], [1]),
        ({"petId": 4, "quantity": 1}, [{"quantity": 1}], []),
    ],
)
def test_kin(own: dict[str, Any], others: list[dict[str, Any]], found: list[int]) -> None:
    elements = [{"id": number, **element} for number, element in enumerate([own, *others])]
    listing = Listing.read(json.dumps(elements).encode())
    assert kin(listing, 0, range(len(elements))) == found


def test_who_is_not_listed_has_no_kin() -> None:
    listing = Listing.read(b'[{"id": 1}, {"id": 2}]')
    assert kin(listing, 1, [2, 3]) == [2]
    assert kin(listing, 3, [1, 2]) == []
    assert kin(None, 1, [1, 2]) == []


@pytest.mark.parametrize(
    ("count", "found"),
    [(0, []), (1, []), (2, []), (3, [1]), (4, [1, 2]), (5, [1, 3, 2]), (9, [1, 7, 2, 6])],
)
def test_inner_orders_are_neither_first_nor_last(count: int, found: list[int]) -> None:
    assert inner(list(range(count))) == found


def test_no_order_among_many_is_cancelled_again_as_if_for_the_first_time(tmp_path: Path) -> None:
    """With 48 orders there, one that is cancelled at the border of a page is next to the first that was placed."""
    service = build(b"key-of-many-orders", faults=[], variants=["answers-410-to-a-repeated-cancel"])
    service.store.place(40, Status.PENDING)
    with Running(service, states_port=0) as server:
        where = ("--base-url", server.base_url, "--states-url", str(server.states_url), "--api-key-env", "KEY_OF_MANY")
        done = command(tmp_path, "run", *where, "--only", "LIST-5,HTTP-1", KEY_OF_MANY="key-of-many-orders")
    assert done.status == 0, done.said


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_limit_on_requests_at_once_leaves_nothing_undecided(limit: int, tmp_path: Path) -> None:
    """Beyond so many it answers 503, and says nothing of when to come again."""
    service = build(b"key-of-few-at-once", faults=[], variants=[])
    places = threading.Semaphore(limit)
    inner = service.respond

    def respond(request: Request) -> Response:
        if not places.acquire(blocking=False):
            return Response(503)
        try:
            time.sleep(0.01 if request.method == "DELETE" else 0)  # long enough for those at once to meet
            return inner(request)
        finally:
            places.release()

    service.respond = respond
    with Running(service, states_port=0) as server:
        where = ("--base-url", server.base_url, "--states-url", str(server.states_url), "--api-key-env", "KEY_OF_FEW")
        only = ("--only", "CANCEL-1,CANCEL-3,CANCEL-6,CANCEL-7", "--budget", "quick")
        done = command(tmp_path, "run", *where, *only, KEY_OF_FEW="key-of-few-at-once")
    assert done.status == 0, done.said
