"""What the command line says of a target; it overrides the configuration file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from conformance.configuration.tables import Table


@dataclass(frozen=True)
class Options:
    """What the command line may say about a target; None if it says nothing."""

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


class Given(NamedTuple):
    """The value given for a key, None if there is none, and where it was given."""

    value: str | None
    where: str


def given(reader: Table, options: Options, key: str, hint: str = "") -> Given:
    """What the command line gives for `key`, or else the table."""
    configured, option = reader.take(key, str, hint=hint), getattr(options, key)
    return Given(option or configured, reader.where(key, option))
