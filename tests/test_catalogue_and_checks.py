"""Catalogue and checks belong together: each row is checked, each check has its row, and says what it needs once."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from built import LIST, VALID, answered, target

from conformance import check as checks_of
from conformance import checks as checks_package
from conformance.api import Api
from conformance.check import Check, Needs, all_checks, exclusion
from conformance.checks.clients import accepts
from conformance.configuration import settings
from conformance.contract import catalogue
from conformance.contract.catalogue import Level
from conformance.judging import judges
from conformance.runner import collect
from conformance.runner.collect import Collection
from conformance.runner.reported import CheckReport
from conformance.target import Mode, States
from conformance.transport.endpoint import Endpoint
from conformance.transport.evidence import PREFLIGHT, Trouble
from conformance.verdict import Failure, Status

CHECKS = all_checks()
ROWS = catalogue.load().requirements
SNAPSHOT = Path(__file__).parent / "check_ids.txt"


def test_requirements_named_in_the_code_exist() -> None:
    """Those that own a step, say: a misspelt one would point nowhere."""
    named = {
        node.value
        for path in Path(cast(str, checks_of.__file__)).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[A-Z]+-\d+", node.value)
    }
    assert len(named) > len(ROWS) / 2
    assert named - {"ISO-8859-1"} <= ROWS.keys()


def test_every_requirement_has_a_check() -> None:
    assert ROWS.keys() - {check.requirement for check in CHECKS} == set()


def test_every_check_has_a_requirement() -> None:
    assert {check.requirement for check in CHECKS} <= ROWS.keys()
    with pytest.raises(KeyError):
        checks_of.requirement("AUTH-99")


def test_every_test_of_the_suite_is_a_check() -> None:
    """A test function without the decorator would run, and count for nothing."""
    package = Path(inspect.getfile(checks_package)).parent
    written = sum(
        line.startswith("def test_")
        for path in package.rglob("test_*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    assert written == len(CHECKS)


def test_check_ids_are_unique_and_frozen() -> None:
    """Check ids are in results.json, which runs are compared by: a renamed check looks like one lost and one new."""
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    found = "".join(sorted(f"{check.id} {check.requirement}\n" for check in CHECKS))
    if os.environ.get("UPDATE_GOLDEN"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert found == SNAPSHOT.read_text(encoding="utf-8")


def test_a_check_is_known_by_its_last_name() -> None:
    """All that is known of one whose worker was lost is where it stands in which file."""
    names = [check.id.partition(".")[2] for check in CHECKS]
    assert len(set(names)) == len(names)


def test_checks_are_in_the_order_of_the_catalogue() -> None:
    order = list(ROWS)
    assert [check.requirement for check in CHECKS] == sorted((check.requirement for check in CHECKS), key=order.index)


def in_words(needs: Needs) -> set[str]:
    """The needs of a check in the words of the catalogue."""
    told = {
        "absent ids": needs.mode is Mode.GUARDED,
        "pending orders": needs.pending,
        "shipped orders": needs.shipped,
        "chosen ids": needs.chosen_ids,
        "many orders": needs.many_orders,
        "an empty store": needs.empty_store,
    }
    assert set(told) == set(catalogue.NEEDS)
    return {word for word, needed in told.items() if needed}


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.id)
def test_needs_of_the_checks_are_those_of_the_row(row: catalogue.Requirement) -> None:
    own = [check for check in CHECKS if check.requirement == row.id]
    assert set[str]().union(*(in_words(check.needs) for check in own)) == set(row.needs)
    assert len(set(row.needs)) == len(row.needs)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_what_it_demands(check: Check) -> None:
    assert check.description.endswith(".")
    assert len(check.description) > 20
    assert "TODO" not in check.description


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_that_takes_orders_says_so(check: Check) -> None:
    needs = check.needs
    if needs.mode is Mode.FULL:
        assert needs.orders or needs.empty_store
    assert min(needs.pending, needs.shipped) >= 0


@pytest.mark.parametrize("row", ROWS)
def test_clients_of_both_kinds_bear_on_each_requirement(row: str) -> None:
    kinds = [accepts(check.id) for check in CHECKS if check.requirement == row]
    assert abs(kinds.count("*/*") - kinds.count("application/json")) <= 1
    assert set(kinds) <= {"*/*", "application/json"}


def test_what_a_client_accepts_is_in_what_its_check_sends() -> None:
    names_json, anything = (
        Api(cast(Any, None), VALID, Random(1), "application/json"),
        Api(cast(Any, None), VALID, Random(1)),
    )
    endpoint = Endpoint(target())
    for api, accept in ((names_json, "application/json"), (anything, "*/*")):
        for request in (api.ask_list(), api.ask_cancel(7)):
            assert dict(endpoint.headers(request, connection="close"))["Accept"] == accept
    own = names_json.ask_list(headers=(("Accept", "text/csv"),))
    assert [value for name, value in endpoint.headers(own, connection="close") if name == "Accept"] == ["text/csv"]


def test_checks_carry_no_level() -> None:
    names = {field.name for kind in (Check, Needs, CheckReport) for field in dataclasses.fields(kind)}
    assert names & {"level", "severity", "gates", "required", "recommended"} == set()
    assert "level" not in inspect.signature(checks_of.requirement).parameters


def test_the_level_in_a_result_is_that_of_the_catalogue() -> None:
    """A failure of the same kind gates or not by its row alone."""
    now = datetime.now(UTC)
    chosen = settings.read((), {})
    for row in ROWS.values():
        check = next(check for check in CHECKS if check.requirement == row.id)
        report = CheckReport(check.id, "staging", Status.FAILED, failure=Failure("that", "this"))
        collection = Collection(target(), now, {check.id: report})
        run = collect.build(collection, CHECKS, chosen, {}, finished=now, complete=True, command="run")
        (result,) = [result for result in run.requirements if result.requirement.id == row.id]
        assert result.requirement == row
        assert result.status is Status.FAILED
        assert run.verdict == ("non-conformant" if row.level is Level.REQUIRED else "conformant")


@pytest.mark.parametrize(
    ("process_lost", "why"), [(False, "the run was cut short"), (True, "a process of the run ended unexpectedly")]
)
def test_what_did_not_run_says_why(process_lost: bool, why: str) -> None:
    chosen, now = settings.read((), {"only": ["LIST-3"]}), datetime.now(UTC)
    run = collect.build(
        Collection(target(), now),
        CHECKS,
        chosen,
        {},
        finished=now,
        complete=False,
        process_lost=process_lost,
        command="run",
    )
    (result,) = [result for result in run.requirements if result.requirement.id == "LIST-3"]
    assert {check.message for check in result.checks} == {f"not run: {why}"}


@pytest.mark.parametrize(
    ("check", "crowded", "trouble", "passed", "said"),
    [
        ("a", True, Trouble.TIMEOUT, True, True),
        ("a", True, Trouble.TIMEOUT, False, False),  # the reason for the verdict says so
        ("a", False, Trouble.TIMEOUT, True, False),  # held against HTTP-1
        ("a", True, Trouble.WAITING, True, False),
        (PREFLIGHT, True, Trouble.TIMEOUT, True, False),  # so is found out how many requests at once are too many
    ],
)
def test_what_was_never_answered_is_told(check: str, crowded: bool, trouble: Trouble, passed: bool, said: bool) -> None:
    late = replace(answered(LIST, None).exchange, check=check, crowded=crowded, trouble=trouble)
    now = datetime.now(UTC)
    status = Status.PASSED if passed else Status.INCONCLUSIVE
    report = CheckReport(CHECKS[0].id, "staging", status, exchanges=[late])
    collection = Collection(target(), now, {CHECKS[0].id: report})
    run = collect.build(collection, CHECKS, settings.read((), {}), {}, finished=now, complete=True, command="run")
    told = collect.UNANSWERED.format(1, 1, f"{late.line} (exchange 0)")
    assert (told in run.warnings) is said


def test_judges_belong_to_rows_in_order() -> None:
    assert list(judges.JUDGES) == [id_ for id_ in ROWS if id_ in judges.JUDGES]


# --- what can run where

NEVER_EMPTIED = "the store is emptied in mode full only, and never that of a protected target"


def test_what_a_mode_excludes() -> None:
    states = States(url="http://127.0.0.1:9/_states")
    for check in CHECKS:
        for mode in Mode:
            reason = exclusion(check.needs, target(mode=mode, states=states))
            least = Mode.FULL if check.needs.empty_store or check.needs.chosen_ids else check.needs.mode
            assert (reason is not None) is (least > mode), check.id
            if reason and check.needs.mode > mode and not check.needs.empty_store:
                assert f"mode {mode} " in reason
                assert f"needs mode {check.needs.mode}" in reason


@pytest.mark.parametrize(
    ("needs", "further", "reason"),
    [
        (Needs(pending=1), {}, "no state provider hands out orders for this target"),
        (Needs(empty_store=True), {}, "no state provider hands out orders for this target"),
        (Needs(), {}, None),
        (Needs(pending=1), {"states": States(pending=(1,))}, None),
        (
            Needs(pending=1, chosen_ids=True),
            {"states": States(pending=(1,))},
            "static lists of orders cannot provide this",
        ),
        (Needs(many_orders=True), {"states": States(pending=(1,))}, "static lists of orders cannot provide this"),
        (
            Needs(empty_store=True),
            {"states": States(pending=(1,)), "mode": Mode.FULL},
            "static lists of orders cannot provide this",
        ),
        (Needs(empty_store=True), {"states": States(command=("x",)), "mode": Mode.FULL}, None),
        (Needs(empty_store=True), {"states": States(command=("x",)), "mode": Mode.GUARDED}, NEVER_EMPTIED),
        (
            Needs(empty_store=True),
            {"states": States(command=("x",)), "mode": Mode.FULL, "protected": True},
            NEVER_EMPTIED,
        ),
        (
            Needs(many_orders=True),
            {"states": States(command=("x",)), "bulk_orders": 0},
            "bulk_orders is 0 for this target",
        ),
        (Needs(many_orders=True), {"states": States(command=("x",))}, None),
        (Needs(chosen_ids=True, pending=1), {"states": States(command=("x",)), "mode": Mode.FULL}, None),
        (
            Needs(chosen_ids=True, pending=1),
            {"states": States(command=("x",))},
            "only in mode full is the state provider asked for ids of the suite's choice",
        ),
    ],
)
def test_what_a_provider_excludes(needs: Needs, further: dict[str, Any], reason: str | None) -> None:
    assert exclusion(needs, target(**further)) == reason


def test_without_a_provider_something_is_left_of_most_requirements() -> None:
    """`guarded`, the default for production, decides most of authentication, listing and errors."""
    left = {check.requirement for check in CHECKS if exclusion(check.needs, target()) is None}
    assert {"AUTH-1", "AUTH-2", "AUTH-3", "AUTH-4", "LIST-1", "LIST-2", "CANCEL-5", "ERR-1", "ERR-2", "HTTP-1"} <= left


def test_scaled_needs() -> None:
    with_many = target(bulk_orders=50)
    assert checks_of.scaled(Needs(pending=1, many_orders=True), with_many).pending == 51
    assert checks_of.scaled(Needs(pending=1), with_many).pending == 1
    assert checks_of.scaled(Needs(many_orders=True), with_many).shipped == 0
    assert checks_of.scaled(Needs(shipped=1, many_orders=True), with_many).shipped == 13
