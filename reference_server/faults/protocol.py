"""Faults of the protocol: HTTP-1, HTTP-2, BASE-1, PET-1 and PET-2."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from .. import amend
from ..api import ORDERS, Service
from ..messages import Request, Response
from ..orders import Order
from ..registry import fault

# --- HTTP-1: listed statuses only ---


def _now_and_then(service: Service, n: int, answer: Callable[[Request], Response]) -> None:
    """Answers every n-th request that carries the key in another way, before anything is done."""
    due = amend.every(n)
    amend.instead(service, lambda request: answer(request) if due() else None)


def _error(service: Service, status: int) -> Response:
    return service.json(status, {"code": "ERROR", "message": "Something is wrong.", "status": status})


@fault("HTTP-1")
def fails_every_seventh_time(service: Service) -> None:
    """Answers 500 to every seventh request."""
    _now_and_then(service, 7, lambda request: _error(service, 500))


@fault("HTTP-1")
def fails_when_its_pool_is_drained(service: Service) -> None:
    """Answers 500 to a listing while ten others are under way."""
    amend.beyond(service, 10, lambda request: _error(service, 500))


@fault("HTTP-1")
def forbids_every_eighth_time(service: Service) -> None:
    """Answers 403 to every eighth request although it carries the valid key."""
    _now_and_then(service, 8, lambda request: _error(service, 403))


@fault("HTTP-1")
def redirects_every_sixth_time(service: Service) -> None:
    """Answers 302 with a Location to every sixth request."""
    headers = {"Location": "http://127.0.0.1:9/v1/store/orders"}
    _now_and_then(service, 6, lambda request: Response(302, b"", headers))


@fault("HTTP-1")
def fails_to_cancel_where_there_are_no_orders(service: Service) -> None:
    """Answers 500 to a cancel while there is no order at all, since it looks at the first one."""
    amend.instead(
        service,
        lambda request: _error(service, 500) if amend.is_cancel(request) and not len(service.store) else None,
    )


@fault("HTTP-1")
def reads_ids_into_32_bits(service: Service) -> None:
    """Reads ids into 32 bits, and answers 400 to a cancel whose id does not fit, whatever has it."""

    def answer(request: Request) -> Response | None:
        if not amend.is_cancel(request):
            return None
        order_id = amend.id_of(service, request)
        return _error(service, 400) if order_id is not None and not -(2**31) <= order_id < 2**31 else None

    amend.instead(service, answer)


@fault("HTTP-1")
def answers_a_cancel_with_200(service: Service) -> None:
    """Answers 200 with a JSON object instead of 204 to every third successful cancel."""
    _other_success(service, lambda: service.json(200, {"message": "cancelled"}))


@fault("HTTP-1")
def answers_a_cancel_with_202(service: Service) -> None:
    """Answers 202 without a body instead of 204 to every third successful cancel."""
    _other_success(service, lambda: Response(202))


def _other_success(service: Service, answer: Callable[[], Response]) -> None:
    due = amend.every(3)
    amend.granted(
        service,
        lambda request, response: answer() if amend.is_cancel(request) and response.status == 204 and due() else None,
    )


@fault("HTTP-1")
def fails_to_list_what_changes_meanwhile(service: Service) -> None:
    """Takes five thousandths of a second for a listing, and answers 500 if an order was cancelled meanwhile."""
    inner = service.list_orders

    def list_orders(request: Request) -> Response:
        before = service.store.all()
        time.sleep(0.005)
        return inner(request) if service.store.all() == before else _error(service, 500)

    service.list_orders = list_orders


@fault("HTTP-1")
def fails_to_list_while_an_order_is_placed(service: Service) -> None:
    """Takes five thousandths of a second for a listing, and answers 500 if an order was placed meanwhile."""
    inner = service.list_orders

    def list_orders(request: Request) -> Response:
        before = {order.id for order in service.store.all()}
        time.sleep(0.005)
        new = {order.id for order in service.store.all()} - before
        return _error(service, 500) if new else inner(request)

    service.list_orders = list_orders


@fault("HTTP-1")
def lists_with_206(service: Service) -> None:
    """Answers every fifth listing with 206."""
    due = amend.every(5)

    def change(request: Request, response: Response) -> None:
        if amend.is_listing(request, response) and due():
            response.status = 206

    amend.granted(service, change)


@fault("HTTP-1")
def finds_no_listing_every_fifth_time(service: Service) -> None:
    """Answers every fifth listing with 404, which that operation does not list."""
    due = amend.every(5)
    amend.instead(
        service,
        lambda request: service.error(404, "Not found.") if request.method == "GET" and due() else None,
    )


@fault("HTTP-1")
def wants_a_precondition_first(service: Service) -> None:
    """Answers 428 to the first cancel of a shipped order, and 409 from then on."""
    _at_first(service, 428, amend.shipped)


@fault("HTTP-1")
def wants_to_know_what_is_accepted(service: Service) -> None:
    """Answers 406 to a listing without Accept."""
    amend.instead(
        service,
        lambda request: _error(service, 406) if request.method == "GET" and amend.names_nothing(request) else None,
    )


@fault("HTTP-1")
def wants_to_know_what_is_accepted_to_cancel(service: Service) -> None:
    """Answers 406 to a cancel without Accept."""
    amend.instead(
        service,
        lambda request: _error(service, 406) if amend.is_cancel(request) and amend.names_nothing(request) else None,
    )


def _asks_for_pages(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


@fault("HTTP-1")
def fails_to_write_pages(service: Service) -> None:
    """Answers 500 to browsers, for which it has pages without a template."""
    amend.before(service, lambda request: _error(service, 500) if _asks_for_pages(request) else None)


@fault("HTTP-1")
def fails_to_write_pages_for_wrong_keys(service: Service) -> None:
    """Answers 500 to browsers with an invalid key."""
    amend.refusals(
        service,
        lambda request, _: _error(service, 500) if _asks_for_pages(request) and not amend.no_header(request) else None,
    )


@fault("HTTP-1")
def has_nothing_for_browsers(service: Service) -> None:
    """Answers 406 to browsers, though they accept anything."""
    amend.before(service, lambda request: _error(service, 406) if _asks_for_pages(request) else None)


@fault("HTTP-1")
def accepts_no_blanks(service: Service) -> None:
    """Answers 406 where JSON is accepted behind a blank and nothing else would do."""
    named = {"application/json", "application/*", "*/*"}

    def refused(request: Request) -> bool:
        accepted = {media_type.partition(";")[0] for media_type in request.headers.get("accept", "*/*").split(",")}
        return request.method == "GET" and not accepted & named

    amend.instead(service, lambda request: _error(service, 406) if refused(request) else None)


@fault("HTTP-1")
def fails_on_several_languages(service: Service) -> None:
    """Answers 500 to those who read several languages, as browsers say."""
    amend.instead(
        service,
        lambda request: _error(service, 500) if "," in request.headers.get("accept-language", "") else None,
    )


@fault("HTTP-1")
def locks_what_does_not_exist(service: Service) -> None:
    """Answers 423 to the first cancel of an order that does not exist, and 404 from then on."""
    _at_first(service, 423, lambda order: order is None)


def _at_first(service: Service, status: int, meant: Callable[[Order | None], bool]) -> None:
    asked: set[str] = set()

    def answer(request: Request) -> Response | None:
        if not amend.is_cancel(request) or request.path in asked or not meant(amend.order_of(service, request)):
            return None
        asked.add(request.path)
        return _error(service, status)

    amend.instead(service, answer)


# --- HTTP-2: whole responses ---

LINE = b"<!-- served in 3 ms -->\r\n"


def _listing_bytes(service: Service, change: Callable[[bytes], bytes], n: int = 1, close: bool = False) -> None:
    """Changes the bytes of every n-th listing."""
    due = amend.every(n)

    def on_the_wire(request: Request, response: Response, data: bytes) -> bytes:
        if not amend.is_listing(request, response) or not due():
            return data
        response.close |= close
        return change(data)

    amend.wire(service, on_the_wire)


@fault("HTTP-2")
def sends_short_listings(service: Service) -> None:
    """Closes the connection ten bytes before the end of every third listing."""
    _listing_bytes(service, lambda data: data[:-10], n=3, close=True)


@fault("HTTP-2")
def sends_half_of_the_headers(service: Service) -> None:
    """Closes the connection within the headers of every third listing."""
    _listing_bytes(service, lambda data: data[:30], n=3, close=True)


@fault("HTTP-2")
def drops_every_fourth_listing(service: Service) -> None:
    """Closes the connection instead of answering every fourth listing."""
    _listing_bytes(service, lambda data: b"", n=4, close=True)


@fault("HTTP-2")
def drops_every_fourth_answer_to_a_cancel(service: Service) -> None:
    """Closes the connection instead of answering every fourth cancel."""
    due = amend.every(4)

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if not amend.is_cancel(request) or not due():
            return data
        response.close = True
        return b""

    amend.wire(service, change)


@fault("HTTP-2")
def sends_bytes_past_the_end(service: Service) -> None:
    """Sends a line after the end of every listing."""
    _listing_bytes(service, lambda data: data + LINE)


@fault("HTTP-2")
def sends_bytes_past_the_end_after_a_query(service: Service) -> None:
    """Sends a line after the end of a listing that was asked for with a query."""
    amend.wire(
        service,
        lambda request, response, data: data + LINE if request.query and amend.is_listing(request, response) else data,
    )


@fault("HTTP-2")
def takes_a_body_for_the_next_request(service: Service) -> None:
    """Takes the body of a refused request for the next request on its connection, and refuses that with 400."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        unread = request.body and response.status == 401
        return data + b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" if unread else data

    amend.wire(service, change)


def _line_after(service: Service, status: int) -> None:
    amend.wire(service, lambda _, response, data: data + LINE if response.status == status else data)


@fault("HTTP-2")
def sends_bytes_past_the_end_of_404(service: Service) -> None:
    """Sends a line after the end of every 404."""
    _line_after(service, 404)


@fault("HTTP-2")
def sends_bytes_past_the_end_of_409(service: Service) -> None:
    """Sends a line after the end of every 409."""
    _line_after(service, 409)


@fault("HTTP-2")
def counts_the_body_too_short(service: Service) -> None:
    """Announces two bytes less than every second listing has."""

    _listing_bytes(service, _counted_too_short, n=2)


@fault("HTTP-2")
def counts_the_body_of_409_too_short(service: Service) -> None:
    """Announces two bytes less than every 409 has."""
    amend.wire(service, lambda _, response, data: _counted_too_short(data) if response.status == 409 else data)


def _counted_too_short(data: bytes) -> bytes:
    head, _, body = data.partition(b"\r\n\r\n")
    return head.replace(b": %d" % len(body), b": %d" % (len(body) - 2)) + b"\r\n\r\n" + body


def _as_chunks(data: bytes, end: bytes) -> bytes:
    head, _, body = data.partition(b"\r\n\r\n")
    head = head.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked")
    return head + b"\r\n\r\n%x\r\n" % len(body) + body + b"\r\n" + end


@fault("HTTP-2")
def sends_short_listings_to_who_asks_for_more(service: Service) -> None:
    """Closes the connection ten bytes before the end of every listing that was asked for with a query."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if not amend.is_listing(request, response) or not request.query:
            return data
        response.close = True
        return data[:-10]

    amend.wire(service, change)


@fault("HTTP-2")
def leaves_the_last_chunk_out(service: Service) -> None:
    """Closes the connection before the last chunk of every third listing."""
    _listing_bytes(service, lambda data: _as_chunks(data, b""), n=3, close=True)


@fault("HTTP-2")
def writes_chunk_sizes_that_are_no_numbers(service: Service) -> None:
    """Ends every third listing with a chunk whose size is no number."""
    _listing_bytes(service, lambda data: _as_chunks(data, b"end\r\n\r\n"), n=3, close=True)


@fault("HTTP-2")
def sends_two_lengths(service: Service) -> None:
    """Sends two Content-Length headers that differ with every third listing."""
    _listing_bytes(
        service,
        lambda data: data.replace(b"\r\nContent-Length:", b"\r\nContent-Length: 7\r\nContent-Length:", 1),
        n=3,
        close=True,
    )


@fault("HTTP-2")
def sends_a_length_beside_chunks(service: Service) -> None:
    """Sends the listing in chunks, with the Content-Length that it had before."""

    def change(data: bytes) -> bytes:
        _, _, body = data.partition(b"\r\n\r\n")
        return _as_chunks(data, b"0\r\n\r\n").replace(b"\r\n", b"\r\nContent-Length: %d\r\n" % len(body), 1)

    _listing_bytes(service, change)


@fault("HTTP-2")
def sends_chunks_in_http_1_0(service: Service) -> None:
    """Answers cancels that it refuses as HTTP/1.0 and in chunks, which that version does not have."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if not amend.is_cancel(request) or response.status == 204:
            return data
        response.close = True
        return _as_chunks(data, b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0", 1)

    amend.wire(service, change)


@fault("HTTP-2")
def sends_bytes_after_the_end_of_gzip(service: Service) -> None:
    """Compresses listings with gzip for clients that accept it, and counts a line behind that as a part of the body."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if not amend.is_listing(request, response) or "gzip" not in request.headers.get("accept-encoding", ""):
            return data
        head, _, body = data.partition(b"\r\n\r\n")
        sent = gzip.compress(body) + LINE
        lines = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nContent-Length: %d" % len(sent)
        return head.replace(b"Content-Length: %d" % len(body), lines) + b"\r\n\r\n" + sent

    amend.wire(service, change)


@fault("HTTP-2")
def names_the_charset_as_a_coding(service: Service) -> None:
    """Sends Content-Encoding: utf-8 with every third listing."""
    due = amend.every(3)

    def change(request: Request, response: Response) -> Response | None:
        if amend.is_listing(request, response) and due():
            response.headers["Content-Encoding"] = "utf-8"
        return None

    amend.granted(service, change)


@fault("HTTP-2")
def sends_a_broken_status_line(service: Service) -> None:
    """Sends a status line without a status with every third listing."""
    _listing_bytes(service, lambda data: data.replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 OK", 1), n=3, close=True)


@fault("HTTP-2")
def claims_http_2_0(service: Service) -> None:
    """Answers 404 with the version HTTP/2.0 in the status line, over connections of HTTP/1.1."""
    amend.wire(
        service,
        lambda _, response, data: data.replace(b"HTTP/1.1", b"HTTP/2.0", 1) if response.status == 404 else data,
    )


# --- BASE-1: /v1 ---


@fault("BASE-1")
def serves_at_the_root(service: Service) -> None:
    """Serves the operations without the version segment only."""
    service.collection = service.base.removesuffix("/v1") + ORDERS


@fault("BASE-1")
def serves_the_second_version_only(service: Service) -> None:
    """Serves the operations under /v2 only."""
    service.collection = service.base.removesuffix("/v1") + "/v2" + ORDERS


@fault("BASE-1")
def serves_the_minor_version_only(service: Service) -> None:
    """Serves the operations under /v1.0 only."""
    service.collection = service.base + ".0" + ORDERS


# --- PET-1, PET-2: the deprecated pet lookup ---

PET = {"id": 1, "name": "Rex"}


def _is_pet_lookup(service: Service, request: Request) -> bool:
    return request.method == "GET" and request.path.startswith(service.base + "/pets/")


def _lets_in(service: Service, whom: Callable[[Request], object], answer: Callable[[], Response]) -> None:
    """Answers the pet lookup of those without the key of whom this is true."""
    amend.refusals(service, lambda request, _: answer() if _is_pet_lookup(service, request) and whom(request) else None)


@fault("PET-1")
def shows_pets_to_anyone(service: Service) -> None:
    """Answers the pet lookup with 200 without asking for a key."""
    _lets_in(service, lambda request: True, lambda: service.json(200, PET))


@fault("PET-1")
def keeps_a_pet_for_the_next_one(service: Service) -> None:
    """Answers the pet lookup with what it answered to somebody with the key before, whoever asks."""
    kept: set[str] = set()

    def answer(request: Request) -> Response | None:
        if not _is_pet_lookup(service, request):
            return None
        kept.add(request.path)
        return service.json(200, PET)

    amend.instead(service, answer)
    amend.refusals(service, lambda request, _: service.json(200, PET) if request.path in kept else None)


@fault("PET-1")
def answers_the_pet_lookup_with_null(service: Service) -> None:
    """Answers the pet lookup with 200 and null where there is no Authorization header."""
    _lets_in(service, amend.no_header, lambda: service.json(200, None))


@fault("PET-1")
def shows_pets_to_any_key(service: Service) -> None:
    """Answers the pet lookup with 200 to whatever bearer token there is."""
    _lets_in(service, service.bearer_token, lambda: service.json(200, PET))


@fault("PET-1")
def shows_pets_to_a_key_in_the_query(service: Service) -> None:
    """Answers the pet lookup with 200 where the key is in the query, as it once was."""
    key = service.key.decode()
    _lets_in(service, lambda request: key in unquote(request.query), lambda: service.json(200, PET))


@fault("PET-1")
def shows_pets_behind_a_slash(service: Service) -> None:
    """Answers the pet lookup with 200 without a key where a slash follows the id."""
    _lets_in(service, lambda request: request.path.endswith("/"), lambda: service.json(200, PET))


@fault("PET-1")
def shows_pets_to_users_of_basic(service: Service) -> None:
    """Answers the pet lookup with 200 to whoever uses Basic authentication."""
    _lets_in(service, lambda request: amend.authorization(request).startswith("Basic "), lambda: service.json(200, PET))


@fault("PET-1")
def shows_pets_behind_a_proxy(service: Service) -> None:
    """Answers the pet lookup with 200 without a key where a field says that it was asked for from the same machine."""
    _lets_in(
        service,
        lambda request: request.headers.get("x-forwarded-for") == "127.0.0.1",
        lambda: service.json(200, PET),
    )


@fault("PET-1")
def shows_pets_to_clients_without_accept(service: Service) -> None:
    """Answers the pet lookup with 200 without a key to clients that send no Accept."""
    _lets_in(service, lambda request: "accept" not in request.headers, lambda: service.json(200, PET))


@fault("PET-1")
def shows_pets_to_browsers(service: Service) -> None:
    """Answers the pet lookup with a page, and without a key, to clients that accept one."""
    page = b"<!doctype html><title>Rex</title>"
    _lets_in(
        service,
        _asks_for_pages,
        lambda: Response(200, page, {"Content-Type": "text/html"}),
    )


@fault("PET-1")
def answers_the_pet_lookup_with_204(service: Service) -> None:
    """Answers the pet lookup with 204 when the Authorization header is absent."""
    _lets_in(service, amend.no_header, lambda: Response(204))


def _pets(service: Service, headers: Mapping[str, str]) -> None:
    """Has a pet lookup that answers with these headers."""

    def answer(request: Request) -> Response | None:
        if not _is_pet_lookup(service, request):
            return None
        response = service.json(200, PET)
        response.headers.update(headers)
        return response

    amend.instead(service, answer)


@fault("PET-2")
def deprecates_with_true(service: Service) -> None:
    """Sends Deprecation: true, as a draft once had it."""
    _pets(service, {"Deprecation": "true"})


@fault("PET-2")
def deprecates_with_an_http_date(service: Service) -> None:
    """Sends Deprecation as an HTTP date, as a draft once had it."""
    _pets(service, {"Deprecation": "Sat, 01 Jul 2023 00:00:00 GMT"})


@fault("PET-2")
def sets_the_sun_with_an_iso_date(service: Service) -> None:
    """Sends Sunset as an ISO 8601 date."""
    _pets(service, {"Deprecation": "@1688169599", "Sunset": "2027-12-31"})


@fault("PET-2")
def sets_the_sun_with_an_offset(service: Service) -> None:
    """Sends Sunset as a date of mails, with an offset."""
    _pets(service, {"Sunset": "Fri, 31 Dec 2027 23:59:59 +0000"})
