"""The end of a run in a terminal and in a log, and the annotations on GitHub."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from reporting_runs import (
    EVERY,
    KEY,
    broken,
    conformant,
    exchange,
    failing,
    incomplete,
    passing,
    run,
    small,
    undecided,
)
from rich.console import Console

from conformance.commands import running
from conformance.contract.catalogue import load
from conformance.reporting import console, html, outline, summary
from conformance.reporting.run import Circumstances, Run
from conformance.verdict import CheckResult, Failure, Status


def printed(made: Run, *, terminal: bool = False, colour: str | None = None, width: int = 80) -> str:
    file = io.StringIO()
    paper = Console(file=file, width=width, force_terminal=terminal, color_system=colour, legacy_windows=False)  # type: ignore[arg-type]
    console.summary(made, paper)
    return file.getvalue()


def test_golden_of_a_log(golden: Callable[[str, str], None]) -> None:
    golden("console-log.txt", printed(small()))


def test_golden_of_a_terminal(golden: Callable[[str, str], None]) -> None:
    golden("console-terminal.txt", printed(small(), terminal=True))


def test_a_conformant_run_is_one_line() -> None:
    rows = list(load().requirements.values())
    required = sum(row.level == "required" for row in rows)
    covered = f"{required} of {required} required exercised; recommended: {len(rows) - required} passed"
    assert printed(conformant()) == f"staging: conformant, {covered}\n"


def went(made: Run, *order: tuple[str, ...], seconds: float = 41.0, waited: float = 30.0) -> Run:
    """`made` as if its checks had run in these processes, and it had `waited` for a single answer."""
    circumstances = Circumstances((), order, (), KEY, "url", (), (), 0, False, ())
    return replace(made, circumstances=circumstances, seconds=seconds, exchanges=(exchange(0, seconds=waited),))


def test_a_hint_where_another_number_of_processes_would_help() -> None:
    one, two = (("a", "b"),), ((), ("a",), ("b",))
    assert "-n 1 tells causes apart" in str(console.hint(went(failing(), *two)))
    assert console.hint(went(conformant(), *two)) is None
    assert "with -n 4, four checks wait" in str(console.hint(went(conformant(), *one)))
    assert console.hint(went(conformant(), *one, waited=10.0)) is None  # --rate-limit, or a slow state provider
    assert console.hint(went(conformant(), *one, seconds=8.0, waited=7.0)) is None
    near = replace(went(conformant(), *one), exchanges=(exchange(0, seconds=0.003),) * 10_000)
    assert console.hint(near) is None
    in_line = tuple(replace(exchange(0, seconds=8.0), crowded=crowded) for crowded in (False, True))
    assert "with -n 4" in str(console.hint(replace(went(conformant(), *one), exchanges=(*in_line,) * 2)))
    slower = tuple(replace(each, seconds=20.0) if each.crowded else each for each in in_line)
    assert console.hint(replace(went(conformant(), *one), exchanges=slower)) is None
    silent = replace(went(incomplete(), *one), exchanges=(exchange(0, status=None, seconds=40.0),))
    assert console.hint(silent) is None
    assert console.hint(conformant()) is None  # of a time when runs did not say in which processes


def test_a_hint_where_the_service_asked_the_run_to_wait() -> None:
    """Several that were told so at the same time waited together."""
    one = (("a", "b"),)
    told = [replace(exchange(0, status=429, seconds=0.0), started=at, waited=15.0) for at in (100.0, 101.0, 130.0)]
    hint = console.hint(replace(went(conformant(), *one), exchanges=tuple(told)))
    assert hint is not None
    assert hint.startswith("For 31 s of that the run waited")
    assert console.hint(replace(went(conformant(), *one), exchanges=tuple(told[1:2]))) is None


@pytest.mark.parametrize("terminal", [False, True])
def test_curl_lines_are_whole(terminal: bool) -> None:
    lines = printed(failing(), terminal=terminal).splitlines()
    for result in outline.with_status(failing(), Status.FAILED):
        for shown in outline.evidence(failing(), result):
            assert f"  {shown.curl}" in lines


def test_what_to_know_before_a_cancel_is_pasted() -> None:
    """Its order is given back when the run ends, so that it is gone."""
    told = outline.GIVEN_BACK.format(seed=failing().seed)
    for text in (printed(failing()), summary.render(failing()).replace("\\", ""), html.render(failing())):
        assert text.count(told) == 1
    assert told not in printed(replace(failing(), mode="guarded"))
    assert told not in printed(conformant())


def test_what_curl_does_not_show_is_told() -> None:
    """Whoever pastes the line sees a clean 204 otherwise."""
    trailing = CheckResult(
        "every_exchange", "CANCEL-2", Status.FAILED, "x", exchanges=(0,), failure=Failure("a", "b", 0, "curl")
    )
    made = run([*passing("CANCEL-2"), trailing], (exchange(0),))
    for render in (printed, lambda made: summary.render(made).replace("\\", ""), html.render):
        assert outline.HIDDEN in render(made)
        assert outline.HIDDEN not in render(failing())


def given(state: str, *ids: int, check: str) -> dict[str, object]:
    """What is on record of orders that a state provider placed for a check."""
    return {"check": check, "action": "setup", "state": state, "answer": {"orderIds": list(ids)} if ids else {}}


def test_the_orders_that_a_line_is_about() -> None:
    """The states in which they were, for whoever places others like them."""
    messages = (
        given("no orders", check="a"),
        given("pending orders", 1, 2, 3, 4, 5, 71, check="a"),
        given("shipped orders", 72, check="b"),
    )
    made = replace(failing(), messages=messages)
    cancel, other = "curl -X DELETE 'http://h/store/orders/71'", "curl -X DELETE 'http://h/store/orders/72'"
    emptied = "in a store that was emptied before"
    assert outline.orders(made, "a", cancel) == f"6 pending (71, 1, 2, 3, …), {emptied}"
    assert outline.orders(made, "c", f"{cancel}\n{other}") == "1 pending (71), 1 shipped (72)"
    assert outline.orders(made, "a", cancel.replace("71", "99")) == "", "no order had that id"
    assert outline.orders(made, "b", "curl 'http://h/store/orders'") == "1 shipped (72)"
    assert outline.orders(made, "c", "curl 'http://h/store/orders'") == ""
    odd = [
        {"check": "d", "action": "setup", "answer": answer} for answer in ("x", {"orderIds": ["x" * 9, 2**64, True]})
    ]
    assert outline.orders(replace(made, messages=tuple(odd)), "d", "curl 'http://h/store/orders'") == ""


@pytest.mark.parametrize(("check", "seen_by"), [("no_order_lost", "no_order_lost"), ("every_exchange", "another")])
def test_what_to_know_before_a_listing_of_orders_of_the_run_is_pasted(check: str, seen_by: str) -> None:
    """Whoever lists later finds none of them, or others."""
    lost = CheckResult(check, "LIST-3", Status.FAILED, "lost", exchanges=(0,), failure=Failure("it", "none", 0))
    made = run([*passing("LIST-3"), lost], (exchange(0, check=seen_by),))
    told = outline.GIVEN_BACK.format(seed=made.seed)
    placed = replace(made, messages=(given("pending orders", 7, check=seen_by),))
    for render in (printed, lambda made: summary.render(made).replace("\\", ""), html.render):
        assert told in render(placed)
        assert "1 pending (7)" in render(placed)
        assert told not in render(made)
        assert told not in render(replace(placed, messages=(given("pending orders", 7, check="elsewhere"),)))


def test_the_check_is_named_where_something_failed() -> None:
    told = "refuses_shipped (explain CANCEL-3 says what it does)"
    assert f"\n  check    {told}\n  expected 409" in printed(failing())
    told = "`refuses_shipped`, which `explain CANCEL-3` explains"
    assert f"\n- check: {told}\n- expected: `409" in summary.render(failing())


def test_terminal_text_keeps_to_its_width() -> None:
    lines = printed(failing(), terminal=True).splitlines()
    assert all(len(line) <= 80 for line in lines if "curl -sS" not in line)


def test_a_log_is_not_wrapped() -> None:
    made = run(undecided("no answer came, and no answer came again; " * 6, "LIST-1"))
    assert max(map(len, printed(made).splitlines())) > 200


def test_without_colour_there_are_no_escapes() -> None:
    assert "\x1b" not in printed(broken("\x1b[31mred"), terminal=True)
    assert "\x1b" in printed(failing(), terminal=True, colour="standard")


def test_markup_of_a_service_is_text() -> None:
    text = "[red]x[/red] [link=https://example.org]y[/link] :smile:"
    assert text in printed(broken(text))


def test_an_encoding_without_the_characters_is_no_obstacle() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    console.summary(broken("日本 ü"), Console(file=file, width=80))
    file.flush()
    assert b"\\u65e5\\u672c \\xfc" in raw.getvalue()


def test_annotations_are_one_for_each_failure_worst_first() -> None:
    lines = console.github_annotations(failing())
    assert [line.split("=")[1].split()[0] for line in lines] == ["CANCEL-3", "ERR-1", "AUTH-7", "LIST-5"]
    assert [line.split()[0] for line in lines] == ["::error", "::error", "::warning", "::warning"]


def test_at_most_ten_annotations() -> None:
    checks = [CheckResult("c", id_, Status.FAILED, "no") for id_ in load().requirements]
    assert len(console.github_annotations(run(checks))) == 10


def test_annotations_escape_what_github_would_interpret() -> None:
    lines = console.github_annotations(broken("a,b:c%\r\n::error title=x::y"))
    assert all(line.startswith(("::error title=", "::warning title=")) for line in lines)
    assert not any("\n" in line or "\r" in line for line in lines)
    title = lines[0].removeprefix("::error title=").partition("::")[0]
    assert "," not in title
    assert ":" not in title
    assert "%25" in lines[0]


def test_what_is_undecided_for_one_reason_is_one_annotation() -> None:
    checks = [*passing("AUTH-1", "AUTH-2"), *undecided("no answer", "AUTH-1", "AUTH-2")]
    (line,) = console.github_annotations(run(checks))
    assert line.startswith("::warning title=2 requirements not decided for staging::AUTH-1, AUTH-2%0Ano answer")


def test_no_annotations_without_trouble() -> None:
    assert console.github_annotations(conformant()) == []
    assert len(console.github_annotations(incomplete())) == 1


@pytest.mark.parametrize("name", EVERY)
def test_verdict_and_coverage_come_first(name: str) -> None:
    made = EVERY[name]()
    assert printed(made).splitlines()[0] == f"staging: {outline.headline(made)}"


def test_a_summary_that_cannot_be_appended_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "such" / "folder"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    runs = [failing(), replace(failing(), target="production")]
    running._conclude(runs, tmp_path, 1, ())
    said = capsys.readouterr()
    assert [line.partition(":")[0] for line in said.out.splitlines() if ": non-conformant" in line] == [
        "staging",
        "production",
    ]
    assert "::error" in said.out.partition("production: ")[2]
    assert said.err.count("could not be written") == 2
