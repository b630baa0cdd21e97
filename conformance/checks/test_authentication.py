"""AUTH: bearer authentication on both operations (specification, sections 5 and 7)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import compress, filterfalse, zip_longest

import pytest

from conformance import verify
from conformance.api import BROWSER, NAMES_JSON, Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import credentials
from conformance.contract.jsontext import NotJson, integer
from conformance.contract.listing import alike
from conformance.contract.validators import as_json, shown
from conformance.target import Mode, Target
from conformance.transport.client import Answer, turned_away
from conformance.transport.evidence import NOBODY, STATUSES, Allowed, Credential, Operation, Request, Trouble
from conformance.transport.wire import Wire

#: Refusals in a row after which the valid key must still be good.
MANY = 20
#: How many of them must be refused before one that is accepted can be blamed on the refusals.
FEW = 8
#: How often something is tried again that may fail only now and then.
TRIES = 4
#: Seconds in which a service that closes connections after an answer has done so.
PAUSE = 0.1
#: Other spellings of the path of the listing or of an order, the first of which is equivalent to it (RFC 3986 section
#: 6.2.2.2): where the key is asked for by one spelling and orders are looked up by another, they are anybody's.
SPELLINGS = (
    "/store/%6Frders{}", "/store/orders{}/", "/store//orders{}", "/STORE/ORDERS{}", "/store/orders{};x",
)  # fmt: skip
#: What is told of clients that are let in without a key, by those in front of a service or who wrote it, and by what
#: looks from there whether it is well.
VOUCHING_FIELDS = (
    ("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1"), ("X-Forwarded-User", "admin"),
    ("X-Remote-User", "admin"), ("X-User-ID", "1"), ("X-Admin", "true"), ("X-Internal", "true"), ("X-Debug", "true"),
    ("X-Authenticated-User", "admin"), ("X-Consumer-Username", "admin"), ("X-Client-Verify", "SUCCESS"),
    ("User-Agent", "kube-probe/1.29 GoogleHC/1.0"),
)  # fmt: skip
#: What tells of a page of the same site, of a look ahead of a request, and of a look at whether the service is well.
HARMLESS_FIELDS = (
    ("User-Agent", "ELB-HealthChecker/2.0"), ("Origin", "http://localhost"), ("Referer", "http://localhost/"),
    ("Sec-Fetch-Site", "same-origin"), ("X-Requested-With", "XMLHttpRequest"), ("Access-Control-Request-Method", "GET"),
)  # fmt: skip
VOUCHING_QUERY = "debug=true&admin=true&internal=true&public=true&test=true"
#: Why what follows the valid key on a connection is refused.
LENT = "this request has no valid key, whatever the connection carried before"


def accepted(answer: Answer) -> None:
    """Demand that the valid key was not refused, whatever else the answer is."""
    if verify.settled(answer).status == 403:
        verify.not_sporadic(answer, 200, 204, 404, 409)
    if answer.status in (401, 403):
        raise verify.Failed("the valid key accepted", verify.describe(answer), answer)


def has_orders(target: Target) -> bool:
    """Whether a whole battery can be tried on a pending order."""
    return target.mode is Mode.FULL and target.places_orders


def cancels(api: Api, orders: Iterable[int], tried: Iterable[Credential]) -> list[Answer]:
    """Cancel each of `orders` with each of the credentials `tried`."""
    tried = list(tried)
    return api.send_all(api.ask_cancel(order, credential) for order in orders for credential in tried)


# --- AUTH-1: the valid key is accepted


@requirement("AUTH-1")
def test_valid_key_lists(api: Api) -> None:
    """Lists with the valid key, several times over: it is never refused."""
    for answer in [api.list(), *filterfalse(turned_away, api.send_all([api.ask_list()] * 8, at_once=True))]:
        accepted(answer)


@requirement("AUTH-1")
def test_valid_key_under_any_spelling_of_the_header(api: Api, key: str) -> None:
    """Lists with the valid key in `authorization` and in `AUTHORIZATION`: accepted, since the name of a header field
    has no case."""
    for answer in api.send_all(api.ask_list(credential) for credential in credentials.header_names(key)):
        accepted(answer)


@requirement("AUTH-1")
def test_valid_key_beside_cookies(api: Api) -> None:
    """Lists with the valid key and cookies, as browsers send those of other pages of a site: the key is not refused.
    Whatever else is answered is open."""
    accepted_beside_cookies(api, api.ask_list(), 200)


def accepted_beside_cookies(api: Api, request: Request, otherwise: int) -> None:
    """Demand that the valid key is not refused beside cookies, where the same without them gets `otherwise`."""
    answer = api.send(replace(request, headers=(("Cookie", "theme=dark; sessionid=0"),), allowed=Allowed.OPEN))
    if verify.settled(answer).status == 401:
        verify.step(api.send(request), otherwise, "AUTH-1")
        raise verify.Failed("the valid key accepted, whatever cookies there are", verify.describe(answer), answer)


@requirement("AUTH-1", mode=Mode.GUARDED)
def test_valid_key_reaches_cancelling(api: Api) -> None:
    """Cancels orders that do not exist with the valid key, beside cookies as well: the answer is not a refusal of the
    key."""
    absent = api.absent(2)
    for answer in api.send_all(map(api.ask_cancel, absent)):
        accepted(answer)
    accepted_beside_cookies(api, api.ask_cancel(absent[0]), 404)


@requirement("AUTH-1", mode=Mode.FULL, pending=1, shipped=1)
def test_valid_key_cancels(api: Api, orders: Orders) -> None:
    """Cancels a pending and a shipped order with the valid key: the answer is not a refusal of the key. 403 to one of
    them alone has another reason."""
    taken = orders.take(pending=1, shipped=1)
    answers = [api.cancel(order) for order in (*taken.shipped, *taken.pending)]
    for answer in answers:
        if answer.status != 403 or all(other.status == 403 for other in answers):
            accepted(answer)


# --- AUTH-2: no key


@requirement("AUTH-2")
def test_listing_without_key(api: Api) -> None:
    """Lists without an Authorization header: 401, also where a browser asks, or a client that names JSON, or wants to
    know whether anything has changed (RFC 9110 section 13.2.1: that comes after all else)."""
    asked = [api.ask_list(NOBODY, headers=headers) for headers in ((), NAMES_JSON, BROWSER)]
    asked.append(replace(api.ask_list(NOBODY, headers=(("If-None-Match", "*"),)), allowed=Allowed.OPEN))
    verify.refused(api.send_all(asked), since="the key is missing")


@requirement("AUTH-2")
def test_bare_listing_without_key(api: Api, wire: Wire) -> None:
    """Lists with Host and User-Agent, and no other header field: 401."""
    with wire.connect() as connection:
        answer = connection.exchange(api.ask_list(NOBODY), minimal=True)
    if verify.unlisted(answer) and api.list(NOBODY).status == 401:
        wanted = "and 401 with the header fields that clients send as a rule"
        raise verify.Inconclusive(f"a bare request was answered {answer.exchange.received}, {wanted}", "HTTP-1")
    verify.refused([answer], since="the key is missing")


@requirement("AUTH-2")
def test_no_disguise_lists_without_key(api: Api) -> None:
    """Asks for the listing without an Authorization header under other spellings of its path, as somebody who is
    vouched for by further header fields or parameters or looks harmless, and with a query that was just answered with
    the key; and for one of its orders: whatever is answered is no order of the listing."""
    known = api.listing().ids
    plain = replace(api.ask_list(NOBODY), allowed=Allowed.OPEN)
    paths = [*(spelling.format("") for spelling in SPELLINGS), "/store/orders.json"]
    paths += [f"/store/orders/{one}" for one in sorted(known)[:1]]
    disguises = [replace(plain, path=path) for path in paths]
    disguises += [replace(plain, headers=headers) for headers in (VOUCHING_FIELDS, HARMLESS_FIELDS)]
    disguises.append(replace(plain, query=VOUCHING_QUERY))
    api.list(query=VOUCHING_QUERY)
    for answer in api.send_all(disguises):
        shown = known & shown_ids(answer)
        if shown:
            received = f"{answer.exchange.received} with {len(shown)} of the orders, {disguise(answer)}"
            raise verify.Failed("no order shown, since the key is missing", received, answer)


def disguise(answer: Answer) -> str:
    """What a request had in the place of a key, for "received"."""
    request = answer.request
    fields = ", ".join(name for name, _ in request.headers)
    query = f"?{request.query}" if request.query else ""
    return f"with {fields}" if fields else f"to {request.method} {request.path}{query}"


def shown_ids(answer: Answer) -> frozenset[int]:
    """The ids of the orders in an answer: a listing, or an object."""
    if answer.listing is not None:
        return answer.listing.ids
    try:
        value = answer.json.value
    except NotJson:
        return frozenset()
    number = integer(value.get("id")) if isinstance(value, dict) else None
    return frozenset() if number is None else frozenset({number})


@requirement("AUTH-2", mode=Mode.GUARDED)
def test_cancelling_an_absent_order_without_key(api: Api) -> None:
    """Cancels orders that do not exist, with ids above and below zero and with the id 0, without an Authorization
    header: 401, not 404, also where a browser asks, or a client that names JSON."""
    first, second = api.absent(2)
    asked = [api.ask_cancel(order, NOBODY) for order in (first, second, -second, 0) if api.permits(order)]
    asked += [api.ask_cancel(second, NOBODY, headers=headers) for headers in (NAMES_JSON, BROWSER)]
    verify.refused(api.send_all(asked), since="the key is missing, whether the order exists or not")


@requirement("AUTH-2", mode=Mode.GUARDED)
def test_no_disguise_cancels_without_key(api: Api) -> None:
    """Cancels an order that does not exist without an Authorization header, as somebody who is vouched for by further
    header fields or parameters or looks harmless: nothing that only a cancel with the key is answered, such as 404.
    What is answered to any parameter, which cancelling has none of, is no such thing."""
    plain = replace(api.ask_cancel(api.absent()[0], NOBODY), allowed=Allowed.OPEN)
    asked = [replace(plain, headers=headers) for headers in (VOUCHING_FIELDS, HARMLESS_FIELDS)]
    for answer in api.send_all([*asked, replace(plain, query=VOUCHING_QUERY)]):
        served = verify.settled(answer).status in STATUSES[Operation.CANCEL] - {401}
        if served and answer.request.query and not answer.succeeded:
            served = api.send(replace(plain, query="example=1")).status != answer.status
        if served or answer.succeeded:
            received = f"{verify.describe(answer)}, {disguise(answer)}"
            raise verify.Failed("no answer but a refusal (401), since the key is missing", received, answer)


@requirement("AUTH-2", mode=Mode.FULL, pending=2)
def test_no_spelling_cancels_without_key(api: Api, orders: Orders) -> None:
    """Cancels a pending order without an Authorization header under other spellings of its path. Where one of them is
    answered with success, the order can be cancelled with the key afterwards, as another can to which nothing was
    done."""
    order, control = orders.take(pending=2).pending
    plain = replace(api.ask_cancel(order, NOBODY), allowed=Allowed.OPEN)
    aliases = (f"{order}.json", "".join(f"%{ord(digit):02X}" for digit in str(order)))
    paths = [spelling.format(f"/{order}") for spelling in SPELLINGS]
    paths += [f"/store/orders/{alias}" for alias in aliases if api.permits(alias)]
    tried = api.send_all(replace(plain, path=path) for path in paths)
    if done := [answer for answer in tried if answer.succeeded]:
        end, other = api.send_all(map(api.ask_cancel, (order, control)))
        verify.still_pending(end, other, since="the key was missing in all other cancels of it", shown_by=done)


@requirement("AUTH-2", mode=Mode.FULL, pending=1, shipped=1)
def test_cancelling_without_key(api: Api, orders: Orders) -> None:
    """Cancels a pending and a shipped order without an Authorization header, and the pending one again after it was
    cancelled with the key: 401, neither 204 nor 409 nor 404."""
    taken = orders.take(pending=1, shipped=1)
    answers = cancels(api, (*taken.shipped, *taken.pending), [NOBODY])
    api.cancel(taken.pending[0])
    answers += cancels(api, taken.pending, [NOBODY])
    verify.refused(answers, since="the key is missing, whatever the state of the order")


# --- AUTH-3: an invalid key


@requirement("AUTH-3")
def test_listing_with_invalid_keys(api: Api, key: str) -> None:
    """Lists with each of a battery of near misses of the key (cut, extended, changed in one place or in case, right in
    the first 4, 8, 16, 32, 72 characters only, without its prefix, hashed) and of strangers: 401 each time."""
    battery = credentials.invalid_keys(key, api.rng)
    verify.refused(api.send_all(api.ask_list(wrong) for wrong in battery), since="the key is invalid")


@requirement("AUTH-3", mode=Mode.GUARDED)
def test_cancelling_an_absent_order_with_invalid_keys(api: Api, key: str, target: Target) -> None:
    """Cancels an order that does not exist with each of the battery: 401, not 404. Where there are pending orders to
    try it on, the most telling will do here."""
    battery = credentials.telling_invalid_keys(key) if has_orders(target) else credentials.invalid_keys(key, api.rng)
    verify.refused(cancels(api, api.absent(), battery), since="the key is invalid, whether the order exists or not")


@requirement("AUTH-3", mode=Mode.FULL, pending=1, shipped=1)
def test_cancelling_with_invalid_keys(api: Api, orders: Orders, key: str) -> None:
    """Cancels a pending order with each of the battery, a shipped one and the cancelled one with the most telling of
    it: 401, neither 204 nor 409 nor 404."""
    taken = orders.take(pending=1, shipped=1)
    since = "the key is invalid, whatever the state of the order"
    verify.refused(cancels(api, taken.shipped, credentials.telling_invalid_keys(key)), since=since)
    verify.refused(cancels(api, taken.pending, credentials.invalid_keys(key, api.rng)), since=since)
    api.cancel(taken.pending[0])
    verify.refused(cancels(api, taken.pending, credentials.telling_invalid_keys(key)), since=since)


# --- AUTH-4: the key in the wrong place


@requirement("AUTH-4")
def test_listing_with_the_key_elsewhere(api: Api, key: str, target: Target) -> None:
    """Lists with the right key as Basic, bare, under other schemes, in other headers and in cookies: 401 each time."""
    battery = credentials.misplaced(key, proxied=target.proxy is not None)
    answers = api.send_all(api.ask_list(credential) for credential in battery)
    verify.refused(answers, since="there is no bearer token in Authorization")


@requirement("AUTH-4")
def test_listing_with_the_key_in_the_query(api: Api, key: str) -> None:
    """Lists with the right key in a query parameter: 401, or another client error for the parameter."""
    answers = api.send_all(api.ask_list(credential) for credential in credentials.in_query(key))
    verify.refused(answers, since="there is no bearer token in Authorization")


@requirement("AUTH-4")
def test_listing_with_malformed_credentials(api: Api, key: str) -> None:
    """Lists with empty and malformed bearer credentials: 401 or 400."""
    answers = api.send_all(api.ask_list(credential) for credential in credentials.malformed(key))
    verify.refused(answers, since="the bearer credential is malformed")


@requirement("AUTH-4")
def test_listing_with_a_token_beyond_ascii(api: Api, key: str) -> None:
    """Lists with tokens that hold a letter beyond ASCII, on which some comparisons of strings break, one of them the
    key with such a letter behind it: 401 or another client error, or a connection closed, since it may be a server in
    front that refuses such a field."""
    for answer in api.send_all(api.ask_list(credential) for credential in credentials.beyond_ascii(key)):
        if answer.exchange.trouble != Trouble.BROKEN and not answer.client_error:
            verify.refused([answer], since="that is no valid key")


@requirement("AUTH-4", mode=Mode.GUARDED)
def test_cancelling_an_absent_order_with_the_key_elsewhere(api: Api, key: str, target: Target) -> None:
    """Cancels an order that does not exist with the right key in every wrong place: 401, not 404. Where there are
    pending orders to try them on, a few will do here."""
    key_elsewhere_refused(api, api.absent()[0], key, target, few=has_orders(target))


@requirement("AUTH-4", mode=Mode.FULL, pending=1, shipped=1)
def test_cancelling_with_the_key_elsewhere(api: Api, orders: Orders, key: str, target: Target) -> None:
    """Cancels a pending order with the right key in every wrong place, and a shipped one with it in a few: 401, neither
    204 nor 409."""
    taken = orders.take(pending=1, shipped=1)
    few = cancels(api, taken.shipped, credentials.misplaced(key)[:6])
    verify.refused(few, since="there is no bearer token in Authorization")
    key_elsewhere_refused(api, taken.pending[0], key, target)


def key_elsewhere_refused(api: Api, order: int, key: str, target: Target, *, few: bool = False) -> None:
    """Cancel an order with the right key in every wrong place, or in a `few` of them, and demand refusals."""
    step = 5 if few else 1
    answers = cancels(api, [order], credentials.misplaced(key, proxied=target.proxy is not None)[::step])
    verify.refused(answers, since="there is no bearer token in Authorization")
    answers = cancels(api, [order], [*credentials.in_query(key), *credentials.malformed(key)][::step])
    verify.refused(answers, since="there is no well-formed bearer token in Authorization")


# --- AUTH-5: a refused cancel has no effect


@requirement("AUTH-5", mode=Mode.FULL, pending=5)
def test_refused_cancel_leaves_a_pending_order(api: Api, orders: Orders, key: str, target: Target) -> None:
    """Has cancels of pending orders refused: without key, with near misses, with the key elsewhere. Afterwards each is
    listed as before and can still be cancelled with the key, as another order can to which nothing was done."""
    taken = orders.take(pending=5)
    *tried, control_order = taken.pending
    proxied = target.proxy is not None
    batteries = (
        [NOBODY],
        credentials.near_misses(key)[:8],
        [*credentials.misplaced(key, proxied=proxied)[::3], *credentials.in_query(key)[::3]],
        credentials.malformed(key),
    )
    pairs = [(order, who) for order, battery in zip(tried, batteries, strict=True) for who in battery]
    given = api.send_all(api.ask_cancel(order, who) for order, who in pairs)
    refusals = [[answer for answer, (of, _) in zip(given, pairs, strict=True) if of == order] for order in tried]
    for answers in refusals:
        for answer in answers:
            if not verify.refusal(answer):
                raise verify.Inconclusive(
                    f"{answer.exchange.line} answered {answer.exchange.received}, no refusal",
                    "AUTH-2, AUTH-3 or AUTH-4",
                )
    between = api.list()
    control, *ended = api.send_all(map(api.ask_cancel, (control_order, *tried)))
    for end, answers in zip(ended, refusals, strict=True):
        labels = ", ".join(answer.exchange.credential for answer in answers[:3])
        verify.still_pending(end, control, since=f"a cancel with {labels} was refused", shown_by=answers[:1])
    if taken.listing is not None:
        if not alike(verify.listing(between).by_id.get(control_order), taken.listing.by_id.get(control_order)):
            raise verify.Inconclusive(f"order {control_order}, to which nothing was done, changed as well", "LIST-9")
        shown_by = [answers[0] for answers in refusals]
        verify.unchanged(tried, taken.listing, between, since="the cancels were refused", shown_by=shown_by)


@requirement("AUTH-5", mode=Mode.FULL, shipped=2)
def test_refused_cancel_leaves_a_shipped_order(api: Api, orders: Orders, key: str) -> None:
    """Has cancels of a shipped order refused for want of a key: it is listed as before, and still shipped, as another
    is to which nothing was done."""
    taken = orders.take(shipped=2)
    order, control = taken.shipped
    answers = cancels(api, [order], [NOBODY, *credentials.telling_invalid_keys(key)])
    for answer in answers:
        verify.step(answer, 401, "AUTH-2 or AUTH-3")
    if taken.listing is not None:
        verify.unchanged([order], taken.listing, api.list(), since="the cancels were refused")
    verify.still_shipped(
        api.cancel(order), lambda: api.cancel(control), since="the cancels were refused", shown_by=answers[:1]
    )


# --- AUTH-6: each request on its own


@requirement("AUTH-6")
def test_connection_lends_no_key_to_listing(api: Api, wire: Wire, key: str, observe: Observations) -> None:
    """On one kept-alive connection: list with the key, without, with a wrong one, with it again, and in turn several
    times. Only the requests with the key are answered with a listing."""
    rounds = [NOBODY, *credentials.telling_invalid_keys(key)]
    asked = [request for wrong in rounds for request in (api.ask_list(), api.ask_list(wrong), api.ask_list())]
    answers, kept = in_turn(wire, asked)
    for first, refusal, again in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
        verify.step(first, 200, "LIST-1")
        if verify.settled(refusal).status != 401:
            refused_alone(api, [refusal.request] * TRIES)
        verify.refused([refusal], since=LENT, after=first)
        accepted(again)
    observe("kept-alive connections", "kept open" if kept else "closed by the service", answers[-1])


def in_turn(wire: Wire, requests: list[Request]) -> tuple[list[Answer], bool]:
    """The answers to GET requests that follow each other on one connection, or on a new one after the service has
    closed it; and whether it is kept open for the last one.

    Where it closes one just as a request is on its way, as is its right at any time (RFC 9112 section 9.5), nobody can
    tell whether that arrived: then all begins anew, with pauses in which a closing shows before the next request.
    Raises Inconclusive where that does not help.
    """
    for attempt in range(TRIES):
        answers: list[Answer] = []
        with wire.connect() as connection:
            for request in requests:
                time.sleep(PAUSE if attempt else 0)
                kept = len(answers) == len(requests) - 1 and connection.open
                answers.append(connection.exchange(request))
                if answers[-1].exchange.trouble == Trouble.CLOSED:
                    break
            else:
                return answers, kept
    raise verify.Inconclusive(
        f"{answers[-1].exchange.line}: each of {TRIES} connections was closed, and a further request not answered",
        "HTTP-2",
    )


@requirement("AUTH-6", mode=Mode.FULL, pending=2)
def test_connection_lends_no_key_to_cancelling(api: Api, wire: Wire, orders: Orders, key: str) -> None:
    """On a kept-alive connection that carried the valid key just before: cancels of pending orders without a key, and
    with a wrong one, are refused."""
    first, second = orders.take(pending=2).pending
    for order, wrong in ((first, NOBODY), (second, credentials.telling_invalid_keys(key)[0])):
        with wire.connect() as connection:
            before = connection.exchange(api.ask_list())
            verify.step(before, 200, "LIST-1")
            refusal = connection.exchange(api.ask_cancel(order, wrong))
            if verify.settled(refusal).status != 401:
                other = second if order == first else first
                refused_alone(api, [api.ask_cancel(other, wrong)] * TRIES)
            verify.refused([refusal], since=LENT, after=before)


def refused_alone(api: Api, requests: list[Request]) -> None:
    """See that the same requests are refused on connections of their own: else no connection lent them a key."""
    for answer in api.send_all(requests):
        verify.step(answer, 401, "AUTH-2 or AUTH-3")


@requirement("AUTH-6")
def test_cookies_lend_no_key(api: Api) -> None:
    """Lists with the key, and without one but with the cookies that came with the answer: 401. Where none came there is
    nothing to lend one."""
    answer = api.list()
    verify.step(answer, 200, "LIST-1")
    lent_nothing(api, [answer], [api.ask_list(NOBODY)])


@requirement("AUTH-6", mode=Mode.GUARDED)
def test_cookies_lend_no_key_to_cancelling(api: Api) -> None:
    """Lists, and cancels an order that does not exist, with the key, and then does both without one but with the
    cookies that came with the answers: 401."""
    (order,) = api.absent()
    answers = [api.list(), api.cancel(order)]
    lent_nothing(api, answers, [api.ask_list(NOBODY), api.ask_cancel(order, NOBODY)])


def lent_nothing(api: Api, answers: list[Answer], asked: list[Request]) -> None:
    """Demand that what is `asked` without a key is refused with the cookies of `answers`, too."""
    given = [
        value.partition(";")[0] for answer in answers for name, value in answer.headers if name.lower() == "set-cookie"
    ]
    if not given:
        return
    for request in asked:
        verify.step(api.send(request), 401, "AUTH-2")
    strangers = [replace(request, headers=(("Cookie", "; ".join(given)),)) for request in asked]
    verify.refused(api.send_all(strangers), since="this request has no key, whatever cookies an earlier one was given")


@requirement("AUTH-6")
@pytest.mark.lengthy
def test_refusals_do_not_add_up(api: Api) -> None:
    """Has many requests refused in a row, without a key and with a wrong one: the last is refused as the first was, and
    the valid key is as good afterwards as before."""
    before = [api.list() for _ in range(1 + TRIES)]
    if all(verify.settled(answer).status == 401 for answer in before):
        # The run has begun with a listing that took the key: since then there were only refusals.
        raise verify.Failed(
            "the valid key accepted, as when the run began", "401, each time that it was tried", *before[:2]
        )
    verify.step(before[0], 200, "LIST-1")
    wrong = credentials.bearer("not-the-key", "the word 'not-the-key'", "not-the-key")
    for who, more in ((wrong, MANY - FEW), (NOBODY, MANY // 2 - FEW)):
        for answer in filterfalse(turned_away, api.send_all([api.ask_list(who)] * FEW, at_once=True)):
            verify.step(answer, 401, "AUTH-2 or AUTH-3")
        for answer in api.send_all([api.ask_list(who)] * more):
            verify.refused([answer], since=f"the request is the same as {FEW} that were refused before it")
    answer = api.list()
    if verify.settled(answer).status != 200:
        verify.not_sporadic(answer, 200)
        raise verify.Failed(
            "the valid key accepted as before", f"{verify.describe(answer)} after {MANY + MANY // 2} refusals", answer
        )


# --- AUTH-7 to AUTH-9: recommended


@requirement("AUTH-7")
def test_refused_listing_carries_a_challenge(api: Api, key: str) -> None:
    """Has listings refused without key and with a wrong one: WWW-Authenticate names Bearer."""
    verify.meets("AUTH-7", api.list(NOBODY), api.list(credentials.near_misses(key)[0]))


@requirement("AUTH-7", mode=Mode.GUARDED)
def test_refused_cancel_carries_a_challenge(api: Api, key: str) -> None:
    """Has cancels refused without key and with a wrong one: WWW-Authenticate names Bearer."""
    verify.meets("AUTH-7", *cancels(api, api.absent(), [NOBODY, credentials.near_misses(key)[0]]))


def same_as_bearer(answers: list[Answer]) -> None:
    for answer in answers:
        if verify.settled(answer).status in (400, 401, 403):
            verify.not_sporadic(answer, 200, 404)
            raise verify.Failed(
                "the key accepted, since the name of a scheme is case-insensitive", verify.describe(answer), answer
            )


@requirement("AUTH-8")
def test_scheme_in_any_case_lists(api: Api, key: str) -> None:
    """Lists with the valid key behind `bearer`, `BEARER` and `bEaReR`: accepted."""
    verify.step(api.list(), 200, "LIST-1")
    same_as_bearer(api.send_all(api.ask_list(scheme) for scheme in credentials.schemes(key)))


@requirement("AUTH-8", mode=Mode.GUARDED)
def test_scheme_in_any_case_cancels(api: Api, key: str) -> None:
    """Cancels an order that does not exist with the valid key behind other spellings of the scheme: accepted."""
    (order,) = api.absent()
    verify.step(api.cancel(order), 404, "CANCEL-5")
    same_as_bearer(cancels(api, [order], credentials.schemes(key)))


def told(answer: Answer) -> tuple[object, ...]:
    """What a refused cancel tells: its status, and `code` and `message` of its body."""
    verify.step(answer, 401, "AUTH-2 or AUTH-3")
    try:
        body = answer.json.value
    except NotJson:
        return (answer.status, answer.body)
    if not isinstance(body, dict):
        return (answer.status, as_json(body))
    return (answer.status, body.get("code"), body.get("message"))


def in_words(told: tuple[object, ...]) -> str:
    status, *words = told
    if len(words) == 2:
        return f"{status} with {as_json(dict(zip(('code', 'message'), words, strict=True)))}"
    return f"{status} with the body {shown(words[0])}"


@requirement("AUTH-9", mode=Mode.FULL, pending=1, shipped=1)
def test_refusal_does_not_tell_whether_the_order_exists(api: Api, orders: Orders, key: str) -> None:
    """Has cancels of a pending, a shipped and two absent orders refused, without key and with a wrong one: status, code
    and message are the same for all, except for what differs between the absent ones, such as a time or the path."""
    taken = orders.take(pending=1, shipped=1)
    absent = api.absent(2)
    ids = {"absent": absent[0], "pending": taken.pending[0], "shipped": taken.shipped[0], "absent too": absent[1]}
    for wrong in (NOBODY, credentials.near_misses(key)[0]):
        asked = api.send_all(api.ask_cancel(order, wrong) for order in ids.values())
        answers = dict(zip(ids, asked, strict=True))
        words = {state: told(answer) for state, answer in answers.items()}
        kept = [one == other for one, other in zip_longest(words["absent"], words["absent too"])]
        for state in ("pending", "shipped"):
            if list(compress(words[state], kept)) != list(compress(words["absent"], kept)):
                if any(told(answers[of].repeat()) != words[of] for of in (state, "absent")):
                    raise verify.Inconclusive("what a refused cancel tells varies with each request", "ERR-3")
                raise verify.Failed(
                    "the same status, code and message whether the order exists or not",
                    f"{in_words(words[state])} for a {state} order; {in_words(words['absent'])} for an absent one",
                    answers[state],
                    answers["absent"],
                )
