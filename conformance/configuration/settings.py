"""The options of a run: one table, read by the command line and by plain pytest alike."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from conformance.budgets import BUDGETS
from conformance.configuration.options import Options
from conformance.contract import catalogue
from conformance.target import MAX_BODY, MAX_BODY_RANGE, MAX_TIMEOUT, TIMEOUT_RANGE, ConfigError, Mode

#: The most workers of a run or of the selftest.
MOST_WORKERS = 64

#: Flag -> arguments for argparse and for pytest's `addoption`, which take the same ones.
OPTIONS: dict[str, dict[str, Any]] = {
    "--config": {"metavar": "FILE", "help": "the configuration (default: targets.toml in this folder, if there)"},
    "--base-url": {"metavar": "URL", "help": "a service that is in no configuration; the URL ends with /v1"},
    "--api-key-env": {"metavar": "VAR", "help": "name of the environment variable that holds its API key"},
    "--states-url": {"metavar": "URL", "help": "URL of its state provider"},
    "--mode": {"choices": tuple(map(str, Mode)), "help": "what may be sent (default: by target)"},
    "--confirm-cancel": {
        "metavar": "TARGET",
        "action": "append",
        "default": [],
        "help": 'let this run cancel orders of a protected target; its configuration must also say mode = "full"',
    },
    "--strict": {"action": "store_true", "help": "recommended requirements decide the verdict, too"},
    "--only": {
        "action": "append",
        "metavar": "ID[,ID...]",
        "help": "only these requirements or families: CANCEL, AUTH-3",
    },
    "--skip": {"action": "append", "metavar": "ID[,ID...]", "help": "not these requirements or families"},
    "--budget": {
        "choices": tuple(BUDGETS),
        "default": "standard",
        "help": "how hard generated checks search (default: standard)",
    },
    "--seed": {"type": int, "metavar": "N", "help": "repeats the random choices of another run of the same target"},
    "--rate-limit": {"metavar": "10/s", "help": "at most this many requests per second (s) or minute (m)"},
    "--timeout": {"type": float, "metavar": "SECONDS", "help": "for one request, answer included (default: 10)"},
    "--max-body": {
        "type": int,
        "metavar": "MB",
        "help": "megabytes of an answer, as received and once decompressed (default: 20)",
    },
    "--ca-bundle": {"metavar": "FILE", "help": "certificate authorities to trust, PEM"},
    "--client-cert": {"metavar": "FILE", "help": "client certificate with its private key, PEM"},
    "--proxy": {"metavar": "URL", "help": "forward proxy, by its http address"},
    "--waivers": {"metavar": "FILE", "help": "known failures, each with a reason and an expiry date"},
    "--report-dir": {"metavar": "DIR", "help": "where results are written, in a folder per target"},
}


@dataclass(frozen=True)
class Settings:
    """What the options say, looked up and checked."""

    targets: tuple[str, ...]
    options: Options
    selected: frozenset[str]
    strict: bool
    budget: str
    seed: int
    waivers: Path | None
    report_dir: Path | None


def name_of(flag: str) -> str:
    """The name under which argparse stores an option: `max_body` for `--max-body`."""
    return flag.removeprefix("--").replace("-", "_")


def validate_workers(told: str | None) -> None:
    """Raise ConfigError if the value `told` with -n is not a number of workers."""
    if told is not None and told != "auto" and not (told.isdecimal() and 1 <= int(told) <= MOST_WORKERS):
        raise ConfigError(f"-n {told}: a number of workers from 1 to {MOST_WORKERS}, or auto")


def read(targets: tuple[str, ...], values: dict[str, Any]) -> Settings:
    """The settings that `values` (by option name, as argparse stores them) amount to. Raises ConfigError."""
    everything = frozenset(catalogue.load().requirements)
    only = _ids("--only", values.get("only")) or everything
    skip = _ids("--skip", values.get("skip"))
    selected = only - skip
    if not selected:
        flags = "--only and --skip together leave" if values.get("only") else "--skip leaves"
        raise ConfigError(f"{flags} no requirement: nothing would be checked")
    _validate_values(values)
    seed = values.get("seed")
    given = {each.name: values[each.name] for each in fields(Options) if each.name in values}
    given |= {"config": _path(values.get("config")), "confirm_cancel": tuple(values.get("confirm_cancel") or ())}
    return Settings(
        targets=targets,
        options=Options(**given),
        selected=selected,
        strict=bool(values.get("strict")),
        budget=values.get("budget") or "standard",
        seed=secrets.randbelow(2**31) if seed is None else seed,
        waivers=_path(values.get("waivers")),
        report_dir=_path(values.get("report_dir")),
    )


def _validate_values(values: dict[str, Any]) -> None:
    """Raise ConfigError for values that are wrong whatever the other options are."""
    for flag in OPTIONS:
        if values.get(name_of(flag)) == "":  # else the run would do without: be of another target, say
            raise ConfigError(f"{flag} is empty; give it a value, or leave it out (is a variable not set?)")
    timeout = values.get("timeout")
    if timeout is not None and not 0 < timeout <= MAX_TIMEOUT:
        raise ConfigError(f"--timeout {timeout:g}: {TIMEOUT_RANGE}")
    max_body = values.get("max_body")
    if max_body is not None and not 1 <= max_body <= MAX_BODY:
        raise ConfigError(f"--max-body {max_body}: {MAX_BODY_RANGE}")
    seed = values.get("seed")
    if seed is not None and not 0 <= seed < 2**63:
        raise ConfigError(f"--seed {seed}: give a whole number from 0 to 2^63 - 1")


def _path(value: str | Path | None) -> Path | None:
    return Path(value) if value else None


def _ids(flag: str, texts: Sequence[str] | None) -> frozenset[str]:
    if not texts:
        return frozenset()
    text = ",".join(texts)
    if not any(word.strip() for word in text.split(",")):
        raise ConfigError(f"{flag} {text!r} names nothing; give requirement ids or families, or leave it out")
    try:
        return catalogue.load().select(tuple(word for word in text.split(",") if word.strip()))
    except KeyError as error:
        families = ", ".join(catalogue.load().families)
        raise ConfigError(
            f"{flag}: {error.args[0]!r} is no requirement and no family ({families}); "
            f"{catalogue.load().hint(error.args[0])}"
        ) from None
