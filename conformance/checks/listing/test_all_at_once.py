"""LIST-5, LIST-6: all of it, however much there is and whatever is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import filterfalse, islice
from urllib.parse import quote

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Observations, Orders
from conformance.check import requirement
from conformance.checks import many_orders
from conformance.checks.clients import BROWSER, NAMES_JSON, PLAIN, SCRIPT
from conformance.checks.credentials import LONGEST_QUERY
from conformance.checks.listing.steps import (
    all_shown,
    known_to_cancelling,
    listed_meanwhile,
    listed_throughout,
    nothing_left_out,
    outcome,
)
from conformance.contract.listing import Listing
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Headers
from conformance.transport.retries import turned_away

#: Query parameters in common use for paging, filtering, sorting and choosing fields. Where a number has to match it is
#: one that an order may have and hardly any does: a service may obey only those.
QUERIES = (
    "limit=1", "page=2", "page=0", "page_size=1", "per_page=1", "pageSize=1", "page=2&per_page=1", "size=1",
    "offset=1", "skip=1", "start=1", "count=1", "first=1", "top=1", "%24top=1", "%24skip=1", "cursor=x", "after=1",
    "before=1", "since=2999-01-01", "from=1", "status=pending", "status=shipped", "status=none", "state=shipped",
    "complete=true", "complete=false", "shipped=true", "petId=987654", "pet_id=987654", "id=987654", "ids=987654",
    "orderId=987654",
    "q=none", "query=none", "search=none", "filter=none", "filter%5Bstatus%5D=none", "where=0", "sort=id",
    "fields=none", "quantity=987654", "shipDate=1900-01-01", "max=1", "limit=0",
    "page%5Bsize%5D=1", "page%5Bnumber%5D=2", "pageNumber=2", "perPage=1", "rows=1", "take=1", "maxResults=1",
    "max_results=1", "starting_after=1", "%24filter=false", "createdAfter=2999-01-01", "created_after=2999-01-01",
    "updated_since=2999-01-01", "to=1", "until=1900-01-01", "end=1", "dateTo=1900-01-01", "completed=true", "open=true",
    "is_complete=true", "active=true", "archived=true", "status=PENDING", "status=placed", "status=approved",
    "length=1", "last=1", "pageNo=2", "page_no=2", "page_number=2", "page-size=1", "maxItems=1", "batch_size=1",
    "resultsPerPage=1", "show=1", "lastId=9223372036854775807", "max_id=-1", "shipDateFrom=2999-01-01",
    "ship_date=1900-01-01", "minQuantity=999999999", "pet=987654", "petIds=987654", "isShipped=true", "statuses=none",
    "keyword=none", "complete=True", "q=status%3Anone",
    # Of JSON Server, JSON:API, LoopBack, Feathers, API Platform and the like.
    "_limit=1", "_page=2", "_start=1", "_end=1", "%24limit=1", "page%5Blimit%5D=1", "page%5Boffset%5D=1",
    "filter%5Blimit%5D=1", "filter%5BpetId%5D=987654", "status%5B%5D=none", "shipDate%5Bgte%5D=2999-01-01",
    "quantity_gt=999999999", "itemsPerPage=1", "items_per_page=1", "pageIndex=2", "pagesize=1", "Limit=1", "p=2", "n=1",
    "num=1", "pageToken=x", "nextToken=x", "since_id=9223372036854775807", "updatedAfter=2999-01-01",
    "page_token=x", "continuationToken=x", "id%5B%5D=987654", "start_index=2", "modifiedSince=2999-01-01",
    "startDate=2999-01-01", "start_date=2999-01-01", "from_date=2999-01-01", "fromDate=2999-01-01",
    "dateFrom=2999-01-01", "endDate=1900-01-01", "end_date=1900-01-01", "date=1900-01-01", "order_id=987654",
    "customerId=987654", "userId=987654", "isComplete=true", "status__in=none", "%24count=true",
    "pending=true", "orderStatus=none", "order_status=none", "petid=987654", "filter%5Bcomplete%5D=none",
    "min_quantity=999999999", "quantity_min=999999999", "maxQuantity=-1", "shipped_before=1900-01-01", "before_id=-1",
    # Limits where some services ignore lower ones, and another spelling of true.
    "limit=5", "limit=10", "complete=1",
    # What comes after the last, where a number is that of an order and not a place.
    "after=9223372036854775806", "cursor=9223372036854775806",
    # Of Rails, Yii, SCIM, FHIR, Strapi, Ransack, PostgREST, Django, Stripe and others.
    "per=1", "per-page=1", "startIndex=2", "_count=1", "pagination%5BpageSize%5D=1", "pagination%5Blimit%5D=1",
    "chunk=1", "pageLimit=1", "page_limit=1", "list_size=1", "records=1", "max_count=1", "maxSize=1", "range=0-0",
    "filters%5Bstatus%5D=none", "q%5Bstatus_eq%5D=none", "quantity__gt=999999999",
    "shipDate__gte=2999-01-01", "id__gt=9223372036854775806", "created%5Bgte%5D=2999-01-01", "ending_before=1",
    "min_id=9223372036854775806", "id_after=9223372036854775806", "include=none", "only=none", "ids%5B%5D=987654",
    "exclude=pending", "tenant=none", "tenantId=987654", "storeId=987654", "user=none", "user_id=987654",
    "customer=none",
    "owner=none", "mine=true", "email=none", "category=none", "tag=none", "tags=none", "type=none", "species=none",
    "deleted=true", "trashed=true", "cancelled=true", "placedAfter=2999-01-01", "orderDate=1900-01-01",
    "updatedSince=2999-01-01", "modified_since=2999-01-01", "year=1900",
    "from=2999-01-01", "to=1900-01-01", "after=2999-01-01", "before=1900-01-01", "shipDateTo=1900-01-01",
    "shipDateAfter=2999-01-01", "shipDateBefore=1900-01-01", "ship_date_from=2999-01-01", "ship_date_to=1900-01-01",
    "term=none", "text=none", "find=none", "name=none", "petName=none", "paginate=true", "paged=true",
    "pagination=true", "currentPage=2", "latest=true", "recent=true", "includeComplete=false",
    # Of Parse, Eve, LoopBack, react-admin and RSQL.
    "where=%7B%22status%22%3A%22none%22%7D", "filter=%7B%22status%22%3A%22none%22%7D", "range=%5B0%2C0%5D",
    "filter=status%3D%3Dnone", "limit=-1", "distinct=petId", "sort=shipDate", "orderBy=shipDate", "order_by=shipDate",
    # What pages in some later version, and operators in brackets.
    "version=2", "v=2", "api-version=2", "preview=true", "beta=true", "quantity%5Bgte%5D=999999999",
    "id%5Bgt%5D=9223372036854775806", "hitsPerPage=1", "rowsPerPage=1", "maxRecords=1",
    # For something else than JSON, or than an array: the first two of Django REST framework and Express.
    "format=csv", "format=api", "callback=f", "envelope=true", "count=true",
)  # fmt: skip
#: Those that are most often obeyed, tried by themselves: some services obey them only where no unknown one is beside.
ALONE = (
    "limit=1", "page=2", "page=0&size=1", "size=1", "offset=1", "limit=1&offset=1", "status=shipped", "petId=-1",
    "status=approved&status=placed", "pageNumber=2&pageSize=1",
)  # fmt: skip
#: The fields by which somebody may look for an order; how many orders tell which values are rare, and how long those
#: may be.
FIELDS_OF_ORDERS, LOOKED_AT, LONGEST_VALUE = ("id", "petId", "quantity", "shipDate"), 1_000, 100
#: Header fields that are in use for parts of a listing: as of files (RFC 9110 section 14.2), as preferences (RFC 7240,
#: OData), for what has changed since, and as the parameters above.
FIELDS: tuple[Headers, ...] = (
    (("Range-Unit", "items"), ("Range", "items=0-0")),
    (("Prefer", "return=minimal, maxpagesize=1, odata.maxpagesize=1"),),
    (("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),),
    tuple(
        (f"X-{name}", "1") for name in ("Limit", "Offset", "Skip", "Page", "Page-Size", "PageSize", "Per-Page", "Size")
    ),
)
#: Rounds of listings at once, and how many: long ones take long enough to get into each other's way.
ROUNDS, AT_ONCE = 2, 8
#: A multiple of common page sizes, the largest of those, and queries for pages as large as they may be at most.
PAGE, LARGEST = 100, 1_000
PAGES = ("limit=100", "page=1", "per_page=100&page_size=100&pageSize=100&size=100&limit=100&offset=0&take=100&max=100")


# --- LIST-5: however much there is


@requirement("LIST-5", shipped=1, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_no_hidden_page(api: Api, orders: Orders, target: Target, met: set[str]) -> None:
    """Has more orders placed than common page sizes hold (bulk_orders, 1,100 unless configured, or a few less, such
    that they fill pages of 100 within the service), and a quarter as many shipped ones, and looks for each, in a
    listing as it comes, in one for a browser that may not be compressed, in those for a program and for the script of
    a page, and in several at once.
    Lists with queries for pages, and where orders may be cancelled, cancels some: the checks about that place so many
    again only if something was wrong. With a bulk_orders of 1,000 or less it can fail, but not pass."""
    first = many_orders.shipped(orders, 1)
    further = target.bulk_shipped if first else 0
    over = (len(api.listing().elements) + target.bulk_orders + further) % PAGE
    over = over if target.bulk_orders - over > LARGEST else 0
    pending = orders.take(pending=target.bulk_orders - over).pending
    after = many_orders.shipped(orders, further)
    placed = [*pending, *after]
    headers = ((), (*PLAIN, *BROWSER), NAMES_JSON, SCRIPT)
    answers = api.send_all(api.ask_list(headers=each) for each in headers)
    for _ in range(ROUNDS):
        answers += filterfalse(turned_away, api.send_all([api.ask_list()] * AT_ONCE, at_once=True))
    for answer in answers:
        none_hidden(api, placed, pending, answer, target)
    if not any(found.left_out(placed) for _, found in paged(api)):
        met.add("listing.query_parameters_do_not_shrink_among_many")
    if target.mode is Mode.FULL:
        met.update(
            many_orders.met(api, answers[0].listing, pending, [*first, *many_orders.few(after)] if after else [])
        )
    more_than_a_page(target)


def more_than_a_page(target: Target) -> None:
    """Raise Excluded if pages of a common size hold all orders that this target lets the suite place: a page that is
    cut off can show, but that there is none cannot."""
    if target.bulk_orders <= LARGEST:
        said = f"bulk_orders is {target.bulk_orders}, and common page sizes are up to {LARGEST:,}"
        raise outcomes.Excluded(f"{said}: pages of {target.bulk_orders:,} or more go unnoticed")


def paged(api: Api) -> list[tuple[Answer, Listing]]:
    """The listings in the answers to queries for pages; other answers than 200 are open."""
    answers = api.send_all(api.ask_list(query=query) for query in PAGES)
    return [(answer, answer.listing) for answer in answers if answer.status == 200 and answer.listing is not None]


def none_hidden(api: Api, placed: list[int], pending: list[int], answer: Answer, target: Target) -> None:
    """Demand that the listing shows each of `placed`, some of which are `pending` and the others shipped."""
    found = verify.listing(answer)
    lost = found.left_out(placed)
    if not lost:
        return
    known_to_cancelling(api, lost[0], target)
    raise outcomes.Failed(
        f"all orders in one listing, among them the {len(placed)} that were placed for this",
        f"{found.size}, without {len(lost)} of them",
        answer,
        certain=ends_early(placed, pending, lost) and not found.doubled_ids(),
    )


def ends_early(placed: list[int], pending: list[int], lost: list[int]) -> bool:
    """Whether some of `placed`, or of those that are `pending` or shipped, are shown and those `lost` are all that come
    after or before them, as where pages end. What is left out here and there, by its fields perhaps, or by its state,
    would be left out among few, too (LIST-3)."""
    missing, waiting = set(lost), set(pending)
    shipped = [order for order in placed if order not in waiting]
    if missing in (waiting, set(shipped)):
        return False
    return any(
        1 < len(lost) < len(row) and missing in (set(row[-len(lost) :]), set(row[: len(lost)]))
        for kind in (placed, pending, shipped)
        for row in (kind, sorted(kind))
    )


@requirement("LIST-5", mode=Mode.FULL, many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_no_order_is_hidden_while_others_are_cancelled(
    api: Api, orders: Orders, target: Target, already_met: bool
) -> None:
    """Cancels a few of as many orders and lists at once: what is read page by page may lose an order between two of
    them. The check of hidden pages may have seen that already."""
    if not already_met:
        placed = orders.take(pending=target.bulk_orders).pending
        if api.listing().left_out(placed):
            raise outcomes.Inconclusive("not all of so many orders are listed while none is cancelled", "LIST-5")
        chosen = many_orders.inner(placed)
        listed_meanwhile(api, chosen, [order for order in placed if order not in chosen], paged=True)
    more_than_a_page(target)


# --- LIST-6: whatever is asked


@requirement("LIST-6")
def test_query_parameters_do_not_shrink(api: Api, orders: Orders, observe: Observations) -> None:
    """Lists without and with the query parameters in common use for paging and filtering, some by themselves, all many
    at a time and, where that tells something, each, while pending and shipped orders of the suite are in the listing,
    if it can have some placed: what is listed before and after is listed in between. One of the queries has been sent
    before those were placed. An answer other than 200 is observed, and so is a 200 that is neither JSON nor shows the
    orders, such as the page of a firewall."""
    heaps = heaped(QUERIES)
    api.list(query=heaps[0])
    orders.add(pending=2, shipped=2)
    before = api.listing()
    chosen = (*heaps, *ALONE, *of_few(before))
    together = api.send_all(api.ask_list(query=query) for query in chosen)
    steady = listed_throughout(before, api.listing())
    if all(answer.status == 200 and answer.listing and not answer.listing.left_out(steady) for answer in together):
        observe("unknown query parameters", {"200": "all"}, together[0])
        return
    statuses: dict[str, list[str]] = {}
    answers = api.send_all(api.ask_list(query=query) for query in QUERIES)
    steady &= api.listing().ids
    verify.served(answers)
    for query, answer in zip(QUERIES, answers, strict=True):
        statuses.setdefault(outcome(answer, steady), []).append(query)
    for answer in (*answers, *together):
        all_shown(answer, steady, partial(asked_anew, api, answer.request.query))
    seen = {status: same if len(same) < len(QUERIES) else "all" for status, same in statuses.items()}
    observe("unknown query parameters", seen, answers[0])


@requirement("LIST-6", many_orders=True)
@pytest.mark.xdist_group("many orders")
def test_query_parameters_do_not_shrink_among_many(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Lists with queries for pages, while there are more orders than go into one: all of them are listed all the same.
    The check of LIST-5 may have seen that already."""
    if already_met:
        return
    orders.take(pending=target.bulk_orders)
    before = api.listing()
    found = paged(api)
    steady = listed_throughout(before, api.listing())
    for answer, listing in found:
        nothing_left_out(steady, listing, answer)


def of_few(found: Listing) -> Iterator[str]:
    """For each of the fields of an order a query for a value that few of those in the listing have: a service may
    refuse a value that no order could have, and obey this one."""
    known = list(islice(found.by_id.values(), LOOKED_AT))
    for name in FIELDS_OF_ORDERS:
        values = (str(order[name]) for order in known if isinstance(order.get(name), str | int))
        counts = Counter(value for value in values if len(value) <= LONGEST_VALUE)
        if len(counts) > 1:
            yield f"{name}={quote(min(counts, key=counts.__getitem__), safe='', errors='replace')}"


@requirement("LIST-6")
def test_header_fields_do_not_shrink(api: Api, orders: Orders) -> None:
    """Lists with header fields that are in use for pages and parts, `Range`, `Prefer`, `If-Modified-Since` and the
    likes of `X-Limit`, while pending orders of the suite are in the listing, if it can have some placed: a 200 shows
    what is listed before and after. Any other answer, such as 206 or 304, is open."""
    orders.add(pending=2)
    before = api.listing()
    answers = api.send_all(api.ask_list(headers=fields, allowed=Allowed.OPEN) for fields in FIELDS)
    steady = listed_throughout(before, api.listing())
    verify.served(answers)
    for answer in answers:
        all_shown(answer, steady)


def asked_anew(api: Api, query: str) -> Answer:
    """The answer to `query` with a parameter beside it that nobody has used before."""
    return api.list(query=f"{query}&new={api.rng.getrandbits(40)}")


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
