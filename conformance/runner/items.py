"""What pytest's objects of a run stand for: which process a session is, which check and target an item is of."""

from __future__ import annotations

import pickle
from typing import Any, cast

import pytest

from conformance.check import Check, of_function
from conformance.runner.process import Process
from conformance.runner.reported import CheckReport

#: Where the configuration of a session keeps the process that it is.
PROCESS = pytest.StashKey[Process]()


def process_in(config: pytest.Config) -> Process:
    """The process that a session with this configuration is; `runs` and `unwritten` tell in the end what came of it."""
    return config.stash[PROCESS]


def check_of(item: Any) -> Check | None:
    """The check that a test item runs, or None."""
    return of_function(getattr(item, "function", None))


def report_of(report: Any) -> CheckReport | None:
    """The check's own report that a `report` of pytest carries once the check has ended, else None; decoded where a
    worker ran it."""
    told = getattr(report, "conformance", None)
    if isinstance(told, bytes):
        report.conformance = told = pickle.loads(told)
    return cast(CheckReport | None, told)


def target_of(item: Any) -> str:
    """The name of the target that a test item is about."""
    return str(item.callspec.params["session"])
