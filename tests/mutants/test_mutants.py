"""The record of the mutants: complete, about the code as it is, and true for a few that are tried again."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from commands import WITHOUT_OTHERS
from mutants import JUDGE, ROOT, Mutant, Reason, added, by_text, complaints, function_of, prepare, reasons, report

from conformance.commands import selftest
from reference_server.faults import FAULTS

PAGE = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8")
SURVIVORS = [mutant for reason in reasons() for mutant in reason.mutants]
KNOWN = Mutant("api.read_id", "return 1", "return 2")
EXPLAINED = Reason("It does not matter.", (KNOWN,))


def source(mutant: Mutant) -> str:
    return (ROOT / "reference_server" / f"{mutant.function.partition('.')[0]}.py").read_text(encoding="utf-8")


def plain(code: str) -> str:
    return re.sub(r"\s+", " ", code)


def test_the_page_tells_every_survivor_and_no_other() -> None:
    told = re.findall(r"^- <code>(.*)</code>$|^- (\(nothing\))$", PAGE, re.MULTILINE)
    outcomes = dict.fromkeys(SURVIVORS, "survived") | {each.mutant: "killed" for each in added()}
    page = report(outcomes, reasons(), added(), "a tool")
    assert page.partition("## What they taught")[2] == PAGE.partition("## What they taught")[2]
    assert len(told) == len(SURVIVORS) == len(set(SURVIVORS))
    counted = re.search(r"\*\*(\d+) killed, (\d+) survived, (\d+) never reached\.\*\*", PAGE)
    assert counted is not None
    assert int(counted[2]) + int(counted[3]) == len(SURVIVORS)
    assert int(counted[1]) > 200


def test_every_reason_is_about_the_code_as_it_is() -> None:
    for mutant in (*SURVIVORS, *(each.mutant for each in added())):
        assert plain(mutant.line) in plain(source(mutant)), mutant
        assert f"def {mutant.function.rpartition('.')[2]}(" in source(mutant)
        assert mutant.mutated != mutant.line
    assert all(reason.why.endswith(".") for reason in reasons())


def test_what_was_made_stricter_is_there() -> None:
    for each in added():
        assert each.check in selftest.every_check()
        assert each.fault in FAULTS
        assert each.mutant not in SURVIVORS


def test_a_survivor_needs_a_reason_and_a_reason_a_survivor() -> None:
    other = Mutant("orders.place", "it's = 1", "it's = 2")
    assert complaints({KNOWN: "survived", other: "killed"}, [EXPLAINED]) == []
    (missing,) = complaints({KNOWN: "survived", other: "no tests"}, [EXPLAINED])
    (row,) = tomllib.loads(missing)["survivors"]
    assert row == {"function": "orders.place", "line": "it's = 1", "mutated": ["it's = 2"], "why": ""}
    assert complaints({KNOWN: "killed"}, [EXPLAINED]) == ["a reason without survivor: api.read_id: return 2"]
    assert len(complaints({KNOWN: "suspicious"}, [])) == 1


def test_a_mutant_that_looks_like_a_survivor_does_not_hide_it() -> None:
    assert by_text([(KNOWN, "killed"), (KNOWN, "survived"), (KNOWN, "timeout")]) == {KNOWN: "survived"}
    assert by_text([(KNOWN, "no tests"), (KNOWN, "killed")]) == {KNOWN: "no tests"}
    assert by_text([(KNOWN, "killed"), (KNOWN, "killed")]) == {KNOWN: "killed"}


def test_names_of_mutants_tell_their_function() -> None:
    assert function_of("reference_server.api.xǁServiceǁ__init____mutmut_3") == "api.Service.__init__"
    assert function_of("reference_server.orders.x_sample_order__mutmut_12") == "orders.sample_order"


@pytest.mark.parametrize(
    ("mutant", "survives"),
    [*((each.mutant, False) for each in added()[:1]), (SURVIVORS[-1], True)],
    ids=lambda value: getattr(value, "mutated", None),
)
def test_the_suite_judges_a_mutant_as_recorded(mutant: Mutant, survives: bool, tmp_path: Path) -> None:
    prepare(tmp_path)
    module = tmp_path / "reference_server" / f"{mutant.function.partition('.')[0]}.py"
    text = module.read_text(encoding="utf-8")
    assert text.count(mutant.line) == 1
    module.write_text(text.replace(mutant.line, mutant.mutated), encoding="utf-8")
    judge = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WITHOUT_OTHERS, JUDGE]
    done = subprocess.run(judge, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) is survives, done.stdout
