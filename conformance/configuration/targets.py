"""From the configuration to targets.

Three sources meet here: the configuration file (`targets.toml`), the environment (addresses and keys) and the
command-line options, in rising order of precedence. Keys come from the environment or from files only, and never show
in a `repr`. Every error names the file and the key, and says how to fix it.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.configuration.keys import KEY_ITSELF, api_key, from_environment, token_of
from conformance.configuration.network import file_at, proxy_at, validate_certificates
from conformance.configuration.options import Options, given
from conformance.configuration.shell import curl_options
from conformance.configuration.tables import Table, read
from conformance.target import (
    DEFAULT_BULK_ORDERS,
    DEFAULT_MAX_BODY,
    DEFAULT_TIMEOUT,
    MAX_BODY,
    MAX_BODY_RANGE,
    MAX_TIMEOUT,
    MEGABYTE,
    REFERENCE,
    TIMEOUT_RANGE,
    UNNAMED,
    ConfigError,
    Mode,
    RateLimit,
    Shell,
    States,
    Target,
)
from conformance.urls import address, base_url_of, http_url

#: What a target may be called, which also names a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NAMES = "a name is of up to 100 ASCII letters, digits, '-', '_' and '.', and begins with a letter or digit"


def resolve(names: tuple[str, ...], options: Options, *, looking: bool = False) -> list[Target | None]:
    """The targets called `names`, in order; None stands for the reference server, which the suite starts itself.

    Without a name it is the unnamed target if `options` has a base URL, else the reference. Options that describe a
    service without a base URL are an error: the URL was forgotten, and the reference's verdict would be taken for that
    of the service. If the command is only `looking`, mode full for a protected target need not be confirmed; the target
    is then in mode guarded. Raises ConfigError.
    """
    unnamed = not names
    if unnamed and options.base_url:
        names = (UNNAMED,)
    elif unnamed:
        _refuse_description(options)
        names = (REFERENCE,)
    if options.base_url and len(names) > 1:
        raise ConfigError("--base-url describes one target, and more than one is named: put them into a targets.toml")
    _rate(options.rate_limit, "--rate-limit")
    tables, path = _read(options.config)
    stray = [name for name in options.confirm_cancel if name not in names]
    if stray:
        raise ConfigError(f"--confirm-cancel {stray[0]}: no target of that name is in this run ({', '.join(names)})")
    addresses = _protected_addresses(tables, options.environment)
    targets: list[Target | None] = []
    for name in dict.fromkeys(names):
        if name in tables or options.base_url:
            if not _NAME.fullmatch(name):
                raise ConfigError(f"target {name!r}: {_NAMES}")
            table = {} if unnamed and name == UNNAMED else tables.get(name, {})  # which may be that of another service
            reader = Table(table, str(path or "targets.toml"), f"targets.{name}.")
            targets.append(_target(name, table, reader, addresses, options, looking))
        elif name == REFERENCE:
            targets.append(None)
        else:
            raise _unknown(name, list(dict.fromkeys([*tables, REFERENCE])), path)
    return targets


def _refuse_description(options: Options) -> None:
    """Raise ConfigError if options describe a service, though none gives its base URL."""
    for option in ("api_key_env", "states_url", "ca_bundle", "client_cert", "proxy"):
        if getattr(options, option):
            flag = f"--{option.replace('_', '-')}"
            raise ConfigError(f"{flag} describes a target, so it needs --base-url or a configured target")


def _unknown(name: str, known: list[str], path: Path | None) -> ConfigError:
    """What to raise for a target that is not among the `known` ones, which come from the file at `path`, if any."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}."
    where = f"Targets are read from: {path}"
    if path is None:
        where = "There is no targets.toml in this folder (write one with `store-orders-conformance init`)"
    return ConfigError(f"unknown target {name!r}: {hint} {where}")


def adjusted(target: Target, options: Options) -> Target:
    """`target` with the command-line options that apply to any target: mode, rate limit, limits. Raises ConfigError."""
    mode = Mode[options.mode.upper()] if options.mode else target.mode
    limit = _rate(options.rate_limit, "--rate-limit") or target.rate_limit
    max_body = options.max_body * MEGABYTE if options.max_body else target.max_body
    timeout = options.timeout or target.timeout
    return replace(target, mode=mode, rate_limit=limit, timeout=timeout, max_body=max_body)


def _read(path: Path | None) -> tuple[dict[str, dict[str, Any]], Path | None]:
    """The tables under [targets] in the file at `path`, or in ./targets.toml if there is one."""
    if path is None:
        path = Path("targets.toml")
        if not path.exists():
            return {}, None
    reader = read(path, "--config")
    tables = reader.take("targets", dict, default={})
    reader.finish("targets are written as [targets.NAME]")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: targets.{name} is not a table; write [targets.{name}]")
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{path}: targets.{name}: {_NAMES}")
    return tables, path


def _target(
    name: str, table: dict[str, Any], reader: Table, addresses: Mapping[object, str], options: Options, looking: bool
) -> Target:
    """The target that `table` describes, read through `reader`. Unless the table says whether it is protected, it is if
    it has one of the `addresses` of protected targets."""
    base_url = _base_url(reader, options)
    key, key_for_shell, key_file = api_key(reader, options)
    mode = given(reader, options, "mode")
    protected = reader.take("protected", bool)
    rate_limit = given(reader, options, "rate_limit", hint=': "10/s" or "90/m"')
    bulk_orders = reader.take("bulk_orders", int, default=DEFAULT_BULK_ORDERS)
    if not 0 <= bulk_orders <= 1_000_000:
        raise reader.error(
            "bulk_orders", f"is {bulk_orders}; give a whole number from 0 (leaves the checks out) to 1,000,000"
        )
    states = _states(reader, options)
    timeout = reader.take("timeout", (int, float), default=DEFAULT_TIMEOUT)
    if not 0 < timeout <= MAX_TIMEOUT:
        raise reader.error("timeout", f"is {timeout}; {TIMEOUT_RANGE}")
    max_body = reader.take("max_body", int, default=DEFAULT_MAX_BODY // MEGABYTE)
    if not 1 <= max_body <= MAX_BODY:
        raise reader.error("max_body", f"is {max_body}; {MAX_BODY_RANGE}")
    ca_bundle = given(reader, options, "ca_bundle")
    client_cert = given(reader, options, "client_cert")
    proxy = given(reader, options, "proxy")
    reader.finish()
    base_url = base_url_of(base_url, reader.where("base_url", options.base_url))
    protected_as = "" if protected is not None or _is_production(name) else addresses.get(address(base_url), "")
    if protected is None:
        protected = _is_production(name) or protected_as != ""

    target = Target(
        name=name,
        base_url=base_url,
        key=key,
        mode=_mode(*mode, reader, states),
        shell=Shell(key_for_shell, curl_options(ca_bundle.value, client_cert.value, proxy.value)),
        key_file=key_file,
        states=states,
        protected=protected,
        protected_as=protected_as,
        rate_limit=_rate(*rate_limit),
        bulk_orders=bulk_orders,
        timeout=options.timeout or float(timeout),
        max_body=(options.max_body or max_body) * MEGABYTE,
        ca_bundle=file_at(*ca_bundle),
        client_cert=file_at(*client_cert),
        proxy=proxy_at(*proxy),
    )
    validate_certificates(target, reader, options)
    return _protect(target, table, reader, options, looking)


def _base_url(reader: Table, options: Options) -> str:
    """The base URL as given: as an option, in the table, or in a variable. Raises ConfigError if it is missing, or if
    the variable holds something else."""
    base_url = reader.take("base_url", str)
    base_url_env = reader.take("base_url_env", str, secret=True)  # which may be the key, where two were mistaken
    if options.base_url:
        return options.base_url
    if base_url and base_url_env:
        raise reader.error("base_url", "is given beside base_url_env; keep one of the two")
    if base_url_env:
        where = reader.where("base_url_env")
        base_url = from_environment(where, base_url_env, options.environment)
        # Not to be repeated: it may be the key, where two variables were mistaken.
        base_url_of(base_url, where, name=f"the value of the environment variable {base_url_env}")
    if not base_url:
        raise reader.missing("base_url", 'add base_url = "https://…/v1" or base_url_env = "VARIABLE"')
    return str(base_url)


def _is_production(name: str) -> bool:
    return name.casefold() == "production"


def _protected_addresses(tables: dict[str, dict[str, Any]], environment: Mapping[str, str]) -> dict[object, str]:
    """The names of the protected targets by their addresses: a target with the same address, under another name or
    none, is protected as well."""
    found: dict[object, str] = {}
    for name, table in tables.items():
        url = table.get("base_url") or environment.get(str(table.get("base_url_env")))
        if table.get("protected", _is_production(name)) is True and isinstance(url, str):
            found.setdefault(address(url), name)
    return found


def _since(target: Target) -> str:
    """Why a target is protected, in words that follow "is protected", unless its own table says so."""
    return f", since {target.protected_as!r} has the same address" if target.protected_as else ""


def _protect(target: Target, table: dict[str, Any], reader: Table, options: Options, looking: bool) -> Target:
    """A protected target cancels orders only if both its configuration and the command line say so; else it is in mode
    guarded."""
    if not target.protected or target.mode is not Mode.FULL:
        return target
    if str(table.get("mode")).lower() != "full":
        if options.mode == "full":
            name = "NAME" if target.name == UNNAMED else target.name
            raise ConfigError(
                f"--mode: target {target.name!r} is protected{_since(target)}: --mode full alone does not make it "
                f'cancel orders. Set mode = "full" in [targets.{name}] of {reader.file} and add --confirm-cancel {name}'
            )
        return replace(target, mode=Mode.GUARDED)
    if target.name not in options.confirm_cancel:
        if looking:
            return replace(target, mode=Mode.GUARDED, unconfirmed=True)
        raise ConfigError(
            f"{reader.where('mode')}: is full, and the target is protected{_since(target)}: orders that the state "
            f"provider hands out would be cancelled. Add --confirm-cancel {target.name} if that is meant, or --mode "
            "guarded"
        )
    return target


def _states(reader: Table, options: Options) -> States | None:
    """Where orders come from: what the table says, or the URL in the options, with the token that the table names."""
    table = reader.take("states", dict)
    if table is None and not options.states_url:
        return None
    inner = Table(table or {}, reader.file, f"{reader.prefix}states.")
    url = inner.take("url", str)
    command = inner.take_list("command", str)
    pending = inner.take_ids("pending")
    shipped = inner.take_ids("shipped")
    token_env = inner.take("token_env", str, hint=f". {KEY_ITSELF}", secret=True)
    inner.finish()
    if options.states_url:
        url, command, pending, shipped = options.states_url, (), (), ()
    elif [bool(url), bool(command), bool(pending or shipped)].count(True) != 1:
        said = "needs exactly one of: url, command, or the lists pending and shipped with at least one id"
        raise reader.error("states", said)
    if url:
        http_url(url, "--states-url" if options.states_url else inner.where("url"))
    both = sorted(set(pending) & set(shipped))
    if both:
        raise inner.error("shipped", f"order {both[0]} is listed as pending too")
    if token_env and not url:
        raise inner.error("token_env", "is for a provider with a url")
    if command and shutil.which(command[0], path=options.environment.get("PATH")) is None:
        raise inner.error(
            "command",
            f"names {command[0]!r}, which is no program that can be started from {Path.cwd()}; check its path, and "
            "make it executable (chmod +x)",
        )
    token = None
    if token_env:
        where = inner.where("token_env")
        value = from_environment(where, token_env, options.environment)
        token = token_of(value, f"{where}: the environment variable {token_env}")
    return States(url, command, pending, shipped, token)


def _mode(text: str | None, where: str, reader: Table, states: States | None) -> Mode:
    if text is None:
        return Mode.FULL if states else Mode.GUARDED
    try:
        mode = Mode[text.upper()]
    except KeyError:
        raise ConfigError(f"{where}: is {text!r}; use observe, guarded or full") from None
    if mode is Mode.FULL and states is None:
        raise ConfigError(
            f"{where}: mode full needs a state provider, which hands out the orders to cancel; "
            f"add [{reader.prefix}states] or --states-url, or use mode guarded"
        )
    return mode


def _rate(text: str | None, where: str) -> RateLimit | None:
    try:
        return None if text is None else RateLimit.parse(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {text!r}: {error}") from None
