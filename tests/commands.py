"""The suite's command, each time in a process of its own, forked from one that has loaded the suite: a fresh
interpreter would spend more than a second of its processor on that. What a fresh one does is for the tests of the
installed command, of `python -m conformance` and of plain pytest."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from patience import PATIENCE
from programs import program

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "conformance.commands.running",
        "conformance.plugin",
        "conformance.reporting.writing",
        "conformance.runner.preflight",
        "hypothesis.stateful",
    ]
)


#: To start a process has multiprocessing look at all others, and of two threads that look at one that has just ended
#: only the first learns its status.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


def inherited() -> dict[str, str]:
    """The environment variables that neither pytest nor a pipeline has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GITHUB", "COV"))}


#: Plain pytest without the plugins of other libraries, for tests that are not about these: in each process, that of
#: Schemathesis loads Schemathesis, and that of Hypothesis Hypothesis, which takes seconds of a processor.
WITHOUT_OTHERS = ("-p", "no:schemathesis", "-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:pytest_cov")
#: Words of a run that waits for a service on a busy machine.
PATIENTLY = ("--timeout", "120")
#: For `command`: has the look take a machine that is busy for five seconds for no service that answers one request
#: after the other.
BUSY = "from conformance.runner import capacity; capacity.SLACK += 5"

#: For `command` and scripts: has the second worker of a run killed as soon as it has orders, in the midst of a check.
#: Whoever kills it from outside may come before its first check, or between two of them.
DIES = """
import multiprocessing, os, signal
from conformance.states.leases import Leases
inner = Leases.take
def take(*told):
    ids = inner(*told)
    if ids and multiprocessing.current_process().name == "process 2":
        os.kill(os.getpid(), signal.SIGKILL)
    return ids
Leases.take = take
"""


def command(folder: Path, *words: str, first: str = "", **environment: str) -> Done:
    """Run the command with these words in `folder`, with the inherited variables and those of `environment`, after the
    Python statements `first`. Fails the test if that takes longer than PATIENCE."""
    with tempfile.TemporaryDirectory() as printed:
        out, err = Path(printed, "out"), Path(printed, "err")
        process = _FORKS.Process(target=_run, args=(folder, words, first, {**inherited(), **environment}, out, err))
        with _ONE_AT_A_TIME:
            process.start()
        wait([process.sentinel], PATIENCE)
        with _ONE_AT_A_TIME:
            process.join(0)
            process.kill()
            process.join()
        status = process.exitcode
        assert status is not None
        assert status >= 0, f"{words}: not ended after {PATIENCE} s, or by a signal: {err.read_text(encoding='utf-8')}"
        return Done(status, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


def _run(
    folder: Path, words: tuple[str, ...], first: str, environment: Mapping[str, str], out: Path, err: Path
) -> None:
    for number, file in ((1, out), (2, err)):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), number)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    exec(first, {})
    from conformance import cli

    sys.exit(cli.main(words))


#: The first process that a run forked, by the process of the run.
_FIRST: dict[int, int] = {}


def workers_of(process: subprocess.Popen[Any]) -> list[int]:
    """The process ids of the workers of a run. The first process that it forks is none: it makes up what they send."""
    asked = [program("ps"), "-o", "pid=,args=", "--ppid", str(process.pid)]
    lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
    children = [int(line.split()[0]) for line in lines if "conformance run" in line]
    first = _FIRST.setdefault(process.pid, children[0]) if children else None
    return [child for child in children if child != first]
