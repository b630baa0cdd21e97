"""`badge.svg` says verdict and coverage, to eyes and to screen readers."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest
from reporting_runs import EVERY, interrupted

from conformance.reporting import badge, outline
from conformance.verdict import Status, Verdict, coverage

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", EVERY)
def test_has_verdict_coverage_and_a_title(name: str) -> None:
    made = EVERY[name]()
    root = Xml.fromstring(badge.render(made))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == f"Store Orders contract, staging: {outline.headline(made)}"
    shown = [text.text or "" for text in root.iter(f"{SVG}text")]
    failed = sum(row.status is Status.FAILED and outline.gates(made, row) for row in made.requirements)
    told = f"{made.verdict}, {f'{failed} failed' if failed else f'{coverage(made.requirements).exercised}/'}"
    assert bool(failed) is (made.verdict is Verdict.NON_CONFORMANT)
    assert shown[1].startswith(told)
    assert root.get("aria-label") == root.findtext(f"{SVG}title")


def test_a_run_that_was_cut_short_says_so() -> None:
    assert "cut short" in badge.render(interrupted())
