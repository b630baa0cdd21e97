"""What the reports say alike: what belongs together, and observed values in words."""

from __future__ import annotations

import io
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from reporting_runs import EVERY, conformant, run, undecided
from rich.console import Console

from conformance.reporting import badge, comparison, comparison_views, console, html, junit, outline, summary
from conformance.reporting.run import Run
from conformance.verdict import EVERY_EXCHANGE, CheckResult, Failure, Status, Waiver

PROVIDER = "the state provider exited with 1 at {}: 'no database'"


def groups(*reasons: str) -> list[tuple[str, int]]:
    """The groups of requirements with these reasons: what each is for, and how many are in it."""
    ids = ("AUTH-1", "AUTH-2", "AUTH-3")
    checks = [check for reason, id_ in zip(reasons, ids, strict=False) for check in undecided(reason, id_)]
    results = [result for result in run(checks).requirements if result.requirement.id in ids[: len(reasons)]]
    return [(group.reason, len(group.results)) for group in outline.by_reason(results)]


def test_the_same_reason_is_one_group() -> None:
    assert groups("a", "b", "a") == [("a", 2), ("b", 1)]


def test_what_a_provider_was_asked_makes_no_other_reason() -> None:
    one, other = (PROVIDER.format(f'{{"state": "pending orders", "params": {{"count": {n}}}}}') for n in (1, 2))
    cut_off = PROVIDER.format('{"state": "pending orders", "params": {"ids": [1, 2…')
    assert groups(one) == [(one, 1)]
    assert groups(one, one) == [(one, 2)]
    assert groups(one, other, cut_off) == [(f"{one} (and 2 more like it)", 3)]
    assert len(groups(one, one.replace("no database", "disk full"))) == 2


def test_ids_make_no_other_reason_and_statuses_do() -> None:
    line = "DELETE http://127.0.0.1:18090/v1/store/orders/{} with the key answered {} (see AUTH-1)"
    one, other = line.format(70101, "401 Unauthorized"), line.format(-70102, "401 Unauthorized")
    assert groups(one, one) == [(one, 2)]
    assert groups(one, other) == [(f"{one} (and 1 more like it)", 2)]
    assert len(groups(one, line.format(70101, "403 Forbidden"))) == 2


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("", ""),
        ("LIST-1 LIST-2", "LIST-1, LIST-2"),
        ("LIST-1 LIST-2 LIST-3 LIST-5", "LIST-1 to LIST-3, LIST-5"),
        ("AUTH-9 LIST-10 LIST-11", "AUTH-9, LIST-10, LIST-11"),
        ("CANCEL-9 CANCEL-10 CANCEL-11", "CANCEL-9 to CANCEL-11"),
        ("ERR-3 ERR-2 ERR-1", "ERR-3, ERR-2, ERR-1"),
    ],
)
def test_ids_in_a_row_are_told_by_their_ends(given: str, shown: str) -> None:
    results = {result.requirement.id: result for result in run([]).requirements}
    assert outline.ids(results[id_] for id_ in given.split()) == shown


def printed(made: Run) -> str:
    file = io.StringIO()
    console.summary(made, Console(file=file))
    return file.getvalue()


@pytest.mark.parametrize(
    "render",
    [
        printed,
        summary.render,
        html.render,
        junit.render,
        badge.render,
        lambda made: comparison_views.text(comparison.compare(conformant(), made)),
    ],
    ids=["console", "summary", "html", "junit", "badge", "comparison"],
)
def test_an_interruption_and_a_lost_process_are_told_apart(render: Any) -> None:
    cut_short, lost = render(EVERY["interrupted"]()), render(EVERY["robbed"]())
    assert "the run was cut short" in cut_short
    assert "ended unexpectedly" not in cut_short
    assert "a process of the run ended unexpectedly" in lost
    assert "cut short" not in lost


@pytest.mark.parametrize(("name", "kind"), [("interrupted", "interrupted"), ("robbed", "process lost")])
def test_junit_has_a_type_for_each(name: str, kind: str) -> None:
    (error,) = Xml.fromstring(junit.render(EVERY[name]())).findall(".//testcase[@classname='RUN']/error")
    assert error.get("type") == kind


@pytest.mark.parametrize(("status", "word"), [(Status.INCONCLUSIVE, "could"), (Status.EXCLUDED, "can")])
def test_a_run_that_decided_nothing_says_so(status: Status, word: str) -> None:
    made = run([CheckResult("only", "AUTH-7", status, "why")])  # a recommended requirement, and no other
    said = f"nothing of what was selected {word} be checked here"
    assert outline.headline(made).startswith(f"incomplete ({said}), 0 of ")
    (error,) = Xml.fromstring(junit.render(made)).findall(".//error[@type='nothing checked']")
    assert error.get("message") == said


@pytest.mark.parametrize(
    ("failed", "waived", "strict", "said"),
    [
        ("CANCEL-3", "", False, "At least one requirement of the contract is not kept."),
        ("AUTH-7", "", True, "At least one recommendation of the contract is not kept."),
        ("AUTH-7", "", False, "Nothing that was exercised breaks a requirement of the contract."),
        (
            "CANCEL-3",
            "CANCEL-3",
            False,
            "Nothing that was exercised breaks a requirement of the contract but what is waived.",
        ),
        ("AUTH-7", "AUTH-7", False, "Nothing that was exercised breaks a requirement of the contract."),
    ],
)
def test_the_verdict_in_a_sentence(failed: str, waived: str, strict: bool, said: str) -> None:
    checks = [CheckResult("other", "LIST-1", Status.PASSED), CheckResult("it", failed, Status.FAILED, "why")]
    waivers = {waived: Waiver(waived, "known", "2030-01-01")} if waived else {}
    assert outline.meaning(run(checks, waivers=waivers, strict=strict)) == said


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("gone", "gone"),
        ({"letters": 400, "null": 404}, "letters: 400, null: 404"),
        ({"401": ["NO"], "404": ["A", "B"]}, "401: NO, 404: (A; B)"),
        ([{"200": "all"}, {"made up": [400]}], "200: all; made up: 400"),
        ({"list": {"median": 0.1, "max": 0.2}}, "list: (median: 0.1, max: 0.2)"),
        ({}, "none"),
        ([], "none"),
        (None, "null"),
        (True, "true"),
    ],
)
def test_observed_values_in_words(value: Any, words: str) -> None:
    assert outline.told(value) == words


def test_how_often_something_failed_comes_before_a_check_that_saw_it_once() -> None:
    checks = [CheckResult(id_, "LIST-1", Status.FAILED, id_) for id_ in ("once", EVERY_EXCHANGE)]
    (result,) = outline.with_status(run(checks), Status.FAILED)
    assert [shown.check.id for shown in outline.evidence(run(checks), result)] == [EVERY_EXCHANGE, "once"]


@pytest.mark.parametrize(
    ("failed", "line"),
    [
        ("a", None),
        ("ab", "1 more check of this requirement failed: b"),
        ("abcd", "3 more checks of this requirement failed: b, c, d"),
        ("abcde", "4 more checks of this requirement failed: b, c, d and 1 more"),
    ],
)
def test_further_checks_that_failed_are_named_and_the_others_not(failed: str, line: str | None) -> None:
    checks = [CheckResult(name, "LIST-4", Status.FAILED, "an array of 2") for name in failed]
    hindered = CheckResult("z", "LIST-4", Status.INCONCLUSIVE, "cause elsewhere", failure=Failure("[]", "[1]", None))
    for text in (printed(run([*checks, hindered])), summary.render(run([*checks, hindered]))):
        assert ("more check" in text) == (line is not None)
        assert line is None or line in text
