"""Looks for a key in everything that a run has left: in every form in which a reader could find it."""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from conformance.checks import invalid_keys

#: So many characters of the key are too many.
PART = 8


def assert_nowhere(key: str, *places: Path | str) -> None:
    """Demand that neither the key, a near miss of it, nor a long part of it stands in any of `places`: files, folders
    of files, or texts."""
    for name, text in _texts(*places):
        for form in _readings(text):
            found = _found(key, form)
            assert found is None, f"{name} holds {found}"


def _texts(*places: Path | str) -> Iterator[tuple[str, str]]:
    for place in places:
        if isinstance(place, str):
            yield "what was printed", place
        elif place.is_dir():
            yield from _texts(*(path for path in sorted(place.rglob("*")) if path.is_file()))
        else:
            text = place.read_bytes().decode("utf-8", "replace")
            yield str(place), text
            if place.suffix in (".json", ".har"):
                yield f"{place}, read as JSON", "\n".join(_strings(json.loads(text)))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value


def _readings(text: str) -> Iterator[str]:
    yield text
    yield html.unescape(text)
    yield unquote(text)
    yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    decoded = []
    for piece in set(re.findall(r"[A-Za-z0-9+/_-]{12,}={0,2}", text)):
        for start in range(4):
            cut = piece[start:].rstrip("=").replace("-", "+").replace("_", "/")
            try:
                decoded.append(base64.b64decode(cut + "=" * (-len(cut) % 4)).decode("latin-1"))
            except (binascii.Error, ValueError):
                continue
    yield "\n".join(decoded)


def _found(key: str, text: str) -> str | None:
    lowered = text.lower()
    for start in range(len(key) - PART + 1):
        if key[start : start + PART].lower() in lowered:
            return (
                f"a part of the key, in {text[max(0, lowered.find(key[start : start + PART].lower()) - 60) :][:120]!r}"
            )
    for near, label in invalid_keys.secrets(key).items():
        if len(near) >= PART and near in text:
            return f"{label}, in {text[max(0, text.find(near) - 60) :][:120]!r}"
    return None
