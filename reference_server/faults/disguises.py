"""Faults of what is let in without a key for its address, its method or what it says of itself: AUTH-2."""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import normpath
from urllib.parse import unquote

from .. import amend
from ..api import ORDERS, Service
from ..messages import Request, Response
from ..registry import fault


def _lists_at(service: Service, read: Callable[[str], str]) -> None:
    """Lists for anyone at each other path that is read as that of the listing, after the key was looked for."""

    def answer(request: Request) -> Response | None:
        other = request.method == "GET" and amend.no_header(request) and request.path != service.collection
        return service.list_orders(request) if other and read(request.path) == service.collection else None

    amend.before(service, answer)


def _reads_the_base(service: Service, read: Callable[[str], str]) -> None:
    """Lists for anyone where what comes before the path of the orders is read as the base path."""

    def read_path(path: str) -> str:
        base, orders, rest = path.partition(ORDERS)
        return f"{read(base)}{orders}{rest}" if orders else path

    _lists_at(service, read_path)


@fault("AUTH-2")
def guards_the_prefix_as_it_is_written(service: Service) -> None:
    """Asks for the key below /v1 in small letters, and finds the listing below /V1 as well."""
    _reads_the_base(service, str.lower)


@fault("AUTH-2")
def guards_the_prefix_before_decoding(service: Service) -> None:
    """Asks for the key below /v1 as it is sent, and lists below a prefix that is /v1 when it is decoded, too."""
    _reads_the_base(service, unquote)


@fault("AUTH-2")
def guards_paths_decoded_once(service: Service) -> None:
    """Asks for the key by the path decoded once, and lists by the path decoded twice, as behind a gateway that decodes,
    too."""
    _lists_at(service, lambda path: unquote(unquote(path)) if "%25" in path else path)


@fault("AUTH-2")
def guards_before_dot_segments_are_removed(service: Service) -> None:
    """Looks for the key by the path with its dot segments, and routes without them: /./store/orders is anybody's."""
    _lists_at(service, lambda path: path.replace("/./", "/"))


@fault("AUTH-2")
def guards_nothing_below_health(service: Service) -> None:
    """Asks for no key where the path begins with /health/ or /v1/login/, and routes without dot segments."""

    def read(path: str) -> str:
        return normpath(path) if path.startswith(("/health/", f"{service.base}/login/")) else path

    _lists_at(service, read)


@fault("AUTH-2")
def guards_no_scripts(service: Service) -> None:
    """Asks for no key where the path ends with .js, and routes without the parameters of a path: /store/orders;x.js is
    anybody's."""
    _lists_at(service, lambda path: path.partition(";")[0] if path.endswith(".js") else path)


@fault("AUTH-2")
def guards_backslashes_not(service: Service) -> None:
    """Takes a backslash for a slash, as browsers do, after it has looked for the key."""
    _lists_at(service, lambda path: path.replace("\\", "/"))


@fault("AUTH-2")
def lets_options_through_to_the_handler(service: Service) -> None:
    """Asks for no key of OPTIONS, as browsers need it, but has what lists and cancels answer where none comes."""

    def answer(request: Request) -> Response | None:
        order = request.path.removeprefix(f"{service.collection}/")
        asked = request.method == "OPTIONS" and amend.no_header(request)
        if not asked or order == request.path != service.collection:
            return None
        return service.list_orders(request) if order == request.path else service.cancel_order(request, order)

    amend.before(service, answer)


@fault("AUTH-2")
def goes_by_x_original_url(service: Service) -> None:
    """Asks for no key where X-Original-URL, in which a server in front tells what was asked for, is a public path."""
    amend.accept(service, lambda request: amend.no_header(request) and request.headers.get("x-original-url") == "/")


@fault("AUTH-2")
def asks_no_key_on_the_same_machine(service: Service) -> None:
    """Lists for anyone whose X-Forwarded-Host says that the request was made to this machine by itself."""
    local = "localhost"
    amend.accept(service, lambda request: request.method == "GET" and request.headers.get("x-forwarded-host") == local)


@fault("AUTH-2")
def sends_browsers_to_the_login_page(service: Service) -> None:
    """Answers 302 instead of 401 to what calls itself a browser, so that it goes to the page where one logs in."""

    def change(request: Request, response: Response) -> Response | None:
        browser = "Mozilla" in request.headers.get("user-agent", "")
        return Response(302, headers={"Location": "/login"}) if browser and amend.no_header(request) else None

    amend.refusals(service, change)


@fault("AUTH-2")
def lets_its_own_middleware_in(service: Service) -> None:
    """Asks for no key of what says that it comes from the middleware of the service itself."""
    amend.accept(service, lambda request: "x-middleware-subrequest" in request.headers)


@fault("AUTH-2")
def answers_200_to_scripts_without_a_key(service: Service) -> None:
    """Answers 200 instead of 401 to what says that it is a script's request, with the Error in the body."""

    def change(request: Request, response: Response) -> None:
        if request.headers.get("x-requested-with") == "XMLHttpRequest":
            response.status = 200

    amend.refusals(service, change)


@fault("AUTH-2")
def asks_scripts_for_no_key_to_cancel(service: Service) -> None:
    """Asks the scripts of a browser, by their Accept, for no key when they cancel."""
    amend.accept(
        service,
        lambda request: (
            amend.no_header(request) and amend.is_cancel(request) and "text/plain" in request.headers.get("accept", "")
        ),
    )


@fault("AUTH-2")
def asks_for_no_key_to_cancel_without_accept(service: Service) -> None:
    """Asks a client that sends no Accept for no key when it cancels."""
    amend.accept(
        service,
        lambda request: amend.no_header(request) and amend.is_cancel(request) and amend.names_nothing(request),
    )


@fault("AUTH-2")
def protects_ids_without_leading_zeros(service: Service) -> None:
    """Asks for a key where the path ends with a number as one is written; what cancels skips zeros in front of it."""
    padded = re.compile("0+[1-9][0-9]*")
    amend.accept(
        service,
        lambda request: amend.is_cancel(request) and bool(padded.fullmatch(request.path.rpartition("/")[2])),
    )
    amend.read_ids(service, lambda text: int(text) if padded.fullmatch(text) else None)
