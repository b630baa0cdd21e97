"""Waivers: known failures that somebody has accepted for a time (`waivers.toml`)."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

from conformance.contract import catalogue
from conformance.target import ConfigError
from conformance.verdict import Waiver


def read(path: Path | None, today: date) -> dict[str, Waiver]:
    """The waivers in the file at `path`, by requirement id; none without a file. Raises ConfigError for one that has
    expired, that lacks a reason or a date, or that names no requirement."""
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check the path given with --waivers") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None
    tables = document.pop("waiver", [])
    if document or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{path}: may hold only [[waiver]] tables")
    waivers: dict[str, Waiver] = {}
    for number, table in enumerate(tables, 1):
        where = f"{path}: waiver {number}"
        unknown = table.keys() - {"requirement", "reason", "expires", "link"}
        if unknown:
            raise ConfigError(f"{where}: unknown key {min(unknown)!r}; known: requirement, reason, expires, link")
        requirement = table.get("requirement")
        if not isinstance(requirement, str) or requirement not in catalogue.load().requirements:
            raise ConfigError(f"{where}: requirement = {requirement!r} is in no row of the catalogue")
        where += f" ({requirement})"
        reason, expires, link = table.get("reason"), table.get("expires"), table.get("link")
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigError(f"{where}: needs a reason")
        if type(expires) is not date:
            raise ConfigError(f"{where}: needs expires = YYYY-MM-DD, a date without quotes")
        if expires < today:
            raise ConfigError(f"{where}: expired on {expires}; mend the service, or agree on a new date")
        if link is not None and not isinstance(link, str):
            raise ConfigError(f"{where}: link is a string")
        if requirement in waivers:
            raise ConfigError(f"{where}: there is a waiver for this requirement already")
        waivers[requirement] = Waiver(requirement, reason.strip(), expires.isoformat(), link)
    return waivers
