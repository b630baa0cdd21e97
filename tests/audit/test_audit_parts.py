"""The parts of the audit as values: keys that stand in, texts that are alike, what is said of what differs."""

from __future__ import annotations

import copy
import json
import random
import re
import string
from types import SimpleNamespace
from typing import cast

import pytest
from built import answered, cancel
from hypothesis import given
from hypothesis import strategies as st

from conformance.audit import disagreements
from conformance.audit.record import LABEL, Record, alike
from conformance.audit.standin import stand_in
from conformance.checks import credentials, invalid_keys
from conformance.reporting.run import Run
from conformance.transport.redaction import SECRET_PART

KEYS = {
    "usual": "sk-Harness.Key_42",
    "with dots": "sk.Harness-Key.42",
    "long": "".join(random.Random(1).choices(string.ascii_letters, k=90)),
    "a hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "capitals": "ABCDEFGHIJKL-1",
    "digits": "8041957263",
    "a UUID": "123e4567-e89b-12d3-a456-426614174000",
    "a UUID in capitals": "123E4567-E89B-12D3-A456-426614174ABC",
    "a UUID of digits": "12304567-1890-1253-9456-426614174000",
    "PASETO": f"v4.local.{'x-Z9' * 40}",
    "base64": "c2VjcmV0IGtleSBmb3IgdGVzdHM=",
    "padded": "Zm9vYmFyYmF6cXV4cXV1eHF1dXV4eA=",
    "padded twice": "dGVzdC1rZXk/Pz8+Pg==",
    "padded twice, with a dot": "s3cret-Key.Value/42+xyz==",
    "signed": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.dGhpcyBpcyBubyBzaWduYXR1cmUsIGJ1dCBsb25nIDE",
    "signed, with hyphens": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.dGhpcyBp-yBubyBzaWduYXR1_mUsIGJ1dCBsb25nIDE",
    "signed, with a whole signature": f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.{'aZ-9' * 128}",
    "encrypted": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..48V1_ALb6US04U3b.5eym8TW_c8SuK0ltJ3rp.XFBoMYUZod-etZdv",
    "signed, of two parts": "eyJpZCI6Mn0.aNoThEr_signature-of-27-chr",
    "a number, a bar and more": "12|sKWn3Xo7Qe91ZtYp",
    "a Fernet token": f"gAAAAABnQ{'x7-' * 37}",
    "a padded Fernet token": f"gAAAAABnQ{'x_7' * 36}yz=",
    "a Fernet token padded twice": f"gAAAAABnQ{'x_7' * 29}yz==",
    "no token": "p@ss-w0rd!with%signs",
    "short": "abc",
    "of seven characters": "secret7",
    "of eight characters": "secret78",
    "one character": "k",
    "a pattern that is tried": "*",
    "another pattern": "%",
    "one character that is no pattern": "}",
    "a word that is tried": "test",
    "the same backwards": "Step-on-no-petS"[::-1] + "Step-on-no-petS",
    "in order": "0123456789abcdef",
    "in order backwards": "zq9",
    "one character many times": "aaaaaaaaaaaaaaaa",
    "marks alone": "__",
    "the same twice, and no token": "0:0",
    "72 of all characters": r"bA%i@EX8_&H(7e~2THZVUI_eP2.'9)d}i?2kL*uP;5([!/M:?ceL?+V+edW{Yq3<0>^Rw=6J",
}


def on_record(key: str) -> tuple[str, ...]:
    """What results have of a key, as `wrong_keys`."""
    return (*invalid_keys.kinds(key), *credentials.query_kinds(key))


@pytest.mark.parametrize("form", KEYS)
def test_a_key_of_the_same_form_stands_in(form: str) -> None:
    short = len(KEYS[form]) < SECRET_PART
    found = stand_in(on_record(KEYS[form]), short=short)
    assert found is not None
    assert (len(found) < SECRET_PART) is short
    assert on_record(found) == on_record(KEYS[form])
    assert found != KEYS[form] or form in ("a word that is tried", "a pattern that is tried", "another pattern")


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=100).filter(
        re.compile("[0-9A-Za-z]").search
    )
)
def test_there_is_one_for_any_key_that_somebody_would_use(key: str) -> None:
    assert stand_in(on_record(key), short=len(key) < SECRET_PART) is not None


@pytest.mark.parametrize("form", ["long", "padded", "signed", "encrypted", "a Fernet token", "no token"])
@pytest.mark.parametrize("length", [90, 150, 333, 700, 1500, 1590, 3000])
def test_there_is_one_for_keys_of_any_length(form: str, length: int) -> None:
    """How many times the key goes into one query hangs on it."""
    key = KEYS[form]
    half = len(key) // 2
    key = f"{key[:half]}{'x4Y-' * ((length - len(key) + 3) // 4)}{key[half:]}"
    found = stand_in(on_record(key), short=False)
    assert found is not None
    assert on_record(found) == on_record(key)


def test_there_is_none_for_what_no_key_has() -> None:
    assert stand_in(("the key twice",), short=False) is None
    assert stand_in((), short=True) is None


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("GET /v1", "GET /v1"),
        ("<part of the key>conformance/1", "store-orders-conformance/1"),
        ("a<key>b<the key backwards>c", "aXbYc"),
        ("?token=<key>", "?token=<key>"),
    ],
)
def test_what_was_taken_out_may_have_been_anything(recorded: str, now: str) -> None:
    assert alike(recorded, now)


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("GET /v1", "GET /v2"),
        ("<b>", "anything"),
        ("<part of the key>conformance/1", "conformance/2"),
        ("", "x"),
        ("a<key>ba", "ab"),
        ("ab<key>ba", "aba"),
    ],
)
def test_nothing_else_may(recorded: str, now: str) -> None:
    assert not alike(recorded, now)


@given(st.lists(st.text("ab", max_size=3), min_size=2, max_size=5), st.text("ab", max_size=12))
def test_alike_is_whatever_the_parts_occur_in_in_order(parts: list[str], now: str) -> None:
    expected = re.fullmatch(".*".join(parts), now) is not None
    assert alike("<key>".join(parts), now) is expected or "<key>".join(parts) == now


def test_no_number_of_labels_takes_long() -> None:
    assert not alike("a<key>" * 1000 + "b", "a" * 10_000)
    assert not LABEL.search("<" + "key " * 100_000)


RESULT = {
    "verdict": "conformant",
    "counts": {"required": {"passed": 1}},
    "requirements": [
        {
            "id": "LIST-1",
            "status": "passed",
            "level": "required",
            "checks": [{"id": "listing.x", "status": "passed", "message": "", "exchanges": [1, 2]}],
        }
    ],
    "observations": [{"topic": "409 body", "value": ["none"]}],
    "warnings": ["b", "a"],
    "run": {"seed": 1, "strict": False},
    "files": {"x": "sha256:0"},
}


def said(path: str, value: object) -> list[str]:
    """What is said where the stated result has `value` at a place, written as JSON Pointer (RFC 6901)."""
    stated = copy.deepcopy(RESULT)
    *way, last = path.strip("/").split("/")
    inner: object = stated
    for part in way:
        inner = inner[int(part)] if isinstance(inner, list) else inner[part]  # type: ignore[index]
    inner[int(last) if isinstance(inner, list) else last] = value  # type: ignore[index]
    return list(disagreements.in_result(stated, copy.deepcopy(RESULT), frozenset()))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("/verdict", "incomplete", "the verdict is stated as incomplete; the evidence amounts to conformant"),
        ("/requirements/0/status", "failed", "LIST-1 is stated as failed; by the evidence it is passed"),
        ("/requirements/0/checks/0/status", "failed", "LIST-1, check listing.x: is stated as failed"),
        ("/requirements/0/checks/0/message", "m", "LIST-1, check listing.x, message"),
        ("/requirements/0/checks/0/exchanges", [1], "LIST-1, check listing.x, exchanges"),
        ("/requirements/0/checks", [], "LIST-1, check listing.x: has no result"),
        ("/requirements/0/level", "recommended", "LIST-1, level: is stated as recommended"),
        ("/requirements", [], "LIST-1 is not in the result"),
        ("/counts/required/passed", 2, "counts, required, passed"),
        ("/observations/0/value", ["an Error"], "observations 0, value"),
        ("/run/seed", 2, "run, seed: is stated as 2"),
        ("/run/strict", 0, "run, strict"),
        ("/run/further", 1, "run, further"),
        ("/warnings", ["a"], "warnings"),
    ],
)
def test_each_difference_is_said_in_its_place(path: str, value: object, words: str) -> None:
    found = said(path, value)
    assert any(words in sentence for sentence in found), found
    assert len(found) == 1


def test_what_is_the_same_is_not_mentioned() -> None:
    assert said("/warnings", ["a", "b"]) == []
    assert said("/files", {}) == []
    assert list(disagreements.in_result(RESULT, json.loads(json.dumps(RESULT)), frozenset())) == []


@pytest.mark.parametrize(
    ("segment", "named"),
    [("7", True), ("7%20456", True), ("7:cancel", False), ("8", False), ("9", True), ("456", False)],
)
def test_what_a_check_has_sent_or_placed_is_named(segment: str, named: bool) -> None:
    exchanges = [answered(cancel(text), 404, check="a").exchange for text in ("7", "7%20456")]
    messages = [{"check": "a", "params": {"ids": [9]}}, {"check": "a", "params": {"count": 8}}]
    record = Record(cast(Run, SimpleNamespace(exchanges=exchanges, messages=messages)), unfinished=())
    assert record.names("a", segment) is named
    assert not record.names("b", segment)
