"""The two operations as a check calls them, and what each check is given to work with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.contract.listing import Listing
from conformance.contract.transitions import CANCELLING, State
from conformance.states.leases import Leases
from conformance.states.provider import CannotDo, ProviderError
from conformance.transport.answer import Answer
from conformance.transport.client import Client
from conformance.transport.evidence import Trouble
from conformance.transport.guard import Refused
from conformance.transport.request import ANYTHING, Allowed, Credential, Headers, Request
from conformance.transport.retries import too_many
from conformance.transport.wire import Wire
from conformance.verify import Excluded, Inconclusive, not_shown
from conformance.verify import listing as readable

#: How browsers send forms.
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)

# Inside `Api` the name `list` is the operation's.
Answers = list[Answer]
Ids = list[int]


def _open_to(credential: Credential, query: str, allowed: Allowed) -> Allowed:
    """Which answers a request leaves open: any if it has a query, since neither operation defines one; else what its
    credential allows, if that is more than the listed statuses; else what the check has `allowed`."""
    if query:
        return Allowed.OPEN
    return allowed if credential.allows is Allowed.LISTED else credential.allows


class Api:
    """Sends the operations of the contract to the target, with the valid key unless told otherwise."""

    def __init__(self, client: Client, key: Credential, rng: random.Random, accept: str = ANYTHING) -> None:
        """`accept` is what its requests say in Accept, unless told otherwise."""
        self._client = client
        self.key = key
        self.rng = rng
        self.accept = accept

    def ask_list(
        self,
        credential: Credential | None = None,
        *,
        allowed: Allowed = Allowed.LISTED,
        query: str = "",
        headers: Headers = (),
    ) -> Request:
        """`GET /store/orders` (section 4.1), not yet sent. A query is not in the contract: any status is open to it."""
        credential = credential or self.key
        allowed = _open_to(credential, query, allowed)
        return Request("GET", "/store/orders", credential, query, headers, None, allowed, accept=self.accept)

    def ask_cancel(
        self,
        order: int | str,
        credential: Credential | None = None,
        *,
        allowed: Allowed = Allowed.LISTED,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
    ) -> Request:
        """`DELETE /store/orders/{orderId}` (section 4.2), not yet sent; a string goes into the path as it is. To a
        query, which the operation does not have, any status is open. A credential that is a form is the body."""
        credential = credential or self.key
        if credential.form:
            headers, body = (*headers, *FORM), credential.form.encode()
        allowed = _open_to(credential, query, allowed)
        path = f"/store/orders/{order}"
        return Request("DELETE", path, credential, query, headers, body, allowed, accept=self.accept)

    def list(self, credential: Credential | None = None, query: str = "") -> Answer:
        """Send `ask_list`."""
        return self.send(self.ask_list(credential, query=query))

    def cancel(self, order: int | str, *, allowed: Allowed = Allowed.LISTED) -> Answer:
        """Send `ask_cancel`, with the valid key."""
        return self.send(self.ask_cancel(order, allowed=allowed))

    def send(self, request: Request) -> Answer:
        """Send any one request. Raises guard.Refused and ServiceGone, as every method here that sends."""
        return self._client.send(request)

    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> Answers:
        """Send requests that do not depend on each other, overlapping for certain if `at_once`; the answers come in the
        order of the requests. A cancel that was one too many is sent again, alone."""
        answers = self._client.send_all(requests, at_once=at_once)
        return [self._once_more(answer) if too_many(answer.exchange) else answer for answer in answers]

    def _once_more(self, answer: Answer) -> Answer:
        """The answer to the same cancel, sent again, where it tells the same whether or not the first one took effect.
        That is so where it is the one due in the state that the order had, and where the order had been cancelled
        before. Else `answer`."""
        due = CANCELLING[answer.before] if answer.before else None
        again_anyway = answer.touched and not answer.before and answer.request.allowed is Allowed.ANY_4XX
        if due is None and not again_anyway:
            return answer
        again = self._client.send(answer.request)
        return again if due is None or again.status in due.statuses else answer

    def listing(self) -> Listing:
        """The listing as a tool: raises Inconclusive where there is no readable one."""
        return readable(self.list())

    def unmistakable(self, wanted: Iterable[int]) -> Ids:
        """Those of the ids `wanted` that no listed order could be mistaken for, after reading the listing. Raises
        Excluded where there are none: a service that misreads ids would cancel somebody's order."""
        self.listing()
        found = [order for order in wanted if self.permits(order)]
        if not found:
            raise Excluded("each of the ids to be chosen could be mistaken for that of an order in the listing")
        return found

    def permits(self, segment: int | str) -> bool:
        """Whether the guard lets a cancel of this path segment out."""
        return self._client.guard.permits(str(segment))

    def absent(self, count: int = 1, *, anew: bool = True) -> Ids:
        """Ids of no order, which no order could be mistaken for; drawn anew at each call, after reading the listing
        `anew`, unless the caller has just done so."""
        if anew:
            self.listing()
        try:
            return self._client.guard.absent_ids(count, self.rng)
        except Refused as refusal:
            raise Inconclusive(str(refusal)) from None


class Severed(Exception):
    """A connection carries no further request, as is the service's right (RFC 9112 section 9.5)."""


class OneConnection(Api):
    """The two operations over one connection, one request at a time; where the service has closed it, a new one is
    opened."""

    def __init__(self, api: Api, wire: Wire) -> None:
        super().__init__(api._client, api.key, api.rng, api.accept)
        self._connection = wire.connect()

    def set_off(self, request: Request) -> None:
        """Send a request, and leave the answer for `conclude`."""
        self._connection.set_off(request)

    def conclude(self) -> Answer:
        """The answer to what was set off. Raises Severed where there is none, by no fault of the service."""
        answer = self._connection.conclude()
        if answer.exchange.trouble in _SEVERED:
            raise Severed
        return answer

    def send(self, request: Request) -> Answer:
        """Send any one request. Raises Severed."""
        self.set_off(request)
        return self.conclude()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


#: The connection was closed between two requests; or none could be made, as through a proxy that opens no tunnel, or to
#: a service that speaks HTTP/2 only, which other checks report.
_SEVERED = (Trouble.CLOSED, Trouble.UNSENT, Trouble.UNREACHABLE, Trouble.NO_RAW)


@dataclass(frozen=True)
class Taken:
    """Orders that a check was given, and the listing that showed them, where they were looked for in a readable one."""

    pending: list[int] = field(default_factory=list)
    shipped: list[int] = field(default_factory=list)
    listing: Listing | None = None


class Orders:
    """Hands out orders to one check, and makes sure that the service knows of them.

    An order that the provider names and the listing does not show proves nothing about anything else, so a check that
    merely works on it ends inconclusive; whether the listing or the provider is at fault is for LIST-3 to say.
    """

    def __init__(self, leases: Leases, api: Api) -> None:
        self._leases = leases
        self._api = api

    @property
    def by_hand(self) -> bool:
        """Whether they come from lists in the configuration, which may be wrong, or already used up."""
        return self._leases.by_hand

    @property
    def has_shipped(self) -> str:
        """Why a shipped order is to be refused, for the message where it was not."""
        return self._leases.has_shipped

    def take(self, pending: int = 0, shipped: int = 0) -> Taken:
        """That many pending and shipped orders, as the provider names them. Raises Inconclusive where the provider
        fails, and Excluded where it cannot do this, as every method here that asks it."""
        with _outcomes():
            return Taken(self._leases.take(State.PENDING, pending), self._leases.take(State.SHIPPED, shipped))

    def take_listed(self, pending: int = 0, shipped: int = 0) -> Taken:
        """The same, once the listing shows them."""
        return self._looked_for(self.take(pending, shipped))

    def add(self, pending: int = 0, shipped: int = 0) -> Taken:
        """Have such orders placed among those that are there, where there is a provider that can: for checks that can
        do without. What is wrong with the provider is for those that need it to say."""
        with suppress(Inconclusive, Excluded):
            return self.take(pending, shipped)
        return Taken()

    def place(self, ids: list[int], *, shipped: bool = False) -> Taken:
        """Orders with exactly these ids, pending unless `shipped`. Raises Excluded where the provider cannot choose
        ids, and where there are none, since each could be mistaken for that of another order."""
        if not ids:
            raise Excluded("each id to be chosen could be mistaken for that of an order in the listing")
        with _outcomes("the provider cannot choose ids: "):
            placed = self._leases.place(State.SHIPPED if shipped else State.PENDING, ids)
        return Taken([], placed) if shipped else Taken(placed)

    def place_listed(self, ids: list[int]) -> Taken:
        """Pending orders with exactly these ids, once the listing shows them. Raises like `place`."""
        return self._looked_for(self.place(ids))

    def empty_store(self) -> None:
        """Have the store emptied. Raises Excluded where the provider cannot."""
        with _outcomes("the provider cannot empty the store: "):
            self._leases.empty_store()

    def _looked_for(self, taken: Taken) -> Taken:
        listing = self._api.list().listing
        if listing is None:
            return taken
        if missing := listing.left_out([*taken.pending, *taken.shipped]):
            self._api.list()  # should it be there now, that shows that it was before
            raise not_shown(f"order {missing[0]}, {self._leases.source} is not in the listing", listing)
        return replace(taken, listing=listing)


@contextmanager
def _outcomes(cannot: str = "") -> Iterator[None]:
    """Turns what a provider does wrong into Inconclusive, and what it cannot do into Excluded, with `cannot` before the
    reason."""
    try:
        yield
    except ProviderError as error:
        raise Inconclusive(str(error)) from None
    except CannotDo as refusal:
        raise Excluded(f"{cannot}{refusal}") from None


class Observations:
    """Takes down facts about the target on topics that the specification leaves open."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = frozenset(topics)
        self.facts: list[tuple[str, Any, list[int]]] = []

    def __call__(self, topic: str, value: Any, *answers: Answer) -> None:
        """Note `value`, plain data, under a topic of the catalogue, with the answers that show it."""
        if topic not in self._topics:
            raise KeyError(topic)
        self.facts.append((topic, value, [answer.exchange.number for answer in answers]))
