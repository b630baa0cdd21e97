"""The batteries of credentials: near the key, never the key, legal in a header, with labels that give nothing away."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from contextlib import suppress

import pytest
from cryptography.fernet import Fernet, InvalidToken
from hypothesis import given
from hypothesis import strategies as st

from conformance.checks import credentials, invalid_keys
from conformance.transport.request import Credential

KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=100)
LONG = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=100)
ODD = [
    "a",
    "aaaaaaaa",
    "12345678",
    "ABCDEFGH",
    "abcdefgh",
    "abccba",
    "--------",
    "x",
    "xxxxxxxx",
    "A=",
    '"""',
    "\\\\\\",
    "null",
    "aAaAaAaA",
]


def invalid(key: str) -> list[Credential]:
    """Everything that must be refused as an invalid key."""
    return invalid_keys.battery(key, random.Random(1))


def everything(key: str) -> list[Credential]:
    return [
        *invalid(key),
        *credentials.misplaced(key),
        *credentials.in_query(key),
        *credentials.in_body(key),
        *credentials.malformed(key),
        *credentials.schemes(key),
        credentials.valid(key),
    ]


def token(credential: Credential) -> str:
    ((name, value),) = credential.headers
    assert name == "Authorization"
    scheme, _, rest = value.partition(" ")
    assert scheme.lower() == "bearer"
    return rest


@given(KEYS)
def test_invalid_keys_are_not_the_key(key: str) -> None:
    tokens = [token(credential) for credential in invalid(key)]
    assert key not in tokens
    assert "" not in tokens
    assert not any(credential.valid for credential in invalid(key))


@given(KEYS.filter(lambda key: len(key) >= 8))
def test_what_is_put_in_the_place_of_the_key_does_not_tell_it(key: str) -> None:
    """A service may repeat a part of an invalid key, and which change was made is on record beside it."""
    others = invalid_keys._others(key)
    assert not any(one.lower() == other.lower() for one, other in zip(key, others, strict=True))
    assert invalid_keys._others(others) != key


@pytest.mark.parametrize("length", [32, 200, 800, 1500])
def test_the_queries_of_a_long_key_are_several(length: int) -> None:
    queries = [credential.query for credential in credentials.in_query("k" * length, fitting=True)]
    named = {field.partition("=")[0] for query in queries for field in query.split("&")}
    assert named == {*credentials.PARAMETERS, *credentials.RARE_PARAMETERS}
    assert all(len(query) <= credentials.LONGEST_QUERY for query in queries)


def test_a_query_that_is_too_long_is_no_fitting_one() -> None:
    key = "k" * credentials.LONGEST_QUERY
    assert credentials.in_query(key)
    assert not credentials.in_query(key, fitting=True)


@pytest.mark.parametrize("key", ODD)
def test_odd_keys_have_near_misses_too(key: str) -> None:
    """Keys without letters, of one letter, palindromes: fewer near misses, and none of them the key."""
    tokens = [token(credential) for credential in invalid_keys.near_misses(key)]
    assert key not in tokens
    assert len(set(tokens)) == len(tokens) >= 4
    assert len(invalid(key)) > 10


@given(LONG)
def test_near_misses_differ_from_each_other(key: str) -> None:
    misses = invalid_keys.near_misses(key)
    assert len({token(credential) for credential in misses}) == len(misses)
    assert len(misses) >= 10


@given(KEYS)
def test_every_credential_is_legal_in_a_header(key: str) -> None:
    """Nothing, or visible ASCII and single blanks inside: neither a client nor a proxy has a reason to change or refuse
    it."""
    for credential in everything(key):
        for name, value in credential.headers:
            assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
            assert re.fullmatch(r"([\x21-\x7e]+( [\x21-\x7e]+)*)?", value), credential.label
        assert re.fullmatch(r"[A-Za-z0-9_.~%=&-]*", credential.query)


def test_a_token_beyond_ascii_is_legal_in_a_header_too() -> None:
    """Bytes that stand for no control character in any of the common encodings (RFC 9110 section 5.5)."""
    values = [value for credential in credentials.beyond_ascii("key") for _, value in credential.headers]
    in_utf_8, in_latin_1, behind = values
    assert [value.encode("latin-1").decode() for value in (in_utf_8, behind)] == ["Bearer Schlüssel", "Bearer keyé"]
    assert in_latin_1 == "Bearer Schlüssel"
    assert all(map(str.isprintable, values))


@given(LONG)
def test_labels_are_unique(key: str) -> None:
    labels = [credential.label for credential in everything(key)]
    assert len(set(labels)) == len(labels)


@given(LONG)
def test_labels_and_shell_words_give_nothing_away(key: str) -> None:
    """They are the same for every key of the kind, so that they cannot hold any of it."""
    plain = {(credential.label, credential.shell) for credential in everything("Plain-Key.0123456789" * 5)}
    assert {(credential.label, credential.shell) for credential in everything(key)} <= plain


@given(LONG)
def test_only_the_valid_credential_is_marked_so(key: str) -> None:
    assert [credential.label for credential in everything(key) if credential.valid] == ["the key"]
    assert credentials.valid(key).headers == (("Authorization", f"Bearer {key}"),)


@given(LONG)
def test_misplaced_keys_are_no_bearer_tokens_in_authorization(key: str) -> None:
    """Else a service that accepts them is right: the scheme's name is case-insensitive."""
    for credential in credentials.misplaced(key):
        for name, value in credential.headers:
            if name.lower() == "authorization":
                assert value.split(" ")[0].lower() != "bearer" or key.lower() == "bearer"
        assert credential.headers


@given(KEYS | st.sampled_from([*ODD, *credentials.SPECIAL]))
def test_malformed_credentials_do_not_hold_the_key_alone(key: str) -> None:
    for credential in credentials.malformed(key):
        assert credential.headers[0][1] != f"Bearer {key}"


@given(KEYS)
def test_the_few_telling_ones_are_of_the_battery(key: str) -> None:
    telling = invalid_keys.telling(key)
    assert {credential.label for credential in telling} <= {
        credential.label for credential in invalid_keys.near_misses(key)
    }


def test_there_is_always_a_telling_one() -> None:
    for key in ODD:
        assert invalid_keys.telling(key), key


@given(LONG)
def test_secrets_are_what_is_made_of_the_key(key: str) -> None:
    """Every near miss that is sent is known to the redactor, under a label in angle brackets."""
    secrets = invalid_keys.secrets(key)
    assert {token(credential) for credential in invalid_keys.near_misses(key)} <= secrets.keys()
    assert key not in secrets
    assert all(re.fullmatch(r"<.+>", label) for label in secrets.values())


@pytest.mark.parametrize("length", [342, 43, 64, 512])
@pytest.mark.parametrize(
    "beginning",
    [
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0",
        "ewogICJhbGciOiAiUlMyNTYiCn0.ewogICJzdWIiOiAieCIKfQ",  # with line breaks
        "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..48V1_ALb6US04U3b.5eym8TW_c8SuK0ltJ3rpYIzOeDQz7TALvtu6UG9oMo4",
        "eyJpZCI6Mn0",
        "WzFd",
        "v4.local",
    ],
    ids=["signed", "written over several lines", "encrypted", "of two parts", "of an array", "PASETO"],
)
def test_what_decodes_to_the_same_signature_is_no_near_miss(beginning: str, length: int) -> None:
    """Of a signed token; decoders of many languages drop padding, what is left over, what is no base64, and what is
    empty behind the last dot."""
    key = f"{beginning}.{'A' * (length - 1)}B"

    def signature(text: str) -> tuple[str, bytes]:
        head, _, tail = text.removesuffix(".").rpartition(".")
        letters = re.sub(r"[^A-Za-z0-9_-]", "", tail)
        whole = letters[: len(letters) - (len(letters) % 4 == 1)]
        return head, base64.urlsafe_b64decode(whole + "=" * (-len(whole) % 4))

    tokens = [token(wrong) for wrong in (*invalid_keys.near_misses(key), *credentials.beyond_ascii(key))]
    fields = [dict(wrong.headers).get("Authorization", "") for wrong in credentials.malformed(key)]
    tokens += [field.removeprefix("Bearer ") for field in fields if re.fullmatch(r"Bearer [^ ]+", field)]
    assert len(tokens) > 30
    assert signature(key) not in map(signature, tokens)


@pytest.mark.parametrize(
    "key",
    [
        "eyAbcdefghijk.eyJzdWIiOiJ4In0.0123456789",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.01234~6789",
        "eyJhbGciOiJSUzI1NiJ9",
        "e.y.J",
    ],
    ids=["no JSON", "no base64url", "one part", "no base64"],
)
def test_a_key_that_is_not_signed_is_compared_as_it_is(key: str) -> None:
    tokens = [token(wrong) for wrong in (*invalid_keys.near_misses(key), *credentials.beyond_ascii(key))]
    assert {f"{key}=", f"{key}.", f"{key}é".encode().decode("latin-1")} <= set(tokens)
    labels = {wrong.label for wrong in credentials.malformed(key)}
    assert {"the key and a comma", "the key and another word, with a colon"} <= labels


@pytest.mark.parametrize("length", [1, 16, 33], ids=["padded twice", "padded", "not padded"])
@pytest.mark.parametrize("stripped", [False, True])
def test_what_decodes_to_the_same_fernet_token_is_no_near_miss(length: int, stripped: bool) -> None:
    """Fernet decodes with Python's base64, which drops what it does not know."""
    fernet = Fernet(Fernet.generate_key())
    key = fernet.encrypt(b"x" * length).decode()
    key = key.rstrip("=") if stripped else key

    def opens(told: str) -> bool:
        padded = told + "=" * (-len(told) % 4) if stripped else told
        with suppress(InvalidToken):
            return fernet.decrypt(padded.encode()) == b"x" * length
        return False

    wrong = [*invalid_keys.near_misses(key), *credentials.beyond_ascii(key), *credentials.malformed(key)]
    fields = [dict(each.headers)["Authorization"].partition(" ") for each in wrong]
    tokens = [told.strip() for scheme, _, told in fields if scheme == "Bearer"]
    assert opens(key)
    assert len(tokens) > 30
    assert not [told for told in tokens if opens(told)]


def test_a_number_before_a_bar_may_begin_with_zeros() -> None:
    """As databases read it, where the key of a row is its number, a bar and more."""
    key = "12|sKWn3Xo7Qe91ZtYp"
    assert f"0{key}" not in map(token, invalid_keys.near_misses(key))
    assert "0x12|y" in map(token, invalid_keys.near_misses("x12|y"))


def test_near_misses_catch_what_they_are_for() -> None:
    """Each way to compare carelessly lets at least one near miss pass."""
    key = "sk-Abcdefgh-0123456789-Abcdefgh.0123456789-Abcdefgh-0123456789-Abcdefgh-0123456789"
    careless = {
        "prefix": lambda told: key.startswith(told),
        "suffix": lambda told: key.endswith(told),
        "begins with the key": lambda told: told.startswith(key),
        "ends with the key": lambda told: told.endswith(key),
        "holds the key": lambda told: key in told,
        "case": lambda told: told.lower() == key.lower(),
        "length": lambda told: len(told) == len(key),
        "letters": lambda told: sorted(told) == sorted(key),
        "first 4": lambda told: told[:4] == key[:4],
        "first 8": lambda told: told[:8] == key[:8],
        "first 16": lambda told: told[:16] == key[:16],
        "first 32": lambda told: told[:32] == key[:32],
        "first 72": lambda told: told[:72] == key[:72],
        "all but the first": lambda told: told[1:] == key[1:],
        "all but the last": lambda told: told[:-1] == key[:-1],
        "behind the prefix": lambda told: told == key[3:],
        "case of the prefix": lambda told: told != key and told[:2].lower() + told[2:] == key,
        "behind a colon": lambda told: told.partition(":")[2] == key,
        "its hash": lambda told: told == hashlib.sha256(key.encode()).hexdigest(),
        "its shorter hash": lambda told: told == hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest(),
        "as a pattern": lambda told: told != key and re.fullmatch(key, told) is not None,
        "anything": lambda told: True,
    }
    tokens = [token(credential) for credential in invalid_keys.near_misses(key)]
    assert [name for name, passes in careless.items() if not any(map(passes, tokens))] == []
    for first in (4, 8, 16, 32, 72):
        assert any(told[:first] == key[:first] and told[first : first + 1] != key[first] for told in tokens)


@pytest.mark.parametrize("key", ["Zm9vYmFyYmF6cXV4cXV1eHF1dXV4eA=", "dGVzdC1rZXk/Pz8+Pg==", "plain-key-of-letters"])
def test_what_is_no_token_may_be_answered_with_400(key: str) -> None:
    """Padding ends a token (RFC 6750 section 2.1): with more behind it, as in a key twice, there is none. Nor does one
    hold a colon."""
    for credential in invalid_keys.battery(key, random.Random(1)):
        inside = re.search(r"=[^=]|:", token(credential)) is not None
        assert credential.malformed is inside, credential.label
    telling = invalid_keys.telling(key)
    assert len(telling) >= 2
    assert not any(credential.malformed for credential in telling)


@given(KEYS)
def test_there_is_a_well_formed_near_miss_of_every_key(key: str) -> None:
    """Much is judged on the answers to these, and what malformed credentials get is open in part."""
    assert len(key) == 1 or not invalid_keys.near_misses(key)[0].malformed
    if not credentials.is_token(key):  # a service that takes this one minds no form
        assert not any(credential.malformed for credential in invalid_keys.near_misses(key))


def test_a_random_key_depends_on_the_seed() -> None:
    batteries = [invalid_keys.battery("abcdefgh", random.Random(seed)) for seed in (1, 2)]
    one, other = (next(wrong for wrong in battery if wrong.label == "a random key") for battery in batteries)
    assert one.headers != other.headers
