"""Where a stated result and the result derived from its evidence disagree. Pure: two contents of a `results.json` in,
sentences out.

Everything is compared, with one exception: where secrets were removed from an answer, messages that quote it may be
worded differently, and may show another answer that differed only in its secrets.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from conformance.audit.record import alike
from conformance.text import beginning
from conformance.transport.evidence import Exchange

#: What is compared separately, or not at all, of a result and of a requirement in it: the derived digests are those of
#: other texts.
_APART = {"verdict", "requirements", "warnings", "files", "digest"}
_APART_IN_ROW = {"status", "checks"}
_TEXT = 300


def in_result(stated: dict[str, Any], derived: dict[str, Any], veiled: frozenset[int]) -> Iterator[str]:
    """Where the result as `stated` is not the one `derived` from the evidence, what matters most first.

    `veiled` are the numbers of the exchanges whose answers had secrets removed.
    """
    if stated["verdict"] != derived["verdict"]:
        yield f"the verdict is stated as {stated['verdict']}; the evidence amounts to {derived['verdict']}"
    own = {row["id"]: row for row in derived["requirements"]}
    rows = {row["id"]: row for row in stated["requirements"]}
    for id_ in {**own, **rows}:
        if id_ not in rows or id_ not in own:
            yield f"{id_} is {'not in the result' if id_ in own else 'no requirement'}"
        else:
            yield from _requirement(id_, rows[id_], own[id_], veiled)
    if set(stated.get("warnings", ())) != set(derived["warnings"]):
        yield from _values("warnings", sorted(stated.get("warnings", ())), sorted(derived["warnings"]))
    yield from _values("", _without(_APART, stated), _without(_APART, derived))


def _without(names: Collection[str], data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def _requirement(id_: str, stated: dict[str, Any], derived: dict[str, Any], veiled: frozenset[int]) -> Iterator[str]:
    if stated["status"] != derived["status"]:
        yield f"{id_} is stated as {stated['status']}; by the evidence it is {derived['status']}"
    checks = {check["id"]: check for check in derived["checks"]}
    told = {check["id"]: check for check in stated["checks"]}
    for name in {**checks, **told}:
        where = f"{id_}, check {name}"
        if name not in told:
            yield f"{where}: has no result; by the evidence it is {checks[name]['status']}"
        elif name not in checks:
            yield f"{where}: is stated as {told[name]['status']}, and the run had no such check"
        elif told[name]["status"] != checks[name]["status"]:
            found = checks[name]
            why = f": {_brief(found.get('message', ''))}" if found.get("message") else ""
            yield f"{where}: is stated as {told[name]['status']}; by the evidence it is {found['status']}{why}"
        elif veiled.isdisjoint(checks[name]["exchanges"]):
            yield from _values(where, told[name], checks[name])
        else:
            yield from _values(where, _unworded(told[name]), _unworded(checks[name]))
    yield from _values(id_, _without(_APART_IN_ROW, stated), _without(_APART_IN_ROW, derived))


def _unworded(check: dict[str, Any]) -> dict[str, Any]:
    failure = check.get("failure")
    quoting = {"expected": "", "received": "", "exchange": None, "curl": None}
    worded = {**check, "message": "", "failure": failure and {**failure, **quoting}}
    return {name: value for name, value in worded.items() if value is not None}


def in_exchanges(stated: Iterable[Exchange], derived: Iterable[Exchange], veiled: frozenset[int]) -> Iterator[str]:
    """Where the record of an exchange is not what the judges find in it now."""
    for old, new in zip(stated, derived, strict=False):
        for name, value in vars(new).items():
            noted = getattr(old, name)
            if noted != value and not (old.number in veiled and _same_rows(name, noted, value)):
                yield f"exchange {old.number} has {name} {_brief(noted)}; the evidence has it {_brief(value)}"


def _same_rows(name: str, noted: Any, found: Any) -> bool:
    """Whether the same requirements were met, and the same not, whatever is said of it."""
    if name not in ("findings", "undecided"):
        return False
    return {row: problem is None for row, problem in noted.items()} == {
        row: problem is None for row, problem in found.items()
    }


def _values(where: str, stated: Any, derived: Any) -> Iterator[str]:
    """The places below `where` in which two values differ."""
    if isinstance(stated, dict) and isinstance(derived, dict):
        for name in {**derived, **stated}:
            inner = f"{where}, {name}" if where else str(name)
            yield from _values(inner, stated.get(name), derived.get(name))
    elif isinstance(stated, list) and isinstance(derived, list) and len(stated) == len(derived):
        for place, (one, other) in enumerate(zip(stated, derived, strict=True)):
            yield from _values(f"{where} {place}", one, other)
    elif not _agree(stated, derived):
        yield f"{where}: is stated as {_brief(stated)}; the evidence has it {_brief(derived)}"


def _agree(stated: Any, derived: Any) -> bool:
    """Whether two values are the same, texts but for what was taken out as secret; 1 is not true."""
    if isinstance(stated, str) and isinstance(derived, str):
        return alike(stated, derived)
    return bool(stated == derived) and isinstance(stated, bool) is isinstance(derived, bool)


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return beginning(text, _TEXT)
