"""What may be sent. Pure: it is told what was listed and what was handed out, and answers yes or a reason.

The service has no way to place an order, so a cancel that hits somebody's order cannot be made good. Hence the rules:

    observe   GET
    guarded   also HEAD, OPTIONS, and DELETE where no order is, and none would be under any plausible misreading
    full      also DELETE of orders handed out for the purpose, and of ids that only they could be mistaken for

A *misreading* is an integer that a faulty service may take a path segment for: its digits up to the first odd
character, its value modulo 2^32 or 2^31, rounded to a double, clamped to a range, without its sign. Two ids count as
one order if some misreading brings them together, in either direction: the service may have misread the id that was
sent, or the one that it stored.
"""

from __future__ import annotations

import math
import random
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from urllib.parse import unquote

from conformance.contract.jsontext import INT64
from conformance.target import Mode

SAFE_METHODS = frozenset({"HEAD", "OPTIONS"})
ORDERS = "/store/orders/"
#: New orders are likely to get ids next to those that exist: drawn ids keep at least one of these distances.
MARGINS = (2**20, 2**10, 2**4, 1)
LOW_BITS = 2**31
#: Path segments are no longer than this: what a longer one could be taken for is nobody's to say.
LONGEST = 1000
#: Absent ids are large, or fit into 32 bits if an order sits where large ones would be clamped to.
DRAWN_FROM = (range(2**40, INT64.stop - 2**20), range(2**24, 2**31 - 2**20))
#: A service may clamp an id that is too large for it to one of these.
RANGES = ((-(2**31), 2**31 - 1), (INT64.start, INT64.stop - 1))


class Refused(Exception):
    """The guard does not let a request out; the message says why."""


@lru_cache(maxsize=4096)
def readings(segment: str) -> frozenset[int]:
    """Every integer that a service may plausibly take the path segment `segment` for.

    `123abc` may be read as 123, `1e3` as 1, 3, 13 or 1000, `abc` as 0; digits of any script count as digits.
    """
    text = unicodedata.normalize("NFKC", unquote(segment))
    text = "".join(str(unicodedata.decimal(char, char)) for char in text)
    found = {0} if not text.strip().lstrip("+-")[:1].isdigit() else set()
    runs = re.findall(r"[0-9]+", text)
    found |= {_number(run) for run in runs}
    found |= {_number("".join(runs))} if runs else set()
    for pattern, base in ((r"0[xX]([0-9a-fA-F]+)", 16), (r"0[oO]?([0-7]+)", 8), (r"0[bB]([01]+)", 2)):
        found |= {int(match, base) for match in re.findall(r"(?<![0-9])" + pattern, text)}
    for match in re.findall(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text):
        value = float(match)
        if value < 2**70:
            found |= {int(value), round(value)}
    return frozenset(found | {-number for number in found})


def _number(digits: str) -> int:
    """The value of `digits`."""
    return int(digits)


def aliases(number: int) -> Iterator[tuple[str, float]]:
    """The classes in which `number` falls together with the ids that it could be mistaken for."""
    for signed in (number, -number):
        yield "low bits", signed % LOW_BITS  # equal modulo 2^32, or any higher power, implies equal modulo 2^31
        yield "double", _double(signed)


def _double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


class Guard:
    """The rules of one target's mode, and what they need to know: the ids ever listed and the ids handed out."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.listed: set[int] = set()
        self.lists_seen = 0
        self.handed_out: set[int] = set()
        self.untouched: dict[int, str] = {}  # of these, those that no cancel was sent for, and the state they are in
        self._classes: dict[tuple[str, float], set[int]] = {}
        self._residues: list[float] | None = None  # the "low bits" of all listed ids, sorted when asked for

    def saw_listing(self, ids: Iterable[int]) -> None:
        """Remember the ids of a listing; an id once seen stays seen."""
        self.lists_seen += 1
        new = set(ids) - self.listed
        if not new:
            return
        self.listed |= new
        for number in new:
            for alias in aliases(number):
                self._classes.setdefault(alias, set()).add(number)
        self._residues = None

    def hand_out(self, ids: Iterable[int], state: str = "") -> None:
        """Remember the orders that the state provider gave to the suite, and what they are: "pending" or "shipped"."""
        ids = set(ids)
        self.handed_out |= ids
        self.untouched.update(dict.fromkeys(ids, state))

    def take_back(self, ids: Iterable[int]) -> None:
        """Forget orders that were returned to the provider: whoever gets these ids next is somebody else."""
        for number in ids:
            self.handed_out.discard(number)
            self.untouched.pop(number, None)

    def touch(self, segment: str) -> str:
        """Note that a cancel of the order with this path segment was sent, and tell what the order was: "pending" or
        "shipped" if it was handed out as that and nothing was done to it before, "absent" if there is none; else
        nothing."""
        number = _canonical(segment)
        if number is None or number in self.handed_out:
            return "" if number is None else self.untouched.pop(number, "")
        return "absent" if number not in self.listed else ""

    def check(self, method: str, path: str) -> None:
        """Raise Refused unless a request with this method and path (relative to the base URL) may be sent."""
        if method == "GET":
            return
        if self.mode is Mode.OBSERVE:
            raise Refused(f"mode observe sends GET only, not {method}")
        if method in SAFE_METHODS:
            return
        if method != "DELETE":
            raise Refused(f"{method} could write; the suite sends GET, HEAD, OPTIONS and DELETE only")
        segment = path.removeprefix(ORDERS)
        if len(segment) > LONGEST:
            raise Refused(f"DELETE with a path segment of {len(segment)} characters")
        if segment == path or not segment or re.search(r"[/\\*?#;]|^\.+$", unquote(segment)):
            raise Refused(f"DELETE {path} does not address exactly one order")
        if self.mode is Mode.FULL and _canonical(segment) in self.handed_out:
            return
        if not self.lists_seen:
            raise Refused("no listing has been read, so whose order this is cannot be known")
        spared = self.handed_out if self.mode is Mode.FULL else set()
        hit = self.mistakable(readings(segment)) - spared
        if hit:
            raise Refused(f"DELETE {path} could be taken for order {min(hit)}, which was not handed out")

    def permits(self, segment: str) -> bool:
        """Whether a DELETE of the order with this path segment may be sent."""
        try:
            self.check("DELETE", ORDERS + segment)
        except Refused:
            return False
        return True

    def mistakable(self, numbers: Iterable[int]) -> set[int]:
        """The listed ids that one of `numbers` could be mistaken for."""
        hit: set[int] = set()
        for number in numbers:
            hit |= {min(max(number, low), high) for low, high in RANGES} & self.listed
            for alias in aliases(number):
                hit |= self._classes.get(alias, set())
        return hit

    def absent_ids(self, count: int, rng: random.Random) -> list[int]:
        """`count` ids drawn from where no order has ever been seen, as far from any as the listing leaves room for.

        Raises Refused where no such ids can be found: the listing is unread, or too dense.
        """
        if not self.lists_seen:
            raise Refused("no listing has been read, so no id is known to be absent")
        for margin, range_ in product(MARGINS, DRAWN_FROM):
            found: dict[int, None] = {}
            for _ in range(count * 50):
                number = self._draw(rng.choice(range_), margin)
                if number is not None:
                    found.setdefault(number)
                if len(found) == count:
                    return list(found)
        raise Refused("the listing leaves no room for ids that no order could be mistaken for")

    def _draw(self, number: int, margin: int) -> int | None:
        if self._residues is None:
            self._residues = sorted(value for kind, value in self._classes if kind == "low bits")
        low = number % LOW_BITS
        place = bisect_left(self._residues, low - margin)
        near = place < len(self._residues) and self._residues[place] < low + margin
        return None if near or not self.permits(str(number)) else number


def _canonical(segment: str) -> int | None:
    """The id that `segment` spells in the one plain way, or None."""
    return int(segment) if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", segment) else None
