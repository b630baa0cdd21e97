"""Faults of which order an id is taken for: CANCEL-9 and CANCEL-11."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..orders import INT64_MAX, INT64_MIN, Outcome
from ..registry import fault

#: What `object[name]` finds in JavaScript whatever the object holds.
_IN_EVERY_OBJECT = ("constructor", "toString", "valueOf", "hasOwnProperty")


def _asks_for_inherited(request: Request) -> bool:
    return amend.is_cancel(request) and request.path.rpartition("/")[2] in _IN_EVERY_OBJECT


def _malformed(service: Service, pattern: str, answer: Callable[[], Response | None]) -> None:
    """Does something when asked for an id that is no integer and matches; `None` leaves the answer as it is."""
    inner = service.cancel_order

    def cancel_order(request: Request, text: str) -> Response:
        malformed = service.read_id(text) is None and re.fullmatch(pattern, text)
        return (answer() if malformed else None) or inner(request, text)

    service.cancel_order = cancel_order


# --- CANCEL-9: exactly this id ---


def _known_ids(service: Service, which: Callable[[int], bool]) -> list[int]:
    return [order.id for order in service.store.all() if which(order.id)]


@fault("CANCEL-9")
def cancels_what_every_object_has(service: Service) -> None:
    """Answers 204 to the ids constructor and toString, which any object of its language has."""
    amend.instead(service, lambda request: Response(204) if _asks_for_inherited(request) else None)


@fault("CANCEL-9")
def reads_ids_in_32_bits(service: Service) -> None:
    """Cancels the order whose id equals the one asked for modulo 2^32."""
    amend.find(service, lambda asked: _known_ids(service, lambda known: (known - asked) % 2**32 == 0))


@fault("CANCEL-9")
def reads_ids_as_signed_32_bits(service: Service) -> None:
    """Cancels the order whose id is the lower 32 bits of the one asked for, taken with sign."""
    amend.find(service, lambda asked: [(asked + 2**31) % 2**32 - 2**31])


@fault("CANCEL-9")
def keeps_the_last_nine_digits_of_an_id(service: Service) -> None:
    """Cancels the order whose id is the last nine digits of the one asked for, where no order has all of them."""
    amend.find(service, lambda asked: [asked if service.store.get(asked) else asked % 10**9])


@fault("CANCEL-9")
def reads_ids_through_a_double(service: Service) -> None:
    """Cancels an order whose id equals the one asked for as a double."""
    amend.find(service, lambda asked: _known_ids(service, lambda known: float(known) == float(asked)))


@fault("CANCEL-9")
def rounds_ids(service: Service) -> None:
    """Reads ids as numbers of JavaScript, so that it cancels the order whose id is the nearest double."""
    inner = service.cancel
    service.cancel = lambda order_id: inner(int(float(order_id)))


@fault("CANCEL-9")
def finds_an_order_by_the_beginning_of_its_id(service: Service) -> None:
    """Cancels the order whose id begins with the one asked for, as LIKE '1234%' does, if that has four digits or more
    and there is one such order."""

    def other(asked: int) -> Iterable[int]:
        found = _known_ids(service, lambda known: str(known).startswith(str(asked)))
        return found if len(found) == 1 and asked >= 1000 else []

    amend.find(service, other)


@fault("CANCEL-9")
def reads_ten_digits_of_an_id(service: Service) -> None:
    """Cancels the order 1234567890 when asked for 12345678901, since its column holds ten digits."""
    amend.find(service, lambda asked: [int(str(asked)[:10])])


@fault("CANCEL-9")
def reads_ids_without_sign(service: Service) -> None:
    """Cancels the order 5 when asked for -5."""
    amend.find(service, lambda asked: [-asked])


@fault("CANCEL-9")
def takes_a_name_behind_an_id(service: Service) -> None:
    """Cancels the order 5 when asked for 5-rex, as addresses made for people have it."""
    inner = service.read_id
    service.read_id = lambda text: inner(re.sub(r"(?<=[0-9])-[a-z]+$", "", text))


@fault("CANCEL-9")
def clamps_ids_to_int64(service: Service) -> None:
    """Cancels the order at the end of int64 when asked for a number beyond it."""
    inner = service.read_id

    def read_id(text: str) -> int | None:
        return inner(text) if inner(text) is None else min(max(int(text), INT64_MIN), INT64_MAX)

    service.read_id = read_id


@fault("CANCEL-9")
def takes_numbers_beyond_int64_for_zero(service: Service) -> None:
    """Cancels the order 0 when asked for a number beyond int64."""
    inner = service.read_id

    def read_id(text: str) -> int | None:
        asked = inner(text)
        return asked if asked is None or INT64_MIN <= asked <= INT64_MAX else 0

    service.read_id = read_id


@fault("CANCEL-9")
def lets_ids_overflow(service: Service) -> None:
    """Cancels the order whose id is the lower 64 bits of the one asked for, taken with sign."""
    amend.find(service, lambda asked: [(asked + 2**63) % 2**64 - 2**63])


@fault("CANCEL-9")
def reads_the_digits_at_the_beginning(service: Service) -> None:
    """Cancels the order 123 when asked for 123abc."""

    def read(text: str) -> int | None:
        digits = re.match(r"-?[0-9]{1,18}", text)
        return int(digits[0]) if digits else None

    amend.read_ids(service, read)


@fault("CANCEL-9")
def takes_several_ids(service: Service) -> None:
    """Cancels the orders 1 and 2 when asked for 1,2."""

    def answer(request: Request) -> Response | None:
        texts = unquote(request.path.rpartition("/")[2]).split(",")
        if not amend.is_cancel(request) or len(texts) < 2:
            return None
        ids = [service.read_id(text) for text in texts]
        outcomes = [service.cancel(number) for number in ids if number is not None]
        return Response(204) if Outcome.CANCELLED in outcomes else None

    amend.instead(service, answer)


@fault("CANCEL-9")
def reads_octal_ids(service: Service) -> None:
    """Reads an id with a leading zero as octal, as Ruby and Go can do, and cancels the order 15 when asked for 017."""
    inner = service.read_id

    def read_id(text: str) -> int | None:
        return int(text, 8) if re.fullmatch(r"0[0-7]{1,20}", text) else inner(text)

    service.read_id = read_id


@fault("CANCEL-9")
def reads_an_id_up_to_a_null_character(service: Service) -> None:
    """Cancels the order 123 when asked for 123%00x."""
    amend.read_ids(service, lambda text: int(text.split("\0")[0]) if re.fullmatch(r"\d{1,18}\0.*", text) else None)


@fault("CANCEL-9")
def reads_an_id_up_to_an_ampersand(service: Service) -> None:
    """Cancels the order 123 when asked for 123%26x, as where an address is rewritten to one with the id in a query."""
    amend.read_ids(service, lambda text: int(text.split("&")[0]) if re.fullmatch(r"\d{1,18}&.*", text) else None)


def _prefers(service: Service, named: Callable[[Request], str | bytes | None]) -> None:
    """Cancels the order with the id that this finds in a request, whatever the path says."""

    def read(request: Request) -> str:
        found = named(request) if amend.is_cancel(request) else None
        return request.path if found is None else f"{service.collection}/{int(found)}"

    amend.paths(service, read)


@fault("CANCEL-9")
def prefers_the_id_in_the_query(service: Service) -> None:
    """Cancels the order that the query names, whatever the path says."""
    _prefers(service, lambda request: (found := re.search(r"\borderId=(-?[0-9]+)", request.query)) and found[1])


@fault("CANCEL-9")
def prefers_the_id_in_the_body(service: Service) -> None:
    """Cancels the order that the body names, whatever the path says."""
    _prefers(service, lambda request: (found := re.search(rb'"id": *(-?[0-9]+)', request.body)) and found[1])


@fault("CANCEL-9")
def ignores_the_fraction_of_an_id(service: Service) -> None:
    """Cancels the order 123 when asked for 123.5."""
    amend.read_ids(
        service, lambda text: int(text.split(".")[0]) if re.fullmatch(r"[0-9]{1,18}\.[0-9]+", text) else None
    )


@fault("CANCEL-9")
def rounds_a_fraction(service: Service) -> None:
    """Cancels the order 123 when asked for 123.4, and 124 when asked for 123.5."""
    amend.read_ids(service, lambda text: round(float(text)) if re.fullmatch(r"[0-9]{1,15}\.[0-9]+", text) else None)


@fault("CANCEL-9")
def reads_a_fraction_of_zero_through_a_double(service: Service) -> None:
    """Cancels the order whose id is the nearest double when asked for an id with a fraction of zero, as databases do
    that compare an integer with a text."""
    amend.read_ids(service, lambda text: int(float(text)) if re.fullmatch(r"[0-9]{1,19}\.0+", text) else None)


@fault("CANCEL-9")
def takes_an_ending_for_a_format(service: Service) -> None:
    """Cancels the order 123 when asked for 123.5 or 123.json."""
    amend.read_ids(service, lambda text: int(text.split(".")[0]) if re.fullmatch(r"[0-9]{1,18}\.\w+", text) else None)


def _remove_pending(service: Service, which: slice) -> None:
    """Removes these of the pending orders, which are in the order in which they were placed."""
    service.store.remove([order.id for order in service.store.all() if amend.pending(order)][which])


@fault("CANCEL-9")
def cancels_everything_for_an_id_of_letters(service: Service) -> None:
    """Answers 204 to an id of letters, which it takes for none, and cancels every pending order."""

    def answer() -> Response:
        _remove_pending(service, slice(None))
        return Response(204)

    _malformed(service, r"[A-Za-z]+", answer)


@fault("CANCEL-9")
def reports_a_cancel_of_a_malformed_id(service: Service) -> None:
    """Answers 204 to an id that is no integer, and does nothing."""
    _malformed(service, r".*", lambda: Response(204))


@fault("CANCEL-9")
def removes_all_orders_for_an_undefined_id(service: Service) -> None:
    """Answers 400 to undefined, null and NaN, and cancels every pending order all the same."""
    _malformed(service, r"undefined|null|NaN", lambda: _remove_pending(service, slice(None)))


@fault("CANCEL-9")
def removes_the_newest_order_for_an_id_of_letters(service: Service) -> None:
    """Answers 400 to an id of letters, and cancels the newest pending order all the same."""
    _malformed(service, r"[A-Za-z]+", lambda: _remove_pending(service, slice(-1, None)))


@fault("CANCEL-9")
def takes_what_is_no_number_for_zero(service: Service) -> None:
    """Reads 0 where an id begins with no digit, so that `abc` cancels the order 0 if there is one."""
    amend.read_ids(service, lambda text: None if re.match(r"[-+]?[0-9]", text) else 0)


@fault("CANCEL-9")
def reads_the_first_line_of_an_id(service: Service) -> None:
    """Reads a number up to the end of its line, as patterns with `^` and `$` do in some languages."""
    amend.read_ids(service, lambda text: int(text.split("\n")[0]) if re.fullmatch(r"-?[0-9]{1,18}\n.*", text) else None)


# --- CANCEL-11: malformed ids (recommended) ---


def _fails_on(service: Service, pattern: str) -> None:
    """Answers 500 to ids that match."""
    _malformed(service, pattern, lambda: service.error(500, "Something went wrong in the service."))


@fault("CANCEL-11")
def fails_on_what_every_object_has(service: Service) -> None:
    """Answers 500 to the ids constructor and toString, which any object of its language has."""
    failed = service.error(500, "It is no order.")
    amend.instead(service, lambda request: failed if _asks_for_inherited(request) else None)


@fault("CANCEL-11")
def fails_on_malformed_ids(service: Service) -> None:
    """Answers 500 to an id that is no integer."""
    _fails_on(service, r".*")


@fault("CANCEL-11")
def redirects_malformed_ids(service: Service) -> None:
    """Answers 303 to an id that is no integer."""
    _malformed(service, r".*", lambda: Response(303, headers={"Location": "/docs"}))


@fault("CANCEL-11")
def fails_on_an_apostrophe_in_an_id(service: Service) -> None:
    """Answers 500 to an id with an apostrophe, since it is put as it is into a query of a database."""
    _fails_on(service, r".*'.*")


@fault("CANCEL-11")
def fails_on_letters_in_an_id(service: Service) -> None:
    """Answers 500 to an id of letters only."""
    _fails_on(service, r"[A-Za-z]+")


@fault("CANCEL-11")
def fails_on_letters_after_an_id(service: Service) -> None:
    """Answers 500 to an id with letters after its digits."""
    _fails_on(service, r"[0-9]+[A-Za-z]+")


@fault("CANCEL-11")
def fails_on_an_undefined_id(service: Service) -> None:
    """Answers 500 to undefined and NaN, which scripts send for an id that they do not have."""
    _fails_on(service, r"undefined|NaN")


@fault("CANCEL-11")
def fails_on_a_null_character(service: Service) -> None:
    """Answers 500 to an id with the character U+0000, as a database does that cannot store it."""
    _fails_on(service, r".*\0.*")


@fault("CANCEL-11")
def fails_on_what_is_no_utf_8(service: Service) -> None:
    """Answers 500 to an id with a byte that UTF-8 never has."""
    _fails_on(service, r".*[\xf8-\xff].*")


@fault("CANCEL-11")
def fails_on_two_minus_signs(service: Service) -> None:
    """Answers 500 to an id with two minus signs, since it takes off all to see whether digits are left."""
    _fails_on(service, r"--+[0-9]+")


@fault("CANCEL-11")
def fails_on_a_superscript(service: Service) -> None:
    """Answers 500 to an id with the superscript 2, which is a digit to Python, and none that it reads."""
    _fails_on(service, r"-?[0-9]*\xc2?\xb2[0-9]*")


@fault("CANCEL-11")
def fails_on_a_uuid(service: Service) -> None:
    """Answers 500 to an id that is a UUID."""
    _fails_on(service, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
