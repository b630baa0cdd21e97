"""From the configuration to targets.

Three sources meet here: the configuration file (`targets.toml`), the environment (addresses and keys) and the options
of the command line, in rising order of precedence. Keys come from the environment or from files only, and never show
in a `repr`. Every error names the file, the key and the mend.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from conformance.tables import Table, read
from conformance.target import (
    DEFAULT_BULK_ORDERS,
    DEFAULT_KEY_VARIABLE,
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
    Secret,
    Shell,
    States,
    Target,
)
from conformance.urls import address, base_url_of, http_url

#: Advice that fits where a secret stands in the place of the name of its variable, or of the path of its file.
KEY_ITSELF = "If it is the key itself, export it as a variable and give that variable's name"
KEY_ITSELF_NO_FILE = "If it is the key itself, put it into a file and give the path of that"
#: So many characters between underscores are more likely a key, such as one in base32, than part of a variable's name.
LONG_WORD = 16


@dataclass(frozen=True)
class Options:
    """What the command line may say about a target; None where it says nothing."""

    config: Path | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    states_url: str | None = None
    mode: str | None = None
    confirm_cancel: tuple[str, ...] = ()
    rate_limit: str | None = None
    timeout: float | None = None
    max_body: int | None = None  # in megabytes
    ca_bundle: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


def resolve(names: tuple[str, ...], options: Options, *, looking: bool = False) -> list[Target | None]:
    """The targets called `names`, in order; None stands for the reference, which the suite starts itself.

    Without a name: the unnamed target if `options` has a base URL, else the reference; but where they describe a
    service in other ways its URL was forgotten, and the reference's verdict would be taken for its own. Who is only
    `looking` need not confirm mode full for a protected target, which is then in mode guarded. Raises ConfigError.
    """
    unnamed = not names
    if unnamed:
        for option in ("api_key_env", "states_url", "ca_bundle", "client_cert", "proxy"):
            if getattr(options, option) and not options.base_url:
                flag = f"--{option.replace('_', '-')}"
                raise ConfigError(f"{flag} describes a target, so it needs --base-url or a configured target")
        names = (UNNAMED,) if options.base_url else (REFERENCE,)
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
            table = {} if unnamed and name == UNNAMED else tables.get(name, {})  # which may be that of another service
            reader = Table(table, str(path or "targets.toml"), f"targets.{name}.")
            targets.append(_target(name, table, reader, addresses, options, looking))
        elif name == REFERENCE:
            targets.append(None)
        else:
            known = list(dict.fromkeys([*tables, REFERENCE]))
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}."
            where = f"Targets are read from: {path}"
            if path is None:
                where = "There is no targets.toml in this folder (write one with `store-orders-conformance init`)"
            raise ConfigError(f"unknown target {name!r}: {hint} {where}")
    return targets


def adjusted(target: Target, options: Options) -> Target:
    """`target` with what the command line says of any target: mode, rate limit, limits. Raises ConfigError."""
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
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
            raise ConfigError(
                f"{path}: targets.{name}: a name is of ASCII letters, digits, '-', '_' and '.', begins with a "
                "letter or digit, and has 100 characters at most"
            )
    return tables, path


def _target(
    name: str, table: dict[str, Any], reader: Table, addresses: Mapping[object, str], options: Options, looking: bool
) -> Target:
    """The target that `table` describes, through its `reader`; protected, where it does not say, if it is at one of the
    `addresses`."""
    base_url = _base_url(reader, options)
    key, key_for_shell, key_file = _key(reader, options)
    mode = _given(reader, options, "mode")
    protected = reader.take("protected", bool)
    rate_limit = _given(reader, options, "rate_limit", mend=': "10/s" or "90/m"')
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
    ca_bundle = _given(reader, options, "ca_bundle")
    client_cert = _given(reader, options, "client_cert")
    proxy = _given(reader, options, "proxy")
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
        shell=Shell(key_for_shell, _curl_options(ca_bundle.value, client_cert.value, proxy.value)),
        key_file=key_file,
        states=states,
        protected=protected,
        protected_as=protected_as,
        rate_limit=_rate(*rate_limit),
        bulk_orders=bulk_orders,
        timeout=options.timeout or float(timeout),
        max_body=(options.max_body or max_body) * MEGABYTE,
        ca_bundle=_file(*ca_bundle),
        client_cert=_file(*client_cert),
        proxy=_proxy(*proxy),
    )
    _validate_certificates(target, reader, options)
    return _protect(target, table, reader, options, looking)


def _base_url(reader: Table, options: Options) -> str:
    """The base URL as it is given: as an option, in the table or in a variable. Raises ConfigError where it is missing,
    and for a variable that holds another thing."""
    base_url = reader.take("base_url", str)
    base_url_env = reader.take("base_url_env", str, secret=True)  # which may be the key, where two were mistaken
    if options.base_url:
        return options.base_url
    if base_url and base_url_env:
        raise reader.error("base_url", "is given beside base_url_env; keep one of the two")
    if base_url_env:
        where = reader.where("base_url_env")
        base_url = _from_environment(where, base_url_env, options.environment)
        try:
            base_url_of(base_url, where)
        except ConfigError:  # which quotes it, and it may be the key, where two variables were mistaken
            raise ConfigError(
                f"{where}: the environment variable {base_url_env} holds no base URL; it is to be an http or https URL "
                "that ends with /v1 and has neither query nor credentials"
            ) from None
    if not base_url:
        raise reader.missing("base_url", 'add base_url = "https://…/v1" or base_url_env = "VARIABLE"')
    return str(base_url)


class _Given(NamedTuple):
    """What is given for a key, None where that is nothing, and where it stands."""

    value: str | None
    where: str


def _given(reader: Table, options: Options, key: str, mend: str = "") -> _Given:
    """What the command line says of `key`, or else the table."""
    configured, option = reader.take(key, str, mend=mend), getattr(options, key)
    return _Given(option or configured, reader.where(key, option))


def _is_production(name: str) -> bool:
    return name.casefold() == "production"


def _protected_addresses(tables: dict[str, dict[str, Any]], environment: Mapping[str, str]) -> dict[object, str]:
    """The names of the protected targets by address: under another name, or none, it is protected all the same."""
    found: dict[object, str] = {}
    for name, table in tables.items():
        url = table.get("base_url") or environment.get(str(table.get("base_url_env")))
        if table.get("protected", _is_production(name)) is True and isinstance(url, str):
            found.setdefault(address(url), name)
    return found


def _since(target: Target) -> str:
    """Why a target is protected that does not say so itself, to be said after that it is."""
    return f", since {target.protected_as!r} has the same address" if target.protected_as else ""


def _protect(target: Target, table: dict[str, Any], reader: Table, options: Options, looking: bool) -> Target:
    """Both switches or neither: a protected target cancels orders only if its configuration and the command say so."""
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


def _from_environment(where: str, variable: str, environment: Mapping[str, str]) -> str:
    """What the variable holds. Raises ConfigError where that is nothing; it does not repeat what is no usual name of a
    variable, such as one with a word too long to be one: whoever puts a key where the name of its variable belongs has
    it in a log otherwise."""
    value = environment.get(variable, "").strip()
    usual = re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable) and max(map(len, variable.split("_"))) < LONG_WORD
    if not value and not usual:
        advice = 'If it is the URL itself, write base_url = "…"' if "://" in variable else KEY_ITSELF
        raise ConfigError(f"{where}: there is no environment variable of the given name. {advice}")
    if not value:
        what = "is blank" if variable in environment else "is not set"
        raise ConfigError(f"{where}: the environment variable {variable} {what}; export {variable}=…")
    return value


def _key(reader: Table, options: Options) -> tuple[Secret, str, str | None]:
    """The API key, the name of the variable or the command that a curl line would take it from, and its file if it has
    one."""
    if "api_key" in reader.left:
        raise reader.error("api_key", "a key is never written into this file; use api_key_env or api_key_file")
    variable = reader.take("api_key_env", str, mend=f". {KEY_ITSELF}", secret=True)
    file = reader.take("api_key_file", str, mend=f". {KEY_ITSELF_NO_FILE}", secret=True)
    if options.api_key_env:
        variable, file = options.api_key_env, None
    where = reader.where("api_key_env", options.api_key_env)
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise ConfigError(f"{where}: the value is not the name of an environment variable. {KEY_ITSELF}")
    if variable and file:
        raise reader.error("api_key_env", "is given beside api_key_file; keep one of the two")
    if file:
        source, value = f"{reader.where('api_key_file')}: {file}", _key_in_file(reader, file)
    elif variable:
        source = f"{where}: the environment variable {variable}"
        value = _from_environment(where, variable, options.environment)
    elif options.base_url:
        raise ConfigError("--base-url needs --api-key-env VAR: the name of the variable that holds the API key")
    else:
        raise reader.missing("api_key_env", 'add api_key_env = "VARIABLE" or api_key_file = "PATH"')
    return _token(value, source), _printing(file) if file else variable or DEFAULT_KEY_VARIABLE, file


def _token(value: str, source: str) -> Secret:
    """The bearer token `value`, which comes from `source`. Raises ConfigError where it can be none."""
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise ConfigError(
            f"{source} holds a character that no bearer token has (blank, control or non-ASCII); put nothing else there"
        )
    return Secret(value)


def _printing(file: str) -> str:
    """What a shell runs to print the key in `file`."""
    return f"$(cat {'-- ' if file.startswith('-') else ''}{_for_shell(file)})"


def _for_shell(file: str) -> str:
    """The path `file`, which may begin with the home of whoever runs the suite, as a word for a shell."""
    home, rest = ("~/", file[2:]) if file.startswith("~/") else ("", file)
    return home + shlex.quote(rest)


def _curl_options(ca_bundle: str | None, client_cert: str | None, proxy: str | None) -> tuple[str, ...]:
    """The options by which curl reaches a service as the suite does, given these files and this URL."""
    options = [f"--cacert {_for_shell(ca_bundle)}"] if ca_bundle else []
    options += [f"--cert {_for_shell(client_cert)}"] if client_cert else []
    options += [f"--proxy {shlex.quote(proxy)}"] if proxy else []
    return tuple(options)


def _key_in_file(reader: Table, file: str) -> str:
    try:
        value = Path(file).expanduser().read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError, RuntimeError) as error:  # not UTF-8, no path at all, nobody's home
        why = error.strerror if isinstance(error, OSError) else "it is no file of UTF-8 text"
        # Not repeated, nor what the error says of it: it may be the key.
        raise reader.error("api_key_file", f"cannot be read ({why}); check the path. {KEY_ITSELF_NO_FILE}") from None
    if not value:
        raise reader.error("api_key_file", f"{file} is empty; put the API key there")
    return value


def _states(reader: Table, options: Options) -> States | None:
    table = reader.take("states", dict)
    if options.states_url:
        http_url(options.states_url, "--states-url")
        return States(url=options.states_url)
    if table is None:
        return None
    inner = Table(table, reader.file, f"{reader.prefix}states.")
    url = inner.take("url", str)
    command = inner.take_list("command", str)
    pending = inner.take_ids("pending")
    shipped = inner.take_ids("shipped")
    token_env = inner.take("token_env", str, mend=f". {KEY_ITSELF}", secret=True)
    inner.finish()
    given = [name for name, value in (("url", url), ("command", command), ("lists", pending or shipped)) if value]
    if len(given) != 1:
        said = "needs exactly one of: url, command, or the lists pending and shipped with at least one id"
        raise reader.error("states", said)
    if url:
        http_url(url, inner.where("url"))
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
        value = _from_environment(where, token_env, options.environment)
        token = _token(value, f"{where}: the environment variable {token_env}")
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


def _file(path: str | None, where: str) -> str | None:
    if path and not Path(path).expanduser().is_file():
        raise ConfigError(f"{where}: {path}: no such file; check the path")
    return str(Path(path).expanduser()) if path else None


def _validate_certificates(target: Target, reader: Table, options: Options) -> None:
    """Raises ConfigError if a file cannot be used for what it is given for."""
    for key, path in (("ca_bundle", target.ca_bundle), ("client_cert", target.client_cert)):
        if path is None or urlsplit(target.base_url).scheme != "https":
            continue
        import ssl  # takes its time to load, and few targets have such files

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        where = f"{reader.where(key, getattr(options, key))}: {path}"
        try:
            if key == "ca_bundle":
                context.load_verify_locations(path)
            else:
                context.load_cert_chain(path, password=_passphrase)
        except _PassphraseWantedError:
            pass  # OpenSSL asks for it when the key is used
        except (ssl.SSLError, OSError) as error:
            holding = "certificates" if key == "ca_bundle" else "a certificate and its private key"
            raise ConfigError(f"{where} cannot be used: {error}; it is a PEM file with {holding}") from None


class _PassphraseWantedError(Exception):
    pass


def _passphrase() -> str:
    raise _PassphraseWantedError


def _proxy(url: str | None, where: str) -> str | None:
    if not url:
        return None
    if urlsplit(http_url(url, where)).scheme == "https":
        raise ConfigError(f"{where}: {url!r} is a proxy that is itself spoken to over TLS; give its http address")
    return url
