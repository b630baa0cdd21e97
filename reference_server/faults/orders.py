"""Faults in how the listing is written: LIST-1, LIST-2, LIST-10 and LIST-11."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime

from .. import amend
from ..api import JsonObject, Service
from ..messages import Request, Response
from ..orders import Order, Outcome
from ..registry import fault


def _media_type(service: Service, media_type: str | None) -> None:
    """Lists under another media type."""

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response):
            del response.headers["Content-Type"]
            if media_type is not None:
                response.headers["Content-Type"] = media_type

    amend.granted(service, change)


def _field(service: Service, which: Callable[[Order], bool], name: str, value: object) -> None:
    """Writes one field with another value, in orders of which this is true."""
    amend.orders(service, lambda order, fields: {**fields, name: value} if which(order) else fields)


# --- LIST-1: an array, as JSON ---


@fault("LIST-1")
def wraps_the_list_in_an_object(service: Service) -> None:
    """Lists as {"orders": [...]}."""
    amend.listing_body(service, lambda body: b'{"orders":' + body + b"}")


@fault("LIST-1")
def lists_null_once_the_last_order_was_cancelled(service: Service) -> None:
    """Lists null where there is no order any more, and [] where there was none to begin with."""
    emptied = [False]

    def note(order_id: int, outcome: Outcome) -> None:
        emptied[0] = outcome is Outcome.CANCELLED and not len(service.store)

    amend.after_cancel(service, note)
    amend.listing_body(service, lambda body: b"null" if emptied[0] and body == b"[]" else body)


@fault("LIST-1")
def lists_as_html(service: Service) -> None:
    """Labels the listing text/html."""
    _media_type(service, "text/html; charset=utf-8")


@fault("LIST-1")
def lists_as_text_for_scripts(service: Service) -> None:
    """Sends the listing as text/plain to clients that accept that as well, as libraries for scripts do."""

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and "text/plain" in request.headers.get("accept", ""):
            response.headers["Content-Type"] = "text/plain; charset=utf-8"

    amend.granted(service, change)


@fault("LIST-1")
def lists_with_203_for_readers_of_arabic(service: Service) -> None:
    """Answers listings for readers of Arabic with 203, as a proxy that puts them into their language."""

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and request.headers.get("accept-language") == "ar":
            response.status = 203

    amend.granted(service, change)


@fault("LIST-1")
def lists_line_by_line_for_those_who_accept_it(service: Service) -> None:
    """Sends the orders one in each line, and not as an array, to those who accept that and no JSON."""

    def change(request: Request, response: Response) -> Response | None:
        accept = request.headers.get("accept", "")
        if not amend.is_listing(request, response) or "x-ndjson" not in accept or "application/json" in accept:
            return None
        lines = b"".join(json.dumps(order).encode() + b"\n" for order in json.loads(response.body))
        return Response(200, lines, {"Content-Type": "application/x-ndjson"})

    amend.granted(service, change)


@fault("LIST-1")
def lists_in_xml_for_those_who_accept_it(service: Service) -> None:
    """Sends the listing as XML to those who accept XML and name it first."""

    def change(request: Request, response: Response) -> Response | None:
        first = request.headers.get("accept", "").startswith("application/xml")
        listed = response.status == 200 and response.body
        return Response(200, b"<orders/>", {"Content-Type": "application/xml"}) if first and listed else None

    amend.granted(service, change)


@fault("LIST-1")
def lists_as_text_json(service: Service) -> None:
    """Labels the listing text/json."""
    _media_type(service, "text/json")


@fault("LIST-1")
def lists_under_two_media_types(service: Service) -> None:
    """Sends the listing with a second Content-Type, text/html."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if not amend.is_listing(request, response):
            return data
        return data.replace(b"\r\n\r\n", b"\r\nContent-Type: text/html; charset=utf-8\r\n\r\n", 1)

    amend.wire(service, change)


@fault("LIST-1")
def lists_without_media_type(service: Service) -> None:
    """Sends the listing without Content-Type."""
    _media_type(service, None)


@fault("LIST-1")
def lists_as_problem_json(service: Service) -> None:
    """Labels the listing application/problem+json."""
    _media_type(service, "application/problem+json")


@fault("LIST-1")
def begins_with_a_byte_order_mark(service: Service) -> None:
    """Begins the listing with a byte-order mark."""
    amend.listing_body(service, lambda body: b"\xef\xbb\xbf" + body)


@fault("LIST-1")
def ends_with_garbage(service: Service) -> None:
    """Sends something after the end of the array."""
    amend.listing_body(service, lambda body: body + b"\nOK")


@fault("LIST-1")
def ends_with_a_comma(service: Service) -> None:
    """Puts a comma after the last element."""
    amend.listing_body(service, lambda body: body if body == b"[]" else body[:-1] + b",]")


@fault("LIST-1")
def writes_nan(service: Service) -> None:
    """Writes NaN in a field that the contract does not name."""
    amend.listing_body(service, lambda body: body.replace(b'"complete"', b'"discount":NaN,"complete"'))


@fault("LIST-1")
def writes_latin_1(service: Service) -> None:
    """Writes a field that the contract does not name in Latin-1."""
    amend.listing_body(service, lambda body: body.replace(b'"complete"', b'"city":"Z\xfcrich","complete"'))


@fault("LIST-1")
def writes_line_breaks_in_strings(service: Service) -> None:
    """Writes a line break unescaped within a string that the contract does not name."""
    amend.listing_body(service, lambda body: body.replace(b'"complete"', b'"note":"a\nb","complete"'))


@fault("LIST-1")
def writes_utf_16(service: Service) -> None:
    """Writes the listing in UTF-16."""
    amend.listing_body(service, lambda body: body.decode().encode("utf-16"))


@fault("LIST-1")
def writes_json_lines(service: Service) -> None:
    """Writes one object per line instead of an array."""
    amend.listing_body(service, lambda body: body[1:-1].replace(b"},{", b"}\n{"))


@fault("LIST-1")
def begins_with_a_prefix_against_old_browsers(service: Service) -> None:
    """Begins the listing with a prefix that is no JSON, once a guard against old browsers."""
    amend.listing_body(service, lambda body: b")]}',\n" + body)


@fault("LIST-1")
def breaks_off_every_fourth_listing(service: Service) -> None:
    """Ends every fourth listing in the middle of the array, with a length that fits."""
    due = amend.every(4)
    amend.listing_body(service, lambda body: body[: len(body) // 2] if due() else body)


def _for_readers_of(service: Service, language: str, change: Callable[[bytes], bytes]) -> None:
    """Changes the bytes of the listing for those who ask for it in a language."""

    def changed(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and request.headers.get("accept-language", "").startswith(language):
            response.body = change(response.body)

    amend.granted(service, changed)


@fault("LIST-1")
def writes_the_digits_of_arabs(service: Service) -> None:
    """Writes integers with Arabic-Indic digits for readers of Arabic."""
    digits = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")

    def change(body: bytes) -> bytes:
        return re.sub(r"(?<=:)-?[0-9]+(?=[,}])", lambda number: number[0].translate(digits), body.decode()).encode()

    _for_readers_of(service, "ar", change)


@fault("LIST-1")
def writes_decimals_as_germans_do(service: Service) -> None:
    """Writes a price, which the contract does not name, with a comma for readers of German."""
    _for_readers_of(service, "de", lambda body: body.replace(b'"complete"', b'"price":9,50,"complete"'))


@fault("LIST-1")
def labels_listings_in_turkish_letters(service: Service) -> None:
    """Labels the listing APPLICATİON/JSON for readers of Turkish, whose i has its dot in capitals, too."""

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and request.headers.get("accept-language", "").startswith("tr"):
            response.headers["Content-Type"] = "APPLICATİON/JSON".encode().decode("latin-1")

    amend.granted(service, change)


@fault("LIST-2")
def writes_times_as_finns_do(service: Service) -> None:
    """Writes times with dots between hours, minutes and seconds for readers of Finnish."""
    _for_readers_of(service, "fi", lambda body: re.sub(rb"(T[0-9]{2}):([0-9]{2}):([0-9]{2})", rb"\1.\2.\3", body))


@fault("LIST-1")
def writes_utf_16_for_those_who_accept_it(service: Service) -> None:
    """Writes the listing in UTF-16 where Accept-Charset names that."""

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and "utf-16" in request.headers.get("accept-charset", ""):
            response.body = response.body.decode().encode("utf-16-le")
            response.headers["Content-Type"] = "application/json; charset=utf-16"

    amend.granted(service, change)


@fault("LIST-1")
def repeats_what_is_accepted_as_media_type(service: Service) -> None:
    """Labels the listing with what Accept says, where that is one media type or range."""

    def change(request: Request, response: Response) -> None:
        accepted = request.headers.get("accept", "*/*")
        if amend.is_listing(request, response) and accepted != "*/*" and "," not in accepted:
            response.headers["Content-Type"] = accepted

    amend.granted(service, change)


# --- LIST-2: every element is an Order ---


@fault("LIST-2")
def writes_ids_as_strings(service: Service) -> None:
    """Writes every id as a string."""
    amend.orders(service, lambda order, fields: {**fields, "id": str(order.id)})


@fault("LIST-2")
def writes_pet_ids_as_strings(service: Service) -> None:
    """Writes every petId as a string."""
    amend.orders(service, lambda order, fields: {**fields, "petId": str(order.pet_id)})


@fault("LIST-2")
def writes_quantities_as_strings(service: Service) -> None:
    """Writes every quantity as a string."""
    amend.orders(service, lambda order, fields: {**fields, "quantity": str(order.quantity)})


@fault("LIST-2")
def writes_quantity_one_as_true(service: Service) -> None:
    """Writes the quantity 1 as true."""
    _field(service, lambda order: order.quantity == 1, "quantity", True)


@fault("LIST-2")
def writes_halves_of_units(service: Service) -> None:
    """Writes the quantity with a fraction that is not zero."""
    amend.orders(service, lambda order, fields: {**fields, "quantity": order.quantity + 0.5})


@fault("LIST-2")
def writes_complete_as_string(service: Service) -> None:
    """Writes complete as "true" and "false"."""
    amend.orders(service, lambda order, fields: {**fields, "complete": str(order.complete).lower()})


@fault("LIST-2")
def writes_complete_as_number(service: Service) -> None:
    """Writes complete as 1 and 0."""
    amend.orders(service, lambda order, fields: {**fields, "complete": int(order.complete)})


@fault("LIST-2")
def writes_null_for_incomplete(service: Service) -> None:
    """Writes null instead of false for complete."""
    amend.orders(service, lambda order, fields: {**fields, "complete": order.complete or None})


@fault("LIST-2")
def writes_null_for_the_id_0(service: Service) -> None:
    """Writes the id if it is true, and so null for 0."""
    amend.orders(service, lambda order, fields: {**fields, "id": order.id or None})


@fault("LIST-2")
def writes_null_dates_of_pending_orders(service: Service) -> None:
    """Writes null as the shipDate of pending orders."""
    _field(service, amend.pending, "shipDate", None)


@fault("LIST-2")
def writes_null_pets_of_shipped_orders(service: Service) -> None:
    """Writes null as the petId of shipped orders."""
    _field(service, amend.shipped, "petId", None)


@fault("LIST-2")
def writes_empty_dates_of_shipped_orders(service: Service) -> None:
    """Writes an empty string as the shipDate of shipped orders."""
    _field(service, amend.shipped, "shipDate", "")


@fault("LIST-2")
def writes_dates_without_time(service: Service) -> None:
    """Writes a shipDate without its time."""
    amend.orders(service, lambda order, fields: {**fields, "shipDate": order.ship_date[:10]})


@fault("LIST-2")
def writes_the_second_60_after_any_minute(service: Service) -> None:
    """Rounds seconds up to 60 and leaves it at that."""

    def change(order: Order, fields: JsonObject) -> JsonObject:
        return {**fields, "shipDate": f"{order.ship_date[:14]}34:60Z"}

    amend.orders(service, change)


@fault("LIST-2")
def writes_dates_with_a_blank(service: Service) -> None:
    """Writes a blank between date and time."""
    amend.orders(service, lambda order, fields: {**fields, "shipDate": order.ship_date.replace("T", " ")})


@fault("LIST-2")
def writes_dates_as_seconds(service: Service) -> None:
    """Writes the shipDate as a number of seconds."""
    amend.orders(
        service,
        lambda order, fields: {
            **fields,
            "shipDate": int(datetime.fromisoformat(order.ship_date).timestamp()),
        },
    )


@fault("LIST-2")
def writes_dates_for_mail(service: Service) -> None:
    """Writes the shipDate in the form of mail and HTTP headers."""
    amend.dates(service, "%a, %d %b %Y %H:%M:%S GMT")


@fault("LIST-2")
def writes_the_30th_of_february(service: Service) -> None:
    """Writes a day that does not exist as the shipDate of shipped orders."""
    _field(service, amend.shipped, "shipDate", "2026-02-30T12:00:00Z")


@fault("LIST-2")
def writes_the_hour_25(service: Service) -> None:
    """Writes an hour that does not exist as the shipDate of pending orders."""
    _field(service, amend.pending, "shipDate", "2026-02-20T25:00:00Z")


@fault("LIST-2")
def writes_pet_ids_beyond_int64(service: Service) -> None:
    """Writes 2^63 as the petId of shipped orders."""
    _field(service, amend.shipped, "petId", 2**63)


@fault("LIST-2")
def ends_the_array_with_null(service: Service) -> None:
    """Puts null after the last order."""
    amend.listing_body(service, lambda body: body if body == b"[]" else body[:-1] + b",null]")


@fault("LIST-2")
def ends_the_array_with_a_count(service: Service) -> None:
    """Puts the number of orders after the last one."""
    amend.listing_body(
        service,
        lambda body: body[:-1] + b",%d]" % len(service.store) if len(service.store) else body,
    )


@fault("LIST-2")
def writes_the_last_quantity_as_string(service: Service) -> None:
    """Writes the quantity of the last element as a string, and all others right."""
    amend.listing_body(
        service,
        lambda body: re.sub(rb'"quantity":(\d+)([^{}]*\}\])$', rb'"quantity":"\1"\2', body),
    )


@fault("LIST-2")
def writes_quantity_250_as_null(service: Service) -> None:
    """Writes null instead of one certain quantity."""
    _field(service, lambda order: order.quantity == 250, "quantity", None)


# --- LIST-10: dates as RFC 3339 (recommended) ---


@fault("LIST-10")
def writes_dates_without_offset(service: Service) -> None:
    """Writes local time without an offset."""
    amend.dates(service, "%Y-%m-%dT%H:%M:%S")


@fault("LIST-10")
def writes_dates_in_basic_form(service: Service) -> None:
    """Writes dates without hyphens and colons."""
    amend.dates(service, "%Y%m%dT%H%M%S%z")


@fault("LIST-10")
def writes_dates_without_seconds(service: Service) -> None:
    """Writes the time to the minute."""
    amend.dates(service, "%Y-%m-%dT%H:%MZ")


@fault("LIST-10")
def writes_week_dates(service: Service) -> None:
    """Writes the year, the week and the day of the week."""
    amend.dates(service, "%G-W%V-%uT%H:%M:%SZ")


@fault("LIST-10")
def writes_fractions_with_a_comma(service: Service) -> None:
    """Writes a comma before the fraction of a second."""
    amend.dates(service, "%Y-%m-%dT%H:%M:%S,%fZ")


# --- LIST-11: plain integers, no name twice (recommended) ---


@fault("LIST-11")
def writes_quantities_with_a_fraction(service: Service) -> None:
    """Writes 3.0 for a quantity of 3."""
    amend.orders(service, lambda order, fields: {**fields, "quantity": float(order.quantity)})


@fault("LIST-11")
def writes_quantities_with_an_exponent(service: Service) -> None:
    """Writes 3e0 for a quantity of 3."""
    amend.listing_body(service, lambda body: re.sub(rb'("quantity":\d+)', rb"\1e0", body))


@fault("LIST-11")
def writes_the_quantity_twice(service: Service) -> None:
    """Writes the name quantity twice in every order."""
    amend.listing_body(service, lambda body: re.sub(rb'("quantity":\d+)', rb"\1,\1", body))


@fault("LIST-11")
def writes_a_further_name_twice(service: Service) -> None:
    """Writes a name that the contract does not know twice in shipped orders."""
    _field(service, amend.shipped, "note", "x")
    amend.listing_body(service, lambda body: body.replace(b'"note":"x"', b'"note":"x","note":"y"'))
