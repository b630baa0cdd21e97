"""Runs as they were written are accepted: whatever service, mode, budget and workers, and however they ended."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from commands import command

from conformance.cli import main
from reference_server import amend
from reference_server.running import Running, build

PROVIDER = Path(__file__).parent / "provider.py"
KEY = "sk-Audited.Key_4711"
#: A part of the suite that walks, races, tries batteries of keys and looks at raw connections.
PART = "AUTH-3,AUTH-6,CANCEL-4,CANCEL-7,HTTP-2"


@dataclass
class Case:
    """A run: with which words, the exit status to expect, against which service. A provider that is a command has
    something happen at the message of some number."""

    words: str
    status: int = 0
    faults: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    states: str = "url"
    provider: tuple[int, str] = (0, "")
    key: str = KEY


CASES = {
    "all of it": Case("--budget quick"),
    "in part": Case(f"--only {PART},LIST-6"),
    "four workers": Case(f"-n 4 --only {PART}"),
    "thorough": Case("--budget thorough --only LIST-5,LIST-6"),
    "quick, two workers, failing": Case(f"-n 2 --budget quick --only {PART}", 1, faults=("accepts-any-key",)),
    "walks that go wrong": Case("--only CANCEL-8,CANCEL-1", 1, faults=("cancels-another-order-every-third-time",)),
    "broken answers": Case("--only HTTP-2,CANCEL-2", 1, faults=("sends-short-listings", "sends-null-after-204")),
    "bytes past the end": Case("--only HTTP-2", 1, faults=("sends-bytes-past-the-end",)),
    "bytes that come late": Case("--only CANCEL-2,CANCEL-8", 1, faults=("sends-the-body-of-204-with-the-next-answer",)),
    "the key repeated": Case("--strict --only ERR,AUTH-3", 1, faults=("shows-the-key-it-expected",)),
    "no UTF-8": Case("--only LIST-1,LIST-2", 1, faults=("writes-latin-1",)),
    "waited for": Case("--only AUTH-3", variants=("limits-the-rate",)),
    "observe": Case("--mode observe --skip LIST-6,AUTH-4", states="none"),
    "guarded": Case("--mode guarded --only AUTH-2,CANCEL,LIST-3", states="none"),
    "static lists": Case(f"--only {PART},LIST-5,CANCEL-1", states="lists"),
    "waivers": Case("--only LIST-1,CANCEL-3 --waivers waivers.toml", faults=("lists-as-html",)),
    "a provider that fails once": Case("--only CANCEL-2,CANCEL-10", 3, states="command", provider=(7, "fail")),
    "a provider that cannot choose an id": Case("--only CANCEL-9", states="command", provider=(4, "cannot")),
    "interrupted": Case("-n 1 --only CANCEL-2,CANCEL-9", 130, states="command", provider=(10, "interrupt")),
    "interrupted in the look": Case("-n 1 --only CANCEL-9", 130, states="command", provider=(3, "interrupt")),
    "interrupted at a chosen id": Case("-n 1 --only CANCEL-9", 130, states="command", provider=(4, "interrupt")),
    "interrupted in a walk": Case("-n 1 --only AUTH-1,AUTH-2", 130, states="command", provider=(13, "interrupt")),
    "a worker lost": Case("-n 2 --only CANCEL-2,CANCEL-10", 3, states="command", provider=(6, "kill")),
    "a key that occurs elsewhere": Case("--only AUTH-3,CANCEL-5", key="store-orders-conformance-key"),
    "a padded key": Case(
        "--only AUTH-3,AUTH-5,HTTP-1",
        variants=("answers-400-to-malformed-credentials",),
        key="dGVzdC1rZXk/Pz8+Pg==",
    ),
    "a key as long as a token": Case("--only AUTH-3,AUTH-4", key=f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.{'x4Y-' * 70}"),
    "a key of digits": Case("--only AUTH-3,AUTH-4", key="4711"),
    "a key of one character": Case("--only AUTH-3", key="k"),
    "a key of seven characters": Case("--only AUTH-3", key="secret7"),
    "a key of eight characters": Case("--only AUTH-3", key="secret78"),
    "a key that begins like the path": Case("--only AUTH-3,ERR-1", key="orders12"),
    "a key with a date that is listed": Case("--only LIST-2,LIST-3", key="ci-2026-12-01T00-Zx81"),
    "a key with words that are in every record": Case(
        "--only LIST-1,LIST-2,ERR-2,AUTH-1", key="my-application-quantity-93fz"
    ),
    "a key that is a pattern": Case("--only AUTH-4", key="*"),
}
#: One that covers a failure, and one that is not needed.
WAIVERS = "".join(
    f'[[waiver]]\nrequirement = "{row}"\nreason = "Known."\nexpires = 9999-12-31\n' for row in ("LIST-1", "CANCEL-3")
)
VERDICTS = {0: "conformant", 1: "non-conformant", 3: "incomplete", 130: "incomplete"}


@contextmanager
def configured(case: Case, folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a run in `folder`, where its target `service` is configured while its service runs."""
    with Running(build(case.key.encode(), faults=case.faults, variants=case.variants), states_port=0) as server:
        lines = ["[targets.service]", f'base_url = "{server.base_url}"', 'api_key_env = "KEY"', "bulk_orders = 120"]
        match case.states:
            case "url":
                lines += ["[targets.service.states]", f'url = "{server.states_url}"']
            case "command":
                lines += ["[targets.service.states]", f'command = ["{sys.executable}", "{PROVIDER}"]']
            case "lists":
                pending, shipped = (placed(server, state) for state in ("pending orders", "shipped orders"))
                lines += ["[targets.service.states]", f"pending = {pending}", f"shipped = {shipped}"]
        (folder / "targets.toml").write_text("\n".join(lines), encoding="utf-8")
        (folder / "waivers.toml").write_text(WAIVERS, encoding="utf-8")
        turn, does = case.provider
        told = {"COUNT": str(folder / "count"), "TURN": str(turn), "DOES": does}
        yield {"KEY": case.key, "STATES": str(server.states_url), **told}


def placed(server: Running, state: str) -> list[int]:
    """Ids of orders that the reference has placed in a state."""
    message = {"state": state, "action": "setup", "params": {"count": 30}}
    asked = urllib.request.Request(str(server.states_url), json.dumps(message).encode())
    with urllib.request.urlopen(asked) as answer:
        return list(json.load(answer)["orderIds"])


@pytest.mark.parametrize("name", CASES)
def test_an_honest_run_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    words = ["run", "service", "--seed", "11", *case.words.split()]
    with configured(case, tmp_path) as environment:
        if case.status == 130 or "-n" in words:  # a process of its own, to be interrupted and to have workers
            done = command(tmp_path, *words, **environment)
            status, said = done.status, done.said
        else:
            monkeypatch.chdir(tmp_path)
            for variable, value in environment.items():
                monkeypatch.setenv(variable, value)
            status, said = main(words), "".join(capsys.readouterr())
    assert status == case.status, said
    folder = tmp_path / "reports" / "service"
    stated = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert stated["verdict"] == VERDICTS[status]
    assert main(["audit", str(folder)]) == 0, capsys.readouterr().out
    assert "Borne out" in capsys.readouterr().out


def test_a_service_that_falls_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not asked any more is no gap in the evidence."""
    service = build(KEY.encode())
    answered = count(1)
    amend.before(service, lambda request: time.sleep(1) if next(answered) > 60 else None)
    monkeypatch.setenv("KEY", KEY)
    with Running(service, states_port=0) as server:
        where = ["--base-url", server.base_url, "--states-url", str(server.states_url), "--api-key-env", "KEY"]
        words = ["--timeout", "0.3", "--budget", "quick", "--report-dir", str(tmp_path)]
        assert main(["run", *where, *words]) == 3
    har = (tmp_path / "target" / "evidence.har").read_text(encoding="utf-8")
    assert 4 <= har.count('"_trouble":"timeout"') < 100
    assert main(["audit", str(tmp_path / "target")]) == 0


def test_nobody_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look before the first check is part of the evidence, too."""
    monkeypatch.setenv("KEY", KEY)
    where = ["--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "KEY", "--report-dir", str(tmp_path)]
    assert main(["run", *where]) == 3
    assert main(["audit", str(tmp_path / "target")]) == 0
