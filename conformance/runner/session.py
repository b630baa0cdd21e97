"""One target within one process: the parts that its checks work with, put together."""

from __future__ import annotations

import os
import random
import ssl
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from conformance.api import Api
from conformance.check import Check, Needs, Shares, checks_of, exclusions, shares
from conformance.checks import credentials, invalid_keys
from conformance.checks.clients import accepts
from conformance.contract import catalogue
from conformance.judging.observer import Judge
from conformance.states.leases import KEPT, LEDGER, Leases
from conformance.states.provider import Provider, Recorded, connect
from conformance.target import Mode, States, Target
from conformance.transport.answer import Answer, Observer
from conformance.transport.client import Client
from conformance.transport.endpoint import Endpoint, Pace, tls_settings
from conformance.transport.evidence import Recorder
from conformance.transport.guard import Guard
from conformance.transport.redaction import PUBLIC, Redactor
from conformance.transport.request import Credential, Request
from conformance.transport.wire import Wire


@dataclass
class Session:
    """Everything that talks to one target from this process."""

    target: Target
    seed: int
    shared: Path | None = None  # the folder that all processes of the run share, where there are several
    selected: frozenset[str] = frozenset(catalogue.load().requirements)
    warnings: list[str] = field(default_factory=list)
    # What `preflight` has found out about the store:
    ids_used_again: bool = False  # new orders get the ids of cancelled ones
    counts_on: bool = False  # its counter of ids goes on from a chosen id
    follows_largest: bool = False  # a new order gets the id after the largest one in the store
    listed_before: int | None = None  # an order that the provider handed out, and that had been listed before
    came_late: int | None = None  # an order that the provider handed out, and that came to be there only then

    def __post_init__(self) -> None:
        self.key = self.target.key.reveal()
        self.recorder = Recorder(redactor_of(self.target))
        self.guard = Guard(self.target.mode)
        pace = Pace(self.target.rate_limit, self._pace_file(self.shared) if self.shared else None)
        self.endpoint = Endpoint(self.target, pace, crowded=self.shared is not None)
        self.client = self.client_of(self.endpoint, self.guard, Judge())
        self.wire = self.wire_of(self.client)
        self.valid = credentials.valid(self.key)
        self._provider: Provider | None = None
        self._kept: list[Leases] = []

    def _pace_file(self, folder: Path) -> Path:
        return folder / f"{self.target.name}.pace"

    def share(self, folder: Path) -> None:
        """Keep one pace with the sessions that other processes are about to begin with this folder."""
        self.endpoint.pace.share(self._pace_file(folder))

    @property
    def provider(self) -> Provider | None:
        """The state provider, connected when first asked for; None for static lists, or if there is none."""
        states = self.target.states
        if self._provider is None and states is not None and not states.static:
            self._provider = Recorded(self.provider_of(states), self.recorder.message)
        return self._provider

    # Overridden by an audit, which answers from a record, and by the selftest, whose service is in its own process.

    def client_of(self, endpoint: Endpoint, guard: Guard, observer: Observer) -> Client:
        """A client of `endpoint`, whose answers are judged by `observer`."""
        return Client(endpoint, guard, self.recorder, observer)

    def wire_of(self, client: Client) -> Wire:
        """Raw connections to the target of `client`."""
        return Wire(client)

    def provider_of(self, states: States) -> Provider:
        """The state provider that `states` describe."""
        return connect(states, self._tls_of_provider)

    def _tls_of_provider(self) -> ssl.SSLContext:
        """The target's TLS settings plus the system's authorities, since the provider may run elsewhere."""
        context = tls_settings(self.target)
        context.load_default_certs()
        return context

    # What checks work with.

    def api(self, check: str) -> Api:
        """The operations for one check; its random choices derive from the seed and its id."""
        return Api(self.client, self.valid, random.Random(f"{self.seed}:{self.target.name}:{check}"), accepts(check))

    def leases(self, check: str, *, kept: bool = False) -> Leases:
        """The leases of one check, to be given back when it ends. `kept` ones are given back by `give_back`, at the
        latest by `close`."""
        ledger = None
        if self.shared is not None:
            process = f"{os.getpid()}{KEPT if kept else ''}"
            ledger = self.shared / f"{self.target.name}.{process}{LEDGER}"
        held = Leases(self.provider, self.guard, self.shares.get(check, ((), ())), ledger)
        if kept:
            self._kept.append(held)
        return held

    def give_back(self) -> None:
        """Return the orders that were kept."""
        for held in self._kept:
            held.give_back(self.warnings)
        self._kept.clear()

    @property
    def one_at_a_time(self) -> bool:
        """Whether the store gives ids in such a way that checks cannot run side by side."""
        return self.ids_used_again or self.follows_largest

    @property
    def wrong_keys(self) -> tuple[str, ...]:
        """The kinds of invalid keys, and of queries with the key, that can be made from the key. An audit needs them to
        find a key that can stand in for it."""
        return (*invalid_keys.kinds(self.key), *credentials.query_kinds(self.key))

    @cached_property
    def exclusions(self) -> dict[str, str]:
        """Why some checks of the run cannot be decided, by their ids."""
        return exclusions(self._checks, self.target)

    @property
    def needs(self) -> list[Needs]:
        """What the checks of the run need, except those that cannot be decided."""
        return [check.needs for check in self._checks if check.id in self.due]

    @cached_property
    def due(self) -> frozenset[str]:
        """The ids of the checks of the run, except those that cannot be decided."""
        return frozenset(check.id for check in self._checks if check.id not in self.exclusions)

    @cached_property
    def shares(self) -> Shares:
        """The static ids set aside for each check that gets any."""
        return shares(self._checks, self.target)

    @property
    def _checks(self) -> list[Check]:
        return checks_of(self.selected)

    def elsewhere(self) -> list[Answer]:
        """Ask for the listing next to the base URL: without the version segment, and with others."""
        parts = urlsplit(self.target.base_url)
        base = parts.path.removesuffix("/v1")
        paths = (base, f"{base}/v2", f"{base}/v1.0", f"{base}/v3", f"{base}/api/v1")
        return [self.listing_at(urlunsplit(parts._replace(path=path)), self.valid) for path in paths]

    def listing_at(self, base_url: str, credential: Credential) -> Answer:
        """The answer to a listing at another base URL; it is not judged."""
        aside = replace(self.target, base_url=base_url, mode=Mode.OBSERVE)
        client = self.client_of(Endpoint(aside, self.endpoint.pace), Guard(Mode.OBSERVE), lambda answer: None)
        try:
            return client.send(Request("GET", "/store/orders", credential))
        finally:
            client.close()

    def close(self) -> None:
        """Return the orders that are still kept, and close all connections."""
        self.give_back()
        self.client.close()
        if self._provider is not None:
            self._provider.close()


def redactor_of(target: Target) -> Redactor:
    """The redactor for everything secret about `target`."""
    token = target.states.token if target.states is not None else None
    return _redactor(target.key.reveal(), token and token.reveal())


@cache  # it takes long to make, and remembers what it has cleaned
def _redactor(key: str, token: str | None) -> Redactor:
    secrets = {made: label for made, label in invalid_keys.secrets(key).items() if made not in PUBLIC}
    if token is not None:
        secrets.setdefault(token, "<the provider's token>")
    return Redactor(key, secrets)
