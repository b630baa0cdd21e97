"""`doctor`: what it says of state providers, and what it asks of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_server.api import Service
from reference_server.running import Running, build

KEY = "sk-Doctor.Key_1742"


@pytest.fixture
def service() -> Service:
    return build(KEY.encode())


@pytest.fixture
def folder(tmp_path: Path, service: Service) -> Iterator[Path]:
    """A folder with targets for one service: `staging`, `production`, and `confirmed`, whose mode is full."""
    with Running(service, states_port=0) as server:
        described = f"""
base_url = "{server.base_url}"
api_key_file = "key"
states = {{ url = "{server.states_url}" }}
"""
        targets = {"staging": "", "production": "", "confirmed": 'protected = true\nmode = "full"'}
        tables = [f"[targets.{name}]{described}{more}" for name, more in targets.items()]
        (tmp_path / "targets.toml").write_text("\n".join(tables), encoding="utf-8")
        (tmp_path / "key").write_text(KEY, encoding="utf-8")
        yield tmp_path


def command(folder: Path, *words: str) -> tuple[int, str]:
    """Exit status and output of a command in `folder`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GITHUB", "COV"))}
    asked = [sys.executable, "-m", "conformance", *words]
    done = subprocess.run(asked, cwd=folder, env=inherited, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def ids(service: Service) -> set[int]:
    return {order.id for order in service.store.all()}


def test_every_message_that_a_run_would_send(folder: Path, service: Service) -> None:
    status, said = command(folder, "doctor", "staging")
    assert status == 0, said
    for message in ("pending orders, any ids", "shipped orders, any ids", "pending orders, chosen id", "no orders"):
        assert f"ok    state provider: {message}\n" in said
    assert "the key is in key;" in said
    assert "ready for a run" in said


@pytest.mark.parametrize("target", ["production", "confirmed"])
def test_a_protected_target_is_never_emptied(folder: Path, service: Service, target: str) -> None:
    before = ids(service)
    assert before
    status, said = command(folder, "doctor", target)
    assert status == 0, said
    assert "never that of a protected target" in said
    confirmed = ("--confirm-cancel", target) if target == "confirmed" else ("--mode", "observe")
    status, said = command(folder, "run", target, *confirmed, "--only", "LIST", "--budget", "quick")
    assert status == 0, said
    assert ids(service) == before
    saved = folder / "reports" / target
    rows = json.loads((saved / "results.json").read_text(encoding="utf-8"))["requirements"]
    assert [row["status"] for row in rows if row["id"] == "LIST-7"] == ["excluded"]
    assert command(folder, "audit", str(saved))[0] == 0


def test_who_only_looks_need_not_confirm(folder: Path) -> None:
    for words in (("doctor", "confirmed"), ("run", "confirmed", "--plan")):
        status, said = command(folder, *words)
        assert status == 0, said
        assert "mode guarded (full " in said
    assert command(folder, "run", "confirmed")[0] == 2


def test_a_provider_that_can_do_little(folder: Path, service: Service) -> None:
    script = "import sys; sys.exit(3)"
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    start = text.index("states = ")
    changed = f"{text[:start]}states = {json.dumps({'command': [sys.executable, '-c', script]})}"
    changed = changed.replace('{"command":', "{ command =")
    (folder / "targets.toml").write_text(changed, encoding="utf-8")
    status, said = command(folder, "doctor", "staging")
    assert status == 0, said
    assert "cannot do this: pending orders, any ids; every check that needs pending orders would be excluded" in said
    assert "cannot do this: pending orders, chosen id; checks that need chosen ids would be excluded" in said


def test_what_cannot_be_checked_is_no_success(folder: Path) -> None:
    words = ("run", "production", "--mode", "observe", "--only", "CANCEL-1")
    status, said = command(folder, *words)
    assert status == 3, said
    assert "incomplete (nothing of what was selected can be checked here)" in said
