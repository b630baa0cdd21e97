"""Text for people: what a service sent is made safe to print, cut if it is long, and counted.

Every report passes its text through `visible` before it applies the escapes of its own format. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

#: Characters that act instead of being seen: C0 and C1 controls (terminals), invisible and bidirectional format
#: characters and line separators (readers), surrogates and the non-characters that XML 1.0 section 2.2 forbids
#: (parsers).
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
#: Marks where a quotation was cut. It tells `redaction` that part of a secret may be there.
ELLIPSIS = "…"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, keep: str = "") -> str:
    """`text` with every acting character written as an escape (`\\x1b`, `\\u202e`), except those in `keep`.

    Ordinary text is unchanged, including backslashes; the result can be encoded in UTF-8.
    """
    return _ACTING.sub(lambda match: match[0] if match[0] in keep else _escape(match[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def beginning(text: str, limit: int) -> str:
    """`text`; if it is longer than `limit` characters, its beginning and an ELLIPSIS."""
    return text if len(text) <= limit else text[:limit] + ELLIPSIS


def brief(data: object) -> str:
    """Plain data as JSON, or the beginning of it."""
    return beginning(json.dumps(data), 200)


def cut(text: str, limit: int) -> str:
    """Like `beginning`, with a note of how long `text` is."""
    return text if len(text) <= limit else f"{beginning(text, limit)} ({len(text):,} characters)"


def either(names: Sequence[str]) -> str:
    """`A`, `A or B`, `A, B or C`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def plural(count: int, noun: str) -> str:
    """`1 check`, `2 checks`, `2,000 checks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
