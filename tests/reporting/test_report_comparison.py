"""What changed between runs: regressions first, and only what says something about the service counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reporting_runs import conformant, failing, guarded, incomplete, passing, run

from conformance.reporting import comparison, comparison_views
from conformance.reporting.run import Observed
from conformance.verdict import CheckResult, Status, Waiver

P, F, I, X = Status.PASSED, Status.FAILED, Status.INCONCLUSIVE, Status.EXCLUDED  # noqa: E741
W = Status.WAIVED


def each_way(compared: comparison.Comparison) -> tuple[str, ...]:
    return comparison_views.text(compared), comparison_views.markdown(compared), comparison_views.html(compared)


def ending(id_: str, status: Status) -> comparison.Run:
    found = F if status is W else status
    waivers = {id_: Waiver(id_, "known", "2027-01-01")} if status is W else None
    return run([*passing(id_), CheckResult("c", id_, found, "why")], waivers=waivers)


@pytest.mark.parametrize(
    ("before", "after", "kind", "regressed"),
    [
        (P, P, None, False),
        (P, F, "regressions", True),
        (X, F, "regressions", True),
        (I, F, "regressions", True),
        (W, F, "regressions", True),
        (P, I, "regressions", True),
        (P, W, "regressions", False),
        (F, P, "improvements", False),
        (W, P, "improvements", False),
        (X, P, "decided", False),
        (I, P, "decided", False),
        (P, X, "others", False),
        (F, X, "others", False),
        (F, W, "others", False),
        (F, I, "others", False),
        (X, I, "others", False),
    ],
)
def test_what_counts_as_what(before: Status, after: Status, kind: str | None, regressed: bool) -> None:
    compared = comparison.compare(ending("CANCEL-4", before), ending("CANCEL-4", after))
    for name in ("regressions", "improvements", "decided", "others"):
        found = [change.requirement.id for change in getattr(compared, name)]
        assert found == (["CANCEL-4"] if name == kind else [])
    assert compared.regressed is regressed


def test_what_passes_now_has_no_reason() -> None:
    """A check that passes may say where its exchanges are, which is no reason for anything."""
    now = run([*passing("CANCEL-4"), CheckResult("c", "CANCEL-4", P, "shown by the exchanges of another check")])
    (change,) = comparison.compare(ending("CANCEL-4", I), now).decided
    assert change.reason == ""


def test_a_recommendation_regresses_only_a_strict_run() -> None:
    a, b = ending("AUTH-7", P), ending("AUTH-7", F)
    assert not comparison.compare(a, b).regressed
    assert comparison.compare(a, b).verdict.startswith("no regression that counts; what got worse is recommended only")
    assert comparison.compare(a, replace(b, strict=True)).regressed
    both = run([CheckResult("c", id_, F, "no") for id_ in ("AUTH-7", "CANCEL-4")])
    told = "regressed: 1 requirement got worse (and 1 recommended or waived)"
    assert comparison.compare(run(passing("AUTH-7", "CANCEL-4")), both).verdict == told


def test_required_regressions_come_before_recommended_ones() -> None:
    seen = (Observed("second cancel", "409"),)
    compared = comparison.compare(replace(conformant(), observations=seen), failing())
    assert [c.requirement.id for c in compared.regressions] == [
        "CANCEL-3",
        "ERR-1",
        "LIST-5",  # undecided, perhaps for one of these
        "AUTH-7",
        "CANCEL-7",
    ]
    assert [c.after for c in compared.regressions] == [F, F, I, F, W]
    text = comparison_views.text(compared)
    assert text.index("Regressions") < text.index("Otherwise different") < text.index("Observed differently")


def test_a_run_compared_with_itself_is_the_same() -> None:
    compared = comparison.compare(failing(), failing())
    changes = (compared.regressions, compared.improvements, compared.decided, compared.others, compared.observed)
    assert not any(changes)
    assert compared.verdict == "no regression"


def test_observations_differ_by_topic_and_response_times_never() -> None:
    a = replace(conformant(), observations=(Observed("409 body", "none"), Observed("response times", 1)))
    b = replace(conformant(), observations=(Observed("409 body", "Error"), Observed("response times", 2)))
    compared = comparison.compare(a, b)
    assert compared.observed == (comparison.Difference("409 body", "none", "Error"),)
    assert not compared.regressed


def observed(topic: str, before: object, after: object, seed: int = 1) -> list[str]:
    """What is said to differ on a topic between two runs, whose seeds differ unless it is 0."""
    a = replace(conformant(), observations=(Observed(topic, before),))
    b = replace(conformant(), observations=(Observed(topic, after),))
    compared = comparison.compare(a, replace(b, seed=a.seed + seed))
    return [f"{seen.what}: {seen.before} -> {seen.after}" for seen in compared.observed]


@pytest.mark.parametrize(
    ("topic", "before", "after"),
    [
        ("compression", {"none": 939}, {"none": 947}),
        ("HTTP version", ["HTTP/1.1"], {"HTTP/1.1": 3}),
        ("orders in one listing", 1_380, 1_400),
        ("rate limiting", {"answers with 429 or 503": 2}, {"answers with 429 or 503": 3}),
        ("malformed ids", {"letters": 400, "blank": 404}, {"letters": 400}),
        ("malformed ids", {"blank": 404}, {"letters": 400}),
        ("malformed ids", [{"letters": 400}, {"made up": ["400"]}], {"letters": 400}),
        ("malformed ids", {"made up": ["400"]}, {"made up": ["400", "404"]}),
        ("error codes", {"400": ["A", "B"]}, {"400": ["B", "A"], "404": ["C"]}),
        ("second cancel", ["409", "404"], ["404", "409"]),
        ("unknown query parameters", [{"200": "all"}, {"made up": ["200"]}], {"200": "all"}),
    ],
)
def test_what_differs_by_the_seed_alone_is_no_difference(topic: str, before: object, after: object) -> None:
    assert observed(topic, before, after) == []
    assert observed(topic, after, before) == []


@pytest.mark.parametrize(
    ("topic", "before", "after", "said"),
    [
        ("compression", {"none": 9}, {"none": 9, "gzip": 1}, ["compression: none -> gzip, none"]),
        (
            "rate limiting",
            {"answers with 429 or 503": 0},
            {"answers with 429 or 503": 3},
            ["rate limiting: none -> answers with 429 or 503"],
        ),
        (
            "malformed ids",
            [{"letters": 400, "blank": 404}, {"made up": ["400"]}],
            [{"letters": 400, "blank": 409}, {"made up": ["400"]}],
            ["malformed ids: blank: 404 -> 409"],
        ),
        ("malformed ids", {"made up": ["400"]}, {"made up": ["404"]}, ["malformed ids: made up: 400 -> 404"]),
        ("error codes", {"400": ["A", "B"]}, {"400": ["A", "C"]}, ["error codes: 400: A, B -> A, C"]),
        ("second cancel", "409", ["404", "409"], ["second cancel: 409 -> 404, 409"]),
        ("second cancel", "404", {"status": 404, "body": "none"}, ["second cancel: 404 -> status: 404, body: none"]),
        ("further Order fields", [], ["note"], ["further Order fields: none -> note"]),
        (
            "unknown query parameters",
            {"200": "all"},
            {"200": ["a=1"], "400": ["b=2"]},
            ["unknown query parameters: 200: all -> a=1", "unknown query parameters: 400: none -> b=2"],
        ),
    ],
)
def test_only_entries_that_differ_are_named(topic: str, before: object, after: object, said: list[str]) -> None:
    assert observed(topic, before, after) == said


def test_the_same_draw_is_compared_as_it_is() -> None:
    said = ["malformed ids: made up: 400 -> 400, 404"]
    assert observed("malformed ids", {"made up": ["400"]}, {"made up": ["400", "404"]}, seed=0) == said


def test_every_rendering_names_the_entry() -> None:
    a = replace(conformant(), observations=(Observed("malformed ids", {"letters": 400, "blank": 404}),))
    b = replace(conformant(), observations=(Observed("malformed ids", {"letters": 400, "blank": 409}),))
    compared = comparison.compare(a, b)
    assert "\n  malformed ids: blank: 404 -> 409\n" in comparison_views.text(compared)
    assert "malformed ids: blank: `404` → `409`" in comparison_views.markdown(compared)
    assert '<th scope="row">malformed ids: blank</th><td>404</td><td>409</td>' in comparison_views.html(compared)
    for text in each_way(compared):
        assert "letters" not in text


def test_a_requirement_that_one_run_does_not_know() -> None:
    a, b = conformant(), conformant()
    compared = comparison.compare(replace(a, requirements=a.requirements[1:], catalogue="sha256:" + "0" * 64), b)
    assert [change.text for change in compared.others] == ["unknown -> passed"]
    assert compared.notes == ("the runs used different catalogues of requirements",)


def test_notes_say_what_else_was_different() -> None:
    notes = comparison.compare(conformant(), replace(guarded(), complete=False)).notes
    assert any("different mode" in note for note in notes)
    assert any("cut short" in note for note in notes)


def test_all_that_a_verdict_may_differ_for_alone_is_named() -> None:
    a = conformant()
    changed = {"mode": "observe", "budget": "thorough", "suite_version": "0.2.0", "catalogue": "sha256:1"}
    later = replace(a, **changed, strict=True, started="2026-11-22T06:00:00Z")
    compared = comparison.compare(a, later)
    assert compared.notes == (
        "the runs used different catalogues of requirements",
        "the runs used different versions of the suite: 0.1.0 and 0.2.0",
        "the runs had a different mode: full and observe",
        "the runs had a different budget: standard and thorough",
        "only staging 2026-11-22T06:00:00Z was strict: recommended requirements gate there",
    )
    for text in each_way(compared):
        assert "was strict" in text
    assert "only staging 2026-11-21T06:00:00Z was" in comparison.compare(replace(a, strict=True), conformant()).notes[0]


def test_every_rendering_names_what_changed() -> None:
    compared = comparison.compare(conformant(), failing())
    for text in each_way(compared):
        assert "CANCEL-3" in text
        assert "a shipped order was cancelled" in text
        assert "no shipped order left" not in text


@pytest.mark.parametrize("before", [X, I])
def test_what_passes_once_it_is_looked_at_is_no_improvement(before: Status) -> None:
    compared = comparison.compare(ending("CANCEL-4", before), ending("CANCEL-4", P))
    for text in each_way(compared):
        assert "Newly decided" in text
        assert "CANCEL-4" in text
        assert "Improvements" not in text


def test_a_matrix_has_every_requirement_in_every_run() -> None:
    runs = [conformant(), replace(failing(), target="production"), incomplete()]
    table = comparison.matrix(runs)
    assert len(table.rows) == len(conformant().requirements)
    assert table.names == ("staging 2026-11-21T06:00:00Z", "production", "staging 2026-11-21T06:00:00Z")
    for text in (
        comparison_views.matrix_text(table),
        comparison_views.matrix_markdown(table),
        comparison_views.matrix_html(table),
    ):
        assert all(row.id in text for row, _ in table.rows)
        assert "production" in text
    last = comparison_views.matrix_text(table).splitlines()[-1]
    assert last == "FAIL failed · ? inconclusive · ok passed · - excluded"
