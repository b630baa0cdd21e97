"""How many concurrent requests a service can take, measured with listings before the first check.

Against a nearby service checks run one after the other. Against a distant one, where most of the time would go into
waiting, several run at once, if the service answers that many requests as fast as one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from conformance.judging.observer import Judge
from conformance.runner.session import Session
from conformance.transport.client import Client
from conformance.transport.endpoint import GIVE_UP_AFTER, Endpoint, ServiceGone
from conformance.transport.evidence import PREFLIGHT, Exchange, Trouble
from conformance.transport.request import Allowed, Request

#: How often listings are sent together, as long as the outcome is unclear.
TRIES = 3
#: A service that takes at least so many seconds to answer is far away. With a nearer one checks run one after the
#: other: where a fault spoils the orders of other checks, that tells best which requirement is broken.
FAR = 0.05
#: Where the service is far away: how many checks are under way at once; or how many independent requests, where one
#: process runs all checks.
SIDE_BY_SIDE = 24
#: How many listings tell how long one takes where that varies.
ALONE = 5
#: Seconds by which a busy machine may delay that many requests.
SLACK = 0.1


@dataclass(frozen=True)
class Capacity:
    """What a distant service can take: whether it answers SIDE_BY_SIDE concurrent requests as fast as one (`several`),
    and whether it has left some of them unanswered (`overwhelmed`), so that it must never be sent two at once."""

    several: bool = False
    overwhelmed: bool = False


def measure(session: Session) -> Capacity:
    """The capacity of the service, which has answered listings of this session before; a nearby one is not asked."""
    seen = [exchange for exchange in session.recorder.exchanges if exchange.status == 200]
    if not seen or not all(map(_is_far, seen)):
        return Capacity()
    # On an endpoint of its own: turning away some of so many concurrent requests, or answering them too late, is no
    # fault of a service, and no reason for the session to give up on it.
    endpoint = Endpoint(session.target, session.endpoint.pace, crowded=True)
    client = session.client_of(endpoint, session.guard, Judge())
    client.widen(SIDE_BY_SIDE)
    try:
        return _measured(session, client, seen)
    finally:
        client.close()


def adapt(session: Session, capacity: Capacity) -> int:
    """Set how many requests the session sends at once; returns how many checks to run at once."""
    if capacity.overwhelmed:
        # A slow service that answers one request at a time would answer the last of several too late.
        session.client.concurrency.one_by_one = True
    if not capacity.several:
        return 1
    session.client.widen(SIDE_BY_SIDE)
    return 1 if session.one_at_a_time else SIDE_BY_SIDE


def _measured(session: Session, client: Client, seen: list[Exchange]) -> Capacity:
    """What comes of sending listings together, a few times as long as the outcome is unclear; `seen` were sent alone,
    before. Where a service answers now sooner, now later, further ones are sent alone to compare with."""
    asked = session.api(PREFLIGHT).ask_list(allowed=Allowed.OPEN)
    several: bool | None = None
    for _ in range(TRIES):
        together = _exchanged(session, lambda: client.send_all([asked] * SIDE_BY_SIDE, at_once=True))
        several = _several_at_once(seen, together)
        if several is not None:
            break
    if any(exchange.trouble == Trouble.TIMEOUT for exchange in together):
        _await_backlog(client, asked)
        return Capacity(bool(several), overwhelmed=True)
    if not several and sum(map(_is_far, together)) > len(together) / 2:
        alone = _exchanged(session, lambda: [client.send(asked) for _ in range(ALONE)])
        several = _no_later_than_alone(alone, together)
    return Capacity(bool(several))


def _await_backlog(client: Client, asked: Request) -> None:
    """Ask until there is an answer: until then the service is busy with requests that have timed out."""
    with suppress(ServiceGone):
        for _ in range(GIVE_UP_AFTER):
            if client.send(asked).status is not None:
                break


def _exchanged(session: Session, send: Callable[[], object]) -> list[Exchange]:
    """The exchanges that `send` makes before the run gives up on the service, if it does."""
    before = len(session.recorder.exchanges)
    with suppress(ServiceGone):
        send()
    return session.recorder.exchanges[before:]


def _several_at_once(seen: list[Exchange], together: list[Exchange]) -> bool | None:
    """Whether a distant service has answered requests that were sent `together` as fast as one alone. None where that
    is unclear: it was faster than one after the other, but not that fast, as where this machine or the network stalls
    for a moment."""
    # A near service that was merely waking up, or busy for a moment, answers some of these sooner.
    if not together or not all(map(_is_far, together)):
        return False
    alone = min(exchange.seconds for exchange in (*seen, *together))
    latest = max(exchange.seconds for exchange in together)
    if latest < 2 * alone + SLACK:
        return True
    return None if latest < SIDE_BY_SIDE / 2 * alone else False


def _no_later_than_alone(alone: list[Exchange], together: list[Exchange]) -> bool:
    """Whether a service that answers now sooner, now later, has answered those `together` about as soon as the latest
    of some that were sent `alone`. (One with n workers takes SIDE_BY_SIDE / n times as long.)"""
    if len(alone) < ALONE or any(exchange.status != 200 for exchange in (*alone, *together)):
        return False
    slowest, latest = (max(exchange.seconds for exchange in each) for each in (alone, together))
    return latest < 2 * slowest + SLACK


def _is_far(listing: Exchange) -> bool:
    return listing.status == 200 and listing.seconds >= FAR and not listing.body_cut
