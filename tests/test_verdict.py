"""From checks to requirements to a verdict to an exit status."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract.catalogue import Level, Requirement
from conformance.verdict import (
    EVERY_EXCHANGE,
    EXERCISED,
    CheckResult,
    Coverage,
    Exit,
    Failure,
    RequirementResult,
    Status,
    Verdict,
    Waiver,
    counts,
    coverage,
    exit_status,
    fold,
    unneeded_waivers,
    verdict,
    worst,
)


def row(name: str, level: Level = Level.REQUIRED, rests_on: tuple[str, ...] = ()) -> Requirement:
    return Requirement(name, level, "1", f"do {name}", "clause", "why", (), rests_on)


ROWS = [row("A-1"), row("A-2"), row("B-1", Level.RECOMMENDED), row("B-2"), row("B-3", Level.RECOMMENDED)]
STATUSES = st.sampled_from(Status)
#: What a check may report; only a fold says "waived".
REPORTED_STATUSES = [status for status in Status if status is not Status.WAIVED]
REPORTED = st.sampled_from(REPORTED_STATUSES)
CHECKS = st.lists(
    st.builds(
        lambda number, requirement, status: CheckResult(f"c{number}", requirement, status, f"{status} {number}"),
        st.integers(0, 9),
        st.sampled_from([one.id for one in ROWS]),
        REPORTED,
    ),
    max_size=12,
)
WAIVERS = st.sets(st.sampled_from([one.id for one in ROWS])).map(
    lambda ids: {id_: Waiver(id_, "known", "2027-01-01") for id_ in ids}
)


def statuses(results: list[RequirementResult]) -> dict[str, Status]:
    return {result.requirement.id: result.status for result in results}


@given(STATUSES, STATUSES, STATUSES)
def test_worst_is_an_order(a: Status, b: Status, c: Status) -> None:
    assert worst([a, b]) is worst([b, a])
    assert worst([a, a]) is a
    assert worst([worst([a, b]), c]) is worst([a, worst([b, c])])
    assert worst([a, b]) in (a, b)
    assert worst([a, Status.EXCLUDED]) is a
    assert worst([a, Status.FAILED]) is Status.FAILED


def test_the_order_of_statuses() -> None:
    assert worst([]) is Status.EXCLUDED
    assert worst([Status.PASSED, Status.INCONCLUSIVE]) is Status.INCONCLUSIVE
    assert worst([Status.INCONCLUSIVE, Status.WAIVED]) is Status.WAIVED


@given(CHECKS, WAIVERS)
def test_no_requirement_disappears(checks: list[CheckResult], waivers: dict[str, Waiver]) -> None:
    results = fold(ROWS, checks, waivers)
    assert [result.requirement for result in results] == ROWS
    for result in results:
        own = [check for check in checks if check.requirement == result.requirement.id]
        expected = worst(check.status for check in own)
        waived = expected is Status.FAILED and result.requirement.id in waivers
        assert result.status is (Status.WAIVED if waived else expected)
        assert (result.waiver is not None) is waived
        assert {check.id for check in result.checks} == ({check.id for check in own} or {"none"})
        if result.status is not Status.PASSED:
            assert result.reason


@given(CHECKS, st.randoms(use_true_random=False))
def test_the_order_of_checks_decides_nothing(checks: list[CheckResult], rng: object) -> None:
    distinct = list({(check.id, check.requirement): check for check in checks}.values())
    shuffled = distinct[:]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = fold(ROWS, distinct), fold(ROWS, shuffled)
    assert [result.status for result in one] == [result.status for result in other]
    assert [set(result.checks) for result in one] == [set(result.checks) for result in other]


@given(CHECKS, st.sampled_from(ROWS), WAIVERS)
def test_an_excluded_check_changes_nothing(
    checks: list[CheckResult], where: Requirement, waivers: dict[str, Waiver]
) -> None:
    more = [*checks, CheckResult("excluded", where.id, Status.EXCLUDED, "the mode forbids it")]
    before, after = fold(ROWS, checks, waivers), fold(ROWS, more, waivers)
    assert statuses(before) == statuses(after)
    for strict in (False, True):
        assert verdict(before, strict=strict) is verdict(after, strict=strict)
    assert coverage(before) == coverage(after)


@given(CHECKS, st.booleans(), st.booleans())
def test_a_failed_required_row_is_non_conformant_whatever_else(
    checks: list[CheckResult], strict: bool, complete: bool
) -> None:
    results = fold(ROWS, [*checks, CheckResult("c", "A-1", Status.FAILED, "no")])
    assert verdict(results, strict=strict, complete=complete) is Verdict.NON_CONFORMANT


def test_nothing_exercised_is_no_success() -> None:
    excluded = [CheckResult("only", row.id, Status.EXCLUDED, "why") for row in ROWS]
    assert verdict(fold(ROWS, excluded)) is Verdict.INCOMPLETE
    assert verdict(fold(ROWS, [])) is Verdict.INCOMPLETE
    undecided = CheckResult("c", "B-1", Status.INCONCLUSIVE, "cannot be reached")  # only a recommended one was selected
    assert verdict(fold(ROWS, [undecided])) is Verdict.INCOMPLETE
    passed = CheckResult("only", ROWS[0].id, Status.PASSED)
    assert verdict(fold(ROWS, [passed, *excluded[1:]])) is Verdict.CONFORMANT


@given(CHECKS, WAIVERS, st.booleans())
def test_the_verdict_by_its_definition(checks: list[CheckResult], waivers: dict[str, Waiver], strict: bool) -> None:
    results = fold(ROWS, checks, waivers)
    gating = [r.status for r in results if strict or r.requirement.level is Level.REQUIRED]
    if Status.FAILED in gating:
        expected = Verdict.NON_CONFORMANT
    elif Status.INCONCLUSIVE in gating or not any(r.status in EXERCISED for r in results):
        expected = Verdict.INCOMPLETE
    else:
        expected = Verdict.CONFORMANT
    assert verdict(results, strict=strict) is expected
    cut_short = verdict(results, strict=strict, complete=False)
    assert cut_short is (Verdict.INCOMPLETE if expected is Verdict.CONFORMANT else expected)


@pytest.mark.parametrize("status", [Status.FAILED, Status.INCONCLUSIVE])
def test_recommended_rows_gate_only_with_strict(status: Status) -> None:
    results = fold(ROWS, [CheckResult("c", "A-1", Status.PASSED), CheckResult("c", "B-1", status, "no")])
    assert verdict(results) is Verdict.CONFORMANT
    assert verdict(results, strict=True) is not Verdict.CONFORMANT


def test_a_waiver_covers_failures_only() -> None:
    waivers = {id_: Waiver(id_, "known", "2027-01-01") for id_ in ("A-1", "A-2", "B-1", "B-2")}
    checks = [
        CheckResult("c", "A-1", Status.FAILED, "no"),
        CheckResult("c", "A-2", Status.INCONCLUSIVE, "no answer"),
        CheckResult("c", "B-1", Status.PASSED),
    ]
    results = fold(ROWS, checks, waivers)
    assert list(statuses(results).values()) == [
        Status.WAIVED,
        Status.INCONCLUSIVE,
        Status.PASSED,
        Status.EXCLUDED,
        Status.EXCLUDED,
    ]
    assert results[0].reason == "no"
    assert unneeded_waivers(results, waivers) == ["B-1"]
    assert verdict(results) is Verdict.INCOMPLETE


def test_a_consequence_is_not_held_against_the_service() -> None:
    """A failure that rests on another failure is inconclusive; that other one still makes the run non-conformant."""
    rows = [row("A-1"), row("A-2", rests_on=("A-1",)), row("A-3", rests_on=("A-2",))]
    both = [CheckResult("c", id_, Status.FAILED, f"wrong {id_}") for id_ in ("A-1", "A-2")]
    results = fold(rows, both)
    assert list(statuses(results).values()) == [Status.FAILED, Status.INCONCLUSIVE, Status.EXCLUDED]
    assert "A-1" in results[1].reason
    assert "wrong A-2" in results[1].reason
    assert [check.status for check in results[1].checks] == [Status.INCONCLUSIVE]
    assert verdict(results) is Verdict.NON_CONFORMANT
    alone = fold(rows, [both[1], CheckResult("c", "A-1", Status.PASSED)])
    assert statuses(alone)["A-2"] is Status.FAILED


def test_the_cause_that_is_named_is_what_failed_in_the_end() -> None:
    rows = [row("A-1"), row("A-2", rests_on=("A-1",)), row("A-3", rests_on=("A-1", "A-2"))]
    results = fold(rows, [CheckResult("c", one.id, Status.FAILED, "wrong") for one in rows])
    assert results[2].reason == "not judged, since it rests on A-1, which failed; fix that first. Seen: wrong"
    certain = [CheckResult("c", one.id, Status.FAILED, "wrong", certain=one.id == "A-2") for one in rows]
    assert fold(rows, certain)[2].reason.startswith("not judged, since it rests on A-1 and A-2, which failed")


def test_a_doubt_names_its_cause_where_one_failed() -> None:
    doubt = CheckResult(EVERY_EXCHANGE, "A-2", Status.INCONCLUSIVE, "gone", owners=("A-1", "B-2"))
    failed = CheckResult("c", "A-1", Status.FAILED, "no")
    assert fold(ROWS, [doubt, failed])[1].reason == "gone (see A-1, which failed)"
    assert fold(ROWS, [doubt])[1].reason == "gone"


def test_what_is_open_points_to_what_failed_however_far_that_is() -> None:
    checks = [
        CheckResult("c", "A-1", Status.FAILED, "no"),
        CheckResult("c", "A-2", Status.INCONCLUSIVE, "no step", owners=("A-1", "B-1")),
        CheckResult("c", "B-2", Status.INCONCLUSIVE, "no way", owners=("A-2", "B-2")),
    ]
    reasons = [row.reason for row in fold(ROWS, checks)]
    assert (reasons[1], reasons[3]) == ("no step (see A-1, which failed)", "no way (see A-1, which failed)")
    reasons = [row.reason for row in fold(ROWS, checks[1:])]
    assert (reasons[1], reasons[3]) == ("no step (see A-1 or B-1)", "no way (see A-2 or B-2)")


def test_a_doubt_that_nothing_explains_is_a_failure() -> None:
    met = Failure("401", "200 OK", 3)
    doubt = CheckResult(EVERY_EXCHANGE, "A-2", Status.INCONCLUSIVE, "let in", failure=met, owners=("A-1",))
    assert statuses(fold(ROWS, [doubt]))["A-2"] is Status.FAILED
    beside = {"A-1": Status.INCONCLUSIVE, "B-2": Status.INCONCLUSIVE, "A-2": Status.FAILED, "B-1": Status.FAILED}
    for id_, status in beside.items():  # B-1 is recommended only
        assert statuses(fold(ROWS, [doubt, CheckResult("c", id_, Status.FAILED, "no")]))["A-2"] is status
    hindered = CheckResult("c", "A-2", Status.INCONCLUSIVE, "needs more", failure=met, owners=("A-1",))
    assert statuses(fold(ROWS, [hindered]))["A-2"] is Status.INCONCLUSIVE


def test_the_reason_is_one_that_tells_more_than_see_above() -> None:
    checks = [
        CheckResult("a", "A-1", Status.INCONCLUSIVE, "not listed", owners=("A-1",)),
        CheckResult("b", "A-1", Status.INCONCLUSIVE, "the provider may be at fault"),
    ]
    assert fold(ROWS, checks)[0].reason == "the provider may be at fault"
    assert fold(ROWS, checks[:1])[0].reason == "not listed (see A-1)"


def test_the_reason_of_what_was_not_exercised_is_what_most_checks_say() -> None:
    said = {"a": "the store is not emptied", "b": "the mode sends no cancel", "c": "the mode sends no cancel"}
    checks = [CheckResult(id_, "A-1", Status.EXCLUDED, reason) for id_, reason in said.items()]
    assert fold(ROWS, checks)[0].reason == "the mode sends no cancel"


def test_who_waives_a_cause_waives_what_stays_open_for_it() -> None:
    """And what stays open for that in turn; nothing that has another cause."""
    waivers = {"A-1": Waiver("A-1", "known", "2027-01-01")}
    checks = [
        CheckResult("c", "A-1", Status.FAILED, "no"),
        CheckResult(EVERY_EXCHANGE, "A-2", Status.INCONCLUSIVE, "gone", owners=("B-1", "A-1")),
        CheckResult("c", "A-2", Status.PASSED),
        CheckResult("d", "A-2", Status.INCONCLUSIVE, "not listed", owners=("A-2",)),
        CheckResult("c", "B-2", Status.INCONCLUSIVE, "not listed", owners=("A-2",)),
        CheckResult("d", "B-2", Status.INCONCLUSIVE, "not listed", owners=("A-2",)),
    ]
    results = fold(ROWS, checks, waivers)
    assert list(statuses(results).values())[:2] == [Status.WAIVED, Status.PASSED]
    assert statuses(results)["B-2"] is Status.EXCLUDED
    assert results[3].reason == "not decided while its cause is waived: not listed (see A-1, which failed)"
    assert verdict(results) is Verdict.CONFORMANT
    silent = CheckResult("e", "B-2", Status.INCONCLUSIVE, "no answer")
    assert statuses(fold(ROWS, [*checks, silent], waivers))["B-2"] is Status.INCONCLUSIVE
    assert statuses(fold(ROWS, checks[1:], waivers))["A-2"] is Status.INCONCLUSIVE, "A-1 did not fail"
    alone = fold(ROWS, [checks[0], checks[3]], waivers)
    assert statuses(alone)["A-2"] is Status.INCONCLUSIVE, "nothing says that A-1 is the cause"


def test_resting_never_makes_a_failed_run_conformant() -> None:
    rows = [row("A-1"), row("A-2", rests_on=("A-1",)), row("B-2", rests_on=("A-2", "A-1"))]
    flat = [replace(one, rests_on=()) for one in rows]
    for *found, waived in product(*[REPORTED_STATUSES] * 3, range(8)):
        checks = [CheckResult("c", one.id, status, "x") for one, status in zip(rows, found, strict=True)]
        chosen = [one.id for place, one in enumerate(rows) if waived >> place & 1]
        waivers = {id_: Waiver(id_, "known", "2027-01-01") for id_ in chosen}
        resting, plain = verdict(fold(rows, checks, waivers)), verdict(fold(flat, checks, waivers))
        assert (resting is Verdict.CONFORMANT) is (plain is Verdict.CONFORMANT), (found, chosen)
        assert waivers or resting is plain, found


def test_a_failure_that_rests_on_a_waived_one_stays_open_until_it_is_waived_as_well() -> None:
    rows = [row("A-1"), row("A-2", rests_on=("A-1",)), row("B-2")]
    checks = [
        CheckResult("c", "A-1", Status.FAILED, "no"),
        CheckResult("c", "A-2", Status.FAILED, "neither"),
        CheckResult("d", "A-2", Status.PASSED),
        CheckResult("c", "B-2", Status.INCONCLUSIVE, "not listed", owners=("A-2",)),
    ]
    waivers = {"A-1": Waiver("A-1", "known", "2027-01-01")}
    results = fold(rows, checks, waivers)
    assert list(statuses(results).values()) == [Status.WAIVED, Status.INCONCLUSIVE, Status.INCONCLUSIVE]
    assert results[1].reason.endswith("A-1, which is waived; waive this as well if that is its cause. Seen: neither")
    waivers["A-2"] = Waiver("A-2", "known", "2027-01-01")
    assert list(statuses(fold(rows, checks, waivers)).values()) == [Status.WAIVED, Status.WAIVED, Status.EXCLUDED]


@given(CHECKS, WAIVERS)
def test_counts_and_coverage_add_up(checks: list[CheckResult], waivers: dict[str, Waiver]) -> None:
    results = fold(ROWS, checks, waivers)
    table = counts(results)
    assert {level: sum(table[level].values()) for level in Level} == {Level.REQUIRED: 3, Level.RECOMMENDED: 2}
    assert set(table[Level.REQUIRED]) == set(Status)
    required = table[Level.REQUIRED]
    assert coverage(results) == Coverage(required[Status.PASSED] + required[Status.FAILED] + required[Status.WAIVED], 3)
    assert coverage(results, Level.RECOMMENDED).total == 2


def test_coverage_in_words() -> None:
    assert str(coverage(fold(ROWS, [CheckResult("c", "A-1", Status.PASSED)]))) == "1 of 3"


@pytest.mark.parametrize(
    ("verdicts", "interrupted", "status"),
    [
        ([Verdict.CONFORMANT], False, 0),
        ([Verdict.CONFORMANT, Verdict.NON_CONFORMANT, Verdict.INCOMPLETE], False, 1),
        ([Verdict.INCOMPLETE, Verdict.CONFORMANT], False, 3),
        ([], False, 2),
        ([Verdict.CONFORMANT], True, 130),
        ([Verdict.NON_CONFORMANT], True, 130),
    ],
)
def test_exit_statuses(verdicts: list[Verdict], interrupted: bool, status: int) -> None:
    assert exit_status(verdicts, interrupted=interrupted) == status


def test_exit_statuses_are_those_that_are_published() -> None:
    assert {exit_.name: int(exit_) for exit_ in Exit} == {
        "CONFORMANT": 0,
        "NON_CONFORMANT": 1,
        "USAGE": 2,
        "INCOMPLETE": 3,
        "INTERRUPTED": 130,
    }
