"""How many requests at once a service bears, found out with listings before the first check.

Near by, checks run one after the other. Far away, where most of the time would go into waiting, several are under way
at once if the service answers as many requests as soon as one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from conformance.judges import Judge
from conformance.session import Session
from conformance.transport.client import Client
from conformance.transport.endpoint import GIVE_UP_AFTER, Endpoint, ServiceGone
from conformance.transport.evidence import PREFLIGHT, Exchange, Trouble
from conformance.transport.request import Allowed, Request

#: How often listings are sent together, where it is not clear what came of it.
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
    """What a far service bears: whether it answers SIDE_BY_SIDE requests as soon as one (`several`), and whether it has
    left some of so many unanswered (`overwhelmed`), so that it must never be sent two at once."""

    several: bool = False
    overwhelmed: bool = False


def measure(session: Session) -> Capacity:
    """What the service bears, which this session has asked for listings before; a near one is not asked again."""
    seen = [exchange for exchange in session.recorder.exchanges if exchange.status == 200]
    if not seen or not all(map(_is_far, seen)):
        return Capacity()
    # On an endpoint of their own, since a limit that only so many requests at once meet, or a service that answers so
    # many too late, is nobody's fault, and no reason to stop asking.
    endpoint = Endpoint(session.target, session.endpoint.pace, crowded=True)
    client = session.client_of(endpoint, session.guard, Judge())
    client.widen(SIDE_BY_SIDE)
    try:
        return _measured(session, client, seen)
    finally:
        client.close()


def adapt(session: Session, capacity: Capacity) -> int:
    """Have the session send at once what the service bears; returns how many checks to have under way at once."""
    if capacity.overwhelmed:
        # What answers one at a time, and slowly, would be too late for some of any requests that are sent together.
        session.client.concurrency.one_by_one = True
    if not capacity.several:
        return 1
    session.client.widen(SIDE_BY_SIDE)
    return 1 if session.one_at_a_time else SIDE_BY_SIDE


def _measured(session: Session, client: Client, seen: list[Exchange]) -> Capacity:
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
    """Ask until there is an answer: till then the service is at requests that nobody waits for any more."""
    with suppress(ServiceGone):
        for _ in range(GIVE_UP_AFTER):
            if client.send(asked).status is not None:
                break


def _exchanged(session: Session, send: Callable[[], object]) -> list[Exchange]:
    """The exchanges of what `send` sends, as far as the run goes on asking."""
    before = len(session.recorder.exchanges)
    with suppress(ServiceGone):
        send()
    return session.recorder.exchanges[before:]


def _several_at_once(seen: list[Exchange], together: list[Exchange]) -> bool | None:
    """Whether a far service has answered requests that were sent `together` as soon as one alone. None where it did
    several at once, and yet was late: this machine, or the network, may have stood still for a moment."""
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
