"""`summary.md` says verdict and coverage first, and stays short whatever happened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from reporting_runs import EVERY, run, small

from conformance.contract.catalogue import load
from conformance.reporting import outline, summary
from conformance.verdict import CheckResult, Failure, Status


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("summary.md", summary.render(small()))


@pytest.mark.parametrize("name", EVERY)
def test_verdict_and_coverage_come_first(name: str) -> None:
    made = EVERY[name]()
    lines = summary.render(made).splitlines()
    assert str(made.verdict) in lines[0]
    assert outline.headline(made).replace("(", "\\(").replace(")", "\\)") in lines[2]


@pytest.mark.parametrize("text", ["`x| ", "\x1b\u202e"])
def test_fits_into_a_comment_when_everything_fails(text: str) -> None:
    long = text * 20_000
    checks = [
        CheckResult(f"c{i}", id_, Status.FAILED, long, 1, (1,), Failure(long, long, 1, long))
        for id_ in load().requirements
        for i in range(3)
    ]
    made = run(checks, warnings=(long,) * 50)
    text = summary.render(made)
    assert len(text) < 65_536
    failed, undecided = (outline.with_status(made, status) for status in (Status.FAILED, Status.INCONCLUSIVE))
    assert len(failed) + len(undecided) == len(load().requirements)  # what rests on others is not judged
    assert all(result.requirement.id in text for result in failed)
    groups = outline.by_reason(undecided)
    assert all(summary.prose(outline.ids(group.results)) in text for group in groups)
    assert sum(len(group.results) for group in groups) == len(undecided)


def test_an_interrupted_run_says_so() -> None:
    assert "cut short" in summary.render(EVERY["interrupted"]())


def test_an_interrupted_run_is_short() -> None:
    assert len(summary.render(EVERY["interrupted"]())) < 2000


def test_commands_of_several_lines_can_be_copied() -> None:
    failed = CheckResult("c", "CANCEL-4", Status.FAILED, "no", 1, (1,), Failure("a", "b", 1, "curl one\ncurl two"))
    assert "\n```sh\ncurl one\ncurl two\n```\n" in summary.render(run([failed]))


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("`a`", "`` `a` ``"), ("a``b`c", "```a``b`c```"), (" ", "*empty*"), ("a\nb", "`a\\nb`")],
)
def test_code_spans_cannot_be_ended(text: str, span: str) -> None:
    assert summary.code(text) == span
