"""Simultaneous requests: how they are sent, and which of them a limit may have turned away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import filterfalse

from conformance import outcomes, verify
from conformance.api import Api
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Request
from conformance.transport.retries import turned_away
from conformance.transport.wire import OPENED, Connection, Wire

#: How many cancels are sent at once; and how many instead, if a service turns away all but one of them.
AT_ONCE, FEWER_AT_ONCE = 8, (4, 2)
#: How many listings are under way while something else is done.
READERS = 2


def cancel_at_once(api: Api, wire: Wire, orders: Sequence[int]) -> list[Answer]:
    """Cancel each of `orders` on a connection of its own, all released together. If a service accepts no further
    connection while requests on others are incomplete, it gets whole requests instead. Listings find out whether it
    does, since some services act even on a request that is never completed."""
    asked = [api.ask_cancel(order, allowed=Allowed.ANY_4XX) for order in orders]
    if wire.takes_several is None:
        released_together(wire, [api.ask_list()] * len(asked))
    return released_together(wire, asked) if wire.takes_several else api.send_all(asked, at_once=True)


def released_together(wire: Wire, requests: Sequence[Request]) -> list[Answer]:
    """The answers to requests that are completed within microseconds of each other. Each is sent on a connection of its
    own except for its last two bytes; then these bytes of all are sent. If a connection cannot be made, all requests
    are given up, and count as turned away."""
    with ExitStack() as stack:
        connections: list[Connection] = []
        for request in requests:
            connections.append(stack.enter_context(wire.connect()))
            connections[-1].prepare(request, last=True, within=OPENED)
            wire.takes_several = not connections[-1].kept_waiting
            if not wire.takes_several:
                return [connection.receive() for connection in connections]
        for connection in connections:  # in 30 µs; threads that meet at a barrier take 400, since one runs at a time
            connection.release()
        with wire.receiving(connections) as answers:
            pass
    for answer in answers:
        wire.keep(answer)
    wire.pass_turns(len(requests))
    return answers


class Crowd:
    """How many cancels to send at once: fewer each round until two of them are let in, since limits on connections are
    not shown (section 8)."""

    def __init__(self) -> None:
        self.size = AT_ONCE
        self.fits = False  # whether two were let in, so that they could get into each other's way
        self._smaller = list(FEWER_AT_ONCE)
        self._let_in = 0
        self._last: list[Answer] = []

    def saw(self, answers: list[Answer]) -> list[Answer]:
        """Learn from the answers to a round. Returns the answers to cancels that were let in."""
        let_in = [*filterfalse(turned_away, answers)]
        self._last = answers
        self._let_in += len(let_in)
        self.fits |= len(let_in) > 1
        if not self.fits and self._smaller:
            self.size = self._smaller.pop(0)
        return let_in

    def decides(self) -> None:
        """Raise Inconclusive if no cancel was let in in any round, not even one of two."""
        if self._let_in:
            return
        limited = any(answer.status == 429 or answer.exchange.crowded for answer in self._last)
        advice = verify.FEWER if limited else "this takes a service that lets in one of two requests at once"
        raise outcomes.Inconclusive(
            f"each of {len(self._last)} simultaneous cancels was turned away; {advice}", "HTTP-1"
        )


@contextmanager
def under_way(api: Api, wire: Wire) -> Iterator[list[int]]:
    """Keep listings under way, each on a connection of its own, during the block. Gives a list for the orders that are
    placed meanwhile: a listing may have been read before or after that."""
    meanwhile: list[int] = []
    with ExitStack() as stack:
        connections = [stack.enter_context(wire.connect()) for _ in range(READERS)]
        for connection in connections:
            connection.send_among_others(api.ask_list())
        answers: list[Answer] = []
        try:
            with wire.receiving(connections) as answers:
                yield meanwhile
        finally:
            for answer in answers:
                answer.spared = frozenset(meanwhile)
                wire.keep(answer)
            wire.pass_turns(READERS)
