"""A key that stands in for that of a run, which the evidence does not have, and that gives the same invalid keys.

Which near misses a key has depends on its form: digits have no other case, a short key has no other with its first 16
characters, a padded one doubled is not a token, and not every key has a prefix. The record has the kinds of near
misses; any key with the same kinds will do.
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

#: What can be made of two keys of so few characters differs by chance.
_FEW = (4, 3, 2)
_LENGTHS = (24, 12, 40, 80, 6, 5, 7, 8, 9, 16, 17, 32, 33, 72, 73, 1, *_FEW * 6)
_ALPHABETS = (
    string.ascii_letters + string.digits,
    string.ascii_lowercase + string.digits,
    string.ascii_uppercase + string.digits,
    string.digits + "-.",
    string.digits + "_",
    string.digits,
    string.ascii_letters,
    string.ascii_lowercase,
    string.ascii_uppercase,
    "y",
    "Y",
    "7",
)
#: Prefixes in lower case, in upper case, and in both.
_PREFIXES = ("sk", "SK", "sK")
#: The beginning of a JSON web token: a JSON object, in base64url.
_HEADER = "e30"
#: The beginning of a Fernet token.
_FERNET = "gAAAAA"
#: How often a key is lengthened in search of one that still has the same near misses.
_GROWN = 12


def stand_in(wrong_keys: tuple[str, ...], *, short: bool) -> str | None:
    """A key whose invalid keys and queries are of the kinds `wrong_keys`, and which is `short` if a run with it would
    warn about that. None if no form of key has these kinds."""
    for key, kinds in _of_form(wrong_keys):
        if (len(key) < SECRET_PART) is short:
            for grown in _grown(key, wrong_keys[len(kinds) :]):
                if invalid_keys.kinds(grown) == kinds and (len(grown) < SECRET_PART) is short:
                    return grown
    return None


def _of_form(wrong_keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The candidates whose kinds of invalid keys `wrong_keys` begins with, each with these kinds."""
    yield from ((key, kinds) for kinds in _tried if wrong_keys[: len(kinds)] == kinds for key in _tried[kinds])
    for key in _untried:
        kinds = invalid_keys.kinds(key)
        _tried.setdefault(kinds, []).append(key)
        if wrong_keys[: len(kinds)] == kinds:
            yield key, kinds


def _grown(key: str, queries: tuple[str, ...]) -> Iterator[str]:
    """`key` with more characters in its middle: as many as its queries need to be of these kinds."""
    characters = cycle([character for character in key if character.isalnum()] or "a")
    half = len(key) // 2
    more = (length - len(quote(key, safe="")) for length in _lengths(queries))
    for extra in islice((count for count in more if count >= 0), _GROWN):
        yield key[:half] + "".join(islice(characters, extra)) + key[half:]


@cache
def _lengths(queries: tuple[str, ...]) -> list[int]:
    """The lengths of a key, quoted for a URL, whose queries are of these kinds."""
    longest = credentials.LONGEST_QUERY + 100  # from here on each parameter has a query of its own that is too long
    return [length for length in range(1, longest) if credentials.query_kinds("a" * length) == queries]


def _candidates() -> Iterator[str]:
    yield from (*invalid_keys.STRANGERS, *invalid_keys.DEFAULTS, *credentials.WILD)
    rng = random.Random(0)
    for length in _LENGTHS:
        for alphabet in _ALPHABETS:
            drawn = "".join(rng.choices(alphabet, k=length))
            half = drawn[: length // 2]
            middle = drawn[length // 2 : length - length // 2]
            yield drawn
            yield "".join(sorted(drawn))
            yield "".join(sorted(drawn, reverse=True))
            yield half + middle + half[::-1]
            for parted in (f"{half[:1]}_{half[2 : length // 4]}", f"sk_{half[3 : length // 4]}"):
                yield (parted + parted[::-1]) * 2
            yield half + middle + half
            yield (half[: length // 4] + half[: length // 4][::-1]) * 2
            yield f"{_HEADER}.{drawn}.{drawn}"
            yield f"{_HEADER}.{drawn}"
            yield f"1|{drawn}"
            for extra in ("", "a", "aa"):
                fernet = f"{_FERNET}{drawn}{extra}"
                yield from (fernet, fernet + "=" * (-len(fernet) % 4))
            padded = [drawn[:-padding] + "=" * padding for padding in range(1, min(3, length))]
            yield from padded
            for whole in (drawn, *padded):
                yield from (f"{prefix}_{whole[3:]}" for prefix in _PREFIXES)


def _forms() -> Iterator[str]:
    """Each candidate, and variants of it, each form once: with a hyphen at the beginning, in the middle or at the end;
    each of these with a dot; and each of all these with a bar, which makes it no token (RFC 6750): beside such a key no
    other one counts as malformed."""
    given: set[str] = set()
    for key in filter(None, _candidates()):
        parted = (key.replace(key[0], "-"), key.replace(key[len(key) // 2], "-"), f"-{key[1:]}", f"{key[:-1]}-")
        dotted = [form for whole in (key, *parted) for form in (whole, _with_dot(whole))]
        forms = dict.fromkeys(form for whole in dotted for form in (whole, f"{whole[:-1]}|"))
        yield from (form for form in forms if form not in given)
        given.update(forms)


def _with_dot(key: str) -> str:
    """`key` with a dot as its last character but one; padding stays at the end."""
    bare = key.rstrip("=") or key
    return f"{bare[:-2]}.{bare[-1:]}{key[len(bare) :]}"


#: The candidates so far, by the kinds of their invalid keys, and those that are left.
_tried: dict[tuple[str, ...], list[str]] = {}
_untried = _forms()
