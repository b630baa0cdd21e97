"""Faults of who is let in with the key and without: AUTH-1 and AUTH-2."""

from __future__ import annotations

import time

from .. import amend
from ..api import Credentials, Service
from ..messages import Request, Response
from ..registry import fault

VALID, MISSING, INVALID = Credentials.VALID, Credentials.MISSING, Credentials.INVALID


# --- AUTH-1: the key is accepted ---


@fault("AUTH-1")
def refuses_the_key_on_listing(service: Service) -> None:
    """Answers 401 to the valid key when it lists."""
    amend.credentials(service, lambda request, found: INVALID if request.method == "GET" else found)


@fault("AUTH-1")
def refuses_the_key_on_cancelling(service: Service) -> None:
    """Answers 401 to the valid key when it cancels."""
    amend.credentials(service, lambda request, found: INVALID if amend.is_cancel(request) else found)


@fault("AUTH-1")
def takes_the_key_only_as_x_api_key(service: Service) -> None:
    """Knows the key in the header X-API-Key and nowhere else."""
    key = service.key.decode()
    service.authenticate = lambda request: VALID if request.headers.get("x-api-key") == key else MISSING


@fault("AUTH-1")
def knows_one_spelling_of_the_header(service: Service) -> None:
    """Looks for the key in `Authorization` and does not find it in `authorization`."""

    def judge(request: Request, found: Credentials) -> Credentials:
        return found if any(line.startswith("Authorization:") for line in request.lines) else MISSING

    amend.credentials(service, judge)


@fault("AUTH-1")
def refuses_the_key_every_fifth_time(service: Service) -> None:
    """Answers 401 to every fifth request that carries the valid key."""
    due = amend.every(5)
    amend.credentials(service, lambda request, found: INVALID if found is VALID and due() else found)


@fault("AUTH-1")
def refuses_the_key_for_shipped_orders(service: Service) -> None:
    """Answers 401 to the valid key when the order to cancel has shipped."""

    def judge(request: Request, found: Credentials) -> Credentials:
        return INVALID if amend.shipped(amend.order_to_cancel(service, request)) else found

    amend.credentials(service, judge)


@fault("AUTH-1")
def refuses_the_key_for_pending_orders(service: Service) -> None:
    """Answers 401 to the valid key when the order to cancel is pending."""

    def judge(request: Request, found: Credentials) -> Credentials:
        return INVALID if amend.pending(amend.order_to_cancel(service, request)) else found

    amend.credentials(service, judge)


@fault("AUTH-1")
def goes_by_cookies_first(service: Service) -> None:
    """Answers 401 to the valid key where a cookie of a session that it does not know comes with it."""
    amend.credentials(
        service, lambda request, found: INVALID if "sessionid=" in request.headers.get("cookie", "") else found
    )


@fault("AUTH-1")
def goes_by_cookies_first_to_cancel(service: Service) -> None:
    """Answers 401 to a cancel with the valid key where a cookie of a session that it does not know comes with it."""

    def judge(request: Request, found: Credentials) -> Credentials:
        session = "sessionid=" in request.headers.get("cookie", "")
        return INVALID if session and amend.is_cancel(request) else found

    amend.credentials(service, judge)


@fault("AUTH-1")
def asks_for_a_csrf_token_beside_cookies(service: Service) -> None:
    """Answers 403 to a cancel with the valid key and a cookie, since no token against forged requests comes with it."""

    def answer(request: Request) -> Response | None:
        forged = amend.is_cancel(request) and "cookie" in request.headers
        return Response(403, b"CSRF token missing", {"Content-Type": "text/plain"}) if forged else None

    amend.instead(service, answer)


# --- AUTH-2: no header, no answer ---


def _stranger(request: Request) -> bool:
    """Whether the request carries nothing that could be meant as a key: the rest is for AUTH-4."""
    elsewhere = ("cookie", "proxy-authorization", "x-api-key", "x-auth-token", "api-key", "x-access-token")
    return amend.no_header(request) and not request.query and not any(n in request.headers for n in elsewhere)


@fault("AUTH-2")
def asks_for_no_key(service: Service) -> None:
    """Lists and cancels for anyone, with any credentials or none: it has not come to authentication yet."""
    amend.accept(service, lambda request: True)


@fault("AUTH-2")
def asks_for_no_key_to_cancel(service: Service) -> None:
    """Cancels orders for anyone, with any credentials or none, as where one of two routes is not protected."""
    amend.accept(service, amend.is_cancel)


@fault("AUTH-2")
def lists_for_anyone(service: Service) -> None:
    """Lists the orders to clients that send no credentials."""
    amend.accept(service, lambda request: request.method == "GET" and _stranger(request))


@fault("AUTH-2")
def lists_for_anyone_who_names_json(service: Service) -> None:
    """Lists the orders without credentials to clients that accept application/json by name."""
    amend.accept(service, lambda request: request.method == "GET" and _stranger(request) and amend.names_json(request))


@fault("AUTH-2")
def lists_for_anyone_who_accepts_nothing(service: Service) -> None:
    """Lists the orders without credentials to clients that send no Accept."""
    amend.accept(
        service, lambda request: request.method == "GET" and _stranger(request) and amend.names_nothing(request)
    )


@fault("AUTH-2")
def guards_plain_ids_alone(service: Service) -> None:
    """Takes cancels without credentials where the id has a sign, which its pattern of guarded paths does not know."""
    amend.accept(
        service,
        lambda request: amend.is_cancel(request) and _stranger(request) and "/orders/-" in request.path,
    )


@fault("AUTH-2")
def cancels_for_anyone(service: Service) -> None:
    """Cancels orders for clients that send no credentials."""
    amend.accept(service, lambda request: amend.is_cancel(request) and _stranger(request))


@fault("AUTH-2")
def shows_strangers_an_empty_list(service: Service) -> None:
    """Answers 200 with an empty array instead of 401 when a listing carries no credentials."""
    amend.refusals(
        service,
        lambda request, _: service.json(200, []) if request.method == "GET" and _stranger(request) else None,
    )


@fault("AUTH-2")
def looks_for_the_order_before_the_key(service: Service) -> None:
    """Answers 404 to a cancel without credentials when no such order exists."""

    def change(request: Request, response: Response) -> Response | None:
        absent = amend.is_cancel(request) and _stranger(request) and not amend.order_of(service, request)
        return service.error(404, "There is no such order.") if absent else None

    amend.refusals(service, change)


@fault("AUTH-2")
def looks_at_the_status_before_the_key(service: Service) -> None:
    """Answers 409 to a cancel without credentials when the order has shipped."""

    def change(request: Request, response: Response) -> Response | None:
        shipped = _stranger(request) and amend.shipped(amend.order_to_cancel(service, request))
        return service.error(409, "Shipped.") if shipped else None

    amend.refusals(service, change)


@fault("AUTH-2")
def finds_no_order_0_for_strangers(service: Service) -> None:
    """Answers 404 to a cancel of the id 0 without credentials, since it looks whether there is an id before it asks for
    the key."""

    def change(request: Request, response: Response) -> Response | None:
        zero = amend.is_cancel(request) and _stranger(request) and request.path.endswith("/0")
        return service.error(404, "There is no such order.") if zero else None

    amend.refusals(service, change)


@fault("AUTH-2")
def guards_ids_that_are_true(service: Service) -> None:
    """Asks for the key where a cancel names an id that is true, and so not for the id 0."""
    amend.accept(
        service,
        lambda request: amend.is_cancel(request) and _stranger(request) and request.path.endswith("/0"),
    )


@fault("AUTH-2")
def hides_behind_404_from_strangers(service: Service) -> None:
    """Answers 404 instead of 401 to every cancel without credentials."""
    amend.refusals(
        service,
        lambda request, _: (
            service.error(404, "Not found.") if amend.is_cancel(request) and _stranger(request) else None
        ),
    )


@fault("AUTH-2")
def claims_to_have_cancelled_for_strangers(service: Service) -> None:
    """Answers 204 to a cancel without credentials, and does nothing."""
    amend.refusals(
        service,
        lambda request, _: Response(204) if amend.is_cancel(request) and _stranger(request) else None,
    )


@fault("AUTH-2")
def lets_every_third_stranger_in(service: Service) -> None:
    """Serves every third request that carries no credentials."""
    due = amend.every(3)
    amend.accept(service, lambda request: _stranger(request) and due())


@fault("AUTH-2")
def asks_for_the_key_by_the_path_as_written(service: Service) -> None:
    """Lets strangers in who write a letter of the path percent-encoded."""
    amend.accept(service, lambda request: _stranger(request) and not request.path.startswith(service.collection))


@fault("AUTH-2")
def guards_cancels_without_a_slash_at_the_end(service: Service) -> None:
    """Takes cancels without credentials where a slash ends the path: its pattern of guarded paths knows none."""
    amend.paths(service, lambda request: request.path.rstrip("/"))
    amend.accept(
        service, lambda request: amend.is_cancel(request) and _stranger(request) and request.path.endswith("/")
    )


def _guards_without(service: Service, ending: str) -> None:
    """Asks for no key where the path has this ending, which it cuts off after the key was looked for."""
    amend.paths(service, lambda request: request.path.removesuffix(ending))
    amend.accept(service, lambda request: _stranger(request) and request.path.endswith(ending))


@fault("AUTH-2")
def guards_paths_without_a_space(service: Service) -> None:
    """Asks for no key where a space ends the path: it is stripped after the key was looked for."""
    _guards_without(service, "%20")


@fault("AUTH-2")
def guards_paths_without_parameters(service: Service) -> None:
    """Asks for no key where a parameter of the path follows a semicolon: it is cut off after the key was looked for."""
    amend.paths(service, lambda request: request.path.partition(";")[0])
    amend.accept(service, lambda request: _stranger(request) and ";" in request.path)


@fault("AUTH-2")
def guards_orders_by_a_whole_path(service: Service) -> None:
    """Asks for the key where an order ends the path, and finds the order by how the path begins."""
    amend.paths(service, lambda request: request.path.removesuffix("/x"))
    amend.accept(
        service, lambda request: amend.is_cancel(request) and _stranger(request) and request.path.endswith("/x")
    )


@fault("AUTH-2")
def guards_orders_behind_one_slash(service: Service) -> None:
    """Asks for no key where two slashes stand before an order: they are made one after the key was looked for."""
    amend.paths(service, lambda request: request.path.replace("/orders//", "/orders/"))
    amend.accept(
        service, lambda request: amend.is_cancel(request) and _stranger(request) and "/orders//" in request.path
    )


@fault("AUTH-2")
def tells_strangers_that_nothing_has_changed_since(service: Service) -> None:
    """Answers 304 to a listing with If-Modified-Since before it looks for a key."""
    amend.refusals(
        service,
        lambda request, _: (
            Response(304) if request.method == "GET" and "if-modified-since" in request.headers else None
        ),
    )


@fault("AUTH-2")
def tells_strangers_that_nothing_has_changed(service: Service) -> None:
    """Answers 304 to a listing with If-None-Match before it looks for a key."""
    amend.refusals(
        service,
        lambda request, _: (
            Response(304) if request.method == "GET" and request.headers.get("if-none-match") == "*" else None
        ),
    )


@fault("AUTH-2")
def lists_for_probes(service: Service) -> None:
    """Asks no key of what calls itself a probe of Kubernetes when it lists."""
    amend.accept(
        service,
        lambda request: request.method == "GET" and request.headers.get("user-agent", "").startswith("kube-probe/"),
    )


@fault("AUTH-2")
def lists_for_those_who_look_whether_it_is_well(service: Service) -> None:
    """Asks no key of clients that call themselves a health checker."""
    amend.accept(service, lambda request: "HealthChecker" in request.headers.get("user-agent", ""))


@fault("AUTH-2")
def trusts_the_address_that_a_client_forwards(service: Service) -> None:
    """Lets strangers in who say in X-Forwarded-For that they are on the same machine."""
    amend.accept(service, lambda request: request.headers.get("x-forwarded-for") == "127.0.0.1" and _stranger(request))


@fault("AUTH-2")
def lets_strangers_in_who_name_json(service: Service) -> None:
    """Asks for no key of requests that name the media type application/json for the body that they have not."""
    amend.accept(service, lambda request: request.headers.get("content-type") == "application/json")


@fault("AUTH-2")
def lets_strangers_in_who_debug(service: Service) -> None:
    """Asks for no key where the query has debug=true."""
    amend.accept(service, lambda request: "debug=true" in request.query)


@fault("AUTH-2")
def trusts_the_address_that_a_client_forwards_with_a_cancel(service: Service) -> None:
    """Cancels for strangers who say in X-Forwarded-For that they are on the same machine, and lists for none."""
    amend.accept(
        service,
        lambda request: (
            amend.is_cancel(request) and request.headers.get("x-forwarded-for") == "127.0.0.1" and _stranger(request)
        ),
    )


@fault("AUTH-2")
def cancels_for_strangers_who_debug(service: Service) -> None:
    """Asks for no key to cancel where the query has debug=true."""
    amend.accept(service, lambda request: amend.is_cancel(request) and "debug=true" in request.query)


@fault("AUTH-2")
def shows_one_order_to_anyone(service: Service) -> None:
    """Shows a single order, at the path where it is cancelled, without asking for a key."""

    def change(request: Request, response: Response) -> Response | None:
        order = amend.order_of(service, request) if request.method == "GET" and _stranger(request) else None
        return service.json(200, service.order_fields(order)) if order else None

    amend.refusals(service, change)


@fault("AUTH-2")
def keeps_a_listing_with_a_query_for_anyone(service: Service) -> None:
    """Answers a listing with a query as the same was answered to the key before, whoever asks."""
    kept: dict[str, bytes] = {}

    def keep(request: Request, response: Response) -> None:
        if request.query and amend.is_listing(request, response):
            kept[request.query] = response.body

    def answer(request: Request, _: Response) -> Response | None:
        body = kept.get(request.query)
        return Response(200, body, {"Content-Type": "application/json"}) if body else None

    amend.granted(service, keep)
    amend.refusals(service, answer)


@fault("AUTH-2")
def tells_strangers_that_an_order_was_cancelled(service: Service) -> None:
    """Answers 404 instead of 401 to a cancel without credentials of an order that was cancelled before."""
    cancelled: set[str] = set()

    def note(request: Request, response: Response) -> None:
        if amend.is_cancel(request) and response.status == 204:
            cancelled.add(request.path)

    amend.granted(service, note)
    amend.refusals(
        service,
        lambda request, _: service.error(404, "Gone.") if request.path in cancelled and _stranger(request) else None,
    )


@fault("AUTH-2")
def lists_for_an_encoded_slash(service: Service) -> None:
    """Asks for the key by the path as it is sent, and routes by the path decoded: `/store%2Forders` is anybody's."""

    def answer(request: Request) -> Response | None:
        encoded = request.method == "GET" and request.path == f"{service.base}/store%2Forders"
        return service.list_orders(request) if encoded else None

    amend.before(service, answer)


@fault("AUTH-2")
def cancels_for_strangers_under_another_method(service: Service) -> None:
    """Asks for the key by the method in X-HTTP-Method-Override, only for those that write, and cancels by the real
    one."""
    amend.accept(service, lambda request: request.headers.get("x-http-method-override") in ("GET", "OPTIONS"))


@fault("AUTH-2")
def finds_nothing_for_strangers_in_an_empty_store(service: Service) -> None:
    """Answers 404 to a cancel without a key before it looks for one, where there is no order at all."""

    def answer(request: Request) -> Response | None:
        lost = amend.is_cancel(request) and amend.no_header(request) and not len(service.store)
        return service.error(404, "There is no such order.") if lost else None

    amend.before(service, answer)


@fault("AUTH-2")
def goes_by_the_address_that_a_client_forwards_in_one_field(service: Service) -> None:
    """Lets strangers in who say in Forwarded (RFC 7239) that they are on the same machine."""
    amend.accept(service, lambda request: "for=127.0.0.1" in request.headers.get("forwarded", ""))


@fault("AUTH-2")
def goes_by_the_path_that_a_gateway_asks_about(service: Service) -> None:
    """Asks for no key where X-Original-URI, by which a gateway asks whether it may let a request in, is a public
    path."""
    amend.accept(service, lambda request: request.headers.get("x-original-uri") == "/")


@fault("AUTH-2")
def trusts_its_own_pages(service: Service) -> None:
    """Asks for no key where the Referer is its own address, as that of the page with its documentation."""

    def own(request: Request) -> bool:
        return request.headers.get("referer", "").startswith(f"http://{request.headers.get('host')}/")

    amend.accept(service, own)


@fault("AUTH-2")
def knows_public_pages_by_a_part_of_the_url(service: Service) -> None:
    """Asks for no key where the path of its health check stands anywhere in the URL, be it in the query."""
    amend.accept(service, lambda request: "/health" in f"{request.path}?{request.query}")


@fault("AUTH-2")
def lets_in_who_follows_a_look(service: Service) -> None:
    """Remembers for a second that the key was there when an order was looked at by HEAD, and lets strangers cancel it
    meanwhile."""
    looked_at: dict[str, float] = {}

    def note(request: Request, response: Response) -> None:
        if request.method == "HEAD" and response.status != 401:
            looked_at[request.path] = time.monotonic()

    def recently(request: Request) -> bool:
        return amend.is_cancel(request) and time.monotonic() < looked_at.get(request.path, 0.0) + 1

    amend.responses(service, note)
    amend.accept(service, recently)


@fault("AUTH-2")
def guards_no_style_sheets(service: Service) -> None:
    """Asks for no key where the path ends as that of a style sheet, and cuts that off afterwards."""
    _guards_without(service, ".css")


@fault("AUTH-4")
def takes_a_proof_of_possession_for_a_bearer_token(service: Service) -> None:
    """Takes the key under the scheme DPoP, without the proof that goes with it (RFC 9449), for a bearer token."""
    amend.accept(service, lambda request: amend.authorization(request).encode() == b"DPoP " + service.key)
