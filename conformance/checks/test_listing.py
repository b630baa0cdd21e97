"""LIST: every order, as it is, in one answer (specification, sections 2, 4.1 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from conformance import verify
from conformance.api import BROWSER, NAMES_JSON, NAMES_OTHERS, SCRIPT, Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import ids, many
from conformance.contract.jsontext import INT64, integer
from conformance.contract.listing import Listing
from conformance.contract.validators import shown
from conformance.target import Mode, Target
from conformance.transport.client import Answer
from conformance.transport.evidence import NOBODY, Allowed

#: Query parameters in common use for paging, filtering, sorting and choosing fields.
QUERIES = (
    "limit=1", "page=2", "page=0", "page_size=1", "per_page=1", "pageSize=1", "page=2&per_page=1", "size=1",
    "offset=1", "skip=1", "start=1", "count=1", "first=1", "top=1", "%24top=1", "%24skip=1", "cursor=x", "after=1",
    "before=1", "since=2999-01-01", "from=1", "status=pending", "status=shipped", "status=none", "state=shipped",
    "complete=true", "complete=false", "shipped=true", "petId=-1", "pet_id=-1", "id=-1", "ids=-1", "orderId=-1",
    "q=none", "query=none", "search=none", "filter=none", "filter%5Bstatus%5D=none", "where=0", "sort=id",
    "fields=none", "quantity=-1", "shipDate=1900-01-01", "max=1", "limit=0",
    "page%5Bsize%5D=1", "page%5Bnumber%5D=2", "pageNumber=2", "perPage=1", "rows=1", "take=1", "maxResults=1",
    "max_results=1", "starting_after=1", "%24filter=false", "createdAfter=2999-01-01", "created_after=2999-01-01",
    "updated_since=2999-01-01", "to=1", "until=1900-01-01", "end=1", "dateTo=1900-01-01", "completed=true", "open=true",
    "is_complete=true", "active=true", "archived=true", "status=PENDING", "status=placed", "status=approved",
    "length=1", "last=1", "pageNo=2", "page_no=2", "page_number=2", "page-size=1", "maxItems=1", "batch_size=1",
    "resultsPerPage=1", "show=1", "lastId=9223372036854775807", "max_id=-1", "shipDateFrom=2999-01-01",
    "ship_date=1900-01-01", "minQuantity=999999999", "pet=-1", "petIds=-1", "isShipped=true", "statuses=none",
    "keyword=none", "complete=True",
    # Of JSON Server, JSON:API, LoopBack, Feathers, API Platform and the like.
    "_limit=1", "_page=2", "_start=1", "_end=1", "%24limit=1", "page%5Blimit%5D=1", "page%5Boffset%5D=1",
    "filter%5Blimit%5D=1", "filter%5BpetId%5D=-1", "status%5B%5D=none", "shipDate%5Bgte%5D=2999-01-01",
    "quantity_gt=999999999", "itemsPerPage=1", "items_per_page=1", "pageIndex=2", "pagesize=1", "Limit=1", "p=2", "n=1",
    "num=1", "pageToken=x", "nextToken=x", "since_id=9223372036854775807", "updatedAfter=2999-01-01",
    "startDate=2999-01-01", "start_date=2999-01-01", "from_date=2999-01-01", "fromDate=2999-01-01",
    "dateFrom=2999-01-01", "endDate=1900-01-01", "end_date=1900-01-01", "date=1900-01-01", "order_id=-1",
    "customerId=-1", "userId=-1", "isComplete=true", "status__in=none", "%24count=true",
    # Limits where some services ignore lower ones, and another spelling of true.
    "limit=5", "limit=10", "complete=1",
)  # fmt: skip
#: Those that are most often obeyed, tried by themselves: some services obey them only where no unknown one is beside.
ALONE = (
    "limit=1", "page=2", "page=0&size=1", "size=1", "offset=1", "limit=1&offset=1", "status=shipped", "petId=-1",
    "status=approved&status=placed",
)  # fmt: skip

#: Characters of a query at most: some services and gateways take no more than 2,000 for a whole URL.
LONGEST_QUERY = 1_600

#: A multiple of common page sizes, and queries for pages as large as those may be at most.
PAGE = 100
PAGES = ("limit=100", "page=1", "per_page=100&page_size=100&pageSize=100&size=100&limit=100&offset=0&take=100&max=100")

#: Languages whose digits, decimals and letters get into JSON where a service formats by the language of who asks.
LANGUAGES = ("ar", "de", "tr")

#: How often the store is emptied before the check concludes that others keep placing orders in it.
TRIES = 3


def listed(answer: Answer) -> Listing:
    """The listing in the answer that a check is about: 200 with an array."""
    verify.status(answer, 200, since="the key is valid and the listing takes no parameters")
    verify.meets("LIST-1", answer)
    found = answer.listing
    assert found is not None, "what meets LIST-1 is readable"
    return found


def judged(api: Api, row: str) -> None:
    """List, and demand that the listing meets a requirement that is judged on every listing of the run."""
    answer = api.list()
    verify.listing(answer)
    verify.meets(row, answer)


# --- LIST-1, LIST-2, LIST-4: what a listing is. These are judged on every listing of the run, too.


@requirement("LIST-1")
def test_listing_is_a_json_array(api: Api) -> None:
    """Lists, with several spellings of Accept, a browser's and its scripts' among them, and for readers of several
    languages: 200, application/json, one JSON text, an array. To a client that accepts XML and CSV only, a client error
    will do."""
    accepted = ("application/json", "application/json, */*;q=0.1", "application/*")
    headers = [
        (),
        *((("Accept", accept),) for accept in accepted),
        BROWSER,
        SCRIPT,
        *((("Accept-Language", language),) for language in LANGUAGES),
    ]
    for answer in api.send_all(api.ask_list(headers=each) for each in headers):
        listed(answer)
    answer = api.send(replace(api.ask_list(headers=NAMES_OTHERS), allowed=Allowed.ANY_4XX))
    if not verify.settled(answer).client_error:
        listed(answer)


@requirement("LIST-2")
def test_elements_are_orders(api: Api) -> None:
    """Judges every element of the listing: an object whose listed fields have the listed type and format."""
    judged(api, "LIST-2")


@requirement("LIST-2", pending=2, shipped=2)
def test_orders_in_every_state_are_orders(api: Api, orders: Orders) -> None:
    """Judges every element while pending and shipped orders of the suite are among them."""
    orders.take(pending=2, shipped=2)
    judged(api, "LIST-2")


@requirement("LIST-4")
def test_ids_are_unique(api: Api) -> None:
    """Looks for an id that two elements carry."""
    judged(api, "LIST-4")


@requirement("LIST-4", pending=2, shipped=2)
def test_ids_in_every_state_are_unique(api: Api, orders: Orders) -> None:
    """Looks for an id that two elements carry, while pending and shipped orders of the suite are among them."""
    orders.take(pending=2, shipped=2)
    judged(api, "LIST-4")


# --- LIST-3: every order


def none_missing(api: Api, placed: list[int], state: str, answer: Answer, target: Target) -> None:
    """Demand that the listing shows each of `placed`, which are "pending" or "shipped". Raises Inconclusive where
    neither the listing nor cancelling knows one: the state provider may have made it up."""
    found = verify.listing(answer)
    absent = [order for order in placed if order not in found.by_id]
    if not absent:
        return
    if len(absent) <= found.without_id:
        owner = "LIST-2" if found.odd_ids else None
        raise verify.Inconclusive(f"order {absent[0]} is not listed by id, but {verify.without_ids(found)}", owner)
    if target.mode is Mode.FULL and verify.settled(api.cancel(absent[0])).status == 404:
        raise verify.Inconclusive(
            f"neither the listing nor cancelling knows order {absent[0]}, which the state provider handed out as "
            f"{state}: the provider may be at fault"
        )
    raise verify.Failed(
        f"every order placed, among them the {len(placed)} that the suite was given as {state}",
        f"{len(found.elements)} elements without order {', '.join(map(str, absent[:5]))}",
        answer,
    )


@requirement("LIST-3", pending=12, shipped=4)
def test_orders_placed_are_listed(api: Api, orders: Orders, target: Target) -> None:
    """Lists, has orders placed in both states, and lists again and again: each is there, at once and every time."""
    api.list()
    taken = orders.take(pending=12, shipped=4, looked_for=False)
    for answer in (api.list(), *api.send_all([api.ask_list()] * 3)):
        none_missing(api, taken.pending, "pending", answer, target)
        none_missing(api, taken.shipped, "shipped", answer, target)


@requirement("LIST-3", mode=Mode.FULL, pending=3, shipped=1)
def test_orders_are_listed_after_another_was_cancelled(api: Api, orders: Orders) -> None:
    """Cancels one order between two listings: the others are still there."""
    taken = orders.take(pending=3, shipped=1)
    verify.step(api.cancel(taken.pending[1]), 204, "CANCEL-1")
    answer = api.list()
    found = verify.listing(answer)
    rest = [taken.pending[0], taken.pending[2], *taken.shipped]
    gone = [order for order in rest if order not in found.by_id]
    if len(gone) > found.without_id:
        # Whether cancelling took them too is for CANCEL-8 to say: here only those count that still exist.
        probe = api.cancel(gone[0])
        verify.step(probe, 409 if gone[0] in taken.shipped else 204, "CANCEL-8")
        raise verify.Failed("every order placed and not cancelled", f"no order {gone[0]} in the listing", answer, probe)


@requirement("LIST-3", empty_store=True, pending=1, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone("late")
def test_only_order_is_listed(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Has the store emptied and one order placed, which is the first and the last: it is listed, and so is a shipped
    one when that is cancelled. The check of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        only = orders.take(pending=1, looked_for=False).pending
        none_missing(api, only, "pending", api.list(), target)
        behind = orders.take(shipped=1, looked_for=False).shipped
        verify.step(api.cancel(only[0]), 204, "CANCEL-1")
        none_missing(api, behind, "shipped", api.list(), target)


# --- LIST-5, LIST-6: all of it, whatever is asked


@requirement("LIST-5", many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_no_hidden_page(api: Api, orders: Orders, target: Target, met: set[str]) -> None:
    """Has more orders placed than common page sizes hold (bulk_orders, 1,100 unless configured, or a few less, such
    that they fill pages of 100 within the service), and looks for each, in a listing as it comes, in one for a browser
    that may not be compressed, and in one for a program. Lists with queries for pages, and where orders may be
    cancelled, cancels some: the checks about that place so many again only if something was wrong."""
    first = many.shipped(orders, target)
    over = (len(api.listing().elements) + target.bulk_orders) % PAGE if target.bulk_orders > 2 * PAGE else 0
    placed = orders.take(pending=target.bulk_orders - over, looked_for=False).pending
    headers = ((), (("Accept-Encoding", "identity"), *BROWSER), NAMES_JSON)
    for answer in api.send_all(api.ask_list(headers=each) for each in headers):
        none_hidden(api, placed, answer, target)
    if not any(verify.left_out(frozenset(placed), found) for _, found in paged(api)):
        met.add("listing.query_parameters_do_not_shrink_among_many")
    if target.mode is Mode.FULL:
        met.update(many.met(api, placed, [*first, *many.shipped(orders, target)]))


def paged(api: Api) -> list[tuple[Answer, Listing]]:
    """The listings in the answers to queries for pages; other answers than 200 are open."""
    answers = api.send_all(api.ask_list(query=query) for query in PAGES)
    return [(answer, answer.listing) for answer in answers if answer.status == 200 and answer.listing is not None]


def none_hidden(api: Api, placed: list[int], answer: Answer, target: Target) -> None:
    """Demand that the listing shows each of `placed`."""
    found = verify.listing(answer)
    lost = [order for order in placed if order not in found.by_id]
    if len(lost) <= found.without_id:
        return
    if target.mode is Mode.FULL and verify.settled(api.cancel(lost[0])).status == 404:
        raise verify.Inconclusive(
            f"neither the listing nor cancelling knows order {lost[0]}: it may be the provider that is at fault"
        )
    raise verify.Failed(
        f"all orders in one listing, among them the {len(placed)} that were placed for this",
        f"{len(found.elements)} elements, without {len(lost)} of them",
        answer,
        certain=ends_early(placed, lost),
    )


def ends_early(placed: list[int], lost: list[int]) -> bool:
    """Whether some of `placed` are shown and those `lost` are all that come after or before them, as where pages end.
    What is left out here and there, by its fields perhaps, would be left out among few, too (LIST-3)."""
    rows = (placed, sorted(placed))
    return 1 < len(lost) < len(placed) and any(
        set(lost) in (set(row[-len(lost) :]), set(row[: len(lost)])) for row in rows
    )


@requirement("LIST-5", mode=Mode.FULL, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_no_order_is_hidden_while_others_are_cancelled(
    api: Api, orders: Orders, target: Target, already_met: bool
) -> None:
    """Cancels a few of as many orders and lists at once: what is read page by page may lose an order between two of
    them. The check of hidden pages may have seen that already."""
    if already_met:
        return
    placed = orders.take(pending=target.bulk_orders, looked_for=False).pending
    if verify.left_out(frozenset(placed), api.listing()):
        raise verify.Inconclusive("not all of so many orders are listed while none is cancelled", "LIST-5")
    chosen = many.inner(placed)
    many.listed_meanwhile(api, chosen, [order for order in placed if order not in chosen], paged=True)


@requirement("LIST-6")
def test_query_parameters_do_not_shrink(api: Api, observe: Observations) -> None:
    """Lists without and with the query parameters in common use for paging and filtering, some by themselves, all many
    at a time and, where that tells something, each: what is listed before and after is listed in between. An answer
    other than 200 is observed."""
    compare_filtered(api, observe)


@requirement("LIST-6", pending=2, shipped=2)
def test_query_parameters_do_not_shrink_with_orders_in_every_state(
    api: Api, orders: Orders, observe: Observations
) -> None:
    """The same while pending and shipped orders of the suite are in the listing."""
    orders.take(pending=2, shipped=2)
    compare_filtered(api, observe)


@requirement("LIST-6", many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_query_parameters_do_not_shrink_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Lists with queries for pages, while there are more orders than go into one: all of them are listed all the same.
    The check of LIST-5 may have seen that already."""
    if already_met:
        return
    orders.take(pending=target.bulk_orders, looked_for=False)
    before = api.listing()
    found = paged(api)
    steady = verify.listed_throughout(before, api.listing())
    for answer, listing in found:
        verify.nothing_left_out(steady, listing, answer)


def compare_filtered(api: Api, observe: Observations) -> None:
    """List with each of the QUERIES, and demand what is listed before and after."""
    before = api.listing()
    together = api.send_all(api.ask_list(query=query) for query in (*heaped(QUERIES), *ALONE))
    steady = verify.listed_throughout(before, api.listing())
    if all(
        answer.status == 200 and answer.listing and not verify.left_out(steady, answer.listing) for answer in together
    ):
        observe("unknown query parameters", {"200": "all"}, together[0])
        return
    statuses: dict[str, list[str]] = {}
    answers = api.send_all(api.ask_list(query=query) for query in QUERIES)
    steady &= api.listing().ids
    for query, answer in zip(QUERIES, answers, strict=True):
        statuses.setdefault(str(verify.settled(answer).status), []).append(query)
    for answer in (*answers, *together):
        query = answer.request.query
        if answer.status != 200:
            continue
        found = answer.listing
        if found is None:
            again = answer.repeat()
            if again.listing is not None or again.status != 200:
                raise verify.Inconclusive(f"{answer.exchange.line} gave no readable listing once", "LIST-1")
            raise verify.Failed(
                f"a listing in spite of ?{query}", shown(answer.body.decode("utf-8", "replace")), answer
            )
        verify.nothing_left_out(steady, found, answer)
    told = {status: same if len(same) < len(QUERIES) else "all" for status, same in statuses.items()}
    observe("unknown query parameters", told, answers[0])


def heaped(queries: Sequence[str]) -> list[str]:
    """The same parameters in few queries, none long or with a name twice: a service that minds one minds it there."""
    heaps: list[dict[str, str]] = []
    for query in queries:
        names = {part.partition("=")[0]: part for part in query.split("&")}
        room = LONGEST_QUERY - len(query)
        fits = (heap for heap in heaps if not heap.keys() & names.keys() and len("&".join(heap.values())) < room)
        heap = next(fits, None)
        if heap is None:
            heaps.append(heap := {})
        heap |= names
    return ["&".join(heap.values()) for heap in heaps]


# --- LIST-7: none


@requirement("LIST-7", empty_store=True, pending=2, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
def test_empty_store_is_an_empty_array(api: Api, orders: Orders, met: set[str]) -> None:
    """Has the store emptied, while no other check runs, and lists: 200 with []. Then one order is placed and cancelled,
    one that does not exist is cancelled, the store is listed, without a key as well, and so on with two: what is right
    with many must be right with few, and has checks of its own, which look again if it was not."""
    # What this listing is, is for this check alone to say: judged as any other, it would fail LIST-1 as well.
    asked = replace(api.ask_list(), allowed=Allowed.OPEN)
    known: set[str] = set()
    for _ in range(TRIES):
        orders.empty_store()
        answers = api.send_all([asked, asked])
        there = contents(*(answer.listing for answer in answers))
        if not there or there & known:  # what is there again was not placed by others just now
            break
        known = there
    else:
        raise verify.Excluded("others place orders all the time, so the store cannot be seen empty")
    try:
        for answer in answers:
            holds_nothing(answer)
    except verify.Failed:
        orders.take(pending=1, looked_for=False)
        api.listing()  # what is wrong with any listing is no matter of an empty store
        raise
    with suppress(verify.Excluded, verify.Inconclusive):  # the other checks say so themselves
        met.update(met_by_few(api, orders))


def met_by_few(api: Api, orders: Orders) -> set[str]:
    """The ids of the checks whose demand is met in a store that is empty at first: one order is placed, listed and
    cancelled, and a shipped one behind another, which is cancelled. HTTP-1 is to say where a status is not listed."""
    (absent,) = api.absent(anew=False)
    (only,) = orders.take(pending=1, looked_for=False).pending
    pending = api.list()
    cancelled = api.cancel(only)
    none = [api.ask_list(), api.ask_list(NOBODY), api.ask_cancel(absent)]
    left, _, missed, again = api.send_all([*none, api.ask_cancel(only, allowed=Allowed.ANY_4XX)])
    if left.listing is None or left.listing.elements:  # cancelled orders stay there
        orders.empty_store()
        *_, missed = api.send_all(none)
    taken = orders.take(pending=1, shipped=1, looked_for=False)
    (behind,) = taken.shipped
    first = api.cancel(taken.pending[0])
    shipped, refused = api.send_all([api.ask_list(), api.ask_cancel(behind)])
    listings = ((only, pending.listing), (behind, shipped.listing))
    done = all(answer.status == 204 or verify.unlisted(answer) for answer in (cancelled, first))
    demands = {
        "listing.only_order_is_listed": all(found is not None and order in found.by_id for order, found in listings),
        "cancelling.only_order_is_cancelled": done and not again.succeeded,
        "cancelling.only_shipped_order_is_refused": refused.status == 409 or verify.unlisted(refused),
        "cancelling.absent_order_of_an_empty_store_is_not_found": missed.status == 404 or verify.unlisted(missed),
        "cancelling.order_behind_the_first_is_untouched": refused.status == 409,
    }
    return {check for check, met in demands.items() if met}


def holds_nothing(answer: Answer) -> None:
    """Demand that a listing is an empty array."""
    if answer.status not in (None, 200) and answer.repeat().status == 200:
        owner = "AUTH-1" if answer.status == 401 else "HTTP-1"
        raise verify.Inconclusive(f"{answer.exchange.line} answered {answer.exchange.received} once", owner)
    verify.status(answer, 200, since="an empty collection is an empty array")
    if answer.listing is None and any(answer.repeat().listing is not None for _ in range(2)):
        raise verify.Inconclusive(f"{answer.exchange.line} answered with no array, and then with one", "HTTP-2")
    if answer.listing is None:
        raise verify.Failed("[]", f"the body {shown(answer.body.decode('utf-8', 'replace'))}", answer)
    if answer.listing.elements:
        raise verify.Failed("[]", f"an array of {len(answer.listing.elements)} elements", answer)


def contents(*listings: Listing | None) -> set[str]:
    """The elements of listings, each written out."""
    return {repr(element) for listing in listings if listing for element in listing.elements}


# --- LIST-8: exact ids


@requirement("LIST-8", chosen_ids=True, pending=1)
def test_ids_beyond_a_double(api: Api, orders: Orders) -> None:
    """Has orders placed with ids above 2^31, above 2^53 and near 2^63, and finds each in the listing to the digit."""
    draw = api.rng.randrange
    # No two agree in their low 32 bits or as doubles: what becomes of one is not taken for another.
    wanted = [
        2**31 + draw(10**6),
        2**32 + 10**7 + draw(10**6),
        2**53 + 2 * 10**7 + 1 + 2 * draw(10**6),
        2**60 + 4 * 10**7 + 1 + 2 * draw(10**6),
        INT64.stop - ids.ENDS - 1 - 2 * draw(10**4),
    ]
    exactly(api, orders, wanted)


@requirement("LIST-8", chosen_ids=True, pending=1)
def test_ids_below_zero(api: Api, orders: Orders) -> None:
    """Has orders placed with ids below zero, where the provider places such, and finds each to the digit."""
    draw = api.rng.randrange
    exactly(api, orders, [-draw(10**6, 10**7), -(2**32) - draw(10**6), -(2**53) - 10**7 - 1 - 2 * draw(10**6)])


def exactly(api: Api, orders: Orders, wanted: list[int]) -> None:
    """Have orders with the `wanted` ids placed and demand them in the listing, if it shows an order without a special
    id. An id is lost to its magnitude if another is there in its place, or if all beyond some magnitude are lost."""
    orders.take(pending=1)
    taken = api.listing().ids
    wanted = [order for order in wanted if order not in taken]
    placed = orders.place(wanted, looked_for=False).pending
    answers = api.send_all([api.ask_list()] * 3)
    listings = [verify.listing(answer) for answer in answers]
    lost = [order for order in placed if not any(order in listing.by_id for listing in listings)]
    found, answer = listings[0], answers[0]
    if lost:
        stand_ins = {order: stand_in(order, found.ids - taken - set(placed)) for order in lost}
        there = [order for order in lost if stand_ins[order] is not None]
        kept = [abs(order) for order in placed if order not in lost]
        beyond = len(lost) > 1 and all(abs(order) > max(kept, default=0) for order in lost)
        if there:
            order = there[0]
            raise verify.Failed(f"order {order} with exactly this id", f"{stand_ins[order]} in its place", answer)
        if len(lost) <= found.without_id:
            raise verify.Inconclusive(verify.without_ids(found), "LIST-2")
        if not beyond:
            raise verify.not_shown(f"order {lost[0]} is not in the listing, for no reason that its id shows", found)
        raise verify.Failed(
            f"order {lost[0]} in the listing", f"no order with an id as far from zero as {min(lost, key=abs)}", answer
        )
    pets = {order: integer(found.by_id[order].get("petId")) for order in placed if order in found.by_id}
    # Some providers give such an order a petId equal to its id. Where another order shows that this one does, a petId
    # that equals the id as a double only has lost digits; elsewhere it may be the number of some other pet.
    same = [order for order, pet in pets.items() if pet == order]
    for order, pet in pets.items():
        if same and pet is not None and pet != order and abs(order) > 2**53 and float(pet) == float(order):
            raise verify.Failed(
                f"petId {order} to the digit, as the id of this order, since order {same[0]} has its id as petId, too",
                f"{pet} in its place",
                answer,
            )


def stand_in(order: int, others: frozenset[int]) -> int | None:
    """An id in `others` that `order` turns into on the way through a double, 32 bits, 53 bits or no sign."""
    bits = order % 2**32
    digits = str(abs(order))
    candidates = {
        -order,
        bits,
        bits - 2**32,
        order % 2**31,
        *(min(max(order, -limit), limit - 1) for limit in (2**31, 2**53, 2**63)),
        *(min(max(order, 1 - limit), limit) for limit in (2**31 - 1, 2**32 - 1, 2**53 - 1, 2**53, 2**63 - 1)),
        *((-1 if order < 0 else 1) * int(digits[:kept].ljust(len(digits), "0")) for kept in (15, 16, 17)),
    }
    near = (other for other in others if other in candidates or float(other) == float(order))
    return next(near, None)


# --- LIST-9: reading changes nothing


@requirement("LIST-9", mode=Mode.FULL, pending=2, shipped=2)
def test_reading_changes_nothing(api: Api, orders: Orders) -> None:
    """Lists many times: the orders of the suite stay as they are, the shipped one is still refused and the pending one
    still cancellable, as another is that was placed after the reading."""
    taken = orders.take(pending=1, shipped=1)
    if taken.listing is None:
        raise verify.Inconclusive("there is no readable listing", "LIST-1")
    *_, last = api.send_all([api.ask_list()] * 6)
    verify.unchanged([*taken.pending, *taken.shipped], taken.listing, last, since="it was only read")
    cancelled = api.cancel(taken.pending[0])  # first: until then there was nothing but reading
    refusal = api.cancel(taken.shipped[0])
    unread = orders.take(pending=1, shipped=1, looked_for=False)
    verify.still_pending(cancelled, api.cancel(unread.pending[0]), since="it was only read", shown_by=[last])
    verify.still_shipped(refusal, lambda: api.cancel(unread.shipped[0]), since="it was only read", shown_by=[last])


# --- LIST-10, LIST-11: recommended ways to write things. Judged on every listing of the run, too.


@requirement("LIST-10", pending=2)
def test_dates_are_rfc3339(api: Api, orders: Orders) -> None:
    """Looks at every shipDate: RFC 3339, not another form of ISO 8601."""
    orders.take(pending=2)
    judged(api, "LIST-10")


@requirement("LIST-11", pending=2)
def test_integers_and_names_are_plain(api: Api, orders: Orders) -> None:
    """Looks at how integers are written, and for names that an object repeats."""
    orders.take(pending=2)
    judged(api, "LIST-11")


@requirement("LIST-10")
def test_dates_that_are_there_are_rfc3339(api: Api) -> None:
    """Looks at every shipDate of the listing as it is."""
    judged(api, "LIST-10")


@requirement("LIST-11")
def test_integers_and_names_that_are_there_are_plain(api: Api) -> None:
    """Looks at how integers are written in the listing as it is, and for names that an object repeats."""
    judged(api, "LIST-11")
