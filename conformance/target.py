"""A target: where a service is, how it may be treated, and who provides its orders.

Three sources meet here: the configuration file (`targets.toml`), the environment (addresses and keys) and the options
of the command line, in rising order of precedence. Keys come from the environment or from files only, and never show
in a `repr`. Every error names the file, the key and the mend.
"""

from __future__ import annotations

import difflib
import os
import posixpath
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

REFERENCE = "reference"
#: The name of a target that is given on the command line only.
UNNAMED = "target"
#: How a curl line names a key of which nothing else is told.
DEFAULT_KEY_VARIABLE = "STORE_ORDERS_KEY"
DEFAULT_BULK_ORDERS = 1100
DEFAULT_TIMEOUT = 10.0
MEGABYTE = 1_000_000
#: Bytes of a body, as received and once decompressed: room for some 150,000 orders.
DEFAULT_MAX_BODY = 20 * MEGABYTE
#: What the option says of the values that it takes.
MAX_BODY_RANGE = "a whole number of megabytes from 1 to 4096"


class ConfigError(Exception):
    """The command line or the configuration is wrong; the message says what, where, and what to do about it."""


class Mode(IntEnum):
    """What may be sent, each more than the one before; the transport's guard enforces it."""

    OBSERVE = 1
    GUARDED = 2
    FULL = 3

    def __str__(self) -> str:
        return self.name.lower()


class Secret:
    """A string that shows nowhere by accident: read it with `reveal()`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The string itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not to be pickled")


@dataclass(frozen=True)
class RateLimit:
    """At most `count` requests in `seconds`, as written `10/s` or `90/m`."""

    count: int
    seconds: float

    @property
    def interval(self) -> float:
        """Seconds between two requests."""
        return self.seconds / self.count

    def __str__(self) -> str:
        return f"{self.count}/{'s' if self.seconds == 1 else 'm'}"

    @classmethod
    def parse(cls, text: str) -> RateLimit:
        """Read `10/s` or `90/m`. Raises ValueError."""
        match = re.fullmatch(r"([1-9][0-9]*)/(s|m)", text)
        if not match:
            raise ValueError("a rate limit is written 10/s or 90/m")
        unit = timedelta(seconds=1) if match[2] == "s" else timedelta(minutes=1)
        return cls(int(match[1]), unit.total_seconds())


@dataclass(frozen=True)
class States:
    """Where the orders to work on come from: exactly one of `url`, `command`, or the static lists."""

    url: str | None = None
    command: tuple[str, ...] = ()
    pending: tuple[int, ...] = ()
    shipped: tuple[int, ...] = ()
    token: Secret | None = None

    @property
    def static(self) -> bool:
        """Whether the orders are lists in the configuration."""
        return self.url is None and not self.command


@dataclass(frozen=True)
class Target:
    """One deployment, ready to be used: everything looked up, nothing sent yet."""

    name: str
    base_url: str
    key: Secret
    mode: Mode
    key_variable: str = DEFAULT_KEY_VARIABLE  # where a curl line finds the key: a variable, or $(cat FILE)
    states: States | None = None
    protected: bool = False
    rate_limit: RateLimit | None = None
    unconfirmed: bool = False  # protected, and in mode full once the command line confirms it
    bulk_orders: int = DEFAULT_BULK_ORDERS
    timeout: float = DEFAULT_TIMEOUT
    max_body: int = DEFAULT_MAX_BODY
    ca_bundle: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    key_file: str | None = None  # where the key was read from, if from a file

    @property
    def places_orders(self) -> bool:
        """Whether there is a state provider that places orders, and not lists of them."""
        return self.states is not None and not self.states.static


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
    if not names:
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
    targets: list[Target | None] = []
    for name in dict.fromkeys(names):
        if name in tables or options.base_url:
            targets.append(_target(name, tables, path, options, looking))
        elif name == REFERENCE:
            targets.append(None)
        else:
            known = [*tables, REFERENCE]
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}."
            where = path or "no targets.toml in this folder (write one with `store-orders-conformance init`)"
            raise ConfigError(f"unknown target {name!r}: {hint} Targets are read from: {where}")
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
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check the path given with --config") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None
    reader = _Table(document, str(path), "")
    tables = reader.take("targets", dict, default={})
    reader.finish("targets are written as [targets.NAME]")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: targets.{name} is not a table; write [targets.{name}]")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise ConfigError(f"{path}: targets.{name}: a name holds letters, digits, '-', '_' and '.' only")
    return tables, path


_KINDS: dict[type | tuple[type, ...], str] = {
    str: "a string",
    int: "a whole number",
    (int, float): "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class _Table:
    """A TOML table being read key by key, so that what is left over at the end is unknown."""

    def __init__(self, values: dict[str, Any], file: str, prefix: str) -> None:
        self.left = dict(values)
        self.known: list[str] = []
        self.file = file
        self.prefix = prefix

    def where(self, key: str, option: object = None) -> str:
        """Where a value comes from: from the `option` of the same name if that is given, else from this table."""
        return f"--{key.replace('_', '-')}" if option else f"{self.file}: {self.prefix}{key}"

    def error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.where(key)}: {problem}")

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None, mend: str = "") -> Any:
        self.known.append(key)
        if key not in self.left:
            return default
        value = self.left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"is {value!r}, and should be {_KINDS[kind]}{mend}")
        return value

    def take_list(self, key: str, kind: type) -> tuple[Any, ...]:
        values = self.take(key, list, default=[])
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                raise self.error(
                    key, f"holds {value!r}, and should hold {'numbers' if kind is int else 'strings'} only"
                )
        return tuple(values)

    def take_ids(self, key: str) -> tuple[int, ...]:
        ids = tuple(dict.fromkeys(self.take_list(key, int)))
        for number in ids:
            if not -(2**63) <= number < 2**63:
                raise self.error(key, f"holds {number}, and the ids of orders are int64: from -2^63 to 2^63 - 1")
        return ids

    def finish(self, hint: str = "") -> None:
        for key in self.left:
            close = difflib.get_close_matches(key, self.known, 1)
            advice = f"did you mean {close[0]!r}?" if close else hint or f"known keys: {', '.join(self.known)}"
            raise self.error(key, f"unknown key; {advice}")


def _target(name: str, tables: dict[str, dict[str, Any]], path: Path | None, options: Options, looking: bool) -> Target:
    table = tables.get(name, {})
    reader = _Table(table, str(path or "targets.toml"), f"targets.{name}.")
    base_url = reader.take("base_url", str)
    base_url_env = reader.take("base_url_env", str)
    if options.base_url:
        base_url = options.base_url
    elif base_url and base_url_env:
        raise reader.error("base_url", "is given beside base_url_env; keep one of the two")
    elif base_url_env:
        where = reader.where("base_url_env")
        base_url = _from_environment(where, base_url_env, options.environment)
        try:
            _base_url(base_url, where)
        except ConfigError:  # which quotes it, and it may be the key, where two variables were mistaken
            raise ConfigError(
                f"{where}: the environment variable {base_url_env} holds no base URL; it is to be an http or https URL "
                "that ends with /v1 and has neither query nor credentials"
            ) from None
    elif not base_url:
        raise reader.error("base_url", 'is missing; add base_url = "https://…/v1" or base_url_env = "VARIABLE"')
    key, key_variable, key_file = _key(reader, options)
    mode = reader.take("mode", str)
    protected = reader.take("protected", bool)
    rate_limit = reader.take("rate_limit", str, mend=': "10/s" or "90/m"')
    bulk_orders = reader.take("bulk_orders", int, default=DEFAULT_BULK_ORDERS)
    if not 0 <= bulk_orders <= 1_000_000:
        raise reader.error("bulk_orders", f"is {bulk_orders}; a number from 0 (leaves the check out) to 1000000")
    states = _states(reader, options)
    timeout = reader.take("timeout", (int, float), default=DEFAULT_TIMEOUT)
    if not 0 < timeout <= 3600:
        raise reader.error("timeout", f"is {timeout}; a number of seconds above 0, up to 3600")
    max_body = reader.take("max_body", int, default=DEFAULT_MAX_BODY // MEGABYTE)
    if not 1 <= max_body <= 4096:
        raise reader.error("max_body", f"is {max_body}; {MAX_BODY_RANGE}")
    ca_bundle = reader.take("ca_bundle", str)
    client_cert = reader.take("client_cert", str)
    proxy = reader.take("proxy", str)
    reader.finish()
    base_url = _base_url(base_url, reader.where("base_url", options.base_url))
    if protected is None:
        protected = _is_production(name) or _address(base_url) in _protected_addresses(tables, options.environment)

    target = Target(
        name=name,
        base_url=base_url,
        key=key,
        mode=_mode(options.mode, mode, reader, states),
        key_variable=key_variable,
        key_file=key_file,
        states=states,
        protected=protected,
        rate_limit=_rate(options.rate_limit or rate_limit, reader.where("rate_limit", options.rate_limit)),
        bulk_orders=bulk_orders,
        timeout=options.timeout or float(timeout),
        max_body=(options.max_body or max_body) * MEGABYTE,
        ca_bundle=_file(options.ca_bundle, ca_bundle, "ca_bundle", reader),
        client_cert=_file(options.client_cert, client_cert, "client_cert", reader),
        proxy=_proxy(options.proxy, proxy, reader),
    )
    _look_at_certificates(target, reader, options)
    return _protect(target, table, reader, options, looking)


def _is_production(name: str) -> bool:
    return name.casefold() == "production"


def _protected_addresses(tables: dict[str, dict[str, Any]], environment: Mapping[str, str]) -> set[object]:
    """Where the protected targets are: under another name, or none, such an address is protected all the same."""
    protected = [table for name, table in tables.items() if table.get("protected", _is_production(name)) is True]
    urls = [table.get("base_url") or environment.get(str(table.get("base_url_env"))) for table in protected]
    return {_address(url) for url in urls if isinstance(url, str)}


def port_of(parts: SplitResult) -> int:
    """The port of a URL, that of its scheme where it names none. Raises ValueError."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def _address(url: str) -> object:
    """What is the same for two spellings of a base URL, and over http and https."""
    try:
        parts = urlsplit(url.strip())
        path = posixpath.normpath(re.sub("/+", "/", f"/{unquote(parts.path)}"))
        return (parts.hostname or "").rstrip("."), 443 if port_of(parts) == 80 else port_of(parts), path
    except ValueError:
        return url  # of a target that is not in this run: no concern of it


def _protect(target: Target, table: dict[str, Any], reader: _Table, options: Options, looking: bool) -> Target:
    """Both switches or neither: a protected target cancels orders only if its configuration and the command say so."""
    if not target.protected or target.mode is not Mode.FULL:
        return target
    if str(table.get("mode")).lower() != "full":
        if options.mode == "full":
            raise ConfigError(
                f"--mode: target {target.name!r}, or its address, is protected: --mode full alone does not make it "
                "cancel orders. "
                f'Set mode = "full" in [targets.{target.name}] of {reader.file} and add --confirm-cancel {target.name}'
            )
        return replace(target, mode=Mode.GUARDED)
    if target.name not in options.confirm_cancel:
        if looking:
            return replace(target, mode=Mode.GUARDED, unconfirmed=True)
        raise ConfigError(
            f"{reader.where('mode')}: is full, and the target is protected: orders that the state provider hands out "
            f"would be cancelled. Add --confirm-cancel {target.name} if that is meant, or --mode guarded"
        )
    return target


def _from_environment(where: str, variable: str, environment: Mapping[str, str]) -> str:
    value = environment.get(variable, "").strip()
    if not value:
        what = "is blank" if variable in environment else "is not set"
        raise ConfigError(f"{where}: the environment variable {variable} {what}; export {variable}=…")
    return value


def _key(reader: _Table, options: Options) -> tuple[Secret, str, str | None]:
    """The API key, the name of the variable or the command that a curl line would take it from, and its file if it has
    one."""
    if "api_key" in reader.left:
        raise reader.error("api_key", "a key is never written into this file; use api_key_env or api_key_file")
    variable = reader.take("api_key_env", str)
    file = reader.take("api_key_file", str)
    if options.api_key_env:
        variable, file = options.api_key_env, None
    where = reader.where("api_key_env", options.api_key_env)
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise ConfigError(
            f"{where}: the value is not the name of an environment variable. If it is the key itself, export it as a "
            "variable and give that variable's name"
        )
    if variable and file:
        raise reader.error("api_key_env", "is given beside api_key_file; keep one of the two")
    if file:
        source, value = file, _key_in_file(reader, file)
    elif variable:
        source, value = f"the environment variable {variable}", _key_in_variable(where, variable, options.environment)
    elif options.base_url:
        raise ConfigError("--base-url needs --api-key-env VAR: the name of the variable that holds the API key")
    else:
        raise reader.error("api_key_env", 'is missing; add api_key_env = "VARIABLE" or api_key_file = "PATH"')
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise ConfigError(f"{source} holds a character that no header can carry (blank, control or non-ASCII)")
    return Secret(value), _printing(file) if file else variable or DEFAULT_KEY_VARIABLE, file


def _printing(file: str) -> str:
    """What a shell runs to print the key in `file`."""
    home, rest = ("~/", file[2:]) if file.startswith("~/") else ("", file)
    return f"$(cat {'-- ' if file.startswith('-') else ''}{home}{shlex.quote(rest)})"


def _key_in_file(reader: _Table, file: str) -> str:
    try:
        value = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise reader.error("api_key_file", f"{file} cannot be read ({error}); check the path") from None
    if not value:
        raise ConfigError(f"{file} is empty; put the API key there")
    return value


def _key_in_variable(where: str, variable: str, environment: Mapping[str, str]) -> str:
    looks_like_a_name = re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable)
    if not environment.get(variable, "").strip() and not looks_like_a_name:
        # Not repeated: whoever puts the key where its variable's name belongs has it in a log otherwise.
        raise ConfigError(
            f"{where}: there is no environment variable of the given name. If it is the key itself, export it as a "
            "variable and give that variable's name"
        )
    return _from_environment(where, variable, environment)


def _states(reader: _Table, options: Options) -> States | None:
    table = reader.take("states", dict)
    if options.states_url:
        _http_url(options.states_url, "--states-url")
        return States(url=options.states_url)
    if table is None:
        return None
    inner = _Table(table, reader.file, f"{reader.prefix}states.")
    url = inner.take("url", str)
    command = inner.take_list("command", str)
    pending = inner.take_ids("pending")
    shipped = inner.take_ids("shipped")
    token_env = inner.take("token_env", str)
    inner.finish()
    given = [name for name, value in (("url", url), ("command", command), ("lists", pending or shipped)) if value]
    if len(given) != 1:
        raise reader.error("states", "needs exactly one of: url, command, or the lists pending and shipped")
    if url:
        _http_url(url, inner.where("url"))
    both = sorted(set(pending) & set(shipped))
    if both:
        raise inner.error("shipped", f"order {both[0]} is listed as pending too")
    if token_env and not url:
        raise inner.error("token_env", "is for a provider with a url")
    token = _from_environment(inner.where("token_env"), token_env, options.environment) if token_env else None
    return States(url, command, pending, shipped, Secret(token) if token else None)


def _mode(option: str | None, configured: str | None, reader: _Table, states: States | None) -> Mode:
    text = option or configured
    if text is None:
        return Mode.FULL if states else Mode.GUARDED
    where = reader.where("mode", option)
    try:
        mode = Mode[text.upper()]
    except KeyError:
        raise ConfigError(f"{where}: is {text!r}; one of observe, guarded, full") from None
    if mode is Mode.FULL and states is None:
        raise ConfigError(
            f"{where}: mode full needs a state provider, which hands out the orders to cancel; "
            f"add [{reader.prefix}states] or --states-url, or use mode guarded"
        )
    return mode


def _rate(text: str | None, where: str) -> RateLimit | None:
    try:
        return RateLimit.parse(text) if text else None
    except ValueError as error:
        raise ConfigError(f"{where}: {text!r}: {error}") from None


def _file(option: str | None, configured: str | None, key: str, reader: _Table) -> str | None:
    path = option or configured
    if path and not Path(path).expanduser().is_file():
        raise ConfigError(f"{reader.where(key, option)}: {path}: no such file; check the path")
    return str(Path(path).expanduser()) if path else None


def _look_at_certificates(target: Target, reader: _Table, options: Options) -> None:
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


def _proxy(option: str | None, configured: str | None, reader: _Table) -> str | None:
    url = option or configured
    if not url:
        return None
    where = reader.where("proxy", option)
    if urlsplit(_http_url(url, where)).scheme == "https":
        raise ConfigError(f"{where}: {url!r} is a proxy that is itself spoken to over TLS; give its http address")
    return url


def _http_url(text: str, where: str) -> str:
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ConfigError(f"{where}: credentials in a URL end up in logs; take them out")
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")  # as whoever looks it up does, who raises this then
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(f"{where}: {text!r} is no http or https URL")
    if not re.fullmatch(r"[!-~]+", text):
        raise ConfigError(
            f"{where}: {text!r} holds a character that no URL can carry (blank, control or non-ASCII); percent-encode "
            "it, or in the name of a host write xn--…"
        )
    return text


def _base_url(text: str, where: str) -> str:
    """The base URL without a slash at its end. It ends with /v1 (BASE-1, section 1)."""
    url = _http_url(text.rstrip("/"), where)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ConfigError(f"{where}: {text!r} has a query or fragment; a base URL ends with /v1")
    if not parts.path.endswith("/v1"):
        raise ConfigError(
            f"{where}: {text!r} does not end with /v1. Each base address of the service ends with its version segment "
            f"(specification, section 1; requirement BASE-1): did you mean {re.sub('/v[0-9.]+$', '', url)}/v1?"
        )
    return url
