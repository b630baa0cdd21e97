"""Requests generated from the shipped OpenAPI document: by Schemathesis, or in the budget quick, since Schemathesis
takes a second to load, by a few plain Hypothesis strategies that read the same document.

Before that the document is widened by what the contract leaves open (query parameters, header fields), and narrowed to
ids that no order has, nor will have soon.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote, urlencode

from conformance.budgets import Budget
from conformance.checks.ids import UNUSED
from conformance.checks.isolated_hypothesis import isolated, profile
from conformance.contract import catalogue
from conformance.contract.jsontext import INT64
from conformance.transport.request import Headers

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: A part of an OpenAPI document, or values for its parameters.
Schema = dict[str, Any]

#: A service that counts up gives the next orders ids just above those that it has given, and none from here on.
FAR = 2**40
SOON = 2**20
PRINTABLE = "".join(map(chr, range(33, 127)))
#: The longest path segment and query that are sent: how much a server takes in is not shown.
LONGEST = 300

LIST, CANCEL = ("/store/orders", "get"), ("/store/orders/{orderId}", "delete")

#: Where no order is, nor was one in an earlier run, but by chance: towards both ends of int64, short of the very ends,
#: which are drawn often.
_FAR_IDS = [
    {"minimum": FAR, "maximum": INT64.stop - 1 - UNUSED},
    {"minimum": INT64.start + UNUSED, "maximum": -FAR},
]
#: Header fields that no service has to mind.
_HEADERS: dict[str, Schema] = {
    "X-Request-Id": {"type": "string", "pattern": "^[A-Za-z0-9-]{1,36}$"},
    "Accept-Language": {"type": "string", "enum": ["de", "en-GB", "*", "sv;q=0.5"]},
    "Accept": {"type": "string", "enum": ["*/*", "application/json", "application/json;q=0.9, */*;q=0.1"]},
    "Cache-Control": {"type": "string", "enum": ["no-cache", "max-age=0"]},
}
_TEXT: Schema = {"type": "string", "pattern": "^[A-Za-z0-9 ._:,/+-]{0,20}$"}
_NUMBER: Schema = {"type": "integer", "minimum": -10, "maximum": 10**6}
#: Query parameters of the kinds that are planned for another version, and some of none.
_QUERY: dict[str, Schema] = {
    **dict.fromkeys(("limit", "offset", "page", "per_page", "pageSize", "skip", "top", "petId", "id"), _NUMBER),
    **dict.fromkeys(("status", "filter", "sort", "q", "fields", "cursor", "shipDate", "x"), _TEXT),
    "complete": {"type": "boolean"},
}


@dataclass(frozen=True, order=True)
class GeneratedRequest:
    """A generated request: the path segment for the id, the query, header fields; `size` is how long these are."""

    size: int
    segment: str = ""
    query: str = ""
    headers: Headers = ()

    @classmethod
    def of(cls, path: Schema, query: Schema, headers: Schema) -> GeneratedRequest:
        """The request with these values for its parameters; a path segment may be percent-encoded or plain."""
        segment = quote(unquote(str(path["orderId"])), safe="") if path else ""
        encoded = urlencode([(name, _text(value)) for name, value in sorted(query.items())])
        fields = tuple(sorted((str(name), str(value)) for name, value in headers.items() if name in _HEADERS))
        return cls(len(segment) + len(encoded) + len(fields), segment, encoded, fields)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def topic_of(segment: str) -> str:
    """What a path segment is: the topic of the observations that it belongs to, or "an id"."""
    text = unquote(segment)
    if re.fullmatch(r"[+-]?[0-9]+", text):
        plain = re.fullmatch(r"0|-?[1-9][0-9]*", text)
        return "ids outside int64" if int(text) not in INT64 else "an id" if plain else "unusual spellings of an id"
    try:
        return "unusual spellings of an id" if float(text).is_integer() else "malformed ids"
    except ValueError:
        return "malformed ids"


def _far_orders() -> list[Schema]:
    schema = {"anyOf": [{**_order_id()["schema"], **bounds} for bounds in _FAR_IDS]}
    return [{**_order_id(), "schema": schema}, *_optional("header", _HEADERS)]


@dataclass(frozen=True)
class RequestKind:
    """How requests of one kind are generated: for which operation, with which parameters, whether these are to violate
    their schema (`wrong`), and which of the generated requests are used."""

    operation: tuple[str, str]
    parameters: Callable[[], list[Schema]]
    wrong: bool = False
    used: Callable[[GeneratedRequest], bool] = lambda request: True


#: Cancels of orders that do not exist and listings, with header fields of all sorts: well-formed. Listings with query
#: parameters, which the contract does not know. Cancels of what is no integer.
KINDS = {
    "far orders": RequestKind(CANCEL, _far_orders),
    "listings": RequestKind(LIST, lambda: _optional("header", _HEADERS)),
    "queries": RequestKind(LIST, lambda: _optional("query", _QUERY), used=lambda request: request.query != ""),
    "malformed ids": RequestKind(
        CANCEL, lambda: [_order_id()], wrong=True, used=lambda request: topic_of(request.segment) != "an id"
    ),
}


def generate(kind: str, budget: Budget, seed: int) -> Sequence[GeneratedRequest]:
    """Different requests of a `kind`, a name in KINDS, the shortest first; the same for the same seed."""
    chosen, count = KINDS[kind], budget.requests
    with isolated():
        strategy = (_schemathesis_requests if budget.schemathesis else _plain_requests)(chosen)
        drawn = _drawn(strategy, 3 * count, seed)
    short = [request for request in drawn if request.size <= LONGEST][:count]
    return [request for request in sorted(short) if chosen.used(request)]


def _drawn(strategy: SearchStrategy[GeneratedRequest], examples: int, seed: int) -> list[GeneratedRequest]:
    """Different examples of a strategy."""
    import hypothesis

    found: dict[GeneratedRequest, None] = {}

    @hypothesis.seed(seed)
    @profile(examples)
    @hypothesis.given(strategy)
    def collect(request: GeneratedRequest) -> None:
        found.setdefault(request)

    collect()
    return list(found)


# --- the document


@cache
def _document() -> Schema:
    # Schemathesis brings PyYAML with it; its stubs are only there where the suite is developed.
    return cast(Schema, import_module("yaml").safe_load(catalogue.resource("openapi.yaml")))


def _order_id() -> Schema:
    path, method = CANCEL
    return cast(Schema, _document()["paths"][path][method]["parameters"][0])


def _optional(where: str, schemas: dict[str, Schema]) -> list[Schema]:
    return [{"name": name, "in": where, "required": False, "schema": schema} for name, schema in schemas.items()]


# --- the generators


def _schemathesis_requests(kind: RequestKind) -> SearchStrategy[GeneratedRequest]:
    """The requests that Schemathesis generates for one operation. All its settings are given here, so that it reads no
    configuration file, and it sends nothing."""
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

    path, method = kind.operation
    described = {**_document()["paths"][path][method], "parameters": kind.parameters()}
    whole = {**_document(), "paths": {path: {method: described}}}
    generation = GenerationConfig(
        codec="ascii", allow_x00=False, with_security_parameters=False, allow_extra_parameters=False
    )
    configuration = SchemathesisConfig(seed=0, projects=ProjectsConfig(default=ProjectConfig(generation=generation)))
    schema = schemathesis.openapi.from_dict(copy.deepcopy(whole), config=configuration)
    mode = GenerationMode.NEGATIVE if kind.wrong else GenerationMode.POSITIVE
    cases = schema[path][method.upper()].as_strategy(generation_mode=mode)
    return cases.map(
        lambda case: GeneratedRequest.of(case.path_parameters or {}, case.query or {}, dict(case.headers or {}))
    )


def _plain_requests(kind: RequestKind) -> SearchStrategy[GeneratedRequest]:
    """The same with Hypothesis alone, for the schemas that occur here."""
    from hypothesis import strategies as st

    parameters = kind.parameters()

    def text_of(characters: Sequence[str]) -> SearchStrategy[str]:
        # Not `st.text`, which first sorts all of Unicode into categories: a quarter of a second.
        return st.lists(st.sampled_from(characters), min_size=1, max_size=20).map("".join)

    def values(schema: Schema) -> SearchStrategy[Any]:
        if kind.wrong:
            text = text_of(PRINTABLE)
            return text | st.sampled_from(("true", "false", "null", "{}")) | st.floats(allow_nan=False).map(str)
        if "anyOf" in schema:
            return st.one_of([values(each) for each in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        match schema["type"]:
            case "integer":
                return st.integers(schema["minimum"], schema["maximum"])
            case "boolean":
                return st.booleans()
        fitting = [character for character in PRINTABLE if re.fullmatch(schema["pattern"], character)]
        return text_of(fitting)

    def group(where: str) -> SearchStrategy[Schema]:
        there = {each["name"]: values(each["schema"]) for each in parameters if each["in"] == where}
        if where == "path":
            return st.fixed_dictionaries(there)
        return st.fixed_dictionaries({}, optional=there)

    return st.builds(GeneratedRequest.of, group("path"), group("query"), group("header"))
