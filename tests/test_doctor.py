"""`doctor`: what it says of state providers, and what it asks of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import command

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


def ids(service: Service) -> set[int]:
    return {order.id for order in service.store.all()}


def test_every_message_that_a_run_would_send(folder: Path, service: Service) -> None:
    done = command(folder, "doctor", "staging")
    assert done.status == 0, done.said
    for message in ("pending orders, any ids", "shipped orders, any ids", "pending orders, chosen id", "no orders"):
        assert f"ok    state provider: {message}\n" in done.said
    assert "the key is in key;" in done.said
    assert "ready for a run" in done.said


@pytest.mark.parametrize("target", ["production", "confirmed"])
def test_a_protected_target_is_never_emptied(folder: Path, service: Service, target: str) -> None:
    before = ids(service)
    assert before
    done = command(folder, "doctor", target)
    assert done.status == 0, done.said
    assert "never that of a protected target" in done.said
    confirmed = ("--confirm-cancel", target) if target == "confirmed" else ("--mode", "observe")
    done = command(folder, "run", target, *confirmed, "--only", "LIST", "--budget", "quick")
    assert done.status == 0, done.said
    assert ids(service) == before
    saved = folder / "reports" / target
    rows = json.loads((saved / "results.json").read_text(encoding="utf-8"))["requirements"]
    assert [row["status"] for row in rows if row["id"] == "LIST-7"] == ["excluded"]
    assert command(folder, "audit", str(saved)).status == 0


def test_who_only_looks_need_not_confirm(folder: Path) -> None:
    for words in (("doctor", "confirmed"), ("run", "confirmed", "--plan")):
        done = command(folder, *words)
        assert done.status == 0, done.said
        assert "mode guarded (full " in done.said
    assert command(folder, "run", "confirmed").status == 2


def test_a_provider_that_can_do_little(folder: Path, service: Service) -> None:
    script = "import sys; sys.exit(3)"
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    start = text.index("states = ")
    changed = f"{text[:start]}states = {json.dumps({'command': [sys.executable, '-c', script]})}"
    changed = changed.replace('{"command":', "{ command =")
    (folder / "targets.toml").write_text(changed, encoding="utf-8")
    done = command(folder, "doctor", "staging")
    assert done.status == 0, done.said
    lacking = "cannot do this: pending orders, any ids; every check that needs pending orders would be excluded"
    assert lacking in done.said
    assert "cannot do this: pending orders, chosen id; checks that need chosen ids would be excluded" in done.said


def test_what_cannot_be_checked_is_no_success(folder: Path) -> None:
    words = ("run", "production", "--mode", "observe", "--only", "CANCEL-1")
    done = command(folder, *words)
    assert done.status == 3, done.said
    assert "incomplete (nothing of what was selected can be checked here)" in done.said
