"""Credentials made from the real key: the valid one, and the key presented in any other way than the right one. Each
has a label that is safe to print. Keys that are not the real one are in `invalid_keys`."""

from __future__ import annotations

import base64
import binascii
import json
import re
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

from conformance.contract.jsontext import NotJson, parse
from conformance.transport.request import Credential

#: What is no token (RFC 6750 section 2.1), but matches if a key is looked up by pattern, or ends a string in a query
#: that it is put into as it is. None looks like an attack, which firewalls in front of correct services would answer.
SPECIAL = ("%", "*", "O'Brien")


def is_token(text: str) -> bool:
    """Whether `text` has the form of a token (RFC 6750 section 2.1), with padding, `=`, only at its end."""
    return re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", text) is not None


def is_signed(text: str) -> bool:
    """Whether `text` has the form of a JSON web token (section 7.1 of RFC 7515 and of RFC 7516), or of another signed
    one: two or more parts in base64url, the first of which is JSON, as itsdangerous makes them; or PASETO."""
    parts = text.split(".")
    if len(parts) < 2 or re.fullmatch(r"[A-Za-z0-9_.-]+", text) is None:
        return False
    if re.fullmatch(r"v[1-4]\.(local|public)\..+", text):
        return True
    try:
        parse(base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
    except (binascii.Error, NotJson):
        return False
    return True


#: The form of a Fernet token (github.com/fernet/spec): base64url of a version, 0x80, a time before 2106, and more.
_FERNET = re.compile(r"gAAAAA[A-Za-z0-9_-]+={0,2}")


def may_pass_for(token: str, key: str) -> bool:
    """Whether a correct service may read `token` as `key`, because libraries decode its form leniently.

    Of a signed token they drop characters that are not base64, padding, and an empty part at the end; and what is left
    over after groups of four characters, as in RSA signatures with 3072 bits, since it is too little for 8 bits. Of a
    Fernet token Python drops what is not base64, and what follows the padding. A number before a bar, as in Laravel,
    may begin with zeros.
    """
    if is_signed(key):
        whole = len(key.rpartition(".")[2]) % 4 == 0
        ends = ("=", ".", ",", "é", *(("x", "/x", ",x", ";x", ":x") if whole else ()))
        return token in {key, *(f"{key}{end}" for end in ends)}
    if _FERNET.fullmatch(key):
        return not _decoded(token).isdisjoint(_decoded(key))
    return token in (key, f"0{key}") if re.match(r"[0-9]+\|", key) else token == key


def _decoded(text: str) -> set[bytes]:
    """What Python decodes from `text` as base64url, as it stands and padded."""
    found = set()
    for padding in ("", "=", "=="):
        with suppress(binascii.Error):
            found.add(base64.urlsafe_b64decode(f"{text}{padding}".encode()))
    return found


def bearer(token: str, label: str, shell: str | None, *, malformed: bool = False, bulky: bool = False) -> Credential:
    """A credential in the one right place: `Authorization: Bearer <token>`."""
    written = f"Bearer {shell}" if shell else None
    return Credential(label, (("Authorization", f"Bearer {token}"),), malformed=malformed, bulky=bulky, shell=written)


def with_key(
    key: str,
    label: str,
    template: str,
    *names: str,
    valid: bool = False,
    malformed: bool = False,
    bulky: bool = False,
) -> Credential:
    """A credential in the header fields `names`, by default Authorization: each has the value `template` with the key
    for `{key}`."""
    value, shell = (template.replace("{key}", word) for word in (key, "$KEY"))
    fields = tuple((name, value) for name in names or ("Authorization",))
    return Credential(label, fields, valid=valid, malformed=malformed, bulky=bulky, shell=shell)


def valid(key: str) -> Credential:
    """The valid key, presented as section 5 says."""
    return with_key(key, "the key", "Bearer {key}", valid=True)


#: Schemes that the key may be put under, headers that may hold it bare or as a bearer token, and cookies.
OTHER_SCHEMES = (
    "Basic", "Token", "ApiKey", "Api-Key", "Key", "Access", "Digest", "JWT", "Bearer_", "XBearer", "Bear", "OAuth",
    "DPoP", "Negotiate",
)  # fmt: skip
OTHER_HEADERS = ("X-API-Key", "API-Key", "X-Auth-Token", "X-Access-Token", "Api_Key", "X-Authorization")
BEARER_HEADERS = ("X-Forwarded-Authorization", "Authentication", "Proxy-Authorization")
COOKIES = ("api_key", "token", "access_token", "Authorization", "session")
#: Less common ones, all tried in one request.
RARE_HEADERS = (
    "ApiKey", "X-Token", "Token", "X-Key", "Access-Token", "Auth-Token", "Key", "X-Auth-Key", "Private-Token",
    "X-Forwarded-Access-Token", "Ocp-Apim-Subscription-Key", "X-ApiKey", "X-API-Token", "X-Session-Token", "X-Auth",
    "X-Goog-Api-Key", "Sec-WebSocket-Protocol", "AuthToken", "X-Client-Key", "Bearer", "X-Amz-Security-Token",
    "X-Original-Authorization",
)  # fmt: skip
RARE_COOKIES = ("apikey", "apiKey", "auth", "jwt", "key", "sid", "auth_token", "accessToken", "X-API-Key")


def misplaced(key: str, *, proxied: bool = False) -> list[Credential]:
    """The right key, presented in any other way than the right one (AUTH-4). A forward proxy takes its own credentials
    from Proxy-Authorization, so that is left out if `proxied`."""

    def basic(label: str, template: str, *, bulky: bool = False) -> Credential:
        text, shell = (template.replace("{key}", word) for word in (key, "${KEY}"))
        value = "Basic " + base64.b64encode(text.encode()).decode()
        return Credential(label, (("Authorization", value),), bulky=bulky, shell_user=shell)

    bearers = [name for name in BEARER_HEADERS if not (proxied and name == "Proxy-Authorization")]
    cookies = "; ".join(f"{name}={{key}}" for name in RARE_COOKIES)
    return [
        with_key(key, "the bare key, without a scheme", "{key}", malformed=True),
        basic("the key as the user of Basic", "{key}:"),
        basic("the key as the password of Basic", ":{key}"),
        basic("the key as user and password of Basic", "{key}:{key}", bulky=True),
        basic("the key as the password of Basic for the user api", "api:{key}"),
        with_key(key, "the key behind the schemes Basic and Bearer", "Basic Bearer {key}", malformed=True),
        *(with_key(key, f"the key under the scheme {scheme}", f"{scheme} {{key}}") for scheme in OTHER_SCHEMES),
        # Servers that know of programs which take `_` for `-` refuse such a field with 400.
        *(
            with_key(key, f"the key in the header {name}", "{key}", name, malformed="_" in name)
            for name in OTHER_HEADERS
        ),
        *(with_key(key, f"the key as a bearer token in the header {name}", "Bearer {key}", name) for name in bearers),
        *(with_key(key, f"the key in the cookie {name}", f"{name}={{key}}", "Cookie") for name in COOKIES),
        basic("the key as the password of Basic for the user x-access-token", "x-access-token:{key}"),
        with_key(key, "the key in headers of several names", "{key}", *RARE_HEADERS, bulky=True),
        with_key(key, "the key in cookies of several names", cookies, "Cookie", bulky=True),
        with_key(
            key, "a bearer token in the cookie Authorization", "Authorization=Bearer {key}", "Cookie", malformed=True
        ),
    ]


#: Query parameters that may be read as a key; the rare ones are tried several at a time.
PARAMETERS = ("api_key", "apikey", "access_token", "token", "key", "bearer")
RARE_PARAMETERS = (
    "apiKey", "accessToken", "auth", "auth_token", "authorization", "jwt", "api-key", "API_KEY", "private_token",
    "subscription-key", "api_token", "code", "secret", "auth_key", "authToken", "bearer_token", "x-api-key",
    "access-token", "sig",
)  # fmt: skip

#: Servers accept queries of up to so many characters: IIS answers 404 to one of more than 2,048, and some gateways take
#: no more than 2,000 for a whole URL.
LONGEST_QUERY = 1600
_SEVERAL = "the key in query parameters of several names"
#: From this length on, a key makes some requests so long that a service may refuse them; which ones depends on its
#: exact length.
_LONG_KEY = 3050
LONG_KEY = f"those of a key of {_LONG_KEY:,} characters or more"


def in_query(key: str, *, fitting: bool = False) -> list[Credential]:
    """The right key in a query parameter (AUTH-4); a service may refuse the parameter itself with 400. The less common
    ones share as few queries as hold them; with `fitting`, no query is so long that it may be refused for that."""
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
        queries[f"{_SEVERAL}{since}"] = heap
    return [
        Credential(label, query=query, plain=plain)
        for label, query in queries.items()
        if not fitting or len(query) <= LONGEST_QUERY
    ]


def query_kinds(key: str) -> tuple[str, ...]:
    """The labels of the queries that can be made from `key`, each with whether it is too long for some services: the
    length of the key decides how many parameters fit into one. Of a very long key, also LONG_KEY."""
    labels = (
        f"{each.label}{'' if len(each.query) <= LONGEST_QUERY else ' (long)'}"
        for each in in_query(key)
        if each.label.startswith(_SEVERAL) or len(each.query) > LONGEST_QUERY
    )
    return (*labels, *([LONG_KEY] if len(key) >= _LONG_KEY else []))


def in_body(key: str) -> list[Credential]:
    """The right key in the body (AUTH-4): in a form, as RFC 6750 section 2.2 once allowed for requests whose body has a
    meaning, or in a JSON object; a service may refuse the body itself."""
    quoted = quote(key, safe="")
    several = "&".join(f"{name}={quoted}" for name in PARAMETERS if name != "access_token")
    return [
        Credential("the key in the form field access_token", body=f"access_token={quoted}", plain=quoted == key),
        Credential("the key in form fields of several names", body=several, plain=quoted == key),
        Credential(
            "the key in a JSON object under several names",
            body=json.dumps(dict.fromkeys(PARAMETERS, key)),
            body_type="application/json",
            plain=json.dumps(key) == f'"{key}"',
        ),
    ]


def malformed(key: str) -> list[Credential]:
    """Bearer credentials that are empty or not well-formed; 400 is as good as 401 (RFC 6750 section 3.1)."""

    def wrong(label: str, template: str) -> Credential:
        return with_key(key, label, template, malformed=True)

    encoded = f"%{ord(key[0]):02X}{key[1:]}"
    made = [
        wrong("a bearer scheme without a token", "Bearer"),
        wrong("the key twice behind one scheme", "Bearer {key} {key}"),
        wrong("the scheme twice", "Bearer Bearer {key}"),
        wrong("the key after a colon", "Bearer: {key}"),
        wrong("the key after an equals sign", "Bearer={key}"),
        wrong("the key behind another credential", "Basic x, Bearer {key}"),
        wrong("the key right behind the scheme", "Bearer{key}"),
        bearer(
            encoded,
            "the key with a character percent-encoded",
            """$(printf %%%02X "'$KEY")${KEY#?}""",
            malformed=True,
        ),
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
        *special(key),
    ]
    return [wrong for wrong in made if not may_pass_for(wrong.headers[0][1].removeprefix("Bearer "), key)]


def _with_blank(key: str) -> Credential:
    half = len(key) // 2
    shell = "${KEY:0:${#KEY}/2} ${KEY:${#KEY}/2}"
    return bearer(f"{key[:half]} {key[half:]}", "the key with a blank in its middle", shell, malformed=True)


def beyond_ascii(key: str) -> list[Credential]:
    """Tokens with a letter beyond ASCII, which a field value may contain (RFC 9110 section 5.5), but a token may
    not."""

    def wrong(label: str, token: str, shell: str, encoding: str = "utf-8") -> Credential:
        field = ("Authorization", f"Bearer {token}".encode(encoding).decode("latin-1"))
        return Credential(label, (field,), malformed=True, shell=f"Bearer {shell}")

    strangers = [
        wrong("a token with a letter beyond ASCII", "Schlüssel", "Schlüssel"),
        wrong("a token with a byte that is no UTF-8", "Schlüssel", r"Schl$(printf '\374')ssel", "latin-1"),
    ]
    if may_pass_for(f"{key}é", key):
        return strangers
    return [*strangers, wrong("the key and a letter beyond ASCII", f"{key}é", "${KEY}é")]


def schemes(key: str) -> list[Credential]:
    """The valid key under other spellings of the scheme's name (AUTH-8)."""
    names = ("bearer", "BEARER", "bEaReR")
    keyed = [with_key(key, f"the key under the scheme {name}", f"{name} {{key}}") for name in names]
    return [replace(each, respelled=True) for each in keyed]


def header_names(key: str) -> list[Credential]:
    """The valid key under other spellings of the name of its header field, which is case-insensitive (RFC 9110 section
    5.1)."""
    names = ("authorization", "AUTHORIZATION")
    return [with_key(key, f"the key in the header {name}", "Bearer {key}", name, valid=True) for name in names]


def special(key: str) -> list[Credential]:
    """Those SPECIAL values that are not the key."""
    return [bearer(token, f"the token {token}", token, malformed=True) for token in SPECIAL if token != key]
