"""HTTP, BASE, PET: the protocol, the address, and the deprecated pet lookup (specification, sections 1, 4.3 and 9)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from urllib.parse import urlsplit

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import credentials, invalid_keys
from conformance.checks.clients import BROWSER, FRENCH, NAMES_JSON, SENDS_JSON, VOUCHING_FIELDS
from conformance.contract.jsontext import integer
from conformance.target import Mode, Secret, Target
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, Allowed, Request
from conformance.transport.wire import Wire
from conformance.urls import is_loopback

# --- HTTP-1: listed statuses. Judged on every exchange of the run, too.


@requirement("HTTP-1")
def test_listing_statuses(api: Api, wire: Wire) -> None:
    """Lists with and without the key, several times, and with no other fields than Host, User-Agent and Authorization:
    200 and 401, nothing else."""
    verify.meets("HTTP-1", *api.send_all([api.ask_list()] * 4 + [api.ask_list(NOBODY)] * 2, at_once=True))
    with wire.connect() as connection:
        verify.meets("HTTP-1", connection.exchange(api.ask_list(), minimal=True))


@requirement("HTTP-1", mode=Mode.GUARDED)
def test_cancelling_statuses(api: Api, observe: Observations) -> None:
    """Cancels absent orders with and without the key: statuses that the operation lists. HEAD and OPTIONS are
    observed."""
    absent = api.absent(2)
    verify.meets("HTTP-1", *api.send_all(api.ask_cancel(order, who) for order in absent for who in (api.key, NOBODY)))
    paths = ("/store/orders", f"/store/orders/{absent[0]}")
    asked = [Request(method, path, api.key, allowed=Allowed.OPEN) for method in ("HEAD", "OPTIONS") for path in paths]
    answers = api.send_all(asked)
    observe(
        "HEAD and OPTIONS",
        {f"{a.request.method} {a.request.path.replace(str(absent[0]), 'ID')}": a.status for a in answers},
        *answers,
    )


@requirement("HTTP-1", mode=Mode.FULL, pending=1, shipped=1)
def test_cancelling_statuses_in_every_state(api: Api, orders: Orders) -> None:
    """Cancels a shipped and a pending order: statuses that the operation lists."""
    taken = orders.take_listed(pending=1, shipped=1)
    verify.meets("HTTP-1", *(api.cancel(order) for order in (*taken.shipped, *taken.pending)))


# --- HTTP-2: framing. Judged on every exchange of the run, too.


def whole(answers: list[Answer]) -> None:
    """Demand complete responses with nothing after them. If any answer is allowed, there may be none, as from a
    firewall."""
    for answer in answers:
        problem = answer.exchange.findings.get("HTTP-2")
        if problem is not None:  # bytes after a 204 are no such problem: they are CANCEL-2's
            raise outcomes.Failed("one complete HTTP response and nothing after it", problem, answer)
        if answer.request.allowed is not Allowed.OPEN:
            verify.settled(answer)


@requirement("HTTP-2")
def test_listing_is_framed(api: Api, wire: Wire) -> None:
    """Lists several times with the key, once with a query, and without the key for a reader of French, on raw
    connections that the service is asked to close: the responses are complete, and nothing follows them."""
    answers = []
    queried = api.ask_list(query="example=1", allowed=Allowed.OPEN)
    for request in (*[api.ask_list()] * 3, queried, api.ask_list(NOBODY, headers=FRENCH)):
        with wire.connect() as connection:
            answers.append(connection.exchange(request, last=True))
    whole(answers)


@requirement("HTTP-2", mode=Mode.GUARDED)
def test_refused_cancel_is_framed(api: Api, wire: Wire) -> None:
    """Cancels an absent order with and without the key on raw connections, for a reader of French: the responses are
    complete, and nothing follows them."""
    (order,) = api.absent()
    answers = []
    for who in (api.key, NOBODY):
        with wire.connect() as connection:
            answers.append(connection.exchange(api.ask_cancel(order, who, headers=FRENCH), last=True))
    whole(answers)


@requirement("HTTP-2", mode=Mode.FULL, shipped=1)
def test_conflict_is_framed(api: Api, orders: Orders, wire: Wire) -> None:
    """Cancels a shipped order on a raw connection: the response is complete, and nothing follows it."""
    (order,) = orders.take_listed(shipped=1).shipped
    with wire.connect() as connection:
        whole([connection.exchange(api.ask_cancel(order), last=True)])


@requirement("HTTP-2", mode=Mode.GUARDED)
def test_answers_on_one_connection_are_framed(api: Api, wire: Wire) -> None:
    """Sends all kinds of request down one connection for as long as the service keeps it open, at the end one with a
    body: each answer is complete, and the next begins where it ends. What follows the request with a body is open,
    since no operation has one, and a server may have left it unread."""
    (order,) = api.absent()
    asked = [api.ask_list(), api.ask_cancel(order), api.ask_list(NOBODY), api.ask_cancel(order, NOBODY), api.ask_list()]
    asked.append(api.ask_cancel(order, NOBODY, allowed=Allowed.OPEN, headers=SENDS_JSON, body=b"{}"))
    asked.append(api.ask_list(allowed=Allowed.OPEN))
    answers = []
    with wire.connect() as connection:
        for request in asked:
            answers.append(connection.exchange(request))
            if answers[-1].status is None or not connection.left_open():
                break
    if answers[-1].exchange.closed:  # no answer, so none that is framed wrongly
        answers.pop()
    whole(answers)  # in the end, since what follows an answer may come later


# --- BASE: the address


@requirement("BASE-1")
def test_operations_answer_below_v1(api: Api, target: Target, elsewhere: Callable[[], list[Answer]]) -> None:
    """Lists below the version segment. If that is not found, tries without the segment and under others: a service that
    answers there has another address than the contract says."""
    answer = api.list()
    if verify.settled(answer).status not in (404, 405, 410) and not 300 <= (answer.status or 0) < 400:
        return
    for other in elsewhere():
        if other.status == 200 and other.listing is not None:
            raise outcomes.Failed(
                f"the operations below {target.base_url}", f"they answer at {other.exchange.url}", answer, other
            )
    raise outcomes.Inconclusive(answer.exchange.in_words, "LIST-1")


@requirement("BASE-2")
def test_transport_is_secure(target: Target) -> None:
    """Looks at the scheme of the base URL: https, unless the host is this machine itself."""
    parts = urlsplit(target.base_url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise outcomes.Failed("an https address, since the key travels in a header", target.base_url)


# --- PET: the deprecated lookup


PETS = ("/pets/1", "/pets/2", "/pets/10")


@requirement("PET-1")
@pytest.mark.lengthy
def test_pet_lookup_needs_the_key(api: Api, key: Secret) -> None:
    """Looks up pets, one of them that of a listed order, without the key, with a wrong one, and with the key in wrong
    places; and that one without the key also as other kinds of clients, with fields that vouch for somebody, and with a
    slash at its end: no 2xx."""
    no_pet_for_anyone(api, key)


@requirement("PET-1", pending=1)
@pytest.mark.lengthy
def test_pet_lookup_needs_the_key_where_there_are_orders(api: Api, orders: Orders, key: Secret) -> None:
    """The same while an order of the suite is in the listing, which may have been empty before."""
    orders.take_listed(pending=1)
    no_pet_for_anyone(api, key)


def no_pet_for_anyone(api: Api, key: Secret) -> None:
    """Look up pets without the key, and demand no success."""
    misplaced = (credentials.in_query(key.reveal())[0], *credentials.misplaced(key.reveal())[:2])
    wrong = (NOBODY, invalid_keys.near_misses(key.reveal())[0], *misplaced)
    listing = api.list().listing
    known = [integer(listing.by_id[order].get("petId")) for order in islice(listing.by_id, 10)] if listing else []
    pets = [*PETS, *[f"/pets/{pet}" for pet in known if pet is not None][:1]]
    # With the key first: what is answered must not be kept for others.
    api.send(Request("GET", pets[-1], api.key, allowed=Allowed.OPEN))
    for answer in api.send_all(Request("GET", pet, who, allowed=Allowed.OPEN) for pet in pets for who in wrong):
        if answer.status in (None, 429):  # what a gateway answers for an operation that is gone is no success
            verify.settled(answer)
        shows_no_pet(api, answer)
    plain = Request("GET", pets[-1], allowed=Allowed.OPEN)
    disguises = [replace(plain, headers=headers) for headers in (NAMES_JSON, BROWSER, VOUCHING_FIELDS)]
    disguises += [replace(plain, accept=None), replace(plain, path=f"{plain.path}/")]
    for answer in api.send_all(disguises):
        with suppress(outcomes.Excluded):  # browsers may be shown the page of an application anywhere
            shows_no_pet(api, answer)


def shows_no_pet(api: Api, answer: Answer) -> None:
    """Demand that this lookup without the key has no success. Raises Excluded if what has an answer to any path, such
    as an application of a single page, has it for this one, too."""
    if not answer.succeeded:
        return
    request = answer.request
    end = "/" if request.path.endswith("/") else ""
    nowhere = api.send(replace(request, path=f"/{api.rng.getrandbits(60):x}/1{end}", credential=NOBODY))
    same = nowhere.status == answer.status and nowhere.media_type == answer.media_type
    if same and (nowhere.media_type == "text/html" or nowhere.body == answer.body):
        raise outcomes.Excluded("the service has one answer to any path, so this one says nothing of a lookup")
    if verify.settled(api.send(replace(request, path=f"/store/orders{end}"))).succeeded:
        said = "the listing is answered without the key, too"
        raise outcomes.Inconclusive(said, "AUTH-2", "AUTH-3", "AUTH-4")
    raise outcomes.Failed(
        "no success without the key, since every endpoint requires it", verify.describe(answer), answer
    )


@requirement("PET-2")
def test_lifecycle_headers_are_standard(api: Api, observe: Observations) -> None:
    """Looks up a pet with the key: Deprecation and Sunset, if sent, have their standard form. Whether the lookup exists
    is observed."""
    answer = api.send(Request("GET", PETS[0], api.key, allowed=Allowed.OPEN))
    observe("pet lookup", verify.settled(answer).status, answer)
    verify.meets("PET-2", answer)
