"""The key and its near misses are in no byte that a run writes or prints, whatever comes and breaks."""

from __future__ import annotations

import base64
import html
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from commands import WITHOUT_OTHERS, command, inherited
from patience import PATIENCE
from raw_service import Conversation, answer, head, serving
from secret_search import assert_nowhere

from conformance.runner.reference import ReferenceServer
from conformance.runner.session import redactor_of
from conformance.target import Mode, Secret, Target
from reference_server.running import Running, build

KEY = "sk-Gehe1m.Schl/ssel_4711"

#: How a service may write the key, in answers and in headers.
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "in capitals": str.upper,
    "in the other case": str.swapcase,
    "backwards": lambda key: key[::-1],
    "its beginning": lambda key: key[:12],
    "its end": lambda key: key[-10:],
    "less one character": lambda key: key[:-1],
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "within base64": lambda key: base64.b64encode(f"user:{key}@host".encode()).decode(),
    "percent-encoded": lambda key: quote(key, safe=""),
    "percent-encoded, all of it": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "as JSON escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "as HTML escapes": html.escape,
    "percent-encoded in small letters": lambda key: key.replace("/", "%2f"),
    "as JSON escapes, in part": lambda key: key.replace("/", "\\u002F"),
    "in a long text": lambda key: "x" * 70 + key + "y" * 2000,
    "backwards in a long text": lambda key: "x" * 70 + key[::-1] + "y" * 2000,
}


def telling(conversation: Conversation) -> None:
    """A service that writes the key wherever it can, each time in another form; some of its answers are broken, too."""
    number = conversation.number
    told = random.Random(number).choice(list(FORMS.values()))(KEY)
    error = f'{{"code": "{told}", "message": "not {told}", "status": 401, "{told}": "{told}"}}'.encode()
    fields = (f"WWW-Authenticate: Basic realm={told}", f"X-{re.sub('[^A-Za-z0-9-]', '', told)}: {told}")
    listing = f'[{{"id": 1, "{told}": "{told}", "shipDate": "{told}", "petId": "{told}"}}]'.encode()
    request = conversation.request.decode("latin-1")
    if request.startswith("GET /v1/pets/"):
        conversation.send(answer("200 " + told, listing, f"Sunset: {told}", f"Deprecation: {told}"))
    elif not request.startswith("GET "):
        conversation.send(answer("404 " + told, error, *fields))
    elif f"Authorization: Bearer {KEY}\r\n" not in request:
        conversation.send(answer(f"401 {told}", error, *fields) + told.encode())
    elif number % 9 == 5:
        conversation.send(answer("302 " + told, b"", f"Location: /{told}?key={told}"))
    elif number % 9 == 7:
        conversation.send(f"HTTP/1.1 {told}\r\n\r\n".encode())
    elif number % 9 == 8:
        conversation.send(head("200 OK", "Content-Type: application/json", f"Content-Encoding: {told}"), error)
    else:
        conversation.send(answer("200 OK", listing, f"Set-Cookie: session={told}") + told.encode())
    conversation.hang_up()


def run(folder: Path, *words: str, **environment: str) -> str:
    """What the command prints in `folder`."""
    return command(folder, *words, **{"KEY": KEY, **environment}).said


def test_a_service_that_repeats_the_key(tmp_path: Path) -> None:
    with serving(telling) as service:
        words = ("--base-url", service.base_url, "--api-key-env", "KEY", "--mode", "guarded", "--budget", "quick")
        github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md")}
        said = run(tmp_path, "run", *words, **github)
        said += run(tmp_path, "doctor", *words[:4])
    assert "non-conformant" in said, said
    assert_nowhere(KEY, said, tmp_path)
    result = str(tmp_path / "reports" / "target")
    assert "<part of the key>" in Path(result, "evidence.har").read_text(encoding="utf-8")
    audited = run(tmp_path, "audit", result)
    assert "Borne out" in audited, audited
    for words in (("report", result), ("compare", result, result, "--report-dir", "compared")):
        audited += run(tmp_path, *words)
    assert_nowhere(KEY, audited, tmp_path)


def test_pytest_tells_all_that_it_does(tmp_path: Path) -> None:
    """With `--debug` it writes down what every fixture returns and every hook is given."""
    with serving(telling) as service:
        words = [word.format(url=service.base_url) for word in (*PYTEST, *WHERE)]
        done = subprocess.run(
            [sys.executable, *words, "--debug", "--conformance-only=AUTH-1,AUTH-3,ERR-4", *WITHOUT_OTHERS],
            cwd=tmp_path, env={**inherited(), "KEY": KEY},
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert "finish pytest_fixture_setup --> Secret" in (tmp_path / "pytestdebug.log").read_text(encoding="utf-8")
    assert_nowhere(KEY, done.stdout + done.stderr, tmp_path)


def test_codes_are_compared_as_they_are_on_record(tmp_path: Path) -> None:
    """Where each holds another part of the key there is one code on record, and an audit has nothing else."""

    def reply(conversation: Conversation) -> None:
        told = KEY[1:10] if conversation.number % 2 else KEY[-10:]
        valid = f"Authorization: Bearer {KEY}\r\n".encode() in conversation.request
        listing = valid and conversation.request.startswith(b"GET ")
        status, line = (404, "404 Not Found") if valid else (401, "401 Unauthorized")
        error = f'{{"code": "{told}", "message": "no", "status": {status}}}'.encode()
        conversation.send(answer("200 OK", b"[]") if listing else answer(line, error))
        conversation.hang_up()

    with serving(reply) as service:
        words = ("--base-url", service.base_url, "--api-key-env", "KEY", "--mode", "guarded", "--only", "ERR")
        run(tmp_path, "run", *words)
    result = tmp_path / "reports" / "target"
    written = json.loads((result / "results.json").read_text(encoding="utf-8"))
    assert {row["id"]: row["status"] for row in written["requirements"]}["ERR-3"] == "passed"
    audited = run(tmp_path, "audit", str(result))
    assert "Borne out" in audited, audited


def test_a_key_that_is_a_word_of_the_answers_fails_nobody(tmp_path: Path) -> None:
    """On record `code` is no code then; the check has seen it all the same."""
    service = build(b"code", faults=[], variants=[])
    with Running(service) as server:
        where = ("--base-url", server.base_url, "--api-key-env", "KEY", "--mode", "guarded", "--only", "ERR-3")
        run(tmp_path, "run", *where, KEY="code")
    written = json.loads((tmp_path / "reports" / "target" / "results.json").read_text(encoding="utf-8"))
    assert {row["id"]: row["status"] for row in written["requirements"]}["ERR-3"] == "passed"


def test_a_key_in_the_query_of_the_state_providers_url(tmp_path: Path, reference: ReferenceServer) -> None:
    address, secret = reference.address, "Kennwort-des-Providers"
    words = [sys.executable, "-m", "conformance", "run", "--base-url", address.base_url, "--api-key-env", "KEY"]
    words += ["--states-url", f"{address.states_url}?key={secret}", "--only", "BASE,CANCEL-1"]
    environment = {**inherited(), "KEY": address.key}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert_nowhere(secret, done.stdout + done.stderr, tmp_path)
    told = json.loads((tmp_path / "reports" / "target" / "results.json").read_text(encoding="utf-8"))
    assert f"--states-url {address.states_url}?<query>" in told["run"]["command"]


@pytest.mark.parametrize("before", [0, 280], ids=["whole", "where the quotation is cut"])
def test_a_provider_that_repeats_its_token(tmp_path: Path, reference: ReferenceServer, before: int) -> None:
    token = "Kennwort.des.Anbieters-4711"

    def reply(conversation: Conversation) -> None:
        assert f"Bearer {token}\r\n".encode() in conversation.request
        conversation.send(answer("403 Forbidden", f"{'x' * before} Bearer {token} may not do this".encode()))
        conversation.hang_up()

    with serving(reply) as provider:
        lines = ["[targets.one]", f'base_url = "{reference.address.base_url}"', 'api_key_env = "KEY"']
        lines += ["[targets.one.states]", f'url = "{provider.base_url}"', 'token_env = "TOKEN"']
        (tmp_path / "targets.toml").write_text("\n".join(lines), encoding="utf-8")
        environment = {"KEY": reference.address.key, "TOKEN": token}
        said = run(tmp_path, "doctor", "one", **environment)
        said += run(tmp_path, "run", "one", "--only", "CANCEL-1", "--budget", "quick", **environment)
        assert "answered 403" in said
        reasons = ("--target", "one", "--conformance-only", "CANCEL-1", "-rs", "--junitxml", "junit.xml")
        words = [sys.executable, "-m", "pytest", "-p", "conformance.plugin", "--pyargs", "conformance.checks", *reasons]
        done = subprocess.run(
            [*words, *WITHOUT_OTHERS], cwd=tmp_path, env={**inherited(), **environment},
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert "test_pending.py" in done.stdout
        assert ": the state provider answered 403 to" in done.stdout, done.stdout
        said += done.stdout + done.stderr
    assert_nowhere(token, said, tmp_path)


@pytest.mark.parametrize("told", ["geheimKEY77wort", "mein-KEY77wort"])
def test_a_key_in_the_base_url(told: str, tmp_path: Path) -> None:
    """A deployment for one client has it there; whoever goes by its address has the key."""
    key = "geheimKEY77wort"
    with Running(build(key.encode(), base_path=f"/{told}")) as server:
        words = ("--base-url", server.base_url, "--api-key-env", "KEY", "--mode", "guarded", "--budget", "quick")
        said = run(tmp_path, "run", *words, KEY=key)
        assert ": conformant" in said, said
        for others in (("doctor", *words[:4]), ("run", "--plan", *words)):
            said += run(tmp_path, *others, KEY=key)
    result = tmp_path / "reports" / "target"
    audited = run(tmp_path, "audit", str(result))
    assert "Borne out" in audited, audited
    said += audited + run(tmp_path, "report", str(result))
    assert_nowhere(key, said, tmp_path)


@pytest.mark.parametrize("key", ["v1", "http", "127"])
def test_an_audit_says_where_the_key_is_needed_for_the_address(key: str, tmp_path: Path) -> None:
    with Running(build(key.encode(), faults=[], variants=[])) as server:
        words = ("--base-url", server.base_url, "--api-key-env", "KEY", "--mode", "observe", "--only", "BASE-1")
        run(tmp_path, "run", *words, KEY=key)
    audited = command(tmp_path, "audit", str(tmp_path / "reports" / "target"))
    assert audited.status == 2
    assert "what was taken out of the base URL as secret leaves" in audited.said


# --- what breaks


#: Has the suite break with the key at hand, as $BREAKS says.
BREAKING = """
import os, signal, time

def broken(*further):
    key = os.environ["KEY"]
    raise RuntimeError(f"broken {further} with {key} and {key[::-1]}")

def interrupted(*further):
    key = os.environ["KEY"]
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)

match os.environ.get("BREAKS"):
    case "a check":
        from conformance.api import Api
        Api.absent = lambda self, count=1: broken(self.key.headers)
    case "an interruption":
        from conformance.api import Api
        Api.absent = lambda self, count=1: interrupted(self.key.headers)
    case "a fixture":
        from conformance.api import Observations
        Observations.__init__ = lambda self, topics: broken(topics)
    case "a hook":
        from conformance.runner.process import Process
        Process.start = lambda self, check, target: broken(self.targets)
    case "the look before the run":
        from conformance.runner.session import Session
        Session.api = lambda self, check: broken(self.valid, self.key, check)
    case "the recording":
        from conformance.transport.evidence import Recorder
        Recorder.end = lambda self, exchange: broken(self.redactor, exchange)
"""
PYTEST = ("-m", "pytest", "-p", "conformance.plugin", "--pyargs", "conformance.checks", "-k", "key and absent or pet")
WHERE = ("--conformance-report-dir", "reports", "--conformance-base-url", "{url}", "--conformance-api-key-env", "KEY")
LOUD = ("-l", "-vv", "--tb", "long", "--full-trace", "--junitxml", "junit.xml", "-o", "log_cli_level=DEBUG", "-x")


def test_what_takes_secrets_out_is_made_once_however_many_targets_there_are() -> None:
    keys = [Secret(f"the-key-of-{n % 50}") for n in range(60)]
    targets = [Target(f"t{n}", "http://127.0.0.1:1/v1", key, Mode.OBSERVE) for n, key in enumerate(keys)]
    redactors = [redactor_of(target) for target in targets]
    assert all(redactor_of(target) is redactor for target, redactor in zip(targets, redactors, strict=True))
    assert redactors[0] is redactors[50]  # the same key
    assert len({*redactors}) == 50


@pytest.mark.parametrize(
    ("how", "breaks"),
    [
        *(("run", breaks) for breaks in re.findall('case "(.*)":', BREAKING)),
        ("run -n 2", "a check"),
        ("run -n 2", "a hook"),
        ("pytest", "a check"),
        ("pytest", "an interruption"),
        ("pytest", "the look before the run"),
        ("pytest -n 2", "a hook"),
    ],
)
def test_a_suite_that_breaks(breaks: str, how: str, tmp_path: Path, reference: ReferenceServer) -> None:
    address = reference.address
    environment = {"KEY": address.key, "BREAKS": breaks}
    kind, *workers = how.split()
    if kind == "run":
        where = ("--base-url", address.base_url, "--api-key-env", "KEY", "--only", "AUTH-2,PET")
        said = command(tmp_path, "run", *where, *workers, first=BREAKING, **environment).said
    else:  # each process of pytest loads it
        (tmp_path / "sitecustomize.py").write_text(BREAKING, encoding="utf-8")
        others = () if breaks == "a check" else WITHOUT_OTHERS  # one has the plugins of all other libraries beside it
        words = (*(word.format(url=address.base_url) for word in (*PYTEST, *WHERE)), *LOUD, *workers, *others)
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env={**inherited(), **environment, "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
    told = said + "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("results.json"))
    assert ("was cut short" if breaks == "an interruption" else "broken") in told, said
    assert_nowhere(address.key, said, tmp_path)
