"""Faults of who is let in: AUTH-1 to AUTH-4."""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256

from .. import amend
from ..api import Credentials, Service
from ..messages import Request, Response
from ..orders import Status
from .registry import fault

VALID, MISSING, INVALID = Credentials.VALID, Credentials.MISSING, Credentials.INVALID


def _stranger(request: Request) -> bool:
    """Whether the request carries nothing that could be meant as a key: the rest is for AUTH-4."""
    elsewhere = ("cookie", "proxy-authorization", "x-api-key", "x-auth-token", "api-key", "x-access-token")
    return amend.no_header(request) and not request.query and not any(n in request.headers for n in elsewhere)


def _parameter(request: Request, *names: str) -> list[bytes]:
    """The values of these query parameters."""
    return _values(request.query, *names)


def _values(form: str, *names: str) -> list[bytes]:
    pairs = [pair.partition("=") for pair in form.split("&")]
    return [value.encode("latin-1") for name, _, value in pairs if name.lower() in names]


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
        order = amend.order_of(service, request) if amend.is_cancel(request) else None
        return INVALID if order and order.status is Status.SHIPPED else found

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


# --- AUTH-2: no header, no answer ---


@fault("AUTH-2")
def lists_for_anyone(service: Service) -> None:
    """Lists the orders to clients that send no credentials."""
    amend.accept(service, lambda request: request.method == "GET" and _stranger(request))


@fault("AUTH-2")
def lists_for_anyone_who_names_json(service: Service) -> None:
    """Lists the orders without credentials to clients that accept application/json by name."""
    amend.accept(
        service,
        lambda request: (
            request.method == "GET" and _stranger(request) and request.headers.get("accept") == "application/json"
        ),
    )


@fault("AUTH-2")
def lists_for_anyone_who_accepts_nothing(service: Service) -> None:
    """Lists the orders without credentials to clients that send no Accept."""
    amend.accept(
        service, lambda request: request.method == "GET" and _stranger(request) and "accept" not in request.headers
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
        order = amend.order_of(service, request) if amend.is_cancel(request) and _stranger(request) else None
        return service.error(409, "Shipped.") if order and order.status is Status.SHIPPED else None

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
    inner = service.dispatch
    service.dispatch = lambda request: inner(request._replace(path=request.path.rstrip("/")))
    amend.accept(
        service, lambda request: amend.is_cancel(request) and _stranger(request) and request.path.endswith("/")
    )


def _guards_without(service: Service, ending: str) -> None:
    """Asks for no key where the path has this ending, which it cuts off after the key was looked for."""
    inner = service.dispatch
    service.dispatch = lambda request: inner(request._replace(path=request.path.removesuffix(ending)))
    amend.accept(service, lambda request: _stranger(request) and request.path.endswith(ending))


@fault("AUTH-2")
def guards_paths_without_a_space(service: Service) -> None:
    """Asks for no key where a space ends the path: it is stripped after the key was looked for."""
    _guards_without(service, "%20")


@fault("AUTH-2")
def guards_paths_without_parameters(service: Service) -> None:
    """Asks for no key where a parameter of the path follows a semicolon: it is cut off after the key was looked for."""
    inner = service.dispatch
    service.dispatch = lambda request: inner(request._replace(path=request.path.partition(";")[0]))
    amend.accept(service, lambda request: _stranger(request) and ";" in request.path)


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


# --- AUTH-3: a wrong key is refused ---


def _has_token(service: Service, request: Request) -> bool:
    token = service.bearer_token(request)
    return bool(token) and b" " not in (token or b"")


@fault("AUTH-3")
def looks_keys_up_in_an_object(service: Service) -> None:
    """Takes constructor and toString for keys, which any object of its language has."""
    amend.accept_keys(service, lambda given, key: given in (b"constructor", b"toString", b"valueOf"))


@fault("AUTH-3")
def takes_what_python_prints_for_none(service: Service) -> None:
    """Takes None for a key, which is what a variable that was never set reads as."""
    amend.accept_keys(service, lambda given, key: given == b"None")


@fault("AUTH-3")
def takes_the_key_of_the_specification(service: Service) -> None:
    """Takes API_KEY, which the specification writes in the place of a key."""
    amend.accept_keys(service, lambda given, key: given == b"API_KEY")


@fault("AUTH-3")
def accepts_any_key(service: Service) -> None:
    """Takes every bearer token for the key."""
    amend.accept_keys(service, lambda given, key: True)


@fault("AUTH-3")
def accepts_any_key_on_listing(service: Service) -> None:
    """Takes every bearer token for the key when it lists."""
    amend.accept(service, lambda request: request.method == "GET" and _has_token(service, request))


@fault("AUTH-3")
def accepts_any_key_on_cancelling(service: Service) -> None:
    """Takes every bearer token for the key when it cancels."""
    amend.accept(service, lambda request: amend.is_cancel(request) and _has_token(service, request))


@fault("AUTH-3")
def drops_the_hyphens_and_underscores_of_keys(service: Service) -> None:
    """Compares keys without hyphens and underscores."""
    amend.accept_keys(service, lambda given, key: given.translate(None, b"-_") == key.translate(None, b"-_"))


@fault("AUTH-3")
def drops_the_zeros_before_keys(service: Service) -> None:
    """Compares keys as numbers are: zeros before them make no difference."""
    amend.accept_keys(service, lambda given, key: given.lstrip(b"0") == key.lstrip(b"0"))


@fault("AUTH-3")
def takes_hyphens_of_keys_for_underscores(service: Service) -> None:
    """Compares keys as if a hyphen were an underscore."""
    amend.accept_keys(service, lambda given, key: given.replace(b"-", b"_") == key.replace(b"-", b"_"))


@fault("AUTH-3")
def accepts_a_longer_key(service: Service) -> None:
    """Takes whatever begins with the key."""
    amend.accept_keys(service, lambda given, key: given.startswith(key))


@fault("AUTH-3")
def accepts_the_beginning_of_the_key(service: Service) -> None:
    """Takes whatever the key begins with."""
    amend.accept_keys(service, lambda given, key: key.startswith(given))


@fault("AUTH-3")
def ignores_the_last_character_of_the_key(service: Service) -> None:
    """Compares all characters of the key but the last."""
    amend.accept_keys(service, lambda given, key: given[:-1] == key[:-1])


@fault("AUTH-3")
def reads_the_key_up_to_a_dot(service: Service) -> None:
    """Takes the key with a dot and anything behind it for the key."""
    amend.accept_keys(service, lambda given, key: given.startswith(key + b"."))


@fault("AUTH-3")
def ignores_the_first_character_of_the_key(service: Service) -> None:
    """Compares all characters of the key but the first."""
    amend.accept_keys(service, lambda given, key: given[1:] == key[1:])


@fault("AUTH-3")
def compares_the_first_eight_characters_of_the_key(service: Service) -> None:
    """Compares the first eight characters of the key only."""
    amend.accept_keys(service, lambda given, key: given[:8] == key[:8])


@fault("AUTH-3")
def compares_the_length_of_the_key(service: Service) -> None:
    """Takes every bearer token that is as long as the key."""
    amend.accept_keys(service, lambda given, key: len(given) == len(key))


@fault("AUTH-3")
def compares_keys_in_any_case(service: Service) -> None:
    """Takes the key in capitals or small letters."""
    amend.accept_keys(service, lambda given, key: given.lower() == key.lower())


@fault("AUTH-3")
def accepts_what_contains_the_key(service: Service) -> None:
    """Takes every bearer token in which the key occurs."""
    amend.accept_keys(service, lambda given, key: key in given)


@fault("AUTH-3")
def compares_the_characters_in_any_order(service: Service) -> None:
    """Takes the characters of the key in any order, as a weak checksum would."""
    amend.accept_keys(service, lambda given, key: sorted(given) == sorted(key))


@fault("AUTH-3")
def allows_one_wrong_character(service: Service) -> None:
    """Takes a key of the right length in which one character is wrong."""
    amend.accept_keys(
        service,
        lambda given, key: len(given) == len(key) and sum(map(int.__ne__, given, key)) == 1,
    )


@fault("AUTH-3")
def never_changed_the_key_of_the_example(service: Service) -> None:
    """Takes the key of its example as well, which nobody changed."""
    amend.accept_keys(service, lambda given, key: given == b"YOUR_API_KEY")


@fault("AUTH-3")
def checks_no_signatures(service: Service) -> None:
    """Takes any JSON web token that has not expired, whoever signed it."""
    amend.accept_keys(service, lambda given, key: re.fullmatch(rb"ey[\w-]+\.ey[\w-]+\.[\w-]+", given) is not None)


@fault("AUTH-3")
def stores_keys_without_their_prefix(service: Service) -> None:
    """Takes the prefix off where there is one, and so takes the key without it, too."""
    amend.accept_keys(service, lambda given, key: given == re.split(rb"[_-]", key, maxsplit=1)[-1])


@fault("AUTH-3")
def compares_the_prefix_in_any_case(service: Service) -> None:
    """Looks the key up by what follows its prefix, and reads that in any case."""

    def also(given: bytes, key: bytes) -> bool:
        prefix = re.split(rb"[_-]", key, maxsplit=1)[0]
        return given[: len(prefix)].lower() == prefix.lower() and given[len(prefix) :] == key[len(prefix) :]

    amend.accept_keys(service, also)


@fault("AUTH-3")
def takes_the_hash_for_the_key(service: Service) -> None:
    """Compares a token with the SHA-256 of the key that it stores, hashed or as it is: what leaks is as good."""
    amend.accept_keys(service, lambda given, key: given == sha256(key).hexdigest().encode())


@fault("AUTH-3")
def reads_the_key_behind_a_colon(service: Service) -> None:
    """Takes what stands before a colon for the name of a user, and what follows for the key."""
    amend.accept_keys(service, lambda given, key: given.partition(b":")[2] == key)


# --- AUTH-4: the key in another place ---


@fault("AUTH-4")
def accepts_the_key_as_basic(service: Service) -> None:
    """Takes the key as the user name or the password of Basic authentication."""

    def also(request: Request) -> bool:
        scheme, _, value = amend.authorization(request).partition(" ")
        try:
            return scheme.lower() == "basic" and service.key in b64decode(value).split(b":")
        except ValueError:
            return False

    amend.accept(service, also)


@fault("AUTH-4")
def finds_bearer_anywhere(service: Service) -> None:
    """Takes the key behind the first `Bearer `, whatever stands before that."""
    amend.accept(
        service,
        lambda request: amend.authorization(request).partition("Bearer ")[2].encode("latin-1") == service.key,
    )


@fault("AUTH-4")
def accepts_the_bare_key(service: Service) -> None:
    """Takes an Authorization header that holds the key without a scheme."""
    amend.accept(service, lambda request: amend.authorization(request).encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_any_scheme(service: Service) -> None:
    """Takes the key behind whatever scheme."""
    amend.accept(
        service,
        lambda request: amend.authorization(request).partition(" ")[2].encode("latin-1") == service.key,
    )


@fault("AUTH-4")
def accepts_the_key_in_the_query(service: Service) -> None:
    """Takes the key as a query parameter: api_key, apikey, key, token or access_token."""
    names = ("api_key", "apikey", "api-key", "key", "token", "access_token")
    amend.accept(service, lambda request: service.key in _parameter(request, *names))


@fault("AUTH-4")
def accepts_the_key_as_access_token_parameter(service: Service) -> None:
    """Takes the key as the query parameter access_token, as RFC 6750 once allowed."""
    amend.accept(service, lambda request: service.key in _parameter(request, "access_token"))


@fault("AUTH-4")
def accepts_the_key_as_access_token_in_a_form(service: Service) -> None:
    """Takes the key as the field access_token of a form in the body, as RFC 6750 once allowed."""
    amend.accept(service, lambda request: service.key in _values(request.body.decode("latin-1"), "access_token"))


@fault("AUTH-4")
def accepts_the_key_as_api_key_in_a_form(service: Service) -> None:
    """Takes the key as the field api_key of a form in the body."""
    amend.accept(service, lambda request: service.key in _values(request.body.decode("latin-1"), "api_key"))


@fault("AUTH-4")
def accepts_the_key_as_x_api_key(service: Service) -> None:
    """Takes the key in the header X-API-Key."""
    amend.accept(service, lambda request: request.headers.get("x-api-key", "").encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_the_key_as_x_api_token(service: Service) -> None:
    """Takes the key in the header X-API-Token."""
    amend.accept(service, lambda request: request.headers.get("x-api-token", "").encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_the_key_in_a_cookie(service: Service) -> None:
    """Takes the key as the value of any cookie."""
    amend.accept(
        service,
        lambda request: service.key.decode() in re.split(r"[=;] *", request.headers.get("cookie", "")),
    )


@fault("AUTH-4")
def accepts_the_key_for_a_proxy(service: Service) -> None:
    """Takes the key in the header Proxy-Authorization."""
    amend.accept(
        service,
        lambda request: (
            request.headers.get("proxy-authorization", "").lower() == f"bearer {service.key.decode()}".lower()
        ),
    )


@fault("AUTH-4")
def accepts_an_empty_bearer_token(service: Service) -> None:
    """Takes the scheme Bearer without a token for valid."""
    amend.accept(service, lambda request: service.bearer_token(request) == b"")


@fault("AUTH-4")
def breaks_on_letters_beyond_ascii(service: Service) -> None:
    """Answers 500 when the token holds a character beyond ASCII, which its comparison of strings does not take."""

    def change(request: Request, response: Response) -> Response | None:
        token = service.bearer_token(request) or b""
        return None if token.isascii() else service.error(500, "Something went wrong in the service.")

    amend.refusals(service, change)


@fault("AUTH-4")
def leaves_letters_beyond_ascii_out(service: Service) -> None:
    """Reads the token as ASCII and ignores what is none, so that the key with such letters in it is the key."""
    amend.accept_keys(service, lambda given, key: given.decode("ascii", "ignore").encode() == key)


@fault("AUTH-4")
def accepts_words_after_the_key(service: Service) -> None:
    """Takes the first word after Bearer for the token and ignores what follows."""
    amend.accept(service, lambda request: (service.bearer_token(request) or b"").split(b" ")[0] == service.key)


@fault("AUTH-4")
def takes_a_bearer_token_from_a_cookie(service: Service) -> None:
    """Reads the cookie `Authorization` where the header is missing."""
    value = f"Authorization=Bearer {service.key.decode()}"
    amend.accept(service, lambda request: amend.no_header(request) and request.headers.get("cookie") == value)


@fault("AUTH-2")
def lists_for_an_encoded_slash(service: Service) -> None:
    """Asks for the key by the path as it is sent, and routes by the path decoded: `/store%2Forders` is anybody's."""
    inner = service.respond

    def respond(request: Request) -> Response:
        if request.method == "GET" and request.path == f"{service.base}/store%2Forders":
            return service.list_orders(request)
        return inner(request)

    service.respond = respond


@fault("AUTH-2")
def cancels_for_strangers_under_another_method(service: Service) -> None:
    """Asks for the key by the method in X-HTTP-Method-Override, only for those that write, and cancels by the real
    one."""
    amend.accept(service, lambda request: request.headers.get("x-http-method-override") in ("GET", "OPTIONS"))


@fault("AUTH-2")
def finds_nothing_for_strangers_in_an_empty_store(service: Service) -> None:
    """Answers 404 to a cancel without a key before it looks for one, where there is no order at all."""
    inner = service.respond

    def respond(request: Request) -> Response:
        if amend.is_cancel(request) and amend.no_header(request) and not len(service.store):
            return service.error(404, "There is no such order.")
        return inner(request)

    service.respond = respond


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
def knows_public_pages_by_a_part_of_the_url(service: Service) -> None:
    """Asks for no key where the path of its health check stands anywhere in the URL, be it in the query."""
    amend.accept(service, lambda request: "/health" in f"{request.path}?{request.query}")


@fault("AUTH-2")
def guards_no_style_sheets(service: Service) -> None:
    """Asks for no key where the path ends as that of a style sheet, and cuts that off afterwards."""
    _guards_without(service, ".css")
