"""Collections of ids: from all over int64, close to another id, malformed. Pure: random choices come from the given
generator."""

from __future__ import annotations

from random import Random
from urllib.parse import quote

from conformance.contract.jsontext import INT64

#: Only checks that run alone place orders closer than this to the ends of int64: clamped ids could be mistaken for
#: theirs.
ENDS = 2**12
#: The ids of orders that many a language takes for none, or cannot hold: zero, both ends of int64, where 31 and 32 bits
#: end.
EDGES = (0, INT64.stop - 1, INT64.start, 2**31, 2**32)
#: The ids of pending ones, but 0: also those next to others, where a shipped order may be touched by a refused cancel.
PENDING_EDGES = (*EDGES[1:], -1, 2**31 - 1)
#: Both ends of int64, and the id next to the upper one: what a number beyond may become.
AT_THE_ENDS = (INT64.stop - 1, INT64.stop - 2, INT64.start)
#: Numbers beyond int64, which become one of those where they are clamped or overflow.
BEYOND = (str(INT64.stop), str(INT64.stop + 1), str(10**30), "9" * 200, str(INT64.start - 1), str(-(10**30)))
#: Near the ends of int64, checks place orders only within this distance from them. So an absent id beyond it belonged
#: to no order in an earlier run either, which a service might remember.
UNUSED = 2**17


def like_edges(order: int) -> bool:
    """Whether `order` equals one of the EDGES in its low bits, or nearly as a double."""
    return order % 2**31 in (0, 2**31 - 1) or abs(order) > INT64.stop - ENDS


def large(rng: Random) -> list[int]:
    """Ids above 2^31, above 2^53 and near 2^63."""
    draw = rng.randrange
    return [2**31 + draw(10**6), 2**53 + 1 + 2 * draw(10**6), INT64.stop - ENDS - draw(10**4)]


def below_zero(rng: Random) -> list[int]:
    """Ids below zero, below -2^53 and near -2^63."""
    draw = rng.randrange
    return [-draw(10**6, 10**7), -(2**53) - 1 - 2 * draw(10**6), INT64.start + ENDS + draw(10**4)]


def near_the_ends(rng: Random) -> list[int]:
    """Ids close to both ends of int64 that no order ever had."""
    return [INT64.stop - 1 - rng.randrange(UNUSED, 2**20), INT64.start + rng.randrange(UNUSED, 2**20)]


def similar(base: int) -> list[int]:
    """`base`, and ids next to it, with the other sign, with the same first or last digits, or with the same low
    bits."""
    return [base - 1, base, base + 1, -base, base * 10 + 7, base // 10, base + 10**12, base + 2**32, base + 2**33]


def similar_besides(base: int) -> list[int]:
    """Further ids like those of `similar`, for other orders."""
    return [base * 10 + 3, base + 3 * 10**12, base + 3 * 2**32, -base - 2**32]


def aliases(order: int) -> list[int]:
    """Numbers that equal `order` as a double, modulo some power of two or ten, or without its sign."""
    nearest = [other for other in (*neighbours(order), order + 2) if float(other) == float(order)]
    powers = [order + 2**32, order - 2**32, order + 2**33, order + 2**40, order + 2**64, order + 2**31]
    powers += [order + 10**9, order + 10**12]  # as where leading digits do not fit
    return [other for other in dict.fromkeys([*nearest, -order, *powers]) if other != order]


def octals(order: int) -> list[str]:
    """The digits that name `order` if a leading zero means octal; as decimals they name another order."""
    return [f"0{order:o}"] if order > 7 else []


def neighbours(order: int) -> list[int]:
    """The ids next to `order`, and the double closest to it."""
    return list(dict.fromkeys([order - 1, order + 1, order - 2, int(float(order))]))


def digits_of(order: int) -> list[int]:
    """`order` without its last digit, and `order` with one more digit, as far as they are in int64."""
    return [other for other in (order // 10, order * 10 + 1) if other in INT64]


#: Not numbers at all. Tried first: a service that takes them for the newest order shows it before others are sent.
NO_NUMBERS = ("abc", "null", "undefined", "NaN")
#: What some languages turn into zero, since it has no digits: PHP, MySQL, and others where nobody looks at the error.
OF_ZERO = (*NO_NUMBERS, "false", "-", "%20", "%7B%7D")
#: What may stand for `{d}`, digits behind an id, in a malformed one. A service may take them for an id of their own,
#: and a store may have an order with it: the first that no order could be meant by will do. Each is below one half as a
#: fraction, so that rounding leaves the id before it as it is.
FURTHER = (4, 24, 456, 4_025, 41_025, 430_025, 2_000_000_025)


def spellings(segment: str) -> list[str]:
    """The ways to write a malformed path segment, of which one will do."""
    return [segment.replace("{d}", str(digits)) for digits in FURTHER] if "{d}" in segment else [segment]


def spoiled(order: int) -> list[str]:
    """`order` with odd characters. What may be other notations of the same number is observed only (UNUSUAL)."""
    after = ("abc", ".{d}", "x", "-{d}", "-abc", "%2C", "_", "%00x", "%0Ax", "%20{d}", "%26x", ":cancel")
    return [f"{order}{odd}" for odd in after] + [f"{odd}{order}" for odd in ("x", "--")]


#: What is no integer and has no digits, by its kind.
WITHOUT_DIGITS = {
    "letters": "abc",
    "a name that every object of JavaScript has": "constructor",
    "null": "null",
    "undefined": "undefined",
    "NaN": "NaN",
    "a UUID": "{uuid}",
    "a minus sign alone": "-",
    "JSON": "%7B%7D",
    "blank": "%20",
    "a name with an apostrophe": "O%27Brien",
    "bytes that are no UTF-8": "%FF",
}
#: What is no integer and has digits, by its kind, with an absent id in the place of `{n}`, and FURTHER ones in that of
#: `{d}`.
WITH_DIGITS = {
    "a null character after digits": "{n}%00",
    "a fraction": "{n}.{d}",
    "letters after digits": "{n}abc",
    "letters before digits": "x{n}",
    "two minus signs": "--{n}",
    "a superscript behind digits": "{n}%C2%B2",
    "an exponent": "{n}e{d}",
    "two numbers": "{n}%2C{n}",
    "a group separator": "{n}_000",
    "a very long number": "9" * 200,
}
#: What tells that an id is malformed.
MALFORMED_STATUSES = frozenset({400, 405, 422})
OUTSIDE = {"2^63": str(2**63), "-2^63 - 1": str(-(2**63) - 1), "2^64": str(2**64), "10^30": str(10**30)}
#: What common frameworks read as the number that it is, or take for the order and a format. The specification shows
#: none of it.
UNUSUAL = {
    "leading zeros": "000{n}",
    "a plus sign": "%2B{n}",
    "a blank after": "{n}%20",
    "a fraction of zero": "{n}.0",
    "hexadecimal": "0x{x}",
    "digits of another script": "{w}",
    "a format's ending": "{n}.json",
}


def filled(kinds: dict[str, str], number: int, rng: Random) -> dict[str, str]:
    """Path segments of these kinds, made from `number`, each with `{d}` where it has further digits."""
    wide = quote("".join(chr(ord(digit) + 0xFEE0) for digit in str(number)))
    # Without decimal digits: those could be taken for an order's id, and then it could not be sent.
    uuid = "-".join("".join(rng.choices("abcdef", k=length)) for length in (8, 4, 4, 4, 12))
    return {kind: text.format(n=number, d="{d}", x=f"{number:x}", w=wide, uuid=uuid) for kind, text in kinds.items()}
