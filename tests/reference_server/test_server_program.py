"""The program: start, announcement, stop."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from patience import PATIENCE
from served import AUTHORIZED, KEY

from reference_server.running import UnusableError, build

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "reference_server"]


def start(*options: str, key: str | None = KEY) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "STORE_ORDERS_KEY"}
    if key is not None:
        environment["STORE_ORDERS_KEY"] = key
    return subprocess.Popen(
        [*COMMAND, *options],
        env=environment,
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def lines_until(process: subprocess.Popen[str], last: str) -> list[str]:
    lines: list[str] = []
    while not lines or not lines[-1].startswith(last):
        lines.append(first_line(process))
    return lines


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_status_0(number: signal.Signals) -> None:
    process = start("--ready-json", "--states-port", "0", "--orders", "12")
    ready = json.loads(first_line(process))
    assert ready.keys() == {"base_url", "states_url", "pid"}
    assert ready["pid"] == process.pid
    assert len(httpx.get(ready["base_url"] + "/store/orders", headers=AUTHORIZED).json()) == 12
    process.send_signal(number)
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "", "")


def test_it_ends_with_its_parent() -> None:
    process = start("--ready-json", "--exit-with-parent", "--base-path", "/shop")
    ready = json.loads(first_line(process))
    assert ready["states_url"] is None
    assert ready["base_url"].endswith("/shop/v1")
    assert httpx.get(ready["base_url"] + "/store/orders", headers=AUTHORIZED).status_code == 200
    _, errors = process.communicate(timeout=PATIENCE)  # closes its standard input
    assert (process.returncode, errors) == (0, "")


def test_without_a_key_it_makes_one_and_shows_only_the_file() -> None:
    process = start(key=None)
    announcement = lines_until(process, "Stop")
    url, file = announcement[0].split()[-1], Path(announcement[1].split()[5])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text()
    assert httpx.get(url + "/store/orders", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    process.terminate()
    output, errors = process.communicate(timeout=PATIENCE)
    assert key not in output + errors
    assert f"$(cat {file})" in announcement[2]
    assert not file.exists()


def test_verbose_shows_requests_and_no_key() -> None:
    process = start("--verbose")
    announcement = lines_until(process, "Stop")
    url = announcement[0].split()[-1]
    httpx.get(url + "/store/orders", headers=AUTHORIZED)
    process.terminate()
    output, errors = process.communicate(timeout=PATIENCE)
    assert errors == "GET /v1/store/orders 200\n"
    assert KEY not in output + "".join(announcement)
    assert "$STORE_ORDERS_KEY" in announcement[1]


@pytest.mark.parametrize(
    "options",
    [
        ("--port", "70000"),
        ("--orders", "no-such-file.json"),
        ("--orders", "99999999999"),
        ("--orders", str(ROOT / "reference_server" / "py.typed")),
        ("--base-path", "shop"),
        ("--states-token-env", "NO_SUCH_VARIABLE"),
        ("--fault", "no-such-fault"),
        ("--variant", "no-such-variant"),
        ("--host", "256.0.0.1"),
    ],
)
def test_what_cannot_be_started_is_told_in_one_line(options: tuple[str, ...]) -> None:
    process = start(*options)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert output == ""
    assert errors.startswith("cannot serve: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--orders", "-1"), "the number of orders is 0 to 10000000, not -1"),
        (("--port", "99999"), "--port is 0 to 65535, not 99999"),
        (("--states-port", "-1"), "--states-port is 0 to 65535, not -1"),
        (
            ("--host", "0.0.0.0", "--states-port", "0"),
            "others could reach state control on 0.0.0.0: it takes --states-token-env there",
        ),
        (
            ("--host", "127.example.com", "--states-port", "0"),
            "others could reach state control on 127.example.com: it takes --states-token-env there",
        ),
    ],
)
def test_what_is_wrong_with_a_start(options: tuple[str, ...], said: str) -> None:
    process = start(*options)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (2, f"cannot serve: {said}\n")


@pytest.mark.parametrize("key", ["", "with space", "schlüssel", "\udcff"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    process = start(key=key)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.startswith("cannot serve: the API key must be")


def test_state_control_takes_the_token_of_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "tok")
    process = start("--states-port", "0", "--states-token-env", "TOKEN")
    announced = lines_until(process, "Stop with")
    (url,) = [line.split()[-1] for line in announced if line.startswith("State control at ")]
    for headers, status in (({}, 401), ({"Authorization": "Bearer tok"}, 200)):
        assert httpx.post(url, json={"state": "no orders"}, headers=headers).status_code == status
    process.terminate()
    process.communicate(timeout=PATIENCE)


def test_orders_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    file.write_text('[{"id": 7, "status": "shipped", "petId": 1, "complete": true}, {"id": -3}]')
    process = start("--ready-json", "--orders", str(file))
    url = json.loads(first_line(process))["base_url"] + "/store/orders"
    assert next((order["id"], order["complete"]) for order in httpx.get(url, headers=AUTHORIZED).json()) == (
        7,
        True,
    )
    assert httpx.delete(url + "/7", headers=AUTHORIZED).status_code == 409
    process.terminate()
    process.communicate(timeout=PATIENCE)


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    file.write_text("[" * 200_000)
    process = start("--orders", str(file))
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (2, f"cannot serve: {file} is not JSON, or nested too deeply\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", " must hold a list of orders"),
        ('[{"id": 1}, {"id": 1}]', " has an id twice"),
        ("[{}, 1]", ", order 1: id must be an int64 integer"),
        ('[{"id": 1}, 1]', ", order 2: must be an object"),
        ('[{"id": 1, "colour": "red"}]', ", order 1: unknown field colour"),
        ('[{"id": 1, "status": "lost"}]', ", order 1: status must be pending or shipped"),
        ('[{"id": 1, "complete": "yes"}]', ", order 1: shipDate must be a string and complete a boolean"),
        ('[{"id": 1, "quantity": true}]', ", order 1: quantity must be an int64 integer"),
        ('[{"id": 9223372036854775808}]', ", order 1: id must be an int64 integer"),
    ],
)
def test_what_is_wrong_in_a_file_of_orders_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "orders.json"
    file.write_text(text)
    with pytest.raises(UnusableError) as raised:
        build(KEY.encode(), orders=str(file))
    assert str(raised.value) == f"{file}{said}"


def test_the_packaged_seed_is_the_fixture() -> None:
    packaged = ROOT / "reference_server" / "data" / "orders.json"
    assert packaged.read_bytes() == (ROOT / "fixtures" / "orders.json").read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fault", "is-slow"), "there is no fault named is-slow; it is a variant: --variant is-slow\n"),
        (
            ("--variant", "accepts-any-key"),
            "there is no variant named accepts-any-key; it is a fault: --fault accepts-any-key\n",
        ),
        (("--fault", "is-odd"), "there is no fault named is-odd; `store-orders-conformance faults` lists them\n"),
        (("--fault", "accept-any-key"), "there is no fault named accept-any-key; did you mean accepts-any-key or "),
    ],
)
def test_a_name_under_the_wrong_option(options: tuple[str, str], said: str) -> None:
    process = start(*options)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert said in errors
