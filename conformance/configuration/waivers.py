"""Waivers: known failures that somebody has accepted for a time (`waivers.toml`)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from conformance.configuration import tables
from conformance.contract import catalogue
from conformance.target import ConfigError
from conformance.verdict import Waiver


def read(path: Path | None, today: date) -> dict[str, Waiver]:
    """The waivers in the file at `path`, by requirement id; empty without a file. Raises ConfigError for a waiver that
    has expired, lacks a reason or a date, or names no requirement."""
    if path is None:
        return {}
    document = tables.read(path, "--waivers")
    waivers: dict[str, Waiver] = {}
    for number, row in enumerate(document.take_list("waiver", dict), 1):
        requirement = row.get("requirement")
        if requirement is None:
            raise ConfigError(f"{path}: waiver {number}: requirement is missing; give the id of one")
        if not isinstance(requirement, str) or requirement not in catalogue.load().requirements:
            hint = catalogue.load().hint(requirement) if isinstance(requirement, str) else "give the id of one"
            raise ConfigError(f"{path}: waiver {number}: {requirement!r} is not a requirement; {hint}")
        named = f"waiver {number} ({requirement}): "
        table = tables.Table(row, str(path), named)
        table.take("requirement", str)
        reason, expires = table.take("reason", str, default="").strip(), table.take("expires", date)
        link = table.take("link", str)
        table.finish()
        if not reason:
            raise table.error("reason", "is missing; say why this failure is accepted")
        if expires is None:
            raise table.error("expires", "is missing; say until when, YYYY-MM-DD, a date without quotes")
        if type(expires) is not date:
            raise table.error("expires", "should be YYYY-MM-DD, a date without quotes")
        if expires < today:
            raise ConfigError(f"{path}: {named}expired on {expires}; fix the service, or agree on a new date")
        if requirement in waivers:
            raise table.error("requirement", "there is a waiver for it already")
        waivers[requirement] = Waiver(requirement, reason, expires.isoformat(), link)
    document.finish("waivers are written as [[waiver]]")
    return waivers
