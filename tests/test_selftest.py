"""The selftest and its matrix: what counts as caught, as left alone, as covered."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from built import VALID, recorder
from commands import command
from patience import PATIENCE

from conformance.commands import selftest
from conformance.contract import catalogue
from conformance.judging import doubts
from conformance.reporting import detection, detection_views
from conformance.reporting.detection import Case, Judged, Matrix
from conformance.runner.process import Process
from conformance.transport.evidence import Exchange
from conformance.transport.request import NOBODY, Credential, Request
from conformance.verdict import EVERY_EXCHANGE
from reference_server.faults import FAULTS

FAULT = Case("cancels-anything", "CANCEL-3", "Cancels shipped orders <too>.")
VARIANT = Case("shouts", None, "Writes header fields in capitals.")
LEAVING = Case("writes-no-offset", None, "Writes dates without an offset.", frozenset({"LIST-10"}))


def test_a_fault_is_caught_only_if_its_own_requirement_failed() -> None:
    assert Judged(FAULT, failed=("CANCEL-3",)).good
    assert not Judged(FAULT, failed=("CANCEL-4",)).good
    assert not Judged(FAULT, inconclusive=("CANCEL-3",)).good


def test_a_fault_that_was_missed_is_told_with_what_the_checks_said() -> None:
    missed = Judged(FAULT, failed=("CANCEL-4",), messages={"CANCEL-3": "met by 9 exchanges"})
    said = "MISSED cancels-anything: CANCEL-3 did not fail, CANCEL-4 did. met by 9 exchanges"
    assert detection_views.complaint(missed) == said
    assert said in detection_views.text(Matrix([missed], 1.0, complete=False))
    assert "**(missed)**" in detection_views.markdown(Matrix([missed], 1.0))
    assert '<td class="missed">missed</td>' in detection_views.as_html(Matrix([missed], 1.0))


@pytest.mark.parametrize(
    ("name", "faults", "variants"),
    [("cancels-anything", 1, 0), ("CANCEL-3", 1, 0), ("cancel", 1, 0), ("variants", 0, 2), ("CANCEL-4", 0, 0)],
)
def test_cases_are_chosen_by_name_requirement_and_family(name: str, faults: int, variants: int) -> None:
    assert FAULT.matches((name,)) is bool(faults)
    assert sum(case.matches((name,)) for case in (VARIANT, LEAVING)) == variants


def test_variants_are_judged_among_the_faults_and_not_last() -> None:
    known = selftest.cases()
    ordered = selftest.spread(known)
    assert sorted(ordered, key=known.index) == known
    places = [place for place, case in enumerate(ordered) if case.requirement is None]
    assert places[-1] < len(ordered) - 1
    assert max(later - earlier for earlier, later in pairwise(places)) < 10


def test_what_failed_beside_it_counts_if_it_is_required() -> None:
    judged = Judged(FAULT, failed=("AUTH-9", "CANCEL-3", "CANCEL-4"))
    assert judged.further == ("CANCEL-4",)
    assert Matrix([judged, Judged(FAULT, failed=("CANCEL-3",))], 1.0, complete=False).further_per_fault == 0.5


@pytest.mark.parametrize(
    ("judged", "good"),
    [
        (Judged(VARIANT), True),
        (Judged(VARIANT, failed=("LIST-10",)), False),
        (Judged(LEAVING, failed=("LIST-10",)), True),
        (Judged(LEAVING), False),
        (Judged(LEAVING, failed=("LIST-10", "LIST-1"), exit_status=1), False),
        (Judged(VARIANT, failed=("LIST-1",), exit_status=1), False),
        (Judged(VARIANT, inconclusive=("LIST-1",), exit_status=3), False),
    ],
)
def test_a_variant_is_left_alone_if_nothing_failed_but_what_it_leaves(judged: Judged, good: bool) -> None:
    assert judged.good is good
    assert ("LIST-10 did not fail" in detection_views.complaint(judged)) is (judged == Judged(LEAVING))
    assert Matrix([judged], 1.0, complete=False).good is good


def test_a_requirement_without_faults_is_not_covered() -> None:
    assert "CANCEL-3" not in Matrix([Judged(FAULT, failed=("CANCEL-3",))] * 2, 1.0).uncovered
    assert "CANCEL-4" in Matrix([Judged(FAULT, failed=("CANCEL-3",))] * 2, 1.0).uncovered
    assert not Matrix([Judged(FAULT, failed=("CANCEL-3",))] * 2, 1.0).good


def test_a_check_that_sees_less_than_before_is_told_of() -> None:
    """Although the fault is caught: by another check of the requirement."""
    caught = Judged(FAULT, failed=("CANCEL-3",), checks=("one",))
    proofs = {"one": ["cancels-anything"], "two": ["cancels-anything"], "three": ["not-judged"]}
    proof = Matrix([caught], 1.0, complete=False, proofs=proofs, checks=("one", "two"))
    assert proof.lost == ["two no longer fails on cancels-anything"]
    assert not proof.good
    assert Matrix([caught], 1.0, False, {"two": ["cancels-anything"]}, ()).lost == [
        "two is gone, which failed on cancels-anything"
    ]
    assert "LOST two no longer" in detection_views.text(proof)


def test_a_check_that_no_fault_fails_is_told_of() -> None:
    proof = Matrix([], 1.0, proofs={"one": ["cancels-anything"], "two": []}, checks=("one", "two", "three"))
    assert proof.unproven == ["two", "three"]
    assert Matrix([], 1.0, complete=False, checks=("one",)).unproven == []
    assert "UNPROVEN three" in detection_views.text(proof)


def test_proofs_are_written_by_check() -> None:
    judged = [Judged(Case(name, "CANCEL-3", ""), checks=("one",)) for name in ("b", "a")]
    assert json.loads(detection_views.proofs_of(judged)) == {"one": ["a", "b"]}


def test_a_check_that_passes_where_it_did_not_is_told_of() -> None:
    """Although it still fails on every fault of its own requirement: it no longer looks at a step that it stands on."""
    stops = {"one": ["cancels-anything"], "two": ["cancels-anything"], "three": ["cancels-anything", "not-judged"]}
    caught = Judged(FAULT, failed=("CANCEL-3",), checks=("one",), stopped={"two": "answered 204"})
    proof = Matrix([caught], 1.0, complete=False, stops=stops)
    assert proof.passing == ["three passes on cancels-anything, on which it did not"]
    assert not proof.good
    assert "PASSING three passes on" in detection_views.text(proof)


def test_stops_are_written_by_check_the_first_few_for_each_reason() -> None:
    told = ("order 70123: 404, not 204", "order 70124: 404, not 204", "order 7: 404, not 204", "order 8: 409, not 204")
    judged = [
        Judged(Case(name, "CANCEL-3", ""), stopped={"one": reason}) for name, reason in zip("cabd", told, strict=True)
    ]
    assert json.loads(detection_views.stops_of(judged)) == {"one": ["a", "c", "d"]}


def test_stops_on_record_are_of_checks_and_faults_of_other_requirements() -> None:
    on_record = selftest.stops()
    assert set(on_record) <= {*selftest.every_check(), *(f"{EVERY_EXCHANGE} for {row}" for row in doubts.ROWS)}
    assert len(on_record) > 130
    assert all(faults and set(faults) <= set(FAULTS) for faults in on_record.values())
    assert not any(set(faults) & set(selftest.proofs().get(check, ())) for check, faults in on_record.items())


def test_proofs_on_record_are_of_checks_and_faults_that_exist() -> None:
    on_record = selftest.proofs()
    assert set(on_record) == set(selftest.every_check())
    assert all(faults and set(faults) <= set(FAULTS) for faults in on_record.values())


def test_a_check_that_sends_less_than_before_is_told_of() -> None:
    """Although it still fails on every fault that is to prove it."""
    due = {"one": [3, 7], "two": [2, 5], "gone": [1, 4]}
    proof = Matrix([], 1.0, complete=False, sent={"one": [2, 7], "two": [3, 5], "new": [1, 1]}, due=due)
    assert proof.less == [
        "one sends 2 requests to the correct server; on record: 3",
        "gone sends 0 requests to the correct server; on record: 1",
        "gone sends 0 different values to the correct server; on record: 4",
    ]
    assert not proof.good
    assert "LESS one sends 2 requests" in detection_views.text(proof)


def sent(check: str, path: str, credential: Credential = VALID) -> Exchange:
    url = f"http://127.0.0.1:40123/v1/{path}"
    fields = (*credential.headers, ("Host", "127.0.0.1:40123"))
    exchange = recorder().begin(Request("DELETE", path.partition("?")[0], credential), url, fields, "client")
    exchange.check = check
    return exchange


def test_what_is_sent_is_counted_by_check() -> None:
    exchanges = [sent("one", "71"), sent("one", "70123"), sent("one", "70124", NOBODY), sent("two", "7?a=1&b=2")]
    # One: two paths, as numbers of four digits and more are drawn; no query; Host, Authorization; two credentials; no
    # body. Two: a path; two parameters; both fields; a credential; no body.
    assert detection_views.sent_by(exchanges) == {"one": [3, 8], "two": [1, 7]}
    assert json.loads(detection_views.sent_of({"b": [1, 2], "a": [3, 4]})) == {"a": [3, 4], "b": [1, 2]}


def test_what_is_on_record_as_sent_is_of_checks_that_exist() -> None:
    on_record = selftest.due()
    assert set(on_record) <= set(selftest.every_check())
    assert len(on_record) > 130
    assert all(requests > 0 and things > 1 for requests, things in on_record.values())


def test_every_requirement_has_faults() -> None:
    counted = {row: sum(fault.requirement == row for fault in FAULTS.values()) for row in catalogue.load().requirements}
    assert {row for row, count in counted.items() if count < detection.LEAST_FAULTS} == set(detection.NO_FAULT)
    assert len(FAULTS) >= 120


def test_writers_escape_and_agree() -> None:
    proof = Matrix([Judged(FAULT, failed=("CANCEL-3",)), Judged(VARIANT)], 2.0, complete=False)
    assert "1 of 1 faults caught, 1 of 1 correct variants left alone" in detection_views.text(proof)
    assert [case["good"] for case in json.loads(detection_views.as_json(proof))["cases"]] == [True, True]
    assert "<too>" not in detection_views.as_html(proof)
    assert "| cancels-anything |" in detection_views.markdown(proof)


def test_a_real_fault_and_a_real_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")  # of the project that this is called in
    wanted = {"cancels-refused-orders", "answers-409-without-body"}
    chosen = [case for case in selftest.cases() if case.name in wanted]
    judged: dict[str, Judged] = {}
    sent = selftest.judge_all(chosen, 1, "quick", workers=2, done=lambda found: judged.update({found.case.name: found}))
    assert Matrix([], 1.0, complete=False, sent=sent, due=selftest.due()).less == []
    assert judged["cancels-refused-orders"].failed == ("CANCEL-4",)
    assert judged["answers-409-without-body"].good


def test_a_case_is_forgotten_when_the_next_has_been_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has recorded is megabytes, and a worker judges hundreds."""
    made: list[weakref.ref[Process]] = []

    class Noted(selftest._Judging):
        def __init__(self, *told: Any) -> None:
            super().__init__(*told)
            made.append(weakref.ref(self))

    def work(session: pytest.Session) -> None:
        del session.items[1:]  # one check will do
        for case in selftest.cases()[:2]:
            selftest.judge(session, case, 1, "quick")
        gc.collect()

    monkeypatch.setattr(selftest, "_Judging", Noted)
    selftest.collected(work)
    assert len(made) == 2
    assert made[0]() is None


@pytest.mark.parametrize(
    ("ending", "second"), [(signal.SIGINT, True), (signal.SIGTERM, False)], ids=["two SIGINT", "one SIGTERM"]
)
def test_an_interruption_ends_it_at_once_and_its_workers(ending: signal.Signals, second: bool, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "conformance", "selftest", "PET", "-n", "2", "--report-dir", str(tmp_path)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as made:
        assert made.stderr is not None
        made.stderr.readline()  # the first case is judged: there are workers
        for _ in range(1 + second):
            os.killpg(made.pid, ending)
            time.sleep(0.05)
        said = made.communicate(timeout=60)[1]
    assert made.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        os.killpg(made.pid, 0)


def test_no_worker_is_left_where_the_command_was_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "conformance", "selftest", "PET", "-n", "2", "--report-dir", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as made:
        assert made.stderr is not None
        made.stderr.readline()  # the first case is judged: there are workers
        made.kill()
        made.communicate(timeout=PATIENCE)  # the streams end with the last process that has them


def test_the_command_judges_and_writes(tmp_path: Path) -> None:
    done = command(tmp_path, "selftest", "lists-as-html", "-n", "1", "--report-dir", "out")
    assert done.status == 0, done.said
    assert "1 of 1 faults caught, 0 of 0 correct variants left alone" in done.out
    assert done.err == "1 of 1\n"
    assert {path.name for path in (tmp_path / "out").iterdir()} == detection_views.WRITERS.keys()
    for words, said in (
        (("no-such-fault",), "'no-such-fault' is not a fault, variant, requirement or family; `faults` lists them"),
        (("cancels-refused",), "or family; did you mean cancels-refused-orders?"),
        (("base-2",), "no fault breaks BASE-2: the scheme is the deployment's"),
        (("CANCEL-3", "-n", "0"), "-n 0: a number of workers from 1 to 64"),
    ):
        done = command(tmp_path, "selftest", *words)
        assert done.status == 2
        assert said in done.err
