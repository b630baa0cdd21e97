"""The action, the snippets of the documentation and the container's promises: run as they are written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pipelines import ACTION, PROJECT, Runner, blocks, of_no_checkout
from programs import missing

from reference_server.running import Running, build

CI = PROJECT / "docs" / "ci.md"
KEY = "sk-Pipelines.Key_4711"
#: As the pages have it, but reading only: that takes less time.
TARGETS = """\
[targets.staging]
base_url_env = "STORE_ORDERS_STAGING_URL"
api_key_env = "STORE_ORDERS_STAGING_KEY"
mode = "observe"
"""


@pytest.fixture(scope="module")
def staging() -> Iterator[dict[str, str]]:
    """The environment in which the target `staging` of TARGETS is there."""
    with Running(build(KEY.encode())) as server:
        yield {"STORE_ORDERS_STAGING_URL": server.base_url, "STORE_ORDERS_STAGING_KEY": KEY}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A vendor's checkout."""
    (tmp_path / "targets.toml").write_text(TARGETS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def runner(installed: Path, repository: Path, staging: dict[str, str]) -> Runner:
    """A machine on which the action is installed already."""
    made = Runner(repository, environment=staging)
    (made.temporary / "store-orders-conformance").symlink_to(installed.parent)
    return made


# --- the action


def test_the_action_is_one() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert [step["uses"].partition("@")[0] for step in ACTION["runs"]["steps"] if "uses" in step] == [
        "actions/setup-python"
    ]
    for told in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert told["description"]
    page = CI.read_text(encoding="utf-8")
    for name, told in ACTION["inputs"].items():
        default = "required" if told.get("required") else f"`{told['default']}`" if told["default"] else ""
        assert re.search(rf"^\| `{name}` \| {re.escape(default)} ?\|", page, re.MULTILINE), name
    for name in ACTION["outputs"]:
        assert f"`{name}`" in page


def test_the_action_judges(runner: Runner) -> None:
    assert runner.run("Run", targets="staging", workers="1", options="--seed 3") == 0, runner.console
    assert runner.outputs == {"verdict": "conformant", "exit-status": "0", "report-dir": "reports"}
    assert (runner.folder / "reports" / "staging" / "report.html").exists()
    assert "Store Orders conformance: conformant" in (runner.temporary / "summary").read_text(encoding="utf-8")


def test_the_action_fails_as_the_command_does(runner: Runner) -> None:
    with Running(build(KEY.encode(), faults=["lists-as-html"])) as server:
        runner.environment = {**runner.environment, "STORE_ORDERS_STAGING_URL": server.base_url}
        status = runner.run("Run", targets="staging\n", workers="1", options="--only\nLIST-1\n", report_dir="out put")
    assert status == 1
    assert runner.outputs == {"verdict": "non-conformant", "exit-status": "1", "report-dir": "out put"}
    assert "::error title=LIST-1 not kept by staging::" in runner.console
    assert (runner.folder / "out put" / "staging" / "results.json").exists()


def test_the_action_judges_nothing_where_it_only_plans(runner: Runner) -> None:
    assert runner.run("Run", targets="reference", options="--strict --plan") == 0
    assert runner.outputs["verdict"] == "none"


@pytest.mark.parametrize("targets", ["", " \n"], ids=["empty", "blank"])
def test_the_action_does_not_judge_the_reference_in_the_place_of_nothing(targets: str, runner: Runner) -> None:
    """As where a variable of the project is not set."""
    assert runner.run("Run", targets=targets) == 2
    assert runner.outputs == {"verdict": "none", "exit-status": "2", "report-dir": "reports"}
    assert runner.console.startswith("::error::the input targets is empty")


@pytest.mark.parametrize("targets", ["nowhere", "$(touch owned)", "reference; touch owned", "--only"])
def test_what_the_action_is_given_is_data(targets: str, runner: Runner) -> None:
    assert runner.run("Run", targets=targets) == 2
    assert runner.outputs["verdict"] == "none"
    assert not (runner.folder / "owned").exists()


# --- the snippets


def test_the_snippet_for_github(runner: Runner) -> None:
    (text,) = blocks(CI, "GitHub", "yaml")
    steps = yaml.safe_load(text)["jobs"]["conformance"]["steps"]
    (ours,) = [step for step in steps if "store-orders-conformance@" in step.get("uses", "")]
    assert ours["env"].keys() == runner.environment.keys()
    assert runner.run("Run", **ours["with"]) == 0, runner.console
    for step in steps:
        if "run" in step:
            assert "Borne out" in script(step["run"], runner.folder, runner.temporary / "store-orders-conformance/bin")
    (upload,) = [step for step in steps if step.get("uses", "").startswith("actions/upload-artifact")]
    assert upload["with"]["path"] == "${{ steps.conformance.outputs.report-dir }}"


def test_the_snippet_for_gitlab(installed: Path, repository: Path, staging: dict[str, str]) -> None:
    (text,) = blocks(CI, "GitLab", "yaml")
    job = yaml.safe_load(text)["conformance"]
    script("\n".join(job["script"]), repository, installed, **staging)
    assert all((repository / path).is_dir() for path in job["artifacts"]["paths"])
    assert (repository / job["artifacts"]["reports"]["junit"]).is_file()


def test_the_snippet_for_jenkins(installed: Path, repository: Path, staging: dict[str, str]) -> None:
    (text,) = blocks(CI, "Jenkins", "groovy")
    (command,) = re.findall(r"sh '(.*)'", text)
    script(command, repository, installed, **staging)
    assert all(list(repository.glob(pattern)) for pattern in re.findall(r"(?:junit|archiveArtifacts) '(.*?)'", text))


def script(text: str, folder: Path, commands: Path, **environment: str) -> str:
    """Run a script in `folder`; what it printed."""
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={**of_no_checkout(), **environment, "PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- the container


def test_the_container_file_installs_what_the_project_is() -> None:
    text = (PROJECT / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["python:3.11-slim"] * 2
    assert re.search(r"^USER 1000", text, re.MULTILINE)
    assert 'ENTRYPOINT ["store-orders-conformance"]' in text
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert all((PROJECT / word).exists() for word in copied)
    let_in = {line[1:] for line in (PROJECT / ".dockerignore").read_text(encoding="utf-8").split() if line[0] == "!"}
    assert let_in == set(copied)


#: Loopback only; the file system read-only but for one folder; a user who may do nothing in particular.
BARE = """
ip link set lo up
mount --make-rprivate /
mount --bind "$FOLDER" "$FOLDER"
mount -o remount,bind,ro /
cd "$FOLDER"
touch /usr/written 2>/dev/null && exit 99
"$PYTHON" -c 'import socket; socket.create_connection(("192.0.2.1", 80), 1)' 2>/dev/null && exit 98
exec unshare --user --map-user 1000 --map-group 1000 "$@"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_it_runs_without_network_on_a_read_only_system(installed: Path, tmp_path: Path) -> None:
    """What the container promises, without one: on the namespaces that containers are made of."""
    words = ["run", "-n", "2", "--only", "CANCEL-3,LIST-1,BASE"]
    python = installed / "python"
    script = f"import os; assert os.getuid() == 1000; from conformance.cli import main; raise SystemExit(main({words}))"
    (tmp_path / "temporary").mkdir()
    places = {
        "FOLDER": str(tmp_path),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHON": str(python),
    }
    root = [] if os.getuid() == 0 else ["--map-root-user"]
    apart = ["unshare", *root, "--net", "--mount"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        missing("the right to make namespaces")
    done = subprocess.run(
        [*apart, "sh", "-euc", BARE, "sh", str(python), "-c", script],
        env={**of_no_checkout(), **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "reports" / "reference" / "results.json").read_text(encoding="utf-8"))
    assert results["verdict"] == "conformant"
