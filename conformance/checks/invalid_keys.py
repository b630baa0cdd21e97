"""Keys that are not the real one: near misses made from it, and unrelated ones (AUTH-3). Each has a label that is safe
to print."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from conformance.checks.credentials import SPECIAL, bearer, is_token, may_pass_for, special
from conformance.transport.request import Credential

#: Turns a key into something that is not the key.
Change = Callable[[str], str]
#: The characters of base64 by their value, in the alphabet for URLs (RFC 4648 section 5).
_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
#: The near miss that passes where header fields are kept without regard to case, as some parsers keep them.
OTHER_CASE = "the key in the other case"


@dataclass(frozen=True)
class NearMiss:
    """One way to miss the key: its label, how a curl line writes it in terms of $KEY, if the shell can, and whether it
    is much longer than the key."""

    label: str
    change: Change
    shell: str | None = None
    bulky: bool = False


def _others(text: str) -> str:
    """Another character of base64 for each one of `text`, chosen so that nobody can compute `text` from them: a service
    may repeat a part of an invalid key. Each differs in the highest bit of its value, so that the last character of an
    encoded key carries the difference, whatever of it is padding; and it is not the same letter in the other case."""
    rng = random.Random(text)
    return "".join(rng.choice(_beside(character)) for character in text)


@cache
def _beside(character: str) -> str:
    half = _BASE64[32:] if character in _BASE64[:32] else _BASE64[:32]
    return half.replace(character.swapcase(), "")


def _middle(key: str) -> str:
    at = len(key) // 2
    return key[:at] + _others(key[at]) + key[at + 1 :]


def _cut(length: int) -> Change:
    """The first `length` characters right, the rest wrong: passes if only those are compared."""
    return lambda key: key[:length] + _others(key[length:])


def _parts(key: str) -> tuple[str, str]:
    """The prefix that tells the kind of a key, like `sk` in `sk_…`, and the rest; both empty if there is none."""
    found = re.fullmatch(r"([A-Za-z]{2,5})([_-].{8,})", key)
    return (found[1], found[2]) if found else ("", "")


#: Keys are compared wrongly in many ways: by a prefix or a suffix, by length, without case, up to a limit (72 bytes:
#: bcrypt), by containment, up to what separates the parts of a token; with what is stored in place of the key, such as
#: its hash; or as a pattern, in which a dot matches any character.
NEAR_MISSES = (
    NearMiss("the key without its last character", lambda key: key[:-1], "${KEY%?}"),
    NearMiss("the key without its first character", lambda key: key[1:], "${KEY#?}"),
    NearMiss("the key and one character more", lambda key: key + "x", "${KEY}x"),
    NearMiss("one character and the key", lambda key: "X" + key, "X${KEY}"),
    NearMiss("the key and an equals sign", lambda key: key + "=", "${KEY}="),
    NearMiss("the key and a dot", lambda key: key + ".", "${KEY}."),
    NearMiss("the key, a dot and a character", lambda key: key + ".x", "${KEY}.x"),
    NearMiss("a character, a dot and the key", lambda key: "x." + key, "x.${KEY}"),
    NearMiss("the key, a hyphen and a character", lambda key: key + "-x", "${KEY}-x"),
    NearMiss("the key, a slash and a character", lambda key: key + "/x", "${KEY}/x"),
    NearMiss("a prefix and the key", lambda key: "test_" + key, "test_${KEY}"),
    NearMiss("the key with another last character", lambda key: key[:-1] + _others(key[-1])),
    NearMiss("the key with another first character", lambda key: _others(key[0]) + key[1:]),
    NearMiss("the key with another character in the middle", _middle),
    NearMiss(OTHER_CASE, str.swapcase, '$(printf %s "$KEY" | tr a-zA-Z A-Za-z)'),
    NearMiss("the key in upper case", str.upper, '$(printf %s "$KEY" | tr a-z A-Z)'),
    NearMiss("the key in lower case", str.lower, '$(printf %s "$KEY" | tr A-Z a-z)'),
    NearMiss("the key backwards", lambda key: key[::-1], '$(printf %s "$KEY" | rev)'),
    NearMiss("the key twice", lambda key: key + key, "${KEY}${KEY}", bulky=True),
    NearMiss("the first half of the key", lambda key: key[: len(key) // 2], "${KEY:0:${#KEY}/2}"),
    NearMiss("the second half of the key", lambda key: key[len(key) // 2 :], "${KEY:${#KEY}/2}"),
    NearMiss(
        "the key in base64",
        lambda key: base64.b64encode(key.encode()).decode(),
        """$(printf %s "$KEY" | base64 | tr -d '\\n')""",
    ),
    NearMiss(
        "the characters of the key in order",
        lambda key: "".join(sorted(key)),
        """$(printf %s "$KEY" | fold -w 1 | LC_ALL=C sort | tr -d '\\n')""",
    ),
    NearMiss("another key with the first 4 characters of the key", _cut(4)),
    NearMiss("another key with the first 8 characters of the key", _cut(8)),
    NearMiss("another key with the first 16 characters of the key", _cut(16)),
    NearMiss("another key with the first 32 characters of the key", _cut(32)),
    NearMiss("another key with the first 72 characters of the key", _cut(72)),
    NearMiss("another key of the same length", _cut(0)),
    NearMiss("the key without its prefix", lambda key: _parts(key)[1][1:], "${KEY#*[-_]}"),
    NearMiss("the key with its prefix in the other case", lambda key: _parts(key)[0].swapcase() + _parts(key)[1]),
    NearMiss(
        "the key without its hyphens and underscores",
        lambda key: re.sub("[-_]", "", key),
        '$(printf %s "$KEY" | tr -d _-)',
    ),
    NearMiss(
        "the key with hyphens and underscores exchanged",
        lambda key: key.translate(str.maketrans("-_", "_-")),
        '$(printf %s "$KEY" | tr -- _- -_)',
    ),
    NearMiss("the key with another character for each dot", lambda key: key.replace(".", "x"), "${KEY//./x}"),
    NearMiss("a zero and the key", lambda key: f"0{key}", "0${KEY}"),
    NearMiss("the key and '.0'", lambda key: f"{key}.0", "${KEY}.0"),
    NearMiss("a name, a colon and the key", lambda key: "x:" + key, "x:${KEY}"),
    NearMiss(
        "the SHA-256 of the key",
        lambda key: hashlib.sha256(key.encode()).hexdigest(),
        '$(printf %s "$KEY" | sha256sum | cut -c 1-64)',
    ),
    NearMiss(
        "the SHA-256 of the key in base64",
        lambda key: base64.b64encode(hashlib.sha256(key.encode()).digest()).decode(),
        '$(printf %s "$KEY" | openssl dgst -sha256 -binary | base64)',
    ),
    NearMiss(
        "the SHA-512 of the key",
        lambda key: hashlib.sha512(key.encode()).hexdigest(),
        '$(printf %s "$KEY" | sha512sum | cut -c 1-128)',
    ),
    NearMiss(
        "the SHA-1 of the key",
        lambda key: hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest(),
        '$(printf %s "$KEY" | sha1sum | cut -c 1-40)',
    ),
    NearMiss(
        "the MD5 of the key",
        lambda key: hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(),
        '$(printf %s "$KEY" | md5sum | cut -c 1-32)',
    ),
)
#: Words that are nobody's key and that a careless service lets pass, or breaks on: the last has the parts of a JSON web
#: token, none of which can be decoded.
STRANGERS = (
    "null", "undefined", "none", "None", "NULL", "nil", "true", "0", "test", "admin", "x", "not-the-key", "false",
    "constructor", "a.b.c",
)  # fmt: skip
#: Keys of examples that were never changed.
DEFAULTS = ("special-key", "YOUR_API_KEY", "changeme", "secret", "12345", "API_KEY")
UNSIGNED = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."
#: HS256 and good until 2100, so that only its signature is wrong.
FORGED = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZG1pbiIsImV4cCI6NDEwMjQ0NDgwMH0.{'A' * 43}"


def near_misses(key: str) -> list[Credential]:
    """Invalid keys close to `key`, all different. Those that are not tokens count as malformed, unless the key is not
    one either: its service cannot object to that."""
    return [
        bearer(token, miss.label, miss.shell, malformed=malformed, bulky=miss.bulky)
        for token, miss, malformed in _missed(key)
    ]


def _missed(key: str) -> list[tuple[str, NearMiss, bool]]:
    """The tokens that narrowly miss `key`, each with how, and whether it is malformed; without those that may be read
    as the key itself."""
    formed = is_token(key)
    missed = [(token, miss) for token, miss in _made(key).items() if token and not may_pass_for(token, key)]
    return [(token, miss, formed and not is_token(token)) for token, miss in missed]


def battery(key: str, rng: random.Random) -> list[Credential]:
    """The whole battery of AUTH-3: near misses of `key`, common words, and a random string of its length."""
    return [*near_misses(key), *_strangers(key, rng)]


def _strangers(key: str, rng: random.Random) -> list[Credential]:
    """Invalid keys that have nothing in common with `key`."""
    # One draw, so that what is drawn later does not depend on how long the key is.
    letters = random.Random(rng.getrandbits(64)).choices(string.ascii_letters + string.digits, k=max(16, len(key)))
    chance = "".join(letters)
    others = {word: f"the word {word!r}" for word in (*STRANGERS, *DEFAULTS)}
    others |= {UNSIGNED: "a JSON web token without a signature", FORGED: "a JSON web token with a made-up signature"}
    others |= {chance: "a random key"}
    shells = {word: word for word in (*STRANGERS, *DEFAULTS, UNSIGNED, FORGED)}
    zeros = bearer("0" * 1000, "a thousand zeros", "$(printf %01000d 0)", bulky=True)
    nobody = f"bearer {'nobody' if key != 'nobody' else 'no-one'}"
    return [
        Credential("the word 'nobody' behind the scheme bearer", (("Authorization", nobody),), shell=nobody),
        *(bearer(word, label, shells.get(word)) for word, label in others.items() if word != key),
        zeros,
    ]


def kinds(key: str) -> tuple[str, ...]:
    """The labels of the invalid keys that can be made from `key`, each with whether it is no token: which there are
    depends on the form of the key."""
    missed = [_kind(miss.label, malformed) for _, miss, malformed in _missed(key)]
    return (*missed, *_kinds_beside(key if key in (*STRANGERS, *DEFAULTS, UNSIGNED, FORGED, *SPECIAL) else ""))


@cache  # an audit asks for those of hundreds of keys, hardly any of which is one of the words
def _kinds_beside(key: str) -> tuple[str, ...]:
    wrong_ones = (*_strangers(key, random.Random(0)), *special(key))
    return tuple(_kind(wrong.label, wrong.malformed) for wrong in wrong_ones)


def _kind(label: str, malformed: bool) -> str:
    return f"{label}{' (no token)' if malformed else ''}"


def telling(key: str, *further: str) -> list[Credential]:
    """A few of the battery, for places where the whole would be too many: none of them malformed. `further` are labels
    of near misses to add."""
    wanted = {"the key without its last character", "the key and one character more", "another key of the same length"}
    wanted.update(further)
    return [wrong for wrong in near_misses(key) if wrong.label in wanted and not wrong.malformed]


def secrets(key: str) -> dict[str, str]:
    """Everything made from `key` that must show nowhere, with the label that stands for it."""
    return {value: f"<{miss.label}>" for value, miss in _made(key).items() if value and value != key}


def _made(key: str) -> dict[str, NearMiss]:
    """What the near misses make of `key`, each value once, with the first near miss that makes it."""
    made: dict[str, NearMiss] = {}
    for miss in NEAR_MISSES:
        made.setdefault(miss.change(key), miss)
    return made
