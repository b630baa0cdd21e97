"""What is recorded: complete, cut where too long, and without the key, whatever form it takes."""

from __future__ import annotations

import base64
import gzip
import html
import html.entities
import itertools
import json
import pickle
import random
import re
import shlex
import subprocess
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from built import KEY, LIST, VALID, answered, cancel, recorder
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from patience import within
from programs import program

from conformance.checks import credentials, invalid_keys
from conformance.target import Shell
from conformance.transport import evidence, redaction
from conformance.transport.curl import at_once, curl, in_turn, on_one_connection
from conformance.transport.evidence import Exchange, Trouble
from conformance.transport.redaction import KEY_LABEL, PART_LABEL, Redactor
from conformance.transport.request import NOBODY, Allowed, Credential, Operation, Request

KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=80)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def is_public(part: str) -> bool:
    """Whether a part of a key is in every record, whatever the key is: "WWW-Auth"."""
    return part.lower() in redaction.PUBLIC.lower()


def forms(value: str) -> list[str]:
    """A secret in every form in which it may come back."""
    found = [value, quote(value, safe=""), json.dumps(value)[1:-1], json.dumps(value)[1:-1].replace("/", "\\/")]
    found.append(html.escape(value))
    for before in ("", "u", "us", "use"):
        for after in ("", "p", "pw", "pwd"):
            raw = f"{before}{value}{after}".encode()
            found += [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()]
    return found


def holds(text: str, secret: str) -> bool:
    """Whether a reader of `text` has the secret: as it is, percent-encoded, escaped or inside base64."""
    if any(form in text for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1])):
        return True
    for piece in re.findall(r"[A-Za-z0-9+/_-]{8,}", text):
        for start in range(4):
            cut = piece[start:].replace("-", "+").replace("_", "/")
            if secret.encode() in base64.b64decode(cut + "A" * (-len(cut) % 4)):
                return True
    return False


#: What the client sends besides the request's own header fields.
USUAL = (("Host", "h"), ("User-Agent", "store-orders-conformance/1"), ("Accept", "*/*"), ("Connection", "close"))


#: Long texts are searched in another way.
PADDING = st.sampled_from(["", " " * redaction.REMEMBERED])


@given(KEYS, TEXTS, TEXTS, st.data())
def test_no_form_of_the_key_survives(key: str, before: str, after: str, data: st.DataObject) -> None:
    clean = recorder(key).redactor.clean
    form = data.draw(st.sampled_from(forms(key)))
    assert not holds(clean(f"{before}{form}{after}{data.draw(PADDING)}"), key)


@given(KEYS, TEXTS, TEXTS, st.data())
def test_no_near_miss_survives(key: str, before: str, after: str, data: st.DataObject) -> None:
    redactor = recorder(key).redactor
    near = data.draw(st.sampled_from(list(invalid_keys.secrets(key))))
    assume(len(near) >= redaction.SECRET_PART)
    form = data.draw(st.sampled_from(forms(near)))
    text = f"{before} {form} {after}{data.draw(PADDING)}"
    assert not holds(redactor.clean(text), near)


@given(KEYS, TEXTS, TEXTS, st.data())
def test_no_long_part_of_the_key_survives_in_any_case(key: str, before: str, after: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(key) - redaction.SECRET_PART))
    part = key[start : start + data.draw(st.integers(8, 80))]
    part = data.draw(st.sampled_from([part, part.upper(), part.lower()]))
    assume(not is_public(part))
    cleaned = recorder(key).redactor.clean(f"{before}{part}{after}{data.draw(PADDING)}")
    lowered = cleaned.lower()
    for label in ("<key>", "<part of the key>", *invalid_keys.secrets(key).values()):
        lowered = lowered.replace(label.lower(), "\0")
    assert part.lower() not in lowered


@given(KEYS, TEXTS, st.data())
def test_no_long_part_of_the_key_survives_in_base64(key: str, user: str, data: st.DataObject) -> None:
    """As where a service repeats so many characters of an Authorization that it was sent, or wraps them."""
    way = data.draw(st.sampled_from([key, key[::-1], key.upper(), key.lower(), key.swapcase()]))
    encoded = base64.b64encode(f"{user}:{way}:{user}".encode()).decode()
    start = data.draw(st.integers(0, len(encoded)))
    part = encoded[start : start + data.draw(st.integers(0, len(encoded)))]
    cleaned = recorder(key).redactor.clean(f"Basic {part}{data.draw(PADDING)}")
    for label in ("<key>", "<part of the key>", *invalid_keys.secrets(key).values()):
        cleaned = cleaned.replace(label, "\0")
    assert not any(holds(cleaned, way[i : i + redaction.SECRET_PART]) for i in range(len(way)) if way[i + 7 :])


def test_a_part_of_the_key_is_found_beside_letters_that_grow_in_lower_case() -> None:
    """`İ` becomes two characters in lower case, which once left upper-case parts uncovered."""
    assert "CDEFGHIJ" not in Redactor("ABCDEFGHIJKL").clean("İ CDEFGHIJ")


@pytest.mark.parametrize("shown", ["sk-live-AbCd****", "test_sk-live-AbCd", "skliveAbCdEf****"])
def test_a_part_of_a_near_miss_with_other_separators_is_a_part_of_the_key(shown: str) -> None:
    cleaned = recorder("sk_live_AbCdEf0123456789xyzQ").redactor.clean(f"bad token {shown}")
    assert cleaned.replace("test_", "").replace("****", "") == f"bad token {PART_LABEL}"


def test_a_word_of_every_record_stays_and_the_rest_of_the_key_does_not() -> None:
    redactor = Redactor("my-application-token-93fz")
    assert redactor.clean("content-type: application/json") == "content-type: application/json"
    assert redactor.clean("my-application-token") == PART_LABEL


@given(TEXTS)
def test_text_without_secrets_stays(text: str) -> None:
    assert recorder().redactor.clean(text) == text


@given(st.text('%\\&#;ux0123456789abcDEF/<"…', max_size=40))
def test_text_with_escapes_and_without_secrets_stays(text: str) -> None:
    assert recorder().redactor.clean(text) == text


NAMES = {code: name.rstrip(";") for code, name in html.entities.codepoint2name.items()}
#: How a library may write a character, and what reads it.
SPELLINGS: dict[str, Callable[[int], str]] = {
    "percent-encoded": "%{:02X}".format,
    "percent-encoded in small letters": "%{:02x}".format,
    "percent-encoded as Unicode": "%u{:04X}".format,
    "in JSON": "\\u{:04x}".format,
    "in JSON in capitals": "\\u{:04X}".format,
    "in a program": "\\x{:02x}".format,
    "in C": "\\{:03o}".format,
    "in HTML": "&#{};".format,
    "in HTML with zeros": "&#{:05};".format,
    "in HTML in hex": "&#x{:x};".format,
    "in HTML in capital hex": "&#X{:X};".format,
    "in HTML by name": lambda code: f"&{NAMES[code]};" if code in NAMES else f"&#{code};",
}
READERS: dict[str, Callable[[str], str]] = {
    "%": lambda text: unquote(re.sub("%u00", "%", text)),
    "\\": lambda text: re.sub(
        r"\\(?:u00|x)([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|\\([^\w\s])",
        lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[3] or chr(int(escape[2], 8)),
        text,
    ),
    "&": html.unescape,
}


def written(text: str, spelling: str, escaped: Callable[[int], bool]) -> str:
    """`text` with those of its characters escaped whose place is."""
    return "".join(
        SPELLINGS[spelling](ord(character)) if escaped(place) else character for place, character in enumerate(text)
    )


@given(KEYS, st.lists(st.sampled_from(list(SPELLINGS)), min_size=1, max_size=2), TEXTS, TEXTS, st.data())
def test_no_long_part_of_the_key_survives_whichever_of_its_characters_are_escaped(
    key: str, spellings: list[str], before: str, after: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(key) - redaction.SECRET_PART))
    told = key[start : start + data.draw(st.integers(8, 80))]
    for spelling in spellings:
        escaped = data.draw(st.sets(st.integers(0, len(told) - 1)) | st.just(set(range(len(told)))))
        told = written(told, spelling, escaped.__contains__)
    cleaned = recorder(key).redactor.clean(f"{before}{told}{after}{data.draw(PADDING)}")
    readings = [cleaned]
    for spelling in reversed(spellings):
        readings.append(READERS[SPELLINGS[spelling](1)[0]](readings[-1]))
    parts = {key[i : i + redaction.SECRET_PART] for i in range(len(key) - redaction.SECRET_PART + 1)}
    assert not [part for part in parts for reading in readings if part in reading and not is_public(part)]


@pytest.mark.parametrize(
    "told",
    [
        "a1+b2%2fc3=D4&e5",  # the case of UrlEncode in .NET
        "a1\\u002Bb2/c3=D4\\u0026e5",  # System.Text.Json
        "a1+b2\\/c3\\u003dD4\\u0026e5",  # Gson
        "a1&#43;b2/c3=D4&amp;e5",  # html/template of Go
        "a1+b2&#x2F;c3&#x3D;D4&amp;e5",  # Mustache
        "a1\\u0026#43;b2/c3=D4\\u0026amp;e5",  # HTML in JSON
        "a1%252Bb2%252fc3=D4&e5",
    ],
)
def test_a_key_that_a_library_has_escaped_in_part(told: str) -> None:
    redactor = recorder("a1+b2/c3=D4&e5").redactor
    assert redactor.clean(f'{{"message": "not {told}!"}}') == '{"message": "not <key>!"}'
    assert redactor.reveals(f"not {told}!")
    assert not redactor.reveals("a1+b2%2fc3%2ee5")


def test_a_key_that_holds_what_reads_as_an_escape() -> None:
    clean = recorder("sk%41bcdefgh&lt;ijk").redactor.clean
    assert clean("not sk%41bcdefgh&lt;ijk!") == "not <key>!"
    assert clean("not sk%2541bcdefgh%26lt%3bijk!") == "not <key>!"


def test_what_stands_beside_an_escaped_key_stays_as_it_is() -> None:
    clean = recorder("sk-Abcd/efgh-12345").redactor.clean
    assert clean(r"\"%2f&lt;%20sk-Abcd%2fefgh-12345%20&gt;\/\"") == r"\"%2f&lt;%20<key>%20&gt;\/\""
    assert clean("x&amp;Abcd&#47;efgh-&amp;sk-Abcd&#47;efgh-12345") == "x&amp;<part of the key>&amp;<key>"


@given(KEYS)
def test_no_key_survives_in_hex(key: str) -> None:
    kept = recorder(key)
    dumps = [key.encode().hex(*separator) for separator in ("", ":", " ", "-")]
    for text in (*dumps, *map(str.upper, dumps)):
        assert kept.redactor.clean(f"saw {text}!") == "saw <key>!"
        assert kept.redactor.reveals(text) == (len(key) >= redaction.SECRET_PART)


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "utf-16": lambda body: body.decode().encode("utf-16"),
    "utf-16-le": lambda body: body.decode().encode("utf-16-le"),
    "utf-16-be": lambda body: body.decode().encode("utf-16-be"),
    "utf-32": lambda body: body.decode().encode("utf-32"),
    "utf-32-be": lambda body: body.decode().encode("utf-32-be"),
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bare deflate": lambda body: zlib.compress(body, wbits=-15),
    "gzip, cut": lambda body: gzip.compress(body)[:-6],
    "gzip with a wrong checksum": lambda body: gzip.compress(body)[:-8] + bytes(8),
    "UTF-16 in gzip": lambda body: gzip.compress(body.decode().encode("utf-16")),
}


@given(KEYS, st.sampled_from(list(CODECS)), TEXTS)
def test_a_body_that_is_no_utf_8_is_withheld_if_the_key_can_be_read_in_it(key: str, codec: str, before: str) -> None:
    kept = recorder(key)
    exchange = kept.begin(LIST, "http://h/v1/store/orders", (), "client")
    body = CODECS[codec](f"not {before} {key}, is it?".encode())
    kept.answer(exchange, (), body, extra=body)
    assert re.fullmatch("<withheld: .* it holds the key or a part of it>", exchange.body)
    assert exchange.extra == exchange.body
    assert exchange.revealed_key
    assert not exchange.body_cut


@pytest.mark.parametrize("codec", CODECS)
def test_a_body_that_is_no_utf_8_stays_where_it_holds_no_key(codec: str) -> None:
    kept = recorder()
    exchange = kept.begin(LIST, "http://h/v1/store/orders", (), "client")
    body = CODECS[codec](b'{"message": "no"}')
    kept.answer(exchange, (), body)
    assert exchange.raw_body == body


def test_a_quotation_of_a_key_in_utf_16() -> None:
    assert "cdefgh" not in recorder("abcdefgh").redactor.clean(repr("is: abcdefgh".encode("utf-16-le"))).replace(
        r"\x00", ""
    )


@given(KEYS, st.sampled_from([":", " ", "-"]), st.data())
def test_no_near_miss_survives_in_hex(key: str, separator: str, data: st.DataObject) -> None:
    near = data.draw(st.sampled_from([secret for secret in invalid_keys.secrets(key) if len(secret) >= 8]))
    for text in (near.encode().hex(separator), near.encode().hex(separator).upper()):
        assert near.encode().hex() not in re.sub("[: -]", "", recorder(key).redactor.clean(f"{text}!").lower())


@given(KEYS, st.sampled_from([" ", "-"]))
def test_no_key_survives_in_groups(key: str, separator: str) -> None:
    groups = separator.join(key[start : start + 4] for start in range(0, len(key), 4))
    cleaned = re.sub("[ -]", "", recorder(key).redactor.clean(f"({groups})"))
    assert not [start for start in range(len(key) - 7) if key[start : start + 8] in cleaned]


def test_a_key_in_groups_is_labelled() -> None:
    assert recorder("abcdefgh1234567890").redactor.clean("it is abcd efgh 1234 5678 90.") == "it is <key>."


def test_labels_say_what_was_there() -> None:
    clean = recorder("sk-Abcdefgh-12345").redactor.clean
    assert clean("Bearer sk-Abcdefgh-12345") == "Bearer <key>"
    assert clean("Bearer sk-Abcdefgh-1234") == "Bearer <the key without its last character>"
    assert clean("saw ABCDEFGH-123!") == "saw <part of the key>!"


@given(st.text("abAB-", min_size=8, max_size=20), st.text("abAB-", max_size=60))
def test_parts_of_the_key_are_found_however_they_are_looked_for(key: str, text: str) -> None:
    cleaned = set()
    for blocks, parts in itertools.product((0, 10**9), repeat=2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redaction, "MANY_BLOCKS", blocks)
            patch.setattr(redaction, "MANY_PARTS", parts)
            cleaned.add(recorder(key).redactor.clean(text))
    assert len(cleaned) == 1


@given(KEYS, st.lists(st.one_of(TEXTS, st.sampled_from(["%7b", "\\", "&lt;", "…"])), min_size=9), st.data())
def test_a_long_text_of_known_pieces_is_cleaned_like_any_other(
    key: str, pieces: list[str], data: st.DataObject
) -> None:
    assume("{" not in key)
    form = data.draw(st.sampled_from(forms(key)))
    place = data.draw(st.integers(0, len(pieces) - 1))
    told = "{".join([*pieces[:place], pieces[place] + form, *pieces[place + 1 :]])
    texts = ["{".join(pieces), "{".join(reversed(pieces)), told, f"{told}{{"]
    whole = [Redactor(key).clean(text) for text in texts]  # short enough for that
    longest = max(map(len, pieces))
    assume(longest < len(texts[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "REMEMBERED", longest)
        redactor = Redactor(key)
        assert [redactor.clean(text) for text in texts] == whole
        assert whole[0] != texts[0] or redactor._harmless >= set(texts[0].split("{"))


@pytest.mark.parametrize("key", ["sk_Abc{defgh{12345", "sk_Abcdefgh_12345"])
def test_a_key_is_found_in_a_long_listing_wherever_that_is_cut(key: str) -> None:
    listing = json.dumps([{"id": number, "status": "placed"} for number in range(500)])
    for seen_before, times in itertools.product((False, True), (1, 400)):
        clean = Redactor(key).clean
        assert not seen_before or clean(listing) == listing
        cleaned = clean(listing.replace("placed", f"of {key}", times))
        assert cleaned == listing.replace("placed", f"of {KEY_LABEL}", times)


def test_a_long_text_is_not_searched_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(KEY)
    searched: list[int] = []
    inner = redactor._secrets_in
    monkeypatch.setattr(redactor, "_secrets_in", lambda text: searched.append(len(text)) or inner(text))
    elements = [json.dumps({"id": number}) for number in range(1000)]
    for some in (elements, elements[100:], [*elements, '{"id": 5000}']):
        redactor.clean(f"[{', '.join(some)}]")
    assert searched[0] > 10_000
    assert max(searched[1:]) < 40


def test_what_is_known_of_long_texts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MOST_PIECES", 10)
    redactor = Redactor(KEY)
    for number in range(5):
        redactor.clean("{".join(["x" * redaction.REMEMBERED + "y", *map(str, range(9 * number, 9 * number + 9))]))
        assert len(redactor._harmless) <= 10 + 9
        assert max(map(len, redactor._harmless)) <= redaction.REMEMBERED


def test_a_date_in_the_key_is_no_secret() -> None:
    clean = recorder("ci-2026-12-01T00:30-Zx81").redactor.clean
    assert clean('"shipDate": "2026-12-31T00:30:00Z"') == '"shipDate": "2026-12-31T00:30:00Z"'
    assert clean("saw i-2026-1!") == "saw <part of the key>!"
    assert recorder("ci-20261201-Zx81").redactor.clean("order 202612019") == "order 202612019"
    assert recorder("4471202612018836").redactor.clean("saw 20261201") == "saw <part of the key>"


@given(KEYS, st.data())
def test_a_revealed_key_is_noticed(key: str, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(forms(key)))
    telling = len(key) >= redaction.SECRET_PART  # a shorter one may stand there by chance
    kept = recorder(key)
    exchange = kept.begin(LIST, "http://h/v1/store/orders", (), "client")
    kept.answer(exchange, (), f'{{"message": "{form}"}}'.encode())
    assert exchange.revealed_key == telling
    kept.answer(exchange, (("X-Echo", f"x {form}"),), b"")
    assert exchange.revealed_key == telling
    kept.answer(exchange, (("X-Echo", "x"),), b"none")
    assert not exchange.revealed_key


@settings(max_examples=25)
@given(KEYS)
def test_no_credential_of_any_check_is_recorded_as_it_is(key: str) -> None:
    """Everything that the checks send, as the recorder writes it down and as curl would repeat it."""
    kept = recorder(key)
    sent = [
        credentials.valid(key),
        *invalid_keys.near_misses(key),
        *credentials.misplaced(key),
        *credentials.in_query(key),
        *credentials.in_body(key),
    ]
    sent += [*credentials.malformed(key), *credentials.schemes(key)]
    assume(not any(key in (credential.shell or "") for credential in sent))  # what stands there for any key
    for credential in sent:
        request = Request("GET", "/store/orders", credential, body=(credential.body or key).encode())
        url = f"http://h/v1/store/orders?{request.full_query}"
        exchange = kept.begin(request, url, credential.headers, "client")
        exchange.detail = exchange.reason = f"refused {key}"
        kept.answer(exchange, (("X-Echo", key), (key, "x")), json.dumps({"message": f"no {key}"}).encode())
        kept.end(exchange)
        written = json.dumps(vars(exchange)) + curl(exchange, Shell("MY_KEY"))
        assert key not in written
        assert json.dumps(key)[1:-1] not in written
        assert not holds(written, key)


def test_the_length_of_a_form_with_the_key_is_not_recorded() -> None:
    (form, *_), sent = credentials.in_body(KEY), (("Host", "h"), ("Content-Length", "31"))
    request = Request("DELETE", "/store/orders/7", form, body=form.body.encode())
    exchange = recorder(KEY).begin(request, "http://h/store/orders/7", sent, "client")
    assert exchange.request_headers == [("Host", "h")]
    assert exchange.request_body == "access_token=<key>"


# --- exchanges


def test_text_full_of_ellipses_is_cleaned_at_once() -> None:
    """They mark where a quotation was cut, perhaps in the middle of a secret; a service may send any number of them."""
    redactor, text = Redactor("sk-Harness.Key_42"), "…" * 1_000_000
    assert redactor.clean(text) == text
    assert redactor.clean("a sk-Harness.K…") == f"a {KEY_LABEL}…"
    assert within(60, lambda: redactor.clean(text))


def test_an_exchange_is_recorded() -> None:
    kept = recorder()
    kept.check = "listing.all"
    exchange = kept.begin(cancel("12%61"), "http://h/v1/store/orders/12%61", (("Host", "h"), *VALID.headers), "wire")
    assert exchange.request_headers == [("Host", "h"), ("Authorization", "Bearer <the key>")]
    assert (exchange.method, exchange.operation, exchange.order_id) == ("DELETE", "cancelOrder", "12a")
    assert (exchange.credential, exchange.allowed, exchange.via) == ("the key", "LISTED", "wire")
    assert exchange.check == "listing.all"
    exchange.status, exchange.reason = 204, "No Content"
    kept.answer(exchange, (("Server", "x"),), b"")
    kept.end(exchange)
    assert exchange.received == "204 No Content"
    exchange.status, exchange.reason, exchange.headers = 301, "Moved Permanently", [("location", "/store/orders/")]
    assert exchange.received == "301 Moved Permanently to /store/orders/"
    assert exchange.line == "DELETE http://h/v1/store/orders/12%61 with the key"
    assert exchange.seconds >= 0


def test_a_long_body_is_cut_and_its_digest_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evidence.RECORDED_BODY >= 1024 * 1024 > evidence.BEGINNING >= 4096
    monkeypatch.setattr(evidence, "RECORDED_BODY", 200)
    monkeypatch.setattr(evidence, "BEGINNING", 100)
    body = b"[" + b"0," * 100 + b"0]"
    exchange = answered(LIST, 200, body).exchange
    assert exchange.body_cut
    assert exchange.body == body[:100].decode()
    assert exchange.body_size == len(body)
    assert exchange.body_sha256 == sha256(body).hexdigest()
    assert not answered(LIST, 200, b"[]").exchange.body_cut


def test_bodies_are_kept_as_long_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all bodies together, as they take room in the reports; short ones always."""
    monkeypatch.setattr(evidence, "RECORDED_IN_ALL", 100_000)
    kept = recorder()
    for body, whole in ((b"x" * 50_000, True), (b"\0" * 10_000, False), (b"x" * 49_000, True), (b"y" * 5_000, False)):
        exchange = kept.begin(LIST, "http://h/v1/store/orders", (), "client")
        kept.answer(exchange, (), body)
        assert exchange.body_cut is not whole
        assert len(exchange.body) == (len(body) if whole else evidence.BEGINNING)
        assert exchange.body_size == len(body)
    kept.answer(exchange, (), b"z" * 4000)
    assert len(exchange.body) == 4000
    assert not exchange.body_cut


@given(st.binary(max_size=40))
def test_the_bytes_of_a_body_can_be_told_from_it(body: bytes) -> None:
    exchange = answered(LIST, 200, body).exchange
    assert exchange.raw_body == body
    assert pickle.loads(pickle.dumps(exchange)) == exchange  # as it crosses from a worker


def test_a_key_is_not_cut_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a body is cut within the key, what stays of it is a part of the key."""
    monkeypatch.setattr(evidence, "RECORDED_BODY", 100)
    monkeypatch.setattr(evidence, "BEGINNING", 100)
    for left in range(redaction.SECRET_PART, len(KEY) + 1):
        body = b" " * (100 - left) + KEY.encode()
        exchange = answered(LIST, 500, body).exchange
        assert KEY[:left] not in exchange.body
        assert exchange.body.startswith(" " * (100 - left) + "<")


@pytest.mark.parametrize(
    ("method", "path", "operation", "order"),
    [
        ("GET", "/store/orders", Operation.LIST, None),
        ("GET", "/store/orders/1", Operation.OTHER, None),
        ("DELETE", "/store/orders/1", Operation.CANCEL, "1"),
        ("DELETE", "/store/orders/%31%20", Operation.CANCEL, "1 "),
        ("DELETE", "/store/orders", Operation.OTHER, None),
        ("GET", "/pets/1", Operation.PET, None),
        ("HEAD", "/store/orders", Operation.OTHER, None),
        ("OPTIONS", "/store/orders/1", Operation.OTHER, None),
    ],
)
def test_operations(method: str, path: str, operation: Operation, order: str | None) -> None:
    request = Request(method, path)
    assert request.operation is operation
    assert request.order_id == order


def test_queries_of_request_and_credential_are_joined() -> None:
    shown = Credential("in the query", query="api_key=k")
    assert Request("GET", "/", shown, query="limit=1").full_query == "limit=1&api_key=k"
    assert Request("GET", "/", NOBODY).full_query == ""
    assert Request("GET", "/", shown).full_query == "api_key=k"


def test_what_no_answer_looks_like() -> None:
    exchange = answered(LIST, None, trouble=Trouble.TIMEOUT, detail="").exchange
    assert exchange.received == "no answer (timeout)"


# --- curl


def words_of(line: str, **environment: str) -> list[str]:
    """The words that bash makes of a command line, with `curl` printing them instead."""
    script = "curl() { printf '%s\\0' \"$@\"; }; " + line
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, check=True, env={"PATH": "/usr/bin:/bin", **environment}
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


@settings(max_examples=30)
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20),
)
def test_curl_lines_quote(body: str, path: str) -> None:
    request = Request("DELETE", f"/store/orders/{path}", VALID, body=body.encode())
    exchange = recorder().begin(request, f"http://h/v1/store/orders/{path}", (*VALID.headers, *USUAL), "client")
    words = words_of(curl(exchange, Shell("MY_KEY")), MY_KEY=KEY)
    cleaned = recorder().redactor.clean
    assert words == [
        "-sS",
        "-i",
        "-X",
        "DELETE",
        "-H",
        f"Authorization: Bearer {KEY}",
        "--data-binary",
        cleaned(body),
        cleaned(f"http://h/v1/store/orders/{path}"),
    ]
    assert shlex.split(curl(exchange, Shell("MY_KEY")))[-1] == words[-1]


def test_a_curl_line_has_the_header_fields_of_the_request() -> None:
    request = Request("DELETE", "/store/orders/1", VALID, headers=(("Content-Type", "a/b"), ("X-It's", "$HOME")))
    bare = recorder().begin(request, "http://h", (("Host", "h"), *VALID.headers), "wire")
    assert curl(bare, Shell("K")).endswith("""${K}" -H 'User-Agent:' -H 'Accept:' 'http://h'""")
    full = recorder().begin(request, "http://h", (*USUAL, *VALID.headers, *request.headers), "client")
    assert curl(full, Shell("K")).endswith("""${K}" -H 'Content-Type: a/b' -H 'X-It'\\''s: $HOME' 'http://h'""")
    other = recorder().begin(request, "http://h", (*USUAL[2:], ("User-Agent", "other/1")), "client")
    assert curl(other, Shell("K")).endswith("""${K}" -H 'User-Agent: other/1' 'http://h'""")


def curl_of(credential: Credential, variable: str = "MY_KEY") -> str:
    exchange = recorder().begin(Request("GET", "/store/orders", credential), "http://h", USUAL, "client")
    return curl(exchange, Shell(variable))


def test_a_plain_curl_line() -> None:
    assert curl_of(VALID) == """curl -sS -i -H "Authorization: Bearer ${MY_KEY}" 'http://h'"""
    assert curl_of(NOBODY) == "curl -sS -i 'http://h'"


def test_a_curl_line_leaves_the_dots_of_a_path() -> None:
    for path in ("/health/../v1/store/orders", "/v1/./store/orders"):
        exchange = recorder().begin(Request("GET", path, NOBODY, whole=True), f"http://h{path}", USUAL, "wire")
        assert curl(exchange, Shell()) == f"curl -sS -i --path-as-is 'http://h{path}'"


def test_a_curl_line_accepts_what_the_service_has_compressed() -> None:
    exchange = answered(Request("GET", "/store/orders"), 200).exchange
    assert "--compressed" not in curl(exchange, Shell())
    exchange.headers.append(("Content-Encoding", "gzip"))
    assert curl(exchange, Shell()).startswith("curl -sS -i --compressed ")


def test_a_curl_line_waits_for_no_body_of_a_head() -> None:
    line = curl(answered(Request("HEAD", "/store/orders"), 200).exchange, Shell())
    assert line.startswith("curl -sS -i -I ")
    assert "-X" not in line


def test_a_curl_line_reaches_the_service_as_the_run_did() -> None:
    exchange = recorder().begin(Request("DELETE", "/store/orders/1"), "https://h", USUAL, "client")
    line = curl(exchange, Shell("K", ("--cacert ~/'my ca.pem'", "--proxy http://p:1")))
    assert line == "curl -sS -i --cacert ~/'my ca.pem' --proxy http://p:1 -X DELETE 'https://h'"


def test_curl_lines_on_one_connection() -> None:
    once, then = (
        curl_of(VALID, "$(cat /k)"),
        "KEY=$(cat /k); curl -sS -i -H \"Authorization: Bearer ${KEY%?}\" 'http://h'",
    )
    assert on_one_connection([once, then]) == (
        """KEY=$(cat /k); curl -sS -i -H "Authorization: Bearer $(cat /k)" 'http://h' """
        """--next -sS -i -H "Authorization: Bearer ${KEY%?}" 'http://h'"""
    )
    assert on_one_connection([once]) == once


def test_curl_lines_in_turn_are_one_for_several_ids() -> None:
    def cancel(segment: str, method: str = "DELETE") -> str:
        return f"curl -X {method} 'http://h/v1/store/orders/{segment}'"

    alike = [cancel("1"), cancel("1"), cancel("-2"), cancel("3%2C4")]
    assert in_turn(alike) == [cancel("{1,1,-2,3%2C4}")]
    mixed = [cancel("1", "GET"), cancel("1"), cancel("2"), cancel("1,2"), *[cancel("1?a=b")] * 3, cancel("[1]")]
    assert in_turn(mixed) == mixed
    assert in_turn([]) == []


def test_curl_lines_at_once(tmp_path: Path) -> None:
    """Each waits for a file that the other makes."""
    first, second = (
        f"touch {made}; for _ in $(seq 500); do [ -e {other} ] && touch seen-{other} && break; sleep 0.02; done"
        for made, other in ("ab", "ba")
    )
    subprocess.run(["bash", "-c", at_once([first, second])], cwd=tmp_path, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "seen-a", "seen-b"}


def fields_of(words: list[str]) -> set[str]:
    """The header fields that curl would send for the words of its command line, the usual ones aside."""
    pairs = list(pairwise(words))
    users = [f"Authorization: Basic {b64encode(value.encode()).decode()}" for option, value in pairs if option == "-u"]
    return {*users, *(f"{value[:-1]}: " if value[-1] == ";" else value for option, value in pairs if option == "-H")}


def every_credential(key: str) -> list[Credential]:
    made = [*invalid_keys.battery(key, random.Random(1)), *credentials.misplaced(key), *credentials.malformed(key)]
    made += [*credentials.in_query(key), *credentials.in_body(key)]
    return [*made, *credentials.schemes(key), credentials.valid(key)]


def asked_with(credential: Credential, key: str = KEY) -> Exchange:
    body = credential.body.encode() or None
    request = Request("GET", "/store/orders", credential, query="a=$b", body=body)  # which a shell must leave alone
    sent = (*USUAL, *credential.headers)
    return recorder(key).begin(request, f"http://h/store/orders?{request.full_query}", sent, "client")


UNSPELLED = (
    "the key with another last character", "the key with another first character",
    "the key with another character in the middle", "another key of the same length",
    "another key with the first 4 characters of the key", "another key with the first 8 characters of the key",
    "another key with the first 16 characters of the key", "a random key",
    "the key with a character percent-encoded", "the key with its prefix in the other case",
)  # fmt: skip


@pytest.mark.parametrize("key", [KEY, "a:b%c*d'e?f.1234"])
@pytest.mark.parametrize("where", ["MY_KEY", "$(cat {})"])
def test_curl_lines_send_what_was_sent(key: str, where: str, tmp_path: Path) -> None:
    """Where the shell can make the credential from the key, the line does, from the variable or file that holds it."""
    program("rev")  # makes a key of it that is written backwards
    file = tmp_path / 'it\'s the "key" (of $HOME)'
    file.write_text(f"{key}\n", encoding="utf-8")
    where = where.format(shlex.quote(str(file)))
    labelled = []
    for credential in every_credential(key):
        exchange = asked_with(credential, key)
        line = curl(exchange, Shell(where))
        assert not any(secret in line for secret in (key, *invalid_keys.secrets(key)) if len(secret) > 6)
        words = words_of(line, MY_KEY=key, KEY="another")
        url = f"http://h/store/orders?{'&'.join(filter(None, ('a=$b', credential.query)))}"
        if re.search("<[a-z]", line):
            labelled.append(credential.label)
        else:
            assert fields_of(words) == {f"{name}: {value}" for name, value in credential.headers}, credential.label
            assert words[-1] == url
            assert not credential.body or words[words.index("--data-binary") + 1] == credential.body
    if key == KEY:
        assert set(labelled) <= set(UNSPELLED)


def test_a_curl_line_with_the_key_in_the_query() -> None:
    """It stands there as it is, or it is left to the reader: the shell cannot percent-encode."""
    plain, odd = (asked_with(credentials.in_query(key)[0], key) for key in ("sk-Plain_0123", "sk/Odd+0123=="))
    assert curl(plain, Shell("K")) == """curl -sS -i "http://h/store/orders?a=\\$b&api_key=${K}\""""
    assert curl(plain, Shell("$(cat k)")) == """curl -sS -i "http://h/store/orders?a=\\$b&api_key=$(cat k)\""""
    assert curl(odd, Shell("K")) == "curl -sS -i 'http://h/store/orders?a=$b&api_key=<key>'"
    form = asked_with(credentials.in_body("sk-Plain_0123")[0], "sk-Plain_0123")
    assert curl(form, Shell("K")) == """curl -sS -i --data-binary "access_token=${K}" 'http://h/store/orders?a=$b'"""
    spoken = curl(asked_with(credentials.in_body('sk"0123')[-1], 'sk"0123'), Shell("K"))
    assert '"api_key": "<key>"' in spoken  # which the shell could not escape


class Forgetful(dict[str, str]):
    """What another thread clears as soon as something is in it."""

    def __setitem__(self, text: str, cleaned: str) -> None:
        pass


def test_text_is_cleaned_though_another_thread_clears_what_is_known() -> None:
    redactor = Redactor(KEY)
    redactor._known = Forgetful()
    assert redactor.clean(f"Bearer {KEY}") == f"Bearer {KEY_LABEL}"


def test_nothing_else_in_a_url_with_the_key_runs() -> None:
    exchange = replace(asked_with(credentials.in_query(KEY)[0]), url='http://h/$(echo "`id`")"?key=<key>')
    assert words_of(curl(exchange, Shell("MY_KEY")), MY_KEY=KEY)[-1] == f'http://h/$(echo "`id`")"?key={KEY}'


def test_a_curl_line_with_the_key_from_a_file() -> None:
    assert curl_of(VALID, "$(cat /k)") == """curl -sS -i -H "Authorization: Bearer $(cat /k)" 'http://h'"""
    cut = invalid_keys.near_misses(KEY)[0]
    assert curl_of(cut, "$(cat /k)") == """KEY=$(cat /k); curl -sS -i -H "Authorization: Bearer ${KEY%?}" 'http://h'"""
    basic = credentials.misplaced(KEY)[1]
    assert curl_of(basic) == """curl -sS -i -u "${MY_KEY}:" 'http://h'"""
    assert curl_of(basic, "$(cat /k)") == """curl -sS -i -u "$(cat /k):" 'http://h'"""


@pytest.mark.parametrize("key", ["$(touch x)abcd", "`id`abcdefgh", "a$HOME-bcdefg", 'q"uo"te\\d-key', "$KEY-$KEY-$KEY"])
def test_what_a_key_is_made_of_never_runs(key: str) -> None:
    """A key may hold what a shell acts on; labels stand where it was, and what is left of it is quoted."""
    program("rev")
    kept = recorder(key)
    for credential in [credentials.valid(key), *invalid_keys.near_misses(key), *credentials.misplaced(key)]:
        exchange = kept.begin(Request("GET", "/", credential), "http://h", credential.headers, "client")
        line = curl(exchange, Shell("MY_KEY"))
        words = words_of(line, MY_KEY="the-key", HOME="/home-sweet-home")
        assert not any("home-sweet-home" in word or "uid=" in word for word in words), credential.label


def test_curl_says_which_answers_were_open() -> None:
    """What is not well-formed is marked so on record, since the judges go by it."""
    kept = recorder().begin(cancel("abc", allowed=Allowed.OPEN), "http://h", (), "client")
    assert kept.allowed == "OPEN"
