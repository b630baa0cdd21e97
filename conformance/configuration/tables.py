"""Reading a table of TOML, with errors that name the file and the key, and say how to fix them."""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from conformance.contract.jsontext import INT64
from conformance.target import ConfigError

_KINDS: dict[type | tuple[type, ...], str] = {
    str: "a string",
    int: "a whole number",
    (int, float): "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    date: "a date, YYYY-MM-DD without quotes",
}
_MANY = {int: "numbers", str: "strings", dict: "tables"}


def read(path: Path, option: str) -> Table:
    """The TOML document in the file at `path`, which the command line gives with `option`. Raises ConfigError."""
    try:
        return Table(tomllib.loads(path.read_text(encoding="utf-8-sig")), str(path), "")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check the path given with {option}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except ValueError as error:  # TOMLDecodeError is one, and so is a number with more digits than Python reads
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None


class Table:
    """A TOML table that is read key by key; whatever is left over at the end is unknown."""

    def __init__(self, values: dict[str, Any], file: str, prefix: str) -> None:
        self.left = dict(values)
        self.known: list[str] = []
        self.file = file
        self.prefix = prefix

    def where(self, key: str, option: object = None) -> str:
        """Where a value comes from: the `option` of the same name if that is given, else this table."""
        return f"--{key.replace('_', '-')}" if option else f"{self.file}: {self.prefix}{key}"

    def error(self, key: str, problem: str) -> ConfigError:
        """What to raise if the value of `key` has a problem."""
        return ConfigError(f"{self.where(key)}: {problem}")

    def missing(self, key: str, hint: str) -> ConfigError:
        """What to raise if there is no `key`: it names a key that may be a misspelling of it, or else gives the
        `hint`."""
        close = difflib.get_close_matches(key, self.left, 1)
        return self.error(key, f"is missing; is {close[0]!r} meant for it?" if close else f"is missing; {hint}")

    def take(
        self, key: str, kind: type | tuple[type, ...], default: Any = None, hint: str = "", *, secret: bool = False
    ) -> Any:
        """The value of `key`, or `default`. Raises ConfigError if it is of another kind, with the `hint` at the end. A
        value that may be `secret`, by mistake, is not repeated."""
        self.known.append(key)
        if key not in self.left:
            return default
        value = self.left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            shown = "a table" if isinstance(value, dict) else repr(value)
            found = "the value" if secret else f"is {shown}, and"
            raise self.error(key, f"{found} should be {_KINDS[kind]}{hint}")
        return value

    def take_list(self, key: str, kind: type) -> tuple[Any, ...]:
        """The list under `key`, whose values are all of one kind. Raises ConfigError."""
        values = self.take(key, list, default=[], hint=f" of [[{key}]] tables" if kind is dict else "")
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                raise self.error(key, f"holds {value!r}, and should hold {_MANY[kind]} only")
        return tuple(values)

    def take_ids(self, key: str) -> tuple[int, ...]:
        """The order ids (int64) in the list under `key`, all different. Raises ConfigError."""
        ids = self.take_list(key, int)
        for number, times in Counter(ids).items():
            if number not in INT64:
                raise self.error(key, f"holds {number}, and the ids of orders are int64: from -2^63 to 2^63 - 1")
            if times > 1:
                raise self.error(key, f"holds {number} {times} times; an order serves one check, so name each once")
        return ids

    def finish(self, hint: str = "") -> None:
        """Raise ConfigError for a key that nobody has asked for."""
        for key in self.left:
            close = difflib.get_close_matches(key, self.known, 1)
            advice = f"did you mean {close[0]!r}?" if close else hint or f"known keys: {', '.join(self.known)}"
            raise self.error(key, f"unknown key; {advice}")
