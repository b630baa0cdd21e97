"""What pytest's objects stand for in a run: the process of a session, the check and the target of an item."""

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
    """The process of a session with this configuration; in the end, its `runs` and `unwritten` hold the outcome."""
    return config.stash[PROCESS]


def check_of(item: Any) -> Check | None:
    """The check that a test item runs, or None."""
    return of_function(getattr(item, "function", None))


def report_of(report: Any) -> CheckReport | None:
    """The check's own report, which pytest's `report` carries once the check has ended, else None; decoded if it comes
    from a worker."""
    told = getattr(report, "conformance", None)
    if isinstance(told, bytes):
        report.conformance = told = pickle.loads(told)
    return cast(CheckReport | None, told)


def target_of(item: Any) -> str:
    """The name of the target that a test item is about."""
    return str(item.callspec.params["session"])
