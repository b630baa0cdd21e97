"""Runs that are cut short: interrupted, robbed of a worker, out of disk. Results are written, and orders returned."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import httpx
import jsonschema
import pytest
from commands import DIES, inherited, workers_of
from patience import PATIENCE
from raw_service import answer, serving
from secret_search import assert_nowhere

from conformance.reporting import results
from conformance.runner.reference import ReferenceServer

COMMAND = (sys.executable, "-m", "conformance", "run", "--report-dir", "reports")
KEY = "sk-Harness.Key_42"
Process = subprocess.Popen[bytes]
#: So slow that there is time to interfere, and fast enough for a test.
SLOWLY = ("--only", "CANCEL,LIST-3,AUTH-5", "--budget", "quick", "--rate-limit", "100/s", "--seed", "1")


@pytest.fixture
def reference() -> Iterator[ReferenceServer]:
    server = ReferenceServer()
    yield server
    server.stop()


def listed(reference: ReferenceServer) -> set[int]:
    """The ids that the reference server lists."""
    address = reference.address
    headers = {"Authorization": f"Bearer {address.key}"}
    answered = httpx.get(f"{address.base_url}/store/orders", headers=headers, trust_env=False)
    return {order["id"] for order in answered.json()}


def at(reference: ReferenceServer) -> tuple[str, ...]:
    """The options by which a run finds the reference server."""
    address = reference.address
    return ("--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", address.states_url)


def begin(folder: Path, reference: ReferenceServer, *words: str, stdout: str = "stdout", **how: Any) -> Process:
    """A run that has begun; what it prints goes to files, and its temporary files are in the same folder."""
    environment = {**inherited(), "KEY": reference.address.key, "TMPDIR": str(folder), **how.pop("environment", {})}
    with (folder / stdout).open("wb") as out, (folder / "stderr").open("wb") as err:
        return subprocess.Popen(
            (*COMMAND, *at(reference), *words), cwd=folder, env=environment, stdout=out, stderr=err, **how
        )


def holds_orders(process: Process, workers: int, reference: ReferenceServer, before: set[int]) -> None:
    """Wait until a run has taken orders for its checks. The look before the run, too, takes one, and before workers."""
    deadline = time.monotonic() + PATIENCE
    while (workers > 1 and len(workers_of(process)) < workers) or not listed(reference) - before:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def written(folder: Path) -> dict[str, Any]:
    """The results in `folder`, which the schema admits."""
    result = json.loads((folder / "reports" / "target" / "results.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(results.schema()).validate(result)
    return dict(result)


def left_behind(folder: Path) -> list[Path]:
    """The temporary folders of runs that are still there."""
    return list(folder.glob("conformance-*"))


def printed(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.glob("std*"))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_interrupted_again_and_again(tmp_path: Path, reference: ReferenceServer, workers: str) -> None:
    """To the last moment: the first signal is the one that counts."""
    before = listed(reference)
    process = begin(tmp_path, reference, *SLOWLY, "-n", workers, start_new_session=True)
    holds_orders(process, int(workers), reference, before)
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.001)
    assert process.returncode == 130, printed(tmp_path)
    assert written(tmp_path)["run"]["complete"] is False
    assert listed(reference) == before
    assert not left_behind(tmp_path)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    "signals",
    [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP,)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_interrupted(tmp_path: Path, reference: ReferenceServer, workers: str, signals: tuple[signal.Signals]) -> None:
    """Twice, too, as pipelines do it: to the whole group, as a terminal does it."""
    before = listed(reference)
    process = begin(tmp_path, reference, *SLOWLY, "-n", workers, start_new_session=True)
    holds_orders(process, int(workers), reference, before)
    for number in signals:
        os.killpg(process.pid, number)
        time.sleep(0.1)
    assert process.wait(PATIENCE) == 130, (process.returncode, printed(tmp_path))
    result = written(tmp_path)
    assert result["run"]["complete"] is False
    assert result["verdict"] == "incomplete"
    assert "process_lost" not in result["run"]
    assert "incomplete (the run was cut short)" in printed(tmp_path)
    assert "Traceback" not in printed(tmp_path)
    assert listed(reference) <= before
    statuses = [check["status"] for row in result["requirements"] for check in row["checks"]]
    assert "inconclusive" in statuses
    assert not left_behind(tmp_path)
    assert_nowhere(reference.address.key, tmp_path)


def ran(tmp_path: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of Python, run to its end."""
    file = tmp_path / "script.py"
    file.write_text(script, encoding="utf-8")
    return subprocess.run(
        [sys.executable, file],
        cwd=tmp_path,
        env={**inherited(), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("moment", ["conformance.commands.running", "pytest", "conformance.checks"])
def test_interrupted_before_anything(tmp_path: Path, moment: str) -> None:
    """While the command is still being loaded."""
    script = f"""
import os, signal, sys
class Killer:
    def find_spec(self, name, *further):
        if name == {moment!r} and name not in seen:
            seen.add(name)
            os.kill(os.getpid(), signal.SIGTERM)
seen = set()
sys.meta_path.insert(0, Killer())
from conformance import cli
sys.exit(cli.main(["run", "--only", "LIST-1"]))
"""
    done = ran(tmp_path, script)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "interrupted before the first request\n"


@pytest.mark.parametrize("hook", ["pytest_configure", "pytest_cmdline_main"])
def test_interrupted_as_pytest_begins(tmp_path: Path, hook: str) -> None:
    script = f"""
import os, signal, sys
import pytest
from conformance import cli
from conformance.commands import running
@pytest.hookimpl(tryfirst=True)
def interrupted(self, config):
    os.kill(os.getpid(), signal.SIGTERM)
running._Interruption.{hook} = interrupted
sys.exit(cli.main(["run", "--only", "LIST-1"]))
"""
    done = ran(tmp_path, script)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "interrupted before the first request\n"


def ran_with(tmp_path: Path, reference: ReferenceServer, change: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A run of a suite that was changed so, to its end."""
    line = f"sys.exit(cli.main({['run', '--report-dir', 'reports', *words]!r}))"
    return ran(tmp_path, f"import os, sys\nfrom conformance import cli\n{change}\n{line}\n", KEY=reference.address.key)


@pytest.mark.parametrize(
    ("package", "moment"),
    [("runner", "process.Process.conclude"), ("runner", "collect.build"), ("reporting", "writing.write")],
)
def test_interrupted_when_all_checks_have_ended(
    tmp_path: Path, reference: ReferenceServer, package: str, moment: str
) -> None:
    """The results are written first: they are whole, and what is printed is about them."""
    module, _, name = moment.partition(".")
    change = (
        f"import signal\nfrom conformance.{package} import {module}\n"
        f"inner = {moment}\n"
        "def interrupted(*words, **more):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return inner(*words, **more)\n"
        f"{module}.{name} = interrupted"
    )
    before = listed(reference)
    done = ran_with(tmp_path, reference, change, *at(reference), "--only", "CANCEL-3")
    assert done.returncode == 130, (done.stdout, done.stderr)
    assert done.stderr.endswith("interrupted after the last check: the results are complete\n")
    assert "Traceback" not in done.stderr
    assert written(tmp_path)["run"]["complete"] is True
    assert "target: conformant, 1 of 31" in done.stdout
    assert listed(reference) <= before


def test_interrupted_in_the_second_of_two_targets(tmp_path: Path, reference: ReferenceServer) -> None:
    """The first one has its whole result."""
    address = reference.address
    table = f'base_url = "{address.base_url}"\napi_key_env = "KEY"\nstates = {{ url = "{address.states_url}" }}\n'
    text = f"[targets.first]\n{table}[targets.second]\n{table}"
    (tmp_path / "targets.toml").write_text(text, encoding="utf-8")
    change = (
        "import signal\nfrom conformance.runner.process import Process\n"
        "inner = Process.start\n"
        "def start(self, check, target):\n"
        "    inner(self, check, target)\n"
        "    if target == 'second': os.kill(os.getpid(), signal.SIGTERM)\n"
        "Process.start = start"
    )
    done = ran_with(tmp_path, reference, change, "first", "second", "--only", "LIST-1")
    assert done.returncode == 130, (done.stdout, done.stderr)
    results = {
        name: json.loads((tmp_path / "reports" / name / "results.json").read_text(encoding="utf-8"))
        for name in ("first", "second")
    }
    found = {name: (result["verdict"], result["run"]["complete"]) for name, result in results.items()}
    assert found == {"first": ("conformant", True), "second": ("incomplete", False)}


def test_what_goes_wrong_after_a_check_betters_no_failure(tmp_path: Path) -> None:
    """As where the disk is full by then."""
    change = (
        "from conformance.states.leases import Leases\n"
        "inner = Leases.give_back\n"
        "def give_back(self, warnings):\n"
        "    if 'shipped' in self._held: raise OSError(28, 'no space left')\n"
        "    inner(self, warnings)\n"
        "Leases.give_back = give_back"
    )
    server = ReferenceServer(("--fault", "finds-no-shipped-order"))
    done = ran_with(tmp_path, server, change, *at(server), "--only", "CANCEL-3")
    server.stop()
    assert done.returncode == 1, done.stderr
    (row,) = (row for row in written(tmp_path)["requirements"] if row["id"] == "CANCEL-3")
    assert row["status"] == "failed"
    assert {check["status"] for check in row["checks"]} == {"failed", "inconclusive"}
    assert any("OSError: [Errno 28] no space left" in warning for warning in written(tmp_path)["warnings"])


def test_what_interrupted_workers_cannot_return_is_said(tmp_path: Path, reference: ReferenceServer) -> None:
    change = (
        "import signal, time\n"
        "from conformance.states import leases\n"
        "def refused(provider, state, ids):\n"
        "    raise leases.ProviderError('the store is down')\n"
        "leases.teardown = refused\n"
        "inner, command = leases.Leases.take, os.getpid()\n"
        "def interrupting(self, state, count):\n"
        "    taken = inner(self, state, count)\n"
        "    if state == 'shipped' and taken and os.getpid() != command:\n"
        "        os.kill(command, signal.SIGINT)\n"
        "        time.sleep(60)\n"
        "    return taken\n"
        "leases.Leases.take = interrupting"
    )
    done = ran_with(tmp_path, reference, change, *at(reference), "--only", "CANCEL-3", "-n", "2")
    assert done.returncode == 130, done.stderr
    assert any("orders left behind (shipped orders)" in warning for warning in written(tmp_path)["warnings"])


def test_processes_that_die_before_they_begin_are_not_replaced_for_ever(
    tmp_path: Path, reference: ReferenceServer
) -> None:
    change = "from conformance.runner.side_by_side import Pool\nPool._work = lambda *_: os._exit(1)"
    done = ran_with(tmp_path, reference, change, *at(reference), "--only", "CANCEL-3", "-n", "2")
    assert done.returncode == 3, done.stderr
    assert written(tmp_path)["run"]["process_lost"] is True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_is_loaded(tmp_path: Path, number: signal.Signals) -> None:
    """Before there is anything to put in order."""
    script = f"""
import os, sys
from conformance import __main__
class Interrupted:
    def find_spec(self, name, *_):
        if name == "conformance.cli":
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Interrupted())
__main__.main()
"""
    done = ran(tmp_path, script)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_the_suite_itself_gets_wrong_is_incomplete(tmp_path: Path) -> None:
    """And neither a verdict nor somebody's configuration."""
    script = """
import sys
import pytest
from conformance import cli, plugin
def broken(self, session):
    raise RuntimeError("no such thing")
plugin.Plugin.pytest_sessionstart = pytest.hookimpl(tryfirst=True)(broken)
sys.exit(cli.main(["run", "--only", "LIST-1"]))
"""
    done = ran(tmp_path, script)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("the suite itself failed; please report this:\n")
    assert "RuntimeError: no such thing" in done.stderr


def test_interrupted_just_after_the_look(tmp_path: Path) -> None:
    """pytest has not begun its session then, and does not end it. What was seen is written all the same."""
    script = """
import os, signal, sys
import pytest
from conformance import cli
from conformance.commands import running
@pytest.hookimpl(trylast=True)
def interrupted(self):
    os.kill(os.getpid(), signal.SIGINT)
running._Watch.pytest_sessionstart = interrupted
sys.exit(cli.main(["run", "--only", "LIST-1"]))
"""
    done = ran(tmp_path, script)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    result = json.loads((tmp_path / "reports" / "reference" / "results.json").read_text(encoding="utf-8"))
    assert result["verdict"] == "incomplete"
    assert result["run"]["complete"] is False


def test_interrupted_as_plain_pytest_begins_with_workers(tmp_path: Path) -> None:
    """Before anything is known of the target. Nothing is run then, nothing passes, and nothing is left behind."""
    script = """
import os, signal, sys
import pytest
from conformance.runner import process
def interrupted(*_, **more):
    os.kill(os.getpid(), signal.SIGINT)
process.Collection = interrupted
words = "-p conformance.plugin --pyargs conformance.checks --target reference --conformance-only LIST-1 -n 2"
sys.exit(pytest.main(words.split()))
"""
    done = ran(tmp_path, script, TMPDIR=str(tmp_path))
    assert done.returncode == 130, (done.stdout, done.stderr)
    assert "passed" not in done.stdout
    assert not left_behind(tmp_path)


def test_a_worker_that_dies(tmp_path: Path, reference: ReferenceServer) -> None:
    """Its check is undecided, so the run is incomplete; the others go on, and what it held is returned."""
    before = listed(reference)
    done = ran_with(tmp_path, reference, DIES, *at(reference), *SLOWLY, "-n", "2")
    assert done.returncode == 3, done.stderr
    result = written(tmp_path)
    assert result["run"]["complete"] is False
    assert result["verdict"] == "incomplete"
    assert result["run"]["process_lost"] is True
    assert "incomplete (a process of the run ended unexpectedly)" in done.stdout
    checks = [check for row in result["requirements"] for check in row["checks"]]
    (lost,) = [check for check in checks if "ended unexpectedly" in check["message"]]
    assert lost["status"] == "inconclusive"
    assert sum(check["status"] == "passed" for check in checks) > 10, (done, result)
    assert any(lost["id"] in warning for warning in result["warnings"])
    assert listed(reference) <= before
    assert "Traceback" not in done.stdout + done.stderr


def staged(folder: Path) -> bool:
    """Whether a run is at writing its files, or has just done so."""
    return any(path.name.startswith(".") for path in folder.iterdir())


@pytest.mark.parametrize("delay", [None, 0.005], ids=["checking", "writing"])
def test_killed(tmp_path: Path, reference: ReferenceServer, delay: float | None) -> None:
    """With all that it has started, in the middle of its checks or of its files: each file is that of the run before or
    that of this one, whole."""
    words = ("--only", "CANCEL-1,LIST-1", "--budget", "quick", "-n", "2" if delay is None else "1")
    assert begin(tmp_path, reference, *words, "--seed", "1").wait(PATIENCE) == 0
    folder = tmp_path / "reports" / "target"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    present = listed(reference)
    slowly = ("--rate-limit", "20/s") if delay is None else ()
    process = begin(tmp_path, reference, *words, *slowly, "--seed", "2", start_new_session=True)
    if delay is None:
        holds_orders(process, 1, reference, present)
    else:
        while process.poll() is None and not staged(folder):
            time.sleep(0.0005)
        time.sleep(delay)
    with suppress(ProcessLookupError):  # it was faster
        os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(PATIENCE) in (-signal.SIGKILL, 0)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
    assert after.keys() == before.keys()
    result, evidence = written(tmp_path), json.loads(after["evidence.har"])
    assert result["run"]["complete"] is True
    assert evidence["log"]["entries"]
    ElementTree.fromstring(after["junit.xml"])
    ElementTree.fromstring(after["badge.svg"])
    assert after["report.html"].endswith(b"</html>\n")
    assert after["summary.md"].endswith(b"</sub>\n")
    if delay is None:
        assert after == before
    # Nothing is in the way of a later run, and nothing half-done stays for ever.
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    assert begin(tmp_path, reference, *words).wait(PATIENCE) == 0
    assert {path.name for path in folder.iterdir()} == set(before)


def test_killed_without_what_it_has_started(tmp_path: Path, reference: ReferenceServer) -> None:
    """The workers return what they hold and end, where there is nobody left to report to."""
    before = listed(reference)
    process = begin(tmp_path, reference, "--only", "CANCEL-1", "--budget", "quick", "--rate-limit", "20/s", "-n", "2")
    holds_orders(process, 2, reference, before)
    workers = workers_of(process)
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    deadline = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert listed(reference) <= before
    assert "Traceback" not in printed(tmp_path)


# --- where nothing can be written


def limited() -> None:
    """No file may grow past 20 kB from here on: as good as a full disk. Python gets an error instead of the signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_full_disk(tmp_path: Path, reference: ReferenceServer) -> None:
    """The results of the run before stay, whole; the status says that this one has left none."""
    words = ("--only", "LIST-1", "--budget", "quick")
    assert begin(tmp_path, reference, *words).wait(PATIENCE) == 0
    folder = tmp_path / "reports" / "target"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert begin(tmp_path, reference, *words, preexec_fn=limited).wait(PATIENCE) == 3
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "the results of target could not be written: [Errno 27] File too large" in printed(tmp_path)
    assert "Results: not written" in printed(tmp_path)
    assert f"Results: {os.path.join('reports', 'target')}" not in printed(tmp_path)
    assert "Traceback" not in printed(tmp_path)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("in_the_way", "status"), [(False, 0), (True, 3)], ids=["console", "console and folder"])
def test_nothing_can_be_printed(
    tmp_path: Path, reference: ReferenceServer, in_the_way: bool, status: int, unbuffered: str
) -> None:
    """The status is that of the run all the same, unless its results cannot be written either."""
    if in_the_way:
        (tmp_path / "reports" / "target" / "results.json").mkdir(parents=True)
    process = begin(
        tmp_path,
        reference,
        "--only",
        "LIST-1",
        "--budget",
        "quick",
        stdout="/dev/full",
        environment={"PYTHONUNBUFFERED": unbuffered},
    )  # as pipelines have it, or not
    assert process.wait(PATIENCE) == status
    assert "Traceback" not in printed(tmp_path)


def test_a_summary_that_cannot_be_appended(tmp_path: Path, reference: ReferenceServer) -> None:
    """All else is printed, with COLUMNS=0 as well, as where the size of no terminal was asked for."""
    nowhere = {"GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "such" / "folder"), "COLUMNS": "0"}
    assert begin(tmp_path, reference, "--only", "LIST-1", environment=nowhere).wait(PATIENCE) == 0
    assert "$GITHUB_STEP_SUMMARY could not be written: [Errno 2] No such file or directory" in printed(tmp_path)
    assert "1 of 31 required exercised" in printed(tmp_path)
    assert "Traceback" not in printed(tmp_path)


# --- together


def test_workers_keep_the_rate_limit_together(tmp_path: Path) -> None:
    with serving(answer("200 OK", b"[]")) as service:
        words = ("--base-url", service.base_url, "--api-key-env", "KEY", "--mode", "observe", "--rate-limit", "10/s")
        subprocess.run(
            (*COMMAND, *words, "-n", "2", "--only", "LIST,HTTP,AUTH-2", "--budget", "quick"),
            cwd=tmp_path, env={**inherited(), "KEY": KEY}, capture_output=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        times = sorted(service.times)
    assert len(times) > 20
    ahead = [later - sooner for sooner, later in zip(times, times[10:], strict=False)]
    assert median(ahead) > 0.9  # ten requests on, a second has passed; one that is late comes close to the next ones
