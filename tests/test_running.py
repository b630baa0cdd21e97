"""What a log hears of a run while it lasts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from conformance.check import all_checks
from conformance.commands import running
from conformance.runner.reported import CheckReport
from conformance.verdict import Status


@pytest.mark.parametrize(("silence", "heard"), [(20.0, ["PET checks: {n} passed"]), (-1.0, ["1 of {n} checks done"])])
def test_a_log_hears_of_what_takes_long(
    silence: float, heard: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [check for check in all_checks() if check.requirement.startswith("PET")]
    monkeypatch.setattr(running, "SILENCE", silence)
    watch = running._Watch(["staging"], checks)
    for check in checks:
        told = CheckReport(check.id, "staging", Status.PASSED)
        watch.pytest_runtest_logreport(cast(pytest.TestReport, SimpleNamespace(conformance=told)))
    lines = capsys.readouterr().err.splitlines()
    assert lines[: len(heard)] == [line.format(n=len(checks)) for line in heard]
    assert lines[-1] == f"PET checks: {len(checks)} passed"
