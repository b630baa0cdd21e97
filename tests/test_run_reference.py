"""Real runs on the reference server, each in a process of its own as users start them, and what they leave behind."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import jsonschema
import pytest
from commands import WITHOUT_OTHERS, command, inherited
from patience import PATIENCE
from raw_service import Conversation, answer, serving

from conformance.check import all_checks
from conformance.contract import catalogue
from conformance.reporting import results
from conformance.runner.reference import ReferenceServer
from reference_server.faults import FAULTS

ROWS = catalogue.load().requirements
KEY = "sk-Harness.Key_42"
COMMAND = (sys.executable, "-m", "conformance", "run")
#: Plain pytest on the checks, before its further options.
PLAIN = (sys.executable, "-m", "pytest", "-q", "-p", "conformance.plugin", "--pyargs", "conformance.checks")
#: The same without the plugins of other libraries, which take longer to load than such a run takes.
LEAN = (*PLAIN, *WITHOUT_OTHERS)
#: The smallest configuration that names a served reference as a target with static lists.
LISTS = """\
[targets.lists]
base_url = "{base_url}"
api_key_env = "KEY"
bulk_orders = 0
[targets.lists.states]
pending = [{pending}]
"""


@dataclass
class Ran:
    """A run that has ended: its exit status, what it wrote to the console, and to its folder."""

    status: int
    console: str
    folder: Path

    @cached_property
    def results(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "results.json").read_text(encoding="utf-8")))

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each check, by requirement and check id."""
        return {
            f"{row['id']} {check['id']}": check["status"]
            for row in self.results["requirements"]
            for check in row["checks"]
        }

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in self.folder.iterdir()}


def run(folder: Path, words: tuple[str, ...], target: str = "reference", **environment: str) -> Ran:
    """Run a command line in `folder`, which is empty, so that nothing of this repository takes part."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        words, cwd=folder, env={**inherited(), **environment},
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout + done.stderr, folder / "reports" / target)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The run that all others are compared with. Every check runs with the small budget, too."""
    return run(tmp_path_factory.mktemp("whole"), (*COMMAND, "--seed", "7", "--budget", "quick"))


def test_the_reference_conforms(whole: Ran) -> None:
    assert whole.status == 0, whole.console
    assert whole.results["verdict"] == "conformant"
    required = [row for row in whole.results["requirements"] if row["level"] == "required"]
    assert {row["id"] for row in required} == {row.id for row in ROWS.values() if row.level == "required"}
    assert {row["status"] for row in required} == {"passed"}
    assert {row["status"] for row in whole.results["requirements"]} == {"passed"}
    assert whole.results["warnings"] == []


def test_every_check_ran(whole: Ran) -> None:
    ran = {check["id"] for row in whole.results["requirements"] for check in row["checks"]} - {"every_exchange"}
    assert ran == {check.id for check in all_checks()}
    assert set(whole.statuses.values()) == {"passed"}


def test_what_another_check_has_seen_met_is_not_asked_again(whole: Ran) -> None:
    """Such checks are known to others by their ids: a mistyped one would have them look again, and nobody notice."""
    checks = {check["id"]: check for row in whole.results["requirements"] for check in row["checks"]}
    seen = {
        "listing.only_order_is_listed",
        "listing.no_order_is_hidden_while_others_are_cancelled",
        "listing.query_parameters_do_not_shrink_among_many",
        "cancelling.only_order_is_cancelled",
        "cancelling.absent_order_of_an_empty_store_is_not_found",
        "cancelling.pending_orders_are_cancelled_among_many",
        "cancelling.shipped_orders_are_refused_among_many",
        "edges.shipped_orders_with_edge_ids_are_refused",
        "model.sequences_cancel_nothing_twice",
    }
    for id_ in seen:
        assert checks[id_]["exchanges"] == []
        shown_in = checks[id_]["message"].removeprefix("shown by the exchanges of ")
        assert checks[shown_in]["exchanges"]


def test_the_console_has_verdict_coverage_and_seed(whole: Ran) -> None:
    total = sum(row.level == "required" for row in ROWS.values())
    assert f"reference: conformant, {total} of {total} required exercised" in whole.console
    assert "seed 7" in whole.console
    assert "Traceback" not in whole.console
    assert "Warning" not in whole.console


def test_results_are_what_the_schema_admits(whole: Ran) -> None:
    jsonschema.Draft202012Validator(results.schema()).validate(whole.results)
    assert whole.results["run"]["seed"] == 7
    assert whole.results["run"]["complete"] is True
    assert whole.results["suite"]["catalogue"] == catalogue.load().digest


def test_other_files_are_named_with_their_digests(whole: Ran) -> None:
    others = set(whole.files) - {"results.json"}
    assert others == whole.results["files"].keys() >= {"junit.xml", "summary.md"}
    for name, digest in whole.results["files"].items():
        assert digest == "sha256:" + sha256((whole.folder / name).read_bytes()).hexdigest()


def test_the_junit_file_parses(whole: Ran) -> None:
    root = ElementTree.fromstring(whole.files["junit.xml"])
    cases = list(root.iter("testcase"))
    assert len(cases) == len(whole.statuses)
    assert not list(root.iter("failure")) + list(root.iter("error")) + list(root.iter("skipped"))


def test_observations_are_of_the_catalogue(whole: Ran) -> None:
    topics = [row["topic"] for row in whole.results["observations"]]
    assert set(topics) == catalogue.load().observations.keys()
    assert len(set(topics)) == len(topics)


# --- the same by other ways


def test_plain_pytest(whole: Ran, tmp_path: Path) -> None:
    told = ("--target", "reference", "--conformance-report-dir", "reports", "--conformance-seed", "7")
    ran = run(tmp_path, (*LEAN, "-n", "2", "--conformance-budget", "quick", *told))
    assert ran.status == 0, ran.console
    assert ran.statuses == whole.statuses
    assert f"{len(all_checks())} passed" in ran.console
    assert "\nreference: conformant, 31 of 31 required exercised" in ran.console
    assert "warning" not in ran.console


def test_plain_pytest_with_every_plugin_that_is_installed(tmp_path: Path) -> None:
    """In the default budget, so that Schemathesis takes part, whose plugin is loaded as well."""
    ran = run(tmp_path, (*PLAIN, "--target", "reference", "--conformance-only", "LIST-6,CANCEL-11"))
    assert ran.status == 0, ran.console
    assert "\nreference: conformant, 1 of 31 required exercised; recommended: 1 passed" in ran.console
    assert "warning" not in ran.console


def test_plain_pytest_runs_the_tests_of_a_project_beside_the_checks(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n", encoding="utf-8")
    only = ("--target", "reference", "--conformance-only", "PET-1", "--conformance-report-dir", "reports")
    ran = run(tmp_path, (*LEAN, "test_own.py", *only))
    assert ran.status == 0, ran.console
    passed = sum(check.requirement == "PET-1" for check in all_checks())
    assert f"{passed + 1} passed" in ran.console
    assert not any(name.endswith("own") for name in ran.statuses)


def test_plain_pytest_says_what_is_wrong_with_its_options(tmp_path: Path) -> None:
    ran = run(tmp_path, (*LEAN, "--target", "nowhere"))
    assert ran.status == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: unknown target 'nowhere'" in ran.console
    assert "Traceback" not in ran.console


def test_plain_pytest_skips_what_was_not_sent(tmp_path: Path) -> None:
    """No check fails for a service that has fallen silent, and none comes with a traceback of the suite."""

    def fall_silent(talk: Conversation) -> None:
        if talk.number > 3:
            talk.ended.wait(60)
        talk.send(answer("200 OK", b"[]"))
        talk.hang_up()

    with serving(fall_silent) as there:
        told = ("--conformance-base-url", there.base_url, "--conformance-api-key-env", "KEY", "--conformance-timeout")
        told += ("0.3", "--conformance-only", "LIST", "--conformance-report-dir", "reports")
        ran = run(tmp_path, (*LEAN, "-rA", *told), "target", KEY=KEY)
    assert ran.status == 3, ran.console
    assert "not sent: the last 4 requests to listOrders got no answer" in ran.console
    skipped = re.findall(r"SKIPPED \[1\] .*conformance/checks/\S+:[0-9]+: ", ran.console)
    assert len(skipped) == sum(check.requirement.startswith("LIST-") for check in all_checks()), ran.console
    assert not re.search(" failed| error|Refused|ServiceGone", ran.console), ran.console
    assert "failed" not in ran.statuses.values()


#: For plain pytest with workers: the second is killed as soon as it has orders.
WORKER_DIES = """
import os, signal
from conformance.states.leases import Leases
inner = Leases.take
def take(*told):
    ids = inner(*told)
    if ids and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        os.kill(os.getpid(), signal.SIGKILL)
    return ids
Leases.take = take
"""


def test_plain_pytest_loses_a_worker(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(WORKER_DIES, encoding="utf-8")
    only = ("--target", "reference", "--conformance-only", "CANCEL-3", "--conformance-report-dir", "reports")
    ran = run(tmp_path, (*LEAN, "-p", "dies", "-n", "2", *only))
    assert ran.status == 3, ran.console
    assert ran.results["verdict"] == "incomplete"
    assert ran.results["run"]["process_lost"]
    lost = [name for name, status in ran.statuses.items() if status == "inconclusive"]
    assert len(lost) == 1
    assert any(lost[0].partition(" ")[2] in warning for warning in ran.results["warnings"])


@pytest.mark.parametrize(
    "ini", ["[pytest]\naddopts = --no-such-option\nfilterwarnings = error\n", "[pytest]\npython_files = x\n"]
)
def test_a_projects_own_settings_take_no_part(tmp_path: Path, ini: str) -> None:
    (tmp_path / "pytest.ini").write_text(ini, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("raise SystemExit('conftest was loaded')\n", encoding="utf-8")
    of_project = {"PYTEST_ADDOPTS": "--no-such-option", "PYTEST_PLUGINS": "no_such_plugin", "PYTEST_DEBUG": "1"}
    ran = run(tmp_path, (*COMMAND, "--only", "LIST-1"), **of_project)
    assert ran.status == 0, ran.console
    assert "pytest_" not in ran.console
    assert ran.results["verdict"] == "conformant"


# --- selections, and other targets


def test_a_selection_leaves_the_rest_excluded(tmp_path: Path) -> None:
    ran = run(tmp_path, (*COMMAND, "--only", "LIST-1,PET"))
    assert ran.status == 0
    by_id = {row["id"]: row["status"] for row in ran.results["requirements"]}
    assert by_id.keys() == ROWS.keys()
    assert {id_ for id_, status in by_id.items() if status == "passed"} == {"LIST-1", "PET-1", "PET-2"}
    assert set(by_id.values()) == {"passed", "excluded"}


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    words = (*COMMAND, "--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "KEY")
    ran = run(tmp_path, words, "target", KEY=KEY)
    assert ran.status == 3, ran.console
    assert ran.results["verdict"] == "incomplete"
    assert "cannot be reached" in ran.console
    status = {row["id"]: row["status"] for row in ran.results["requirements"]}
    assert set(status.values()) == {"inconclusive", "excluded"}
    assert status["AUTH-1"] == "inconclusive"
    assert status["CANCEL-1"] == "excluded"  # the mode would forbid it there, too
    for text in (ran.console, *ran.files.values()):
        assert KEY not in text
        assert "Harness" not in text


@pytest.mark.parametrize(
    ("banner", "said"),
    [
        (b"220 mail.example ESMTP\r\n", "mail.example ESMTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "This port speaks TLS: is it https:// in base_url?"),
    ],
)
def test_a_port_that_speaks_no_http(tmp_path: Path, banner: bytes, said: str) -> None:
    """A mistyped port is no breach of the contract."""

    def speak(talk: Conversation) -> None:
        talk.send(banner)
        talk.hang_up()

    with serving(speak) as there:
        ran = run(tmp_path, (*COMMAND, "--base-url", there.base_url, "--api-key-env", "KEY"), "target", KEY=KEY)
        assert len(there.requests) < 5
    assert ran.status == 3, ran.console
    assert "does not speak HTTP: the answer begins with no status line" in ran.console
    assert said in ran.console


def test_a_port_that_hangs_up(tmp_path: Path, server_context: ssl.SSLContext) -> None:
    """Whatever nothing at all is heard of is no service that breaks its contract; over TLS, perhaps, it is one."""
    for over_tls in (False, True):
        with serving(Conversation.hang_up, server_context if over_tls else None) as there:
            base_url = there.base_url.replace("https:", "http:")
            words = (*COMMAND, "--base-url", base_url, "--api-key-env", "KEY")
            ran = run(tmp_path / str(over_tls), words, "target", KEY=KEY)
        assert ran.status == 3, ran.console
        assert "gives no HTTP answer: the connection was closed before" in ran.console
        assert ("This port speaks TLS: is it https:// in base_url?" in ran.console) is over_tls


def test_files_that_are_named_like_modules_take_no_part(tmp_path: Path) -> None:
    for name in ("http", "json", "queue", "reference_server"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('it was loaded')\n", encoding="utf-8")
    ran = run(tmp_path, (sys.executable, "-P", "-m", "conformance", "run", "--only", "LIST-1"))
    assert ran.status == 0, ran.console


def test_a_reference_that_does_not_start(tmp_path: Path) -> None:
    code = "import sys; sys.executable = '/bin/false'; from conformance.cli import main; sys.exit(main(['run']))"
    ran = run(tmp_path, (sys.executable, "-c", code))
    assert ran.status == 3, ran.console
    assert "the reference server did not start" in ran.console
    assert "Traceback" not in ran.console


@pytest.fixture
def served() -> Iterator[Callable[..., ReferenceServer]]:
    """Starts reference servers, and stops them in the end."""
    started: list[ReferenceServer] = []

    def start(*arguments: str) -> ReferenceServer:
        started.append(ReferenceServer(arguments))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_plain_pytest_has_enough_of_a_failure(
    tmp_path: Path, served: Callable[..., ReferenceServer], workers: tuple[str, ...]
) -> None:
    """Nobody has interrupted it: the status is that of what was found."""
    address = served("--fault", "cancels-shipped-orders").address
    told = ("--conformance-base-url", address.base_url, "--conformance-api-key-env", "KEY")
    told += ("--conformance-states-url", address.states_url, "--conformance-report-dir", "reports")
    ran = run(tmp_path, (*LEAN, "-x", *workers, "-k", "shipped", *told), "target", KEY=address.key)
    assert ran.status == 1, ran.console
    assert not ran.results["run"]["complete"]


def test_plain_pytest_expects_what_is_waived(tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    address = served("--fault", "shows-pets-to-anyone").address
    row = 'requirement = "PET-1"\nreason = "fixed in 2.4"\nexpires = 2999-12-31\n'
    (tmp_path / "waivers.toml").write_text(f"[[waiver]]\n{row}", encoding="utf-8")
    told = ("--conformance-base-url", address.base_url, "--conformance-api-key-env", "KEY", "--conformance-only", "PET")
    told += ("--conformance-waivers", "waivers.toml", "--conformance-report-dir", "reports")
    ran = run(tmp_path, (*LEAN, "-x", "-rx", "-n", "2", *told), "target", KEY=address.key)
    assert ran.status == 0, ran.console
    assert " xfailed" in ran.console
    assert "FAILED" not in ran.console
    assert "waived: fixed in 2.4" in ran.console
    assert {row["id"] for row in ran.results["requirements"] if row["status"] == "waived"} == {"PET-1"}
    assert "PET-2 passed" in {f"{row['id']} {row['status']}" for row in ran.results["requirements"]}


def test_a_target_with_workers(whole: Ran, tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    """The same as one process finds, and the key, of which more is known here than of the reference's, in no output."""
    address = served().address
    words = (*COMMAND, "--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", address.states_url)
    ran = run(tmp_path, (*words, "--seed", "7", "--budget", "quick", "-n", "2"), "target", KEY=address.key)
    assert ran.status == 0, ran.console
    assert ran.statuses == whole.statuses
    for text in (ran.console, *ran.files.values()):
        lowered = text.lower()
        assert not any(address.key[i : i + 8].lower() in lowered for i in range(len(address.key) - 7))
        assert address.key[::-1] not in text


def test_a_second_run_with_the_same_seed(tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    """Such a service recalls what the first run has cancelled, and the second draws the same ids."""
    address = served("--variant", "answers-409-to-a-repeated-cancel").address
    words = ("run", "--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", address.states_url)
    for _ in range(2):
        only = ("--only", "AUTH,CANCEL,ERR,HTTP")  # what draws ids to cancel
        done = command(tmp_path, *words, *only, "--seed", "7", "--budget", "quick", KEY=address.key)
        assert done.status == 0, done.said


def test_a_second_run_blames_what_the_first_one_did(tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    """At the ends of int64 it meets orders that the first one has cancelled."""
    address = served("--fault", "answers-204-to-repeated-cancels").address
    words = ("run", "--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", address.states_url)
    for seed in ("7", "8"):
        done = command(tmp_path, *words, "--only", "CANCEL", "--seed", seed, "--budget", "quick", KEY=address.key)
        assert done.status == 1, done.said
        assert re.findall(r"^FAILED (\S+)", done.out, re.MULTILINE) == ["CANCEL-6"], done.said


def test_the_plan_is_what_runs(tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    """With static lists and a selection too: ids are not kept for checks that were not selected."""
    address = served().address
    wanted = sum(check.needs.pending for check in all_checks() if check.requirement == "CANCEL-10")
    message = {"state": "pending orders", "action": "setup", "params": {"count": wanted}}
    placed = httpx.post(address.states_url, json=message, trust_env=False).json()["orderIds"]
    text = LISTS.format(base_url=address.base_url, pending=", ".join(map(str, placed)))
    (tmp_path / "targets.toml").write_text(text, encoding="utf-8")
    words = (*COMMAND, "lists", "--only", "CANCEL-10,LIST-5,CANCEL-3")
    plan = run(tmp_path, (*words, "--plan"), "lists", KEY=address.key)
    assert "runs      CANCEL-10" in plan.console
    ran = run(tmp_path, words, "lists", KEY=address.key)
    by_id = {row["id"]: row["status"] for row in ran.results["requirements"]}
    assert (by_id["CANCEL-10"], by_id["LIST-5"], by_id["CANCEL-3"]) == ("passed", "excluded", "excluded")


def test_a_wrong_path_is_said_to_be_one(tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    """Where the service answers 404 in JSON, it may also be the service that is wrong: so it is judged."""
    server = served()
    elsewhere = server.address.base_url.replace("/v1", "/api/v1")
    where = ("--base-url", elsewhere, "--api-key-env", "KEY", "--only", "BASE-2")
    done = command(tmp_path, "run", *where, KEY=server.address.key)
    assert "warning  GET /api/v1/store/orders answers 404 to the key: is the path of base_url right?" in done.out


def test_a_broken_service_does_not_conform(tmp_path: Path, served: Callable[..., ReferenceServer]) -> None:
    """The other half of the exit status; `selftest` does this for every fault."""
    fault = next(name for name, fault in FAULTS.items() if fault.requirement == "CANCEL-3")
    address = served("--fault", fault).address
    words = (*COMMAND, "--base-url", address.base_url, "--api-key-env", "KEY", "--states-url", address.states_url)
    ran = run(tmp_path, (*words, "--only", "CANCEL-3"), "target", KEY=address.key)
    assert ran.status == 1, ran.console
    assert ran.results["verdict"] == "non-conformant"
    (failed,) = [row for row in ran.results["requirements"] if row["status"] == "failed"]
    assert failed["id"] == "CANCEL-3"
    failure = next(check["failure"] for check in failed["checks"] if check["status"] == "failed")
    assert failure["expected"].startswith("409")
    assert "${KEY}" in failure["curl"]
    assert isinstance(failure["exchange"], int)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--conformance-only", "NOPE"), "--conformance-only: 'NOPE'"),
        (("--conformance-states-url", "http://h/s"), "--conformance-states-url describes a target, so it needs "
         "--conformance-base-url or a configured target"),
    ],
)  # fmt: skip
def test_plain_pytest_names_options_as_it_has_them(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [*LEAN, *words], cwd=tmp_path, env=inherited(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {said}" in done.stderr


def test_colours_in_a_log_draw_no_bar(tmp_path: Path) -> None:
    done = command(tmp_path, "run", "--only", "BASE-1", FORCE_COLOR="1")
    assert "BASE checks: 1 passed" in done.err
    assert not re.search(r"\x1b\[[0-9?]*[A-LS-Thl]", done.err)  # moves the cursor, or deletes
