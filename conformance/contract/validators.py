"""What a JSON value must be: an Order, an Error (section 2 of the specification).

Each function takes a value and returns its problems as sentences, none if it is fine. They demand only what the
specification shows: no field of an Order is required, and further fields are allowed anywhere. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from conformance.contract import dates
from conformance.contract.jsontext import INT64, Number, integer, type_name


def shown(value: object, limit: int = 80) -> str:
    """`value` as a message quotes it, cut to `limit` characters: a number as it was written, bytes as text, None and
    booleans as in JSON, anything else as a Python literal."""
    if isinstance(value, bytes):
        text = repr(value[:limit].decode("utf-8", "backslashreplace"))
        return text if len(value) <= limit else f"{text[:limit]}… ({len(value)} bytes)"
    if isinstance(value, str) and len(value) > limit:  # spelt out no further than needed: it may be megabytes
        return f"{value[:limit]!r}"[:limit] + f"… ({len(value)} characters)"
    if isinstance(value, Number):
        text = value.text
    elif value is None or isinstance(value, bool):
        text = as_json(value)
    else:
        text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def as_json(value: object) -> str:
    """A JSON value as JSON, with numbers as they were written."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_json(name)}: {as_json(item)}' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_json, value))}]"
    text = value.text if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()  # lone surrogates


def _int64(value: object) -> str | None:
    if (problem := _integer(value)) is not None:
        return problem
    number = integer(value)
    return None if number is not None and number in INT64 else f"is {shown(value)}, outside int64"


def _integer(value: object) -> str | None:
    whole = value.whole if isinstance(value, Number) else integer(value) is not None
    return None if whole else f"is {_kind(value)}, not an integer"


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
    """Why a JSON value is not an Order (section 2): wrong types and formats of listed fields."""
    if not isinstance(value, dict):
        return [f"is {_kind(value)}, not an object"]
    return [
        f"{name} {problem}"
        for name, rule in ORDER_RULES.items()
        if name in value and (problem := rule(value[name])) is not None
    ]


def error_problems(value: object) -> list[str]:
    """Why a JSON value is not an Error (section 2): missing fields and wrong types."""
    if not isinstance(value, dict):
        return [f"the body is {_kind(value)}, not an object"]
    problems = []
    for name, rule in ERROR_RULES.items():
        if name not in value:
            problems.append(f"{name} is missing")
        elif (problem := rule(value[name])) is not None:
            problems.append(f"{name} {problem}")
    return problems
