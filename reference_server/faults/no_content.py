"""Faults of 204: CANCEL-2 and CANCEL-12."""

from __future__ import annotations

from collections.abc import Callable

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import Order
from ..registry import fault

# --- CANCEL-2: nothing after 204 ---


def _after_204(service: Service, extra: bytes, close: bool = False) -> None:
    """Sends these bytes after the headers of 204."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        if response.status != 204:
            return data
        if close:
            response.close = True
        return data + extra

    amend.wire(service, change)


@fault("CANCEL-2")
def sends_json_after_204(service: Service) -> None:
    """Sends a JSON object after the headers of 204."""
    _after_204(service, b'{"message":"cancelled"}')


@fault("CANCEL-2")
def sends_json_after_204_and_closes(service: Service) -> None:
    """Sends a JSON object after the headers of 204, then closes the connection."""
    _after_204(service, b'{"message":"cancelled"}', close=True)


@fault("CANCEL-2")
def sends_a_line_break_after_204(service: Service) -> None:
    """Sends an empty line after the headers of 204."""
    _after_204(service, b"\r\n")


@fault("CANCEL-2")
def sends_null_after_204(service: Service) -> None:
    """Sends the JSON text null after the headers of 204."""
    _after_204(service, b"null")


@fault("CANCEL-2")
def ends_chunks_after_204(service: Service) -> None:
    """Sends the end of a chunked body after the headers of 204, which announce none."""
    _after_204(service, b"0\r\n\r\n")


def _header_of_204(service: Service, header: bytes, body: bytes = b"") -> None:
    """Sends one more header field with 204, and a body after it."""
    amend.wire(
        service,
        lambda request, response, data: data[:-2] + header + b"\r\n\r\n" + body if response.status == 204 else data,
    )


@fault("CANCEL-2")
def sends_a_whole_chunked_body_with_204(service: Service) -> None:
    """Announces and sends a chunked body with 204."""
    _header_of_204(service, b"Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n")


@fault("CANCEL-2")
def sends_a_counted_body_with_204(service: Service) -> None:
    """Announces and sends a body of two bytes with 204."""
    _header_of_204(service, b"Content-Length: 2", b"{}")


@fault("CANCEL-2")
def sends_a_body_with_every_second_204(service: Service) -> None:
    """Sends a body after the headers of every second 204."""
    due = amend.every(2)
    amend.wire(service, lambda _, response, data: data + b"{}" if response.status == 204 and due() else data)


class _WithBody(Response):
    """A 204 that is to have a body."""

    __slots__ = ()


def _after_204_for(service: Service, which: Callable[[Order], bool]) -> None:
    """Sends a body after the headers of the 204 for some orders."""
    inner = service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        order = amend.order_of(service, request)
        response = inner(request, text)
        return _WithBody(204) if response.status == 204 and order and which(order) else response

    service.cancel_order = cancel_order
    amend.wire(service, lambda _, response, data: data + b"{}" if isinstance(response, _WithBody) else data)


@fault("CANCEL-2")
def sends_a_body_with_204_for_complete_orders(service: Service) -> None:
    """Sends a body after the headers of 204 if the order is marked as complete."""
    _after_204_for(service, lambda order: order.complete)


@fault("CANCEL-2")
def sends_a_body_with_204_for_large_orders(service: Service) -> None:
    """Sends a body after the headers of 204 if the order has more than nine units."""
    _after_204_for(service, lambda order: order.quantity > 9)


def _after_204_to(service: Service, media_type: str, extra: bytes) -> None:
    """Sends these bytes after the headers of 204 to clients whose Accept names this media type."""

    def change(request: Request, response: Response, data: bytes) -> bytes:
        named = media_type in request.headers.get("accept", "")
        return data + extra if response.status == 204 and named else data

    amend.wire(service, change)


@fault("CANCEL-2")
def sends_a_body_with_204_to_clients_of_json(service: Service) -> None:
    """Sends a body after the headers of 204 to a client that accepts application/json by name."""
    _after_204_to(service, "application/json", b"{}")


@fault("CANCEL-2")
def sends_a_script_after_204_to_browsers(service: Service) -> None:
    """Sends a script behind every answer to a client that accepts HTML, as tools of developers do, and so after 204."""
    _after_204_to(service, "text/html", b"<script></script>")


@fault("CANCEL-2")
def sends_null_after_204_to_scripts(service: Service) -> None:
    """Sends null after the headers of 204 to the scripts of a browser, which its serialiser makes of nothing."""
    _after_204_to(service, "text/plain", b"null")


@fault("CANCEL-2")
def sends_a_body_with_204_to_who_accepts_anything(service: Service) -> None:
    """Sends a body after the headers of 204 to a client that does not say what it accepts."""
    amend.wire(
        service,
        lambda request, response, data: (
            data + b"{}" if response.status == 204 and amend.names_nothing(request) else data
        ),
    )


@fault("CANCEL-2")
def sends_the_body_of_204_with_the_next_answer(service: Service) -> None:
    """Sends a body after the headers of 204 only before the next answer on the connection."""
    owing: set[object] = set()

    def change(request: Request, response: Response, data: bytes) -> bytes:
        late = request.connection in owing
        owing.discard(request.connection)
        if response.status == 204:
            owing.add(request.connection)
        return b"{}" + data if late else data

    amend.wire(service, change)


# --- CANCEL-12: no length either (recommended) ---


@fault("CANCEL-12")
def sends_content_length_with_204(service: Service) -> None:
    """Sends Content-Length: 0 with 204."""
    _header_of_204(service, b"Content-Length: 0")


@fault("CANCEL-12")
def sends_transfer_encoding_with_204(service: Service) -> None:
    """Sends Transfer-Encoding: chunked with 204, and no chunk."""
    _header_of_204(service, b"Transfer-Encoding: chunked")
