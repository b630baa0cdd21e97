"""Checks side by side: where a service is far away, and only there; the same statuses, evidence that an audit takes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from commands import BUSY, DIES, command
from raw_service import Conversation, answer, serving

from conformance.checks.test_concurrency import ON_THE_WAY, PLACED
from conformance.checks.together import READERS
from conformance.runner import capacity, preflight
from conformance.runner.reference import Address
from conformance.runner.session import Session
from conformance.target import Mode, Secret, Target
from conformance.transport.endpoint import GIVE_UP_AFTER
from conformance.transport.evidence import Trouble
from reference_server.messages import Request, Response
from reference_server.running import Running, build

KEY = "key-of-a-far-service"


def checks_at_once(session: Session) -> int:
    """How many checks the service of `session` bears at once, by a look at it."""
    return capacity.adapt(session, capacity.measure(session))


@pytest.fixture(scope="module")
def slow() -> Iterator[Address]:
    """A service that answers each request after 60 ms, many at a time."""
    with answering_slowly() as address:
        yield address


@contextmanager
def answering_slowly(*variants: str, faults: tuple[str, ...] = ()) -> Iterator[Address]:
    """One with these variants and faults."""
    service = build(KEY.encode(), faults=faults, variants=variants)
    answered = service.respond

    def respond(request: Any) -> Response:
        time.sleep(0.06)
        return answered(request)

    service.respond = respond
    with Running(service, states_port=0) as server:
        yield Address(server.base_url, server.states_url, KEY)


LOADED_AFTER = """
import sys
from pathlib import Path
from conformance.configuration import settings
from conformance.runner.process import Process, Shared
own = Process(settings.read(("far",), {}), Shared(1), {"far": None}, {})
own.share(Path(sys.argv[1]))
before = set(sys.modules)
own.become("process 1")
for alone in (False, True):
    with own.lock(alone=alone):
        pass
print(sorted(set(sys.modules) - before))
"""


def test_what_keeps_the_processes_apart_is_loaded_before_they_are_forked(tmp_path: Path) -> None:
    """Else each of 24 would load it, which takes as long as half a dozen answers."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED_AFTER, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"


def line(address: Address, *words: str) -> tuple[str, ...]:
    """The command line of a run."""
    where = ("--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", str(address.states_url))
    return ("run", "--seed", "3", "--budget", "quick", "--report-dir", "reports", *where, *words)


def run(folder: Path, address: Address, *words: str) -> dict[str, Any]:
    """The results of a run that finds its target conformant."""
    folder.mkdir()
    ran = command(folder, *line(address, *words), first=BUSY, KEY=address.key)
    assert ran.status == 0, ran.said
    return results(folder)


def results(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "reports" / "target" / "results.json").read_text(encoding="utf-8")))


def statuses(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(check["id"], check["status"]) for row in result["requirements"] for check in row["checks"]]


def processes(result: dict[str, Any]) -> int:
    """How many processes ran checks."""
    return sum(bool(checks) for checks in result["circumstances"]["order"])


def test_a_far_service_is_asked_by_many_and_the_statuses_are_the_same(tmp_path: Path, slow: Address) -> None:
    far = run(tmp_path / "far", slow)
    assert processes(far) > 4
    only = ("--only", "CANCEL-1,CANCEL-9,AUTH-1,LIST-3")
    one, three = run(tmp_path / "one", slow, "-n", "1", *only), run(tmp_path / "three", slow, "-n", "3", *only)
    assert (processes(one), processes(three)) == (1, 3)
    assert set(statuses(one)) == set(statuses(three))
    assert {found for found in statuses(one) if found[1] == "passed"} <= set(statuses(far))
    assert command(tmp_path, "audit", "far/reports/target").status == 0


def test_orders_that_are_fulfilled_in_time_are_as_they_were_far_away(tmp_path: Path) -> None:
    """There a check lasts as long as that takes; how `complete` relates to the status is not shown (section 3)."""
    with answering_slowly("fulfils-shipped-orders-in-time") as address:
        found = run(tmp_path / "far", address, "--only", "CANCEL-4,CANCEL-8,LIST-9,AUTH-5", "--budget", "quick")
    assert processes(found) > 4
    assert found["verdict"] == "conformant"


@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_what_other_checks_may_have_caused_is_decided_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    """A date that moves with each listing may move with the cancels of others, too, and correctly so."""
    with answering_slowly(faults=("moves-the-date-with-each-listing",)) as address:
        words = line(address, "--only", "LIST-9,CANCEL-1,CANCEL-5,AUTH-1", *more)
        ran = command(tmp_path, *words, first=BUSY, KEY=address.key)
    assert ran.status == 1, ran.said
    found = results(tmp_path)
    assert processes(found) > 1
    assert ("listing.reading_changes_nothing", "failed") in statuses(found)
    assert command(tmp_path, "audit", "reports/target").status == 0


def test_orders_are_placed_among_listings_that_are_with_a_far_service(tmp_path: Path, slow: Address) -> None:
    """And not only in the first moments, when those are still on their way."""
    rows = run(tmp_path / "far", slow, "--only", "LIST-3", "-n", "1")["requirements"]
    checks = {check["id"]: check for row in rows for check in row["checks"]}
    asked = checks["concurrency.orders_placed_during_listings_are_listed"]["exchanges"]
    assert len(asked) == (len(PLACED) + len(ON_THE_WAY)) * (2 * READERS + 2)


def test_a_process_that_dies_is_replaced(tmp_path: Path, slow: Address) -> None:
    """What it was at is undecided, and it is the only check that is."""
    ran = command(tmp_path, *line(slow, "--only", "CANCEL", "-n", "2"), first=DIES, KEY=slow.key)
    assert ran.status == 3, ran.said
    found = statuses(results(tmp_path))
    own = ("cancelling", "concurrency", "model", "schema")  # what is judged on every exchange has none of its own
    assert sum(status == "inconclusive" for check, status in found if check.startswith(own)) == 1
    assert processes(results(tmp_path)) == 3
    assert sum(status == "passed" for _, status in found) > 30


class _Listing(BaseHTTPRequestHandler):
    """Answers every request with an empty listing, after a while."""

    pause = 0.06

    def do_GET(self) -> None:
        time.sleep(self.pause)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_request(self, *arguments: object) -> None:
        pass


class _Near(_Listing):
    pause = 0.0


@contextmanager
def looked_at(server: HTTPServer, timeout: float = 10.0) -> Iterator[Session]:
    """A session with a server that has been asked for its listing."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    session = Session(Target("far", url, Secret("key-of-this-test"), Mode.OBSERVE, timeout=timeout), 1)
    session.api("look").list()
    yield session
    session.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("server", "handler", "slack"),
    [(ThreadingHTTPServer, _Listing, 5.0), (HTTPServer, _Listing, 0.0), (ThreadingHTTPServer, _Near, 5.0)],
    ids=["far", "one at a time", "near"],
)
def test_many_at_once_only_where_it_helps(
    server: type[HTTPServer], handler: type[_Listing], slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that does one thing after the other would only answer later, and perhaps too late."""
    monkeypatch.setattr(capacity, "SLACK", slack)  # this machine may be busy, but not that busy
    several = server is ThreadingHTTPServer and handler is _Listing
    with looked_at(server(("127.0.0.1", 0), handler)) as session:
        assert checks_at_once(session) == (capacity.SIDE_BY_SIDE if several else 1)


class _Slow(_Listing):
    pause = 0.2


class _Stalls(_Listing):
    """Answers a request in the middle of the first look late."""

    pause = 0.5
    turns = itertools.count()

    def do_GET(self) -> None:
        time.sleep(1.5 if next(self.turns) == 9 else 0.0)
        super().do_GET()


class _Varies(_Listing):
    """Answers some requests ten times as fast as others."""

    pauses = itertools.cycle((0.1, 1.0, 0.4, 0.7))

    def do_GET(self) -> None:
        time.sleep(next(self.pauses))
        super().do_GET()


class _Few(_Listing):
    """Has five workers."""

    workers = threading.Semaphore(5)

    def do_GET(self) -> None:
        with self.workers:
            time.sleep(0.2)
            super().do_GET()


class _Patient(ThreadingHTTPServer):
    request_queue_size = 64  # else some of many connections at once are only tried again a second later


def test_a_moment_of_standing_still_makes_no_run_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's, as it may be: it would cost a minute or two."""
    monkeypatch.setattr(capacity, "SLACK", 0.5)
    with looked_at(_Patient(("127.0.0.1", 0), _Stalls)) as session:
        assert checks_at_once(session) == capacity.SIDE_BY_SIDE
        assert len(session.recorder.exchanges) > 2 * capacity.SIDE_BY_SIDE


def test_many_at_once_where_answers_take_now_long_now_short() -> None:
    """One after the other, a run against such a service takes minutes."""
    with looked_at(_Patient(("127.0.0.1", 0), _Varies), timeout=60.0) as session:
        assert checks_at_once(session) == capacity.SIDE_BY_SIDE


def test_a_far_service_with_a_few_workers_is_not_swamped() -> None:
    """All requests of many checks at once might wait for longer than the suite does."""
    with looked_at(_Patient(("127.0.0.1", 0), _Few)) as session:
        assert checks_at_once(session) == 1


def test_who_answers_one_at_a_time_and_slowly_is_asked_so() -> None:
    """Of requests that are sent together some would be too late, for no fault of the service's."""
    with looked_at(HTTPServer(("127.0.0.1", 0), _Slow), timeout=3.0) as session:
        assert checks_at_once(session) == 1
        api = session.api("after")
        answers = api.send_all([api.ask_list()] * 12, at_once=True)
        assert [answer.status for answer in answers] == [200] * 12


class _Choking(_Listing):
    """Answers nobody in time while too many ask."""

    too_many = False

    def do_GET(self) -> None:
        time.sleep(2.0 if self.too_many else 0.0)
        with suppress(OSError):  # nobody waits for this answer any more
            super().do_GET()


def test_so_many_at_once_that_nobody_is_answered_excuses_no_silence_later() -> None:
    with looked_at(ThreadingHTTPServer(("127.0.0.1", 0), _Choking), timeout=1.0) as session:
        _Choking.too_many = True
        assert checks_at_once(session) == 1
        _Choking.too_many = False
        troubles = [exchange.trouble for exchange in session.recorder.exchanges[1:]]
        assert len(troubles) >= GIVE_UP_AFTER
        assert set(troubles) == {Trouble.TIMEOUT}
        assert session.api("after").list().status == 200


class _Gone(_Choking):
    """Answers nobody in time, and afterwards closes each connection at once."""

    def do_GET(self) -> None:
        if self.too_many and time.monotonic() > self.late:
            self.close_connection = True
        else:
            super().do_GET()

    late = 0.0


def test_who_falls_silent_during_the_look_is_not_asked_for_ever() -> None:
    with looked_at(ThreadingHTTPServer(("127.0.0.1", 0), _Gone), timeout=1.0) as session:
        _Gone.too_many, _Gone.late = True, time.monotonic() + 0.9
        assert checks_at_once(session) == 1
        assert len(session.recorder.exchanges) < 100


def limited(service: Any, burst: float, rate: float) -> None:
    """Has a service answer 429, and say nothing else, to more than `rate` requests a second, or `burst` at once."""
    tokens, last, lock = burst, time.monotonic(), threading.Lock()
    inner = service.respond

    def respond(request: Any) -> Response:
        nonlocal tokens, last
        with lock:
            now = time.monotonic()
            tokens, last = min(burst, tokens + rate * (now - last)), now
            late = tokens < 1
            tokens -= not late
        time.sleep(0.06)
        return Response(429, b"", {}) if late else inner(request)

    service.respond = respond


def test_a_limit_that_only_many_checks_at_once_meet_fails_nobody(tmp_path: Path) -> None:
    """A rate limit is not shown in the contract."""
    service = build(KEY.encode(), faults=[], variants=[])
    limited(service, burst=capacity.SIDE_BY_SIDE, rate=60.0)
    with Running(service, states_port=0) as server:
        address = Address(server.base_url, server.states_url, KEY)
        found = run(tmp_path / "many", address, "--only", "HTTP,AUTH-2,CANCEL-7,ERR")
    assert processes(found) > 4
    assert found["counts"]["required"]["failed"] == 0


def test_checks_that_met_a_limit_on_requests_at_once_are_run_again(tmp_path: Path) -> None:
    """The look was within the limit, and all checks together are not."""
    service = build(KEY.encode(), faults=[], variants=[])
    inner, lock, under_way = service.respond, threading.Lock(), 0

    def respond(request: Request) -> Response:
        nonlocal under_way
        with lock:
            under_way += 1
            late = under_way > capacity.SIDE_BY_SIDE + 2
        try:
            time.sleep(0.0 if late else 0.06)
            return Response(503, b"", {}) if late else inner(request)
        finally:
            with lock:
                under_way -= 1

    service.respond = respond
    with Running(service, states_port=0) as server:
        address = Address(server.base_url, server.states_url, KEY)
        found = run(tmp_path / "many", address, "--only", "HTTP,AUTH,CANCEL-7,ERR")
    assert processes(found) > 4
    assert found["verdict"] == "conformant"
    assert any("a limit on simultaneous requests" in warning for warning in found["warnings"])


def test_the_look_asks_one_thing_at_a_time() -> None:
    """How many requests at once a service takes is not shown, so a look at one that is near needs no more than one."""
    service = build(KEY.encode(), faults=[], variants=[])
    with Running(service) as server:
        session = Session(Target("near", server.base_url, Secret(KEY), Mode.OBSERVE), 1)
        assert preflight.probe_service(session) is None
        assert checks_at_once(session) == 1
        assert [exchange.status for exchange in session.recorder.exchanges] == [200]
        session.close()


def test_a_service_that_falls_silent_during_the_look_is_given_up() -> None:
    """It refuses the key, and whether listing takes that in another place is not to be found out."""

    def reply(conversation: Conversation) -> None:
        if conversation.number > preflight.TRIES:
            conversation.ended.wait(20)
        else:
            conversation.send(answer("401 Unauthorized", b"{}"))
        conversation.hang_up()

    with serving(reply) as service:
        session = Session(Target("silent", service.base_url, Secret(KEY), Mode.OBSERVE, timeout=1.0), 1)
        said = preflight.probe_service(session)
        assert said is not None
        assert "stopped answering" in said
        assert "(--timeout)" in said
        session.close()


def test_a_limit_that_the_look_meets_fails_nobody() -> None:
    """It is met by so many requests at once as nobody but the look sends; what follows goes out as if near by."""
    service = build(KEY.encode(), faults=[], variants=[])
    limited(service, burst=9.0, rate=4.0)
    with Running(service) as server:
        session = Session(Target("far", server.base_url, Secret(KEY), Mode.OBSERVE), 1)
        session.api("look").list()
        assert checks_at_once(session) == 1
        met = [exchange for exchange in session.recorder.exchanges if exchange.status == 429]
        assert met
        session.close()
