"""`junit.xml` is read by the readers there are, and is red exactly when the verdict is not `conformant`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from junitparser import JUnitXml
from reporting_runs import EVERY, failing, run, small

from conformance.contract.catalogue import load
from conformance.reporting import junit
from conformance.verdict import CheckResult, Status, Verdict


@pytest.mark.parametrize("name", EVERY)
def test_follows_the_schema(name: str) -> None:
    etree = pytest.importorskip("lxml.etree")
    schema = etree.XMLSchema(etree.parse(str(Path(__file__).parent / "junit.xsd")))
    schema.assertValid(etree.fromstring(junit.render(EVERY[name]()).encode()))


@pytest.mark.parametrize("name", EVERY)
def test_is_red_exactly_when_not_conformant(name: str) -> None:
    made = EVERY[name]()
    report = JUnitXml.fromstring(junit.render(made).encode())
    assert bool(report.failures + report.errors) == (made.verdict is not Verdict.CONFORMANT)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("status", [Status.FAILED, Status.INCONCLUSIVE, Status.PASSED, Status.EXCLUDED])
def test_one_requirement_decides_colour_and_verdict_alike(status: Status, strict: bool) -> None:
    for id_ in load().requirements:
        made = run([CheckResult("only", id_, status, "why")], strict=strict)
        root = Xml.fromstring(junit.render(made))
        red = root.findall(".//failure") + root.findall(".//error")
        assert bool(red) == (made.verdict is not Verdict.CONFORMANT), id_


def test_one_case_for_each_check_with_its_requirement() -> None:
    made = failing()
    root = Xml.fromstring(junit.render(made))
    cases = root.findall(".//testcase")
    assert len(cases) == sum(len(result.checks) for result in made.requirements)
    case = next(case for case in cases if case.get("name", "").startswith("CANCEL-3 "))
    assert case.get("classname") == "CANCEL"
    values = {item.get("name"): item.get("value") for item in case.iter("property")}
    assert values["requirement"] == "CANCEL-3"
    assert values["level"] == "required"
    assert values["section"] == load().requirements["CANCEL-3"].section


def test_the_failure_text_has_all_that_a_reader_needs() -> None:
    root = Xml.fromstring(junit.render(failing()))
    text = root.findtext(".//testcase[@name][@classname='CANCEL']/failure") or ""
    for word in ("Clause: 409", "Expected: 409", "Received: 204", "curl: curl -sS", "Exchange: DELETE"):
        assert word in text


def test_waived_recommended_and_excluded_are_skipped_with_the_reason() -> None:
    root = Xml.fromstring(junit.render(failing()))
    said = {case.get("name", "").split()[0]: case.find("skipped") for case in root.iter("testcase")}
    assert "single-writer" in said["CANCEL-7"].get("message", "")  # type: ignore[union-attr]
    assert "recommended, failed" in said["AUTH-7"].get("message", "")  # type: ignore[union-attr]
    assert "501" in said["LIST-7"].get("message", "")  # type: ignore[union-attr]


def test_strict_turns_a_recommendation_red() -> None:
    made = failing()
    assert len(Xml.fromstring(junit.render(replace(made, strict=True))).findall(".//failure")) == 3
    assert len(Xml.fromstring(junit.render(made)).findall(".//failure")) == 2


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("junit.xml", junit.render(small()))
