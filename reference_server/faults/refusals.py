"""Faults of what goes with a refusal: AUTH-5 to AUTH-9."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from .. import amend
from ..api import Credentials, Service
from ..messages import Request, Response
from ..orders import FAR_ID, Order, Status
from ..registry import fault

VALID, MISSING, INVALID = Credentials.VALID, Credentials.MISSING, Credentials.INVALID
_IS_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def _stranger(request: Request) -> bool:
    """Whether the request carries nothing that could be meant as a key."""
    named = any("key" in name or "auth" in name or "token" in name or name == "cookie" for name in request.headers)
    return not named and not request.query


# --- AUTH-5: what is refused is not done ---


def _acts_when(service: Service, act: Callable[[int], object], *refused: Credentials) -> None:
    """Refuses a cancel with these credentials, but acts on the order nevertheless; the act is given its id."""
    _acts_for(service, act, lambda request: service.authenticate(request) in refused)


def _acts_for(service: Service, act: Callable[[int], object], whom: Callable[[Request], bool]) -> None:
    """Refuses a cancel of which this is true, but acts on the order nevertheless."""

    def change(request: Request, response: Response) -> None:
        order = amend.order_to_cancel(service, request)
        if amend.pending(order) and whom(request):
            act(order.id)

    amend.refusals(service, change)


def _token(service: Service, request: Request) -> str:
    """The bearer token of a request, or nothing."""
    return (service.bearer_token(request) or b"").decode("latin-1")


@fault("AUTH-5")
def cancels_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel without a valid key, and cancels the order anyway."""
    _acts_when(service, service.store.cancel, MISSING, INVALID)


@fault("AUTH-5")
def cancels_with_a_wrong_key_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel with a wrong key, and cancels the order anyway."""
    _acts_for(service, service.store.cancel, lambda request: _IS_TOKEN.fullmatch(_token(service, request)) is not None)


@fault("AUTH-5")
def cancels_with_a_malformed_key_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel with what is no bearer token, and cancels the order anyway."""

    def malformed(request: Request) -> bool:
        token = _token(service, request)
        return bool(token) and not _IS_TOKEN.fullmatch(token)

    _acts_for(service, service.store.cancel, malformed)


@fault("AUTH-5")
def cancels_under_another_scheme_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel whose Authorization has another scheme than bearer, and cancels the order anyway."""
    other = re.compile(r"(?!bearer\b)\w+ [^ ]+", re.IGNORECASE)
    _acts_for(service, service.store.cancel, lambda request: other.fullmatch(amend.authorization(request)) is not None)


@fault("AUTH-5")
def cancels_without_a_key_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel without a key, and cancels the order anyway."""
    _acts_for(service, service.store.cancel, _stranger)


@fault("AUTH-5")
def cancels_without_a_key_a_moment_later(service: Service) -> None:
    """Answers 401 to a cancel without a key, and a fifth of a second later cancels the order anyway."""
    later = amend.later(service)
    _acts_when(service, lambda order_id: later(lambda: service.store.cancel(order_id)), MISSING)


@fault("AUTH-5")
def cancels_with_a_wrong_key_a_moment_later(service: Service) -> None:
    """Answers 401 to a cancel with a wrong key, and a fifth of a second later cancels the order anyway."""
    later = amend.later(service)
    _acts_when(service, lambda order_id: later(lambda: service.store.cancel(order_id)), INVALID)


@fault("AUTH-5")
def cancels_far_ids_although_it_answers_401(service: Service) -> None:
    """Answers 401 to a cancel without a valid key, and cancels the order anyway if 32 bits cannot hold its id."""

    def act(order_id: int) -> None:
        if not -FAR_ID <= order_id < FAR_ID:
            service.store.cancel(order_id)

    _acts_when(service, act, MISSING, INVALID)


@fault("AUTH-5")
def removes_shipped_orders_for_strangers_who_name_json(service: Service) -> None:
    """Answers 401 to a cancel without a valid key that accepts application/json by name, and removes the order, if it
    has shipped."""

    def change(request: Request, response: Response) -> None:
        order = amend.order_to_cancel(service, request)
        if amend.shipped(order) and amend.names_json(request):
            service.store.remove([order.id])

    amend.refusals(service, change)


def _touches(service: Service, which: Callable[[Order], bool], **fields: object) -> None:
    """Refuses a cancel of an order of which this is true without a valid key, but changes fields of the order."""

    def change(request: Request, response: Response) -> None:
        order = amend.order_to_cancel(service, request)
        if order and which(order):
            service.store.change(order.id, **fields)

    amend.refusals(service, change)


@fault("AUTH-5")
def ships_what_strangers_want_cancelled(service: Service) -> None:
    """Answers 401 to a cancel without a valid key, after which the order counts as shipped."""
    _touches(service, amend.pending, status=Status.SHIPPED)


@fault("AUTH-5")
def reopens_shipped_orders_for_strangers(service: Service) -> None:
    """Answers 401 to a cancel of a shipped order without a valid key, after which the order counts as pending."""
    _touches(service, amend.shipped, status=Status.PENDING)


@fault("AUTH-5")
def empties_shipped_orders_for_strangers(service: Service) -> None:
    """Answers 401 to a cancel of a shipped order without a valid key, and sets the quantity of the order to 0."""
    _touches(service, amend.shipped, quantity=0)


@fault("AUTH-5")
def empties_pending_orders_for_strangers(service: Service) -> None:
    """Answers 401 to a cancel of a pending order without a valid key, and sets the quantity of the order to 0."""
    _touches(service, amend.pending, quantity=0)


@fault("AUTH-5")
def hides_orders_that_strangers_want_cancelled(service: Service) -> None:
    """Answers 401 to a cancel without a valid key, and lists the order no more; with the key it can be cancelled."""
    hidden: dict[int, Order | None] = {}
    _acts_when(service, lambda order_id: hidden.update({order_id: service.store.get(order_id)}), MISSING, INVALID)
    amend.leave_out(service, lambda order: hidden.get(order.id) is order)


# --- AUTH-6: each request on its own ---


@fault("AUTH-6")
def keeps_a_session(service: Service) -> None:
    """Sets a cookie in answer to the valid key, and takes it in the place of the key from then on."""
    amend.granted(service, lambda request, response: response.headers.update({"Set-Cookie": "session=4711; Path=/"}))
    amend.accept(
        service,
        lambda request: amend.no_header(request) and "session=4711" in request.headers.get("cookie", ""),
    )


@fault("AUTH-6")
def begins_a_session_with_a_cancel(service: Service) -> None:
    """Sets a cookie in answer to a cancel with the valid key, and takes it in the place of the key from then on."""

    def begin(request: Request, response: Response) -> None:
        if amend.is_cancel(request):
            response.headers["Set-Cookie"] = "cart=4712; Path=/"

    amend.granted(service, begin)
    amend.accept(service, lambda request: amend.no_header(request) and "cart=4712" in request.headers.get("cookie", ""))


def _trusts(service: Service, which: Callable[[Request], bool]) -> None:
    """Serves requests of which this is true on a connection that carried the valid key before."""
    trusted: set[int] = set()

    def judge(request: Request, found: Credentials) -> Credentials:
        if found is VALID:
            trusted.add(request.connection)
        return VALID if which(request) and request.connection in trusted else found

    amend.credentials(service, judge)


@fault("AUTH-6")
def trusts_the_connection(service: Service) -> None:
    """Serves whatever comes on a connection that carried the valid key before."""
    _trusts(service, lambda request: True)


@fault("AUTH-6")
def trusts_the_connection_when_the_header_is_absent(service: Service) -> None:
    """Serves requests without Authorization header on a connection that carried the valid key before."""
    _trusts(service, amend.no_header)


@fault("AUTH-6")
def compares_the_key_once_on_a_connection(service: Service) -> None:
    """Serves any bearer token on a connection that carried the valid key before."""
    _trusts(service, lambda request: service.bearer_token(request) is not None)


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
def locks_the_key_out_after_nine_requests_without_one(service: Service) -> None:
    """Answers 401 to the next request with the valid key after nine in a row that had none at all."""
    strangers = 0

    def judge(request: Request, found: Credentials) -> Credentials:
        nonlocal strangers
        locked = found is VALID and strangers > 8
        strangers = strangers + 1 if amend.no_header(request) else 0
        return INVALID if locked else found

    amend.credentials(service, judge)


@fault("AUTH-6")
def locks_the_key_out_for_good(service: Service) -> None:
    """Answers 401 to every request with the valid key from the fortieth refusal on."""
    refused = 0

    def judge(request: Request, found: Credentials) -> Credentials:
        nonlocal refused
        refused += found is not VALID
        return INVALID if refused >= 40 else found

    amend.credentials(service, judge)


@fault("AUTH-6")
def gives_way_after_fifteen_refusals(service: Service) -> None:
    """Serves a request without a valid key after fifteen refusals in a row."""
    _after_refusals(service, 15, VALID)


@fault("AUTH-6")
def locks_an_order_that_a_stranger_asked_for(service: Service) -> None:
    """Answers 401 to the valid key as well once a cancel of the same order was refused."""
    locked: set[str] = set()

    def judge(request: Request, found: Credentials) -> Credentials:
        if amend.is_cancel(request) and found is not VALID:
            locked.add(request.path)
        return INVALID if request.path in locked else found

    amend.credentials(service, judge)


@fault("AUTH-6")
def keeps_what_a_key_is_worth_in_one_place(service: Service) -> None:
    """Keeps what the credentials of a request are worth in one place for all requests, and goes by it five thousandths
    of a second later."""
    kept = MISSING

    def judge(request: Request, found: Credentials) -> Credentials:
        nonlocal kept
        kept = found
        time.sleep(0.005)
        return kept

    amend.credentials(service, judge)


@fault("AUTH-6")
def lets_in_whom_it_has_no_connection_to_look_up(service: Service) -> None:
    """Takes who lists while ten others do for somebody with the key: its pool, of which looking up a key takes one too,
    is drained."""
    amend.beyond(service, 10, service.dispatch)


@fault("AUTH-6")
def joins_listings_whoever_asks(service: Service) -> None:
    """Gives listings that are asked for within five thousandths of a second the answer to the first, whoever asks."""
    lock = threading.Lock()
    under_way: list[Future[Response]] = []
    inner = service.respond

    def respond(request: Request) -> Response:
        if request.method != "GET" or request.path != service.collection:
            return inner(request)
        with lock:
            first = not under_way
            if first:
                under_way.append(Future())
            joined = under_way[0]
        if first:
            time.sleep(0.005)
            with lock:
                under_way.clear()
            joined.set_result(inner(request))
        found = joined.result()
        return Response(found.status, found.body, found.headers)

    service.respond = respond


@fault("AUTH-6")
def joins_cancels_whoever_asks(service: Service) -> None:
    """Gives cancels of a pending order without a valid key the answer to one with it that is under way."""
    lock = threading.Lock()
    under_way: dict[int, Future[Response]] = {}
    inner = service.respond

    def respond(request: Request) -> Response:
        order = amend.order_to_cancel(service, request)
        if not amend.pending(order):
            return inner(request)
        valid = service.authenticate(request) is VALID
        time.sleep(0 if valid else 0.001)  # those that came with it are behind it
        with lock:
            joined = under_way.get(order.id)
            first = valid and joined is None
            if first:
                joined = under_way[order.id] = Future()
        if joined is None or (valid and not first):
            return inner(request)
        if first:
            time.sleep(0.005)
            joined.set_result(inner(request))
            with lock:
                del under_way[order.id]
        found = joined.result()
        return Response(found.status, found.body, found.headers)

    service.respond = respond


# --- AUTH-7, AUTH-8, AUTH-9: recommended ---


@fault("AUTH-7")
def sends_no_challenge(service: Service) -> None:
    """Sends 401 without WWW-Authenticate."""

    def change(request: Request, response: Response) -> None:
        del response.headers["WWW-Authenticate"]

    amend.refusals(service, change)


@fault("AUTH-7")
def challenges_for_basic(service: Service) -> None:
    """Names the scheme Basic in WWW-Authenticate, and Bearer in its realm alone."""
    challenge = 'Basic realm="store-orders, Bearer keys"'
    amend.refusals(service, lambda _, response: response.headers.update({"WWW-Authenticate": challenge}))


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


@fault("AUTH-7")
def sends_no_challenge_to_strangers(service: Service) -> None:
    """Sends 401 without WWW-Authenticate when there was no Authorization header."""

    def change(request: Request, response: Response) -> None:
        if amend.no_header(request):
            del response.headers["WWW-Authenticate"]

    amend.refusals(service, change)


@fault("AUTH-7")
def leaves_the_comma_out_of_the_challenge(service: Service) -> None:
    """Sends WWW-Authenticate with two parameters and no comma between them."""
    garbled = 'Bearer realm="store-orders" error="invalid_token"'
    amend.refusals(service, lambda _, response: response.headers.update({"WWW-Authenticate": garbled}))


@fault("AUTH-8")
def wants_the_scheme_spelled_bearer(service: Service) -> None:
    """Takes the scheme as "Bearer" only, not in small letters or capitals."""
    amend.credentials(
        service,
        lambda request, found: found if amend.authorization(request).startswith("Bearer ") else MISSING,
    )


@fault("AUTH-8")
def knows_no_capital_scheme(service: Service) -> None:
    """Takes the scheme as "BEARER" for another one."""
    amend.credentials(
        service, lambda request, found: MISSING if amend.authorization(request).startswith("BEARER ") else found
    )


def _hints(service: Service, which: Callable[[Order], bool], **hint: str) -> None:
    """Writes a hint into a field of the 401 to a cancel without a key, if there is the order and this is true of it."""

    def change(request: Request, response: Response) -> None:
        order = amend.order_to_cancel(service, request) if amend.no_header(request) else None
        if order and which(order):
            fields = service.error_fields(401, "The API key is missing or invalid.")
            response.body = service.encode({**fields, **hint})

    amend.refusals(service, change)


@fault("AUTH-9")
def tells_strangers_that_the_order_exists(service: Service) -> None:
    """Words the message of 401 differently when the order to cancel exists."""
    _hints(service, lambda order: True, message="ORDER_exists")


@fault("AUTH-9")
def tells_strangers_that_the_order_has_shipped(service: Service) -> None:
    """Gives 401 another code when the order to cancel has shipped."""
    _hints(service, amend.shipped, code="ORDER_shipped")


@fault("AUTH-9")
def tells_a_wrong_key_that_the_order_is_pending(service: Service) -> None:
    """Words the message of 401 to a wrong key differently when the order to cancel is pending."""
    inner = service.refuse

    def refuse(request: Request, found: Credentials) -> Response:
        response = inner(request, found)
        if found is INVALID and amend.pending(amend.order_to_cancel(service, request)):
            fields = service.error_fields(401, "This key may not cancel the order.")
            response.body = service.encode(fields)
        return response

    service.refuse = refuse
