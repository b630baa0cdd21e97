"""What is made up ahead: all that a run asks for, the same as it would make up itself, and no loss if it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.budgets import BUDGETS
from conformance.check import Check, all_checks
from conformance.checks import generated_requests, generation, test_schema
from conformance.runner import ahead

CHECKS = all_checks()
QUICK = BUDGETS["quick"]
RUN = """
import sys
from conformance.cli import main
status = main(["run", "--report-dir", "reports", "--seed", "1"])
sys.exit(status or "hypothesis" in sys.modules)
"""


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "_generated", {})
    monkeypatch.setattr(generation, "_ahead", {})


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_run_makes_nothing_up_itself(tmp_path: Path) -> None:
    """Not with the budget that is the default, with which Schemathesis takes part."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("at_once", [True, False])
def test_it_is_the_same_wherever_and_whenever_it_is_made_up(at_once: bool) -> None:
    wanted = ahead.calls(3, "staging", QUICK, CHECKS)
    generator = ahead.Ahead(QUICK, at_once=at_once)
    generator.generate(wanted)
    received = {call: generation.generate(call) for call in wanted}
    generator.close()
    generation._generated.clear()
    assert received == {call: generation.generate(call) for call in wanted}
    assert len(wanted) == 6


def test_a_process_that_dies_is_done_without() -> None:
    wanted = ahead.calls(3, "staging", QUICK, CHECKS)
    generator = ahead.Ahead(QUICK)
    generator.process.kill()
    generator.process.join()
    generator.generate(wanted)
    assert all(generation.generate(call) for call in wanted)
    generator.close()


def test_a_process_that_hangs_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "PATIENCE", 0.1)
    wanted = ahead.calls(3, "staging", QUICK, CHECKS)
    generator = ahead.Ahead(QUICK)
    os.kill(generator.process.pid or 0, signal.SIGSTOP)
    generator.generate(wanted)
    assert all(generation.generate(call) for call in wanted)
    generator.close()


def test_without_a_temporary_folder_a_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(ahead.tempfile, "TemporaryDirectory", refuse)
    with ahead.begun(QUICK) as generator:
        assert generator is None


def chosen(id_: str) -> list[Check]:
    return [check for check in CHECKS if check.id == id_]


def test_only_what_will_run_is_made_up() -> None:
    assert ahead.calls(3, "staging", QUICK, chosen("listing.ids_are_unique")) == []
    (call,) = ahead.calls(3, "staging", QUICK, chosen("schema.generated_queries_do_not_shrink"))
    assert call[1][0] == "queries"


def test_the_table_of_kinds_is_about_checks_and_kinds_that_exist() -> None:
    assert set(test_schema.GENERATED) <= {check.id for check in CHECKS}
    assert {kind for kinds in test_schema.GENERATED.values() for kind in kinds} == set(generated_requests.KINDS)
