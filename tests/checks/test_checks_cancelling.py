"""Which orders have something in common with one that is cancelled, which are cancelled among many, and what is looked
at later."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from commands import command
from held import held

from conformance.api import Taken
from conformance.checks import ids
from conformance.checks.cancelling import test_a_moment_later, test_identifiers
from conformance.checks.cancelling.steps import place_far
from conformance.checks.cancelling.test_a_moment_later import CERTAIN, COURSES, MOMENT, PATIENCE, UnderWay, follow
from conformance.checks.cancelling.test_others import kin
from conformance.checks.many_orders import inner
from conformance.contract.listing import Listing
from conformance.outcomes import Excluded, Failed, Inconclusive
from reference_server import amend
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


def test_a_firewall_that_wants_to_know_what_is_accepted_breaks_one_requirement(tmp_path: Path) -> None:
    """That a cancel needs neither a body nor a content type is another matter."""
    service = build(b"key-behind-a-firewall", faults=[], variants=[])
    amend.before(service, lambda request: None if "accept" in request.headers else Response(403))
    with Running(service, states_port=0) as server:
        where = ("--base-url", server.base_url, "--states-url", str(server.states_url), "--api-key-env", "KEY_BEHIND")
        only = ("--only", "CANCEL-10,HTTP-1", "--budget", "quick", "--report-dir", "reports")
        done = command(tmp_path, "run", *where, *only, KEY_BEHIND="key-behind-a-firewall")
    assert done.status == 1, done.said
    assert "FAILED HTTP-1" in done.said
    assert "INCONCLUSIVE CANCEL-10" in done.said
    assert "FAILED CANCEL-10" not in done.said


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


def test_a_limit_of_one_request_at_a_time_is_left_alone_where_cancels_are_slow(tmp_path: Path) -> None:
    """An order is placed, and listed, while a cancel is under way: that there is no room for that is no fault."""
    service = build(b"key-of-a-narrow-one")
    inner, room = service.respond, threading.Lock()

    def respond(request: Request) -> Response:
        if not room.acquire(blocking=False):
            return Response(503, b"busy", {"Content-Type": "text/plain"})
        try:
            time.sleep(0.03 if request.method == "DELETE" else 0)
            return inner(request)
        finally:
            room.release()

    service.respond = respond
    with Running(service, states_port=0) as server:
        where = ("--base-url", server.base_url, "--states-url", str(server.states_url), "--api-key-env", "NARROW")
        words = ("--only", "CANCEL-8,HTTP-1", "-n", "1", "--budget", "quick")
        done = command(tmp_path, "run", *where, *words, NARROW="key-of-a-narrow-one")
    assert done.status == 0, done.said


# --- what is looked at later


OWN, OF_ANY_CAUSE = "cancelling.reading_changes_nothing_later", next(iter(CERTAIN))


def course(*ends: Exception | None) -> Any:
    """Courses that end so, one after the other."""
    left = list(ends)

    def begin(*_: object) -> Iterator[None]:
        yield
        yield
        end = left.pop(0)
        if end is not None:
            raise end

    return begin


def test_orders_that_are_not_shown_by_their_ids_are_not_seen_to_change() -> None:
    session, api, orders = held()
    amend.orders(session.service, lambda _, fields: {"petId": fields["petId"]})
    reading = COURSES[OWN](api, orders)
    next(reading)
    with pytest.raises(Excluded, match="nothing could be seen to change"):
        next(reading)


def begun(found: Any, since: float) -> UnderWay:
    """The first of these courses, begun so many seconds ago."""
    first = found()
    next(first), next(first)
    return UnderWay({OWN: first, OF_ANY_CAUSE: first}, time.monotonic() - since)


def followed(monkeypatch: pytest.MonkeyPatch, check: str, found: Any, under_way: UnderWay) -> list[float]:
    """The seconds that pass while a check follows these courses."""
    monkeypatch.setitem(test_a_moment_later.COURSES, check, found)
    passed: list[float] = []
    follow(check, cast(Any, None), cast(Any, None), under_way, passed.append)
    return passed


def test_what_was_begun_long_ago_is_concluded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = course(None)
    assert followed(monkeypatch, OWN, found, begun(found, since=9)) == [0.0]


def test_what_was_begun_just_now_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = course(None)
    assert followed(monkeypatch, OWN, found, begun(found, since=0)) == [pytest.approx(MOMENT, abs=0.05)]


@pytest.mark.parametrize("end", [Failed("this", "that"), Inconclusive("no")])
@pytest.mark.parametrize(("since", "pause"), [(0.1, MOMENT), (1.5, 1.5), (60, PATIENCE)])
def test_what_went_wrong_is_done_once_more_in_as_much_time(
    monkeypatch: pytest.MonkeyPatch, end: Exception, since: float, pause: float
) -> None:
    found = course(end, None)
    assert followed(monkeypatch, OWN, found, begun(found, since))[1:] == [pytest.approx(pause, abs=0.1)]
    found = course(end, Failed("this", "that, again"))
    with pytest.raises(Failed, match="that, again"):
        followed(monkeypatch, OWN, found, begun(found, since))


def test_nothing_excuses_a_second_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    found = course(Failed("no success", "204"), None)
    with pytest.raises(Failed, match="204"):
        followed(monkeypatch, OF_ANY_CAUSE, found, begun(found, since=9))


def test_what_was_not_begun_is_followed_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(monkeypatch, OWN, course(None), UnderWay()) == [MOMENT]
    with pytest.raises(Failed):
        followed(monkeypatch, OWN, course(Failed("this", "that")), UnderWay())


@pytest.mark.parametrize("fault", ["ignores-the-fraction-of-an-id", "takes-an-ending-for-a-format"])
@pytest.mark.parametrize("taken", [range(1, 9), range(1, 1000), [5, 25, 456, 7_025]])
def test_malformed_ids_are_tried_whatever_ids_there_are(fault: str, taken: Iterable[int]) -> None:
    """The digits in one are those of no order."""
    session, api, orders = held(fault)
    service = session.service
    service.store.place_ids(taken, Status.PENDING)
    with pytest.raises(Failed, match="the id is malformed; received 204"):
        test_identifiers.test_aliases_of_an_id_cancel_nothing(api, orders)
    assert {order.id for order in service.store.all()} >= set(taken)


@pytest.mark.parametrize("taken", [range(1, 9), range(1, 1000)])
def test_every_kind_of_malformed_id_is_tried(taken: Iterable[int]) -> None:
    session, api, _ = held()
    session.service.store.place_ids(taken, Status.PENDING)
    tried = test_identifiers.cancel_kinds(api, ids.WITH_DIGITS)
    assert ids.WITH_DIGITS.keys() - tried.keys() <= {"a very long number"}  # which an order at the end may be meant by


@pytest.mark.parametrize(("least", "kinds"), [(-(2**63), 4), (0, 2), (2**63, 0)])
def test_far_orders_are_placed_as_far_as_the_provider_can(
    monkeypatch: pytest.MonkeyPatch, least: int, kinds: int
) -> None:
    """A store that counts from 1 has no ids below zero, and large ones all the same."""
    _, api, orders = held()
    place = orders.place

    def placed(ids_: list[int], *, shipped: bool = False) -> Taken:
        if min(ids_) < least:
            raise Excluded("the provider cannot choose ids")
        return place(ids_, shipped=shipped)

    monkeypatch.setattr(orders, "place", placed)
    with nullcontext() if kinds else pytest.raises(Excluded, match="no order can be placed with such an id"):
        pairs = place_far(api, orders)
        assert len(pairs) == kinds
        listed = api.listing().ids
        assert all(listed.issuperset(pair) for pair in pairs)
