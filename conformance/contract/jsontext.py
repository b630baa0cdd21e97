"""Reads one JSON text exactly as RFC 8259 defines it, which Python's `json` alone does not.

`json.loads` accepts NaN and Infinity, drops a byte-order mark, silently keeps the last of duplicate names, and turns
`3.0` into a float that no longer shows how it was written. Here the first two are errors, and the last two are kept for
the requirement that asks about them (LIST-11). Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

INT64 = range(-(2**63), 2**63)
#: No meaningful integer has more digits; beyond this, Python's own conversion takes quadratic time, then refuses.
MAX_DIGITS = 400
#: How many levels of nesting are read. RFC 8259 section 9 leaves the limit to the reader; no Order needs more than one.
MAX_DEPTH = 200
_NO_BRACKET = re.compile(rb'[^\[\]{}"]+|"(?:[^"\\]|\\.)*"', re.DOTALL)
#: Bytes that are neither brackets nor quotes, and brackets of both kinds made alike.
_NEITHER, _ALIKE = bytes(set(range(256)) - set(b'[]{}"')), bytes.maketrans(b"{}", b"[]")


class NotJson(ValueError):
    """The bytes are not one JSON text in UTF-8; the message says where and why."""


class TooDeep(NotJson):
    """The text is nested too deeply to be read here; it may still be JSON."""


class Number(float):
    """A number that was not written as a plain integer (`3.0`, `1e3`, `0.5`), with its original text."""

    __slots__ = ("text",)  # there may be millions
    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    @property
    def integral(self) -> int | None:
        """The integer that it equals, if that fits into 64 bits; else None (also for `1e400`)."""
        if not self.whole:
            return None
        exact = Decimal(self.text)
        return int(exact) if INT64.start <= exact < INT64.stop else None

    @property
    def whole(self) -> bool:
        """Whether it equals an integer, of any size."""
        try:
            exact = Decimal(self.text)
        except InvalidOperation:  # an exponent past what Decimal holds
            return False
        return exact.is_finite() and exact == exact.to_integral_value()


@dataclass
class JsonText:
    """A JSON text, read: its value, and the member names that occurred twice in an object."""

    value: Any
    doubled_names: list[str]


def parse(body: bytes) -> JsonText:
    """Read `body` as one JSON text (RFC 8259 sections 2 and 8.1). Raises NotJson and TooDeep."""
    if body.startswith(b"\xef\xbb\xbf"):
        raise NotJson("it starts with a byte-order mark (RFC 8259 section 8.1)")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    if _too_deep(body):
        raise TooDeep(f"it is nested deeper than {MAX_DEPTH} levels, the limit of this reader (RFC 8259 section 9)")
    return _read(text)


def _read(text: str, parse_int: Callable[[str], Any] = int) -> JsonText:
    doubled: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named = dict(pairs)
        if len(named) != len(pairs):
            doubled.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return named

    hooks: dict[str, Any] = {"parse_constant": _refuse_constant, "parse_float": Number, "object_pairs_hook": members}
    try:
        return JsonText(json.loads(text, parse_int=parse_int, **hooks), doubled)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        if not text.strip(" \t\r\n"):
            raise NotJson("it is empty") from None
        said = error.msg.removesuffix(" at")  # some of its messages end so
        raise NotJson(f"{said} at line {error.lineno} column {error.colno}") from None
    except RecursionError:  # brackets that are never closed are nested too deep for the parser
        raise NotJson("its brackets do not match") from None
    except ValueError:  # an integer with more digits than Python converts
        return _read(text, _integer)


def integer(value: object) -> int | None:
    """The integer that a JSON value equals (`3`, and also `3.0` or `3e0`), or None. A boolean is not an integer."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return value.integral if isinstance(value, Number) else None


def values(value: object) -> Iterator[object]:
    """A JSON value, and every value in it, however deep."""
    stack = [value]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def type_name(value: object) -> str:
    """What JSON calls the type of `value`: null, boolean, number, string, array or object; `integer` for a number that
    was written as one."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", Number: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "number")


def _too_deep(body: bytes) -> bool:
    """Whether the brackets of `body` are nested deeper than MAX_DEPTH. The innermost pairs are removed level by level,
    so nothing recurses. Brackets that do not match are left to the parser."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    brackets = body.translate(_ALIKE, _NEITHER).replace(b'""', b"")
    if b'"' in brackets or b"\\" in body:  # there are, or may be, brackets in strings, which do not count
        brackets = _NO_BRACKET.sub(b"", body).translate(_ALIKE)
    for _ in range(MAX_DEPTH):
        outer = brackets.replace(b"[]", b"")
        if outer in (b"", brackets):
            return False
        brackets = outer
    return True


def _integer(digits: str) -> int | Number:
    return int(digits) if len(digits) <= MAX_DIGITS else Number(digits)


def _refuse_constant(name: str) -> object:
    raise NotJson(f"{name} is no JSON value (RFC 8259 section 6)")
