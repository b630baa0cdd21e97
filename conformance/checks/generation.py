"""What generated checks send, made up from a seed: requests by Schemathesis, sequences of steps by Hypothesis.

    openapi.yaml ──amended──▶ Schemathesis (quick: plain Hypothesis) ──▶ requests
                              state machine of Hypothesis            ──▶ sequences

The shipped document is first widened by what the contract leaves open (query parameters, header fields) and narrowed to
ids where no order is, nor will be soon. The budget quick does without Schemathesis, which takes a second to load: the
same document is then read by a few lines of plain Hypothesis strategies.

The same arguments give the same, in every process; nothing is sent from here. Both libraries are imported when first
needed, which is never where another process makes everything up (`conformance.ahead`).
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote, unquote, urlencode

from conformance.budgets import Budget
from conformance.checks import model
from conformance.checks.model import Kind, Step
from conformance.contract import catalogue
from conformance.contract.jsontext import INT64
from conformance.transport.request import Headers

if TYPE_CHECKING:
    from hypothesis import settings
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


# --- made up once


#: A function of this module, by its name, and what it is given.
Call = tuple[str, tuple[Any, ...]]


class Source(Protocol):
    """Where things are made up ahead (`conformance.ahead`)."""

    def __getitem__(self, call: Call, /) -> Any:
        """What `call` makes up. Raises KeyError where it is not made up there."""


_made: dict[Call, Any] = {}
_ahead: Source = {}


def expect(ahead: Source) -> None:
    """Take from `ahead` what it makes up, instead of making it up here."""
    global _ahead
    _ahead = ahead


def make(call: Call) -> Any:
    """What `call` makes up; the same for every service that is judged by this process, and in every other process."""
    if call not in _made:
        try:
            _made[call] = _ahead[call]
        except KeyError:
            name, arguments = call
            load()
            _made[call] = _MAKERS[name](*arguments)
    return _made[call]


def derived_seed(*words: object) -> int:
    """A random number of 64 bits that derives from these words alone."""
    return random.Random(":".join(map(str, words))).getrandbits(64)


def sequences(budget: Budget, seed: int) -> Sequence[Sequence[Step]]:
    """Sequences of steps, one for each walk of the `budget` at most."""
    return cast(Sequence[Sequence[Step]], make(("sequences", (budget, seed))))


def requests(kind: str, budget: Budget, seed: int) -> Sequence[Made]:
    """Different requests of a `kind` in KINDS, the shortest first."""
    return cast(Sequence[Made], make(("requests", (kind, budget, seed))))


# --- Hypothesis


def load() -> None:
    """Import Hypothesis, without what other libraries plug into it where they happen to be installed: it takes time,
    and what is made up depends on the seed alone."""
    from unittest import mock  # takes its time to load, and most processes never come here

    with mock.patch.dict(os.environ, HYPOTHESIS_NO_PLUGINS="1"):
        import_module("hypothesis.stateful")


def _profile(examples: int, **more: Any) -> settings:
    """Hypothesis generates here and does nothing else."""
    from hypothesis import HealthCheck, Phase, Verbosity, settings

    return settings(
        max_examples=examples,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        **more,
    )


@contextmanager
def secluded() -> Iterator[None]:
    """Hypothesis without its surroundings: it writes no files, and what it makes up depends on the seed alone, not on
    the constants in whatever modules happen to be loaded."""
    from unittest import mock

    from hypothesis import configuration
    from hypothesis.internal.conjecture import providers

    home = "__hypothesis_home_directory"
    with mock.patch.object(configuration, home, None, create=True):
        configuration.set_hypothesis_home_dir(f"{os.devnull}/hypothesis")  # where nothing can be written
        if not hasattr(providers, "_get_local_constants"):
            yield
            return
        none = type(providers.GLOBAL_CONSTANTS)()
        with mock.patch.object(providers, "_get_local_constants", return_value=none):
            providers.CONSTANTS_CACHE.cache.clear()
            yield
            providers.CONSTANTS_CACHE.cache.clear()


# --- sequences of steps


def _sequences(budget: Budget, seed: int) -> Sequence[Sequence[Step]]:
    """What to do next follows from no answer."""
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    made: list[list[Step]] = []
    with secluded():
        # A partial: of a class Hypothesis would read the source first, and parse this whole module for it.
        machine: Any = _machine(made)
        seeded: Any = hypothesis.seed(seed)
        profile = _profile(budget.walks, stateful_step_count=budget.steps, report_multiple_bugs=False)
        run_state_machine_as_test(seeded(partial(machine)), settings=profile)
    return made[: budget.walks]


def _machine(made: list[list[Step]]) -> type[Any]:
    """The state machine that adds a sequence to `made` at each of its runs."""
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

    anyone = st.sampled_from(model.NAMES)

    class Machine(RuleBasedStateMachine):
        """Notes down steps."""

        def __init__(self) -> None:
            super().__init__()
            self.steps: list[Step] = []
            made.append(self.steps)

        def take(self, kind: Kind, *names: str) -> None:
            self.steps.append(Step(kind, names))

        @initialize(looked=st.booleans())
        def look(self, looked: bool) -> None:
            if looked:
                self.take(Kind.LIST)

        @rule(name=st.sampled_from(model.PENDING_NAMES))
        def cancel_pending(self, name: str) -> None:
            self.take(Kind.CANCEL, name)

        @rule(name=anyone)
        def cancel(self, name: str) -> None:
            self.take(Kind.CANCEL, name)

        @rule(name=anyone)
        def cancel_without_the_key(self, name: str) -> None:
            self.take(Kind.KEYLESS, name)

        @rule(one=anyone, other=anyone)
        def cancel_together(self, one: str, other: str) -> None:
            self.take(Kind.AT_ONCE, one, other)

        @rule()
        def list_orders(self) -> None:
            self.take(Kind.LIST)

    return Machine


# --- requests


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
class Making:
    """How requests of one kind are made up: for which operation, with which parameters, whether such as do not fit
    their schema, and which of them are used."""

    operation: tuple[str, str]
    parameters: Callable[[], list[Schema]]
    wrong: bool = False
    used: Callable[[Made], bool] = lambda made: True


#: Cancels of orders that do not exist and listings, with header fields of all sorts: well-formed. Listings with query
#: parameters, which the contract does not know. Cancels of what is no integer.
KINDS = {
    "far orders": Making(CANCEL, _far_orders),
    "listings": Making(LIST, lambda: _optional("header", _HEADERS)),
    "queries": Making(LIST, lambda: _optional("query", _QUERY), used=lambda made: made.query != ""),
    "malformed ids": Making(
        CANCEL, lambda: [_order_id()], wrong=True, used=lambda made: topic_of(made.segment) != "an id"
    ),
}


def _requests(kind: str, budget: Budget, seed: int) -> Sequence[Made]:
    making, count = KINDS[kind], budget.requests
    with secluded():
        strategy = (_schemathesis_requests if budget.schemathesis else _plain_requests)(making)
        found = _drawn(strategy, 3 * count, seed)
    return [made for made in sorted([made for made in found if made.size <= LONGEST][:count]) if making.used(made)]


def _drawn(strategy: SearchStrategy[Made], examples: int, seed: int) -> list[Made]:
    """Different examples of a strategy."""
    import hypothesis

    found: dict[Made, None] = {}

    @hypothesis.seed(seed)
    @_profile(examples)
    @hypothesis.given(strategy)
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


def _schemathesis_requests(making: Making) -> SearchStrategy[Made]:
    """The requests that Schemathesis makes up for one operation. It is told everything, so that it reads no
    configuration of its own, and it sends nothing."""
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

    path, method = making.operation
    described = {**_document()["paths"][path][method], "parameters": making.parameters()}
    whole = {**_document(), "paths": {path: {method: described}}}
    generation = GenerationConfig(
        codec="ascii", allow_x00=False, with_security_parameters=False, allow_extra_parameters=False
    )
    configuration = SchemathesisConfig(seed=0, projects=ProjectsConfig(default=ProjectConfig(generation=generation)))
    schema = schemathesis.openapi.from_dict(copy.deepcopy(whole), config=configuration)
    mode = GenerationMode.NEGATIVE if making.wrong else GenerationMode.POSITIVE
    cases = schema[path][method.upper()].as_strategy(generation_mode=mode)
    return cases.map(lambda case: Made.of(case.path_parameters or {}, case.query or {}, dict(case.headers or {})))


def _plain_requests(making: Making) -> SearchStrategy[Made]:
    """The same with Hypothesis alone, for the schemas that occur here."""
    from hypothesis import strategies as st

    parameters = making.parameters()

    def text_of(characters: Sequence[str]) -> SearchStrategy[str]:
        # Not `st.text`, which first sorts all of Unicode into categories: a quarter of a second.
        return st.lists(st.sampled_from(characters), min_size=1, max_size=20).map("".join)

    def values(schema: Schema) -> SearchStrategy[Any]:
        if making.wrong:
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

    return st.builds(Made.of, group("path"), group("query"), group("header"))


_MAKERS: dict[str, Callable[..., Any]] = {"sequences": _sequences, "requests": _requests}
