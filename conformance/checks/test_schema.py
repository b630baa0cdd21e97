"""Requests made up from the OpenAPI document: ids, header fields and query parameters that nobody thought of.

Schemathesis makes them up from the shipped document; the suite's own client sends them, so the guard decides what may
go out, and whatever it refuses is left out. The document is first widened by what the contract leaves open (query
parameters, header fields) and narrowed to ids where no order is, nor will be soon.

    openapi.yaml ──amended──▶ Schemathesis (quick: plain Hypothesis) ──▶ guard ──▶ client ──▶ judged by level

What is well-formed must be answered as the contract says; of the rest no more is demanded than CANCEL-11 and LIST-6
do, and the statuses are observed. The budget quick does without Schemathesis, which takes a second to load: the same
document is then read by a few lines of plain Hypothesis strategies.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote, urlencode

import pytest

from conformance import verify
from conformance.api import Api, Observations
from conformance.check import requirement
from conformance.checks.test_model import secluded
from conformance.contract import catalogue
from conformance.contract.jsontext import INT64
from conformance.contract.listing import Listing
from conformance.target import Mode
from conformance.transport.client import Answer
from conformance.transport.evidence import NOBODY, Allowed, Headers
from conformance.transport.guard import readings

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: A part of an OpenAPI document, or values for its parameters.
Schema = dict[str, Any]

#: How many different requests of each kind are sent.
BUDGETS = {"quick": 6, "standard": 10, "thorough": 150}
#: So often is drawn anew where nothing that was drawn may go out.
DRAWS = 20
#: A service that counts up gives the next orders ids just above those that it has given, and none from here on.
FAR = 2**40
SOON = 2**20
PRINTABLE = "".join(map(chr, range(33, 127)))
#: The longest path segment and query that are sent: how much a server takes in is not shown.
LONGEST = 300

LIST, CANCEL = ("/store/orders", "get"), ("/store/orders/{orderId}", "delete")

#: Where no order is: both ends of int64.
_FAR_IDS = [{"minimum": FAR, "maximum": INT64.stop - 1}, {"minimum": INT64.start, "maximum": -FAR}]
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
class Made:
    """A request that was made up: the path segment for the id, the query, header fields."""

    size: int
    segment: str = ""
    query: str = ""
    headers: Headers = ()

    @classmethod
    def of(cls, path: Schema, query: Schema, headers: Schema) -> Made:
        """From the values of its parameters. A path segment may come percent-encoded or plain."""
        segment = quote(unquote(str(path["orderId"])), safe="") if path else ""
        encoded = urlencode([(name, _text(value)) for name, value in sorted(query.items())])
        fields = tuple(sorted((str(name), str(value)) for name, value in headers.items() if name in _HEADERS))
        return cls(len(segment) + len(encoded) + len(fields), segment, encoded, fields)


def _text(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


class Maker:
    """Makes requests up, always the same from one seed."""

    def __init__(self, rng: random.Random, budget: str) -> None:
        self._rng = rng
        self._count = BUDGETS[budget]
        self._plain = budget == "quick"

    def far_orders(self) -> list[Made]:
        """Cancels of orders that do not exist, with header fields of all sorts: well-formed."""
        schema = {"anyOf": [{**_order_id()["schema"], **bounds} for bounds in _FAR_IDS]}
        return self._made(CANCEL, [{**_order_id(), "schema": schema}, *_optional("header", _HEADERS)])

    def listings(self) -> list[Made]:
        """Listings with header fields of all sorts: well-formed."""
        return self._made(LIST, _optional("header", _HEADERS))

    def queries(self) -> list[Made]:
        """Listings with query parameters, which the contract does not know."""
        return [made for made in self._made(LIST, _optional("query", _QUERY)) if made.query]

    def malformed(self) -> list[Made]:
        """Cancels of what is no integer."""
        return [made for made in self._made(CANCEL, [_order_id()], wrong=True) if kind(made.segment) != "an id"]

    def _made(self, operation: tuple[str, str], parameters: list[Schema], *, wrong: bool = False) -> list[Made]:
        """Different requests of one operation with these parameters, the shortest first."""
        found = _made_up(
            operation, json.dumps(parameters), wrong, self._plain, 3 * self._count, self._rng.getrandbits(64)
        )
        return sorted([made for made in found if made.size <= LONGEST][: self._count])


@cache  # one seed makes up the same for every service that is judged in this process
def _made_up(
    operation: tuple[str, str], parameters: str, wrong: bool, plain: bool, examples: int, number: int
) -> list[Made]:
    """Different requests of one operation with `parameters`, a JSON list, from the random `number`."""
    described = json.loads(parameters)
    with secluded():
        if plain:
            return _drawn(_plain_requests(described, wrong=wrong), examples, number)
        return _drawn(_schemathesis_requests(operation, described, wrong=wrong), examples, number)


def _drawn(strategy: SearchStrategy[Made], examples: int, number: int) -> list[Made]:
    """Different examples of a strategy. Hypothesis generates here and does nothing else."""
    from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

    found: dict[Made, None] = {}

    @seed(number)
    @settings(
        max_examples=examples,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    @given(strategy)
    def collect(made: Made) -> None:
        found.setdefault(made)

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


# --- what makes requests up


def _schemathesis_requests(
    operation: tuple[str, str], parameters: list[Schema], *, wrong: bool
) -> SearchStrategy[Made]:
    """The requests that Schemathesis makes up for one operation. It is told everything, so that it reads no
    configuration of its own, and it sends nothing."""
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

    path, method = operation
    described = {**_document()["paths"][path][method], "parameters": parameters}
    whole = {**_document(), "paths": {path: {method: described}}}
    generation = GenerationConfig(
        codec="ascii", allow_x00=False, with_security_parameters=False, allow_extra_parameters=False
    )
    configuration = SchemathesisConfig(seed=0, projects=ProjectsConfig(default=ProjectConfig(generation=generation)))
    schema = schemathesis.openapi.from_dict(copy.deepcopy(whole), config=configuration)
    mode = GenerationMode.NEGATIVE if wrong else GenerationMode.POSITIVE
    cases = schema[path][method.upper()].as_strategy(generation_mode=mode)
    return cases.map(lambda case: Made.of(case.path_parameters or {}, case.query or {}, dict(case.headers or {})))


def _plain_requests(parameters: list[Schema], *, wrong: bool) -> SearchStrategy[Made]:
    """The same with Hypothesis alone, for the schemas that occur here."""
    from hypothesis import strategies as st

    def values(schema: Schema) -> SearchStrategy[Any]:
        if wrong:
            text = st.text(PRINTABLE, min_size=1, max_size=20)
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
        return st.text(fitting, min_size=1, max_size=20)

    def group(where: str) -> SearchStrategy[Schema]:
        there = {each["name"]: values(each["schema"]) for each in parameters if each["in"] == where}
        if where == "path":
            return st.fixed_dictionaries(there)
        return st.fixed_dictionaries({}, optional=there)

    return st.builds(Made.of, group("path"), group("query"), group("header"))


# --- what may be sent, and what it is


def out_of_reach(api: Api, found: Listing, segment: str) -> bool:
    """Whether a cancel of this segment can hit no order, neither one that is there nor one of the next to come."""
    top = max((order for order in found.ids if 0 <= order < FAR), default=0)
    numbers = readings(segment)
    near = {abs(number) for number in numbers} | {number % 2**31 for number in numbers}
    return api.permits(segment) and not any(top < number <= top + SOON for number in near)


def kind(segment: str) -> str:
    """What a path segment is in the words of the observations."""
    text = unquote(segment)
    if re.fullmatch(r"[+-]?[0-9]+", text):
        plain = re.fullmatch(r"0|-?[1-9][0-9]*", text)
        return "ids outside int64" if int(text) not in INT64 else "an id" if plain else "unusual spellings of an id"
    try:
        return "unusual spellings of an id" if float(text).is_integer() else "malformed ids"
    except ValueError:
        return "malformed ids"


def statuses(answers: list[Answer]) -> list[str]:
    """The statuses of several answers, each once."""
    return sorted({str(answer.status) for answer in answers})


# --- the checks


@pytest.fixture
def maker(api: Api, budget: str) -> Maker:
    """Makes requests up, within the budget of the run."""
    return Maker(api.rng, budget)


@requirement("LIST-6")
def test_generated_queries_do_not_shrink(api: Api, maker: Maker, observe: Observations) -> None:
    """Lists with query parameters and values that are made up: what is listed before and after is listed in between. An
    answer other than 200 is observed."""
    queries = maker.queries()
    before = api.listing()
    answers = api.send_all(api.ask_list(query=made.query) for made in queries)
    steady = before.ids & api.listing().ids
    if len(steady) < 2:
        raise verify.Excluded(
            "the listing holds fewer than two orders with ids, so nothing could be seen to be left out"
        )
    for made, answer in zip(queries, answers, strict=True):
        if verify.settled(answer).status != 200:
            continue
        if answer.listing is None:
            raise verify.Inconclusive(f"{answer.exchange.line} gave no readable listing", "LIST-1")
        lacking = steady - answer.listing.ids
        if lacking:
            raise verify.Failed(
                f"all orders in spite of ?{made.query}, since filtering and pagination are not supported",
                f"{len(answer.listing.elements)} elements, without order {min(lacking)} and {len(lacking) - 1} others "
                "that were listed before and after",
                answer,
            )
    observe("unknown query parameters", {"made up": statuses(answers)}, *answers[:1])


def first_draw(
    make: Callable[[], list[Made]], may_go_out: Callable[[Made], bool], enough: Callable[[list[str]], bool] = bool
) -> list[str]:
    """Path segments of the first draw that leaves `enough` of them. Chance may have a draw hold nothing that may go
    out, and a status must not depend on chance."""
    segments: list[str] = []
    for _ in range(DRAWS):
        segments = [made.segment for made in make() if may_go_out(made)]
        if enough(segments):
            break
    return segments


@requirement("CANCEL-5", mode=Mode.GUARDED)
def test_generated_absent_orders_are_not_found(api: Api, maker: Maker) -> None:
    """Cancels orders that do not exist, with ids made up from the schema of orderId, near both ends of int64 and
    between: 404 every time."""
    found = api.listing()
    segments = first_draw(maker.far_orders, lambda made: out_of_reach(api, found, made.segment))
    if not segments:
        raise verify.Excluded("the listing leaves no room for made-up ids that no order could be mistaken for")
    for answer in api.send_all(api.ask_cancel(segment) for segment in segments):
        verify.status(answer, 404, since="no such order exists")


@requirement("CANCEL-11", mode=Mode.GUARDED)
def test_generated_malformed_ids_are_client_errors(api: Api, maker: Maker, observe: Observations) -> None:
    """Cancels ids made up so as not to fit the schema of orderId, such that no order could be meant: a 4xx to those
    that are no integers. What integers outside int64 and unusual spellings get is observed."""
    found = api.listing()
    sent = first_draw(
        maker.malformed,
        lambda made: out_of_reach(api, found, made.segment),
        enough=lambda segments: any(kind(segment) == "malformed ids" for segment in segments),
    )
    answers = api.send_all(api.ask_cancel(segment, allowed=Allowed.OPEN) for segment in sent)
    by_kind: dict[str, list[Answer]] = {}
    for segment, answer in zip(sent, answers, strict=True):
        by_kind.setdefault(kind(segment), []).append(answer)
    for topic in sorted(by_kind):
        observe(topic, {"made up": statuses(by_kind[topic])}, *by_kind[topic][:1])
    malformed = by_kind.get("malformed ids", [])
    if not malformed:
        raise verify.Excluded("the listing leaves no room for malformed ids that no order could be mistaken for")
    for answer in malformed:
        if not 400 <= (verify.settled(answer).status or 0) < 500:
            raise verify.Failed("a client error for a malformed id", verify.describe(answer), answer)


@requirement("HTTP-1", mode=Mode.GUARDED)
def test_generated_requests_get_listed_statuses(api: Api, maker: Maker) -> None:
    """Lists, and cancels orders that do not exist, with header fields made up that no service has to mind, with and
    without the key: statuses that the operation lists."""
    listings, cancels = maker.listings(), maker.far_orders()
    found = api.listing()
    asked = [api.ask_list(headers=made.headers) for made in listings]
    permitted = [made for made in cancels if out_of_reach(api, found, made.segment)]
    for place, made in enumerate(permitted):
        asked.append(api.ask_cancel(made.segment, NOBODY if place % 3 == 2 else api.key, headers=made.headers))
    verify.meets("HTTP-1", *api.send_all(asked))
