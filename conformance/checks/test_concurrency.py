"""CANCEL-6, CANCEL-7: several cancels at once (specification, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
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


def cancel_at_once(api: Api, wire: Wire, orders: Sequence[int]) -> list[Answer]:
    """Cancel each of `orders` on a connection of its own. Each has sent its request but for the last two bytes before a
    barrier releases those, so that the requests become complete within microseconds of each other."""
    barrier = Barrier(len(orders), timeout=READY)

    def release(connection: Connection) -> Answer:
        barrier.wait()
        connection.release()
        return connection.receive(keep=False)

    with ExitStack() as stack:
        connections = [stack.enter_context(wire.connect()) for _ in orders]
        for connection, order in zip(connections, orders, strict=True):
            connection.prepare(api.ask_cancel(order, allowed=Allowed.REPEATED), last=True)
        with ThreadPoolExecutor(len(orders)) as threads:
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
        answers = cancel_at_once(api, wire, [order] * AT_ONCE)
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
            for answer in filter(verify.unlisted, answers):  # that is no refusal
                verify.step(answer, 204, "HTTP-1")
            verify.step(api.cancel(spare), 204, "CANCEL-1")
            raise verify.Failed(
                f"one success of {AT_ONCE} simultaneous cancels of one order",
                f"none: {statuses(answers)}, while another pending order could be cancelled",
                *answers[:3],
            )


@requirement("CANCEL-6", mode=Mode.FULL, pending=2 * AT_ONCE)
def test_orders_cancelled_at_once_stay_cancelled(api: Api, wire: Wire, orders: Orders) -> None:
    """Cancels several pending orders at once, released together by a barrier, in two rounds: none of them can be
    cancelled again, as it could if one cancel had undone another."""
    taken = orders.take(pending=2 * AT_ONCE).pending
    for round_ in (taken[:AT_ONCE], taken[AT_ONCE:]):
        first = cancel_at_once(api, wire, round_)
        if any(pause(answer) is not None for answer in first):
            continue  # rate-limited: this round shows no more than that
        for answer in first:
            verify.step(answer, 204, "CANCEL-1")
        for answer in api.send_all(api.ask_cancel(order, allowed=Allowed.REPEATED) for order in round_):
            if 200 <= (verify.settled(answer).status or 0) < 300:
                raise verify.Failed(
                    f"no success, since order {answer.exchange.order_id} was cancelled at once with "
                    f"{AT_ONCE - 1} others, each of which was answered 204",
                    verify.describe(answer),
                    answer,
                )


def statuses(answers: list[Answer]) -> str:
    """The statuses of several answers, in order."""
    return ", ".join(answer.exchange.received for answer in answers)
