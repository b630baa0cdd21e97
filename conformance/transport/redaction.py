"""Removes secrets from text: the key, its near misses, and every form in which either may come back.

Secrets are removed once, when an exchange is recorded (`evidence`), so the reports never have them.
"""

from __future__ import annotations

import base64
import html
import json
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from urllib.parse import quote

from conformance.text import ELLIPSIS
from conformance.transport.escapes import DEEPEST, SPELLINGS, Spelling, latin, readings

#: A part of the key of this length or more is as secret as the key.
SECRET_PART = 8
#: A part of the key of that length determines at least so many characters of base64.
BASE64_PART = 9
#: So many characters of a secret are searched for first, before the whole of it; the shortest secret has no fewer.
ANCHOR = 4
KEY_LABEL, PART_LABEL = "<key>", "<part of the key>"
#: A run of so many letters and digits is in most forms of a secret, but in few texts: an id has at most 19 digits.
WORD = 20
#: Some keys are shown in groups of so many characters.
GROUP = 4
#: Shorter pieces of base64 are not searched for: a short key leaves so little in the middle of a longer text.
SHORTEST_BASE64 = 6
#: The results for texts of up to so many characters are remembered: the same few header fields and bodies come again
#: and again.
REMEMBERED = 4096
MOST_REMEMBERED = 1024
#: The elements of a long listing come again and again, too. So a long text is cut into pieces here, and those without a
#: secret are remembered: so many, of up to REMEMBERED characters. To search all of a listing each time took longer than
#: everything else that is done with it.
CUT, MOST_PIECES = "{", 20_000
#: Replaces what was found, so that nothing is found there again: no secret contains it.
FOUND = "\0"
#: From so many blocks, and parts, on it is faster to look up each place of a long text than to search for each of them.
MANY_BLOCKS, MANY_PARTS = 2000, 500
#: A stretch of a text: start, end, and the label that replaces it.
Span = tuple[int, int, str]
#: A date, which a few keys contain ("ci-2026-11-28-Zx81"). Any listing may contain the same date, so removing it would
#: protect nothing, and spoil the record. Among further digits it is not a date, but may be part of a number that nobody
#: can guess.
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?[0-3]\d(?:t\d\d(?::?\d\d)*)?(?!\d)")
#: Words of the contract and of HTTP, of which every record is full: a part of the key, or a near miss, that is within
#: them reveals nothing, and without them the record would be unreadable.
PUBLIC = (
    "/v1/store/orders/ /v1/pets/ orderId petId quantity shipDate complete pending shipped code message status "
    "Authorization: Bearer WWW-Authenticate: Content-Type: application/json application/problem+json text/html "
    "text/plain; charset=utf-8 Content-Length: Transfer-Encoding: chunked Content-Encoding: Connection: keep-alive "
    "Cache-Control: Location: Retry-After: Deprecation: Unauthorized No Content Not Found Conflict"
)
_SEPARATORS = str.maketrans("-_", "_-")
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class _Run:
    """A run of `length` characters of one kind. Finding that a text has none is ten times as fast as searching for all
    secrets that contain one."""

    def __init__(self, kind: str, length: int) -> None:
        self._kinds = bytes(byte in latin(kind) for byte in range(256))
        self._run = b"\1" * length

    def within(self, text: str) -> bool:
        """Whether `text` has such a run."""
        return self._run in latin(text).translate(self._kinds)


_WORD = _Run(string.ascii_letters + string.digits, WORD)


class _Parts:
    """All stretches of `length` characters of a few texts, in any case, except those within a date or PUBLIC."""

    def __init__(self, texts: Collection[str], length: int) -> None:
        lowered = [text.translate(_ASCII_LOWER) for text in texts]
        self._length = length
        known = (PUBLIC.translate(_ASCII_LOWER), *chain.from_iterable(map(_DATE.findall, lowered)))
        self._parts = _stretches(lowered, length) - _stretches(known, length)
        self._run = _Run("".join((*lowered, *map(str.upper, lowered))), length)
        half = length // 2  # each part holds a whole one of these, which are few
        self._blocks = {text[i : i + half] for text in lowered for i in range(0, len(text) - half + 1, half)}

    def within(self, text: str) -> list[Span]:
        """Where they are in `text`; overlapping ones count as one."""
        if not self._run.within(text):
            return []
        # Unlike lower(), translate() never changes the length; it takes five times as long.
        lowered = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
        starts = list(self._starts_in(lowered))
        if not starts:  # as in almost any text; going through `covered` takes a third as long as the search
            return []
        covered = bytearray(len(text))  # 1 for each character that belongs to a part
        for start in starts:
            covered[start : start + self._length] = b"\1" * self._length
        return [(*run.span(), PART_LABEL) for run in re.finditer(b"\1+", covered)]

    def _starts_in(self, text: str) -> Iterator[int]:
        """Where they begin in `text`: searched for one by one if they are few, else looked up at each place. Their
        blocks are searched for first, unless there are more blocks than places, or so many that this saves no time."""
        if len(self._blocks) < min(len(text), MANY_BLOCKS) and not _present(self._blocks, text):
            return
        if len(self._parts) >= MANY_PARTS:
            yield from (i for i in range(len(text) - self._length + 1) if text[i : i + self._length] in self._parts)
            return
        for part in self._parts:
            start = text.find(part)
            while start >= 0:
                yield start
                start = text.find(part, start + 1)


def _stretches(texts: Iterable[str], length: int) -> set[str]:
    return {text[i : i + length] for text in texts for i in range(len(text) - length + 1)}


class Redactor:
    """Removes the key, whatever is made from it, and long parts of it from text, and puts labels there.

    Known values are replaced as they are and in base64. Whatever is then left of the key, in any stretch of SECRET_PART
    characters or more, or in as much base64, becomes "<part of the key>": in any case, backwards, and with other
    separators or none (except a date or PUBLIC words in the key, which are no secret). If the text contains escapes, it
    is also searched with the escapes undone, whichever characters are escaped, and however.
    """

    def __init__(self, key: str, secrets: Mapping[str, str] | None = None) -> None:
        """`secrets` are further secrets, each with its label. A value that is too short to reveal anything is left
        alone."""
        self._labels: dict[str, str] = {}
        for value, label in ((key, KEY_LABEL), *(secrets or {}).items()):
            if len(value) < ANCHOR and label != KEY_LABEL:
                continue
            written = (value, quote(value, safe=""), value.encode().hex(), value.encode().hex().upper())
            for form in (*written, *_escaped_forms(value), *_base64_forms(value)):
                self._labels.setdefault(form, label)
        for separator in " -":  # as people read a key to each other
            groups = separator.join(key[start : start + GROUP] for start in range(0, len(key), GROUP))
            self._labels.setdefault(groups, KEY_LABEL)
        self._ordered = sorted(self._labels, key=len, reverse=True)
        secret = {key, *(secrets or {})}.intersection(self._labels)
        self._escaped = [form for form in self._ordered if form in secret and len(list(readings(form, 1))) > 1]
        self._whole = [form for form, known in self._labels.items() if known == KEY_LABEL]
        self._anchors = _anchors(self._ordered)
        self._anchors_without_words = _anchors([form for form in self._ordered if not _WORD.within(form)])
        self._known: dict[str, str] = {}
        self._harmless: set[str] = set()  # pieces of long texts
        self._telling = len(key) >= SECRET_PART
        encoded = [
            form for way in (key, key[::-1], key.swapcase(), key.upper(), key.lower()) for form in _base64_forms(way)
        ]
        ways = {key, key[::-1], key.translate(_SEPARATORS), re.sub("[-_]", "", key)}  # as near misses have it
        self._parts = (_Parts(ways, SECRET_PART), _Parts(encoded, BASE64_PART))
        self._in_pieces = not any(CUT in form for form in self._labels)

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
        if self._in_pieces and len(text) > REMEMBERED and self._is_harmless(text):
            return text
        spans = self._secrets_in(text)
        return _replaced(text, spans) if spans else text

    def _is_harmless(self, text: str) -> bool:
        """Whether `text` holds no secret. Only those of its pieces are searched that are not known yet: since no secret
        contains CUT (`_in_pieces`), nor does an escape of any other character, none lies across two pieces."""
        unknown = set(text.split(CUT)) - self._harmless
        if self._secrets_in(CUT.join(unknown)):
            return False
        if len(self._harmless) > MOST_PIECES:
            self._harmless = set()
        self._harmless.update(piece for piece in unknown if len(piece) <= REMEMBERED)
        return True

    def reveals(self, text: str) -> bool:
        """Whether `text` contains the key itself, in any form. False for a short key, which may occur by chance."""
        if not self._telling:
            return False
        return any(any(map(reading.__contains__, self._whole)) for reading in readings(text))

    def _secrets_in(self, text: str, depth: int = DEEPEST) -> list[Span]:
        """The stretches of `text` that are secret; none overlap. Escapes are undone first, since only that shows the
        whole of a partly escaped secret; secrets that themselves contain an escape come even before."""
        found: list[Span] = []
        left = text

        def add(spans: list[Span]) -> None:
            nonlocal left
            found.extend(spans)
            left = _blotted(left, spans)

        if ELLIPSIS in text:
            add(self._beginnings_in(text))
        if depth and (used := [spelling for spelling in SPELLINGS if spelling.used(left)]):
            add(self._known_in(left, self._escaped))
            for spelling in used:
                add(self._escaped_in(left, spelling, depth))
        add(self._known_in(left, self._ordered))
        for parts in self._parts:
            add(parts.within(left))
        return found

    def _escaped_in(self, text: str, spelling: Spelling, depth: int) -> list[Span]:
        """Where secrets are in `text` once its escapes of this kind are undone."""
        undone, place = spelling.undone(text)
        if undone == text:
            return []
        return [(place(start), place(end), label) for start, end, label in self._secrets_in(undone, depth - 1)]

    def _known_in(self, text: str, values: list[str]) -> list[Span]:
        """Where known `values` are in `text`, searched for in their order."""
        found: list[Span] = []
        anchors = self._anchors if _WORD.within(text) else self._anchors_without_words
        if present := _present(anchors, text):
            possible = set().union(*(anchors[anchor] for anchor in present))
            for value in values:
                if value in possible and value in text:
                    found += ((*run.span(), self._labels[value]) for run in re.finditer(re.escape(value), text))
                    text = text.replace(value, FOUND * len(value))
        return found

    def _beginnings_in(self, text: str) -> list[Span]:
        """Where a known value begins whose end is missing, because a quotation was cut there, as an ELLIPSIS shows."""
        forms = [pair for pair in self._labels.items() if pair[0][:SECRET_PART] in text]
        if not forms:
            return []
        found: list[Span] = []
        place = 0
        for piece in text.split(ELLIPSIS)[:-1]:
            begun = [
                (start, label)
                for form, label in forms
                if (start := piece.rfind(form[:SECRET_PART], -len(form))) >= 0 and form.startswith(piece[start:])
            ]
            if begun:
                start, label = min(begun)
                found.append((place + start, place + len(piece), label))
            place += len(piece) + len(ELLIPSIS)
        return found


def _replaced(text: str, spans: list[Span]) -> str:
    """`text` with each of the `spans` replaced by its label."""
    pieces: list[str] = []
    last = 0
    for start, end, label in sorted(spans):
        pieces += (text[last:start], label)
        last = end
    return "".join([*pieces, text[last:]])


def _blotted(text: str, spans: list[Span]) -> str:
    """`text`, as long as before, with nothing left to find in `spans`."""
    return _replaced(text, [(start, end, FOUND * (end - start)) for start, end, _ in spans]) if spans else text


def _anchors(forms: list[str]) -> dict[str, set[str]]:
    """Anchors, each with its forms: a few characters from the middle of a form, chosen so that many forms share them. A
    text without an anchor contains none of its forms, and searching for anchors takes a fraction of the time."""
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
    """Those of `stretches` that are in `text`. In a long text, finding out whether a single character is there takes a
    tenth of the time, so that is tried first."""
    if len(text) > REMEMBERED:
        there = {character for character in set("".join(stretches)) if character in text}
        stretches = {stretch for stretch in stretches if there.issuperset(stretch)}
    return {stretch for stretch in stretches if stretch in text}


def _escaped_forms(value: str) -> list[str]:
    """What `value` looks like inside a JSON string, with and without escaped slashes, and inside HTML."""
    quoted = json.dumps(value)[1:-1]
    return [quoted, quoted.replace("/", "\\/"), html.escape(value)]


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
