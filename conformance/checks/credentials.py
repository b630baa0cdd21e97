"""Batteries of credentials, made from the real key, that are not it. Each has a label that is safe to print."""

from __future__ import annotations

import base64
import binascii
import hashlib
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

from conformance.contract.jsontext import NotJson, parse
from conformance.transport.request import Credential

#: Key -> something that is not the key.
Change = Callable[[str], str]


@dataclass(frozen=True)
class NearMiss:
    """One way to miss the key, its label, how a curl line writes it in terms of $KEY, where the shell can, and whether
    it is much longer than the key."""

    label: str
    change: Change
    shell: str | None = None
    bulky: bool = False


def _other(char: str) -> str:
    """Another character of the same class. It differs in the highest bit of its base64 value, so that the last
    character of an encoded key carries the difference, whatever of it is padding."""
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    if char in alphabet:
        return alphabet[alphabet.index(char) ^ 0b100000]
    return "A"


def _middle(key: str) -> str:
    at = len(key) // 2
    return key[:at] + _other(key[at]) + key[at + 1 :]


def _cut(length: int) -> Change:
    """The first `length` characters right, the rest not: passes where only those are compared."""
    return lambda key: key[:length] + "".join(map(_other, key[length:]))


def _parts(key: str) -> tuple[str, str]:
    """The prefix that tells what kind of key it is, as `sk` in `sk_…`, and the rest; both empty where there is none."""
    found = re.fullmatch(r"([A-Za-z]{2,5})([_-].{8,})", key)
    return (found[1], found[2]) if found else ("", "")


#: Comparisons go wrong by prefix, by suffix, by length, by case, past a limit (72 bytes: bcrypt), by containment, at
#: what separates the parts of a token; with what is stored in place of the key; as a pattern, where any character will
#: do for a dot.
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
    NearMiss("a prefix and the key", lambda key: "test_" + key, "test_${KEY}"),
    NearMiss("the key with another last character", lambda key: key[:-1] + _other(key[-1])),
    NearMiss("the key with another first character", lambda key: _other(key[0]) + key[1:]),
    NearMiss("the key with another character in the middle", _middle),
    NearMiss("the key in the other case", str.swapcase, '$(printf %s "$KEY" | tr a-zA-Z A-Za-z)'),
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
#: Words that are nobody's key and that a careless service lets pass.
STRANGERS = (
    "null", "undefined", "none", "None", "NULL", "nil", "true", "0", "test", "admin", "x", "not-the-key", "false",
    "constructor",
)  # fmt: skip
#: Keys of examples that were never changed.
DEFAULTS = ("special-key", "YOUR_API_KEY", "changeme", "secret", "12345", "API_KEY")
#: Patterns: no tokens (RFC 6750 section 2.1), and all too good where a key is looked up by one. Nothing that looks like
#: an attack: firewalls in front of correct services answer that.
WILD = ("%", "*")
UNSIGNED = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."
#: HS256 and good until 2100, so that only its signature is wrong.
FORGED = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZG1pbiIsImV4cCI6NDEwMjQ0NDgwMH0.{'A' * 43}"


def is_token(text: str) -> bool:
    """Whether `text` has the form of a token (RFC 6750 section 2.1): padding, `=`, only at its end."""
    return re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", text) is not None


def is_jwt(text: str) -> bool:
    """Whether `text` has the form of a JSON web token, signed or encrypted (section 7.1 of RFC 7515 and of RFC 7516):
    three or five parts in base64url, the first of which is a JSON object."""
    parts = text.split(".")
    if len(parts) not in (3, 5) or re.fullmatch(r"[A-Za-z0-9_.-]+", text) is None:
        return False
    try:
        header = parse(base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
    except (binascii.Error, NotJson):
        return False
    return isinstance(header.value, dict)


def bearer(token: str, label: str, shell: str | None, *, malformed: bool = False, bulky: bool = False) -> Credential:
    """A credential in the one right place: `Authorization: Bearer <token>`."""
    written = f"Bearer {shell}" if shell else None
    return Credential(label, (("Authorization", f"Bearer {token}"),), malformed=malformed, bulky=bulky, shell=written)


def _with_key(
    key: str,
    label: str,
    template: str,
    *names: str,
    valid: bool = False,
    malformed: bool = False,
    bulky: bool = False,
) -> Credential:
    """A credential in the header fields `names`, in Authorization unless told otherwise: each has the value `template`
    with the key for each `{key}`."""
    value, shell = (template.replace("{key}", word) for word in (key, "$KEY"))
    fields = tuple((name, value) for name in names or ("Authorization",))
    return Credential(label, fields, valid=valid, malformed=malformed, bulky=bulky, shell=shell)


def valid(key: str) -> Credential:
    """The valid key, as section 5 has it presented."""
    return _with_key(key, "the key", "Bearer {key}", valid=True)


def near_misses(key: str) -> list[Credential]:
    """Invalid keys close to `key`, each different from it and from the others. Malformed are those that are no token,
    unless the key is none either: its service cannot mind."""
    return [
        bearer(token, miss.label, miss.shell, malformed=malformed, bulky=miss.bulky)
        for token, miss, malformed in _missed(key)
    ]


def _missed(key: str) -> list[tuple[str, NearMiss, bool]]:
    """The tokens that miss `key` narrowly, each with how, and whether it is malformed. What may be read as the key
    itself is none of them: base64 with its padding, or with one character left over, where the key is a JSON web
    token."""
    same = {"", key}
    if is_jwt(key):
        whole = len(key.rpartition(".")[2]) % 4 == 0  # as with RSA of 3072 bits: decoders drop what is too little for 8
        same |= {f"{key}=", f"{key}x"} if whole else {f"{key}="}
    formed = is_token(key)
    return [(token, miss, formed and not is_token(token)) for token, miss in _made(key).items() if token not in same]


def invalid_keys(key: str, rng: random.Random) -> list[Credential]:
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


def kinds_of_invalid_keys(key: str) -> tuple[str, ...]:
    """The labels of the invalid keys that can be made from `key`, each with whether it is no token: which there are
    depends on the form of the key."""
    missed = [_kind(miss.label, malformed) for _, miss, malformed in _missed(key)]
    return (*missed, *_kinds_beside(key if key in (*STRANGERS, *DEFAULTS, UNSIGNED, FORGED, *WILD) else ""))


@cache  # an audit asks for those of thousands of keys, none of which is one of the words
def _kinds_beside(key: str) -> tuple[str, ...]:
    battery = (*_strangers(key, random.Random(0)), *patterns(key))
    return tuple(_kind(wrong.label, wrong.malformed) for wrong in battery)


def _kind(label: str, malformed: bool) -> str:
    return f"{label}{' (no token)' if malformed else ''}"


def telling_invalid_keys(key: str) -> list[Credential]:
    """A few of the battery, for places where the whole would be too many: none of them malformed."""
    wanted = {"the key without its last character", "the key and one character more", "another key of the same length"}
    return [wrong for wrong in near_misses(key) if wrong.label in wanted and not wrong.malformed]


#: Schemes that the key may be put under, headers that may hold it bare or as a bearer token, and cookies.
OTHER_SCHEMES = (
    "Basic", "Token", "ApiKey", "Api-Key", "Key", "Access", "Digest", "JWT", "Bearer_", "XBearer", "Bear", "OAuth",
)  # fmt: skip
OTHER_HEADERS = ("X-API-Key", "API-Key", "X-Auth-Token", "X-Access-Token", "Api_Key", "X-Authorization")
BEARER_HEADERS = ("X-Forwarded-Authorization", "Authentication", "Proxy-Authorization")
COOKIES = ("api_key", "token", "access_token", "Authorization", "session")
#: Less common ones, which are all tried in one request.
RARE_HEADERS = (
    "ApiKey", "X-Token", "Token", "X-Key", "Access-Token", "Auth-Token", "Key", "X-Auth-Key", "Private-Token",
    "X-Forwarded-Access-Token", "Ocp-Apim-Subscription-Key", "X-ApiKey", "X-API-Token", "X-Session-Token", "X-Auth",
    "X-Goog-Api-Key", "Sec-WebSocket-Protocol", "AuthToken", "X-Client-Key", "Bearer", "X-Amz-Security-Token",
    "X-Original-Authorization",
)  # fmt: skip
RARE_COOKIES = ("apikey", "apiKey", "auth", "jwt", "key", "sid", "auth_token", "accessToken", "X-API-Key")


def misplaced(key: str, *, proxied: bool = False) -> list[Credential]:
    """The right key, shown in any way but the right one (AUTH-4). Behind a forward proxy, which takes its own
    credentials from it, Proxy-Authorization is left alone."""

    def basic(label: str, template: str, *, bulky: bool = False) -> Credential:
        text, shell = (template.replace("{key}", word) for word in (key, "${KEY}"))
        value = "Basic " + base64.b64encode(text.encode()).decode()
        return Credential(label, (("Authorization", value),), bulky=bulky, shell_user=shell)

    bearers = [name for name in BEARER_HEADERS if not (proxied and name == "Proxy-Authorization")]
    cookies = "; ".join(f"{name}={{key}}" for name in RARE_COOKIES)
    return [
        _with_key(key, "the bare key, without a scheme", "{key}", malformed=True),
        basic("the key as the user of Basic", "{key}:"),
        basic("the key as the password of Basic", ":{key}"),
        basic("the key as user and password of Basic", "{key}:{key}", bulky=True),
        basic("the key as the password of Basic for the user api", "api:{key}"),
        _with_key(key, "the key behind the schemes Basic and Bearer", "Basic Bearer {key}", malformed=True),
        *(_with_key(key, f"the key under the scheme {scheme}", f"{scheme} {{key}}") for scheme in OTHER_SCHEMES),
        # Servers that know of programs which take `_` for `-` refuse such a field with 400.
        *(
            _with_key(key, f"the key in the header {name}", "{key}", name, malformed="_" in name)
            for name in OTHER_HEADERS
        ),
        *(_with_key(key, f"the key as a bearer token in the header {name}", "Bearer {key}", name) for name in bearers),
        *(_with_key(key, f"the key in the cookie {name}", f"{name}={{key}}", "Cookie") for name in COOKIES),
        basic("the key as the password of Basic for the user x-access-token", "x-access-token:{key}"),
        _with_key(key, "the key in headers of several names", "{key}", *RARE_HEADERS, bulky=True),
        _with_key(key, "the key in cookies of several names", cookies, "Cookie", bulky=True),
        _with_key(
            key, "a bearer token in the cookie Authorization", "Authorization=Bearer {key}", "Cookie", malformed=True
        ),
    ]


#: Query parameters that may be read for a key, and less common ones, which are all tried in one request.
PARAMETERS = ("api_key", "apikey", "access_token", "token", "key", "bearer")
RARE_PARAMETERS = (
    "apiKey", "accessToken", "auth", "auth_token", "authorization", "jwt", "api-key", "API_KEY", "private_token",
    "subscription-key", "api_token", "code", "secret", "auth_key", "authToken", "bearer_token", "x-api-key",
    "access-token", "sig",
)  # fmt: skip

#: Characters of a query up to which servers take it: IIS answers 404 to one of more than 2,048.
LONGEST_QUERY = 1600


def in_query(key: str, *, fitting: bool = False) -> list[Credential]:
    """The right key in a query parameter (AUTH-4); a service may refuse the parameter itself with 400. The less common
    ones go together in as few queries as hold them; with `fitting` there is none that may be refused for its length."""
    quoted = quote(key, safe="")
    plain = quoted == key
    heaps: list[str] = []
    for field in (f"{name}={quoted}" for name in RARE_PARAMETERS):
        if heaps and len(heaps[-1]) + len(field) < LONGEST_QUERY:
            heaps[-1] += f"&{field}"
        else:
            heaps.append(field)
    queries = {f"the key in the query parameter {name}": f"{name}={quoted}" for name in PARAMETERS}
    for heap in heaps:
        since = f", from {heap.partition('=')[0]} on" if heap != heaps[0] else ""
        queries[f"the key in query parameters of several names{since}"] = heap
    return [
        Credential(label, query=query, plain=plain)
        for label, query in queries.items()
        if not fitting or len(query) <= LONGEST_QUERY
    ]


def in_form(key: str) -> list[Credential]:
    """The right key in a form that is sent as the body (AUTH-4), as RFC 6750 section 2.2 once had it for requests whose
    body has a meaning; a service may refuse the body itself."""
    quoted = quote(key, safe="")
    several = "&".join(f"{name}={quoted}" for name in PARAMETERS if name != "access_token")
    return [
        Credential("the key in the form field access_token", form=f"access_token={quoted}", plain=quoted == key),
        Credential("the key in form fields of several names", form=several, plain=quoted == key),
    ]


def malformed(key: str) -> list[Credential]:
    """Bearer credentials that are empty or not well-formed; 400 is as good as 401 (RFC 6750 section 3.1)."""

    def wrong(label: str, template: str) -> Credential:
        return _with_key(key, label, template, malformed=True)

    encoded = f"Bearer %{ord(key[0]):02X}{key[1:]}"
    return [
        wrong("a bearer scheme without a token", "Bearer"),
        wrong("the key twice behind one scheme", "Bearer {key} {key}"),
        wrong("the scheme twice", "Bearer Bearer {key}"),
        wrong("the key after a colon", "Bearer: {key}"),
        wrong("the key after an equals sign", "Bearer={key}"),
        wrong("the key behind another credential", "Basic x, Bearer {key}"),
        wrong("the key right behind the scheme", "Bearer{key}"),
        Credential("the key with a character percent-encoded", (("Authorization", encoded),), malformed=True),
        wrong("the key in quotes", 'Bearer "{key}"'),
        wrong("the key in angle brackets", "Bearer <{key}>"),
        wrong("the key and a comma", "Bearer {key},"),
        *([_with_blank(key)] if len(key) > 1 else []),
        wrong("an empty credential", ""),
        wrong("the key and another word, with a comma", "Bearer {key},x"),
        wrong("the key and another word, with a semicolon", "Bearer {key};x"),
        wrong("the key and another word, with a colon", "Bearer {key}:x"),
        wrong("a number, a bar and the key", "Bearer 1|{key}"),
        wrong("the key as a parameter", 'Bearer token="{key}"'),
        wrong("another word and the key, with a comma", "Bearer x,{key}"),
        *patterns(key),
    ]


def _with_blank(key: str) -> Credential:
    half = len(key) // 2
    field = ("Authorization", f"Bearer {key[:half]} {key[half:]}")
    shell = "Bearer ${KEY:0:${#KEY}/2} ${KEY:${#KEY}/2}"
    return Credential("the key with a blank in its middle", (field,), malformed=True, shell=shell)


def patterns(key: str) -> list[Credential]:
    """Those patterns that are not the key."""
    return [
        Credential(
            f"the token {token}", (("Authorization", f"Bearer {token}"),), malformed=True, shell=f"Bearer {token}"
        )
        for token in WILD
        if token != key
    ]


def beyond_ascii(key: str) -> list[Credential]:
    """Tokens that hold a letter beyond ASCII, which a field value may (RFC 9110 section 5.5) and a token may not; one
    is the key if it is left out, as decoders of JSON web tokens may."""

    def wrong(label: str, token: str, shell: str) -> Credential:
        field = ("Authorization", f"Bearer {token}".encode().decode("latin-1"))
        return Credential(label, (field,), malformed=True, shell=f"Bearer {shell}")

    stranger = wrong("a token with a letter beyond ASCII", "Schlüssel", "Schlüssel")
    return [stranger] if is_jwt(key) else [stranger, wrong("the key and a letter beyond ASCII", f"{key}é", "${KEY}é")]


def schemes(key: str) -> list[Credential]:
    """The valid key under other spellings of the scheme's name (AUTH-8)."""
    names = ("bearer", "BEARER", "bEaReR")
    return [_with_key(key, f"the key under the scheme {name}", f"{name} {{key}}") for name in names]


def header_names(key: str) -> list[Credential]:
    """The valid key under other spellings of the name of its header field, which has no case (RFC 9110 section 5.1)."""
    names = ("authorization", "AUTHORIZATION")
    return [_with_key(key, f"the key in the header {name}", "Bearer {key}", name, valid=True) for name in names]


def secrets(key: str) -> dict[str, str]:
    """Everything made from `key` that must show nowhere, with the label that stands for it."""
    return {value: f"<{miss.label}>" for value, miss in _made(key).items() if value and value != key}


def _made(key: str) -> dict[str, NearMiss]:
    """What the near misses make of `key`, each value once: with the first near miss that makes it, and in the place of
    the last."""
    made = {miss.change(key): miss for miss in reversed(NEAR_MISSES)}
    return dict(reversed(made.items()))
