"""Targets from file, environment and command line; every mistake is named with its place and its mend."""

from __future__ import annotations

import errno
import pickle
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import program

from conformance.configuration.options import Options
from conformance.configuration.targets import resolve
from conformance.target import (
    DEFAULT_BULK_ORDERS,
    DEFAULT_TIMEOUT,
    UNNAMED,
    ConfigError,
    Mode,
    RateLimit,
    Secret,
    Shell,
    States,
    Target,
)
from conformance.transport.endpoint import tls_settings

KEY = "sk-Harness.Key_42"
ENVIRONMENT = {
    "KEY": KEY,
    "URL": "https://api.example.com/v1",
    "OLD": "https://api.example.com/v0",
    "TOKEN": "states-token",
    "EMPTY": " ",
    "ODD": "a b",
}
BASE = {"base_url": '"https://api.example.com/v1"', "api_key_env": '"KEY"'}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where no targets.toml is, unless a test writes one."""
    monkeypatch.chdir(tmp_path)


def table(name: str = "staging", states: str | None = None, **changed: str | None) -> str:
    """A [targets.NAME] as TOML, with keys changed, or left out where None."""
    row = {key: value for key, value in {**BASE, **changed}.items() if value is not None}
    lines = [f"[targets.{name}]", *(f"{key} = {value}" for key, value in row.items())]
    return "\n".join([*lines, *([f"[targets.{name}.states]", states] if states else []), ""])


def read(text: str | bytes, *names: str, **options: Any) -> list[Target | None]:
    """The targets called `names` in a configuration."""
    Path("conf.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return resolve(names or ("staging",), Options(config=Path("conf.toml"), environment=ENVIRONMENT, **options))


def one(text: str, name: str = "staging", **options: Any) -> Target:
    (target,) = read(text, name, **options)
    assert target is not None
    return target


def error(text: str | bytes, name: str = "staging", **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, name, **options)
    said = str(caught.value)
    assert "\n" not in said
    assert KEY not in said
    return said


# --- what is read


def test_a_small_target() -> None:
    target = one(table())
    assert target == Target("staging", "https://api.example.com/v1", target.key, Mode.GUARDED, shell=Shell("KEY"))
    assert target.key.reveal() == KEY
    assert (target.bulk_orders, target.timeout) == (DEFAULT_BULK_ORDERS, DEFAULT_TIMEOUT)
    assert not target.protected


def test_a_whole_target(tmp_path: Path, certificate: Path) -> None:
    shutil.copy(certificate, tmp_path / "ca.pem")
    target = one(
        table(
            base_url=None,
            base_url_env='"URL"',
            mode='"observe"',
            protected="true",
            rate_limit='"90/m"',
            bulk_orders="0",
            timeout="3",
            max_body="120",
            ca_bundle='"ca.pem"',
            client_cert='"ca.pem"',
            proxy='"http://127.0.0.1:3128"',
            states='url = "http://127.0.0.1:9000/_states"\ntoken_env = "TOKEN"',
        )
    )
    assert target.base_url == "https://api.example.com/v1"
    assert (target.mode, target.protected, target.bulk_orders, target.timeout) == (Mode.OBSERVE, True, 0, 3.0)
    assert (target.rate_limit, target.max_body) == (RateLimit(90, 60.0), 120_000_000)
    assert (target.ca_bundle, target.client_cert, target.proxy) == ("ca.pem", "ca.pem", "http://127.0.0.1:3128")
    options = ("--cacert ca.pem", "--cert ca.pem", "--proxy http://127.0.0.1:3128")
    assert target.shell == Shell("KEY", options)
    assert target.states is not None
    assert target.states.url == "http://127.0.0.1:9000/_states"
    assert target.states.token is not None
    assert target.states.token.reveal() == "states-token"


def test_a_key_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n", encoding="utf-8")
    assert one(table(api_key_env=None, api_key_file='"key"')).key.reveal() == KEY


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """As editors on Windows write it."""
    (tmp_path / "key").write_text(f"{KEY}\r\n", encoding="utf-8-sig")
    text = "\ufeff" + table(api_key_env=None, api_key_file='"key"')
    assert one(text).key.reveal() == KEY


def test_the_command_line_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    text = table(mode='"guarded"', rate_limit='"1/s"', timeout="3", proxy='"http://a:1"', states="pending = [1]")
    target = one(
        text,
        base_url="http://127.0.0.1:8080/v1/",
        api_key_env="TOKEN",
        states_url="http://127.0.0.1:1/s",
        mode="full",
        rate_limit="2/s",
        timeout=0.5,
        max_body=64,
        ca_bundle="ca.pem",
        proxy="http://b:1",
    )
    assert target.base_url == "http://127.0.0.1:8080/v1"
    assert (target.key.reveal(), target.shell.key) == ("states-token", "TOKEN")
    assert target.states == States(url="http://127.0.0.1:1/s")
    assert (target.mode, target.timeout, target.ca_bundle, target.proxy) == (Mode.FULL, 0.5, "ca.pem", "http://b:1")
    assert (target.rate_limit, target.max_body) == (RateLimit(2, 1.0), 64_000_000)


@pytest.mark.parametrize("states", ['url = "http://h/s"\ntoken_env = "TOKEN"', 'token_env = "TOKEN"'])
def test_another_provider_gets_the_token_of_the_table(states: str) -> None:
    found = one(table(states=states), states_url="http://other/s").states
    assert found is not None
    assert found.token is not None
    assert (found.url, found.token.reveal()) == ("http://other/s", "states-token")
    assert "states.tokn_env" in error(table(states="tokn_env = 'TOKEN'"), states_url="http://other/s")


@pytest.mark.parametrize("name", ["../x", "a/b", "x[1]", "a::b", ".x", "", "ä", "a" * 101])
def test_a_name_that_names_no_folder(name: str) -> None:
    with pytest.raises(ConfigError, match="a name is of up to 100 ASCII letters"):
        resolve((name,), Options(base_url="http://127.0.0.1:1/v1", api_key_env="KEY", environment=ENVIRONMENT))


def test_an_unnamed_target_without_a_file() -> None:
    options = Options(base_url="http://127.0.0.1:1/v1", api_key_env="KEY", environment=ENVIRONMENT)
    (target,) = resolve((), options)
    assert target is not None
    assert (target.name, target.mode, target.states) == ("target", Mode.GUARDED, None)


def test_a_target_of_the_same_name_has_nothing_to_do_with_the_unnamed_one() -> None:
    """Its provider would be told to empty another store. By its name it can be had, also elsewhere."""
    text = table("target", "pending = [1]", mode='"full"')
    where = {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "KEY"}
    Path("conf.toml").write_text(text, encoding="utf-8")
    (unnamed,) = resolve((), Options(config=Path("conf.toml"), environment=ENVIRONMENT, **where))
    assert unnamed is not None
    assert (unnamed.mode, unnamed.states) == (Mode.GUARDED, None)
    named = one(text, "target", **where)
    assert (named.mode, named.states) == (Mode.FULL, States(pending=(1,)))
    protected = table("target", protected="true")
    Path("conf.toml").write_text(protected, encoding="utf-8")
    where["base_url"] = "https://api.example.com/v1"
    options = Options(config=Path("conf.toml"), environment=ENVIRONMENT, mode="full", states_url="http://h/s", **where)
    with pytest.raises(ConfigError, match=r"Set mode = \"full\" in \[targets.NAME\] of .* --confirm-cancel NAME"):
        resolve((), options)


def test_no_target_is_the_reference() -> None:
    assert resolve((), Options(environment={})) == [None]
    assert resolve(("reference",), Options(environment={})) == [None]


def test_several_targets_in_their_order_and_once() -> None:
    text = table("a") + table("b")
    assert [target and target.name for target in read(text, "b", "reference", "a", "b")] == ["b", None, "a"]


def test_the_configuration_in_this_folder() -> None:
    Path("targets.toml").write_text(table(), encoding="utf-8")
    (target,) = resolve(("staging",), Options(environment=ENVIRONMENT))
    assert target is not None
    assert target.name == "staging"


@pytest.mark.parametrize("url", ["http://[::1]:8080/v1", "https://h/a/b/v1", "http://h:65535/v1"])
def test_base_urls(url: str) -> None:
    assert one(table(base_url=f'"{url}/"')).base_url == url


# --- modes and protection


@pytest.mark.parametrize(
    ("name", "configured", "states", "options", "mode"),
    [
        ("staging", None, None, {}, Mode.GUARDED),
        ("staging", None, "pending = [1]", {}, Mode.FULL),
        ("staging", '"guarded"', "pending = [1]", {}, Mode.GUARDED),
        ("staging", '"full"', "pending = [1]", {"mode": "observe"}, Mode.OBSERVE),
        ("production", None, None, {}, Mode.GUARDED),
        ("production", None, "pending = [1]", {}, Mode.GUARDED),
        ("production", '"full"', "pending = [1]", {"mode": "guarded"}, Mode.GUARDED),
        ("production", '"full"', "pending = [1]", {"confirm_cancel": ("production",)}, Mode.FULL),
        ("production", '"FULL"', "pending = [1]", {"confirm_cancel": ("production",)}, Mode.FULL),
        ("production", None, "pending = [1]", {"confirm_cancel": ("production",)}, Mode.GUARDED),
        ("production", '"observe"', None, {}, Mode.OBSERVE),
        ("Production", None, "pending = [1]", {}, Mode.GUARDED),
    ],
)
def test_modes(name: str, configured: str | None, states: str | None, options: dict[str, Any], mode: Mode) -> None:
    assert one(table(name, states, mode=configured), name, **options).mode is mode


def test_production_can_be_unprotected_and_others_protected() -> None:
    assert one(table("production", "pending = [1]", protected="false"), "production").mode is Mode.FULL
    assert one(table(states="pending = [1]", protected="true")).mode is Mode.GUARDED


@pytest.mark.parametrize(
    ("production", "other"),
    [
        ({}, "https://api.example.com/v1"),
        ({}, "HTTPS://API.example.com:443/v1/"),
        ({}, "https://api.example.com./v1"),
        ({}, "https://api.example.com//v1"),
        ({}, "https://api.example.com/old/../v1"),
        ({}, "http://api.example.com/v1"),
        ({"base_url": None, "base_url_env": '"URL"'}, "https://api.example.com/v1"),
        ({"base_url": '"http://10.0.0.7/v1"'}, "http://10.7/v1"),
        ({"base_url": '"http://127.0.0.1:8080/v1"'}, "http://LOCALHOST:8080/v1"),
        ({"base_url": '"http://[::1]:8080/v1"'}, "http://127.1:8080/v1"),
        ({"base_url": '"http://localhost:8080/v1"'}, "http://0.0.0.0:8080/v1"),
        ({"base_url": '"http://[2001:db8::1]/v1"'}, "http://[2001:DB8:0::1]/v1"),
    ],
)
def test_an_address_is_protected_whatever_it_is_called(production: dict[str, str | None], other: str) -> None:
    text = table("production", **production) + table("other", "pending = [1]", base_url=f'"{other}"')
    assert one(text, "other").mode is Mode.GUARDED
    assert one(text, "other", api_key_env="KEY", base_url="https://else.example.com/v1").mode is Mode.FULL
    text = table("production", **production)
    unnamed = {"base_url": other, "api_key_env": "KEY", "states_url": "http://127.0.0.1:9/_states"}
    assert one(text, UNNAMED, **unnamed).mode is Mode.GUARDED
    assert one(text, UNNAMED, **unnamed).protected_as == "production"
    assert error(text, UNNAMED, mode="full", **unnamed).startswith(
        "--mode: target 'target' is protected, since 'production' has the same address: "
    )
    said = error(text + table("other", "pending = [1]", base_url=f'"{other}"', mode='"full"'), "other")
    assert "Add --confirm-cancel other if that is meant" in said
    open_ = table("other", "pending = [1]", base_url=f'"{other}"', protected="false")
    assert one(table("production", **production) + open_, "other").mode is Mode.FULL


def test_odd_addresses_of_other_targets_are_no_concern() -> None:
    text = table("production", base_url='"http://[::1/v1"') + table("other", "pending = [1]")
    assert one(text, "other").mode is Mode.FULL
    assert one(table("production", base_url="3") + table("other", "pending = [1]"), "other").mode is Mode.FULL


def test_both_switches_or_neither() -> None:
    said = error(table("production", "pending = [1]", mode='"full"'), "production")
    assert "conf.toml: targets.production.mode: is full, and the target is protected" in said
    assert "Add --confirm-cancel production if that is meant, or --mode guarded" in said
    said = error(table("production", "pending = [1]"), "production", mode="full", confirm_cancel=("production",))
    assert said.startswith("--mode: target 'production' is protected: ")
    assert 'Set mode = "full" in [targets.production] of conf.toml and add --confirm-cancel production' in said


def test_modes_are_ordered() -> None:
    assert Mode.OBSERVE < Mode.GUARDED < Mode.FULL
    assert [str(mode) for mode in Mode] == ["observe", "guarded", "full"]


# --- static lists


def test_static_lists() -> None:
    states = one(table(states="pending = [3, 1]\nshipped = [2]")).states
    assert states == States(pending=(3, 1), shipped=(2,))
    assert states is not None
    assert states.static


# --- mistakes


def S(states: str) -> str:  # noqa: N802 - short, for the table below
    return table(states=states)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            table(base_url=None),
            'conf.toml: targets.staging.base_url: is missing; add base_url = "https://…/v1" or base_url_env',
        ),
        (
            table(base_url=None, base_ulr='"x"'),
            "conf.toml: targets.staging.base_url: is missing; is 'base_ulr' meant for it?",
        ),
        (table(base_url_env='"URL"'), "targets.staging.base_url: is given beside base_url_env; keep one of the two"),
        (
            table(base_url=None, base_url_env='"NONE"'),
            "targets.staging.base_url_env: the environment variable NONE is not set; export NONE=…",
        ),
        (table(base_url=None, base_url_env='"EMPTY"'), "the environment variable EMPTY is blank"),
        (
            table(base_url=None, base_url_env='"KEY"'),
            "targets.staging.base_url_env: the value of the environment variable KEY is no http or https URL; give a",
        ),
        (
            table(base_url=None, base_url_env='"OLD"'),
            "targets.staging.base_url_env: the value of the environment variable OLD does not end with /v1. Each base",
        ),
        (table(base_url="5"), "conf.toml: targets.staging.base_url: is 5, and should be a string"),
        (
            table(base_url='"https://api.example.com"'),
            "targets.staging.base_url: 'https://api.example.com' does not end with /v1.",
        ),
        (table(base_url='"https://api.example.com"'), "did you mean https://api.example.com/v1?"),
        (table(base_url='"https://api.example.com/v12"'), "does not end with /v1"),
        (
            table(base_url='"https://api.example.com/v1?x=1"'),
            "conf.toml: targets.staging.base_url: has a query or fragment; a base URL ends with /v1",
        ),
        (table(base_url='"https://api.example.com/v1#x"'), "has a query or fragment"),
        (table(base_url='"https://api.example.com/v1?"'), "has a query or fragment"),
        (table(base_url='"api.example.com/v1"'), "'api.example.com/v1' is no http or https URL"),
        (table(base_url='"ftp://api.example.com/v1"'), "is no http or https URL"),
        (table(base_url='"https:///v1"'), "is no http or https URL"),
        (table(base_url='"https://h:99999/v1"'), "is no http or https URL"),
        (table(base_url='"https://h:x/v1"'), "is no http or https URL"),
        (table(base_url='"https://[::1/v1"'), "is no http or https URL"),
        (table(base_url='"https://[::1]x/v1"'), "is no http or https URL"),
        (table(base_url='"https://[v1.x]/v1"'), "is no http or https URL"),
        (table(base_url='"https://10.0.0.256/v1"'), "is no http or https URL"),
        (table(base_url='"http://10.0.0.07:8080/v1"'), "is no http or https URL"),
        (table(base_url='"https://api..example.com/v1"'), "is no http or https URL"),
        (table(base_url=f'"https://{"a" * 64}.example.com/v1"'), "is no http or https URL"),
        (table(base_url='"https://例え.example/v1"'), "holds a character that no URL can carry"),
        (table(base_url='"https://api.example.com/a b/v1"'), "holds a character that no URL can carry"),
        (table(base_url='"https://api.example.com/ä/v1"'), "holds a character that no URL can carry"),
        *(
            (table(base_url=f'"{url}"'), "targets.staging.base_url: credentials in a URL end up in logs; take them out")
            for url in ("https://a:b@h/v1", "https://a@h/v1", "ftp://a:b@h/v1", "https://a:b@[::1/v1")
        ),
        (
            table(api_key=f'"{KEY}"'),
            "targets.staging.api_key: a key is never written into this file; use api_key_env or api_key_file",
        ),
        (
            table(api_key_env=None),
            'targets.staging.api_key_env: is missing; add api_key_env = "VARIABLE" or api_key_file = "PATH"',
        ),
        (table(api_key_file='"key"'), "targets.staging.api_key_env: is given beside api_key_file; keep one of the two"),
        (
            table(api_key_env='"NONE"'),
            "conf.toml: targets.staging.api_key_env: the environment variable NONE is not set; export NONE=…",
        ),
        (table(api_key_env='"EMPTY"'), "the environment variable EMPTY is blank"),
        (
            table(api_key_env='"ODD"'),
            "conf.toml: targets.staging.api_key_env: the environment variable ODD holds a character that no",
        ),
        (table(api_key_env=None, api_key_file='"none"'), "targets.staging.api_key_file: cannot be read (No such file"),
        (table(mode='"half"'), "conf.toml: targets.staging.mode: is 'half'; use observe, guarded or full"),
        (table(mode="1"), "targets.staging.mode: is 1, and should be a string"),
        (table(mode='"full"'), "conf.toml: targets.staging.mode: mode full needs a state provider"),
        (table(mode='"full"'), "add [targets.staging.states] or --states-url, or use mode guarded"),
        (table(protected='"yes"'), "targets.staging.protected: is 'yes', and should be true or false"),
        (
            table(rate_limit='"fast"'),
            "conf.toml: targets.staging.rate_limit: 'fast': a rate limit is written 10/s or 90/m",
        ),
        (table(rate_limit='"0/s"'), "a rate limit is written 10/s or 90/m"),
        (table(rate_limit='""'), "conf.toml: targets.staging.rate_limit: '': a rate limit is written 10/s or 90/m"),
        (table(rate_limit="10"), 'targets.staging.rate_limit: is 10, and should be a string: "10/s" or "90/m"'),
        (
            table(bulk_orders="-1"),
            "targets.staging.bulk_orders: is -1; give a whole number from 0 (leaves the checks out) to 1,000,000",
        ),
        (table(bulk_orders="1000001"), "targets.staging.bulk_orders: is 1000001"),
        (table(bulk_orders="true"), "targets.staging.bulk_orders: is True, and should be a whole number"),
        (table(bulk_orders="1.5"), "targets.staging.bulk_orders: is 1.5, and should be a whole number"),
        (table(timeout="0"), "conf.toml: targets.staging.timeout: is 0; give a number of seconds above 0"),
        (table(timeout="-5"), "targets.staging.timeout: is -5; give a number of seconds above 0"),
        (table(max_body="0"), "targets.staging.max_body: is 0; give a whole number of megabytes from 1 to 4096"),
        (table(max_body="5000"), "targets.staging.max_body: is 5000; give a whole number of megabytes"),
        (table(timeout='"5"'), "targets.staging.timeout: is '5', and should be a"),
        (table(ca_bundle='"none.pem"'), "conf.toml: targets.staging.ca_bundle: none.pem: no such file; check the path"),
        (
            table(client_cert='"none.pem"'),
            "conf.toml: targets.staging.client_cert: none.pem: no such file; check the path",
        ),
        (table(proxy='"foo"'), "conf.toml: targets.staging.proxy: 'foo' is no http or https URL"),
        (
            table(proxy='"https://proxy.example:8443"'),
            "targets.staging.proxy: 'https://proxy.example:8443' is a proxy that is itself spoken to over TLS",
        ),
        (table(base_ulr='"x"'), "conf.toml: targets.staging.base_ulr: unknown key; did you mean 'base_url'?"),
        (table(colour='"x"'), "targets.staging.colour: unknown key; known keys: base_url, base_url_env, api_key_env,"),
        (
            table(states="colour = 1\npending = [1]"),
            "targets.staging.states.colour: unknown key; known keys: url, command, pending",
        ),
        (S("pendign = [1]"), "targets.staging.states.pendign: unknown key; did you mean 'pending'?"),
        (
            S('url = "http://h"\ncommand = ["x"]'),
            "targets.staging.states: needs exactly one of: url, command, or the lists pending",
        ),
        (S('url = "http://h"\npending = [1]'), "needs exactly one of"),
        (S("pending = []"), "needs exactly one of"),
        (S('token_env = "TOKEN"'), "needs exactly one of"),
        (S('url = "h:1"'), "conf.toml: targets.staging.states.url: 'h:1' is no http or https URL"),
        (S('url = "http://a:b@h"'), "targets.staging.states.url: credentials in a URL end up in logs"),
        (
            S('url = "http://h"\ntoken_env = "NONE"'),
            "targets.staging.states.token_env: the environment variable NONE is not set",
        ),
        (
            S('url = "http://h"\ntoken_env = "ODD"'),
            "targets.staging.states.token_env: the environment variable ODD holds a character that no bearer token has",
        ),
        (S('command = ["x"]\ntoken_env = "TOKEN"'), "targets.staging.states.token_env: is for a provider with a url"),
        (S('command = "x"'), "targets.staging.states.command: is 'x', and should be a list"),
        (
            S('command = ["./nope"]'),
            "targets.staging.states.command: names './nope', which is no program that can be started from ",
        ),
        (S("pending = []"), "shipped with at least one id"),
        (S("command = [1]"), "targets.staging.states.command: holds 1, and should hold strings only"),
        (S('pending = ["1"]'), "targets.staging.states.pending: holds '1', and should hold numbers only"),
        (S("pending = [1, 9223372036854775808]"), "targets.staging.states.pending: holds 9223372036854775808, and the"),
        (S("shipped = [-9223372036854775809]"), "targets.staging.states.shipped: holds -9223372036854775809, and the"),
        (S("pending = [true]"), "targets.staging.states.pending: holds True, and should hold numbers only"),
        (S("pending = [1.0]"), "targets.staging.states.pending: holds 1.0, and should hold numbers only"),
        (S("pending = [1, 2, 1]"), "targets.staging.states.pending: holds 1 2 times; an order serves one check"),
        (S("pending = [1, 2]\nshipped = [2]"), "targets.staging.states.shipped: order 2 is listed as pending too"),
        (
            table().replace("[targets.staging]", "[target.staging]"),
            "conf.toml: target: unknown key; did you mean 'targets'?",
        ),
        ("targets = 3", "conf.toml: targets: is 3, and should be a table"),
        ("[targets]\nstaging = 3", "conf.toml: targets.staging is not a table; write [targets.staging]"),
        ('[targets."a b"]\n', "conf.toml: targets.a b: a name is of up to 100 ASCII letters, digits, '-', '_' and '.'"),
        ('[targets."../x"]\n', "a name is of up to 100 ASCII letters"),
        ("[targets", "conf.toml: is not valid TOML: "),
        (table(bulk_orders="9" * 5000), "conf.toml: is not valid TOML: Exceeds the limit"),
        (b"\xff\xfe[", "conf.toml: is not UTF-8 text; save it as UTF-8"),
    ],
)
def test_mistakes_are_named(text: str | bytes, said: str) -> None:
    assert said in error(text)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(
        ConfigError, match=r"^none\.toml: cannot be read \(No such file.*\); check the path given with --config$"
    ):
        resolve(("staging",), Options(config=Path("none.toml"), environment=ENVIRONMENT))


@pytest.mark.parametrize("key", ["ca_bundle", "client_cert"])
def test_files_that_are_no_certificates(tmp_path: Path, key: str) -> None:
    """Which of the two it is, and where it was named."""
    (tmp_path / "no.pem").write_text("not a certificate", encoding="utf-8")
    holding = "certificates" if key == "ca_bundle" else "a certificate and its private key"
    said = error(table(**{key: '"no.pem"'}))
    assert said.startswith(f"conf.toml: targets.staging.{key}: no.pem cannot be used: ")
    assert said.endswith(f"it is a PEM file with {holding}")
    option: dict[str, Any] = {key: "no.pem"}
    assert error(table(), **option).startswith(f"--{key.replace('_', '-')}: no.pem cannot be used: ")
    assert one(table(base_url='"http://h/v1"', **{key: '"no.pem"'})).base_url == "http://h/v1"


def test_a_private_key_with_a_passphrase(tmp_path: Path, certificate: Path) -> None:
    """Is not asked for here: it would be asked for again by each process that uses it."""
    made = [program("openssl"), "pkey", "-in", str(certificate), "-aes256", "-passout", "pass:word", "-out", "key.pem"]
    subprocess.run(made, check=True, capture_output=True, cwd=tmp_path)
    public = certificate.read_text(encoding="utf-8").partition("-----BEGIN PRIVATE KEY")[0]
    (tmp_path / "both.pem").write_text(public + (tmp_path / "key.pem").read_text(encoding="utf-8"), encoding="utf-8")
    assert one(table(client_cert='"both.pem"')).client_cert == "both.pem"


def test_a_passphrase_that_nobody_can_enter(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asks(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", asks)
    target = Target("t", "https://h/v1", Secret("a-key"), Mode.OBSERVE, client_cert=str(certificate))
    with pytest.raises(ConfigError, match=r"has a passphrase, which nobody was there to enter.*openssl pkey"):
        tls_settings(target)


def test_int64_ends_where_it_does() -> None:
    states = one(table(states="pending = [-9223372036854775808, 9223372036854775807]")).states
    assert states == States(pending=(-(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    ("setting", "written"),
    [
        (setting, written)
        for setting in ("api_key_env", "api_key_file", "token_env", "base_url_env")
        for written in ('"sk-live-12345678"', '"sklive12345678"', '"~sk/12345678"', '"\\u0000sk-12345678"')
    ]
    + [(setting, '"SK_JBSWY3DP12345678"') for setting in ("api_key_env", "token_env")]
    + [(setting, "12345678") for setting in ("api_key_env", "api_key_file", "token_env")],
)
def test_a_key_in_the_place_of_its_name_is_not_repeated(setting: str, written: str) -> None:
    match setting:
        case "token_env":
            text = table(states=f'url = "http://h"\ntoken_env = {written}')
        case "base_url_env":
            text = table(base_url=None, base_url_env=written)
        case _:
            text = table(**{"api_key_env": None, setting: written})
    said = error(text)
    assert "12345678" not in said
    assert setting in said
    assert "If it is the key itself, " in said


@pytest.mark.parametrize(
    ("file", "shell"),
    [
        ("./key", "$(cat ./key)"),
        ("my key", "$(cat 'my key')"),
        ("~/my key", "$(cat ~/'my key')"),
        ("-key", "$(cat -- -key)"),
    ],
)
def test_a_curl_line_takes_the_key_from_its_file(
    file: str, shell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / Path(file).name).write_text(KEY, encoding="utf-8")
    assert one(table(api_key_env=None, api_key_file=f'"{file}"')).shell.key == shell


def test_an_empty_key_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n", encoding="utf-8")
    assert "conf.toml: targets.staging.api_key_file: key is empty; put the API key there" in error(
        table(api_key_env=None, api_key_file='"key"')
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stagin", "unknown target 'stagin': did you mean 'staging'? Targets are read from: conf.toml"),
        ("referense", "did you mean 'reference'?"),
        ("qa", "unknown target 'qa': known here: staging, reference. Targets are read from: conf.toml"),
    ],
)
def test_unknown_targets(name: str, said: str) -> None:
    assert said in error(table(), name)


def test_an_unknown_target_without_a_file() -> None:
    with pytest.raises(
        ConfigError,
        match=r"There is no targets\.toml in this folder \(write one with `store-orders-conformance init`\)",
    ):
        resolve(("staging",), Options(environment={}))


def test_the_reference_is_known_once() -> None:
    assert "known here: reference. Targets are read from: conf.toml" in error("[targets.reference]\n", "qa")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"confirm_cancel": ("stagging",)},
            "--confirm-cancel stagging: no target of that name is in this run (staging)",
        ),
        ({"states_url": "h:1"}, "--states-url: 'h:1' is no http or https URL"),
        ({"base_url": "http://h"}, "--base-url: 'http://h' does not end with /v1"),
        ({"api_key_env": "NONE"}, "--api-key-env: the environment variable NONE is not set; export NONE=…"),
        ({"rate_limit": "fast"}, "--rate-limit: 'fast': a rate limit is written 10/s or 90/m"),
        ({"rate_limit": f"1{'0' * 400}/s"}, "a rate limit is written 10/s or 90/m"),
        ({"ca_bundle": "none.pem"}, "--ca-bundle: none.pem: no such file"),
        ({"client_cert": "none.pem"}, "--client-cert: none.pem: no such file"),
        ({"mode": "full"}, "--mode: mode full needs a state provider"),
        ({"proxy": "socks5://h"}, "--proxy: 'socks5://h' is no http or https URL"),
    ],
)
def test_mistakes_on_the_command_line(options: dict[str, Any], said: str) -> None:
    assert said in error(table(), **options)


@pytest.mark.parametrize("url", ["http://h:99999/s?key=sk_1", "ftp://h/s?key=sk_1", "http://h/ä?key=sk_1"])
def test_the_query_of_a_url_is_not_repeated(url: str) -> None:
    """Some keep a key there."""
    said = error(table(), states_url=url)
    assert said.startswith(f"--states-url: '{url.partition('?')[0]}' ")
    assert "sk_1" not in said


def test_an_unnamed_target_needs_its_key() -> None:
    with pytest.raises(ConfigError, match="--base-url needs --api-key-env VAR"):
        resolve((), Options(base_url="http://h/v1", environment=ENVIRONMENT))


@pytest.mark.parametrize("option", ["api_key_env", "states_url", "ca_bundle", "client_cert", "proxy"])
def test_a_service_without_its_base_url_is_not_the_reference(option: str) -> None:
    with pytest.raises(ConfigError, match=f"--{option.replace('_', '-')} describes a target, so it needs --base-url"):
        resolve((), Options(**{option: "KEY"}))
    assert resolve(("reference",), Options(**{option: "KEY"})) == [None]


def test_a_base_url_describes_one_target() -> None:
    assert "--base-url describes one target" in error_of_two()


def error_of_two() -> str:
    with pytest.raises(ConfigError) as caught:
        read(table("a") + table("b"), "a", "b", base_url="http://h/v1")
    return str(caught.value)


# --- small values


@pytest.mark.parametrize(("text", "interval"), [("10/s", 0.1), ("90/m", 2 / 3), ("1/m", 60.0)])
def test_rate_limits(text: str, interval: float) -> None:
    limit = RateLimit.parse(text)
    assert limit.interval == pytest.approx(interval)


@pytest.mark.parametrize("text", ["10", "10/h", "-1/s", "1.5/s", " 1/s", "1/s ", "١/s", "01/s", ""])
def test_what_is_no_rate_limit(text: str) -> None:
    with pytest.raises(ValueError, match="10/s or 90/m"):
        RateLimit.parse(text)


def test_a_secret_shows_nowhere_by_accident() -> None:
    target = one(table(states='url = "http://h"\ntoken_env = "TOKEN"'))
    for text in (repr(target), str(target), f"{target}", f"{target.key!s}", repr(vars(target))):
        assert KEY not in text
        assert "states-token" not in text
    with pytest.raises(TypeError, match="not to be pickled"):
        pickle.dumps(Secret(KEY))
    assert KEY not in repr(Options(environment=ENVIRONMENT))


def test_the_query_of_a_base_url_is_not_repeated() -> None:
    """It may hold a key."""
    assert "hidden-4711" not in error(table(base_url='"https://api.example.com/v1?key=hidden-4711"'))
