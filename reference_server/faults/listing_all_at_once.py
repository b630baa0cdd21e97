"""Faults in how much of the listing is sent, and what is asked of it: LIST-5 and LIST-6."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import Order
from ..registry import fault

# --- LIST-5: however many ---


@fault("LIST-5")
def stops_after_the_newest_fifty(service: Service) -> None:
    """Lists the newest 50 orders."""
    amend.listing(service, lambda request, orders: orders[-50:])


@fault("LIST-5")
def stops_after_one_hundred(service: Service) -> None:
    """Lists 100 orders at most, the oldest."""
    amend.listing(service, lambda request, orders: orders[:100])


@fault("LIST-5")
def stops_after_the_newest_two_hundred(service: Service) -> None:
    """Lists the newest 200 orders."""
    amend.listing(service, lambda request, orders: orders[-200:])


@fault("LIST-5")
def leaves_out_a_last_page_that_is_full(service: Service) -> None:
    """Reads pages of 100 orders, the last with what is left over for its limit: none where it is full."""
    amend.listing(service, lambda request, orders: orders[: max(len(orders) - 1, 0) // 100 * 100 + len(orders) % 100])


@fault("LIST-5")
def stops_after_five_hundred(service: Service) -> None:
    """Lists 500 orders at most, the oldest."""
    amend.listing(service, lambda request, orders: orders[:500])


@fault("LIST-5")
def stops_after_one_thousand(service: Service) -> None:
    """Lists 1,000 orders at most, the oldest."""
    amend.listing(service, lambda request, orders: orders[:1000])


@fault("LIST-5")
def stops_after_the_newest_thousand(service: Service) -> None:
    """Lists the newest 1,000 orders."""
    amend.listing(service, lambda request, orders: orders[-1000:])


@fault("LIST-5")
def stops_after_64_kilobytes(service: Service) -> None:
    """Lists as many orders as fit into 64 KiB."""

    def change(body: bytes) -> bytes:
        return body if len(body) <= 65536 else body[: body.rindex(b"},{", 0, 65534)] + b"}]"

    amend.listing_body(service, change)


@fault("LIST-5")
def loses_one_order_in_a_thousand(service: Service) -> None:
    """Leaves the last order out when there are more than 1,000."""
    amend.listing(service, lambda request, orders: orders[:-1] if len(orders) > 1000 else orders)


@fault("LIST-5")
def pages_what_it_may_not_compress(service: Service) -> None:
    """Lists 50 orders to a client that does not take gzip."""
    amend.listing(
        service, lambda request, orders: orders if "gzip" in request.headers.get("accept-encoding", "") else orders[:50]
    )


@fault("LIST-5")
def pages_for_browsers(service: Service) -> None:
    """Lists 50 orders to those who accept HTML."""
    amend.listing(
        service, lambda request, orders: orders[:50] if "text/html" in request.headers.get("accept", "") else orders
    )


@fault("LIST-5")
def pages_for_programs(service: Service) -> None:
    """Lists 50 orders to those who accept application/json and nothing else."""
    amend.listing(
        service,
        lambda request, orders: orders[:50] if request.headers.get("accept") == "application/json" else orders,
    )


@fault("LIST-5")
def caps_the_history_of_shipped_orders(service: Service) -> None:
    """Lists all pending orders, and the newest 50 of the shipped ones."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        kept = {order.id for order in list(filter(amend.shipped, orders))[-50:]}
        return [order for order in orders if amend.pending(order) or order.id in kept]

    amend.listing(service, change)


@fault("LIST-5")
def reads_pages_by_offset(service: Service) -> None:
    """Reads 100 orders after the other; where one of those before is cancelled meanwhile, one of the next is lost."""
    inner = service.listed

    def listed(request: Request) -> list[Order]:
        found: list[Order] = []
        while len(found) % 100 == 0 and (page := list(inner(request))[len(found) : len(found) + 100]):
            found += page
            time.sleep(0.002 if len(page) == 100 else 0)
        return found

    service.listed = listed


# --- LIST-6: no filter ---


def _parameters(request: Request) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in request.query.split("&") if pair)
    return {name: value for name, _, value in pairs}


def _filters(service: Service, names: tuple[str, ...], keep: Callable[[str, list[Order]], Iterable[Order]]) -> None:
    """Applies a filter for each of these query parameters that is there."""

    def change(request: Request, orders: list[Order]) -> Iterable[Order]:
        given = _parameters(request)
        return next((keep(given[name], orders) for name in names if name in given), orders)

    amend.listing(service, change)


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


@fault("LIST-6")
def obeys_the_tenant(service: Service) -> None:
    """Lists no order where the query names a tenant, none of which it has."""
    _filters(service, ("tenant", "tenantId", "storeId"), lambda value, orders: [])


@fault("LIST-6")
def goes_on_after_an_id(service: Service) -> None:
    """Lists only orders whose id is above the one that after says."""
    _filters(service, ("after",), lambda value, orders: [o for o in orders if not value.isdigit() or o.id > int(value)])


@fault("LIST-6")
def filters_by_status(service: Service) -> None:
    """Lists only orders of the status in the query."""
    _filters(service, ("status",), lambda value, orders: [o for o in orders if o.status.value == value])


@fault("LIST-6")
def obeys_a_limit(service: Service) -> None:
    """Lists no more orders than the query parameter limit says."""
    _filters(service, ("limit",), lambda value, orders: orders[: _number(value, len(orders))])


@fault("LIST-6")
def obeys_a_page_size(service: Service) -> None:
    """Lists no more orders than per_page, page_size, pageSize or size says."""
    names = ("per_page", "page_size", "pageSize", "size")
    _filters(service, names, lambda value, orders: orders[: _number(value, len(orders))])


@fault("LIST-6")
def wraps_pages(service: Service) -> None:
    """Sends the listing as the content of a page, an object, if the query has page or size."""

    def change(request: Request, response: Response) -> Response | None:
        asked = amend.is_listing(request, response) and _parameters(request).keys() & {"page", "size"}
        return Response(200, b'{"content":' + response.body + b"}", response.headers) if asked else None

    amend.granted(service, change)


@fault("LIST-6")
def obeys_a_page_and_its_size_together(service: Service) -> None:
    """Lists as many orders as size says from the page that page says, if there is nothing else in the query."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        given = _parameters(request)
        if given.keys() != {"page", "size"}:
            return orders
        size = _number(given["size"], len(orders))
        return orders[_number(given["page"], 0) * size :][:size]

    amend.listing(service, change)


@fault("LIST-6")
def is_ahead_of_its_version(service: Service) -> None:
    """Lists a page of three orders where the query asks for version 2, which is to have pages."""
    _filters(service, ("version", "v", "api-version"), lambda value, orders: orders[:3] if value == "2" else orders)


@fault("LIST-6")
def turns_pages(service: Service) -> None:
    """Lists the page of 20 orders that the query parameter page names, from 1."""

    def keep(value: str, orders: list[Order]) -> list[Order]:
        page = max(_number(value, 1), 1)
        return orders[20 * (page - 1) : 20 * page]

    _filters(service, ("page",), keep)


@fault("LIST-6")
def obeys_an_offset(service: Service) -> None:
    """Leaves out as many orders as offset, skip or start says."""
    _filters(service, ("offset", "skip", "start"), lambda value, orders: orders[_number(value, 0) :])


@fault("LIST-6")
def filters_by_what_q_says(service: Service) -> None:
    """Lists only orders with the status that q says, as in q=status:shipped."""

    def keep(value: str, orders: list[Order]) -> Iterable[Order]:
        field, _, wanted = unquote(value).partition(":")
        return [order for order in orders if order.status.value == wanted] if field == "status" else orders

    _filters(service, ("q",), keep)


@fault("LIST-6")
def filters_by_json(service: Service) -> None:
    """Lists only orders with the status that a filter in JSON says, as in where={"status": "shipped"}."""

    def keep(value: str, orders: list[Order]) -> Iterable[Order]:
        try:
            wanted = json.loads(unquote(value))["status"]
        except (ValueError, TypeError, KeyError):
            return orders
        return [order for order in orders if order.status.value == wanted]

    _filters(service, ("where",), keep)


@fault("LIST-6")
def filters_by_pet(service: Service) -> None:
    """Lists only orders of the pet in the query."""
    _filters(service, ("petId",), lambda value, orders: [o for o in orders if str(o.pet_id) == value])


@fault("LIST-6")
def filters_by_complete(service: Service) -> None:
    """Lists only orders that are complete, or are not, as the query says."""
    _filters(
        service,
        ("complete",),
        lambda value, orders: [o for o in orders if str(o.complete).lower() == value.lower()],
    )


@fault("LIST-6")
def filters_by_id(service: Service) -> None:
    """Lists only the order whose id is in the query."""
    _filters(service, ("id", "orderId"), lambda value, orders: [o for o in orders if str(o.id) == value])


@fault("LIST-6")
def obeys_a_limit_from_five_on(service: Service) -> None:
    """Lists no more orders than limit says, if that is five at least."""

    def keep(value: str, orders: list[Order]) -> list[Order]:
        limit = _number(value, 0)
        return orders[:limit] if limit >= 5 else orders

    _filters(service, ("limit",), keep)


@fault("LIST-6")
def caps_a_limit_at_a_hundred(service: Service) -> None:
    """Lists 100 orders where limit says 100 or more."""
    _filters(service, ("limit",), lambda value, orders: orders[:100] if _number(value, 0) >= 100 else orders)


@fault("LIST-6")
def pages_as_json_servers_do(service: Service) -> None:
    """Lists the orders from _start to _end, and no more than _limit says."""
    _filters(service, ("_limit", "_end"), lambda value, orders: orders[: _number(value, len(orders))])
    _filters(service, ("_start",), lambda value, orders: orders[_number(value, 0) :])


@fault("LIST-6")
def pages_by_names_in_brackets(service: Service) -> None:
    """Lists no more orders than page[limit] says, from page[offset] on."""
    _filters(service, ("page%5Blimit%5D",), lambda value, orders: orders[: _number(value, len(orders))])
    _filters(service, ("page%5Boffset%5D",), lambda value, orders: orders[_number(value, 0) :])


@fault("LIST-6")
def filters_by_the_start_of_a_period(service: Service) -> None:
    """Lists only orders that ship on the day startDate, start_date or fromDate says, or later."""
    names = ("startDate", "start_date", "fromDate")
    _filters(service, names, lambda value, orders: [o for o in orders if o.ship_date[:10] >= value])


@fault("LIST-6")
def filters_by_the_end_of_a_period(service: Service) -> None:
    """Lists only orders that ship on the day endDate or end_date says, or before."""
    _filters(service, ("endDate", "end_date"), lambda value, orders: [o for o in orders if o.ship_date[:10] <= value])


@fault("LIST-6")
def filters_by_customer(service: Service) -> None:
    """Lists only orders of the customer that customerId or userId names, of which there is none."""
    _filters(service, ("customerId", "userId"), lambda value, orders: [])


@fault("LIST-6")
def filters_by_pets_that_may_be(service: Service) -> None:
    """Lists only orders of the pet that pet_id or pet names, if that is a positive number."""

    def chosen(value: str, orders: list[Order]) -> list[Order]:
        return [order for order in orders if str(order.pet_id) == value] if value.isdecimal() else orders

    _filters(service, ("pet_id", "pet"), chosen)


@fault("LIST-6")
def finds_nothing_for_a_query(service: Service) -> None:
    """Lists nothing when there is any query."""
    amend.listing(service, lambda request, orders: [] if request.query else orders)


def _obeys_what_may_be(service: Service, parameter: str, value: Callable[[Order], object]) -> None:
    """Lists the orders of which this is the value of a parameter, if it may be: else, or beside others, 400."""

    def answer(request: Request) -> Response | None:
        if request.method != "GET" or not request.query:
            return None
        name, _, asked = request.query.partition("=")
        if name != parameter or not re.fullmatch(r"[1-9][0-9]{0,18}", asked):
            return service.error(400, "There is no such parameter, or no such value of it.")
        fields = [service.order_fields(order) for order in service.store.all() if str(value(order)) == asked]
        return service.json(200, fields)

    amend.instead(service, answer)


@fault("LIST-6")
def filters_by_an_id_that_may_be(service: Service) -> None:
    """Lists the one order with the id that the query names, and answers 400 to any other query."""
    _obeys_what_may_be(service, "id", lambda order: order.id)


@fault("LIST-6")
def filters_by_a_pet_that_may_be(service: Service) -> None:
    """Lists the orders of the pet that the query names, and answers 400 to any other query."""
    _obeys_what_may_be(service, "petId", lambda order: order.pet_id)


@fault("LIST-6")
def filters_by_a_quantity_that_may_be(service: Service) -> None:
    """Lists the orders of the quantity that the query names, and answers 400 to any other query."""
    _obeys_what_may_be(service, "quantity", lambda order: order.quantity)


@fault("LIST-6")
def filters_by_what_some_order_has(service: Service) -> None:
    """Filters by a field of the orders where a query names it alone, and some order has that value."""

    def answer(request: Request) -> Response | None:
        name, _, asked = request.query.partition("=")
        found = [fields for fields in map(service.order_fields, service.store.all()) if str(fields.get(name)) == asked]
        return service.json(200, found) if request.method == "GET" and found else None

    amend.instead(service, answer)


@fault("LIST-6")
def obeys_a_range_of_items(service: Service) -> None:
    """Lists the orders that the header Range names, as in items=0-9, with 200."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        asked = re.fullmatch(r"items=(\d{1,9})-(\d{1,9})", request.headers.get("range", ""))
        return orders[int(asked[1]) : int(asked[2]) + 1] if asked else orders

    amend.listing(service, change)


@fault("LIST-6")
def obeys_a_preferred_page_size(service: Service) -> None:
    """Lists no more orders than the preference maxpagesize in the header Prefer says."""

    def change(request: Request, orders: list[Order]) -> list[Order]:
        asked = re.search(r"\bmaxpagesize=(\d{1,9})", request.headers.get("prefer", ""))
        return orders[: int(asked[1])] if asked else orders

    amend.listing(service, change)


@fault("LIST-6")
def obeys_a_page_size_in_a_header(service: Service) -> None:
    """Lists no more orders than the header X-Page-Size says."""
    amend.listing(
        service, lambda request, orders: orders[: _number(request.headers.get("x-page-size", ""), len(orders))]
    )


@fault("LIST-6")
def lists_what_was_modified_since(service: Service) -> None:
    """Lists only orders that were modified after the date in If-Modified-Since, which asks for all or nothing: none
    where that is yet to come."""
    amend.listing(service, lambda request, orders: [] if "if-modified-since" in request.headers else orders)


def _written(service: Service, parameter: str, media_type: str, change: Callable[[bytes], bytes]) -> None:
    """Writes the listing in another form where the query holds this parameter."""

    def changed(request: Request, response: Response) -> Response | None:
        asked = amend.is_listing(request, response) and parameter in request.query.split("&")
        return Response(200, change(response.body), {"Content-Type": media_type}) if asked else None

    amend.granted(service, changed)


@fault("LIST-6")
def lists_as_csv_for_a_format(service: Service) -> None:
    """Lists the ids and pets of the orders as CSV where format is csv."""

    def change(body: bytes) -> bytes:
        rows = [f"{order['id']},{order['petId']}" for order in json.loads(body)]
        return "\n".join(["id,petId", *rows, ""]).encode()

    _written(service, "format=csv", "text/csv", change)


@fault("LIST-6")
def lists_as_a_page_for_a_format(service: Service) -> None:
    """Sends a page of HTML with the listing in it where format is api."""
    _written(service, "format=api", "text/html", lambda body: b"<html><pre>" + body + b"</pre></html>")


@fault("LIST-6")
def lists_as_a_script_for_a_callback(service: Service) -> None:
    """Sends a script that calls the function f with the listing where callback is f."""
    _written(service, "callback=f", "text/javascript", lambda body: b"f(" + body + b");")
