"""CANCEL-7: several cancels of one order at once (specification, section 3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

from conformance import verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.target import Mode
from conformance.transport.client import Answer, pause
from conformance.transport.evidence import Allowed
from conformance.transport.wire import Connection, Wire

ROUNDS = 6
AT_ONCE = 6
#: Seconds for all connections of a round to be ready.
READY = 60.0


def cancel_at_once(api: Api, wire: Wire, order: int) -> list[Answer]:
    """Cancel `order` on AT_ONCE connections. Each has sent its request but for the last two bytes before a barrier
    releases those, so that the requests become complete within microseconds of each other."""
    barrier = Barrier(AT_ONCE, timeout=READY)

    def release(connection: Connection) -> Answer:
        barrier.wait()
        connection.release()
        return connection.receive(keep=False)

    with ExitStack() as stack:
        connections = [stack.enter_context(wire.connect()) for _ in range(AT_ONCE)]
        for connection in connections:
            connection.prepare(api.ask_cancel(order, allowed=Allowed.REPEATED), last=True)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            answers = list(threads.map(release, connections))
    for answer in answers:
        wire.keep(answer)
    return answers


@requirement("CANCEL-7", mode=Mode.FULL, pending=ROUNDS + 2)
def test_one_of_simultaneous_cancels_succeeds(api: Api, wire: Wire, orders: Orders) -> None:
    """Cancels one pending order on several connections at once, released together by a barrier, over several rounds:
    each time exactly one is answered 204."""
    taken = orders.take(pending=ROUNDS + 2).pending
    twice, spare, *rounds = taken
    verify.step(api.cancel(twice), 204, "CANCEL-1")
    if 200 <= (verify.settled(api.cancel(twice, allowed=Allowed.REPEATED)).status or 0) < 300:
        raise verify.Inconclusive("an order can be cancelled twice one after the other", "CANCEL-6")
    for order in rounds:
        answers = cancel_at_once(api, wire, order)
        successes = [answer for answer in answers if 200 <= (answer.status or 0) < 300]
        if len(successes) > 1:
            raise verify.Failed(
                f"one success of {AT_ONCE} simultaneous cancels of one order",
                f"{len(successes)} successes: {statuses(answers)}",
                *successes[:3],
            )
        if any(pause(answer) is not None for answer in answers):
            continue  # rate-limited: this round shows no more than that
        for answer in answers:
            verify.settled(answer)
        if not successes:
            verify.step(api.cancel(spare), 204, "CANCEL-1")
            raise verify.Failed(
                f"one success of {AT_ONCE} simultaneous cancels of one order",
                f"none: {statuses(answers)}, while another pending order could be cancelled",
                *answers[:3],
            )


def statuses(answers: list[Answer]) -> str:
    """The statuses of several answers, in order."""
    return ", ".join(answer.exchange.received for answer in answers)
