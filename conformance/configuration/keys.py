"""Keys and tokens, from environment variables and files, never from the configuration itself. No error repeats a key,
or any value that may be one because somebody wrote the key where the name of its variable belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from conformance.configuration.options import Options
from conformance.configuration.shell import printing
from conformance.configuration.tables import Table
from conformance.target import DEFAULT_KEY_VARIABLE, ConfigError, Secret

#: Advice for a secret that was written where the name of its variable, or the path of its file, belongs.
KEY_ITSELF = "If it is the key itself, export it as a variable and give that variable's name"
KEY_ITSELF_NO_FILE = "If it is the key itself, put it into a file and give the path of that"
#: A word of so many characters between underscores is more likely a key, in base32 perhaps, than part of a variable's
#: name.
LONG_WORD = 16


def api_key(reader: Table, options: Options) -> tuple[Secret, str, str | None]:
    """The API key; the variable, or the command, from which a curl line takes it; and its file, if it has one."""
    if "api_key" in reader.left:
        raise reader.error("api_key", "a key is never written into this file; use api_key_env or api_key_file")
    variable = reader.take("api_key_env", str, hint=f". {KEY_ITSELF}", secret=True)
    file = reader.take("api_key_file", str, hint=f". {KEY_ITSELF_NO_FILE}", secret=True)
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
        value = from_environment(where, variable, options.environment)
    elif options.base_url:
        raise ConfigError("--base-url needs --api-key-env VAR: the name of the variable that holds the API key")
    else:
        raise reader.missing("api_key_env", 'add api_key_env = "VARIABLE" or api_key_file = "PATH"')
    return token_of(value, source), printing(file) if file else variable or DEFAULT_KEY_VARIABLE, file


def token_of(value: str, source: str) -> Secret:
    """The bearer token `value`, which comes from `source`. Raises ConfigError if it cannot be one."""
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise ConfigError(
            f"{source} holds a character that no bearer token has (blank, control or non-ASCII); put nothing else there"
        )
    return Secret(value)


def from_environment(where: str, variable: str, environment: Mapping[str, str]) -> str:
    """What the variable holds. Raises ConfigError if that is nothing. The message does not repeat a name that is
    unusual for a variable, such as one in lower case or with a very long word: it may be a key, written in the wrong
    place."""
    value = environment.get(variable, "").strip()
    usual = re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable) and max(map(len, variable.split("_"))) < LONG_WORD
    if not value and not usual:
        advice = 'If it is the URL itself, write base_url = "…"' if "://" in variable else KEY_ITSELF
        raise ConfigError(f"{where}: there is no environment variable of the given name. {advice}")
    if not value:
        what = "is blank" if variable in environment else "is not set"
        raise ConfigError(f"{where}: the environment variable {variable} {what}; export {variable}=…")
    return value


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
