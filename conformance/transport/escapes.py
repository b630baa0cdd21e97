"""Escapes of characters in URLs, strings, HTML and dumps, and what they mean."""

from __future__ import annotations

import html
import re
import string
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: How many layers of escapes are undone: `\\u0026#43;` is HTML in a JSON string.
DEEPEST = 3
#: Stands between ASCII characters in UTF-16, and in quotations of that; it means nothing by itself.
ZERO = "\0"


def latin(text: str) -> bytes:
    """`text` with one byte for each character; all characters beyond Latin-1 give the same byte."""
    return text.encode("latin-1", "replace")


@dataclass(frozen=True)
class Spelling:
    """A way to escape characters: a `mark` that every escape contains, the pattern of an `escape`, what it is `meant`
    as, and, if the mark says too little, a function that tells whether a text has any."""

    mark: str
    escape: re.Pattern[str]
    meant: Callable[[re.Match[str]], str]
    is_meant: Callable[[str], bool] | None = None

    def used(self, text: str) -> bool:
        """Whether there may be escapes in `text`."""
        return self.mark in text and (self.is_meant is None or self.is_meant(text))

    def undone(self, text: str) -> tuple[str, Callable[[int], int]]:
        """`text` with its escapes undone; and a function from a place in that to the place in `text`."""
        if not self.used(text):
            return text, lambda undone: undone
        pieces: list[str] = []
        here, there = [0], [0]  # after each escape, the place in `text` and in what is made of it
        for escape in self.escape.finditer(text):
            piece = text[here[-1] : escape.start()] + self.meant(escape)
            pieces.append(piece)
            here.append(escape.end())
            there.append(there[-1] + len(piece))

        def place(undone: int) -> int:
            last = bisect_right(there, undone) - 1
            return here[last] + undone - there[last]

        return "".join([*pieces, text[here[-1] :]]), place


def _meant_in_url(escape: re.Match[str]) -> str:
    return chr(int(escape[1] or escape[2], 16)).rstrip(ZERO)


def _meant_in_string(escape: re.Match[str]) -> str:
    return escape[4] or chr(int(escape[3], 8) if escape[3] else int(escape[1] or escape[2], 16)).rstrip(ZERO)


def _meant_in_html(escape: re.Match[str]) -> str:
    character = html.unescape(escape[0])
    return character if len(character) == 1 else escape[0]


_DUMP = re.compile(r"([: -])[0-9A-Fa-f]{2}\1[0-9A-Fa-f]{2}\1")
_DIGITS_AND_GAPS = bytes.maketrans(string.hexdigits.encode() + b": -", b"0" * len(string.hexdigits) + b"---")


def _is_dump(text: str) -> bool:
    """Whether `text` contains a dump: pairs of hexadecimal digits with separators."""
    # The first takes a tenth of the time of the second, which most texts then need not be searched for.
    return b"-00-00-" in latin(text).translate(_DIGITS_AND_GAPS) and _DUMP.search(text) is not None


#: The spellings of URLs, of strings in JSON and in programs, and of HTML: each library escapes other characters. Then
#: what dumps put between two digits in hex each and the next two, which stands for nothing.
SPELLINGS = (
    Spelling("%", re.compile("%(?:([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))"), _meant_in_url),
    Spelling(
        "\\",
        re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([0-3][0-7]{2})|([^\w\s]))"),
        _meant_in_string,
    ),
    Spelling("&", re.compile("&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"), _meant_in_html),
    Spelling(
        "",
        re.compile("(?<=[0-9A-Fa-f]{2})[: -](?=[0-9A-Fa-f]{2})"),
        lambda escape: "",
        _is_dump,
    ),
)


def readings(text: str, depth: int = DEEPEST) -> Iterator[str]:
    """`text` as it is, and with its escapes undone."""
    yield text
    if not depth:
        return
    for spelling in SPELLINGS:
        undone, _ = spelling.undone(text)
        if undone != text:
            yield from readings(undone, depth - 1)
