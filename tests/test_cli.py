"""The command: its help, its mistakes, and everything that it does without a service."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import inherited
from patience import PATIENCE

from conformance import __version__, cli
from conformance.check import all_checks
from conformance.commands import describe, selftest
from conformance.configuration import settings
from conformance.configuration.options import Options
from conformance.configuration.targets import resolve
from conformance.contract import catalogue
from conformance.judging.judges import JUDGES
from conformance.runner import process

ROWS = catalogue.load().requirements
STATIC = """\
[targets.lists]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "KEY"
[targets.lists.states]
pending = [101, 102]
shipped = [201]
[targets.production]
base_url = "http://127.0.0.1:99/v1"
api_key_env = "KEY"
"""
KEY = "sk-Harness.Key_42"


@dataclass
class Said:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process, in a folder of its own, where nothing may be sent.

    Importing `conformance.plugin` for it must not warn: a project's own pytest settings may make that
    an error.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", KEY)
    monkeypatch.setenv("COLUMNS", "200")

    def refuse(*arguments: object, **named: object) -> object:
        raise AssertionError("nothing may be sent, and no process started, here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)

    def run(*arguments: str) -> Said:
        try:
            status = cli.main(arguments)
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        captured = capsys.readouterr()
        assert KEY not in captured.out + captured.err
        return Said(status, captured.out, captured.err)

    return run


def mistake(said: Said, *words: str) -> None:
    """Demand exit status 2 and one clear message on the error stream."""
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("store-orders-conformance")
    assert "Traceback" not in said.err
    assert len(said.err.splitlines()) <= 2
    for word in words:
        assert word in said.err


# --- help


def commands() -> dict[str, str]:
    """The commands that there are, and the first line of their help."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        cli.main(["--help"])
    lines = out.getvalue().partition("commands:\n")[2].splitlines()
    rows = [line.split(maxsplit=1) for line in lines if line.startswith("    ") and not line.startswith("     ")]
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows if row[0] != "COMMAND"}


def test_the_commands_are_those_that_are_published() -> None:
    assert {"run", "serve", "requirements", "explain", "doctor", "init"} <= commands().keys()


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help(command: Command, name: str) -> None:
    said = command(name, "--help")
    assert said.status == 0
    assert said.out.startswith(f"usage: store-orders-conformance {name}")
    assert said.err == ""
    described = said.out.split("\n\n")[1]
    assert described[0].isupper()
    assert described.rstrip().endswith(".")
    examples = said.out.partition("\nexamples:\n")[2].partition("\n\n")[0].replace("\\\n", " ").splitlines()
    assert any(name in example for example in examples)
    for example in examples:
        words = shlex.split(re.split(r"\s{3,}(?!--)", example.strip())[0])
        assert words[0] == "store-orders-conformance"
        cli.parser().parse_args(words[1:])
    assert re.search(r"\bexit status:? (0|1)", said.out, re.IGNORECASE)


def test_the_help_of_run_has_every_option_and_exit_status(command: Command) -> None:
    out = command("run", "--help").out
    for flag, arguments in settings.OPTIONS.items():
        assert flag in out
        assert arguments["help"]
    for word in (
        "--plan",
        "-n N|auto",
        "0 conformant",
        "1 non-conformant",
        "2 command line",
        "3 incomplete",
        "130 interrupted",
    ):
        assert word in " ".join(out.split())


@pytest.mark.parametrize("flag", ["--fault", "--variant"])
def test_several_faults_and_variants_to_serve(flag: str) -> None:
    """Behind one flag, as it is published, or behind a flag each."""
    for words in ((flag, "A", "B"), (flag, "A", flag, "B"), (flag, "A", "--port", "0", flag, "B")):
        options = cli.parser().parse_args(["serve", *words])
        assert vars(options)[flag[2:]] == ["A", "B"]
    assert vars(cli.parser().parse_args(["serve"]))[flag[2:]] == []


def test_version(command: Command) -> None:
    assert command("--version").out == f"store-orders-conformance {__version__}\n"


# --- mistakes


@pytest.mark.parametrize(
    "words",
    [
        ("--base-url", "http://127.0.0.1:9/v1", "--states-url", KEY),
        ("--base-url", "http://127.0.0.1:9/v1", "--proxy", KEY),
        ("--base-url", f"http://127.0.0.1:9/{KEY}/v2"),
        (KEY,),
    ],
)
def test_a_key_in_the_place_of_something_else_is_not_repeated(words: tuple[str, ...], command: Command) -> None:
    said = command("run", "--api-key-env", "KEY", *words)
    assert said.status == 2
    assert "<key>" in said.err
    assert KEY not in said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("COMMAND",)),
        (("rnu",), ("rnu", "run")),
        (("run", "--onyl", "AUTH"), ("--onyl",)),
        (("run", "--mod", "full"), ("--mod",)),  # no abbreviations: they would change meaning with the next option
        (("run", "--mode", "half"), ("half", "observe")),
        (("run", "--seed", "x"), ("--seed", "x")),
        (("run", "--timeout", "soon"), ("--timeout", "soon")),
        (("run", "--timeout", "0"), ("--timeout 0",)),
        (("run", "--api-key", KEY[:5]), ("--api-key",)),
        (("run", "stagng"), ("unknown target 'stagng'", "init")),
        (("run", "stagng", "--plan"), ("unknown target 'stagng'",)),
        (("run", "--only", "AUTH-99"), ("--only: 'AUTH-99' is no requirement and no family",)),
        (("run", "--only", "AUTH", "--skip", "AUTH", "--plan"), ("leave no requirement",)),
        (("run", "--config", "none.toml"), ("none.toml: cannot be read",)),
        (("run", "-n", "0"), ("-n 0: a number of workers",)),
        (("run", "-n", "many"), ("-n many: a number of workers",)),
        (("run", "-n", "²"), ("-n ²: a number of workers",)),
        (("run", "--waivers", "none.toml"), ("none.toml: cannot be read",)),
        (("run", "--confirm-cancel", "production"), ("--confirm-cancel production: no target of that name",)),
        (("run", "--base-url", "http://127.0.0.1:9/v2", "--api-key-env", "KEY"), ("does not end with /v1",)),
        (("run", "--base-url", "http://127.0.0.1:9/v1"), ("--api-key-env",)),
        (("run", "--plan", "none", "--strict", "neither"), ("unknown target 'none'",)),
        (("run", "reference", "--strict", "neither"), ("unknown target 'neither'",)),
        (("doctor", "--strict"), ("unrecognized arguments: --strict\n", "store-orders-conformance doctor --help")),
        (("run", "--buget=quick"), ("unrecognized arguments: --buget=quick; did you mean --budget?",)),
        (("run", "--plan", "-n", "x"), ("-n x: a number of workers",)),
        (("explain", "AUTH-99"), ("'AUTH-99' is not a requirement", "did you mean AUTH-9?")),
        (("explain", "cancel"), ("'cancel' is not a requirement", "did you mean one of CANCEL-1, CANCEL-2, ")),
        (("explain", "XYZ"), ("'XYZ' is not a requirement", "requirements")),
        (("explain",), ("ID",)),
        (("requirements", "--json", "--markdown"), ("--markdown", "--json")),
        (("doctor", "stagng"), ("unknown target 'stagng'",)),
    ],
    ids=" ".join,
)
def test_mistakes(command: Command, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    mistake(command(*arguments), *words)


def test_a_report_folder_that_cannot_be(command: Command) -> None:
    Path("file").touch()
    mistake(
        command("run", "--report-dir", "file/reports"), "--report-dir file/reports: cannot be made", "choose another"
    )


def test_a_folder_of_a_target_that_cannot_be(command: Command) -> None:
    """That is found before anything is sent."""
    Path("reports").mkdir()
    Path("reports/reference").touch()
    mistake(command("run"), "--report-dir reports: reports/reference is in the way, and no folder; choose another")
    Path("reports/reference").unlink()
    Path("reports/reference").symlink_to("nowhere")
    mistake(command("run"), "reports/reference is in the way")


def test_a_folder_of_a_target_that_is_not_ours(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("reports/reference").mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "reference")
    mistake(command("run"), "--report-dir reports: reports/reference cannot be written to; choose another")


def test_a_waiver_that_has_expired_is_found_before_anything_is_sent(command: Command) -> None:
    Path("w.toml").write_text(
        '[[waiver]]\nrequirement = "AUTH-1"\nreason = "r"\nexpires = 2020-01-01\n', encoding="utf-8"
    )
    mistake(command("run", "--waivers", "w.toml"), "w.toml: waiver 1 (AUTH-1): expired on 2020-01-01")


# --- the plan


def test_the_plan_for_the_reference(command: Command) -> None:
    said = command("run", "--plan")
    assert said.status == 0
    assert said.err == ""
    assert said.out.startswith("reference: ")
    assert (
        f"{len(all_checks())} of {len(all_checks())} checks run, for {len(ROWS)} of {len(ROWS)} requirements."
        in said.out
    )
    for row in ROWS.values():
        assert f"runs      {row.id:10} {row.title}" in said.out


def test_the_plan_counts_one_as_one(command: Command) -> None:
    assert "; chosen ids for 1 check; an empty store for 0." in command("run", "--plan", "--only", "AUTH-5").out


def test_the_plan_for_lists_and_for_production(command: Command) -> None:
    Path("targets.toml").write_text(STATIC, encoding="utf-8")
    said = command("run", "lists", "production", "--plan")
    assert said.status == 0
    lists, production = said.out.split("production: ")
    assert lists.startswith("lists: http://127.0.0.1:9/v1, mode full")
    assert production.startswith("http://127.0.0.1:99/v1, mode guarded, protected\n")
    assert "excluded  LIST-7" in lists
    assert "static lists of orders cannot provide this" in lists
    assert "the static lists of orders have too few ids left for this check" in lists
    assert "runs      CANCEL-1 " in lists or "in part   CANCEL-1 " in lists
    assert "excluded  CANCEL-1 " in production
    forbidden = "needs mode full and a state provider: mode guarded does not cancel orders of the state provider"
    without = "authentication.valid_key_cancels, model.sequences_keep_the_key_valid"
    assert f"not {without}: {forbidden}\n" in production  # each reason once for a requirement
    assert "runs      CANCEL-5 " in production or "in part   CANCEL-5 " in production
    assert "There is no state provider for this target, so no orders are needed" in production


def test_the_plan_of_a_run_that_is_not_confirmed(command: Command) -> None:
    full = STATIC.replace("[targets.production]", '[targets.production]\nmode = "full"')
    states = '[targets.production.states]\nurl = "http://127.0.0.1:9/states"\n'
    Path("targets.toml").write_text(full + states, encoding="utf-8")
    planned = command("run", "production", "--plan")
    assert planned.status == 0
    assert "Without --confirm-cancel production or --mode guarded the run is refused, and sends nothing." in planned.out
    assert command("run", "production").status == 2


def test_the_plan_of_a_selection(command: Command) -> None:
    said = command("run", "--plan", "--only", "PET", "--skip", "PET-2")
    assert "PET-1" in said.out
    assert "PET-2" not in said.out
    assert "1 of 1 requirements." in said.out


# --- faults and variants


def test_faults_as_text_and_json(command: Command) -> None:
    known = selftest.cases()
    rows = json.loads(command("faults", "--json").out)
    assert rows == [{"name": c.name, "requirement": c.requirement, "description": c.description} for c in known]
    lines = command("faults").out.splitlines()
    assert [line.split()[:2] for line in lines] == [[c.name, c.requirement or "correct"] for c in known]


# --- the catalogue


def test_requirements_as_json(command: Command) -> None:
    data: dict[str, Any] = json.loads(command("requirements", "--json").out)
    assert data["catalogue"] == catalogue.load().digest
    assert [(row["id"], row["level"]) for row in data["requirements"]] == [
        (row.id, row.level.value) for row in ROWS.values()
    ]
    listed = [check["id"] for row in data["requirements"] for check in row["checks"]]
    assert sorted(listed) == sorted(check.id for check in all_checks())
    assert len(data["observations"]) == len(catalogue.load().observations)
    assert len(data["undecidable"]) == len(catalogue.load().undecidable)


def test_requirements_as_text_and_markdown(command: Command) -> None:
    text, markdown = command("requirements").out, command("requirements", "--markdown").out
    assert len(text.splitlines()) == len(ROWS)
    for row in ROWS.values():
        assert row.title in text
        assert f"| {row.id} | {row.level} | {row.section} | {row.title} |" in markdown
    assert all(line.startswith("|") for line in markdown.splitlines() if line)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.id)
def test_explanations(command: Command, row: catalogue.Requirement) -> None:
    said = command("explain", row.id.lower())
    assert said.status == 0
    flat = " ".join(said.out.split())
    for text in (row.id, row.level, row.title, row.clause, row.why, f"section {row.section}", *row.needs):
        assert " ".join(text.split()) in flat
    for check in all_checks():
        assert (check.id in said.out) is (check.requirement == row.id)
    assert ("every exchange of the run\n    " in said.out) is (row.id in JUDGES)
    assert max(len(line) for line in said.out.splitlines() if line.startswith("    ")) <= 98


# --- init


def test_init_writes_what_then_loads(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = command("init")
    assert said.status == 0
    assert "wrote targets.toml" in said.out
    assert os.access("state_provider.py", os.X_OK)
    environment = {
        "STORE_ORDERS_STAGING_URL": "https://staging.example.com/v1",
        "STORE_ORDERS_STAGING_KEY": KEY,
        "STORE_ORDERS_BASE_URL": "https://api.example.com/v1",
        "STORE_ORDERS_KEY": KEY,
    }
    targets = resolve(("staging", "production"), Options(environment=environment))
    assert [(t.name, str(t.mode), t.protected) for t in targets if t] == [
        ("staging", "full", False),
        ("production", "guarded", True),
    ]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert command("run", "staging", "production", "--plan").status == 0


def test_what_init_has_commented_out_is_right_too(command: Command) -> None:
    command("init")
    lines = Path("targets.toml").read_text(encoding="utf-8").splitlines()
    options = [line[2:] for line in lines if line.startswith("# ") and " = " in line and not line.endswith(".")]
    assert len(options) >= 8
    for option in options:
        if option.split(" = ")[0].isidentifier():
            tomllib.loads(option)


def test_init_replaces_nothing_unasked(command: Command) -> None:
    Path("state_provider.py").write_text("mine", encoding="utf-8")
    mistake(command("init"), "state_provider.py is here already; remove it, or use --force")
    assert Path("state_provider.py").read_text(encoding="utf-8") == "mine"
    assert not Path("targets.toml").exists()
    assert command("init", "--force").status == 0
    assert Path("state_provider.py").read_text(encoding="utf-8") != "mine"


# --- how it is started


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conformance", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"store-orders-conformance {__version__}\n"


def test_a_reader_that_leaves() -> None:
    """`… requirements | head -1` ends quietly."""
    line = f"'{sys.executable}' -m conformance requirements --json | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(("command", "status"), [("run --only BASE", 0), ("run --plan", 0), ("doctor", 2)])
def test_a_reader_that_leaves_changes_no_exit_status(command: str, status: int, tmp_path: Path) -> None:
    """`… run | head -1` in a pipeline that takes the status of each of its commands."""
    far = '[targets.far]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "FAR_KEY"\n'
    (tmp_path / "targets.toml").write_text(far, encoding="utf-8")
    words = f"{command} far" if status else command
    line = f"'{sys.executable}' -m conformance {words} | true; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "FAR_KEY": "sk-anything"}
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_an_audit_or_a_comparison(tmp_path: Path) -> None:
    """What they have found is told by the status, whoever reads the rest."""
    folder = tmp_path / "reports" / "reference"
    command = [sys.executable, "-m", "conformance"]
    subprocess.run(
        [*command, "run", "--only", "ERR-2", "--budget", "quick"], cwd=tmp_path, capture_output=True, check=True
    )
    evidence = (folder / "evidence.har").read_text(encoding="utf-8")
    worse = tmp_path / "worse.json"
    stated = (folder / "results.json").read_text(encoding="utf-8")
    worse.write_text(stated.replace('"status": "passed"', '"status": "failed"'), encoding="utf-8")
    (folder / "evidence.har").write_text(evidence.replace('"status":401', '"status":200'), encoding="utf-8")
    for words in (f"audit {folder}", f"compare {folder} {worse}"):
        line = f"'{sys.executable}' -m conformance {words} | true; exit ${{PIPESTATUS[0]}}"
        piped = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
        assert piped.returncode == 1, (words, piped.stderr)


@pytest.mark.parametrize(("words", "status"), [("run --plan", 2), ("run --only BASE", 0), ("requirements", 2)])
def test_output_that_cannot_be_written(words: str, status: int, tmp_path: Path) -> None:
    """Changes no verdict, and is none where nothing was judged."""
    line = f"'{sys.executable}' -m conformance {words} > /dev/full"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "No space left" in done.stderr


CLOSED = [
    (("requirements",), 0),
    (("explain", "XYZ"), 2),
    (("doctor",), 0),
    (("run", "--only", "LIST-1", "--budget", "quick"), 0),
]


@pytest.mark.parametrize("closed", [">&-", "<&- 2>&-"])
@pytest.mark.parametrize(("words", "status"), CLOSED, ids=[" ".join(words) for words, _ in CLOSED])
def test_closed_streams(words: tuple[str, ...], status: int, closed: str, tmp_path: Path) -> None:
    """The command does its work, and its status is what it would be."""
    line = f"{shlex.join([sys.executable, '-m', 'conformance', *words])} {closed}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert (tmp_path / "reports" / "reference" / "results.json").exists() is (words[0] == "run")


@pytest.mark.parametrize(
    ("words", "status"), [(("run",), 3), (("doctor",), 2), (("compare", "a", "b"), 2), (("audit", "a"), 2)]
)
def test_what_the_suite_itself_gets_wrong_is_no_verdict(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int
) -> None:
    def broken(options: object) -> int:
        raise RuntimeError("words that may hold the key")

    monkeypatch.setattr(cli, f"_{words[0]}", broken)
    said = command(*words)
    assert said.status == status
    assert said.err.startswith("the suite itself failed; please report this:\n  File ")
    assert said.err.endswith("RuntimeError\n")
    assert "RuntimeError: " not in said.err


def test_a_library_that_is_not_installed_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `pip install --no-deps`."""

    def lacking(*_: object) -> str:
        raise ModuleNotFoundError("No module named 'rich'", name="rich")

    monkeypatch.setattr(describe, "explain", lacking)
    said = command("explain", "LIST-1")
    assert said.status == 2
    assert said.err.endswith(": rich is not installed: install the package with its dependencies\n")


def test_an_interruption_while_a_class_is_made_is_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 makes another error of what is raised while attributes are told their names."""

    def interrupted(*_: object) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(describe, "explain", interrupted)
    said = command("explain", "LIST-1")
    assert (said.status, "suite itself failed" in said.err) == (130, False)


def test_an_interruption_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(describe, "explain", interrupted)
    said = command("explain", "LIST-1")
    assert (said.status, said.err) == (130, "interrupted\n")


def test_help_does_not_wait_for_the_checks() -> None:
    """Commands import what they need: `--help` knows nothing of pytest and httpx."""
    code = "import sys; from conformance import cli; cli.parser(); print({'pytest', 'httpx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/store-orders-conformance", "store-orders-conformance"),
        ("/site-packages/conformance/__main__.py", "store-orders-conformance"),  # python -m conformance
        ("/site-packages/pytest/__main__.py", "pytest"),
    ],
)
def test_how_a_run_was_started(program: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program, "run", "--states-url", "http://h:1/s?token=x"])
    assert process._command() == f"{name} run --states-url http://h:1/s?<query>"


def test_selftest_says_what_seed_it_has(command: Command) -> None:
    assert "repeats the random choices of another selftest (default: 1)" in " ".join(
        command("selftest", "--help").out.split()
    )


def test_a_terminal_is_shown_a_bar(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "conformance", "run", "--only", "BASE", "--budget", "quick"]
    environment = {**inherited(), "TERM": "xterm"}
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # nobody writes to it any more
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert b"looking" in shown
    assert b"2 passed" not in shown  # lines are for logs
