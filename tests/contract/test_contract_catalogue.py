"""The catalogue: loaded strictly, ids frozen, the specification accounted for, one with openapi.yaml."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_spec_validator import validate

from conformance.contract import catalogue
from conformance.contract.catalogue import CatalogueError, Level
from conformance.transport.request import STATUSES, Operation

#: The headings of the specification.
SECTIONS = ("1", "2", "3", "4", "4.1", "4.2", "4.3", "5", "6", "7", "8", "9")
SPECIFICATION = Path(__file__).parents[3] / "shared" / "store-orders-spec.md"
SNAPSHOT = Path(__file__).parent / "requirement_ids.txt"

ROW = {
    "id": '"AUTH-1"',
    "level": '"required"',
    "section": '"5"',
    "title": '"do so"',
    "clause": '"It does so."',
    "why": '"Because."',
    "needs": "[]",
}


def table(kind: str = "requirement", **changed: str | None) -> str:
    """A [[requirement]] as TOML, with keys changed, or left out where None."""
    row = {name: value for name, value in {**ROW, **changed}.items() if value is not None}
    return "\n".join([f"[[{kind}]]", *(f"{name} = {value}" for name, value in row.items()), ""])


def test_a_row_is_read() -> None:
    row = catalogue.parse(table(needs='["absent ids", "chosen ids"]').encode()).requirements["AUTH-1"]
    assert row == catalogue.Requirement(
        "AUTH-1", Level.REQUIRED, "5", "do so", "It does so.", "Because.", ("absent ids", "chosen ids")
    )
    assert row.family == "AUTH"
    assert row.sentence == "the service must do so"
    advice = catalogue.parse(table(level='"recommended"').encode()).requirements["AUTH-1"]
    assert advice.sentence == "the service should do so"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (table(severity='"high"'), "AUTH-1: unknown key 'severity'; the keys are"),
        (table(why=None), "AUTH-1: lacks the key 'why'"),
        (table(needs=None), "AUTH-1: lacks the key 'needs'"),
        (table(level='"optional"'), "AUTH-1: unknown level 'optional'"),
        (table(level='"Required"'), "AUTH-1: unknown level 'Required'"),
        (table(needs='["a miracle"]'), "AUTH-1: a need is one of absent ids, pending orders,"),
        (table(id='"auth-1"'), "auth-1: an id is FAMILY-NUMBER"),
        (table(id='"AUTH-01"'), "AUTH-01: an id is FAMILY-NUMBER"),
        (table(id='"AUTH1"'), "AUTH1: an id is FAMILY-NUMBER"),
        (table(id='"AUTH-1\\n"'), "an id is FAMILY-NUMBER"),
        (table() + table(), "AUTH-1: appears twice"),
        (table(rests_on='["AUTH-2"]'), "AUTH-1: rests on AUTH-2, which is no row"),
        (table(rests_on='["AUTH-1"]'), "AUTH-1: rests on itself"),
        (
            table(rests_on='["AUTH-2"]') + table(id='"AUTH-2"', rests_on='["AUTH-1"]'),
            "AUTH-1: rests on itself in the end",
        ),
        (table("requirements"), "unknown table 'requirements'"),
        ('[[observation]]\ntopic = "a"\nsection = "1"\n', "a: lacks the key 'title'"),
        ('[[observation]]\ntopic = "a"\nsection = "1"\ntitle = "t"\n' * 2, "a: appears twice"),
        ('[[undecidable]]\nsection = "1"\nstatement = "s"\n', "s: lacks the key 'reason'"),
    ],
)
def test_loading_is_strict(text: str, said: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        catalogue.parse(text.encode())
    assert said in str(caught.value)


def test_the_digest_follows_the_bytes() -> None:
    one, other = (catalogue.parse(table(why=why).encode()).digest for why in ('"a"', '"b"'))
    assert one != other
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", one)


def test_ids_and_levels_are_frozen() -> None:
    """Vendors, waivers and reports quote ids. A new row is a new line; none is renamed, dropped or reused."""
    rows = catalogue.load().requirements.values()
    found = "".join(f"{row.id} {row.level}\n" for row in rows)
    if os.environ.get("UPDATE_GOLDEN"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert found == SNAPSHOT.read_text(encoding="utf-8")


def test_every_section_of_the_specification_has_a_row() -> None:
    rows = catalogue.load()
    cited = [row.section for row in rows.requirements.values()]
    cited += [row.section for row in rows.observations.values()]
    cited += [row.section for row in rows.undecidable]
    numbers = {number for section in cited for number in section.split(", ")}
    assert numbers == set(SECTIONS)


@pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification is not part of this repository")
def test_the_sections_are_those_of_the_specification() -> None:
    headings = re.findall(r"^##+ ([0-9.]*[0-9])\.? ", SPECIFICATION.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(headings) == SECTIONS


def test_what_is_expected_reads_as_such() -> None:
    rows = catalogue.load().requirements
    assert rows["CANCEL-3"].expectation == f"the service to {rows['CANCEL-3'].title}"
    assert rows["ERR-4"].expectation.startswith("the service not to reveal the key")
    assert rows["ERR-1"].expected_of_each_answer.startswith(
        "a JSON object with string code, string message and integer status"
    )
    assert rows["ERR-3"].expected_of_each_answer == rows["ERR-3"].expectation
    assert [row.id for row in rows.values() if row.expectation.startswith("the service to not")] == []


def test_rows_are_written_for_readers() -> None:
    rows = catalogue.load()
    texts: list[tuple[str, str]] = [
        (row.id, text) for row in rows.requirements.values() for text in (row.title, row.clause, row.why, row.section)
    ]
    texts += [(row.topic, text) for row in rows.observations.values() for text in (row.title, row.section)]
    texts += [(row.statement, text) for row in rows.undecidable for text in (row.statement, row.reason, row.section)]
    assert [where for where, text in texts if not text.strip() or text != text.strip()] == []
    titles = [row.title for row in rows.requirements.values()]
    assert len(set(titles)) == len(titles)
    # A title completes "the service must …".
    assert [title for title in titles if title[0].isupper() or title.endswith(".")] == []


def test_no_required_row_rests_on_a_recommended_one() -> None:
    """Else a failed required row could end inconclusive with nothing else that gates."""
    rows = catalogue.load().requirements
    resting = [(row.id, cause) for row in rows.values() if row.level is Level.REQUIRED for cause in row.rests_on]
    assert [pair for pair in resting if rows[pair[1]].level is not Level.REQUIRED] == []


def test_families_and_selection() -> None:
    rows = catalogue.load()
    assert rows.families == ("AUTH", "LIST", "CANCEL", "ERR", "HTTP", "BASE", "PET")
    assert rows.select(("pet", "Auth-3")) == {"PET-1", "PET-2", "AUTH-3"}
    for word in ("AUTH-99", "AUT", "", "AUTH-"):
        with pytest.raises(KeyError, match=re.escape(repr(word))):
            rows.select(("LIST", word))


# --- openapi.yaml


def document() -> dict[str, Any]:
    return dict(yaml.safe_load(catalogue.resource("openapi.yaml")))


def test_the_openapi_document_is_one() -> None:
    validate(document())
    assert document()["openapi"] == "3.0.3"
    assert document()["info"]["version"] == "1.0.0"


def test_the_openapi_document_has_the_operations_and_statuses_that_are_judged() -> None:
    operations = {
        operation["operationId"]: (
            method.upper(),
            path,
            frozenset(int(status) for status in operation["responses"]),
        )
        for path, item in document()["paths"].items()
        for method, operation in item.items()
    }
    assert operations == {
        "listOrders": ("GET", "/store/orders", STATUSES[Operation.LIST]),
        "cancelOrder": ("DELETE", "/store/orders/{orderId}", STATUSES[Operation.CANCEL]),
    }
    assert document()["security"] == [{"bearerAuth": []}]


def test_the_openapi_document_demands_what_the_validators_demand() -> None:
    from conformance.contract.validators import ERROR_FIELDS, ERROR_RULES, ORDER_FIELDS, ORDER_RULES

    schemas = document()["components"]["schemas"]
    assert tuple(schemas["Order"]["properties"]) == ORDER_FIELDS == tuple(ORDER_RULES)
    assert tuple(schemas["Error"]["properties"]) == ERROR_FIELDS == tuple(ERROR_RULES)
    assert "required" not in schemas["Order"]
    assert schemas["Error"]["required"] == list(ERROR_FIELDS)


def test_only_the_409_body_is_open() -> None:
    """Every 401 and 404 is an Error, a 204 has no content, and of a 409 nothing is said."""
    described: dict[tuple[str, str], bool] = {}
    for item in document()["paths"].values():
        for operation in item.values():
            for status, response in operation["responses"].items():
                reference = response.get("$ref", "").rpartition("/")[2]
                found = document()["components"]["responses"][reference] if reference else response
                described[operation["operationId"], status] = "content" in found
    assert described == {
        ("listOrders", "200"): True,
        ("listOrders", "401"): True,
        ("cancelOrder", "204"): False,
        ("cancelOrder", "401"): True,
        ("cancelOrder", "404"): True,
        ("cancelOrder", "409"): False,
    }
