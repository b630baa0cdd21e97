"""Text that acts becomes visible; bodies are laid out without being changed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.reporting.pretty import pretty
from conformance.text import cut, plural, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 日本 \\ text", "plain ünï 日本 \\ text"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egnp", "abc\\u202egnp"),
        ("\ud800 \ufffe \U000e0041", "\\ud800 \\ufffe \\U000e0041"),
    ],
)
def test_acting_characters_become_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_breaks_can_be_kept() -> None:
    assert visible("a\n\x00", keep="\n") == "a\n\\x00"


@given(st.text(st.characters(codec=None)))
def test_what_comes_out_is_printable(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    assert visible(shown) == shown


def test_cut_says_how_much_there_was() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("a" * 1234, 2) == "aa… (1,234 characters)"


def test_plural() -> None:
    assert [plural(1, "check"), plural(2000, "check")] == ["1 check", "2,000 checks"]


def test_short_objects_stay_on_a_line() -> None:
    assert pretty('[{"id":1,"a":[]},{"id":2}]') == '[\n  {\n    "id": 1,\n    "a": []\n  },\n  {"id": 2}\n]'


@pytest.mark.parametrize("text", ["", "plain", "<b>[1]</b>", " not json {"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert pretty(text) == text


@pytest.mark.parametrize("text", ['{"a":3.0,"a":1e3}', "[9007199254740993,NaN", '[1,"an ] in a string, and a brea'])
def test_nothing_is_mended(text: str) -> None:
    assert "".join(pretty(text).split()) == "".join(text.split())


@given(st.text('[]{},:"\\ab1 \n'))
def test_layout_changes_white_space_only(text: str) -> None:
    assert "".join(pretty(text).split()) == "".join(text.split())
