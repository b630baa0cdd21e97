"""Where an operation is broken for everybody: that is no matter of the key, nor of what is to be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from built import KEY, target
from held import held

from conformance import outcomes
from conformance.api import Api, Orders
from conformance.checks.authentication import test_keys
from conformance.checks.authentication.steps import refused
from conformance.checks.cancelling import test_absent, test_identifiers, test_shipped
from conformance.checks.cancelling.steps import gets
from conformance.target import Mode, Secret, States
from conformance.transport.guard import Refused
from conformance.transport.request import NOBODY, Allowed, Operation
from reference_server import amend
from reference_server.messages import Request, Response
from reference_server.orders import Outcome


def answering(status: int, method: str, *, to_the_key: bool = True) -> tuple[Api, Orders]:
    """What checks are given whose service answers `status` to this method whoever asks, or only to those without the
    key."""
    session, api, orders = held()

    def broken(request: Request) -> Response | None:
        told = request.method == method and (to_the_key or request.headers.get("authorization") != f"Bearer {KEY}")
        return Response(status) if told else None

    amend.before(session.service, broken)
    return api, orders


def full(count: int, rng: Random) -> list[int]:
    raise Refused("the listing leaves no room")


def list_without_key(api: Api, orders: Orders) -> None:
    test_keys.test_listing_without_key(api)


def cancel_with_another_key(api: Api, orders: Orders) -> None:
    test_keys.test_cancelling_with_invalid_keys(api, orders, Secret(KEY))


def cancel_with_the_key_elsewhere(api: Api, orders: Orders) -> None:
    test_keys.test_cancelling_with_the_key_elsewhere(api, orders, Secret(KEY), target(mode=Mode.FULL))


@pytest.mark.parametrize(
    ("method", "check"),
    [("DELETE", test_keys.test_cancelling_an_absent_order_without_key), ("GET", list_without_key)],
)
@pytest.mark.parametrize("status", [403, 405, 500])
def test_what_the_key_gets_too_is_no_matter_of_the_key(
    status: int, method: str, check: Callable[[Api, Orders], None]
) -> None:
    with pytest.raises(outcomes.Inconclusive, match=r"and with the key, too") as raised:
        check(*answering(status, method))
    assert raised.value.owners == ("HTTP-1",)
    with pytest.raises(outcomes.Failed, match=rf"{status} "):
        check(*answering(status, method, to_the_key=False))


@pytest.mark.parametrize(
    "check",
    [
        test_keys.test_cancelling_an_absent_order_without_key,
        test_keys.test_cancelling_without_key,
        cancel_with_another_key,
        cancel_with_the_key_elsewhere,
    ],
)
@pytest.mark.parametrize("status", [404, 409])
def test_a_service_that_cannot_cancel_is_no_matter_of_the_key(
    status: int, check: Callable[[Api, Orders], None]
) -> None:
    with pytest.raises(outcomes.Inconclusive, match=r"and with the key, too") as raised:
        check(*answering(status, "DELETE"))
    assert raised.value.owners == ("CANCEL-1",)
    with pytest.raises(outcomes.Failed, match=rf"{status} "):
        check(*answering(status, "DELETE", to_the_key=False))


@pytest.mark.parametrize("status", [404, 405, 500])
def test_a_service_that_cannot_cancel_is_no_matter_of_the_order(status: int) -> None:
    with pytest.raises(outcomes.Inconclusive, match="and so was the cancel of a pending order") as raised:
        test_shipped.test_shipped_orders_are_refused(*answering(status, "DELETE"))
    assert raised.value.owners == ("CANCEL-1",)
    if status != 404:
        with pytest.raises(outcomes.Inconclusive, match="and so was the cancel of a pending order"):
            test_absent.test_absent_order_is_not_found_again(*answering(status, "DELETE"))


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("finds-no-shipped-order", test_shipped.test_shipped_orders_are_refused),
        ("refuses-what-does-not-exist", test_absent.test_absent_order_is_not_found_again),
    ],
)
def test_what_pending_orders_do_not_get_is_a_matter_of_the_order(
    fault: str, check: Callable[[Api, Orders], None]
) -> None:
    _, api, orders = held(fault)
    with pytest.raises(outcomes.Failed):
        check(api, orders)


@pytest.mark.parametrize("mode", [Mode.GUARDED, Mode.FULL])
def test_no_order_is_cancelled_to_compare_where_none_may_be(mode: Mode) -> None:
    """In mode guarded, and from lists, whose orders are for the checks."""
    own = {"mode": mode} if mode is Mode.GUARDED else {"states": States(pending=(1,))}
    session, _, orders = held(**own)
    before = len(session.service.store.all())
    assert not orders.pending_gets(204)
    assert len(session.service.store.all()) == before
    assert not session.recorder.exchanges


def test_a_success_is_a_matter_of_the_key_whatever_the_key_gets() -> None:
    """A service that lists for everybody, with a status of its own."""
    session, api, _ = held()

    def listed(request: Request) -> Response | None:
        return Response(203, b"[]") if request.method == "GET" else None

    amend.before(session.service, listed)
    with pytest.raises(outcomes.Failed, match="203"):
        test_keys.test_listing_without_key(api)


def test_where_nothing_tells_what_the_key_gets_the_failure_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a store so full that no id is known to be absent."""
    session, api, _ = held()
    amend.before(session.service, lambda request: Response(405) if request.method == "DELETE" else None)
    asked = [api.ask_cancel(order, NOBODY) for order in api.absent(2)]
    monkeypatch.setattr(session.guard, "absent_ids", full)
    with pytest.raises(outcomes.Failed):
        refused(api, api.send_all(asked), since="the key is missing")


@pytest.mark.parametrize(
    ("faults", "certain"),
    [
        (["asks-for-no-key"], False),
        (["accepts-any-key"], True),
        (["accepts-any-key", "lists-for-anyone-who-names-json"], True),
        (["gives-way-after-fifteen-refusals"], False),
    ],
)
def test_a_wrong_key_counts_where_a_key_is_needed(faults: list[str], certain: bool) -> None:
    _, api, _ = held(*faults)
    with pytest.raises(outcomes.Failed) as raised:
        test_keys.test_listing_with_invalid_keys(api, Secret(KEY))
    assert raised.value.certain is certain


@pytest.mark.parametrize(
    ("fault", "certain"), [("cancels-whatever-is-asked-for", False), ("cancels-what-every-object-has", True)]
)
def test_a_malformed_id_counts_where_ids_are_looked_at(fault: str, certain: bool) -> None:
    _, api, _ = held(fault)
    with pytest.raises(outcomes.Failed) as raised:
        test_identifiers.test_ids_without_digits_do_not_succeed(api)
    assert raised.value.certain is certain


def test_a_malformed_id_counts_where_no_id_is_known_to_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    session, api, _ = held("cancels-what-every-object-has")
    answers = api.send_all([api.ask_cancel("constructor", allowed=Allowed.OPEN)] if api.listing() else [])
    monkeypatch.setattr(session.guard, "absent_ids", full)
    with pytest.raises(outcomes.Failed) as raised:
        test_identifiers.no_success(api, answers)
    assert raised.value.certain


def test_what_a_check_has_seen_stands_where_the_service_falls_silent_then() -> None:
    session, api, orders = held()
    order, absent = orders.take(shipped=1).shipped[0], api.absent()[0]
    refused_as_absent = api.cancel(absent)
    session.endpoint.gone[Operation.CANCEL] = "not sent: 4 requests to cancelOrder got no answer"
    with pytest.raises(outcomes.Failed):
        gets(orders, refused_as_absent, 409, since=f"{order} has shipped")
    assert not test_identifiers.absent_succeeds(api)


def test_a_refusal_that_comes_now_and_then_is_no_cause() -> None:
    """Of two pending orders, one is cancelled."""
    session, api, orders = held("finds-no-shipped-order")
    comes = amend.every(2)
    amend.outcomes(session.service, Outcome.ABSENT, lambda order: amend.pending(order) and comes())
    assert not orders.pending_gets(404)
    with pytest.raises(outcomes.Failed):
        test_shipped.test_shipped_orders_are_refused(api, orders)
