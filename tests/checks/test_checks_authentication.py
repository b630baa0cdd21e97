"""AUTH-2 and AUTH-3 where an operation is broken for everybody: that is no matter of the key."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from held import held

from conformance import outcomes
from conformance.api import Api
from conformance.checks.authentication import test_keys
from conformance.checks.authentication.steps import refused
from conformance.transport.guard import Refused
from conformance.transport.request import NOBODY
from reference_server import amend
from reference_server.messages import Request, Response


def answering(status: int, method: str, *, to_the_key: bool = True) -> Api:
    """An API whose service answers `status` to this method whoever asks, or only to those without a key."""
    session, api, _ = held()

    def broken(request: Request) -> Response | None:
        told = request.method == method and (to_the_key or "authorization" not in request.headers)
        return Response(status) if told else None

    amend.before(session.service, broken)
    return api


@pytest.mark.parametrize(
    ("method", "check"),
    [
        ("DELETE", test_keys.test_cancelling_an_absent_order_without_key),
        ("GET", test_keys.test_listing_without_key),
    ],
)
@pytest.mark.parametrize("status", [403, 405, 500])
def test_what_the_key_gets_too_is_no_matter_of_the_key(status: int, method: str, check: Callable[[Api], None]) -> None:
    with pytest.raises(outcomes.Inconclusive, match=r"and with the key, too") as raised:
        check(answering(status, method))
    assert raised.value.owners == ("HTTP-1",)
    with pytest.raises(outcomes.Failed, match=rf"{status} "):
        check(answering(status, method, to_the_key=False))


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

    def full(count: int, rng: Random) -> list[int]:
        raise Refused("the listing leaves no room")

    monkeypatch.setattr(session.guard, "absent_ids", full)
    with pytest.raises(outcomes.Failed):
        refused(api, api.send_all(asked), since="the key is missing")
