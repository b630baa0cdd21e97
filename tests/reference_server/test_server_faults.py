"""The catalogues of faults and variants, and that each of them does something."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge import Judge
from served import AUTHORIZED
from transcript import KEY, LIST, conversation, orders_in, served, transcript

from reference_server.api import Service
from reference_server.faults import FAULTS
from reference_server.messages import Request
from reference_server.orders import Status
from reference_server.running import Running
from reference_server.variants import VARIANTS

ROOT = Path(__file__).parents[2]
CORRECT = transcript(served())


def requirement_ids() -> set[str]:
    """The ids of the requirements, as the catalogue of the suite has them."""
    catalogue = tomllib.loads((ROOT / "conformance/contract/requirements.toml").read_text(encoding="utf-8"))
    return {row["id"] for row in catalogue["requirement"]}


def test_every_requirement_has_faults() -> None:
    counts = Counter(fault.requirement for fault in FAULTS.values())
    assert counts.keys() == requirement_ids() - {"BASE-2"}  # its scheme is the deployment's: no server can break it
    assert min(counts.values()) >= 2


@pytest.mark.parametrize("catalogue", [FAULTS, VARIANTS], ids=["faults", "variants"])
def test_names_and_descriptions_are_for_people(catalogue: dict[str, object]) -> None:
    descriptions = [str(getattr(entry, "description", "")) for entry in catalogue.values()]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name) for name in catalogue)
    assert all(text[0].isupper() and text.endswith(".") and "\n" not in text for text in descriptions)
    assert len(set(descriptions)) == len(descriptions)


def test_variants_leave_recommended_requirements_only() -> None:
    assert {name for variant in VARIANTS.values() for name in variant.leaves} <= {
        "AUTH-8",
        "CANCEL-11",
        "ERR-5",
        "LIST-10",
    }


def test_the_conversation_is_the_same_each_time() -> None:
    assert transcript(served()) == CORRECT
    assert b'"shipDate"' in CORRECT[-7][1]
    assert orders_in(CORRECT[-1][1]) == []


RACES = {name for name, fault in FAULTS.items() if fault.requirement == "CANCEL-7"}
LOST_UPDATE = "writes-back-all-orders-as-it-read-them"
LOST_TO_ANOTHER = "loses-a-cancel-to-another-order"
ONE_BUFFER = "writes-long-listings-into-one-buffer"
PAGES_BY_OFFSET = "reads-pages-by-offset"
SHIPPED_FOR_TWO = "cancels-shipped-orders-for-two-at-once"
SKIPS_LOCKED = "leaves-out-shipped-orders-that-are-being-refused"
READ_BEFORE = "keeps-a-listing-that-was-read-before-an-order-was-placed"
PLACED_MEANWHILE = ("fails-to-list-while-an-order-is-placed", "joins-listings-of-the-same-key")
ALONE = {LOST_UPDATE, LOST_TO_ANOTHER, ONE_BUFFER, PAGES_BY_OFFSET, SHIPPED_FOR_TWO, SKIPS_LOCKED, READ_BEFORE}
PLACED_DURING_A_CANCEL = "writes-back-what-it-read-without-what-was-placed"
LOST_TO_A_LISTING = "writes-back-what-it-read-for-a-listing"
DRAINED = {"fails-when-its-pool-is-drained": 500, "lets-in-whom-it-has-no-connection-to-look-up": 200}
ALONE |= {PLACED_DURING_A_CANCEL, *PLACED_MEANWHILE, LOST_TO_A_LISTING, *DRAINED}
AMONG_OTHERS = {
    "fails-to-list-what-changes-meanwhile",
    "joins-cancels-whoever-asks",
    "joins-listings-whoever-asks",
    "keeps-what-a-key-is-worth-in-one-place",
    "leaves-out-newer-orders-while-it-cancels",
    "lists-nothing-while-it-cancels",
}


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - RACES - AMONG_OTHERS - ALONE))
def test_a_fault_shows_itself(name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()  # some faults depend on the time: a quarter of a second passes at each look
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 4)
    found = conversation(served(faults=(name,)))
    assert any(one != other for one, other in zip(found, CORRECT, strict=True))
    assert capfd.readouterr().err == "", "no fault may break the service itself"


def cancel(service: Service, order_id: int) -> int:
    return service.answer(Request("DELETE", f"{LIST}/{order_id}", "", {"authorization": f"Bearer {KEY}"})).status


def refuses(service: Service, order_id: int) -> bool:
    """Whether a cancel without the key is refused."""
    return service.answer(Request("DELETE", f"{LIST}/{order_id}", "", {})).status == 401


def cancel_at_once(service: Service, order_ids: list[int]) -> list[int]:
    """The statuses of cancels that begin together."""
    return at_once([partial(cancel, service, order_id) for order_id in order_ids])


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What calls give that begin together."""
    start = threading.Barrier(len(calls))

    def work(call: Callable[[], Any]) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(work, calls))


@pytest.mark.parametrize("name", sorted(RACES))
def test_a_race_shows_itself(name: str) -> None:
    service = served(faults=(name,))
    for order_id in service.store.place(20, Status.PENDING):
        if cancel_at_once(service, [order_id] * 6).count(204) != 1 or service.store.get(order_id) is not None:
            return
    pytest.fail("never more or fewer than one success, nor an order that was back")


@pytest.mark.parametrize(("faults", "lost"), [((), False), ((LOST_UPDATE,), True)])
def test_a_lost_update_shows_itself(faults: tuple[str, ...], lost: bool) -> None:
    service = served(faults=faults)
    orders = service.store.place(6, Status.PENDING)
    assert cancel_at_once(service, orders) == [204] * 6
    assert (204 in [cancel(service, order) for order in orders]) is lost


@pytest.mark.parametrize(("faults", "lost"), [((), False), ((LOST_TO_A_LISTING,), True)])
def test_an_update_lost_to_a_listing_shows_itself(faults: tuple[str, ...], lost: bool) -> None:
    service = served(faults=faults)
    look = Request("GET", LIST, "", {"authorization": f"Bearer {KEY}"})
    again = []
    for order in service.store.place(20, Status.PENDING):  # that the listing has begun by then is a matter of chance
        at_once([partial(service.answer, look), lambda order=order: (time.sleep(0.005), cancel(service, order))])
        again.append(cancel(service, order))
    assert (204 in again) is lost


@pytest.mark.parametrize(("faults", "lost"), [((), False), ((LOST_TO_ANOTHER,), True)])
def test_a_cancel_lost_to_another_shows_itself(faults: tuple[str, ...], lost: bool) -> None:
    service = served(faults=faults)
    orders = service.store.place(6, Status.PENDING)
    assert (404 in cancel_at_once(service, orders)) is lost


@pytest.mark.parametrize(("faults", "cancelled"), [((), False), ((SHIPPED_FOR_TWO,), True)])
def test_a_shipped_order_cancelled_for_two_shows_itself(faults: tuple[str, ...], cancelled: bool) -> None:
    service = served(faults=faults)
    (order,) = service.store.place(1, Status.SHIPPED)
    assert cancel(service, order) == 409
    assert (204 in cancel_at_once(service, [order] * 6)) is cancelled


@pytest.mark.parametrize(("faults", "lacking"), [((), False), ((SKIPS_LOCKED,), True)])
def test_an_order_that_is_being_refused_shows_itself(faults: tuple[str, ...], lacking: bool) -> None:
    service = served(faults=faults)
    (order,) = service.store.place(1, Status.SHIPPED)
    look = partial(right, service, KEY, order)
    assert look()
    seen = [at_once([partial(cancel, service, order), *[look] * 4])[1:] for _ in range(10)]
    assert all(map(all, seen)) is not lacking


@pytest.mark.parametrize(("faults", "mixed"), [((), False), ((ONE_BUFFER,), True)])
def test_a_shared_buffer_shows_itself(faults: tuple[str, ...], mixed: bool) -> None:
    service = served(faults=faults)
    service.store.place(600, Status.PENDING)
    request = Request("GET", LIST, "", {"authorization": f"Bearer {KEY}"})
    bodies = [response.body for response in at_once([partial(service.answer, request)] * 6)]
    assert any(not body.endswith(b"]") for body in bodies) is mixed
    assert service.answer(request).body.endswith(b"]")


@pytest.mark.parametrize(("fault", "status"), [*DRAINED.items()])
def test_a_pool_that_is_drained_shows_itself(fault: str, status: int) -> None:
    for faults, crowd, found in (((), 24, {401}), ((fault,), 10, {401}), ((fault,), 24, {401, status})):
        ask = partial(served(faults=faults).answer, Request("GET", LIST, "", {}))
        assert {response.status for response in at_once([ask] * crowd)} == found


@pytest.mark.parametrize(("faults", "loses"), [((), False), ((PAGES_BY_OFFSET,), True)])
def test_an_order_lost_between_pages_shows_itself(
    faults: tuple[str, ...], loses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(faults=faults)
    first, *others = service.store.place(1000, Status.PENDING)
    monkeypatch.setattr(time, "sleep", lambda _: cancel(service, first))  # it reads, and waits a moment
    listing = service.answer(Request("GET", LIST, "", {"authorization": f"Bearer {KEY}"}))
    assert bool({*others} - {order["id"] for order in json.loads(listing.body)}) is loses


@pytest.mark.parametrize(("faults", "hidden"), [((), False), ((READ_BEFORE,), True)])
def test_a_listing_read_before_an_order_was_placed_shows_itself(
    faults: tuple[str, ...], hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(faults=faults)
    placed: list[int] = []
    look = Request("GET", LIST, "", {"authorization": f"Bearer {KEY}"})
    monkeypatch.setattr(time, "sleep", lambda _: placed.extend(service.store.place(1, Status.PENDING)))  # as it reads
    service.answer(look)
    monkeypatch.undo()
    placed += service.store.place(0 if placed else 1, Status.PENDING)
    assert (placed[0] in {order["id"] for order in json.loads(service.answer(look).body)}) is not hidden


@pytest.mark.parametrize(("faults", "lost"), [((), False), ((PLACED_DURING_A_CANCEL,), True)])
def test_an_order_placed_during_a_cancel_shows_itself(
    faults: tuple[str, ...], lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(faults=faults)
    (order,) = service.store.place(1, Status.PENDING)
    placed: list[int] = []
    monkeypatch.setattr(time, "sleep", lambda _: placed.extend(service.store.place(1, Status.PENDING)))
    assert cancel(service, order) == 204
    assert bool(placed and service.store.get(placed[0]) is None) is lost


@pytest.mark.parametrize(("faults", "wrong"), [((), False), *(((name,), True) for name in PLACED_MEANWHILE)])
def test_an_order_placed_during_a_listing_shows_itself(
    faults: tuple[str, ...], wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(faults=faults)
    found: list[bool] = []
    look = Request("GET", LIST, "", {"authorization": f"Bearer {KEY}"})

    def meanwhile(_: float) -> None:
        if not found:
            found.append(True)
            found.append(right(service, KEY, *service.store.place(1, Status.PENDING)))

    monkeypatch.setattr(time, "sleep", meanwhile)
    found.append(service.answer(look).status == 200)
    assert all(found) is not wrong


def right(service: Service, key: str, order_id: int) -> bool:
    """Whether a listing is answered as its key deserves, and shows an order."""
    response = service.answer(Request("GET", LIST, "", {"authorization": f"Bearer {key}"}))
    if key != KEY:
        return response.status == 401
    return response.status == 200 and order_id in [order["id"] for order in json.loads(response.body)]


@pytest.mark.parametrize(("faults", "wrong"), [((), False), *(((name,), True) for name in sorted(AMONG_OTHERS))])
def test_what_is_wrong_among_other_requests_shows_itself(faults: tuple[str, ...], wrong: bool) -> None:
    service = served(faults=faults)
    *orders, kept = service.store.place(11, Status.PENDING)
    looks = [partial(right, service, key, kept) for key in (KEY, "wrong")]
    assert all(look() for look in looks)
    found = [
        at_once([*looks, partial(cancel, service, order), partial(refuses, service, order), *looks]) for order in orders
    ]
    assert all(map(all, found)) is not wrong  # of the cancels there is the status, which is no matter


SLOW = {"is-slow", "is-slow-now-and-then", "cancels-slowly"}


def test_the_correct_service_breaks_nothing() -> None:
    assert Judge(served()).judge() == set()


@pytest.mark.parametrize("name", sorted(VARIANTS.keys() - SLOW))
def test_a_variant_breaks_nothing_required(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert Judge(served(variants=(name,))).judge() == set()
    assert capfd.readouterr().err == ""


OVER_THE_WIRE = sorted(name for name, variant in VARIANTS.items() if variant.install.__module__.endswith(".protocol"))


@pytest.mark.parametrize("name", OVER_THE_WIRE)
def test_an_ordinary_client_understands_a_variant(name: str) -> None:
    with Running(served(variants=(name,))) as running, httpx.Client(headers=AUTHORIZED) as client:
        url = running.base_url + "/store/orders"
        for _ in range(2):
            assert client.get(url).json()[0]["id"] == 101
            assert client.delete(url + "/102").json()["status"] == 409
        assert client.delete(url + "/101").status_code == 204
        assert client.delete(url + "/101").json()["status"] == 404


def test_faults_and_variants_combine_and_are_served() -> None:
    service = served(("ends-the-array-with-null", "sends-json-after-204"), ("sends-chunks", "lists-backwards"))
    with Running(service) as running:
        assert running.base_url.endswith("/v1")
    assert transcript(service) != CORRECT
