"""Other orders: more or fewer fields, other ids, dates, sequences, and ways to write the same JSON."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs

from .. import amend
from ..api import JsonObject, Service
from ..messages import Request, Response
from ..orders import INT64_MAX, INT64_MIN, Order, Outcome, Status
from ..registry import variant

# --- which orders are listed, and how ---


def _ghosts(service: Service, seen: Callable[[], bool] = lambda: True) -> list[Order]:
    """Keeps what is cancelled, to list it further where it is `seen`."""
    ghosts: list[Order] = []

    def change(request: Request, orders: list[Order]) -> list[Order]:
        if not seen():
            return orders
        present = {order.id for order in orders}
        return orders + [ghost for ghost in {g.id: g for g in ghosts}.values() if ghost.id not in present]

    amend.when(service, Outcome.CANCELLED, ghosts.append)
    amend.listing(service, change)
    service.cannot.add("no orders")
    return ghosts


@variant()
def fulfils_shipped_orders_in_time(service: Service) -> None:
    """Marks a shipped order as complete half a second after it was listed first."""
    seen: dict[int, float] = {}

    def change(order: Order, fields: JsonObject) -> JsonObject:
        since = time.monotonic() - seen.setdefault(order.id, time.monotonic())
        return {**fields, "complete": order.complete or (amend.shipped(order) and since > 0.5)}

    amend.orders(service, change)


@variant()
def keeps_listing_cancelled_orders(service: Service) -> None:
    """Lists cancelled orders as before, with nothing to tell them by."""
    _ghosts(service)


@variant()
def lists_cancelled_orders_every_second_time(service: Service) -> None:
    """Lists cancelled orders as before in every second listing, as one of two instances that answer in turn."""
    turns = itertools.cycle((True, False))
    _ghosts(service, lambda: next(turns))


@variant()
def lists_cancelled_orders_as_such(service: Service) -> None:
    """Lists cancelled orders with a field status, which all orders have."""
    ghosts = _ghosts(service)
    amend.orders(
        service,
        lambda order, fields: {
            **fields,
            "status": "cancelled" if order in ghosts else order.status.value,
        },
    )


@variant()
def lists_cancelled_orders_once_more(service: Service) -> None:
    """Lists a cancelled order in the next listing, and then no more."""
    ghosts = _ghosts(service)

    def change(request: Request, orders: list[Order]) -> list[Order]:
        ghosts.clear()
        return orders

    amend.listing(service, change)


@variant()
def dates_orders_in_the_time_zone_of_each_replica(service: Service) -> None:
    """Writes the same ship dates with another offset in each listing, as replicas in several time zones would."""
    hours = itertools.count()

    def change(request: Request, orders: list[Order]) -> list[Order]:
        zone = timezone(timedelta(hours=next(hours) % 3))
        return [
            order._replace(ship_date=datetime.fromisoformat(order.ship_date).astimezone(zone).isoformat())
            for order in orders
        ]

    amend.listing(service, change)


@variant()
def estimates_ship_dates_in_each_replica(service: Service) -> None:
    """Writes for a pending order one of three expected ship dates an hour apart, in turn, as replicas that reckon for
    themselves would."""
    listings = itertools.count()

    def change(request: Request, orders: list[Order]) -> list[Order]:
        apart = timedelta(hours=next(listings) % 3)
        return [
            order._replace(ship_date=(datetime.fromisoformat(order.ship_date) + apart).isoformat())
            if amend.pending(order)
            else order
            for order in orders
        ]

    amend.listing(service, change)


@variant()
def says_how_old_each_order_is(service: Service) -> None:
    """Gives each order in a listing a field of its own that is never the same twice: its age in nanoseconds."""
    amend.orders(service, lambda order, fields: {**fields, "age": time.monotonic_ns()})


@variant()
def lists_backwards(service: Service) -> None:
    """Lists the newest order first."""
    amend.listing(service, lambda request, orders: orders[::-1])


@variant()
def lists_in_another_sequence_each_time(service: Service) -> None:
    """Shuffles every listing."""
    shuffler = random.Random(20)
    amend.listing(service, lambda request, orders: shuffler.sample(orders, len(orders)))


@variant()
def has_three_thousand_orders(service: Service) -> None:
    """Has 3,000 orders of other clients besides."""
    service.store.place(3000, Status.SHIPPED)


@variant()
def begins_with_an_empty_store(service: Service) -> None:
    """Has no orders at the start."""
    service.store.clear()


# --- fields ---


def _more_elements(service: Service, elements: bytes) -> None:
    """Lists further elements, unless there is no order at all."""
    amend.listing_body(service, lambda body: body if body == b"[]" else b"[" + elements + b"," + body[1:])


@variant()
def lists_orders_without_any_field(service: Service) -> None:
    """Lists two more orders that have no field."""
    _more_elements(service, b"{},{}")


@variant()
def lists_orders_without_id(service: Service) -> None:
    """Lists two more orders that have no id but other fields."""
    _more_elements(service, b'{"petId":4,"complete":false},{"quantity":2}')


@variant()
def lists_ids_only(service: Service) -> None:
    """Lists orders with their id and no other field."""
    amend.orders(service, lambda order, fields: {"id": order.id})


@variant()
def leaves_out_what_is_zero(service: Service) -> None:
    """Leaves out numbers that are 0 and flags that are false, the id 0 too, as serialisers do that omit zero values."""
    amend.orders(service, lambda _, fields: {name: value for name, value in fields.items() if value})


@variant()
def leaves_out_some_fields_of_some_orders(service: Service) -> None:
    """Leaves out another field in each order, never the id."""
    optional = ("petId", "quantity", "shipDate", "complete")

    def change(order: Order, fields: JsonObject) -> JsonObject:
        return {name: value for name, value in fields.items() if name != optional[order.id % 4]}

    amend.orders(service, change)


@variant()
def adds_fields_to_orders(service: Service) -> None:
    """Adds objects, lists, null and the status to every order."""
    more: JsonObject = {"links": {"self": None}, "tags": [], "note": None, "größe": 1.5, "Id": "x", "": {}}
    amend.orders(service, lambda order, fields: {**more, **fields, "status": order.status.value})


@variant()
def has_quantities_of_any_size(service: Service) -> None:
    """Lists quantities of 0, below 0 and beyond int64: the contract sets no bounds."""
    quantities = (0, -3, 10**30, INT64_MAX + 1)
    amend.orders(service, lambda order, fields: {**fields, "quantity": quantities[order.id % 4]})


@variant()
def has_pets_of_any_number(service: Service) -> None:
    """Lists a petId from either end of int64."""
    amend.orders(service, lambda order, fields: {**fields, "petId": (INT64_MIN, INT64_MAX, 0, -1)[order.id % 4]})


@variant()
def has_orders_that_are_all_alike(service: Service) -> None:
    """Lists orders that differ by their id only."""
    alike: JsonObject = {"petId": 1, "quantity": 1, "shipDate": "2026-01-01T00:00:00Z", "complete": False}
    amend.orders(service, lambda order, fields: {"id": order.id, **alike})


@variant()
def lets_clients_choose_fields(service: Service) -> None:
    """Lists orders with the fields only that the query parameter fields names, and with none for unknown names."""

    def change(request: Request, response: Response) -> None:
        chosen = parse_qs(request.query, keep_blank_values=True).get("fields")
        if chosen is not None and amend.is_listing(request, response):
            names = set(",".join(chosen).split(","))
            orders = json.loads(response.body)
            response.body = service.encode([{n: order[n] for n in order if n in names} for order in orders])

    amend.granted(service, change)


@variant()
def has_a_pet_for_each_order(service: Service) -> None:
    """Lists a petId of its own for each order: the number after the order's id."""
    amend.orders(service, lambda order, fields: {**fields, "petId": min(order.id + 1, INT64_MAX)})


# --- ids ---


@variant()
def gives_ids_from_all_of_int64(service: Service) -> None:
    """Gives new orders random ids from one end of int64 to the other, and lets nobody choose."""
    source = random.Random(64)
    service.store.next_id = lambda: source.randint(INT64_MIN, INT64_MAX)
    service.cannot.add("ids")


@variant()
def gives_far_ids(service: Service) -> None:
    """Gives new orders ids above 2^53, each next to the other."""
    inner = service.store.next_id
    service.store.next_id = lambda: 2**60 + inner()


@variant()
def gives_negative_ids(service: Service) -> None:
    """Gives new orders negative ids, counting down."""
    inner = service.store.next_id
    service.store.next_id = lambda: -inner()


# --- dates ---


@variant("LIST-10")
def writes_dates_without_offset(service: Service) -> None:
    """Writes dates in local time, valid ISO 8601 though not RFC 3339."""
    amend.dates(service, "%Y-%m-%dT%H:%M:%S")


@variant("LIST-10")
def writes_dates_in_basic_form(service: Service) -> None:
    """Writes dates in the basic form, valid ISO 8601 though not RFC 3339."""
    amend.dates(service, "%Y%m%dT%H%M%SZ")


@variant("LIST-10")
def writes_dates_with_a_comma(service: Service) -> None:
    """Writes a comma before the fraction, valid ISO 8601 though not RFC 3339."""
    amend.dates(service, "%Y-%m-%dT%H:%M:%S,%fZ")


@variant("LIST-10")
def writes_week_dates(service: Service) -> None:
    """Writes week dates, valid ISO 8601 though not RFC 3339."""
    amend.dates(service, "%G-W%V-%uT%H:%M:%SZ")


@variant("LIST-10")
def writes_ordinal_dates(service: Service) -> None:
    """Writes the day of the year, valid ISO 8601 though not RFC 3339."""
    amend.dates(service, "%Y-%jT%H:%M:%SZ")


@variant("LIST-10")
def writes_dates_to_the_minute(service: Service) -> None:
    """Writes times without seconds, valid ISO 8601 though not RFC 3339."""
    amend.dates(service, "%Y-%m-%dT%H:%M+02")


@variant("LIST-10")
def writes_expanded_years(service: Service) -> None:
    """Writes years with a sign and six digits, and the minus sign of ISO 8601, valid there though not by RFC 3339."""
    amend.dates(service, "+00%Y-%m-%dT%H:%M:%S\N{MINUS SIGN}03:00")


@variant()
def reads_ids_in_other_notations(service: Service) -> None:
    """Reads 0x7b, digits of any script and 123.json as the id 123, as common frameworks do."""

    def read(text: str) -> int | None:
        characters = text.encode("latin-1").decode("utf-8", "replace").removesuffix(".json")
        if re.fullmatch(r"0x[0-9a-f]{1,15}", characters):
            return int(characters, 16)
        return int(characters) if re.fullmatch(r"-?\d{1,18}", characters) else None

    amend.read_ids(service, read)


@variant()
def reckons_the_ship_date_from_now(service: Service) -> None:
    """Expects each pending order to ship in three days from the moment of the listing."""

    def change(order: Order, fields: JsonObject) -> JsonObject:
        if amend.shipped(order):
            return fields
        return {**fields, "shipDate": (datetime.now(UTC) + timedelta(days=3)).isoformat()}

    amend.orders(service, change)


@variant()
def estimates_the_ship_date_from_the_backlog(service: Service) -> None:
    """Expects a pending order to ship ten minutes after the pending one before it, so that a cancel moves dates."""
    start = datetime(2026, 12, 1, 8, tzinfo=UTC)
    inner = service.list_orders

    def list_orders(request: Request) -> Response:
        response = inner(request)
        orders = json.loads(response.body)
        waiting = {order.id: place for place, order in enumerate(filter(amend.pending, service.store.all()))}
        for order in orders:
            if order["id"] in waiting:
                order["shipDate"] = (start + timedelta(minutes=10 * waiting[order["id"]])).isoformat()
        response.body = service.encode(orders)
        return response

    service.list_orders = list_orders


@variant()
def is_being_deployed(service: Service) -> None:
    """Has an old process, which leaves optional fields out, answer every other listing."""
    old = amend.every(2)

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and old():
            orders = json.loads(response.body)
            kept = [{name: order[name] for name in order if name not in ("shipDate", "complete")} for order in orders]
            response.body = service.encode(kept)

    amend.granted(service, change)


@variant()
def writes_fine_fractions(service: Service) -> None:
    """Writes fractions of a second with twelve digits."""
    amend.dates(service, "%Y-%m-%dT%H:%M:%S.000000000001Z")


@variant()
def writes_leap_seconds(service: Service) -> None:
    """Writes the leap second at the end of 2016."""
    amend.orders(service, lambda order, fields: {**fields, "shipDate": "2016-12-31T23:59:60Z"})


@variant()
def writes_far_dates(service: Service) -> None:
    """Writes dates of the years 1 and 9999."""
    dates = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999-12:00")
    amend.orders(service, lambda order, fields: {**fields, "shipDate": dates[order.id % 2]})


# --- JSON ---


@variant()
def writes_json_with_indents(service: Service) -> None:
    """Writes every body over many lines, names sorted."""
    service.encode = lambda value: json.dumps(value, indent="\t", sort_keys=True).encode()


@variant()
def writes_json_with_escapes(service: Service) -> None:
    """Writes every character within strings as an escape."""

    def escaped(match: re.Match[str]) -> str:
        units = json.loads(match[0]).encode("utf-16-be")
        return '"' + "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2)) + '"'

    service.encode = lambda value: re.sub(r'"(?:[^"\\]|\\.)*"', escaped, json.dumps(value)).encode()


@variant()
def writes_json_with_odd_blanks(service: Service) -> None:
    """Writes blanks, tabs and line breaks wherever JSON allows them."""
    service.encode = lambda value: (
        b"\r\n\t " + json.dumps(value, separators=(" ,\t", "\r\n: "), ensure_ascii=False).encode() + b" \n\n"
    )
