"""Lays bodies out for reading, without parsing them: what is shown is what was sent, to the last digit.

A JSON parser would repair what readers have to see: names that occur twice, `3.0`, a text that breaks off.
"""

from __future__ import annotations

import re

#: Strings (also one that breaks off), structure, and anything else; white space in between is dropped.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
#: A flat array or object that is this short stays on one line.
_LINE = 100


def pretty(text: str) -> str:
    """`text` with line breaks and indentation if it looks like a JSON array or object, else as it is."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    tokens = _TOKEN.findall(text)
    out: list[str] = []
    depth = position = 0
    while position < len(tokens):
        token = tokens[position]
        if token in ("[", "{"):
            line = _flat(tokens, position)
            if line:
                out.append("".join(_spaced(part) for part in line))
                position += len(line)
                continue
            depth += 1
            out.append(token + _newline(depth))
        elif token in ("]", "}"):
            depth = max(0, depth - 1)
            out.append(_newline(depth) + token)
        elif token == ",":
            out.append(token + _newline(depth))
        else:
            out.append(_spaced(token))
        position += 1
    return "".join(out)


def _flat(tokens: list[str], start: int) -> list[str]:
    """The tokens of the container that opens at `start`, if it contains no other and is short; else none."""
    length = 0
    for end in range(start + 1, len(tokens)):
        length += len(tokens[end])
        if tokens[end] in ("[", "{") or length > _LINE:
            return []
        if tokens[end] in ("]", "}"):
            return tokens[start : end + 1]
    return []


def _spaced(token: str) -> str:
    return token + " " if token in (":", ",") else token


def _newline(depth: int) -> str:
    return "\n" + "  " * min(depth, 20)
