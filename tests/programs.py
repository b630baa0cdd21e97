"""What tests start and pip does not install. Where something is missing, the tests that need it are skipped, and
the summary says for want of what; in the gate, which installs all of it, they fail."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

#: Debian keeps servers where not every user looks for programs.
_WHERE = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])


def program(name: str) -> str:
    """The path of a program. Without it, skips the test; where CI is set, fails it."""
    return shutil.which(name, path=_WHERE) or missing(name)


def named(variable: str, what: str) -> str:
    """The value of a variable that names `what`, a file. Without it, skips the test; where CI is set, fails it."""
    return os.environ.get(variable) or missing(f"{what}, named by {variable},")


def missing(what: str) -> NoReturn:
    """Skip or fail the test, for want of this."""
    end = pytest.fail if os.environ.get("CI") else pytest.skip
    return end(f"{what} is not here: .ci/run installs what tests start")
