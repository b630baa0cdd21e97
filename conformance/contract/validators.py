"""What a body must be: an Order, an Error, a listing (sections 2 and 4.1 of the specification).

Each function takes a value and returns the problems as sentences, none when there is nothing to object to. They demand
what the specification shows: no field of an Order is required, further fields are allowed anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conformance.contract import dates
from conformance.contract.jsontext import INT64, JsonText, Number, integer, type_name

#: How many problems of one kind a message spells out.
SHOWN = 3


def shown(value: object, limit: int = 80) -> str:
    """`value` as a message quotes it, cut to `limit` characters: a number as it was written, else a Python literal."""
    words = {True: "true", False: "false"}
    if isinstance(value, str | bytes) and len(value) > limit:  # spelt out no further than needed: it may be megabytes
        return f"{value[:limit]!r}"[:limit] + f"… ({len(value)} {'characters' if isinstance(value, str) else 'bytes'})"
    text = words[value] if isinstance(value, bool) else value.text if isinstance(value, Number) else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _int64(value: object) -> str | None:
    number = integer(value)
    if number is None:
        return f"is {_kind(value)}, not an integer"
    return None if number in INT64 else f"is {shown(value)}, outside int64"


def _integer(value: object) -> str | None:
    # Of a number past MAX_DIGITS only its text is left: any integer literal is an integer.
    plain = isinstance(value, Number) and value.text.lstrip("-").isdigit()
    return None if plain or integer(value) is not None else f"is {_kind(value)}, not an integer"


def _date_time(value: object) -> str | None:
    if not isinstance(value, str):
        return f"is {_kind(value)}, not a string"
    return None if dates.is_iso8601(value) else f"is {shown(value)}, not an ISO 8601 date with time"


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else f"is {_kind(value)}, not a boolean"


def _string(value: object) -> str | None:
    return None if isinstance(value, str) else f"is {_kind(value)}, not a string"


def _kind(value: object) -> str:
    name = type_name(value)
    if value is None:
        return "null"
    article = "an" if name[0] in "aeiou" else "a"
    return f"{article} {name}" if isinstance(value, dict | list) else f"the {name} {shown(value)}"


Rule = Callable[[object], "str | None"]
ORDER_RULES: dict[str, Rule] = {
    "id": _int64,
    "petId": _int64,
    "quantity": _integer,
    "shipDate": _date_time,
    "complete": _boolean,
}
ERROR_RULES: dict[str, Rule] = {"code": _string, "message": _string, "status": _integer}
ORDER_FIELDS, ERROR_FIELDS = tuple(ORDER_RULES), tuple(ERROR_RULES)


def order_problems(value: object) -> list[str]:
    """What keeps a JSON value from being an Order (section 2): wrong types and formats of listed fields."""
    if not isinstance(value, dict):
        return [f"is {_kind(value)}, not an object"]
    return [
        f"{name} {problem}"
        for name, rule in ORDER_RULES.items()
        if name in value and (problem := rule(value[name])) is not None
    ]


def error_problems(value: object) -> list[str]:
    """What keeps a JSON value from being an Error (section 2): missing fields and wrong types."""
    if not isinstance(value, dict):
        return [f"the body is {_kind(value)}, not an object"]
    problems = []
    for name, rule in ERROR_RULES.items():
        if name not in value:
            problems.append(f"{name} is missing")
        elif (problem := rule(value[name])) is not None:
            problems.append(f"{name} {problem}")
    return problems


@dataclass
class Listing:
    """A listing as read: its elements in order, by id, and how many have no readable id."""

    elements: list[Any]
    doubled_names: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: JsonText) -> Listing | None:
        """The listing that a JSON text is, or None where it is no array."""
        return cls(text.value, text.doubled_names) if isinstance(text.value, list) else None

    @cached_property
    def by_id(self) -> dict[int, Any]:
        """The elements that have a readable id; of doubled ids the last."""
        return {number: element for number, element in self._identified() if number is not None}

    @cached_property
    def without_id(self) -> int:
        """How many elements have no id, or one that is no integer."""
        return sum(number is None for number, _ in self._identified())

    @property
    def ids(self) -> frozenset[int]:
        """Every id in the listing."""
        return frozenset(self.by_id)

    def doubled_ids(self) -> list[int]:
        """The ids that more than one element carries (LIST-4)."""
        counts = Counter(number for number, _ in self._identified() if number is not None)
        return [number for number, count in counts.items() if count > 1]

    def problems(self) -> list[str]:
        """What is wrong with its elements, at most SHOWN of a kind, with their index (LIST-2)."""
        return _several(
            (f"element {index}", problem)
            for index, element in enumerate(self.elements)
            for problem in order_problems(element)
        )

    def unconventional_dates(self) -> list[str]:
        """The shipDates that are ISO 8601 and not RFC 3339 (LIST-10)."""
        return _several(
            (f"element {index}", f"shipDate is {shown(text)}, ISO 8601 but not RFC 3339")
            for index, element in enumerate(self.elements)
            if isinstance(element, dict)
            and isinstance(text := element.get("shipDate"), str)
            and dates.is_iso8601(text)
            and not dates.is_rfc3339(text)
        )

    def unconventional_integers(self) -> list[str]:
        """The integers written with fraction or exponent, and doubled names (LIST-11)."""
        written = (
            (f"element {index}", f"{name} is written {shown(element[name])}")
            for index, element in enumerate(self.elements)
            if isinstance(element, dict)
            for name in ("id", "petId", "quantity")
            if isinstance(element.get(name), Number) and element[name].integral is not None
        )
        doubled = [f"the name {name!r} stands twice in one object" for name in self.doubled_names[:SHOWN]]
        return _several(written) + doubled

    def _identified(self) -> Iterator[tuple[int | None, Any]]:
        for element in self.elements:
            yield integer(element.get("id")) if isinstance(element, dict) else None, element


def _several(found: Iterator[tuple[str, str]]) -> list[str]:
    """Sentences "where what", at most SHOWN that begin with the same word, then how many more there are."""
    kinds: Counter[str] = Counter()
    sentences = []
    for where, what in found:
        kind = what.partition(" ")[0]
        kinds[kind] += 1
        if kinds[kind] <= SHOWN:
            sentences.append(f"{where}: {what}")
    more = sum(count - SHOWN for count in kinds.values() if count > SHOWN)
    return [*sentences, f"and {more} more of these kinds"] if more else sentences
