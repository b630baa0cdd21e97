"""AUTH-2: without a key nobody is let in, however a request is written and whatever else it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks.authentication.steps import same_with_the_key
from conformance.checks.clients import SENDS_JSON, VOUCHING_FIELDS
from conformance.contract.jsontext import integer
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import NOBODY, STATUSES, Allowed, Headers, Operation
from conformance.transport.wire import Wire

#: Other spellings of the path of the listing or of an order, the first of which is equivalent to it (RFC 3986 section
#: 6.2.2.2): where the key is asked for by one spelling and orders are looked up by another, they are anybody's.
SPELLINGS = (
    "/store/%6Frders{}", "/store/orders{}/", "/store//orders{}", "/STORE/ORDERS{}", "/store/orders{};x",
)  # fmt: skip
#: What tells of a page of the same site and its scripts.
PAGE_FIELDS = (
    ("Origin", "http://localhost"), ("Referer", "http://localhost/"), ("Sec-Fetch-Site", "same-origin"),
    ("X-Requested-With", "XMLHttpRequest"),
)  # fmt: skip
#: The same, with what tells of a look at whether the service is well, and of a look ahead of a request: either is often
#: answered in front of a service.
HARMLESS_FIELDS = (
    ("User-Agent", "ELB-HealthChecker/2.0"), *PAGE_FIELDS, ("Access-Control-Request-Method", "GET"),
)  # fmt: skip
#: What tells a service in place of the request line where a request goes. Some go by it, and refuse it otherwise than
#: for want of a key, so only the listing is asked for with it.
MISLEADING_FIELDS = (("X-Original-URL", "/"), ("X-Rewrite-URL", "/"), ("X-Forwarded-Host", "localhost"))
#: What vouches for clients in a query, and paths that are open to all as a rule, wherever in a URL they are looked for.
VOUCHING_QUERY = "debug=true&admin=true&internal=true&public=true&test=true&from=/health&next=/login&style=.css"
#: How the names of files end that may be had by anyone as a rule, or that tell a router what to answer with; and what
#: some cut off at the end of a path.
ENDINGS = (".json", ".css", "%20", ".")
#: What a program may skip where it reads a number, and the pattern by which a path is protected does not.
BEGINNINGS = ("000", "%2B", "%20")


@requirement("AUTH-2")
def test_no_disguise_lists_without_key(api: Api, wire: Wire, orders: Orders, target: Target) -> None:
    """Asks for the listing, and for one of its orders, without an Authorization header and in disguise: under other
    spellings of the path and of the base URL; with OPTIONS; with header fields or parameters by which somebody is
    vouched for or looks harmless; and with a query that was just answered with the key. Orders of the suite are in the
    listing, if it can have some placed. No answer shows an order of the listing, and what tells only of a page gets no
    success."""
    orders.add(pending=2)
    known = api.listing().ids
    if not known:
        raise outcomes.Excluded("the listing holds no order with an id, by which a leak could be recognised")
    plain = api.ask_list(NOBODY, allowed=Allowed.OPEN)
    paths = [*(spelling.format("") for spelling in SPELLINGS), "/store%2Forders", "/store/%256Frders", "//store/orders"]
    paths.append("/store/orders;x.js")  # a parameter of a path that ends like the name of a file for everyone
    paths += [f"/store/orders{ending}" for ending in ENDINGS]
    paths += [f"/store/orders/{one}" for one in sorted(known)[:1]]
    disguises = [replace(plain, path=path) for path in paths]
    disguises += [replace(plain, path=path, whole=True) for path in respelled(target)]
    disguises += [
        replace(plain, headers=headers)
        for headers in (VOUCHING_FIELDS, HARMLESS_FIELDS, MISLEADING_FIELDS, own_page(target))
    ]
    disguises.append(replace(plain, query=VOUCHING_QUERY))
    if target.mode is not Mode.OBSERVE:
        disguises.append(replace(plain, method="OPTIONS"))
    api.list(query=VOUCHING_QUERY)
    answers = api.send_all(disguises)
    for path in untidy_targets(target):  # which clients tidy up
        with wire.connect() as connection:
            answers.append(connection.exchange(replace(plain, path=path, whole=True)))
    for answer in answers:
        if known & shown_ids(answer):
            told = simplest(api, answer, lambda each: bool(known & shown_ids(each)))
            count = len(known & shown_ids(told))
            received = f"{told.exchange.received} with {count} of the orders, {disguise(told)}"
            raise outcomes.Failed("no order shown, since the key is missing", received, told)
        if answer.succeeded and answer.request.headers == HARMLESS_FIELDS:
            refuses_pages(api, answer)


def refuses_pages(api: Api, answer: Answer) -> None:
    """Demand no success for the listing without the key if only PAGE_FIELDS stand beside it: HARMLESS_FIELDS had one in
    `answer`, perhaps for one of the others."""
    of_a_page = api.send(replace(answer.request, headers=PAGE_FIELDS))
    if of_a_page.succeeded:
        told = simplest(api, of_a_page, lambda each: each.succeeded)
        received = f"{told.exchange.received}, {disguise(told)}"
        raise outcomes.Failed("no success, since the key is missing", received, told)


def own_page(target: Target) -> Headers:
    """What a page of the service's own address sends, such as that of its documentation."""
    base = urlsplit(target.base_url)
    origin = f"{base.scheme}://{base.netloc}"
    return (*SENDS_JSON, ("Origin", origin), ("Referer", f"{origin}/docs"))


def respelled(target: Target) -> list[str]:
    """The address of the listing with the base URL in capitals, and with a letter of it percent-encoded."""
    base = urlsplit(target.base_url).path
    before, _, version = base.rpartition("/")
    return [f"{each}/store/orders" for each in (base.upper(), f"{before}/%{ord(version[0]):02X}{version[1:]}")]


def untidy_targets(target: Target) -> list[str]:
    """The address of the listing with a segment that stands for nothing (RFC 3986 section 6.2.2.3), with the slash that
    browsers take for one, and in the absolute form (RFC 9112 section 3.2.2). In full mode also behind a path that is
    open to all as a rule, which a firewall of a deployment in use may take for an attack."""
    base = urlsplit(target.base_url).path
    targets = [f"{base}/./store/orders", f"{base}/store\\orders", f"{target.base_url}/store/orders"]
    if target.mode is Mode.FULL:
        targets += [f"/health/..{base}/store/orders", f"{base}/login/../store/orders"]
    return targets


def simplest(api: Api, answer: Answer, goes_wrong: Callable[[Answer], bool]) -> Answer:
    """The answer to the plain request, or with one of its fields or parameters, where that is enough for it to go
    wrong; else the one to all of them."""
    request = answer.request
    alone = [replace(request, headers=(), query="")] if request.headers or request.query else []
    alone += [replace(request, headers=(field,)) for field in request.headers]
    alone += [replace(request, query=parameter) for parameter in request.query.split("&") if parameter]
    return next(filter(goes_wrong, api.send_all(alone)), answer)


def disguise(answer: Answer) -> str:
    """What a request had in the place of a key, for "received"."""
    request = answer.request
    fields = ", ".join(name for name, _ in request.headers)
    query = f"?{request.query}" if request.query else ""
    return f"with {fields}" if fields else f"to {request.method} {request.path}{query}"


def shown_ids(answer: Answer) -> frozenset[int]:
    """The ids of the orders in an answer: a listing, or an object, but for that of a refusal."""
    if answer.listing is not None:
        return answer.listing.ids
    order = answer.json_object if answer.succeeded else None
    number = None if order is None else integer(order.get("id"))
    return frozenset() if number is None else frozenset({number})


@requirement("AUTH-2", mode=Mode.GUARDED)
def test_no_disguise_cancels_without_key(api: Api, orders: Orders, target: Target) -> None:
    """Cancels an order that does not exist without an Authorization header, with header fields or parameters by which
    somebody is vouched for or looks harmless: the answer is none that only a cancel with the key gets, such as 404. An
    answer that comes to any parameter, which cancelling has none of, or at any path does not count."""
    plain = api.ask_cancel(api.absent()[0], NOBODY, allowed=Allowed.OPEN)
    asked = [replace(plain, headers=headers) for headers in (VOUCHING_FIELDS, HARMLESS_FIELDS, own_page(target))]
    goes_wrong = partial(let_in, api)
    for answer in filter(goes_wrong, api.send_all([*asked, replace(plain, query=VOUCHING_QUERY)])):
        open_to_all = bool(answer.request.query) and not answer.succeeded
        if open_to_all and api.send(replace(plain, query="example=1")).status == answer.status:
            continue
        told = simplest(api, answer, goes_wrong)
        same_with_the_key(api, [told], orders)
        received = f"{told.exchange.received}, {disguise(told)}"
        raise outcomes.Failed("no answer but a refusal (401), since the key is missing", received, told)


def let_in(api: Api, answer: Answer) -> bool:
    """Whether a cancel without the key was answered as only one with it is. A success is not, if those header fields
    get it at a path of nothing, too: something in front of the service gives it. Raises like `verify.settled`."""
    success = verify.settled(answer).succeeded
    if success and answer.request.headers:
        nowhere = replace(answer.request, method="GET", path=f"{answer.request.path}/nowhere")
        return api.send(nowhere).status != answer.status
    return success or answer.status in STATUSES[Operation.CANCEL] - {401}


@requirement("AUTH-2", mode=Mode.FULL, pending=2)
def test_no_spelling_cancels_without_key(api: Api, orders: Orders) -> None:
    """Cancels a pending order without an Authorization header under other spellings of its path, and with a field by
    which some services take the method for one that only reads; and asks with OPTIONS what could be done with it. Where
    one of them is answered with success, the order can be cancelled with the key afterwards, as another can to which
    nothing was done."""
    order, control = orders.take_listed(pending=2).pending
    plain = api.ask_cancel(order, NOBODY, allowed=Allowed.OPEN)
    aliases = [f"{order}{ending}" for ending in ENDINGS] + [f"{beginning}{order}" for beginning in BEGINNINGS]
    aliases += ["".join(f"%{ord(digit):02X}" for digit in str(order))]
    paths = [spelling.format(f"/{order}") for spelling in SPELLINGS]
    paths += [f"/store/orders/{alias}" for alias in aliases if api.permits(alias)]
    paths += [f"/store/orders//{order}", f"/store/orders/{order}/x"]
    asked = [replace(plain, path=path) for path in paths]
    asked += [replace(plain, headers=(("X-HTTP-Method-Override", method),)) for method in ("GET", "OPTIONS")]
    asked.append(replace(plain, method="OPTIONS"))
    tried = api.send_all(asked)
    if done := [answer for answer in tried if answer.succeeded]:
        end, other = api.send_all(map(api.ask_cancel, (order, control)))
        verify.still_pending(end, other, since="the key was missing in all else that was asked of it", shown_by=done)
