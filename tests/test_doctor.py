"""`doctor`: what it says of state providers, and what it asks of them."""

from __future__ import annotations

import itertools
import json
import re
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from authority import Authority
from commands import command
from raw_service import Conversation, answer, serving

from conformance.commands import doctor
from conformance.runner.session import Session
from conformance.states.provider import HttpProvider, ProviderAbsent
from conformance.target import Mode, Secret, States, Target
from conformance.transport.endpoint import ServiceGone
from reference_server import amend
from reference_server.api import Service
from reference_server.orders import Status
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
    with_it = " with --confirm-cancel confirmed" if target == "confirmed" else ""
    assert done.out.endswith(f"ready for a run{with_it}\n")
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


def test_no_order_is_replaced_by_one_with_a_chosen_id(folder: Path, service: Service) -> None:
    service.cannot = {"no orders"}
    service.store.place_ids([2**53 + 3], Status.SHIPPED)
    before = service.store.get(2**53 + 3)
    done = command(folder, "doctor", "staging")
    assert done.status == 0, done.said
    assert "ok    state provider: shipped orders, chosen id\n" in done.said
    assert service.store.get(2**53 + 3) is before


def test_where_any_id_may_be_taken_none_is_chosen(folder: Path, service: Service) -> None:
    service.cannot = {"no orders"}
    service.store.place_ids([order % 2**31 for order in doctor.CHOSEN], Status.PENDING)
    done = command(folder, "doctor", "staging")
    assert done.status == 0, done.said
    assert "chosen id: not asked for, since any could be the id of an order that is there\n" in done.said


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


@pytest.mark.parametrize("words", [("doctor", "staging"), ("run", "staging", "--only", "CANCEL-1")], ids=lambda w: w[0])
def test_a_provider_of_another_store_whose_orders_have_the_same_ids(
    folder: Path, service: Service, words: tuple[str, ...]
) -> None:
    """Its orders are those of somebody else in this store."""
    first = min(ids(service))
    script = f"import json; print(json.dumps({{'orderIds': [{first}] * json.load(open(0))['params'].get('count', 0)}}))"
    provider = f"states = {{ command = {json.dumps([sys.executable, '-c', script])} }}"
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    (folder / "targets.toml").write_text(re.sub("states = .*", lambda _: provider, text), encoding="utf-8")
    done = command(folder, *words)
    said = f"state provider hands out order {first}, which was listed before it was asked for any"
    assert said in done.out, done.said
    if words[0] == "run":
        assert command(folder, "audit", "reports/staging").status == 0


def test_who_is_protected_for_the_sake_of_another_is_told_so(folder: Path) -> None:
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    (folder / "targets.toml").write_text(text.replace("protected = false", ""), encoding="utf-8")
    said = (
        "mode guarded, though there is a state provider: the target has the address of 'production', which is protected"
    )
    assert said in command(folder, "doctor", "staging").out
    assert "guarded, protected since 'production' has the same addr" in command(folder, "run", "staging", "--plan").out
    assert said in command(folder, "run", "staging", "--only", "BASE-2").out
    assert command(folder, "audit", "reports/staging").status == 0


def fails(*given: object) -> None:
    raise RuntimeError


def lets_anyone_list(service: Service) -> None:
    amend.accept(service, lambda request: request.method == "GET")


def fails_to_list(service: Service) -> None:
    service.list_orders = lambda request: service.error(500, "Not now.")


def is_unreachable_at_first(service: Service) -> None:
    """For what is in front of it, which opens a connection then."""
    listed, asked = service.list_orders, count()
    service.list_orders = lambda request: listed(request) if next(asked) else service.json(502, {})


def lists_an_object(service: Service) -> None:
    service.list_orders = lambda request: service.json(200, {"orders": []})


def hides_shipped_orders(service: Service) -> None:
    amend.leave_out(service, amend.shipped)


def keeps_returned_orders(service: Service) -> None:
    service.store.remove = lambda ids: None


def takes_nothing_back(service: Service) -> None:
    service.store.remove = fails


def exchanges_states(service: Service) -> None:
    inner = service.store.place
    other = {Status.PENDING: Status.SHIPPED, Status.SHIPPED: Status.PENDING}
    service.store.place = lambda count, status: inner(count, other[status])


def stays_full(service: Service) -> None:
    service.store.clear = lambda: None


def fails_to_empty(service: Service) -> None:
    service.store.clear = fails


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (lets_anyone_list, 0, "note  key: a listing without it answers 200 OK; a run will say more"),
        (
            fails_to_list,
            2,
            "fail  key: the listing answers 500 Internal Server Error; check base_url and the key; where",
        ),
        (is_unreachable_at_first, 0, "ok    key: accepted; the listing holds"),
        (
            lists_an_object,
            0,
            r"note  state provider: pending orders, any ids: handed out \[.*\]; no listing can be read",
        ),
        (
            hides_shipped_orders,
            2,
            r"fail  state provider: shipped orders, any ids: handed out \[.*\], which the listing",
        ),
        (
            keeps_returned_orders,
            0,
            r"note  state provider: pending orders, any ids: \[.*\] are still listed after tear",
        ),
        (
            exchanges_states,
            0,
            r"note  state provider: pending orders, any ids: cancelling one was answered 409, where a pending order "
            r"gets 204: has the provider placed it in another state\? Else CANCEL-1 will fail\n(?s:.*)"
            r"note  state provider: shipped orders, any ids: cancelling one was answered 204, where a shipped order "
            r"gets 409: .* Else CANCEL-3 will fail\n",
        ),
        (takes_nothing_back, 2, r"fail  state provider: orders left behind \(pending orders\): .* answered 500"),
        (
            stays_full,
            0,
            r"note  state provider: no orders: \d+ orders listed afterwards, placed by others, or the prov",
        ),
        (fails_to_empty, 2, "fail  state provider: no orders: .* answered 500"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_amiss_with_service_and_provider(
    folder: Path, service: Service, change: Callable[[Service], None], status: int, said: str
) -> None:
    change(service)
    done = command(folder, "doctor", "staging")
    assert done.status == status, done.said
    assert re.search(said, done.out), done.said


def test_static_lists_are_looked_up_in_the_listing(folder: Path, service: Service) -> None:
    pending, shipped = (
        [order.id for order in service.store.all() if of(order)] for of in (amend.pending, amend.shipped)
    )
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    for listed, status, said in (
        (pending, 0, f"ok    state provider: {len(pending)} static pending orders\n"),
        ([*pending, 99], 2, "fail  state provider: pending orders [99] are not in the listing; take them out of the"),
    ):
        lists = f"states = {{ pending = {listed}, shipped = {shipped} }}"
        (folder / "targets.toml").write_text(re.sub("states = .*", lists, text), encoding="utf-8")
        done = command(folder, "doctor", "staging")
        assert done.status == status, done.said
        assert said in done.out
        ran = command(folder, "run", "staging", "--only", "BASE-2")
        assert ("the configuration has as pending what the listing does not show: 99\n" in ran.out) is (status == 2)
        assert f"ok    state provider: {len(shipped)} static shipped orders\n" in done.out
    assert command(folder, "audit", "reports/staging").status == 0


def test_another_key_and_another_path(folder: Path) -> None:
    text = (folder / "targets.toml").read_text(encoding="utf-8")
    (folder / "targets.toml").write_text(re.sub(r"(:\d+)/v1", r"\1/shop/v1", text), encoding="utf-8")
    done = command(folder, "doctor", "staging")
    assert done.status == 2, done.said
    assert "fail  base URL: the listing answers 404 Not Found; check the path of base_url\n" in done.out
    (folder / "targets.toml").write_text(text, encoding="utf-8")
    (folder / "key").write_text("another-key", encoding="utf-8")
    for target in ("staging", "production"):  # with cancels, to see whether those take the key, and without
        done = command(folder, "doctor", target)
        assert done.status == 2, done.said
        assert re.search(r"fail  http://\S+ refuses the API key \(401 .* in key\)\. Check that", done.out), done.said


def test_what_cannot_be_checked_is_no_success(folder: Path) -> None:
    words = ("run", "production", "--mode", "observe", "--only", "CANCEL-1")
    done = command(folder, *words)
    assert done.status == 3, done.said
    assert "incomplete (nothing of what was selected can be checked here)" in done.said


def test_nothing_that_a_service_says_acts_on_the_terminal(tmp_path: Path) -> None:
    with serving(answer("500 \x1b]0;mine\x1b\\\x1b[31mred")) as there:
        text = f'[targets.staging]\nbase_url = "{there.base_url}"\napi_key_file = "key"\n'
        (tmp_path / "targets.toml").write_text(text, encoding="utf-8")
        (tmp_path / "key").write_text(KEY, encoding="utf-8")
        done = command(tmp_path, "doctor", "staging")
    assert r"the listing answers 500 \x1b]0;mine\x1b\\x1b[31mred" in done.out
    assert "\x1b" not in done.out


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
        (wrong,) = [line for line in done.out.splitlines() if line.startswith("  fail  ")]
        return wrong.removeprefix("  fail  ").strip()

    return of


@pytest.mark.parametrize(
    ("hosts", "days", "said"),
    [
        (
            ["127.0.0.1"],
            -1,
            r".*: certificate verify failed: certificate has expired; since \w+ +\d+ \S+ \d+ GMT: the service needs.*",
        ),
        (["a.example", "b.example"], 2, ".*; it is for a.example, b.example; check the host in .*"),
    ],
    ids=["expired", "another name"],
)
def test_certificates_that_no_authority_would_mend(
    tmp_path: Path, tell: Callable[..., str], hosts: list[str], days: int, said: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path).certify("own", *hosts, days=days))
    with serving(answer("200 OK", b"[]"), context) as there:
        found = tell(there.base_url, 'ca_bundle = "ca.pem"')
        assert re.fullmatch(f"TLS: {said}", found), found
        assert "ca_bundle" not in found
        assert there.requests == []


def test_an_authority_that_is_not_known(tell: Callable[..., str], server_context: ssl.SSLContext) -> None:
    with serving(answer("200 OK", b"[]"), server_context) as there:
        found = tell(there.base_url)
        assert found.endswith(": certificate verify failed: self-signed certificate; give its authority with ca_bundle")


def test_an_authority_that_is_another_one(
    tmp_path: Path, tell: Callable[..., str], server_context: ssl.SSLContext
) -> None:
    (tmp_path / "other").mkdir()
    Authority(tmp_path / "other")
    with serving(answer("200 OK", b"[]"), server_context) as there:
        found = tell(there.base_url, 'ca_bundle = "other/ca.pem"')
        assert found.endswith("; its authority is not in the ca_bundle given, other/ca.pem"), found


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


def test_a_service_that_stops_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found by then is told all the same."""

    def gone(session: Session) -> Iterator[doctor.Finding]:
        raise ServiceGone("not sent: the last 4 requests to listOrders got no answer")
        yield

    monkeypatch.setattr(doctor, "_states", gone)
    with Running(build(KEY.encode())) as server:
        session = Session(Target("staging", server.base_url, Secret(KEY), Mode.GUARDED), seed=0)
        *before, (level, said) = doctor.findings(session)
        session.close()
    assert {level for level, _ in before} == {doctor.OK}
    where = server.base_url.removeprefix("http://").removesuffix("/v1")
    assert (level, said) == (
        doctor.FAIL,
        f"connection: {where} stopped answering: not sent: the last 4 requests to listOrders got no answer; "
        "try again later",
    )


def test_nobody_is_sent_the_key_in_the_clear(tell: Callable[..., str]) -> None:
    with serving(answer("401 Unauthorized", b"{}")) as there:
        tell(there.base_url.replace("http:", "https:"))
        assert KEY.encode() not in b"".join(there.requests)


def test_a_name_without_an_address(tell: Callable[..., str]) -> None:
    found = tell("http://nowhere.invalid/v1")
    assert re.fullmatch(r"DNS: nowhere\.invalid has no address \(.*\); check base_url", found), found


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


def test_a_provider_that_is_not_there_is_one_cause(tmp_path: Path) -> None:
    """It would be told of with each message else."""
    with Running(build(KEY.encode())) as server:
        words = ("--base-url", server.base_url, "--api-key-env", "KEY", "--states-url", "http://127.0.0.1:9/_states")
        done = command(tmp_path, "doctor", *words, KEY=KEY)
    wrong = [line for line in done.out.splitlines() if line.startswith("  fail  ")]
    assert done.status == 2, done.said
    (said,) = wrong
    assert said.endswith("Connection refused; is it running?")


@pytest.mark.parametrize("turn", range(1, 14))
def test_a_provider_that_is_gone_at_some_message(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever that is, it is a finding, and what was found by then is told."""
    with Running(build(KEY.encode()), states_port=0) as server:
        states = States(url=server.states_url)
        session = Session(Target("staging", server.base_url, Secret(KEY), Mode.FULL, states=states), seed=0)
        call, calls = HttpProvider.call, itertools.count(1)

        def gone(provider: HttpProvider, message: dict[str, Any]) -> dict[str, Any]:
            if next(calls) >= turn:
                raise ProviderAbsent("the state provider is gone")
            return call(provider, message)

        monkeypatch.setattr(HttpProvider, "call", gone)
        told = list(doctor.findings(session))
        session.close()
    assert told[0][0] == doctor.OK
    assert any(level == doctor.FAIL and "the state provider is gone" in said for level, said in told)
