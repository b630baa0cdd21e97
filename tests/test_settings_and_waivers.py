"""Options as settings, and waivers: what they mean, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import cli
from conformance.configuration import settings, waivers
from conformance.contract import catalogue
from conformance.target import ConfigError
from conformance.verdict import Waiver

ROWS = catalogue.load().requirements
TODAY = date(2026, 11, 21)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where no targets.toml is."""
    monkeypatch.chdir(tmp_path)


# --- settings


def test_without_options() -> None:
    read = settings.read((), {})
    assert read.selected == ROWS.keys()
    assert (read.strict, read.budget, read.waivers, read.report_dir) == (False, "standard", None, None)
    assert 0 <= read.seed < 2**31
    assert read.options.timeout is None


def test_options_are_handed_on() -> None:
    values: dict[str, Any] = {
        "config": "a.toml", "base_url": "http://h/v1", "api_key_env": "KEY", "states_url": "http://h/s", "mode": "full",
        "confirm_cancel": ["a", "b"], "strict": True, "only": ["AUTH"], "skip": ["AUTH-1"], "budget": "quick",
        "seed": 7, "rate_limit": "1/s", "timeout": 2.5, "max_body": 120, "ca_bundle": "ca", "client_cert": "cc",
        "proxy": "http://p", "waivers": "w", "report_dir": "r",
    }  # fmt: skip
    assert {flag[2:].replace("-", "_") for flag in settings.OPTIONS} == values.keys()
    read = settings.read(("t",), values)
    told = read.options
    assert (told.config, told.base_url, told.api_key_env) == (Path("a.toml"), "http://h/v1", "KEY")
    assert (told.states_url, told.mode, told.confirm_cancel) == ("http://h/s", "full", ("a", "b"))
    assert (told.rate_limit, told.timeout, told.max_body, told.ca_bundle) == ("1/s", 2.5, 120, "ca")
    assert (told.client_cert, told.proxy) == ("cc", "http://p")
    assert (read.targets, read.strict, read.budget, read.seed) == (("t",), True, "quick", 7)
    assert (read.waivers, read.report_dir) == (Path("w"), Path("r"))
    assert read.selected == {id_ for id_ in ROWS if id_.startswith("AUTH-")} - {"AUTH-1"}


def test_the_command_line_yields_the_values_that_settings_read() -> None:
    parsed: argparse.Namespace = cli.parser().parse_args(
        ["run", "a", "--only", "list", "--seed", "0", "--timeout", "3"]
    )
    read = settings.read(tuple(parsed.targets), vars(parsed))
    assert read.seed == 0
    assert read.options.timeout == 3.0
    assert {ROWS[id_].family for id_ in read.selected} == {"LIST"}


@given(
    st.sets(st.sampled_from([*ROWS, *catalogue.load().families])),
    st.sets(st.sampled_from([*ROWS, *catalogue.load().families])),
)
def test_only_and_skip(only: set[str], skip: set[str]) -> None:
    def named(words: set[str]) -> set[str]:
        return {row.id for row in ROWS.values() if row.id in words or row.family in words}

    expected = (named(only) if only else set(ROWS)) - named(skip)
    values = {"only": [word.lower() for word in only] or None, "skip": [" , ".join(skip)] if skip else None}
    if expected:
        assert settings.read((), values).selected == expected
    else:
        with pytest.raises(ConfigError, match="leave no requirement"):
            settings.read((), values)


@pytest.mark.parametrize(
    "flag", [flag for flag, how in settings.OPTIONS.items() if "metavar" in how and not {"type", "action"} & how.keys()]
)
def test_an_empty_value_is_not_taken_for_none(flag: str) -> None:
    """`--base-url "$URL"` with no such variable would judge the reference server, and pass."""
    name = flag[2:].replace("-", "_")
    with pytest.raises(ConfigError, match=f"{flag} .*(is empty|names nothing)"):
        settings.read((), {name: ""})


@pytest.mark.parametrize("flag", ["--only", "--skip"])
def test_an_empty_list_is_not_taken_for_none(flag: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} '' names nothing"):
        settings.read((), {flag[2:]: [""]})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"only": ["AUTH-99"]},
            "--only: 'AUTH-99' is no requirement and no family (AUTH, LIST, CANCEL, ERR, HTTP, BASE, PET)",
        ),
        ({"skip": ["AUTH", "CANCLE"]}, "--skip: 'CANCLE' is no requirement and no family"),
        ({"only": ["AUTH"], "skip": ["AUTH"]}, "--only and --skip together leave no requirement"),
        ({"only": [","]}, "--only ',' names nothing"),  # nothing was named: not a reason to run everything
        ({"timeout": 0.0}, "--timeout 0: give a number of seconds above 0, up to 3600"),
        ({"timeout": -1.0}, "--timeout -1"),
        ({"timeout": float("nan")}, "--timeout nan"),
        ({"timeout": float("inf")}, "--timeout inf"),
        ({"timeout": 3601.0}, "--timeout 3601"),
        ({"max_body": 0}, "--max-body 0: give a whole number of megabytes from 1 to 4096"),
        ({"max_body": 4097}, "--max-body 4097"),
        ({"seed": -1}, "--seed -1: give a whole number from 0 to 2^63 - 1"),
        ({"seed": 2**63}, "--seed 9223372036854775808"),
    ],
)
def test_what_is_wrong_is_said(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings.read((), values)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


# --- waivers


def waiver(**changed: str | None) -> str:
    row = {"requirement": '"CANCEL-7"', "reason": '"single writer"', "expires": "2027-03-31", **changed}
    return "\n".join(["[[waiver]]", *(f"{name} = {value}" for name, value in row.items() if value is not None), ""])


def read(text: str | bytes, tmp_path: Path) -> dict[str, Waiver]:
    path = tmp_path / "waivers.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return waivers.read(path, TODAY)


def test_waivers_are_read(tmp_path: Path) -> None:
    text = waiver(link='"https://example.com/7"') + waiver(requirement='"AUTH-7"', expires="2026-11-21", reason='" r "')
    found = read(text, tmp_path)
    assert found == {
        "CANCEL-7": Waiver("CANCEL-7", "single writer", "2027-03-31", "https://example.com/7"),
        "AUTH-7": Waiver("AUTH-7", "r", "2026-11-21"),  # until the day itself is over
    }
    assert read("", tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            waiver(expires="2026-11-20"),
            "waiver 1 (CANCEL-7): expired on 2026-11-20; fix the service, or agree on a new date",
        ),
        (
            waiver(expires=None),
            "waiver 1 (CANCEL-7): expires: is missing; say until when, YYYY-MM-DD, a date without quotes",
        ),
        (waiver(expires='"2027-03-31"'), "should be a date, YYYY-MM-DD without quotes"),
        (waiver(expires="2027-03-31T00:00:00Z"), "a date without quotes"),
        (waiver(expires="true"), "should be a date, YYYY-MM-DD without quotes"),
        (waiver(reason=None), "waiver 1 (CANCEL-7): reason: is missing"),
        (waiver(reason='"  "'), "reason: is missing"),
        (waiver(raeson='"x"'), "raeson: unknown key; did you mean 'reason'?"),
        (waiver(reason="5"), "reason: is 5, and should be a string"),
        (waiver(link="5"), "link: is 5, and should be a string"),
        (waiver(requirement=None), "waiver 1: requirement is missing; give the id of one"),
        (waiver(requirement='"CANCEL"'), "'CANCEL' is not a requirement; did you mean one of CANCEL-1, CANCEL-2"),
        (
            waiver(requirement='"cancel-7"'),
            "'cancel-7' is not a requirement; did you mean CANCEL-7?",
        ),
        (waiver(requirement='["CANCEL-7"]'), "is not a requirement; give the id of one"),
        (
            waiver(until="2027-01-01"),
            "waiver 1 (CANCEL-7): until: unknown key; known keys: requirement, reason",
        ),
        (waiver() + waiver(reason='"again"'), "waiver 2 (CANCEL-7): requirement: there is a waiver for it already"),
        (
            '[waiver]\nrequirement = "CANCEL-7"\n',
            "waiver: is a table, and should be a list of [[waiver]] tables",
        ),
        ("waiver = [1]", "waiver: holds 1, and should hold tables only"),
        ('waiver = ["CANCEL-7"]', "waiver: holds 'CANCEL-7', and should hold tables only"),
        ("[[waivers]]\n", "waivers: unknown key; did you mean 'waiver'?"),
        ("waiver = 3", "waiver: is 3, and should be a list of [[waiver]] tables"),
        ("[[waiver]", "is not valid TOML"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_wrong_waivers_are_named(text: str | bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "waivers.toml"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ConfigError, match=r"cannot be read .*; check the path given with --waivers"):
            waivers.read(path, TODAY)
