"""Taking secrets out of text: the key, its near misses, and every form in which either may come back.

Secrets are removed once, when an exchange is recorded (`evidence`); what the reports write was never in possession of
them.
"""

from __future__ import annotations

import base64
import html
import json
import re
import string
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from urllib.parse import quote

#: A part of the key of this length or more is as secret as the key.
SECRET_PART = 8
#: Characters that are looked for before a whole secret is: no more than the shortest has.
ANCHOR = 4
KEY_LABEL, PART_LABEL = "<key>", "<part of the key>"
#: What marks the place where a quotation was cut.
ELLIPSIS = "…"
#: What a short key leaves in the middle of a longer text in base64.
SHORTEST_BASE64 = 6
#: Texts of at most so many characters are cleaned once: the same few header fields and bodies come again and again.
REMEMBERED = 4096
MOST_REMEMBERED = 1024

#: So many characters one after the other, each spelt out in the way of URLs, of JSON strings or of HTML.
_SPELT_OUT = re.compile(
    r"(?:%[0-9A-Fa-f]{2}){8,}|(?:\\u00[0-9A-Fa-f]{2}){8,}|(?:&#[0-9]{2,3};){8,}|(?:&#[xX][0-9A-Fa-f]{2};){8,}"
)
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Redactor:
    """Takes the key, what is made from it, and long parts of it out of text, and puts a label there.

    Known values are replaced as they are, escaped and in base64; what is left of the key in any stretch of SECRET_PART
    characters or more becomes "<part of the key>", in any case and also backwards.
    """

    def __init__(self, key: str, secrets: Mapping[str, str] | None = None) -> None:
        """With `key` go further `secrets`, each with its label. One that is too short to tell of anything stays."""
        self._labels: dict[str, str] = {}
        self._spelt: dict[str, str] = {}
        for value, label in ((key, KEY_LABEL), *(secrets or {}).items()):
            if len(value) < ANCHOR and label != KEY_LABEL:
                continue
            written = (value, quote(value, safe=""), value.encode().hex(), value.encode().hex().upper())
            for form in (*written, *_escaped_forms(value), *_base64_forms(value)):
                self._labels.setdefault(form, label)
            self._spelt.update(dict.fromkeys(_spelt_out(value), label))
        self._ordered = sorted(self._labels, key=len, reverse=True)
        self._whole = [form for form, known in (*self._labels.items(), *self._spelt.items()) if known == KEY_LABEL]
        self._anchors = _anchors(self._ordered)
        self._known: dict[str, str] = {}
        self._telling = len(key) >= SECRET_PART
        starts = range(len(key) - SECRET_PART + 1)
        ways = (key.translate(_ASCII_LOWER), key[::-1].translate(_ASCII_LOWER))
        self._parts = {text[i : i + SECRET_PART] for text in ways for i in starts}
        half = SECRET_PART // 2  # each part holds a whole one of these, which are few
        self._blocks = {text[i : i + half] for text in ways for i in range(0, len(key) - half + 1, half)}

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        if len(text) > REMEMBERED:
            return self._cleaned(text)
        cleaned = self._known.get(text)  # looked up once: another thread may clear what is known at any time
        if cleaned is None:
            cleaned = self._cleaned(text)
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[text] = cleaned
        return cleaned

    def _cleaned(self, text: str) -> str:
        if ELLIPSIS in text:
            text = self._without_beginnings(text)
        if "%" in text or "\\u" in text or "&#" in text:
            for value, label in self._spelt.items():
                text = text.replace(value, label)
            text = _SPELT_OUT.sub(self._without_spelt_part, text)
        if present := _present(self._anchors, text):
            possible = set().union(*(self._anchors[anchor] for anchor in present))
            for value in self._ordered:
                if value in possible:
                    text = text.replace(value, self._labels[value])
        return self._without_parts(text)

    def reveals(self, text: str) -> bool:
        """Whether `text` holds the key itself, in any form. A short key may stand anywhere by chance."""
        return self._telling and any(map(text.__contains__, self._whole))

    def _without_beginnings(self, text: str) -> str:
        """`text` without what is left of a secret where a quotation was cut, which is marked by an ellipsis."""
        forms = [pair for pair in (*self._labels.items(), *self._spelt.items()) if pair[0][:SECRET_PART] in text]
        *cut, rest = text.split(ELLIPSIS)
        for place, piece in enumerate(cut if forms else ()):
            begun = [
                (start, label)
                for form, label in forms
                if (start := piece.rfind(form[:SECRET_PART], -len(form))) >= 0 and form.startswith(piece[start:])
            ]
            if begun:
                start, label = min(begun)
                cut[place] = piece[:start] + label
        return ELLIPSIS.join([*cut, rest])

    def _without_spelt_part(self, run: re.Match[str]) -> str:
        codes = re.findall(r"[%xX]([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})|#([0-9]+)", run[0])
        text = "".join(chr(int(in_ten) if in_ten else int(one or other, 16)) for one, other, in_ten in codes)
        return run[0] if self._without_parts(text) == text else PART_LABEL

    def _without_parts(self, text: str) -> str:
        # Unlike lower(), translate() never changes the length; it takes five times as long.
        lowered = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
        if not _present(self._blocks, lowered):
            return text
        covered = bytearray(len(text))  # 1 for each character that belongs to a part
        for part in self._parts:
            start = lowered.find(part)
            while start >= 0:
                covered[start : start + SECRET_PART] = b"\1" * SECRET_PART
                start = lowered.find(part, start + 1)
        edges = [0, *(edge for run in re.finditer(b"\1+", covered) for edge in run.span()), len(text)]
        return PART_LABEL.join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def _anchors(forms: list[str]) -> dict[str, set[str]]:
    """A few characters of the middle of each form, where most are alike, with all forms for which they stand: as few
    as can be. Where none of these are, no form is, and they are looked for in a fraction of the time."""
    middles = {form: form[max(0, len(form) // 2 - 8) :][:16] for form in forms}
    held = {
        form: [text[i : i + ANCHOR] for i in range(max(1, len(text) - ANCHOR + 1))] for form, text in middles.items()
    }
    counts = Counter(chain.from_iterable(held.values()))
    found: dict[str, set[str]] = {}
    for form, parts in held.items():
        found.setdefault(max(parts, key=counts.__getitem__), set()).add(form)
    return found


def _present(stretches: Collection[str], text: str) -> set[str]:
    """Those of `stretches` that are in `text`. In a long one, whether a single character is takes a tenth of the time
    to tell."""
    if len(text) > REMEMBERED:
        there = {character for character in set("".join(stretches)) if character in text}
        stretches = {stretch for stretch in stretches if there.issuperset(stretch)}
    return {stretch for stretch in stretches if stretch in text}


def _escaped_forms(value: str) -> list[str]:
    """What `value` looks like inside a JSON string, with and without escaped slashes, and inside HTML."""
    quoted = json.dumps(value)[1:-1]
    return [quoted, quoted.replace("/", "\\/"), html.escape(value)]


def _spelt_out(value: str) -> list[str]:
    """What `value` looks like with every character escaped, in a URL, in a JSON string and in HTML."""
    codes = [ord(char) for char in value]
    tens, hexes = "".join(f"&#{code};" for code in codes), "".join(f"&#x{code:x};" for code in codes)
    urls = ("".join(f"%{code:02x}" for code in codes), "".join(f"%{code:02X}" for code in codes))
    strings = ("".join(f"\\u{code:04x}" for code in codes), "".join(f"\\u{code:04X}" for code in codes))
    return [*urls, *strings, tens, hexes]


def _base64_forms(value: str) -> list[str]:
    """What `value` looks like inside base64, at each of the three alignments, without the ends that depend on its
    neighbours."""
    forms = []
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + value.encode()).decode().rstrip("=")
        skip = (0, 2, 3)[lead]
        core = encoded[skip:] if (lead + len(value.encode())) % 3 == 0 else encoded[skip:-1]
        if len(core) >= SHORTEST_BASE64:
            forms += [core, core.replace("+", "-").replace("/", "_")]
    return forms
