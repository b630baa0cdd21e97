"""How many requests a service is sent at the same time. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.transport.evidence import Exchange

#: Independent requests in flight at once, unless there are to be more.
TOGETHER = 8
#: While a service answers within so many seconds, independent requests are sent one by one: handing them to threads
#: and back would take longer than waiting for the answer.
NEAR = 0.004
#: Once an answer has more bytes than the first number, independent requests are sent one by one: bodies that arrive
#: together are each held in memory, while equal ones that arrive one after the other are held once. Requests that are
#: meant to overlap are sent one by one where their answers together may have more bytes than the second number.
HEAVY, TOO_HEAVY = 2_000_000, 256_000_000


class Concurrency:
    """What the answers of a service say of sending it several requests at once."""

    def __init__(self) -> None:
        self.one_by_one = False  # whether it is never to be sent several
        self.near = False  # whether its last answer came at once
        self._largest = 0  # bytes of its largest body
        self.together = TOGETHER  # how many independent ones may be in flight
        self.at_most: int | None = None  # how many of those may leave together, once a limit has shown

    def alone(self, count: int, *, at_once: bool) -> bool:
        """Whether the first of `count` requests goes alone: because the service allows no more, or, unless it matters
        that they overlap (`at_once`), because that takes less time."""
        if count == 1 or self.one_by_one or self._largest * count > TOO_HEAVY:
            return True
        return not at_once and (self.near or self.at_most == 1 or self._largest > HEAVY)

    def saw(self, size: int) -> None:
        """Learn that a body has `size` bytes."""
        self._largest = max(self._largest, size)

    def timed(self, exchange: Exchange) -> None:
        """Learn how long an answer took."""
        self.near = exchange.seconds < NEAR

    def narrow(self, together: Iterable[Exchange]) -> None:
        """Halve how many leave together, down to one, where one of these was turned away for now (429, 503): that may
        be a limit on requests at once, and each time that it is met costs seconds of waiting."""
        if any(exchange.limited for exchange in together):
            self.at_most = max(1, (self.at_most or self.together) // 2)
