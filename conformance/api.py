"""What a check works with: the two operations, orders of its own, and observations."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

from conformance.contract.listing import Listing
from conformance.contract.transitions import CANCELLING, State
from conformance.outcomes import Excluded, Inconclusive
from conformance.states.leases import Leases
from conformance.states.provider import CannotDo, ProviderError
from conformance.transport.answer import Answer
from conformance.transport.client import Client
from conformance.transport.endpoint import ServiceGone
from conformance.transport.evidence import Trouble
from conformance.transport.guard import Refused
from conformance.transport.request import ANYTHING, Allowed, Credential, Headers, Request
from conformance.transport.retries import too_many
from conformance.transport.wire import Wire
from conformance.verify import listing as readable
from conformance.verify import not_shown

# Inside `Api` the name `list` is the operation's.
Answers = list[Answer]
Ids = list[int]


def _open_to(credential: Credential, query: str, allowed: Allowed) -> Allowed:
    """Which answers are allowed to a request: any if it has a query, since neither operation defines one; else what its
    credential allows, if that is more than the listed statuses; else what the check has `allowed`."""
    if query:
        return Allowed.OPEN
    return allowed if credential.allows is Allowed.LISTED else credential.allows


class Api:
    """Sends the operations of the contract to the target, with the valid key by default."""

    def __init__(self, client: Client, key: Credential, rng: random.Random, accept: str | None = ANYTHING) -> None:
        """`accept` is the Accept field of its requests, unless a request has one of its own; None leaves it out."""
        self._client = client
        self.key = key
        self.rng = rng
        self.accept = accept

    def without_accept(self) -> Self:
        """The same for a client that does not say what it accepts, as Go's does not."""
        silent = copy(self)
        silent.accept = None
        return silent

    def ask_list(
        self,
        credential: Credential | None = None,
        *,
        allowed: Allowed = Allowed.LISTED,
        query: str = "",
        headers: Headers = (),
    ) -> Request:
        """`GET /store/orders` (section 4.1), not yet sent. The contract has no query, so with one any status is
        allowed."""
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
        """`DELETE /store/orders/{orderId}` (section 4.2), not yet sent. A string goes into the path unchanged. The
        contract has no query, so with one any status is allowed. A credential may bring the body."""
        credential = credential or self.key
        if credential.body:
            headers, body = (*headers, ("Content-Type", credential.body_type)), credential.body.encode()
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
        """Send any one request. Raises guard.Refused and ServiceGone, like every method here that sends."""
        return self._client.send(request)

    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> Answers:
        """Send requests that do not depend on each other, at the same time if `at_once`; the answers are in the order
        of the requests. A cancel that was one too many at once is sent again, alone."""
        answers = self._client.send_all(requests, at_once=at_once)
        return [self._once_more(answer) if too_many(answer.exchange) else answer for answer in answers]

    def _once_more(self, answer: Answer) -> Answer:
        """The answer to the same cancel, sent again, if that answer is conclusive whether or not the first cancel took
        effect: if it is the one due in the state that the order had, or if the order had been cancelled before. Else
        `answer`."""
        due = CANCELLING[answer.before] if answer.before else None
        again_anyway = answer.touched and not answer.before and answer.request.allowed is Allowed.ANY_4XX
        if due is None and not again_anyway:
            return answer
        again = self._client.send(answer.request)
        return again if due is None or again.status in due.statuses else answer

    def listing(self) -> Listing:
        """The listing, for checks that only use it. Raises Inconclusive if it is not readable."""
        return readable(self.list())

    def unmistakable(self, wanted: Iterable[int]) -> Ids:
        """Those of the `wanted` ids that could not be mistaken for the id of a listed order, after reading the listing.
        Raises Excluded if there are none: a service that misreads ids would cancel somebody's order."""
        self.listing()
        found = [order for order in wanted if self.permits(order)]
        if not found:
            raise Excluded("each of the ids to be chosen could be mistaken for that of an order in the listing")
        return found

    @property
    def may_cancel(self) -> bool:
        """Whether the mode lets orders of the suite be cancelled."""
        return self._client.guard.may_cancel

    def permits(self, segment: int | str) -> bool:
        """Whether the guard permits a cancel of this path segment."""
        return self._client.guard.permits(str(segment))

    def absent(self, count: int = 1, *, anew: bool = True) -> Ids:
        """`count` ids that no order has, and that could not be mistaken for the id of one. They are drawn at each call,
        after the listing is read `anew`, unless the caller has just read it."""
        if anew:
            self.listing()
        try:
            return self._client.guard.absent_ids(count, self.rng)
        except Refused as refusal:
            raise Inconclusive(str(refusal)) from None


class Severed(Exception):
    """A connection carries no further request, which is the service's right (RFC 9112 section 9.5)."""


class OneConnection(Api):
    """The two operations over one connection, one request at a time. A new connection is opened if the service has
    closed it."""

    def __init__(self, api: Api, wire: Wire) -> None:
        super().__init__(api._client, api.key, api.rng, api.accept)
        self._connection = wire.connect()

    def set_off(self, request: Request) -> None:
        """Send a request; `conclude` reads the answer."""
        self._connection.set_off(request)

    def conclude(self) -> Answer:
        """The answer to the request that was set off. Raises Severed if there is none through no fault of the
        service."""
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


#: The connection was closed between two requests; or none could be made, because a proxy opens no tunnel, or because
#: the service speaks HTTP/2 only. Other checks report that.
_SEVERED = (Trouble.CLOSED, Trouble.UNSENT, Trouble.UNREACHABLE, Trouble.NO_RAW)


@dataclass(frozen=True)
class Taken:
    """Orders given to a check, and the listing that showed them, if they were looked up in a readable one."""

    pending: list[int] = field(default_factory=list)
    shipped: list[int] = field(default_factory=list)
    listing: Listing | None = None


class Orders:
    """Hands out orders to one check, and makes sure that the service knows them.

    If the listing does not show an order that the provider handed out, a check that merely works on it ends
    inconclusive. LIST-3 decides whether the listing or the provider is at fault.
    """

    def __init__(self, leases: Leases, api: Api) -> None:
        self._leases = leases
        self._api = api

    @property
    def by_hand(self) -> bool:
        """Whether the orders come from lists in the configuration, which may be wrong or used up."""
        return self._leases.by_hand

    @property
    def has_shipped(self) -> str:
        """Why a shipped order must be refused, for the message of a failure."""
        return self._leases.has_shipped

    def take(self, pending: int = 0, shipped: int = 0) -> Taken:
        """So many pending and shipped orders, as the provider hands them out. Like every method here that asks the
        provider, it raises Inconclusive if that fails, and Excluded if it cannot do this."""
        with _outcomes():
            return Taken(self._leases.take(State.PENDING, pending), self._leases.take(State.SHIPPED, shipped))

    def take_listed(self, pending: int = 0, shipped: int = 0) -> Taken:
        """The same, looked up in a `listing`, if that can be read. Raises Inconclusive if one is missing there."""
        return self._looked_for(self.take(pending, shipped))

    def add(self, pending: int = 0, shipped: int = 0) -> Taken:
        """Such orders if the provider can place them, else none: for checks that can do without. A faulty provider is
        reported by the checks that need it."""
        with suppress(Inconclusive, Excluded):
            return self.take(pending, shipped)
        return Taken()

    def pending_gets(self, status: int | None) -> bool:
        """Whether the cancels of pending orders, placed to see that, get this `status`, too. False where nothing shows
        that: the mode is not full, no provider places orders, or the service is silent by now."""
        if self.by_hand or not self._api.may_cancel:
            return False
        with suppress(ServiceGone):
            placed = self.add(pending=2).pending  # of one it might come by chance
            return bool(placed) and all(self._api.cancel(order).status == status for order in placed)
        return False

    def place(self, ids: list[int], *, shipped: bool = False) -> Taken:
        """Orders with exactly these ids, pending unless `shipped`. Raises Excluded if the provider cannot choose ids,
        and if `ids` is empty because each could be mistaken for that of another order."""
        if not ids:
            raise Excluded("each id to be chosen could be mistaken for that of an order in the listing")
        with _outcomes("the provider cannot choose ids: "):
            placed = self._leases.place(State.SHIPPED if shipped else State.PENDING, ids)
        return Taken([], placed) if shipped else Taken(placed)

    def place_listed(self, ids: list[int]) -> Taken:
        """Pending orders with exactly these ids, looked up like those of `take_listed`. Raises like `place`, too."""
        return self._looked_for(self.place(ids))

    def empty_store(self) -> None:
        """Have the store emptied. Raises Excluded if the provider cannot do that."""
        with _outcomes("the provider cannot empty the store: "):
            self._leases.empty_store()

    def _looked_for(self, taken: Taken) -> Taken:
        listing = self._api.list().listing
        if listing is None:
            return taken
        if missing := listing.left_out([*taken.pending, *taken.shipped]):
            self._api.list()  # if the order is there now, this shows that the listing had left it out
            raise not_shown(f"order {missing[0]}, {self._leases.source} is not in the listing", listing)
        return replace(taken, listing=listing)


@contextmanager
def _outcomes(cannot: str = "") -> Iterator[None]:
    """Turns a provider's failure into Inconclusive, and its refusal into Excluded, with `cannot` before the reason."""
    try:
        yield
    except ProviderError as error:
        raise Inconclusive(str(error)) from None
    except CannotDo as refusal:
        raise Excluded(f"{cannot}{refusal}") from None


class Observations:
    """Collects facts about the target on topics that the specification leaves open."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = frozenset(topics)
        self.facts: list[tuple[str, Any, list[int]]] = []

    def __call__(self, topic: str, value: Any, *answers: Answer) -> None:
        """Note `value`, plain data, under a topic of the catalogue, with the answers that show it. Raises KeyError for
        any other topic."""
        if topic not in self._topics:
            raise KeyError(topic)
        self.facts.append((topic, value, [answer.exchange.number for answer in answers]))
