"""`doctor`: what it says of state providers, and what it asks of them."""

from __future__ import annotations

import json
import re
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from authority import certify, make_authority
from commands import command
from raw_service import Conversation, answer, serving

from reference_server import amend
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
        targets = {"staging": "protected = false", "production": "", "confirmed": 'protected = true\nmode = "full"'}
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
    assert "the key is in key\n" in done.said
    assert "ready for a run" in done.said


def test_the_reference_has_a_key_of_its_own(tmp_path: Path) -> None:
    done = command(tmp_path, "doctor")
    assert done.status == 0, done.said
    assert "ok    configuration: the suite makes up a key for its own server\n" in done.said
    assert "$" not in done.said


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


def test_orders_that_are_listed_without_ids_are_no_fault_of_the_provider(folder: Path, service: Service) -> None:
    amend.orders(service, lambda _, fields: {"petId": fields["petId"]})
    done = command(folder, "doctor", "staging")
    assert done.status == 0, done.said
    assert "ok    state provider: shipped orders, any ids\n" in done.said


def test_a_provider_that_can_do_little(folder: Path, service: Service) -> None:
    script = "import sys; sys.exit(3)"
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    start = text.index("states = ")
    changed = f"{text[:start]}states = {json.dumps({'command': [sys.executable, '-c', script]})}"
    changed = changed.replace('{"command":', "{ command =")
    (folder / "targets.toml").write_text(changed, encoding="utf-8")
    done = command(folder, "doctor", "staging")
    assert done.status == 2, done.said
    assert '"count": 2}}; a state provider has to place pending orders' in done.said
    lacking = "cannot do this: shipped orders, any ids; every check that needs shipped orders would be excluded"
    assert lacking in done.said
    assert "cannot do this: pending orders, chosen id; checks that need chosen ids would be excluded" in done.said


def test_what_cannot_be_checked_is_no_success(folder: Path) -> None:
    words = ("run", "production", "--mode", "observe", "--only", "CANCEL-1")
    done = command(folder, *words)
    assert done.status == 3, done.said
    assert "incomplete (nothing of what was selected can be checked here)" in done.said


# --- no connection


@pytest.fixture
def tell(tmp_path: Path) -> Callable[..., str]:
    """What `doctor` finds wrong with a service at an address, with further lines of its target."""

    def of(base_url: str, *lines: str) -> str:
        (tmp_path / "key").write_text(KEY, encoding="utf-8")
        table = ["[targets.staging]", f'base_url = "{base_url}"', 'api_key_file = "key"', *lines]
        (tmp_path / "targets.toml").write_text("\n".join(table), encoding="utf-8")
        done = command(tmp_path, "doctor", "staging", "--timeout", "2")
        assert done.status == 2, done.said
        (wrong,) = [line for line in done.out.splitlines() if line.startswith("  wrong ")]
        return wrong.removeprefix("  wrong ").strip()

    return of


@pytest.mark.parametrize(
    ("names", "days", "said"),
    [
        (
            "IP:127.0.0.1",
            -1,
            r".*: certificate verify failed: certificate has expired; since \w+ +\d+ \S+ \d+ GMT: the service needs.*",
        ),
        ("DNS:a.example,DNS:b.example", 2, ".*; it is for a.example, b.example; check the host in .*"),
    ],
    ids=["expired", "another name"],
)
def test_certificates_that_no_authority_would_mend(
    tmp_path: Path, tell: Callable[..., str], names: str, days: int, said: str
) -> None:
    make_authority(tmp_path)
    certify(tmp_path, "own", names, days)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem", tmp_path / "own.key")
    with serving(answer("200 OK", b"[]"), context) as there:
        found = tell(there.base_url, 'ca_bundle = "ca.pem"')
        assert re.fullmatch(f"TLS: {said}", found), found
        assert "ca_bundle" not in found
        assert there.requests == []


def test_an_authority_that_is_not_known(tell: Callable[..., str], server_context: ssl.SSLContext) -> None:
    with serving(answer("200 OK", b"[]"), server_context) as there:
        found = tell(there.base_url)
        assert found.endswith(": certificate verify failed: self-signed certificate; give its authority with ca_bundle")


def test_tls_to_a_port_that_speaks_plain_http(tell: Callable[..., str]) -> None:
    with Running(build(KEY.encode())) as server:
        found = tell(server.base_url.replace("http:", "https:"))
    assert found == "TLS: this port speaks plain HTTP: is it http:// in base_url?"


@pytest.mark.parametrize(
    ("banner", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP: .*SSH-2.0.*Check base_url"),
        (b"-ERR unknown command\r\n", "does not speak HTTP: .*Check base_url"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "This port speaks TLS: is it https:// in base_url"),
        (b"", "gives no HTTP answer: .*[.] Check base_url"),
    ],
    ids=["ssh", "redis", "TLS", "nothing"],
)
def test_what_speaks_no_http(tell: Callable[..., str], banner: bytes, said: str) -> None:
    def speak(talk: Conversation) -> None:
        talk.send(banner)
        talk.hang_up()

    with serving(speak) as there:
        found = tell(there.base_url)
    assert re.search(f"^connection: .*{said}", found), found


def test_nobody_is_sent_the_key_in_the_clear(tell: Callable[..., str]) -> None:
    with serving(answer("401 Unauthorized", b"{}")) as there:
        tell(there.base_url.replace("http:", "https:"))
        assert KEY.encode() not in b"".join(there.requests)


def test_a_proxy_that_cannot_be_reached(tell: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
    found = tell("http://127.0.0.1:9/v1", f'proxy = "{proxy}"')
    assert re.fullmatch(rf"proxy: {proxy} cannot be reached \(.*refused.*\); check proxy", found), found


def test_a_service_that_a_proxy_cannot_reach(tell: Callable[..., str]) -> None:
    with serving(answer("502 Bad Gateway", b"")) as proxy:
        address = proxy.base_url.removesuffix("/v1")
        found = tell("https://service.example/v1", f'proxy = "{address}"')
    where = f"the proxy {address.removeprefix('http://')} opens no tunnel to service.example"
    assert found.startswith(f"connection: {where}: 502 Bad Gateway; check base_url")
