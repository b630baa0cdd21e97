"""AUTH-1 to AUTH-4: the valid key is accepted; no key, an invalid one, and one in the wrong place are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import filterfalse, product

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import credentials, invalid_keys
from conformance.checks.authentication.steps import accepted, cancel_each, refused, refused_as_invalid
from conformance.checks.clients import BROWSER, NAMES_JSON, SCRIPT
from conformance.target import Mode, Secret, Target
from conformance.transport.evidence import Trouble
from conformance.transport.request import NOBODY, Allowed, Request
from conformance.transport.retries import turned_away
from conformance.transport.wire import Wire


def has_orders(target: Target) -> bool:
    """Whether all credentials can be tried on a pending order."""
    return target.mode is Mode.FULL and target.places_orders


# --- AUTH-1: the valid key is accepted


@requirement("AUTH-1")
def test_valid_key_lists(api: Api) -> None:
    """Lists with the valid key several times: it is never refused."""
    for answer in [api.list(), *filterfalse(turned_away, api.send_all([api.ask_list()] * 8, at_once=True))]:
        accepted(answer)


@requirement("AUTH-1")
def test_valid_key_under_any_spelling_of_the_header(api: Api, key: Secret) -> None:
    """Lists with the valid key in `authorization` and in `AUTHORIZATION`: accepted, since the name of a header field
    has no case."""
    for answer in api.send_all(api.ask_list(credential) for credential in credentials.header_names(key.reveal())):
        accepted(answer)


@requirement("AUTH-1")
def test_valid_key_beside_cookies(api: Api) -> None:
    """Lists with the valid key and cookies, as a browser sends those of other pages of a site: the key is not refused.
    Any other answer is allowed."""
    accepted_beside_cookies(api, api.ask_list(), 200)


def accepted_beside_cookies(api: Api, request: Request, otherwise: int) -> None:
    """Demand that the valid key is not refused next to cookies, if the same request without them gets the status
    `otherwise`."""
    answer = api.send(replace(request, headers=(("Cookie", "theme=dark; sessionid=0"),), allowed=Allowed.OPEN))
    if verify.settled(answer).status in (401, 403):
        verify.step(api.send(request), otherwise, "AUTH-1")
        if answer.repeat().status == otherwise:
            raise outcomes.Inconclusive(f"{answer.exchange.line} was refused, and not when asked again", "HTTP-1")
        raise outcomes.Failed("the valid key accepted, whatever cookies there are", verify.describe(answer), answer)


@requirement("AUTH-1", mode=Mode.GUARDED)
def test_valid_key_reaches_cancelling(api: Api) -> None:
    """Cancels orders that do not exist with the valid key, also next to cookies: the key is not refused. A 403 may be
    about the missing order."""
    absent = api.absent(2)
    for answer in api.send_all(map(api.ask_cancel, absent)):
        if answer.status == 403:
            verify.step(answer, 404, "CANCEL-5")
        accepted(answer)
    accepted_beside_cookies(api, api.ask_cancel(absent[0]), 404)


@requirement("AUTH-1", mode=Mode.FULL, pending=1, shipped=1)
def test_valid_key_cancels(api: Api, orders: Orders) -> None:
    """Cancels a pending and a shipped order with the valid key: the key is not refused. A 403 to only one of them has
    another reason."""
    taken = orders.take_listed(pending=1, shipped=1)
    answers = [api.cancel(order) for order in (*taken.shipped, *taken.pending)]
    for answer in answers:
        if answer.status != 403 or all(other.status == 403 for other in answers):
            accepted(answer)


# --- AUTH-2: no key


@requirement("AUTH-2")
def test_listing_without_key(api: Api) -> None:
    """Lists without an Authorization header: 401, also to a browser, to a client that names JSON, and to one that asks
    whether anything has changed since a listing with the key (RFC 9110 section 13.2.1: such conditions come after
    everything else). A service that minds the condition itself may say so with another client error."""
    kept = api.list()
    since = ("If-Modified-Since", kept.header("last-modified") or kept.header("date"))
    conditions = (("If-None-Match", "*"), ("If-None-Match", kept.header("etag")), since)
    asked = [api.ask_list(NOBODY, headers=headers) for headers in ((), NAMES_JSON, BROWSER, SCRIPT)]
    asked += [
        api.ask_list(NOBODY, headers=((name, value),), allowed=Allowed.OPEN) for name, value in conditions if value
    ]
    answers = api.send_all(asked)
    judged = [each for each in answers if each.request.allowed is Allowed.LISTED or not verify.turned_down(each)]
    refused(api, judged, since="the key is missing")


@requirement("AUTH-2")
def test_bare_listing_without_key(api: Api, wire: Wire) -> None:
    """Lists with Host and User-Agent and no other header field: 401."""
    with wire.connect() as connection:
        answer = connection.exchange(api.ask_list(NOBODY), minimal=True)
    if verify.unlisted(answer) and api.list(NOBODY).status == 401:
        wanted = "and 401 with the header fields that clients send as a rule"
        raise outcomes.Inconclusive(f"a bare request was answered {answer.exchange.received}, {wanted}", "HTTP-1")
    refused(api, [answer], since="the key is missing")


@requirement("AUTH-2", mode=Mode.GUARDED)
def test_cancelling_an_absent_order_without_key(api: Api, orders: Orders) -> None:
    """Cancels orders that do not exist, with ids above and below zero and with the id 0, without an Authorization
    header: 401, not 404, also to a browser, its scripts, a client that names JSON, and one that sends no Accept."""
    first, second = api.absent(2)
    asked = [api.ask_cancel(order, NOBODY) for order in (first, second, -second, 0) if api.permits(order)]
    asked += [api.ask_cancel(second, NOBODY, headers=headers) for headers in (NAMES_JSON, BROWSER, SCRIPT)]
    asked.append(api.without_accept().ask_cancel(second, NOBODY))
    refused(api, api.send_all(asked), since="the key is missing, whether the order exists or not", orders=orders)


@requirement("AUTH-2", mode=Mode.FULL, pending=1, shipped=1)
def test_cancelling_without_key(api: Api, orders: Orders) -> None:
    """Requests a pending and a shipped order with the key, by GET and by HEAD, whatever the answer, and cancels them
    without an Authorization header, the pending one also after it was cancelled with the key: 401, neither 204 nor 409
    nor 404."""
    taken = orders.take_listed(pending=1, shipped=1)
    looks = product(("GET", "HEAD"), (*taken.shipped, *taken.pending))
    api.send_all(Request(method, f"/store/orders/{order}", api.key, allowed=Allowed.OPEN) for method, order in looks)
    answers = cancel_each(api, (*taken.shipped, *taken.pending), [NOBODY])
    api.cancel(taken.pending[0])
    answers += cancel_each(api, taken.pending, [NOBODY])
    refused(api, answers, since="the key is missing, whatever the state of the order", orders=orders)


@requirement("AUTH-2", mode=Mode.FULL, empty_store=True, pending=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_nobody_is_let_into_an_empty_store(api: Api, orders: Orders, already_met: bool) -> None:
    """Has the store emptied, lists and cancels an order that does not exist without an Authorization header: 401, as if
    there were orders. The check of LIST-7 may have seen that already."""
    if not already_met:
        orders.take(pending=1)
        (absent,) = api.absent()  # after a listing that shows orders: one that shows none is for LIST-7
        asked = [api.ask_list(NOBODY), api.ask_cancel(absent, NOBODY)]
        refused(api, api.send_all(asked), since="the key is missing", orders=orders)
        orders.empty_store()
        refused(api, api.send_all(asked), since="the key is missing, whether there are orders or not", orders=orders)


# --- AUTH-3: an invalid key


@requirement("AUTH-3")
def test_listing_with_invalid_keys(api: Api, key: Secret) -> None:
    """Lists with many near misses of the key (cut, extended, changed in one place or in case, right only in the first
    4, 8, 16, 32 or 72 characters, without its prefix, hashed) and with unrelated keys: 401 each time, also to a
    browser, its scripts, and a client that sends no Accept."""
    battery = invalid_keys.battery(key.reveal(), api.rng)
    again = battery[-1:] * 2  # what was no key is none, whoever remembers it
    asked = [*map(api.ask_list, (*battery, *again))]
    asked += [api.ask_list(battery[0], headers=headers) for headers in (BROWSER, SCRIPT)]
    asked.append(api.without_accept().ask_list(battery[0]))
    refused_as_invalid(api, api.send_all(asked), since="the key is invalid")


@requirement("AUTH-3", mode=Mode.GUARDED)
def test_cancelling_an_absent_order_with_invalid_keys(api: Api, orders: Orders, key: Secret, target: Target) -> None:
    """Cancels an order that does not exist with each of these keys: 401, not 404. If they can be tried on a pending
    order, the most telling ones are enough here."""
    battery = invalid_keys.telling(key.reveal()) if has_orders(target) else invalid_keys.battery(key.reveal(), api.rng)
    since = "the key is invalid, whether the order exists or not"
    refused_as_invalid(api, cancel_each(api, api.absent(), battery), since=since, orders=orders)


@requirement("AUTH-3", mode=Mode.FULL, pending=1, shipped=1)
@pytest.mark.lengthy
def test_cancelling_with_invalid_keys(api: Api, orders: Orders, key: Secret) -> None:
    """Cancels a pending order with each of these keys, and a shipped and the cancelled one with the most telling ones,
    also as a browser and its scripts, without Accept, and right after the right key has got an answer about them: 401,
    neither 204 nor 409 nor 404."""
    taken = orders.take_listed(pending=1, shipped=1)
    since = "the key is invalid, whatever the state of the order"
    battery, telling = invalid_keys.battery(key.reveal(), api.rng), invalid_keys.telling(key.reveal())
    refused_as_invalid(api, cancel_each(api, taken.shipped, telling), since=since, orders=orders)
    refused_as_invalid(api, cancel_each(api, taken.pending, battery), since=since, orders=orders)
    asked = [api.ask_cancel(taken.pending[0], battery[0], headers=headers) for headers in (BROWSER, SCRIPT)]
    asked.append(api.without_accept().ask_cancel(taken.pending[0], battery[0]))
    refused_as_invalid(api, api.send_all(asked), since=since, orders=orders)
    both = [*taken.pending, *taken.shipped]
    api.send_all(map(api.ask_cancel, both))
    refused_as_invalid(api, cancel_each(api, both, telling), since=since, orders=orders)


# --- AUTH-4: the key in the wrong place


@requirement("AUTH-4")
def test_listing_with_the_key_elsewhere(api: Api, key: Secret, target: Target) -> None:
    """Lists with the right key as Basic, bare, under other schemes, in other headers and in cookies: 401 each time."""
    battery = credentials.misplaced(key.reveal(), proxied=target.proxy is not None)
    answers = api.send_all(api.ask_list(credential) for credential in battery)
    refused(api, answers, since="there is no bearer token in Authorization")


@requirement("AUTH-4")
def test_listing_with_the_key_in_the_query(api: Api, key: Secret) -> None:
    """Lists with the right key in a query parameter: 401, or another client error for the parameter."""
    answers = api.send_all(api.ask_list(credential) for credential in credentials.in_query(key.reveal()))
    refused(api, answers, since="there is no bearer token in Authorization")


@requirement("AUTH-4")
def test_listing_with_malformed_credentials(api: Api, key: Secret) -> None:
    """Lists with empty and malformed bearer credentials: 401 or 400."""
    answers = api.send_all(api.ask_list(credential) for credential in credentials.malformed(key.reveal()))
    refused(api, answers, since="the bearer credential is malformed")


@requirement("AUTH-4")
def test_listing_with_a_token_beyond_ascii(api: Api, key: Secret) -> None:
    """Lists with tokens that contain a letter beyond ASCII, on which some string comparisons break, one of them the key
    followed by such a letter: 401 or another client error, or a closed connection, since a server in front may refuse
    such a field."""
    for answer in api.send_all(api.ask_list(credential) for credential in credentials.beyond_ascii(key.reveal())):
        if answer.exchange.trouble != Trouble.BROKEN and not answer.client_error:
            refused(api, [answer], since="that is no valid key")


@requirement("AUTH-4", mode=Mode.GUARDED)
def test_cancelling_an_absent_order_with_the_key_elsewhere(
    api: Api, orders: Orders, key: Secret, target: Target
) -> None:
    """Cancels an order that does not exist with the right key in every wrong place: 401, not 404. If these can be tried
    on a pending order, a few are enough here."""
    key_elsewhere_refused(api, orders, api.absent()[0], key, target, few=has_orders(target))


@requirement("AUTH-4", mode=Mode.FULL, pending=1, shipped=1)
def test_cancelling_with_the_key_elsewhere(api: Api, orders: Orders, key: Secret, target: Target) -> None:
    """Cancels a pending order with the right key in every wrong place, and a shipped one with it in a few: 401, neither
    204 nor 409."""
    taken = orders.take_listed(pending=1, shipped=1)
    few = cancel_each(api, taken.shipped, credentials.misplaced(key.reveal())[:6])
    refused(api, few, since="there is no bearer token in Authorization", orders=orders)
    key_elsewhere_refused(api, orders, taken.pending[0], key, target)


def key_elsewhere_refused(
    api: Api, orders: Orders, order: int, key: Secret, target: Target, *, few: bool = False
) -> None:
    """Cancel an order with the right key in every wrong place, or in a `few` of them, and demand refusals."""
    elsewhere = credentials.misplaced(key.reveal(), proxied=target.proxy is not None)
    spoiled = [*credentials.in_query(key.reveal(), fitting=True), *credentials.malformed(key.reveal())]
    if few:
        elsewhere, spoiled = elsewhere[::5], spoiled[::5]
    answers = cancel_each(api, [order], elsewhere)
    refused(api, answers, since="there is no bearer token in Authorization", orders=orders)
    answers = cancel_each(api, [order], [*spoiled, *credentials.in_body(key.reveal())])
    refused(api, answers, since="there is no well-formed bearer token in Authorization", orders=orders)
