"""A target: where a service is, how it may be treated, and who provides its orders. Pure values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

REFERENCE = "reference"
#: The name of a target that is described on the command line only.
UNNAMED = "target"
#: The variable in a curl line if nothing else is known about the key.
DEFAULT_KEY_VARIABLE = "STORE_ORDERS_KEY"
DEFAULT_BULK_ORDERS = 1100
DEFAULT_TIMEOUT = 10.0
MEGABYTE = 1_000_000
#: The most bytes of a body, as received and once decompressed: room for some 150,000 orders.
DEFAULT_MAX_BODY = 20 * MEGABYTE
#: The most seconds, and the most megabytes of a body, that a target may configure.
MAX_TIMEOUT, MAX_BODY = 3600, 4096
TIMEOUT_RANGE = f"give a number of seconds above 0, up to {MAX_TIMEOUT}"
MAX_BODY_RANGE = f"give a whole number of megabytes from 1 to {MAX_BODY}"


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
    """A string that is never shown by accident: read it with `reveal()`."""

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

    @classmethod
    def parse(cls, text: str) -> RateLimit:
        """Read `10/s` or `90/m`. Raises ValueError."""
        match = re.fullmatch(r"([1-9][0-9]{0,8})/(s|m)", text)
        if not match:
            raise ValueError("a rate limit is written 10/s or 90/m")
        return cls(int(match[1]), 1.0 if match[2] == "s" else 60.0)


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
class Shell:
    """What curl lines need to know of a target: `key` is the variable with the key, or a command that prints it, `$(cat
    FILE)`; `options` are the options by which curl reaches the service, quoted for the shell."""

    key: str = DEFAULT_KEY_VARIABLE
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """One deployment, ready to be used: everything looked up, nothing sent yet."""

    name: str
    base_url: str
    key: Secret
    mode: Mode
    shell: Shell = Shell()
    states: States | None = None
    protected: bool = False
    protected_as: str = ""  # the protected target that has the same address, where that is why
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
    def bulk_shipped(self) -> int:
        """How many shipped orders go with that many pending ones."""
        return max(1, self.bulk_orders // 4)

    @property
    def places_orders(self) -> bool:
        """Whether a state provider places orders, instead of lists of them."""
        return self.states is not None and not self.states.static
