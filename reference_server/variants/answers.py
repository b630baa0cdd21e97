"""Other answers where the specification shows none: repeated cancels, 409, ids, other paths and methods."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .. import amend
from ..api import JsonObject, Service
from ..messages import Request, Response
from ..orders import INT64_MAX, INT64_MIN
from ..registry import variant


def _error(service: Service, status: int, code: str, message: str) -> Response:
    return service.json(status, {"code": code, "message": message, "status": status})


# --- cancelling an order again ---


def _repeated(service: Service, answer: Callable[[], Response]) -> None:
    amend.repeated_cancels(service, lambda response: answer())


@variant()
def answers_409_to_a_repeated_cancel(service: Service) -> None:
    """Answers 409 when the order was cancelled before."""
    _repeated(service, lambda: _error(service, 409, "ALREADY_CANCELLED", "The order was cancelled before."))


@variant()
def answers_410_to_a_repeated_cancel(service: Service) -> None:
    """Answers 410 when the order was cancelled before."""
    _repeated(service, lambda: _error(service, 410, "GONE", "The order was cancelled before."))


@variant()
def answers_422_to_a_repeated_cancel(service: Service) -> None:
    """Answers 422 when the order was cancelled before."""
    _repeated(service, lambda: _error(service, 422, "CANCELLED", "The order was cancelled before."))


@variant()
def answers_400_without_body_to_a_repeated_cancel(service: Service) -> None:
    """Answers 400 without a body when the order was cancelled before."""
    _repeated(service, lambda: Response(400))


@variant()
def has_a_code_for_a_repeated_cancel(service: Service) -> None:
    """Answers 404 with a code of its own when the order was cancelled before."""
    _repeated(service, lambda: _error(service, 404, "ALREADY_CANCELLED", "The order was cancelled before."))


def _of_an_earlier_day(order_id: int) -> bool:
    near_an_end = min(order_id - INT64_MIN, INT64_MAX - order_id) < 30_000
    return 0 <= order_id < 5_000_000 or order_id in (2**31, 2**32) or near_an_end


@variant()
def recalls_orders_of_earlier_days(service: Service) -> None:
    """Answers 410 to ids that orders had on earlier days: small ones, and some at 2^31, 2^32 and both ends of int64."""

    def answer(request: Request) -> Response | None:
        order_id = amend.id_of(service, request) if amend.is_cancel(request) else None
        if order_id is None or not _of_an_earlier_day(order_id) or service.store.get(order_id):
            return None
        return _error(service, 410, "GONE", "The order was cancelled before.")

    amend.instead(service, answer)


# --- 409 ---


def _conflict(service: Service, body: bytes, media_type: str | None) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    amend.granted(service, lambda _, response: Response(409, body, headers) if response.status == 409 else None)


@variant()
def answers_409_without_body(service: Service) -> None:
    """Refuses a shipped order without a body."""
    _conflict(service, b"", None)


@variant("ERR-5")
def answers_409_as_a_page(service: Service) -> None:
    """Refuses a shipped order with a page of HTML."""
    _conflict(service, b"<!doctype html><title>Conflict</title>", "text/html; charset=utf-8")


@variant()
def answers_409_as_other_json(service: Service) -> None:
    """Refuses a shipped order with a JSON object that is no Error."""
    _conflict(service, b'{"reason":{"shipped":true},"status":"shipped"}', "application/json")


@variant()
def answers_409_as_a_json_string(service: Service) -> None:
    """Refuses a shipped order with a JSON string."""
    _conflict(service, b'"already shipped"', "application/json")


@variant("ERR-5")
def answers_409_as_problem_json(service: Service) -> None:
    """Refuses a shipped order with problem details (RFC 9457)."""
    _conflict(service, b'{"type":"about:blank","title":"Conflict"}', "application/problem+json")


# --- ids ---


def _other_ids(service: Service, which: Callable[[str], bool], answer: Callable[[], Response]) -> None:
    inner = service.cancel_order
    service.cancel_order = lambda request, text: answer() if which(text) else inner(request, text)


def _malformed(service: Service, answer: Callable[[], Response]) -> None:
    _other_ids(service, lambda text: service.read_id(text) is None, answer)


@variant()
def answers_404_to_malformed_ids(service: Service) -> None:
    """Answers 404 with an Error to an id that is no integer."""
    _malformed(service, lambda: service.error(404, "There is no such order."))


@variant()
def answers_404_as_a_page_to_malformed_ids(service: Service) -> None:
    """Answers 404 with a page of HTML to an id that is no integer, as a router does that knows integers."""
    _malformed(service, lambda: Response(404, b"<h1>Not found</h1>", {"Content-Type": "text/html"}))


@variant()
def answers_422_to_malformed_ids(service: Service) -> None:
    """Answers 422 to an id that is no integer."""
    _malformed(service, lambda: _error(service, 422, "INVALID_ID", "The id must be an integer."))


@variant()
def answers_405_to_malformed_ids(service: Service) -> None:
    """Answers 405 to an id that is no integer."""
    _malformed(service, lambda: Response(405, headers={"Allow": "GET"}))


@variant()
def answers_400_without_body_to_malformed_ids(service: Service) -> None:
    """Answers 400 without a body to an id that is no integer."""
    _malformed(service, lambda: Response(400))


@variant()
def is_behind_a_firewall_that_hangs_up(service: Service) -> None:
    """Closes the connection without an answer to an id with the character U+0000 or a byte that UTF-8 never has."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if not re.search(r"%(00|F[8-F])", request.path, re.IGNORECASE):
            return data
        response.close = True
        return b""

    amend.wire(service, change)


@variant()
def answers_400_to_ids_beyond_int64(service: Service) -> None:
    """Answers 400 to an integer that is no int64."""
    _other_ids(
        service,
        lambda text: (
            re.fullmatch(r"-?[0-9]+", text) is not None and (len(text) > 20 or not INT64_MIN <= int(text) <= INT64_MAX)
        ),
        lambda: _error(service, 400, "INVALID_ID", "The id must be an int64."),
    )


@variant()
def takes_leading_zeros_and_plus_signs(service: Service) -> None:
    """Takes +7 and 007 for 7: other spellings of the same integer."""
    amend.read_ids(service, lambda text: int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None)


# --- authentication ---


@variant()
def answers_400_to_malformed_credentials(service: Service) -> None:
    """Answers 400 to Bearer with an empty token or several words (RFC 6750, section 3.1)."""

    def change(request: Request, response: Response) -> Response | None:
        token = service.bearer_token(request)
        malformed = token is not None and (token == b"" or b" " in token)
        return _error(service, 400, "INVALID_REQUEST", "Malformed credentials.") if malformed else None

    amend.refusals(service, change)


@variant("AUTH-8")
def answers_400_to_unusual_spellings_of_the_scheme(service: Service) -> None:
    """Takes the scheme as Bearer and bearer, and answers 400 to other spellings of it."""

    def answer(request: Request) -> Response | None:
        scheme = amend.authorization(request).partition(" ")[0]
        odd = scheme.lower() == "bearer" and scheme not in ("Bearer", "bearer")
        return _error(service, 400, "INVALID_REQUEST", "Unknown scheme.") if odd else None

    amend.before(service, answer)


#: A scheme, and a token or parameters (RFC 9110, section 11.4).
_PARAMETER = r'[\w-]+=("[^"]*"|[\w-]+)'
_CREDENTIALS = re.compile(rf"[!#$%&'*+.^_`|~\w-]+( +([\w.~+/-]+=*|{_PARAMETER}(, *{_PARAMETER})*))?", re.ASCII)


@variant()
def answers_400_to_what_is_no_credential(service: Service) -> None:
    """Answers 400 to a value of Authorization that has not the form of credentials (RFC 9110, section 11.4)."""

    def change(request: Request, response: Response) -> Response | None:
        value = request.headers.get("authorization")
        malformed = value is not None and not _CREDENTIALS.fullmatch(value)
        return _error(service, 400, "INVALID_REQUEST", "Malformed credentials.") if malformed else None

    amend.refusals(service, change)


def _challenge(service: Service, challenge: str) -> None:
    def change(request: Request, response: Response) -> None:
        response.headers["WWW-Authenticate"] = challenge

    amend.refusals(service, change)


@variant()
def challenges_without_detail(service: Service) -> None:
    """Sends the bare name of the scheme in WWW-Authenticate."""
    _challenge(service, "Bearer")


@variant()
def challenges_in_small_letters(service: Service) -> None:
    """Names the scheme in small letters in WWW-Authenticate."""
    _challenge(service, "bearer realm=store")


@variant()
def challenges_for_several_schemes(service: Service) -> None:
    """Names three schemes in one WWW-Authenticate, Bearer in the middle."""
    _challenge(service, 'Newauth realm="apps, old", type=1, Bearer realm="store", scope="a b", Negotiate')


@variant()
def challenges_in_two_headers(service: Service) -> None:
    """Sends two WWW-Authenticate headers, the second for Bearer."""
    amend.wire(
        service,
        lambda _, response, data: data.replace(
            b"\r\nWWW-Authenticate: Bearer", b"\r\nWWW-Authenticate: Negotiate\r\nWWW-Authenticate: Bearer", 1
        ),
    )


@variant()
def tells_a_missing_key_from_a_wrong_one(service: Service) -> None:
    """Gives 401 one code for a missing key and another for a wrong one."""

    def change(request: Request, response: Response) -> Response | None:
        if not amend.no_header(request):
            return None
        other = _error(service, 401, "MISSING_KEY", "An API key is needed.")
        other.headers["WWW-Authenticate"] = response.headers["WWW-Authenticate"]
        return other

    amend.refusals(service, change)


# --- errors ---


@variant()
def adds_fields_to_errors(service: Service) -> None:
    """Adds the path of the request, a list, an object and null to every Error."""

    def change(request: Request, response: Response) -> None:
        if response.status in (401, 404, 409):
            more = b'"path":"%s","details":[],"cause":null,"help":{"url":"https://example.com/help"}' % (
                service.encode(request.path).strip(b'"')
            )
            response.body = b"{" + more + b"," + response.body[1:]

    amend.responses(service, change)


@variant()
def repeats_the_id_in_errors(service: Service) -> None:
    """Adds the id of the order that was asked for to every Error, as a field `id`."""

    def change(request: Request, response: Response) -> None:
        number = amend.id_of(service, request)
        if response.status in (401, 404, 409) and number is not None:
            response.body = b'{"id":%d,' % number + response.body[1:]

    amend.responses(service, change)


@variant()
def words_errors_in_greek(service: Service) -> None:
    """Words every message in Greek, with characters beyond the basic plane."""
    amend.errors(service, lambda fields: {**fields, "message": "Κάτι δεν πήγε καλά 🐾"}, 401, 404, 409)


@variant()
def numbers_its_codes(service: Service) -> None:
    """Gives errors codes that are numbers, as strings."""

    def change(fields: JsonObject) -> JsonObject:
        return {**fields, "code": f"{fields['status']}00"}

    amend.errors(service, change, 401, 404, 409)


# --- other parameters, paths and methods ---


@variant()
def refuses_query_parameters(service: Service) -> None:
    """Answers 400 to a listing with query parameters, since none are defined."""
    amend.instead(
        service,
        lambda request: (
            _error(service, 400, "UNKNOWN_PARAMETER", "No parameters are supported.")
            if request.query and request.method == "GET"
            else None
        ),
    )


@variant()
def refuses_any_query_with_422(service: Service) -> None:
    """Answers 422 to any request with a query."""
    amend.instead(
        service,
        lambda request: _error(service, 422, "UNKNOWN_PARAMETER", "No query.") if request.query else None,
    )


@variant()
def serves_ranges_of_items_with_206(service: Service) -> None:
    """Answers 206 with the first order to a listing with the header Range: items=0-0, and 400 to a preference."""

    def change(request: Request, response: Response) -> Response | None:
        if not amend.is_listing(request, response):
            return None
        if "prefer" in request.headers:
            return _error(service, 400, "UNKNOWN_PREFERENCE", "No preferences are supported.")
        orders = json.loads(response.body)
        if request.headers.get("range") != "items=0-0" or not orders:
            return None
        headers = {**response.headers, "Content-Range": f"items 0-0/{len(orders)}"}
        return Response(206, json.dumps(orders[:1]).encode(), headers)

    amend.granted(service, change)


@variant()
def looks_at_the_query_before_the_key(service: Service) -> None:
    """Answers 422 to any request with a query, whoever asks."""
    amend.before(
        service,
        lambda request: _error(service, 422, "UNKNOWN_PARAMETER", "No query.") if request.query else None,
    )


@variant()
def looks_at_a_body_before_the_key(service: Service) -> None:
    """Answers 415 to any request with a body, whoever asks."""
    amend.before(
        service,
        lambda request: _error(service, 415, "UNSUPPORTED_MEDIA_TYPE", "No body.") if request.body else None,
    )


@variant()
def takes_a_trailing_slash(service: Service) -> None:
    """Answers paths that end with a slash as if they did not."""
    amend.paths(service, lambda request: request.path.rstrip("/"))


@variant()
def answers_501_to_other_methods(service: Service) -> None:
    """Answers 501 to HEAD, OPTIONS and every method besides GET and DELETE, before it asks for a key."""
    amend.before(
        service,
        lambda request: Response(501, close=True) if request.method not in ("GET", "DELETE") else None,
    )


@variant()
def answers_404_to_other_methods(service: Service) -> None:
    """Answers 404 to HEAD, OPTIONS and every method besides GET and DELETE."""
    amend.instead(
        service,
        lambda request: service.error(404, "No.") if request.method not in ("GET", "DELETE") else None,
    )


@variant()
def answers_options_to_anyone(service: Service) -> None:
    """Answers OPTIONS without a key, as browsers need it."""
    headers = {"Allow": "GET, DELETE", "Access-Control-Allow-Origin": "*"}
    amend.before(service, lambda request: Response(204, headers=headers) if request.method == "OPTIONS" else None)


def _pets(service: Service, request: Request) -> bool:
    return request.path.startswith(service.base + "/pets/")


@variant()
def has_a_page_for_any_other_path(service: Service) -> None:
    """Answers any other path with the page of an application, to anyone, as single-page applications do."""
    page = Response(200, b"<!doctype html><title>Store</title>", {"Content-Type": "text/html"})
    amend.before(service, lambda request: page if not request.path.startswith(service.collection) else None)


@variant()
def has_a_page_for_browsers_on_any_other_path(service: Service) -> None:
    """Answers any other path with the page of an application, to browsers only."""
    page = Response(200, b"<!doctype html><title>Store</title>", {"Content-Type": "text/html"})

    def answer(request: Request) -> Response | None:
        asked = "text/html" in request.headers.get("accept", "") and not request.path.startswith(service.collection)
        return page if asked else None

    amend.before(service, answer)


@variant()
def has_the_pet_lookup(service: Service) -> None:
    """Answers the deprecated pet lookup with a pet and proper headers, to those with a key."""
    headers = {"Deprecation": "@1688169599", "Sunset": "Fri, 31 Dec 2027 23:59:59 GMT"}

    def answer(request: Request) -> Response | None:
        if not _pets(service, request):
            return None
        response = service.json(200, {"id": 1, "name": "Rex"})
        response.headers.update(headers)
        return response

    amend.instead(service, answer)


@variant()
def has_no_pet_lookup_for_anyone(service: Service) -> None:
    """Answers the pet lookup with 404 before it asks for a key, as a router does that lacks the path."""
    amend.before(
        service,
        lambda request: (
            Response(404, b"not found", {"Content-Type": "text/plain"}) if _pets(service, request) else None
        ),
    )


@variant()
def has_buried_the_pet_lookup(service: Service) -> None:
    """Answers the pet lookup with 410 and the headers of its past."""
    headers = {"Deprecation": "@1577836800", "Sunset": "Wed, 01 Jan 2025 00:00:00 GMT"}
    amend.instead(service, lambda request: Response(410, b"", headers) if _pets(service, request) else None)


@variant()
def answers_any_other_path_with_what_it_is(service: Service) -> None:
    """Answers any path but those of the orders with 200 and what the service is, to anyone."""
    told = service.json(200, {"service": "store-orders", "version": "1.0.0"})
    amend.before(service, lambda request: None if request.path.startswith(service.collection) else told)


@variant()
def has_closed_the_pet_lookup(service: Service) -> None:
    """Answers the pet lookup with 503, to anyone, as a gateway does for a service that was taken down."""
    page = Response(503, b"<h1>Gone</h1>", {"Content-Type": "text/html"})
    amend.before(service, lambda request: page if _pets(service, request) else None)


@variant()
def has_a_firewall_that_stops_some_queries(service: Service) -> None:
    """Answers 503 with a page to a query with a parameter called `where`, which a firewall takes for an attack."""
    page = Response(503, b"<h1>Blocked</h1>", {"Content-Type": "text/html"})
    amend.before(service, lambda request: page if "where=" in request.query else None)


@variant()
def reads_ids_as_lenient_frameworks_do(service: Service) -> None:
    """Takes 0123, +123, 123.0 and blanks around an id for 123, as the readers of some frameworks do."""
    amend.read_ids(
        service,
        lambda text: int(match[1]) if (match := re.fullmatch(r"\s*([+-]?[0-9]{1,18})(?:\.0)?\s*", text)) else None,
    )
