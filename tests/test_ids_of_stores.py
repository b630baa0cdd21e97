"""Stores that give ids again, whose counter follows chosen ids, or whose orders come late: found before the first
check."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from commands import WITHOUT_OTHERS, command, inherited
from patience import PATIENCE

from conformance.check import all_checks
from conformance.contract.jsontext import INT64
from conformance.runner import preflight
from conformance.runner.collect import RUN_AGAIN
from conformance.runner.direct import DirectSession
from conformance.runner.reference import Address
from conformance.states.provider import CannotDo, Provider, ProviderError, given_meanwhile
from conformance.target import Mode, Secret, States, Target
from reference_server import amend
from reference_server.api import Service
from reference_server.messages import Response
from reference_server.orders import Order, OrderStore, Outcome, Status, sample_order
from reference_server.running import Running, build

KEY = "key-of-a-store-with-ids"
CHOOSING = {check.id for check in all_checks() if check.needs.chosen_ids}


class Again(OrderStore):
    """Gives an order the largest id and one, or any where that is taken, as SQLite does without AUTOINCREMENT."""

    def place(self, count: int, status: Status) -> list[int]:
        with self._lock:
            return [self.place_ids([self._above()], status)[0] for _ in range(count)]

    def _above(self) -> int:
        largest = max((order.id for order in self.all()), default=0)
        return largest + 1 if largest + 1 in INT64 else random.randrange(1, 2**62)


class Keeping(Again):
    """The same with rows that stay when their order is cancelled, until the provider removes them."""

    def __init__(self, orders: Iterable[Order] = ()) -> None:
        super().__init__(orders)
        self.rows = {order.id for order in self.all()}

    def _above(self) -> int:
        largest = max(self.rows, default=0)
        return largest + 1 if largest + 1 in INT64 else random.randrange(1, 2**62)

    def place_ids(self, ids: Iterable[int], status: Status) -> list[int]:
        placed = super().place_ids(ids, status)
        self.rows.update(placed)
        return placed

    def remove(self, ids: Iterable[int]) -> None:
        returned = list(ids)
        super().remove(returned)
        self.rows -= set(returned)

    def clear(self) -> None:
        super().clear()
        self.rows.clear()


class LowestFree(Again):
    """Gives an order the lowest id from 1 on that is free."""

    def _above(self) -> int:
        return next(number for number in itertools.count(1) if self.get(number) is None)


class GivesZero(Again):
    """Gives the next order the id 0 whenever that is free."""

    place_of_list = 0

    def _above(self) -> int:
        return super()._above() if self.get(self.place_of_list) else self.place_of_list


class GivesMinusOne(GivesZero):
    """Gives the next order the id -1 whenever that is free."""

    place_of_list = -1


class Pool(OrderStore):
    """Has a few ids, each of which is given again when its order was returned, and no sooner."""

    def __init__(self, orders: Iterable[Order] = ()) -> None:
        super().__init__(orders)
        self.free = list(range(1000, 1400))

    def place(self, count: int, status: Status) -> list[int]:
        taken, self.free = self.free[:count], self.free[count:]
        return self.place_ids(taken, status)

    def remove(self, ids: Iterable[int]) -> None:
        returned = list(ids)
        super().remove(returned)
        self.free = [*(number for number in returned if 1000 <= number < 1400), *self.free]


class Later(OrderStore):
    """Gives the ids of orders that are gone again, but the latest three: no look at a few orders finds that out."""

    def __init__(self, orders: Iterable[Order] = ()) -> None:
        super().__init__(orders)
        self.gone: list[int] = []

    def cancel(self, order_id: int) -> Any:
        with self._lock:
            there = self.get(order_id) is not None
            outcome = super().cancel(order_id)
            if there and self.get(order_id) is None:
                # Once each: an id that a check chose may be gone again before it was given.
                self.gone = [*(number for number in self.gone if number != order_id), order_id]
            return outcome

    def place(self, count: int, status: Status) -> list[int]:
        with self._lock:
            free = [number for number in self.gone[:-3] if self.get(number) is None][:count]
            self.gone = [number for number in self.gone if number not in free]
            return [*self.place_ids(free, status), *super().place(count - len(free), status)]


class Following(OrderStore):
    """Counts on from the largest id that it ever had, to the end of int64 and no further, as AUTO_INCREMENT does."""

    def __init__(self, orders: Iterable[Order] = ()) -> None:
        super().__init__(orders)
        self.last = max((order.id for order in self.all()), default=0)

    def place(self, count: int, status: Status) -> list[int]:
        return self.place_ids(range(self.last + 1, self.last + 1 + count), status)

    def place_ids(self, ids: Iterable[int], status: Status) -> list[int]:
        wanted = list(ids)
        if not all(number in INT64 for number in wanted):
            raise OverflowError("the counter is at its end")
        self.last = max(self.last, *wanted)
        return super().place_ids(wanted, status)


def service_of(store: type[OrderStore]) -> Service:
    """A correct service with a store of that kind."""
    return Service(store(build(KEY.encode(), orders="5").store.all()), KEY.encode())


def giving(next_id: Callable[[], int]) -> Service:
    """A correct service whose new orders get ids from `next_id`."""
    service = build(KEY.encode(), faults=[], variants=[])
    service.store.next_id = next_id
    return service


class Watched:
    """A provider whose messages are kept, and which fails at the one numbered `turn`, from 1 on."""

    def __init__(self, provider: Provider, turn: int = 0, error: type[Exception] = ProviderError) -> None:
        self._provider, self._turn, self._error = provider, turn, error
        self.messages: list[dict[str, Any]] = []

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        self.messages.append(message)
        if len(self.messages) == self._turn:
            raise self._error("out of order")
        return self._provider.call(message)

    def close(self) -> None:
        self._provider.close()


class Late(OrderStore):
    """Gives the ids of orders that are there only when it has been read LOOKS times more."""

    LOOKS = 3

    def __init__(self, orders: Iterable[Order] = ()) -> None:
        super().__init__(orders)
        self.due: list[tuple[int, list[int], Status]] = []
        self.reads = 0

    def place(self, count: int, status: Status) -> list[int]:
        ids = [self.next_id() for _ in range(count)]
        self.due.append((self.reads + self.LOOKS, ids, status))
        return ids

    def all(self) -> list[Order]:
        self.reads += 1
        for when, ids, status in self.due:
            if when == self.reads:
                self.place_ids(ids, status)
        return super().all()


@contextmanager
def looked_at(
    service: Service,
    mode: Mode = Mode.FULL,
    turn: int = 0,
    error: type[Exception] = ProviderError,
    selected: Iterable[str] = (),
    **further: Any,
) -> Iterator[tuple[DirectSession, Watched, str | None]]:
    """A session that has looked at a service and its provider, the provider, and what was found wrong with it."""
    target = Target(
        "direct", "http://127.0.0.1:9/v1", Secret(KEY), mode, states=States(url="http://127.0.0.1:9"), **further
    )
    session = DirectSession(target, 1, service=service)
    if selected:
        session.selected = frozenset(selected)
    states = target.states
    assert states is not None
    watched = Watched(session.provider_of(states), turn, error)
    session.provider_of = lambda states: watched  # type: ignore[method-assign]
    assert preflight.probe_service(session) is None
    before = {order.id for order in service.store.all()}
    yield session, watched, preflight.probe_provider(session)
    if not session.warnings:
        assert {order.id for order in service.store.all()} == before
    session.close()


def facts(session: DirectSession) -> tuple[bool, bool]:
    return session.ids_used_again, session.counts_on


def test_a_store_that_goes_by_the_largest_id() -> None:
    for store, follows in ((Keeping, True), (OrderStore, False), (Following, False), (Pool, False)):
        with looked_at(service_of(store)) as (session, _, trouble):
            assert (trouble, session.warnings, session.follows_largest) == (None, [], follows)


@pytest.mark.parametrize(
    ("store", "found", "messages"),
    [
        (OrderStore, (False, False), 8),
        (Keeping, (False, False), 10),
        (Again, (True, False), 5),
        (LowestFree, (True, False), 5),
        (Pool, (False, False), 10),
        (Following, (False, True), 8),
    ],
)
def test_how_a_store_gives_ids(store: type[OrderStore], found: tuple[bool, bool], messages: int) -> None:
    with looked_at(service_of(store)) as (session, provider, trouble):
        assert (trouble, facts(session), session.warnings) == (None, found, [])
        assert len(provider.messages) == messages


def test_orders_that_a_provider_makes_up_are_not_given_again() -> None:
    """It names the same order each time, which is not there."""
    service = build(KEY.encode(), faults=[], variants=[])
    service.store.place = lambda count, status: [900_000]  # type: ignore[method-assign]
    with looked_at(service) as (session, _, _):
        assert facts(session) == (False, False)


def test_orders_that_come_late_are_noticed() -> None:
    with looked_at(service_of(Late)) as (session, _, trouble):
        assert (trouble, session.came_late) == (None, 7)
        session.service.store.remove([6])  # returned before it was there


@pytest.mark.parametrize("fault", ["lists-new-orders-the-second-time", "cancels-at-the-third-attempt"])
def test_what_only_the_listing_lacks_or_a_cancel_does_not_find_is_for_the_checks(fault: str) -> None:
    with looked_at(build(KEY.encode(), faults=[fault], variants=[])) as (session, _, _):
        assert session.came_late is None


def test_others_may_place_orders_meanwhile() -> None:
    """An order of somebody else's stands where the first one was: the second one's id is the one given again."""
    service = service_of(Again)
    place = service.store.place
    placed = itertools.count(1)

    def busy(count: int, status: Status) -> list[int]:
        if next(placed) == 2:
            place(1, status)
        return place(count, status)

    service.store.place = busy  # type: ignore[method-assign]
    with looked_at(service) as (session, _, _):
        assert facts(session) == (True, False)
        service.store.clear()  # with the other's order
        session.warnings.append("emptied")


def test_random_ids_are_taken_for_neither() -> None:
    for seed in range(60):
        source = random.Random(seed)
        wide = seed % 3
        ranges = (range(10**5, 10**6), INT64, range(INT64.stop - 10**6, INT64.stop))
        with looked_at(giving(lambda source=source, drawn=ranges[wide]: source.randrange(drawn.start, drawn.stop))) as (
            session,
            _,
            _,
        ):  # type: ignore[misc]
            assert facts(session) == (False, False)
            assert not session.one_at_a_time


@pytest.mark.parametrize("pause", [0, 20, 200, 450, 3000])
def test_ids_made_of_the_time_are_taken_for_neither(pause: int) -> None:
    """Milliseconds since 1970, with a provider that takes so many for each message."""
    service = build(KEY.encode(), faults=[], variants=[])
    with looked_at(service) as (session, provider, _):
        session.ids_used_again = session.counts_on = False
        start = len(provider.messages)
        clock = itertools.count()
        service.store.next_id = lambda: 1790000000000 + next(clock) + (len(provider.messages) - start) * pause
        assert preflight.probe_provider(session) is None
        assert facts(session) == (False, False)
        assert not session.one_at_a_time


@pytest.mark.parametrize("first", [INT64.stop - 1500, INT64.stop - 100, INT64.start, -1001, 2**31, 2**55])
def test_counters_anywhere(first: int) -> None:
    """Where there is no room above them, none is asked for; nothing is taken for what it is not."""
    with looked_at(giving(itertools.count(first).__next__)) as (session, provider, trouble):
        assert (trouble, facts(session), session.warnings) == (None, (False, False), [])
        asked = [message["params"]["ids"] for message in provider.messages if "ids" in message["params"]]
        assert len(asked) == (first < INT64.stop - 2000)
        assert all(number in INT64 for ids in asked for number in ids)


def test_no_order_is_replaced() -> None:
    service = service_of(Following)
    store = cast(Following, service.store)
    taken = range(31 + preflight.LEAP, 40 + preflight.LEAP)
    store.place_ids([*range(1, 30), *taken], Status.SHIPPED)
    store.last = 29
    place = store.place_ids
    store.place = lambda count, status: place([store.last + 1], status)  # type: ignore[method-assign]
    with looked_at(service) as (session, provider, _):
        assert session.counts_on
        (chosen,) = next(m["params"]["ids"] for m in provider.messages if "ids" in m["params"])
        assert chosen == taken.stop
    assert all(store.get(number) is not None for number in taken)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.GUARDED])
def test_nothing_more_is_placed_where_nothing_is_cancelled(mode: Mode) -> None:
    with looked_at(service_of(Following), mode) as (session, provider, _):
        assert (facts(session), len(provider.messages)) == ((False, False), 2)


@pytest.mark.parametrize(("selected", "messages"), [("LIST-1", 2), ("CANCEL-7", 4), ("CANCEL-9", 8)])
def test_what_no_check_needs_is_not_asked(selected: str, messages: int) -> None:
    with looked_at(service_of(OrderStore), selected=[selected]) as (_, provider, _):
        assert len(provider.messages) == messages


@pytest.mark.parametrize("error", [ProviderError, CannotDo])
@pytest.mark.parametrize("turn", range(1, 9))
def test_a_provider_that_fails_in_the_look(turn: int, error: type[Exception]) -> None:
    """The first message's failure is told; of the others only what was left behind is."""
    with looked_at(service_of(Following), turn=turn, error=error) as (session, provider, trouble):
        assert (trouble or "")[:12] == ("out of order" if turn == 1 else "")
        asked = provider.messages[turn - 1]["action"]
        assert [said[:18] for said in session.warnings] == ["orders left behind"] * (asked == "teardown")
        assert facts(session) == (False, turn in (6, 8))


def test_a_provider_that_chooses_no_ids() -> None:
    service = service_of(Following)
    service.cannot.add("ids")
    with looked_at(service) as (session, provider, trouble):
        assert (trouble, facts(session), session.warnings) == (None, (False, False), [])
        assert len(provider.messages) == 5


# --- whole runs


@contextmanager
def served(store: type[OrderStore], pause: float = 0.0) -> Iterator[tuple[Address, Service]]:
    service = service_of(store)
    answered = service.respond

    def respond(request: Any) -> Response:
        time.sleep(pause)
        return answered(request)

    service.respond = respond
    with Running(service, states_port=0) as server:
        yield Address(server.base_url, server.states_url, KEY), service


def run(folder: Path, address: Address, *words: str, status: int = 0) -> dict[str, Any]:
    """The results of a run that ends with this `status`, by default since it finds its target conformant, and whose
    audit bears it out."""
    asked = ("run", "--seed", "3", "--budget", "quick", "--report-dir", "reports")
    where = ("--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", str(address.states_url))
    ran = command(folder, *asked, *where, *words, KEY=KEY)
    assert ran.status == status, ran.said
    assert preflight.USED_AGAIN not in ran.said or "with -n 4" not in ran.said, ran.said
    audited = command(folder, "audit", "reports/target")
    assert audited.status == 0, audited.said
    return dict(json.loads((folder / "reports" / "target" / "results.json").read_text(encoding="utf-8")))


def test_nothing_is_judged_where_orders_come_late(tmp_path: Path) -> None:
    with served(Late) as (address, _):
        found = run(tmp_path, address, status=3)
    assert found["run"]["requests"] < 20
    said = "the state provider answers before its orders are there: order 7 "
    assert all(check["message"].startswith(said) for row in found["requirements"] for check in row["checks"])


def processes(result: dict[str, Any]) -> int:
    return sum(bool(checks) for checks in result["circumstances"]["order"])


def excluded(result: dict[str, Any]) -> dict[str, str]:
    checks = (check for row in result["requirements"] for check in row["checks"])
    return {check["id"]: check["message"] for check in checks if check["status"] == "excluded"}


@pytest.mark.parametrize(
    ("store", "pause", "words", "said"),
    [
        (Again, 0.0, ("-n", "4"), preflight.USED_AGAIN),
        (Again, 0.06, ("--only", "CANCEL-6"), preflight.USED_AGAIN),
        (Keeping, 0.0, ("-n", "4", "--only", "CANCEL"), preflight.FOLLOWS_LARGEST),
        (Keeping, 0.06, ("--only", "CANCEL-5"), preflight.FOLLOWS_LARGEST),
    ],
    ids=["-n 4", "far", "keeping, -n 4", "keeping, far"],
)
def test_checks_of_a_store_that_gives_ids_again_run_one_at_a_time(
    tmp_path: Path, store: type[OrderStore], pause: float, words: tuple[str, ...], said: str
) -> None:
    with served(store, pause) as (address, _):
        result = run(tmp_path, address, *words)
    assert processes(result) == 1
    assert result["warnings"] == [said]
    assert result["counts"]["required"]["failed"] == 0
    assert not set(excluded(result)) & CHOOSING


def test_checks_that_were_given_the_same_order_are_run_again(tmp_path: Path) -> None:
    """Which of them that makes go wrong is by chance; the verdict and its audit are not."""
    with served(Later, pause=0.03) as (address, _):
        result = run(tmp_path, address, "-n", "6", "--only", "CANCEL")
    own, *others = result["circumstances"]["order"]
    assert sum(map(bool, others)) > 2
    assert result["warnings"] == [RUN_AGAIN.format(", ".join(own))] * bool(own)


@pytest.mark.parametrize("store", [GivesZero, GivesMinusOne])
def test_an_order_of_the_suite_is_not_taken_for_a_place_of_a_list(tmp_path: Path, store: type[OrderStore]) -> None:
    with served(store) as (address, _):
        result = run(tmp_path, address, "--only", "CANCEL-8")
    assert result["verdict"] == "conformant"


def test_places_of_a_list_are_tried_where_they_are_no_orders(tmp_path: Path) -> None:
    """A service that answers 404 to the order -1, and removes the last one of its list."""
    service = Service(OrderStore(sample_order(number, Status.SHIPPED) for number in range(5000, 5005)), KEY.encode())

    def change(order_id: int, outcome: Outcome) -> None:
        if order_id == -1:
            service.store.remove([order.id for order in service.store.all()][-1:])

    amend.after_cancel(service, change)
    with Running(service, states_port=0) as server:
        where = ("--base-url", server.base_url, "--api-key-env", "KEY", "--states-url", str(server.states_url))
        ran = command(tmp_path, "run", "--only", "CANCEL-8", "--seed", "3", "--budget", "quick", *where, KEY=KEY)
    assert ran.status == 1, ran.said
    assert "cancelling.refused_cancels_touch_no_other_order" in ran.said


def message(check: str, started: float, ended: float, *ids: int, action: str = "setup") -> dict[str, Any]:
    told = {"check": check, "started": started, "ended": ended, "action": action, "params": {"orderIds": list(ids)}}
    return {**told, "answer": {"orderIds": list(ids)}}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ((1, 5), (3, 9), {"one", "two"}),  # given while it was held
        ((3, 9), (1, 5), {"one", "two"}),
        ((1, 5), (6, 9), set()),  # after it was returned
        ((1, None), (6, 9), {"one", "two"}),  # it never was
    ],
)
def test_who_was_given_what_others_held(
    first: tuple[int, int | None], second: tuple[int, int | None], found: set[str]
) -> None:
    messages = []
    for check, order, (since, until) in (("one", 7, first), ("two", 7, second), ("three", 8, first)):
        messages.append(message(check, since, since + 0.1, order))
        if until is not None:
            messages.append(message(check, until - 0.1, until, order, action="teardown"))
    assert given_meanwhile(messages) == found
    assert given_meanwhile(told for told in messages if told["check"] != "two") == set()


def test_what_a_provider_fails_to_name_was_given_to_nobody() -> None:
    for answer in ({}, {"orderIds": None}, {"orderIds": "7"}):
        asked = [{**message(check, 1, 2), "answer": answer} for check in ("one", "two")]
        assert given_meanwhile(asked) == set()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_counter_that_follows_is_never_moved_far(tmp_path: Path, workers: str) -> None:
    with served(Following) as (address, service):
        before = max(order.id for order in service.store.all())
        result = run(tmp_path, address, "-n", workers, "--only", "CANCEL,LIST-8")
        (after,) = service.store.place(1, Status.PENDING)
    assert after < before + 10 * preflight.LEAP
    assert processes(result) == int(workers)
    ran = {check for checks in result["circumstances"]["order"] for check in checks}
    assert {check: excluded(result).get(check) for check in CHOOSING & ran} == dict.fromkeys(
        CHOOSING & ran, preflight.COUNTS_ON
    )
    assert len(CHOOSING & ran) > 3
    assert result["warnings"] == []


def test_workers_of_xdist_choose_no_ids_either(tmp_path: Path) -> None:
    with served(Following) as (address, service):
        (tmp_path / "targets.toml").write_text(
            f'[targets.store]\nbase_url = "{address.base_url}"\napi_key_env = "KEY"\n'
            f'states = {{ url = "{address.states_url}" }}\n',
            encoding="utf-8",
        )
        words = (*WITHOUT_OTHERS, "-p", "conformance.plugin", "-n", "2", "--pyargs", "conformance.checks")
        chosen = ("--target", "store", "--conformance-only", "CANCEL-9")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *words, *chosen],
            cwd=tmp_path, env={**inherited(), "KEY": KEY},
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        (after,) = service.store.place(1, Status.PENDING)
    assert ran.returncode == 0, ran.stdout
    assert "skipped" in ran.stdout
    assert after < 10 * preflight.LEAP


@pytest.mark.parametrize(
    ("store", "note"),
    [
        (Again, preflight.USED_AGAIN),
        (Keeping, preflight.FOLLOWS_LARGEST),
        (Following, preflight.COUNTS_ON),
        (OrderStore, None),
    ],
)
def test_doctor_tells(tmp_path: Path, store: type[OrderStore], note: str | None) -> None:
    with served(store) as (address, service):
        before = max(order.id for order in service.store.all())
        where = ("--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", str(address.states_url))
        ended = command(tmp_path, "doctor", *where, KEY=KEY)
        (after,) = service.store.place(1, Status.PENDING)
    assert ended.status == 0, ended.said
    assert after < before + 10 * preflight.LEAP
    notes = [line for line in ended.said.splitlines() if line.lstrip().startswith("note")]
    assert note is None or any(note in line for line in notes)
    assert ("pending orders, chosen id" in ended.said) is (store is not Following)
    assert "listed before" not in ended.said  # though these stores give the ids of returned orders again


def test_doctor_tells_that_orders_come_late(tmp_path: Path) -> None:
    with served(Late) as (address, _):
        where = ("--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", str(address.states_url))
        ended = command(tmp_path, "doctor", *where, KEY=KEY)
    assert ended.status == 2, ended.said
    assert "handed out [6, 7], which the listing shows only now; let it answer once they are there" in ended.said
    assert "does not show" not in ended.said
