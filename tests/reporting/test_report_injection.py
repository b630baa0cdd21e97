"""Whatever a service or a provider sends, it is text in every report and never more.

Each property renders a run full of hostile text and the same run with a harmless word, and finds the same
structure.
"""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reporting_runs import broken, conformant
from rich.console import Console

from conformance.reporting import badge, comparison, comparison_views, console, har, html, junit, results, summary
from conformance.reporting.run import Run

PIECES = [
    "<script>alert(1)</script>",
    "</pre></code></details>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[",
    "&lt;&#0;&amp",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)",
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "\x00\x08\x0b\x0c\x7f\x85",
    "\r\n",
    "\n\n# heading\n\n",
    "\n```\n",
    "`",
    "````",
    "~~~",
    "|",
    "\n| a | b |\n|---|---|\n",
    "![x](https://example.org/x.png)",
    "[x](javascript:alert(1))",
    "@everyone",
    "https://example.org/",
    "**bold** _it_ ~~no~~",
    "</details>",
    "::error title=x::y",
    "::add-mask::x",
    "%0A::stop-commands::x",
    "[bold red]x[/]",
    "[/]",
    "\u202e\u2066\u200b\u2028",
    "\ud800",
    "\ufffe\uffff",
    "\\",
    "$(reboot)",
    "日本語 ünï 🎉",
]
#: Always with a visible beginning, so that the structure is that of text being there.
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(st.characters(codec=None), max_size=8), max_size=6).map(
    lambda pieces: "x" + "".join(pieces)
)

searched = settings(max_examples=15)


class Structure(HTMLParser):
    """The elements of a page in order, with the names of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/" + tag,))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))


def of_html(text: str) -> object:
    return Structure(text).found


def of_xml(text: str) -> object:
    return [(element.tag, sorted(element.attrib)) for element in Xml.fromstring(text.encode()).iter()]


def of_markdown(text: str) -> object:
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    inner = [token for outer in tokens for token in [outer, *(outer.children or [])]]
    return [(t.type, t.tag, t.content if t.type.startswith("html") else "") for t in inner if t.type != "text"]


def worse(made: Run) -> comparison.Comparison:
    harmless = replace(conformant(), target=made.target)
    return comparison.compare(harmless, made)


def table(made: Run) -> comparison.Matrix:
    return comparison.matrix([made, conformant()])


PAGES: dict[str, tuple[Callable[[Run], str], Callable[[str], object]]] = {
    "html": (html.render, of_html),
    "junit": (junit.render, of_xml),
    "badge": (badge.render, of_xml),
    "summary": (summary.render, of_markdown),
    "comparison.html": (lambda made: comparison_views.html(worse(made)), of_html),
    "comparison.markdown": (lambda made: comparison_views.markdown(worse(made)), of_markdown),
    "matrix.html": (lambda made: comparison_views.matrix_html(table(made)), of_html),
    "matrix.markdown": (lambda made: comparison_views.matrix_markdown(table(made)), of_markdown),
}


@cache
def harmless(name: str) -> object:
    render, structure = PAGES[name]
    return structure(render(broken("harmless")))


@pytest.mark.parametrize("name", PAGES)
@searched
@given(text=HOSTILE)
def test_the_structure_is_that_of_harmless_text(name: str, text: str) -> None:
    render, structure = PAGES[name]
    shown = render(broken(text))
    shown.encode("utf-8")
    assert structure(shown) == harmless(name)


@pytest.mark.parametrize("name", PAGES)
def test_every_piece(name: str) -> None:
    render, structure = PAGES[name]
    for start in range(0, len(PIECES), 4):
        text = " x".join(["", *PIECES[start : start + 4]])
        assert structure(render(broken(text))) == harmless(name), text


BIDIRECTIONAL = frozenset({"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"})


def assert_harmless(shown: str) -> None:
    """No control, surrogate, line separator or bidirectional control, which are what acts on a reader."""
    acting = [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert acting + [c for c in shown if unicodedata.bidirectional(c) in BIDIRECTIONAL] == []


@searched
@given(text=HOSTILE)
def test_terminals_get_printable_characters_only(text: str) -> None:
    made = broken(text)
    for terminal in (False, True):
        file = io.StringIO()
        paper = Console(file=file, width=80, force_terminal=terminal, color_system=None, legacy_windows=False)
        console.summary(made, paper)
        for shown in (file.getvalue(), comparison_views.text(worse(made)), comparison_views.matrix_text(table(made))):
            assert_harmless(shown.replace("\n", ""))


@searched
@given(text=HOSTILE)
def test_a_log_has_no_line_that_github_takes_for_a_command_but_ours(text: str) -> None:
    for line in console.github_annotations(broken(text)):
        assert line.startswith(("::error title=", "::warning title="))
        assert_harmless(line)
        assert line.count("::") >= 2
        assert "," not in line.removeprefix("::").partition("::")[0].removeprefix("error ")


@searched
@given(text=HOSTILE)
def test_data_formats_bring_the_text_back(text: str) -> None:
    made = broken(text)
    data, archive = results.render(made, {}), "".join(har.render(made))
    assert data.isascii()
    assert archive.isascii()
    assert results.read(results.parsed(data), har.read(archive).exchanges) == made
    json.loads(data)
