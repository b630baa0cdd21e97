"""How many requests a service is sent at the same time. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.transport.evidence import Exchange

#: How many independent requests are in flight at once by default.
TOGETHER = 8
#: While a service answers within so many seconds, independent requests are sent one by one: handing them to threads and
#: back would take longer than waiting for the answer.
NEAR = 0.004
#: Once an answer has more bytes than HEAVY, independent requests are sent one by one: bodies that arrive together are
#: all held in memory, while identical ones that arrive one after the other are held once. Requests that must overlap
#: are sent one by one if their answers together may have more bytes than TOO_HEAVY.
HEAVY, TOO_HEAVY = 2_000_000, 256_000_000


class Concurrency:
    """What the answers of a service tell about sending it several requests at once."""

    def __init__(self) -> None:
        self.one_by_one = False  # whether it is never to be sent several
        self.near = False  # whether its last answer came at once
        self._largest = 0  # bytes of its largest body
        self.together = TOGETHER  # how many independent ones may be in flight
        self.at_most: int | None = None  # how many of those may leave together, once a limit has shown

    def alone(self, count: int, *, at_once: bool) -> bool:
        """Whether the first of `count` requests is sent alone: because the service allows no more, or, unless they must
        overlap (`at_once`), because that is faster."""
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
        """Halve how many leave together, down to one, if one of these was turned away for the time being (429, 503):
        that may be a limit on simultaneous requests, and meeting it costs seconds of waiting each time."""
        if any(exchange.limited for exchange in together):
            self.at_most = max(1, (self.at_most or self.together) // 2)
