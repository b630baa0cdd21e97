"""The requirement catalogue, `requirements.toml`, as values.

Users rely on this data, so loading it is strict: an unknown or missing key, an unknown level or need, or a duplicate id
is an error that names the row.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

#: The words a row's `needs` may use.
NEEDS = ("absent ids", "pending orders", "shipped orders", "chosen ids", "many orders", "an empty store")


class CatalogueError(ValueError):
    """The catalogue file breaks a rule of this module."""


class Level(StrEnum):
    """Where a requirement comes from, and so what its failure does to the verdict."""

    REQUIRED = "required"
    RECOMMENDED = "recommended"


@dataclass(frozen=True)
class Requirement:
    """One row: what the service must (or should) do, the clause that says so, and what checking it needs.

    `rests_on` are requirements: if one of them failed, a failure of this one proves nothing of its own. `expected` says
    what each single answer should be, if the title is about the whole run; saved results have it only if it was missed.
    """

    id: str
    level: Level
    section: str
    title: str
    clause: str
    why: str
    needs: tuple[str, ...]
    rests_on: tuple[str, ...] = ()
    expected: str = field(default="", compare=False)

    @property
    def family(self) -> str:
        """`CANCEL` for `CANCEL-3`."""
        return self.id.partition("-")[0]

    @property
    def sentence(self) -> str:
        """The row as a sentence: "the service must refuse a shipped order with 409"."""
        modal = "must" if self.level is Level.REQUIRED else "should"
        return f"the service {modal} {self.title}"

    @property
    def expectation(self) -> str:
        """The row as an expectation: "the service to refuse a shipped order with 409"."""
        refrain = self.title.removeprefix("not ")
        return f"the service {'to' if refrain == self.title else 'not to'} {refrain}"

    @property
    def expected_of_each_answer(self) -> str:
        """What is expected of each answer, for a row that is judged on all exchanges."""
        return self.expected or self.expectation


@dataclass(frozen=True)
class Observation:
    """A topic that the specification marks "not shown": recorded as a fact, never judged."""

    topic: str
    section: str
    title: str


@dataclass(frozen=True)
class Undecidable:
    """A statement that no check can decide from outside, with the reason."""

    section: str
    statement: str
    reason: str


@dataclass(frozen=True)
class Catalogue:
    """All rows, in the order of the file, and the digest of the file."""

    requirements: dict[str, Requirement]
    observations: dict[str, Observation]
    undecidable: tuple[Undecidable, ...]
    digest: str

    @property
    def families(self) -> tuple[str, ...]:
        """The families in the order of the catalogue: AUTH, LIST, CANCEL, …"""
        return tuple(dict.fromkeys(row.family for row in self.requirements.values()))

    def hint(self, word: str) -> str:
        """What somebody may have meant by writing `word` for the id of a requirement."""
        meant = word.strip().upper()
        close = [meant] if meant in self.requirements else difflib.get_close_matches(meant, self.requirements, 1, 0.8)
        if close and meant not in self.families:
            return f"did you mean {close[0]}?"
        family = [row.id for row in self.requirements.values() if row.family == meant.partition("-")[0]]
        listed = "`store-orders-conformance requirements` lists them"
        return f"did you mean one of {', '.join(family)}?" if family else listed

    def select(self, words: tuple[str, ...]) -> frozenset[str]:
        """Requirement ids named by `words`, each an id (`AUTH-3`) or a family (`CANCEL`), in any case.

        Raises KeyError with the word that names neither.
        """
        chosen: set[str] = set()
        for word in words:
            wanted = word.strip().upper()
            ids = {row.id for row in self.requirements.values() if wanted in (row.id, row.family)}
            if not ids:
                raise KeyError(word)
            chosen |= ids
        return frozenset(chosen)


Row = TypeVar("Row", Requirement, Observation, Undecidable)


def parse(text: bytes) -> Catalogue:
    """The catalogue in `text`, a TOML document of [[requirement]], [[observation]] and [[undecidable]] tables.

    Raises CatalogueError naming the row and what is wrong with it, and TOMLDecodeError for what is no TOML.
    """
    document = tomllib.loads(text.decode())
    unknown = document.keys() - {"requirement", "observation", "undecidable"}
    if unknown:
        raise CatalogueError(f"unknown table {sorted(unknown)[0]!r}")
    requirements = [_requirement(table) for table in document.get("requirement", [])]
    for row in requirements:
        _check_rests_on(row, requirements)
    observations = [_row(Observation, table) for table in document.get("observation", [])]
    return Catalogue(
        requirements=_unique(requirements, "id"),
        observations=_unique(observations, "topic"),
        undecidable=tuple(_row(Undecidable, table) for table in document.get("undecidable", [])),
        digest="sha256:" + hashlib.sha256(text).hexdigest(),
    )


@cache
def load() -> Catalogue:
    """The catalogue that ships with the suite."""
    return parse(resource("requirements.toml"))


def resource(name: str) -> bytes:
    """A data file that ships beside this module: `requirements.toml`, `openapi.yaml`."""
    return files(__package__).joinpath(name).read_bytes()


def _requirement(table: dict[str, Any]) -> Requirement:
    """The requirement in a table. Raises CatalogueError."""
    row = _row(Requirement, table)
    label = row.id or table
    if not re.fullmatch(r"[A-Z]+-[1-9][0-9]*", row.id):
        raise CatalogueError(f"{label}: an id is FAMILY-NUMBER")
    if row.level not in list(Level):
        raise CatalogueError(f"{label}: unknown level {row.level!r}")
    if not set(row.needs) <= set(NEEDS):
        raise CatalogueError(f"{label}: a need is one of {', '.join(NEEDS)}")
    return replace(row, level=Level(row.level), needs=tuple(row.needs), rests_on=tuple(row.rests_on))


def _row(kind: type[Row], table: dict[str, Any]) -> Row:
    """The values of a table, unchanged. Raises CatalogueError for a key that is missing or unknown."""
    label = table.get("id") or table.get("topic") or table.get("statement") or table
    names = {known.name for known in fields(kind)}
    needed = {known.name for known in fields(kind) if known.default is MISSING}
    if missing := sorted(needed - table.keys()):
        raise CatalogueError(f"{label}: lacks the key {missing[0]!r}")
    if unknown := sorted(table.keys() - names):
        raise CatalogueError(f"{label}: unknown key {unknown[0]!r}; the keys are {', '.join(sorted(names))}")
    return kind(**table)


def _check_rests_on(row: Requirement, rows: list[Requirement]) -> None:
    """Refuse rows that rest on unknown ones, or on themselves, directly or indirectly."""
    by_id = {other.id: other for other in rows}
    reached: set[str] = set()
    ahead = list(row.rests_on)
    while ahead:
        id_ = ahead.pop()
        if id_ not in by_id:
            raise CatalogueError(f"{row.id}: rests on {id_}, which is no row")
        if id_ == row.id:
            raise CatalogueError(f"{row.id}: rests on itself in the end")
        if id_ not in reached:
            reached.add(id_)
            ahead.extend(by_id[id_].rests_on)


def _unique(rows: list[Any], key: str) -> dict[str, Any]:
    named = {getattr(row, key): row for row in rows}
    if len(named) != len(rows):
        keys = [getattr(row, key) for row in rows]
        twice = next(name for name in keys if keys.count(name) > 1)
        raise CatalogueError(f"{twice}: appears twice")
    return named
