"""One conformance run against one target, as a value: what every report is written from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformance.transport.evidence import Exchange
from conformance.verdict import RequirementResult, Verdict


@dataclass(frozen=True)
class Observed:
    """A fact about the target on a topic that the specification leaves open; exchanges by number."""

    topic: str
    value: Any
    exchanges: tuple[int, ...] = ()


@dataclass(frozen=True)
class Run:
    """Everything that is known when a run against one target has ended.

    `started` and `finished` are RFC 3339 in UTC, `requests` counts what was sent to the service, state provider
    excluded, `exchanges` are in the order of their numbers and hold no secrets, `command` is how the run was started.
    """

    target: str
    base_url: str
    mode: str
    verdict: Verdict
    requirements: tuple[RequirementResult, ...]
    suite_version: str
    catalogue: str
    started: str
    finished: str
    seconds: float
    seed: int
    budget: str
    strict: bool
    complete: bool
    requests: int
    command: str = ""
    observations: tuple[Observed, ...] = ()
    warnings: tuple[str, ...] = ()
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False)
