"""A key that stands in for that of a run, which the evidence does not have, and that gives the same invalid keys.

Which near misses a key has depends on its form: digits have no other case, a short key has no other with its first 16
characters, a padded one doubled is not a token, and not every key has a prefix. The record has the kinds of near
misses; any key with the same kinds will do. One is found by hill climbing: from a random key, again and again by the
change that brings its kinds closest to those on record.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice
from urllib.parse import quote

from conformance.checks import credentials, invalid_keys
from conformance.transport.redaction import SECRET_PART

#: From so many keys it is tried; the first one leads to nearly every form.
_STARTS = 30
#: Around most of these lengths, near misses appear or vanish.
_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32, 33, 40, 72, 73, 80)
_ALPHABETS = (
    string.ascii_letters + string.digits,
    string.ascii_letters,
    string.ascii_lowercase + string.digits,
    string.ascii_uppercase + string.digits,
    string.ascii_lowercase,
    string.ascii_uppercase,
    string.digits,
)
#: The header of a JSON web token: a JSON object, in base64url.
_HEADER = "e30."
#: How keys of a form begin that near misses depend on: with a prefix; as a JSON web token, or as what has a header
#: alone; with a number before a bar; as a Fernet token; with a mark, or with what is too short to be a prefix.
_BEGINNINGS = ("sk_", "SK_", "sK_", f"{_HEADER}x.", f"{_HEADER}xyz.", _HEADER, "1|", "gAAAAA", "-", "a_")
#: In no token (RFC 6750 section 2.1): beside a key with such a character, no other one counts as malformed.
_FOREIGN = "!"
_MARKS = f"-_.{_FOREIGN}"
_MOST_PADDING = 3
#: How often a key is lengthened in search of one that still has the same near misses.
_GROWN = 12


def stand_in(wrong_keys: tuple[str, ...], *, short: bool) -> str | None:
    """A key whose invalid keys and queries are of the kinds `wrong_keys`, and which is `short` if a run with it would
    warn about that. None if no key was found that has these kinds."""
    for key in _approached(frozenset(wrong_keys), short=short):
        kinds = invalid_keys.kinds(key)
        if wrong_keys[: len(kinds)] == kinds:
            for grown in _grown(key, wrong_keys[len(kinds) :]):
                if invalid_keys.kinds(grown) == kinds and _is(grown, short=short):
                    return grown
    return None


def _approached(wanted: frozenset[str], *, short: bool) -> Iterator[str]:
    """Keys that are `short` or not: the words and patterns that are tried as keys, since nothing else has their kinds;
    then those on the way from random ones to the kinds that are `wanted`."""

    def away(key: str) -> int:
        return len(wanted.symmetric_difference(invalid_keys.kinds(key)))

    words = (*invalid_keys.STRANGERS, *invalid_keys.DEFAULTS, *credentials.SPECIAL)
    yield from (word for word in words if _is(word, short=short))
    rng = random.Random(0)
    for alphabet in islice(cycle(_ALPHABETS), _STARTS):
        nearest = ["".join(rng.choices(alphabet, k=SECRET_PART - 1 if short else 3 * SECRET_PART))]
        distance = away(nearest[0])
        while nearest:
            yield from nearest
            changed = {other: away(other) for other in _changed(nearest[0], rng) if other and _is(other, short=short)}
            closest = min(changed.values())
            nearest = [other for other in changed if changed[other] == closest < distance]
            distance = closest


def _is(key: str, *, short: bool) -> bool:
    return (len(key) < SECRET_PART) is short


def _alphanumeric(key: str) -> str:
    """The letters and digits of `key`, or one if it has none."""
    return "".join(filter(str.isalnum, key)) or "a"


def _changed(key: str, rng: random.Random) -> Iterator[str]:
    """What one change makes of `key`: of its length, alphabet, order, beginning, marks or padding."""
    half, middle = len(key) // 2, (len(key) + 1) // 2
    for length in _LENGTHS:
        more = "".join(rng.choices(_alphanumeric(key), k=max(0, length - len(key))))
        yield (key[:half] + more + key[half:])[:length]
    for alphabet in _ALPHABETS:
        yield "".join(rng.choice(alphabet) if character.isalnum() else character for character in key)
    yield "".join(sorted(key))
    yield "".join(sorted(key, reverse=True))
    yield key[:middle] + key[:half][::-1]
    yield (key[: half // 2] + key[: half // 2][::-1]) * 2
    yield key[0] * len(key)
    for beginning in _BEGINNINGS:
        yield beginning + key[len(beginning) :]
    for mark in _MARKS:
        yield key[:half] + mark + key[half + 1 :]
        yield key[:-1] + mark
        yield mark * len(key)
    for padding in range(_MOST_PADDING + 1):
        yield key.rstrip("=") + "=" * padding


def _grown(key: str, queries: tuple[str, ...]) -> Iterator[str]:
    """`key` with more characters: as many as its queries need to be of these kinds. They come in its middle, or after
    the header of a token, where they leave the length of its signature as it is. A key that is no token can also have
    some that count three times in a query."""
    more = (length - len(quote(key, safe="")) for length in _lengths(queries))
    for extra in islice((count for count in more if count >= 0), _GROWN):
        for place in (len(key) // 2, len(_HEADER)):
            for foreign in {0, extra // 3} if _FOREIGN in key else {0}:
                filling = _FOREIGN * foreign + "".join(islice(cycle(_alphanumeric(key)), extra - 3 * foreign))
                yield key[:place] + filling + key[place:]


@cache
def _lengths(queries: tuple[str, ...]) -> list[int]:
    """The lengths of a key, quoted for a URL, whose queries are of these kinds."""
    longest = credentials.LONGEST_QUERY + 100  # from here on each parameter has a query of its own that is too long
    return [length for length in range(1, longest) if credentials.query_kinds("a" * length) == queries]
