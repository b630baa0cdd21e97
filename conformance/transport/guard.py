"""What may be sent. Pure: it is told which orders were listed and handed out, and answers yes, or gives a reason.

The service has no way to place an order, so a cancel that hits somebody's order cannot be undone. Hence the rules:

    observe   GET
    guarded   also HEAD, OPTIONS, and DELETE of ids that no order has, even if the service misreads them
    full      also DELETE of orders handed out to the suite, and of ids that could be mistaken for theirs only

A *misreading* is an integer that a faulty service may take a path segment for: its digits up to the first odd
character, its value modulo 2^32 or 2^31, rounded to a double, clamped to a range, without its sign. Two ids count as
one order if a misreading of either brings them together: the service may have misread the id that was sent, or the one
that it stored.
"""

from __future__ import annotations

import math
import random
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from urllib.parse import unquote

from conformance.contract.jsontext import INT64
from conformance.contract.transitions import State
from conformance.target import Mode

SAFE_METHODS = frozenset({"HEAD", "OPTIONS"})
ORDERS = "/store/orders/"
#: An id in canonical form; and characters that may make a decoded path segment address more than one order.
_CANONICAL, _SEVERAL = re.compile(r"0|-?[1-9][0-9]{0,18}"), re.compile(r"[/\\*?#;]|^\.+$")
#: The path of one order, as it is written or in a spelling that a service may take for that.
ORDER = re.compile(r"/store//?(?:o|%6F)rders//?([^/]+?)(?:;x|/x)?/?", re.IGNORECASE)
#: New orders are likely to get ids next to existing ones: drawn ids keep at least one of these distances.
MARGINS = (2**20, 2**10, 2**4, 1)
#: Ids are compared by their lowest 31 bits: ids that are equal modulo 2^32, or a higher power of two, agree in these.
MODULUS = 2**31
#: Longer path segments are not sent, since their misreadings cannot all be listed.
LONGEST = 1000
#: Absent ids are large; or, if large ones would be clamped to the id of an order, they fit into 32 bits.
DRAWN_FROM = (range(2**40, INT64.stop - 2**20), range(2**24, 2**31 - 2**20))
#: The most ids that are remembered. If listings show more, only orders that were handed out are cancelled.
MOST_REMEMBERED = 1_500_000
#: Up to this many new ids are inserted one by one; more are sorted together.
FEW = 200
#: An id so close to a power of two is likely to be in use: testers place orders at such edges.
CLOSE = 2
#: Below this, no two integers are the same double.
EXACT = 2**53
#: A service may clamp an id that is too large to one end of these ranges.
RANGES = ((-(2**31), 2**31 - 1), (INT64.start, INT64.stop - 1))


class Refused(Exception):
    """The guard refuses a request; the message says why."""


@lru_cache(maxsize=4096)
def readings(segment: str) -> frozenset[int]:
    """Every integer that a service may plausibly read in the path segment `segment`.

    `123abc` may be read as 123, `1e3` as 1, 3, 13 or 1000, `abc` as 0; digits of any script count as digits.
    """
    text = unicodedata.normalize("NFKC", unquote(segment))
    text = "".join(str(unicodedata.decimal(char, char)) for char in text)
    runs = re.findall(r"[0-9]+", text)
    found = {int(run) for run in runs}
    if runs:
        found.add(int("".join(runs)))
    if not text.strip().lstrip("+-")[:1].isdigit():
        found.add(0)
    for pattern, base in ((r"0[xX]([0-9a-fA-F]+)", 16), (r"0[oO]?([0-7]+)", 8), (r"0[bB]([01]+)", 2)):
        found |= {int(match, base) for match in re.findall(r"(?<![0-9])" + pattern, text)}
    for match in re.findall(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text):
        value = float(match)
        if value < 2**70:
            found |= {int(value), round(value)}
    return frozenset(found | {-number for number in found})


def _double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class Guard:
    """The rules of one target's mode, and what they depend on: the ids ever listed, and the ids handed out."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.listed: set[int] = set()
        self.listing_read = False
        self.handed_out: set[int] = set()
        self.untouched: dict[int, State] = {}  # of these, those that no cancel was sent for
        # When each of these was handed out, taken as the start of the next exchange, and when the last exchange ended,
        # in seconds since the epoch. Times of exchanges are on record for an audit, and a slow provider ages no order.
        self._since: dict[int, float] = {}
        self._new: set[int] = set()  # handed out since the last exchange
        self._now = 0.0
        # The listed ids by value, and by their lowest 31 bits with those bits aside: ids that fall together in some way
        # stand together in one of the two.
        self._sorted: list[int] = []
        self._by_residue: list[int] = []
        self._residues = array("L")
        self._incomplete = False  # there were more ids than are remembered
        self._unidentified = False  # there are orders that may have any id

    def saw_listing(self, ids: Iterable[int]) -> None:
        """Remember the ids of a listing; an id once seen stays seen."""
        self.listing_read = True
        self.remember(ids)

    def remember(self, ids: Iterable[int], *, unidentified: bool = False, incomplete: bool = False) -> None:
        """Remember ids that orders may have. `unidentified` says that there are orders which may have any id,
        `incomplete` that there are more ids than were looked at."""
        self._unidentified = self._unidentified or unidentified
        self._incomplete = self._incomplete or incomplete
        new = frozenset(ids) - self.listed
        if len(self.listed) + len(new) > MOST_REMEMBERED:
            self._incomplete = True
            return
        self.listed |= new
        if len(new) <= FEW:
            for number in new:
                place = bisect_right(self._residues, _residue(number))
                self._residues.insert(place, _residue(number))
                self._by_residue.insert(place, number)
                insort(self._sorted, number)
        else:
            self._sorted = sorted(self.listed)
            self._by_residue = sorted(self.listed, key=_residue)
            self._residues = array("L", map(_residue, self._by_residue))

    def hand_out(self, ids: Iterable[int], state: State) -> None:
        """Remember orders that the state provider handed out, and the state that it placed them in."""
        ids = set(ids)
        self.handed_out |= ids
        self.untouched.update(dict.fromkeys(ids, state))
        self._new |= ids

    def take_back(self, ids: Iterable[int]) -> None:
        """Forget orders that were returned to the provider: these ids may soon belong to somebody else's orders."""
        for number in ids:
            self.handed_out.discard(number)
            self.untouched.pop(number, None)
            self._since.pop(number, None)
            self._new.discard(number)

    def heard(self, started: float, ended: float) -> None:
        """Note that an exchange began and ended at these moments, in seconds since the epoch."""
        self._since.update(dict.fromkeys(self._new, started))
        self._new.clear()
        self._now = max(self._now, ended)

    def held(self, seconds: float) -> frozenset[int]:
        """The orders that were handed out at least so many seconds ago."""
        return frozenset(number for number, since in self._since.items() if self._now - since >= seconds)

    def touch(self, segment: str) -> State | None:
        """Note that a cancel of the order with this path segment was sent. Returns the state of that order before, if
        it is certain: the one it was handed out in, if this is its first cancel; ABSENT if it was never listed; else
        None."""
        number = _canonical(segment)
        if number is None:
            return None
        if number in self.handed_out:
            return self.untouched.pop(number, None)
        return None if number in self.listed else State.ABSENT

    @property
    def may_cancel(self) -> bool:
        """Whether the mode lets orders be cancelled: those that were handed out."""
        return self.mode is Mode.FULL

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
        order = ORDER.fullmatch(path)
        segment = order[1] if order else ""
        if len(segment) > LONGEST:
            raise Refused(f"DELETE with a path segment of {len(segment)} characters")
        if not segment or _SEVERAL.search(unquote(segment)):
            raise Refused(f"DELETE {path} does not address exactly one order")
        if self.may_cancel and _canonical(segment) in self.handed_out:
            return
        if not self.listing_read:
            raise Refused("no listing has been read, so whose order this is cannot be known")
        if self._incomplete:
            raise Refused("more ids were listed than are remembered, so whose order this is cannot be known")
        spared = self.handed_out if self.may_cancel else set()
        meant = readings(segment)
        hit = self.mistakable(meant) - spared
        if hit:
            raise Refused(f"DELETE {path} could be taken for order {min(hit)}, which was not handed out")
        if self._unidentified and any(_in_use(number) and not {number, -number} & spared for number in meant):
            raise Refused(f"DELETE {path}: an order was listed without an id, and may have any that is in common use")

    def permits(self, segment: str) -> bool:
        """Whether a DELETE of the order with this path segment may be sent."""
        try:
            self.check("DELETE", ORDERS + segment)
        except Refused:
            return False
        return True

    def mistakable(self, numbers: Iterable[int]) -> set[int]:
        """The listed ids that one of `numbers` could be mistaken for."""
        wanted = set(numbers)
        hit = {min(max(number, low), high) for number in wanted for low, high in RANGES} & self.listed
        for number in {abs(number) for number in wanted}:
            hit |= {number, -number} & self.listed
            for signed in (number, -number):
                if number >= EXACT:
                    hit.update(_equal(self._sorted, _double(signed), self._sorted, _double))
                hit.update(_equal(self._residues, _residue(signed), self._by_residue))
        return hit

    def absent_ids(self, count: int, rng: random.Random) -> list[int]:
        """`count` ids drawn from where no order was ever seen, as far from any as the listing allows.

        Raises Refused if there are no such ids, because the listing is unread or too dense.
        """
        if not self.listing_read:
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
        for low in (_residue(number), _residue(-number)):
            place = bisect_left(self._residues, low - margin)
            if place < len(self._residues) and self._residues[place] < low + margin:
                return None
        return number if self.permits(str(number)) else None


def _in_use(number: int) -> bool:
    """Whether an order is likely to have the id `number`, or one that it is clamped to: ids of up to 32 bits, and ids
    close to a power of two, which includes the ends of int64 and of the integers that a double holds exactly."""
    size = abs(number)
    bits = size.bit_length()
    return bits <= 32 or bits > 63 or min(size - 2 ** (bits - 1), 2**bits - size) <= CLOSE


def _residue(number: int) -> int:
    """`number` modulo MODULUS: its lowest 31 bits."""
    return number % MODULUS


def _equal(
    keys: Sequence[int], wanted: float, ids: Sequence[int], key: Callable[[int], float] | None = None
) -> Sequence[int]:
    """Those of `ids` whose `keys`, which are sorted, equal `wanted`; `key`, if given, is applied to the keys first."""
    return ids[bisect_left(keys, wanted, key=key) : bisect_right(keys, wanted, key=key)]


def _canonical(segment: str) -> int | None:
    """The id that `segment` spells in canonical form, or None."""
    return int(segment) if _CANONICAL.fullmatch(segment) else None
