"""Ids in a listing that breaks the contract, since the guard must know these orders, too. Pure.

A service that lists ids as strings, under another name, or not in JSON at all breaks LIST-2 or LIST-1, but still has
orders. Whatever could be an id is taken for one here: a mistake in this direction costs a check at most, in the other
an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance.contract.jsontext import INT64, Number
from conformance.contract.listing import FIELDS, Listing, Order
from conformance.transport.guard import LONGEST, RANGES, readings

#: How many words are looked at. If a listing has more, nobody can say which orders it shows.
MOST_WORDS = 5_000
_WORD, _DIGIT = re.compile(r'[^\s"\[\]{}:,]+'), re.compile(r"\d")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
#: The fields of an Order other than its id.
_OTHERS = frozenset(FIELDS.values()) - {"id"}


@dataclass(frozen=True)
class Sightings:
    """The integers that may be ids of orders; whether an order may have any id; and whether there was more than was
    looked at."""

    ids: frozenset[int] = frozenset()
    unidentified: bool = False
    incomplete: bool = False


def sightings(body: bytes, listing: Listing | None) -> Sightings:
    """What the answer to a listing shows besides the plain ids of `listing`, which is None if the body is not an
    array."""
    if body.strip() == b"null":  # what some write for an array without elements
        return Sightings()
    if listing is not None and not listing.doubled_names:
        texts = [list(_texts(element)) for element in listing.unidentified]
    else:
        texts = [[_ESCAPED.sub(lambda match: chr(int(match[1], 16)), body.decode("utf-8", "replace"))]]
    words: set[str] = set()
    unidentified = False
    for element in texts:
        found = {word for text in element for word in _WORD.findall(text) if _DIGIT.search(word)}
        unidentified = unidentified or not found
        words |= found
        if len(words) > MOST_WORDS:
            return Sightings(unidentified=True, incomplete=True)
    ids = {number for word in words for number in _meant(word)}
    ids |= {min(max(number, low), high) for number in ids if number not in INT64 for low, high in RANGES}
    return Sightings(frozenset(ids), unidentified)


def _texts(element: Any) -> Iterator[str]:
    """Every name and value in an element that may hold its id: all but the other fields of an Order."""
    if isinstance(element, Order):
        element = element.fields()
    if isinstance(element, dict):
        element = {name: value for name, value in element.items() if name not in _OTHERS}
    stack = [element]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield from value
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, bool):
            yield str(int(value))
        else:
            yield value.text if isinstance(value, Number) else str(value)


def _meant(word: str) -> frozenset[int]:
    """What `word` may mean. The end of a long one decides its value modulo 2^32, its beginning what it may be cut
    to."""
    if len(word) <= LONGEST:
        return readings(word)
    return readings(word[: LONGEST // 2]) | readings(word[-LONGEST // 2 :])
