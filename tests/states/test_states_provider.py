"""The state-provider protocol over HTTP and as a command: whatever a provider does wrong is named, and quoted."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import ssl
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_service import Reply, answer, serving

from conformance.contract.transitions import State
from conformance.states import provider
from conformance.states.provider import (
    FAILURES,
    CannotDo,
    CommandProvider,
    HttpProvider,
    Provider,
    ProviderAbsent,
    ProviderError,
    connect,
    empty,
    setup,
    teardown,
)
from conformance.target import Secret, States
from reference_server.running import Running, build

#: Makes a provider that answers every message with this body; the number is its exit status or HTTP status.
Maker = Callable[..., Provider]


@pytest.fixture(params=["http", "command"])
def answering(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Both kinds of provider, which must not differ in what they say of an answer."""
    opened = contextlib.ExitStack()

    def make(body: str | bytes, refuses: bool = False, fails: bool = False) -> Provider:
        data = body.encode() if isinstance(body, str) else body
        if request.param == "http":
            status = "501 Not Implemented" if refuses else "500 Oops" if fails else "200 OK"
            service = opened.enter_context(serving(answer(status, data)))
            made: Provider = connect(States(url=f"http://127.0.0.1:{service.port}/_states"))
            opened.callback(made.close)
            return made
        script = tmp_path / "provider"
        (tmp_path / "answer").write_bytes(data)
        exit_status = 3 if refuses else 1 if fails else 0
        script.write_text(
            f'#!/bin/sh\ncat > "{tmp_path}/message"\ncat "{tmp_path}/answer"\nexit {exit_status}\n', encoding="utf-8"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return connect(States(command=(str(script),)))

    with opened:
        yield make


# --- what is right


@pytest.mark.parametrize(
    ("state", "params", "body", "ids"),
    [
        (State.PENDING, {"count": 3}, '{"orderIds": [101, 102, 103]}', [101, 102, 103]),
        (State.SHIPPED, {"count": 1}, ' {"orderIds": [-5], "note": "further"}\n', [-5]),
        (State.PENDING, {"ids": [9007199254740993, 7]}, '{"orderIds": [7, 9007199254740993]}', [9007199254740993, 7]),
        (State.PENDING, {"ids": [2**63 - 1]}, f'{{"orderIds": [{2**63 - 1}]}}', [2**63 - 1]),
    ],
)
def test_right_answers(answering: Maker, state: State, params: dict[str, Any], body: str, ids: list[int]) -> None:
    assert setup(answering(body), state, params) == ids


@pytest.mark.parametrize("body", ["{}", "", '{"note": "gone already"}'])
def test_right_teardowns(answering: Maker, body: str) -> None:
    teardown(answering(body), State.PENDING, [101])


# --- what is wrong


@pytest.mark.parametrize(
    ("params", "body", "said"),
    [
        ({"count": 1}, "", "with no JSON: (nothing)"),
        ({"count": 1}, "done", "with no JSON: 'done'"),
        ({"count": 1}, b"\xff\xfe", "with no JSON"),
        ({"count": 1}, "[101]", "with no JSON object: '[101]'"),
        ({"count": 1}, "null", "with no JSON object: 'null'"),
        ({"count": 1}, "{}", "without a list of numbers in orderIds: {}"),
        ({"count": 1}, '{"orderids": [1]}', 'without a list of numbers in orderIds: {"orderids": [1]}'),
        ({"count": 1}, '{"orderIds": 101}', "without a list of numbers in orderIds"),
        ({"count": 1}, '{"orderIds": ["101"]}', "without a list of numbers in orderIds"),
        ({"count": 1}, '{"orderIds": [101.0]}', "without a list of numbers in orderIds"),
        ({"count": 1}, '{"orderIds": [true]}', "without a list of numbers in orderIds"),
        ({"count": 1}, '{"orderIds": [null]}', "without a list of numbers in orderIds"),
        ({"count": 1}, '{"orderIds": [NaN]}', "without a list of numbers in orderIds"),
        ({"count": 2}, '{"orderIds": [101]}', "was asked for 2 orders and handed out 1"),
        ({"count": 1}, '{"orderIds": [101, 102]}', "was asked for 1 order and handed out 2"),
        ({"count": 1}, '{"orderIds": []}', "was asked for 1 order and handed out 0"),
        ({"count": 2}, '{"orderIds": [101, 101]}', "handed out the same order twice"),
        ({"count": 1}, f'{{"orderIds": [{2**63}]}}', "handed out an id outside int64: "),
        ({"count": 1}, f'{{"orderIds": [{"9" * 5000}]}}', "the state provider answered {"),
        ({"ids": [9007199254740993]}, '{"orderIds": [9007199254740992]}', "was asked for the ids [9007199254740993]"),
        ({"ids": [1, 2]}, '{"orderIds": [1]}', "was asked for the ids [1, 2] and handed out [1]"),
        ({"count": 1}, '{"orderIds":' + "[" * 100_000, "the state provider answered {"),
        ({"count": 1}, '{"a":' * 100_000, "the state provider answered {"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_wrong_answers(answering: Maker, params: dict[str, Any], body: str | bytes, said: str) -> None:
    with pytest.raises(ProviderError) as caught:
        setup(answering(body), State.PENDING, params)
    assert said in str(caught.value)
    assert "state provider" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_what_cannot_be_done_is_no_error(answering: Maker) -> None:
    with pytest.raises(CannotDo, match=r"cannot do this \((501|exit status 3)\).*pending orders"):
        setup(answering("", refuses=True), State.PENDING, {"ids": [1]})


def test_teardown_is_always_possible(answering: Maker) -> None:
    with pytest.raises(ProviderError, match=r"(501|exit status 3|cannot do this)"):
        teardown(answering("", refuses=True), State.PENDING, [1])


def test_failures_are_quoted(answering: Maker) -> None:
    with pytest.raises(ProviderError, match=r"(answered 500|exited with 1).*pending orders.*the store is down"):
        setup(answering("the store is down", fails=True), State.PENDING, {"count": 1})
    with pytest.raises(ProviderError, match=r"(answered 500|exited with 1).*teardown.*nothing"):
        teardown(answering("", fails=True), State.PENDING, [1])


# --- over HTTP


def over_http(reply: Reply | bytes, token: str | None = None) -> tuple[list[bytes], str]:
    """What a provider over HTTP was sent, and what was said of its answer."""
    with serving(reply) as service:
        url = f"http://127.0.0.1:{service.port}/_states"
        made = HttpProvider(url, Secret(token) if token else None, ssl.create_default_context)
        try:
            setup(made, State.PENDING, {"count": 3})
            said = ""
        except ProviderError as error:
            said = str(error)
        finally:
            made.close()
        return service.requests, said


def test_the_message_over_http() -> None:
    requests, said = over_http(answer("200 OK", b'{"orderIds": [1, 2, 3]}'), token="states-token")
    assert said == ""
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /_states HTTP/1.1\r\n")
    assert b"Authorization: Bearer states-token" in head
    assert b"Content-Type: application/json" in head
    assert json.loads(body) == {"state": "pending orders", "action": "setup", "params": {"count": 3}}


def test_without_a_token_there_is_no_authorization() -> None:
    requests, _ = over_http(answer("200 OK", b"{}"))
    assert b"authorization" not in requests[0].lower()


def test_a_rate_limit_is_waited_out() -> None:
    """Orders that could not be given back for one would be left behind."""
    late, done = answer("429 Slow down"), answer("200 OK", b'{"orderIds": [1, 2, 3]}')
    requests, said = over_http(lambda talk: (talk.send(done if talk.number else late), talk.hang_up())[1])
    assert said == ""
    assert len(requests) == 2


def test_a_rate_limit_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "TIMEOUT", 1.5)
    _, said = over_http(answer("429 Slow down"))
    assert "within 1.5 s: it kept answering 429" in said


@pytest.mark.parametrize(
    "status", ["201 Created", "204 No Content", "301 Moved", "401 Unauthorized", "404 Not Found", "503 Busy"]
)
def test_statuses(status: str) -> None:
    _, said = over_http(
        answer(status, b"" if status.startswith("204") else b'{"orderIds": [1, 2, 3]}', "Location: /elsewhere")
    )
    assert (said == "") is status.startswith("201")
    assert status.startswith(("201", "204")) or f"answered {status[:3]} to" in said


def test_nobody_listens_there() -> None:
    """Some keep a key in the query of the URL, which is not shown."""
    made = HttpProvider("http://127.0.0.1:9/_states?code=of-the-provider", None, ssl.create_default_context)
    with pytest.raises(
        ProviderError, match=r"the state provider at http://127\.0\.0\.1:9/_states gave no answer to .*refused"
    ):
        setup(made, State.PENDING, {"count": 1})
    made.close()


def test_a_provider_that_hangs_up() -> None:
    _, said = over_http(lambda talk: talk.hang_up())
    assert "gave no answer to" in said


@pytest.mark.parametrize("trickles", [False, True], ids=["silent", "trickles"])
def test_a_provider_that_is_late(monkeypatch: pytest.MonkeyPatch, trickles: bool) -> None:
    """Silent or trickling: in the end the run goes on."""
    monkeypatch.setattr(provider, "TIMEOUT", 0.3)
    body = answer("200 OK", b" " * 300 + b'{"orderIds": [1, 2, 3]}')
    _, said = over_http((lambda talk: talk.trickle(body, 0.02)) if trickles else (lambda talk: None))
    assert "did not carry out" in said


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    _, said = over_http(answer("200 OK", b'{"orderIds": [1, 2, 3]}'))
    assert said == ""


# --- as a command


def command(*words: str) -> CommandProvider:
    return CommandProvider(words)


def test_the_message_to_a_command() -> None:
    """The message is echoed on the error stream, which is quoted."""
    made = command(sys.executable, "-c", "import sys; sys.stderr.write(sys.stdin.read()); sys.exit(4)")
    with pytest.raises(ProviderError, match="exited with 4") as caught:
        setup(made, State.SHIPPED, {"count": 2})
    said = {"state": "shipped orders", "action": "setup", "params": {"count": 2}}
    assert repr(json.dumps(said)) in str(caught.value)


def test_a_command_needs_not_read_its_input() -> None:
    ids = list(range(100_000))
    teardown(command("true"), State.PENDING, ids)


def test_no_shell_is_involved() -> None:
    made = command(
        sys.executable, "-c", "import json, sys; print(json.dumps({'orderIds': [len(sys.argv[1])]}))", "$HOME `id`"
    )
    assert setup(made, State.PENDING, {"count": 1}) == [len("$HOME `id`")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("./no-such-provider",), "the state provider ./no-such-provider cannot be started: No such file or directory"),
        (("/",), "the state provider / cannot be started: Permission denied"),
        (("sh", "-c", "kill -9 $$"), "the state provider sh exited with -9"),
        (("sh", "-c", "exec >&-; exit 0"), "with no JSON: (nothing)"),
    ],
)
def test_commands_that_fail(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ProviderError) as caught:
        setup(command(*words), State.PENDING, {"count": 1})
    assert said in str(caught.value)


def test_a_command_that_may_not_be_executed(tmp_path: Path) -> None:
    script = tmp_path / "provider"
    script.write_text("#!/bin/sh\n", encoding="ascii")
    with pytest.raises(ProviderError, match=r"cannot be started: .*; make it executable \(chmod \+x\)"):
        CommandProvider((str(script),)).call({"state": "no orders", "action": "setup", "params": {}})


def test_a_command_that_names_no_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "provider"
    script.write_text("exit 0\n", encoding="ascii")
    script.chmod(0o700)
    with pytest.raises(ProviderAbsent, match=r"cannot be started: its first line names no interpreter \(#!\)"):
        CommandProvider((str(script),)).call({"state": "no orders", "action": "setup", "params": {}})


def test_a_command_whose_interpreter_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "provider"
    script.write_text("#!/no/such/interpreter\n", encoding="ascii")
    script.chmod(0o700)
    with pytest.raises(ProviderError, match="its first line names an interpreter that is not there"):
        setup(command(str(script)), State.PENDING, {"count": 1})


def test_a_command_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "TIMEOUT", 0.3)
    started = time.monotonic()
    with pytest.raises(ProviderError, match=r"sleep took longer than 0\.3 s for .*pending orders"):
        setup(command("sleep", "30"), State.PENDING, {"count": 1})
    assert time.monotonic() - started < 25


def test_what_a_command_leaves_running_is_not_waited_for() -> None:
    started = time.monotonic()
    made = command("sh", "-c", "sleep 30 & echo '{\"orderIds\": [1]}'")
    assert setup(made, State.PENDING, {"count": 1}) == [1]
    assert time.monotonic() - started < 25


def test_a_command_that_never_stops_talking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "TIMEOUT", 2.0)
    with pytest.raises(ProviderError, match="yes took longer than"):
        setup(command("yes"), State.PENDING, {"count": 1})
    with pytest.raises(ProviderError, match="with no JSON"):
        setup(command("head", "-c", "3000000", "/dev/zero"), State.PENDING, {"count": 1})


@pytest.mark.parametrize("late", ["http", "command"])
def test_a_provider_that_is_always_late_is_given_up(monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    """Else each check would wait for it, an hour in all."""
    monkeypatch.setattr(provider, "TIMEOUT", 0.2)
    with serving(lambda talk: None) as service:
        url = f"http://127.0.0.1:{service.port}/_states"
        made = connect(States(url=url) if late == "http" else States(command=("sleep", "30")))
        for said in ("0.2 s", "0.2 s", "is not asked again, since it took longer than 0.2 s 2 times in a row"):
            with pytest.raises(ProviderError, match=said):
                setup(made, State.PENDING, {"count": 1})
        made.close()
        assert len(service.requests) <= 2


def test_a_provider_that_speaks_no_tls() -> None:
    with Running(build(b"key")) as server:
        made = connect(States(url=server.base_url.replace("http:", "https:")))
        with pytest.raises(ProviderAbsent, match=r"speaks no TLS: is it http://\?; is it running\?"):
            setup(made, State.PENDING, {"count": 1})
        made.close()


def test_a_provider_that_fails_again_and_again_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before it had the time to restart; and orders are returned to the last."""
    monkeypatch.setattr("conformance.states.provider.FAILING_FOR", 0.0)
    with serving(answer("500 Oops", b"{}")) as service:
        made = connect(States(url=f"http://127.0.0.1:{service.port}/_states"))
        for _ in range(FAILURES):
            with pytest.raises(ProviderError, match="answered 500"):
                setup(made, State.PENDING, {"count": 1})
        with pytest.raises(ProviderError, match="is not asked again, since it failed 10 times in a row"):
            setup(made, State.PENDING, {"count": 1})
        assert len(service.requests) == FAILURES
        with pytest.raises(ProviderError, match="answered 500"):
            teardown(made, State.PENDING, [1])
        monkeypatch.setattr("conformance.states.provider.FAILING_FOR", 600.0)
        with pytest.raises(ProviderError, match="answered 500"):
            setup(made, State.PENDING, {"count": 1})
        made.close()


def test_the_example_provider_keeps_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import templates

    monkeypatch.chdir(tmp_path)
    templates.write()
    made = command(sys.executable, "state_provider.py")
    with pytest.raises(
        ProviderError, match=r"store\.db is not there: have state_provider\.py place orders in the store"
    ):
        setup(made, State.PENDING, {"count": 3})
    (statement,) = re.findall("CREATE TABLE .*", Path("state_provider.py").read_text(encoding="utf-8"))
    with contextlib.closing(sqlite3.connect("store.db")) as store:
        store.execute(statement)
    first = setup(made, State.PENDING, {"count": 3})
    assert len(set(first) | set(setup(made, State.SHIPPED, {"count": 2}))) == 5
    assert setup(made, State.PENDING, {"ids": [2**53 + 1]}) == [2**53 + 1]
    teardown(made, State.PENDING, first)
    teardown(made, State.PENDING, first)  # gone or not, never an error
    empty(made)
