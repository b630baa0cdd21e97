"""A key that stands in for the one of a run, which no evidence holds: with the same invalid keys beside it.

Which near misses of a key there are depends on its form: digits have no other case, a short key has no other with the
first 16 characters of it, a padded one twice is no token, and not every key has a prefix. The kinds that there are are
on record; any key that has the same will do.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator

from conformance.checks import credentials, invalid_keys
from conformance.transport.redaction import SECRET_PART

#: Two of so few characters differ by chance in what can be made of them.
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
#: What tells the kind of a key: of small letters, capitals, both.
_PREFIXES = ("sk", "SK", "sK")
#: What a JSON web token begins with: a JSON object, in base64url.
_HEADER = "e30"


def stand_in(wrong_keys: tuple[str, ...], *, short: bool) -> str | None:
    """A key whose invalid keys are of the kinds `wrong_keys`, and which is as `short` as runs give warning of; None
    where no form of key has these."""
    wanted = (wrong_keys, short)
    if wanted not in _tried:
        for key in _untried:
            found = (invalid_keys.kinds(key), len(key) < SECRET_PART)
            _tried.setdefault(found, key)
            if found == wanted:
                break
    return _tried.get(wanted)


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
            padded = [drawn[:-padding] + "=" * padding for padding in range(1, min(3, length))]
            yield from padded
            for whole in (drawn, *padded):
                yield from (f"{prefix}_{whole[3:]}" for prefix in _PREFIXES)


def _forms() -> Iterator[str]:
    """Each candidate, and variants of it: with a hyphen at the beginning, in the middle or at the end, each of these
    with a dot, and each of all these as what is no token (RFC 6750): beside such a key no other counts as malformed.
    Each form once."""
    given: set[str] = set()
    for key in filter(None, _candidates()):
        parted = (key.replace(key[0], "-"), key.replace(key[len(key) // 2], "-"), f"-{key[1:]}", f"{key[:-1]}-")
        dotted = [form for whole in (key, *parted) for form in (whole, _with_dot(whole))]
        forms = dict.fromkeys(form for whole in dotted for form in (whole, f"{whole[:-1]}|"))
        yield from (form for form in forms if form not in given)
        given.update(forms)


def _with_dot(key: str) -> str:
    """`key` with a dot for its last character but one; what it is padded with stays behind both."""
    bare = key.rstrip("=") or key
    return f"{bare[:-2]}.{bare[-1:]}{key[len(bare) :]}"


#: What was found so far, by the kinds and whether it is short, and the candidates that are left.
_tried: dict[tuple[tuple[str, ...], bool], str] = {}
_untried = _forms()
