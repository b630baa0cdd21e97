"""What a run says in other modes than full, with other stores than the reference's, and with static lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.commands import selftest
from conformance.configuration import settings
from conformance.reporting.run import Run
from conformance.target import UNNAMED, Mode, Secret, States, Target
from conformance.verdict import CheckResult, Exit, Status
from reference_server import orders
from reference_server.api import Service
from reference_server.messages import Response
from reference_server.running import Running, build

KEY = "sk_key-of-a-service-in-another-mode"


@dataclass(frozen=True)
class Ended:
    """What came of a run."""

    run: Run
    exit: Exit

    def status(self, requirement: str) -> Status:
        """How a requirement ended."""
        return next(row.status for row in self.run.requirements if row.requirement.id == requirement)

    def check(self, id_: str) -> CheckResult:
        """What a check reported."""
        return next(check for row in self.run.requirements for check in row.checks if check.id == id_)


Runs = Callable[..., list[Ended]]


@pytest.fixture
def runs() -> Runs:
    """Runs the suite in this process on a service, as often as is wanted."""

    def run(service: Service, mode: Mode, *, states: States | None = None, times: int = 1) -> list[Ended]:
        ended: list[Ended] = []

        def work(session: pytest.Session) -> None:
            chosen = settings.read((UNNAMED,), {"seed": 1, "budget": "quick"})
            with Running(service) as server:
                target = Target(UNNAMED, server.base_url, Secret(KEY), mode, states=states)
                ended.extend(Ended(*selftest.run_on(session, chosen, target, service)) for _ in range(times))

        selftest.collected(work)
        return ended

    return run


def service_of(*names: str, orders: str | None = None) -> Service:
    """The reference server with these faults and variants, and with a store of so many orders, or those of a file."""
    faults = [name for name in names if name in selftest.FAULTS]
    return build(KEY.encode(), orders=orders, faults=faults, variants=[name for name in names if name not in faults])


def test_pets_are_looked_up_in_mode_observe(runs: Runs) -> None:
    (ended,) = runs(service_of("shows-pets-to-anyone"), Mode.OBSERVE)
    assert (ended.status("PET-1"), ended.exit) == (Status.FAILED, Exit.NON_CONFORMANT)


@pytest.mark.parametrize("variant", ["has-a-page-for-any-other-path", "answers-any-other-path-with-what-it-is"])
def test_who_answers_any_path_is_conformant_in_mode_observe(runs: Runs, variant: str) -> None:
    (ended,) = runs(service_of(variant), Mode.OBSERVE)
    assert (ended.status("PET-1"), ended.exit) == (Status.EXCLUDED, Exit.CONFORMANT)


def test_an_empty_listing_shows_nothing_of_orders(runs: Runs) -> None:
    (ended,) = runs(service_of("writes-ids-as-strings", orders="0"), Mode.OBSERVE)
    assert ended.exit is Exit.CONFORMANT
    for requirement in ("LIST-2", "LIST-4", "LIST-6", "LIST-10", "LIST-11"):
        assert ended.status(requirement) is Status.EXCLUDED
    disguises = ended.check("authentication.no_disguise_lists_without_key")
    assert disguises.status is Status.EXCLUDED
    assert disguises.message.startswith("the listing holds no order with an id")


def test_who_has_an_order_with_the_id_0_is_told_what_was_not_sent(runs: Runs, tmp_path: Path) -> None:
    """Without digits any id could be taken for that."""
    file = tmp_path / "orders.json"
    file.write_text(json.dumps([{"id": 0, "status": "pending"}, {"id": 7, "status": "pending"}]), encoding="utf-8")
    fault = "cancels-everything-for-an-id-of-letters"
    (spared,) = runs(service_of(fault, orders=str(file)), Mode.GUARDED)
    for check in ("cancelling.ids_without_digits_do_not_succeed", "cancelling.ids_without_digits_are_client_errors"):
        found = spared.check(check)
        assert (found.status, "order 0" in found.message) == (Status.EXCLUDED, True)
    assert spared.check("cancelling.malformed_ids_do_not_succeed").status is Status.PASSED
    (ended,) = runs(service_of(fault, orders="3"), Mode.GUARDED)
    assert ended.status("CANCEL-9") is Status.FAILED


def test_static_lists_serve_one_run(runs: Runs) -> None:
    """A second run finds orders listed that the first has cancelled: that is not the service's fault."""
    service = service_of("keeps-listing-cancelled-orders")
    states = static(service, pending=60, shipped=20)
    first, second = runs(service, Mode.FULL, states=states, times=2)
    assert first.exit is Exit.CONFORMANT
    assert second.status("CANCEL-1") is Status.INCONCLUSIVE
    assert (
        "are the lists right, and is this their first run?"
        in second.check("cancelling.pending_order_is_cancelled").message
    )


def test_static_lists_place_no_order_while_a_check_runs(runs: Runs) -> None:
    service = service_of()
    (ended,) = runs(service, Mode.FULL, states=static(service, pending=200, shipped=40))
    for check in (
        "listing.new_order_is_listed_to_who_has_an_older_listing",
        "listing.order_is_listed_in_the_place_of_another",
        "concurrency.orders_placed_during_listings_are_listed",
        "cancelling.orders_placed_during_a_cancel_are_untouched",
    ):
        found = ended.check(check)
        assert (found.status, found.message) == (Status.EXCLUDED, "static lists of orders cannot provide this")


def static(service: Service, *, pending: int, shipped: int) -> States:
    """So many orders of each kind in static lists."""
    place = service.store.place
    return States(
        pending=tuple(place(pending, orders.Status.PENDING)), shipped=tuple(place(shipped, orders.Status.SHIPPED))
    )


@pytest.mark.parametrize(
    ("location", "ended"),
    [
        ("/v1/store/orders/", Exit.NON_CONFORMANT),
        ("/login?next=/v1/store/orders/", Exit.INCOMPLETE),
        ("https://elsewhere.example/v1/store/orders/", Exit.INCOMPLETE),
        ("http://[", Exit.INCOMPLETE),
    ],
)
def test_a_redirect_to_the_path_with_a_slash_is_a_fault_and_one_elsewhere_another_service(
    runs: Runs, location: str, ended: Exit
) -> None:
    service = build(KEY.encode())
    service.respond = lambda request: Response(301, headers={"Location": location})
    (run,) = runs(service, Mode.GUARDED)
    assert run.exit == ended
    assert (run.status("HTTP-1") is Status.FAILED) is (ended == Exit.NON_CONFORMANT)
    told = run.check("protocol.listing_statuses").message
    assert f"301 Moved Permanently to {location}" in told
    assert ("does not look like a Store Orders Service" in told) is (ended == Exit.INCOMPLETE)
