"""One run against one target, as a value: every report is written from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conformance.transport.evidence import Exchange
from conformance.verdict import RequirementResult, Verdict, Waiver


@dataclass(frozen=True)
class Observed:
    """A fact about the target on a topic that the specification leaves open; exchanges by number."""

    topic: str
    value: Any
    exchanges: tuple[int, ...] = ()


@dataclass(frozen=True)
class Circumstances:
    """What a run depended on besides the answers of the service; `audit` needs this to run the same checks again.

    `order` has the checks of each process as they ran, those of the command's own process first. `wrong_keys` are the
    kinds of invalid keys, and of queries, that can be made from the key. `states` is "url", "command", "lists" or
    "none".
    """

    selected: tuple[str, ...]
    order: tuple[tuple[str, ...], ...]
    wrong_keys: tuple[str, ...]
    key_variable: str
    states: str
    pending: tuple[int, ...]
    shipped: tuple[int, ...]
    bulk_orders: int
    proxied: bool
    tools: tuple[tuple[str, str], ...]
    waivers: tuple[Waiver, ...] = ()
    protected: bool = False
    protected_as: str = ""
    curl_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """Everything that is known when a run against one target has ended.

    `started` and `finished` are RFC 3339 in UTC. `requests` counts what was sent to the service, not to the state
    provider. `exchanges` are in the order of their numbers and hold no secrets. `messages` are those to the state
    provider, with their answers, in the order of the checks that needed them. `command` is how the run was started.
    `process_lost` says that a run is incomplete because one of its processes ended unexpectedly, not because it was
    interrupted.
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
    process_lost: bool = False
    command: str = ""
    observations: tuple[Observed, ...] = ()
    warnings: tuple[str, ...] = ()
    circumstances: Circumstances | None = None
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False)
    messages: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @cached_property
    def by_number(self) -> dict[int, Exchange]:
        """The exchanges by their numbers."""
        return {exchange.number: exchange for exchange in self.exchanges}
