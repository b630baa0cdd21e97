"""Faults of error bodies: ERR-1 to ERR-5."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..registry import fault

HTML = "<!doctype html><title>Error</title><h1>Error</h1>"
TRACE = """Traceback (most recent call last):
  File "app.py", line 12, in cancel
    raise KeyError(order_id)
KeyError: 999"""


def _body(service: Service, status: int, body: bytes, media_type: str | None) -> None:
    """Answers this status with another body."""

    def change(request: Request, response: Response) -> None:
        if response.status == status:
            response.body = body
            response.headers.pop("Content-Type", None)
            if media_type:
                response.headers["Content-Type"] = media_type

    amend.responses(service, change)


def _without(service: Service, name: str, status: int) -> None:
    """Leaves a field out of the errors of this status."""
    amend.errors(service, lambda fields: {n: value for n, value in fields.items() if n != name}, status)


def _with(service: Service, status: int, /, **changed: object) -> None:
    """Writes other values into the errors of this status."""
    amend.errors(service, lambda fields: {**fields, **changed}, status)


# --- ERR-1: 401 and 404 are an Error ---


@fault("ERR-1")
def answers_401_as_html(service: Service) -> None:
    """Sends 401 with a page of HTML."""
    _body(service, 401, HTML.encode(), "text/html")


def _page(service: Service, statuses: Collection[int], who: Callable[[Request], bool]) -> None:
    """Sends these statuses as a page of HTML to the clients for which `who` is true."""

    def change(request: Request, response: Response) -> Response | None:
        if response.status not in statuses or not who(request):
            return None
        return Response(response.status, HTML.encode(), {**response.headers, "Content-Type": "text/html"})

    amend.responses(service, change)


@fault("ERR-1")
def shows_browsers_a_page(service: Service) -> None:
    """Sends 401 and 404 as a page of HTML to those who accept HTML."""
    _page(service, (401, 404), lambda request: "text/html" in request.headers.get("accept", ""))


@fault("ERR-1")
def shows_a_page_without_accept(service: Service) -> None:
    """Sends 404 as a page of HTML to those who do not say what they accept."""
    _page(service, (404,), amend.names_nothing)


def _in_xml(service: Service, status: int) -> None:
    def change(request: Request, response: Response) -> Response | None:
        if response.status != status or not request.headers.get("accept", "").startswith("application/xml"):
            return None
        return Response(status, b"<error/>", {**response.headers, "Content-Type": "application/xml"})

    amend.responses(service, change)


@fault("ERR-1")
def finds_nothing_in_xml_for_those_who_accept_it(service: Service) -> None:
    """Sends 404 as XML to those who accept XML and name it first."""
    _in_xml(service, 404)


@fault("ERR-1")
def refuses_in_xml_who_accept_it(service: Service) -> None:
    """Sends 401 as XML to those who accept XML and name it first."""
    _in_xml(service, 401)


@fault("ERR-1")
def answers_401_without_body(service: Service) -> None:
    """Sends 401 without a body."""
    _body(service, 401, b"", None)


@fault("ERR-1")
def answers_401_as_plain_text(service: Service) -> None:
    """Sends 401 with a line of plain text."""
    _body(service, 401, b"Unauthorized", "text/plain")


@fault("ERR-1")
def answers_404_as_html(service: Service) -> None:
    """Sends 404 with a page of HTML."""
    _body(service, 404, HTML.encode(), "text/html")


@fault("ERR-1")
def answers_404_without_body(service: Service) -> None:
    """Sends 404 without a body."""
    _body(service, 404, b"", None)


@fault("ERR-1")
def answers_401_as_the_gateway_does(service: Service) -> None:
    """Sends 401 with a JSON object that has a message and nothing else."""
    _body(service, 401, b'{"message":"Unauthorized"}', "application/json")


@fault("ERR-1")
def answers_404_as_a_framework_does(service: Service) -> None:
    """Sends 404 with the timestamp, status, error and path of a framework."""
    body = b'{"timestamp":"2026-01-01T00:00:00Z","status":404,"error":"Not Found","path":"/"}'
    _body(service, 404, body, "application/json")


@fault("ERR-1")
def answers_errors_as_problem_json_to_who_takes_that(service: Service) -> None:
    """Labels 401 and 404 application/problem+json for clients that name it, whatever they would rather have."""

    def change(request: Request, response: Response) -> None:
        if response.status in (401, 404) and "application/problem+json" in request.headers.get("accept", ""):
            response.headers["Content-Type"] = "application/problem+json"

    amend.responses(service, change)


@fault("ERR-1")
def answers_errors_as_problem_json(service: Service) -> None:
    """Labels 401 and 404 application/problem+json."""

    def change(request: Request, response: Response) -> None:
        if response.status in (401, 404):
            response.headers["Content-Type"] = "application/problem+json"

    amend.responses(service, change)


@fault("ERR-1")
def leaves_the_code_out_of_401(service: Service) -> None:
    """Sends 401 without the field code."""
    _without(service, "code", 401)


@fault("ERR-1")
def leaves_the_message_out_of_404(service: Service) -> None:
    """Sends 404 without the field message."""
    _without(service, "message", 404)


@fault("ERR-1")
def leaves_the_status_out_of_401(service: Service) -> None:
    """Sends 401 without the field status."""
    _without(service, "status", 401)


@fault("ERR-1")
def leaves_the_status_out_of_404(service: Service) -> None:
    """Sends 404 without the field status."""
    _without(service, "status", 404)


@fault("ERR-1")
def writes_the_code_as_number(service: Service) -> None:
    """Writes the code of 404 as a number."""
    _with(service, 404, code=40401)


@fault("ERR-1")
def writes_the_status_as_string(service: Service) -> None:
    """Writes the status of 401 as a string."""
    _with(service, 401, status="401")


@fault("ERR-1")
def writes_a_null_message(service: Service) -> None:
    """Writes null as the message of 401."""
    _with(service, 401, message=None)


@fault("ERR-1")
def writes_a_list_of_messages(service: Service) -> None:
    """Writes the message of 404 as a list."""
    _with(service, 404, message=["There is no such order."])


def _wrapped(service: Service, status: int) -> None:
    amend.errors(service, lambda fields: {"error": fields}, status)


@fault("ERR-1")
def wraps_401_in_an_object(service: Service) -> None:
    """Sends the Error of 401 within {"error": ...}."""
    _wrapped(service, 401)


@fault("ERR-1")
def wraps_404_in_an_object(service: Service) -> None:
    """Sends the Error of 404 within {"error": ...}."""
    _wrapped(service, 404)


@fault("ERR-1")
def ends_404_with_garbage(service: Service) -> None:
    """Sends 404 with an Error and something after it."""

    def change(request: Request, response: Response) -> None:
        if response.status == 404:
            response.body += b"}"

    amend.responses(service, change)


@fault("ERR-1")
def refuses_under_two_media_types(service: Service) -> None:
    """Sends 401 with a list of two media types as Content-Type: one with a parameter, and text/html."""

    def change(request: Request, response: Response) -> None:
        response.headers["Content-Type"] = "application/json; charset=utf-8, text/html"

    amend.refusals(service, change)


@fault("ERR-1")
def answers_repeated_cancels_without_body(service: Service) -> None:
    """Sends 404 without a body when the order was cancelled before."""
    amend.repeated_cancels(service, lambda response: Response(404))


@fault("ERR-1")
def refuses_a_wrong_key_as_plain_text(service: Service) -> None:
    """Sends 401 as plain text when a key was given that is wrong."""

    def change(request: Request, response: Response) -> None:
        if not amend.no_header(request):
            response.body, response.headers["Content-Type"] = b"Unauthorized", "text/plain"

    amend.refusals(service, change)


# --- ERR-2: the status in the body ---


@fault("ERR-2")
def says_400_in_401(service: Service) -> None:
    """Writes status 400 into the Error of 401."""
    _with(service, 401, status=400)


@fault("ERR-2")
def says_403_in_401(service: Service) -> None:
    """Writes status 403 into the Error of 401."""
    _with(service, 401, status=403)


@fault("ERR-2")
def says_0_in_404(service: Service) -> None:
    """Writes status 0 into the Error of 404."""
    _with(service, 404, status=0)


@fault("ERR-2")
def says_500_in_404(service: Service) -> None:
    """Writes status 500 into the Error of 404."""
    _with(service, 404, status=500)


@fault("ERR-2")
def says_410_to_repeated_cancels(service: Service) -> None:
    """Writes status 410 into the Error of 404 when the order was cancelled before."""

    def change(response: Response) -> Response:
        response.body = response.body.replace(b'"status":404', b'"status":410')
        return response

    amend.repeated_cancels(service, change)


# --- ERR-3: useful texts (recommended) ---


@fault("ERR-3")
def leaves_the_code_of_401_empty(service: Service) -> None:
    """Writes an empty code into 401."""
    _with(service, 401, code="")


@fault("ERR-3")
def leaves_the_message_of_401_empty(service: Service) -> None:
    """Writes an empty message into 401."""
    _with(service, 401, message="")


@fault("ERR-3")
def leaves_the_message_of_404_empty(service: Service) -> None:
    """Writes a message into 404 that is a blank."""
    _with(service, 404, message=" ")


@fault("ERR-3")
def numbers_the_codes_of_404(service: Service) -> None:
    """Writes another code into every 404."""
    numbers = itertools.count(1)
    amend.errors(service, lambda fields: {**fields, "code": f"E-{next(numbers)}"}, 404)


@fault("ERR-3")
def codes_401_by_the_operation(service: Service) -> None:
    """Writes another code into the 401 of each operation."""

    def change(request: Request, response: Response) -> None:
        code = "MAY_NOT_LIST" if request.method == "GET" else "MAY_NOT_CANCEL"
        response.body = service.encode(
            {**service.error_fields(401, "The API key is missing or invalid."), "code": code}
        )

    amend.refusals(service, change)


# --- ERR-4: nothing secret (recommended) ---


@fault("ERR-4")
def shows_the_key_it_expected(service: Service) -> None:
    """Writes the valid key into the message of 401."""
    _with(service, 401, message=f"The API key is missing or not {service.key.decode()}.")


@fault("ERR-4")
def shows_the_key_in_404(service: Service) -> None:
    """Writes the key that was given into the Error of 404."""
    _with(service, 404, requestHeaders={"Authorization": f"Bearer {service.key.decode()}"})


@fault("ERR-4")
def shows_a_stack_trace(service: Service) -> None:
    """Writes a stack trace into the Error of 404."""
    _with(service, 404, trace=TRACE)


@fault("ERR-4")
def shows_a_java_stack_trace(service: Service) -> None:
    """Writes a stack trace into the message of 404, as Java words it."""
    _with(service, 404, message="java.lang.NullPointerException\n\tat com.store.Orders.cancel(Orders.java:42)")


@fault("ERR-4")
def shows_a_file_path(service: Service) -> None:
    """Writes the path of a file of the server into the message of 401."""
    _with(service, 401, message="No such key in /etc/store-orders/keys.json")


@fault("ERR-4")
def shows_a_stack_trace_in_409(service: Service) -> None:
    """Writes a stack trace into the Error of 409."""
    _with(service, 409, trace=TRACE)


@fault("ERR-4")
def shows_a_stack_trace_as_objects(service: Service) -> None:
    """Writes the elements of a stack trace into the Error of 404, as a Java library for JSON does."""
    frame = {"className": "com.store.Orders", "methodName": "cancel", "fileName": "Orders.java", "lineNumber": 42}
    _with(service, 404, cause={"stackTrace": [frame]})


@fault("ERR-4")
def shows_frames_without_line_numbers(service: Service) -> None:
    """Writes a stack trace into the Error of 404, as .NET words it where symbols are missing."""
    _with(service, 404, detail="   at Store.Orders.Cancel(Int64 id)\r\n   at Store.Program.<Main>$(String[] args)")


@fault("ERR-4")
def shows_where_it_panicked(service: Service) -> None:
    """Writes the line of a source file into the message of 400, as Rust words it."""
    _with(service, 400, message="panicked at src/orders.rs:42:9: called `Result::unwrap()` on an `Err` value")


@fault("ERR-4")
def shows_the_line_of_a_script(service: Service) -> None:
    """Writes the line of a source file into the message of 401, as PHP words it."""
    _with(service, 401, message="Uncaught TypeError in Keys.php on line 42")


@fault("ERR-4")
def shows_a_frame_of_a_script(service: Service) -> None:
    """Writes a frame of a stack trace into the Error of 409, as Node words it."""
    _with(service, 409, detail="Error: shipped\n    at cancel (src/orders.js:42:9)")


@fault("ERR-4")
def shows_a_path_on_a_volume(service: Service) -> None:
    """Writes the path of a file on a mounted volume into the message of 404."""
    _with(service, 404, message="There is no such order in /mnt/volume/orders.db")


# --- ERR-5: 409 as JSON (recommended) ---


@fault("ERR-5")
def answers_409_as_html(service: Service) -> None:
    """Sends 409 with a page of HTML."""
    _body(service, 409, HTML.encode(), "text/html")


@fault("ERR-5")
def answers_409_as_plain_text(service: Service) -> None:
    """Sends 409 with a line of plain text."""
    _body(service, 409, b"Already shipped", "text/plain")


@fault("ERR-5")
def answers_409_as_broken_json(service: Service) -> None:
    """Sends 409 as application/json that cannot be parsed."""
    _body(service, 409, b'{"code": CONFLICT}', "application/json")


# --- HTTP-2: framing, of errors ---


@fault("HTTP-2")
def counts_characters_for_frenchmen(service: Service) -> None:
    """Announces the characters, and not the bytes, of 401 and 404 in French, which end with a line break."""
    messages = {401: "La clé manque ou n'est pas valable.", 404: "Cette commande a peut-être disparu."}

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if response.status not in messages or not request.headers.get("accept-language", "").startswith("fr"):
            return data
        fields = {**json.loads(response.body), "message": messages[response.status]}
        text = json.dumps(fields, ensure_ascii=False) + "\n"
        head = data.partition(b"\r\n\r\n")[0]
        return head.replace(b": %d" % len(response.body), b": %d" % len(text)) + b"\r\n\r\n" + text.encode()

    amend.wire(service, change)
