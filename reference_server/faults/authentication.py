"""Faults of authentication: AUTH-1 to AUTH-9."""

from __future__ import annotations

import re
from base64 import b64decode

from .. import amend
from ..api import Credentials, Service
from ..messages import Request, Response
from ..orders import Order, Status
from .registry import fault

VALID, MISSING, INVALID = Credentials.VALID, Credentials.MISSING, Credentials.INVALID


def _order_of(service: Service, request: Request) -> Order | None:
    order_id = service.read_id(request.path.rpartition("/")[2])
    return None if order_id is None else service.store.get(order_id)


def _no_header(request: Request) -> bool:
    return "authorization" not in request.headers


def _authorization(request: Request) -> str:
    return request.headers.get("authorization", "")


def _parameter(request: Request, *names: str) -> list[bytes]:
    """The values of these query parameters."""
    pairs = [pair.partition("=") for pair in request.query.split("&")]
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
def refuses_the_key_every_fifth_time(service: Service) -> None:
    """Answers 401 to every fifth request that carries the valid key."""
    due = amend.every(5)
    amend.credentials(service, lambda request, found: INVALID if found is VALID and due() else found)


@fault("AUTH-1")
def refuses_the_key_for_shipped_orders(service: Service) -> None:
    """Answers 401 to the valid key when the order to cancel has shipped."""

    def judge(request: Request, found: Credentials) -> Credentials:
        order = _order_of(service, request) if amend.is_cancel(request) else None
        return INVALID if order and order.status is Status.SHIPPED else found

    amend.credentials(service, judge)


# --- AUTH-2: no header, no answer ---


@fault("AUTH-2")
def lists_for_anyone(service: Service) -> None:
    """Lists the orders to clients that send no Authorization header."""
    amend.accept(service, lambda request: request.method == "GET" and _no_header(request))


@fault("AUTH-2")
def cancels_for_anyone(service: Service) -> None:
    """Cancels orders for clients that send no Authorization header."""
    amend.accept(service, lambda request: amend.is_cancel(request) and _no_header(request))


@fault("AUTH-2")
def shows_strangers_an_empty_list(service: Service) -> None:
    """Answers 200 with an empty array instead of 401 when a listing carries no Authorization header."""
    amend.refusals(
        service,
        lambda request, _: service.json(200, []) if request.method == "GET" and _no_header(request) else None,
    )


@fault("AUTH-2")
def looks_for_the_order_before_the_key(service: Service) -> None:
    """Answers 404 to a cancel without Authorization header when no such order exists."""

    def change(request: Request, response: Response) -> Response | None:
        absent = amend.is_cancel(request) and _no_header(request) and not _order_of(service, request)
        return service.error(404, "There is no such order.") if absent else None

    amend.refusals(service, change)


@fault("AUTH-2")
def looks_at_the_status_before_the_key(service: Service) -> None:
    """Answers 409 to a cancel without Authorization header when the order has shipped."""

    def change(request: Request, response: Response) -> Response | None:
        order = _order_of(service, request) if amend.is_cancel(request) and _no_header(request) else None
        return service.error(409, "Shipped.") if order and order.status is Status.SHIPPED else None

    amend.refusals(service, change)


@fault("AUTH-2")
def hides_behind_404_from_strangers(service: Service) -> None:
    """Answers 404 instead of 401 to every cancel without Authorization header."""
    amend.refusals(
        service,
        lambda request, _: (
            service.error(404, "Not found.") if amend.is_cancel(request) and _no_header(request) else None
        ),
    )


@fault("AUTH-2")
def claims_to_have_cancelled_for_strangers(service: Service) -> None:
    """Answers 204 to a cancel without Authorization header, and does nothing."""
    amend.refusals(
        service,
        lambda request, _: Response(204) if amend.is_cancel(request) and _no_header(request) else None,
    )


@fault("AUTH-2")
def lets_every_third_stranger_in(service: Service) -> None:
    """Serves every third request that carries no Authorization header."""
    due = amend.every(3)
    amend.accept(service, lambda request: _no_header(request) and due())


# --- AUTH-3: a wrong key is refused ---


@fault("AUTH-3")
def accepts_any_key(service: Service) -> None:
    """Takes every bearer token for the key."""
    amend.accept_keys(service, lambda given, key: True)


@fault("AUTH-3")
def accepts_any_key_on_listing(service: Service) -> None:
    """Takes every bearer token for the key when it lists."""
    amend.accept(
        service,
        lambda request: request.method == "GET" and bool(service.bearer_token(request)),
    )


@fault("AUTH-3")
def accepts_any_key_on_cancelling(service: Service) -> None:
    """Takes every bearer token for the key when it cancels."""
    amend.accept(service, lambda request: amend.is_cancel(request) and bool(service.bearer_token(request)))


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


# --- AUTH-4: the key in another place ---


@fault("AUTH-4")
def accepts_the_key_as_basic(service: Service) -> None:
    """Takes the key as the user name or the password of Basic authentication."""

    def also(request: Request) -> bool:
        scheme, _, value = _authorization(request).partition(" ")
        try:
            return scheme.lower() == "basic" and service.key in b64decode(value).split(b":")
        except ValueError:
            return False

    amend.accept(service, also)


@fault("AUTH-4")
def accepts_the_bare_key(service: Service) -> None:
    """Takes an Authorization header that holds the key without a scheme."""
    amend.accept(service, lambda request: _authorization(request).encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_any_scheme(service: Service) -> None:
    """Takes the key behind whatever scheme."""
    amend.accept(
        service,
        lambda request: _authorization(request).partition(" ")[2].encode("latin-1") == service.key,
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
def accepts_the_key_as_x_api_key(service: Service) -> None:
    """Takes the key in the header X-API-Key."""
    amend.accept(
        service, lambda request: request.headers.get("x-api-key", "").encode("latin-1") == service.key
    )


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
def accepts_words_after_the_key(service: Service) -> None:
    """Takes the first word after Bearer for the token and ignores what follows."""
    amend.accept(
        service, lambda request: (service.bearer_token(request) or b"").split(b" ")[0] == service.key
    )


# --- AUTH-5: what is refused is not done ---


def _acts_when(service: Service, *refused: Credentials, act: str = "cancel") -> None:
    """Refuses a cancel with these credentials, but acts on the order nevertheless."""
    inner = service.refuse

    def refuse(request: Request, found: Credentials) -> Response:
        order = _order_of(service, request) if amend.is_cancel(request) else None
        if order and order.status is Status.PENDING and found in refused:
            if act == "cancel":
                service.store.cancel(order.id)
            else:
                service.store.change(order.id, status=Status.SHIPPED)
        return inner(request, found)

    service.refuse = refuse


@fault("AUTH-5")
def cancels_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel without a valid key, and cancels the order anyway."""
    _acts_when(service, MISSING, INVALID)


@fault("AUTH-5")
def cancels_with_a_wrong_key_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel with a wrong key, and cancels the order anyway."""
    _acts_when(service, INVALID)


@fault("AUTH-5")
def cancels_without_a_key_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel without a key, and cancels the order anyway."""
    _acts_when(service, MISSING)


@fault("AUTH-5")
def ships_what_strangers_want_cancelled(service: Service) -> None:
    """Answers 401 to a cancel without a valid key, after which the order counts as shipped."""
    _acts_when(service, MISSING, INVALID, act="ship")


# --- AUTH-6: each request on its own ---


@fault("AUTH-6")
def trusts_the_connection(service: Service) -> None:
    """Serves whatever comes on a connection that carried the valid key before."""
    trusted: set[int] = set()

    def judge(request: Request, found: Credentials) -> Credentials:
        if found is VALID:
            trusted.add(request.connection)
        return VALID if request.connection in trusted else found

    amend.credentials(service, judge)


@fault("AUTH-6")
def trusts_the_connection_when_the_header_is_absent(service: Service) -> None:
    """Serves requests without Authorization header on a connection that carried the valid key before."""
    trusted: set[int] = set()

    def judge(request: Request, found: Credentials) -> Credentials:
        if found is VALID:
            trusted.add(request.connection)
        return VALID if _no_header(request) and request.connection in trusted else found

    amend.credentials(service, judge)


@fault("AUTH-6")
def distrusts_the_connection(service: Service) -> None:
    """Refuses the valid key on a connection on which it refused a request before."""
    distrusted: set[int] = set()

    def judge(request: Request, found: Credentials) -> Credentials:
        if found is not VALID:
            distrusted.add(request.connection)
        return INVALID if request.connection in distrusted else found

    amend.credentials(service, judge)


def _after_refusals(service: Service, limit: int, otherwise: Credentials) -> None:
    """Judges a request this way once there were so many refusals in a row, and then starts to count anew."""
    refused = 0

    def judge(request: Request, found: Credentials) -> Credentials:
        nonlocal refused
        if refused >= limit and (found is VALID) is not (otherwise is VALID):
            refused = 0
            return otherwise
        refused = 0 if found is VALID else refused + 1
        return found

    amend.credentials(service, judge)


@fault("AUTH-6")
def locks_the_key_out_after_ten_refusals(service: Service) -> None:
    """Answers 401 to the next request with the valid key after ten refusals in a row."""
    _after_refusals(service, 10, INVALID)


@fault("AUTH-6")
def locks_the_key_out_after_twenty_refusals(service: Service) -> None:
    """Answers 401 to the next request with the valid key after twenty refusals in a row."""
    _after_refusals(service, 20, INVALID)


@fault("AUTH-6")
def gives_way_after_fifteen_refusals(service: Service) -> None:
    """Serves a request without a valid key after fifteen refusals in a row."""
    _after_refusals(service, 15, VALID)


# --- AUTH-7, AUTH-8, AUTH-9: recommended ---


@fault("AUTH-7")
def sends_no_challenge(service: Service) -> None:
    """Sends 401 without WWW-Authenticate."""

    def change(request: Request, response: Response) -> None:
        del response.headers["WWW-Authenticate"]

    amend.refusals(service, change)


@fault("AUTH-7")
def challenges_for_basic(service: Service) -> None:
    """Names the scheme Basic in WWW-Authenticate."""
    amend.refusals(
        service, lambda _, response: response.headers.update({"WWW-Authenticate": 'Basic realm="x"'})
    )


@fault("AUTH-7")
def sends_no_challenge_to_a_wrong_key(service: Service) -> None:
    """Sends 401 without WWW-Authenticate when a key was given."""
    inner = service.refuse

    def refuse(request: Request, found: Credentials) -> Response:
        response = inner(request, found)
        if found is INVALID:
            del response.headers["WWW-Authenticate"]
        return response

    service.refuse = refuse


@fault("AUTH-8")
def wants_the_scheme_spelled_bearer(service: Service) -> None:
    """Takes the scheme as "Bearer" only, not in small letters or capitals."""
    amend.credentials(
        service, lambda request, found: found if _authorization(request).startswith("Bearer ") else MISSING
    )


@fault("AUTH-8")
def knows_no_capital_scheme(service: Service) -> None:
    """Takes the scheme as "Bearer" and "bearer" only."""
    amend.credentials(
        service,
        lambda request, found: (
            found if _authorization(request).startswith(("Bearer ", "bearer ")) else MISSING
        ),
    )


def _hints(service: Service, hint: str, tells: str) -> None:
    """Puts a hint into a field of the 401 to a cancel, if the order exists, or if it has shipped."""

    def change(request: Request, response: Response) -> Response | None:
        order = _order_of(service, request) if amend.is_cancel(request) else None
        if order and (tells == "exists" or order.status is Status.SHIPPED):
            fields = {
                **service.error_fields(401, "The API key is missing or invalid."),
                hint: f"ORDER_{tells}",
            }
            response.body = service.encode(fields)
        return response

    amend.refusals(service, change)


@fault("AUTH-9")
def tells_strangers_that_the_order_exists(service: Service) -> None:
    """Words the message of 401 differently when the order to cancel exists."""
    _hints(service, "message", "exists")


@fault("AUTH-9")
def tells_strangers_that_the_order_has_shipped(service: Service) -> None:
    """Gives 401 another code when the order to cancel has shipped."""
    _hints(service, "code", "shipped")
