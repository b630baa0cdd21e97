"""The service as a function from request to response."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import AUTHORIZED, KEY

from reference_server.api import Service, read_id
from reference_server.messages import Request, Response
from reference_server.orders import INT64_MAX, INT64_MIN, OrderStore, Status, sample_order

ORDERS = "/v1/store/orders"


@pytest.fixture
def service() -> Service:
    store = OrderStore(
        [sample_order(1, Status.PENDING), sample_order(2, Status.SHIPPED), sample_order(-5, Status.PENDING)]
    )
    return Service(store, KEY.encode())


def ask(service: Service, method: str, path: str, query: str = "", headers: dict[str, str] | None = None) -> Response:
    return service.answer(Request(method, path, query, AUTHORIZED if headers is None else headers))


def assert_error(response: Response, status: int) -> None:
    assert response.status == status
    assert response.headers["Content-Type"] == "application/json"
    body = json.loads(response.body)
    assert body.keys() == {"code", "message", "status"}
    assert body["status"] == status
    assert body["code"]
    assert body["message"]
    assert KEY not in body["message"]


def test_the_listing_holds_every_order(service: Service) -> None:
    response = ask(service, "GET", ORDERS)
    assert (response.status, response.headers) == (200, {"Content-Type": "application/json"})
    orders = json.loads(response.body)
    assert [order["id"] for order in orders] == [1, 2, -5]
    assert orders[0].keys() == {"id", "petId", "quantity", "shipDate", "complete"}


def test_query_parameters_change_nothing(service: Service) -> None:
    plain = ask(service, "GET", ORDERS).body
    assert ask(service, "GET", ORDERS, "limit=1&status=pending&page=9&id=1").body == plain


def test_an_empty_store_is_an_empty_array(service: Service) -> None:
    service.store.clear()
    assert ask(service, "GET", ORDERS).body == b"[]"


def test_cancelling_by_status(service: Service) -> None:
    assert ask(service, "DELETE", ORDERS + "/1").status == 204
    assert_error(ask(service, "DELETE", ORDERS + "/1"), 404)
    assert_error(ask(service, "DELETE", ORDERS + "/2"), 409)
    assert_error(ask(service, "DELETE", ORDERS + "/2"), 409)
    assert_error(ask(service, "DELETE", ORDERS + "/99"), 404)
    assert ask(service, "DELETE", ORDERS + "/-5").body == b""
    assert [order.id for order in service.store.all()] == [2]


@pytest.mark.parametrize("text", ["+1", "01", "1.0", "1e0", "1abc", " 1", "1%20", "one", "-0", "١", "1%00", "%2B1"])
def test_malformed_ids_are_refused(service: Service, text: str) -> None:
    assert_error(ask(service, "DELETE", f"{ORDERS}/{text}"), 400)
    assert len(service.store) == 3


@pytest.mark.parametrize("text", [str(INT64_MAX + 1), str(INT64_MIN - 1), str(2**64 + 1), "1" + "0" * 5000])
def test_no_order_has_an_id_outside_int64(service: Service, text: str) -> None:
    assert_error(ask(service, "DELETE", f"{ORDERS}/{text}"), 404)


def test_percent_encoding_is_undone_but_not_for_slashes(service: Service) -> None:
    assert_error(ask(service, "DELETE", f"{ORDERS}/1%2F2"), 400)
    assert_error(ask(service, "DELETE", "/v1/store%2Forders/1"), 404)
    assert ask(service, "DELETE", "/v1/%73tore/orders/%31").status == 204


@given(st.integers(INT64_MIN, INT64_MAX))
def test_every_int64_is_read_exactly(number: int) -> None:
    assert read_id(str(number)) == number


@given(st.text(alphabet="0123456789+-. eEx_abc١\n", max_size=24))
def test_only_the_plain_decimal_form_is_an_id(text: str) -> None:
    number = read_id(text)
    if re.fullmatch(r"-?[0-9]{1,19}", text) and str(int(text)) == text:
        assert number == int(text)
    else:
        assert number is None or number > INT64_MAX


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {KEY}",
        KEY,
        f"Bearer{KEY}",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY.upper()}",
        f"Bearer {KEY}, Bearer {KEY}",
        f"Bearer\t{KEY}",
        f'Bearer "{KEY}"',
        "Bearer é",
    ],
)
def test_without_the_key_everything_is_the_same_401(service: Service, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    bodies = set()
    for method, path in [
        ("GET", ORDERS),
        ("DELETE", ORDERS + "/1"),
        ("DELETE", ORDERS + "/2"),
        ("DELETE", ORDERS + "/3"),
        ("DELETE", ORDERS + "/x"),
        ("GET", "/v1/pets/1"),
        ("PUT", ORDERS),
        ("GET", "/"),
    ]:
        response = ask(service, method, path, headers=headers)
        assert_error(response, 401)
        assert response.headers["WWW-Authenticate"].startswith('Bearer realm="')
        bodies.add(response.body)
    assert len(bodies) == 1
    assert len(service.store) == 3


def test_a_wrong_token_is_named_as_such(service: Service) -> None:
    challenge = ask(service, "GET", ORDERS, headers={"authorization": "Bearer x"}).headers["WWW-Authenticate"]
    assert challenge.endswith(', error="invalid_token"')
    assert "error" not in ask(service, "GET", ORDERS, headers={}).headers["WWW-Authenticate"]


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "bEaReR   "])
def test_the_scheme_is_in_any_case(service: Service, scheme: str) -> None:
    assert ask(service, "GET", ORDERS, headers={"authorization": scheme + KEY}).status == 200


def test_what_the_contract_leaves_open(service: Service) -> None:
    assert_error(ask(service, "GET", "/v1/pets/1"), 404)
    assert_error(ask(service, "GET", "/"), 404)
    assert_error(ask(service, "DELETE", ORDERS + "/1/2"), 404)
    assert_error(ask(service, "GET", ORDERS + "/"), 404)
    wrong = ask(service, "POST", ORDERS)
    assert_error(wrong, 405)
    assert wrong.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert ask(service, "GET", ORDERS + "/1").headers["Allow"] == "DELETE, OPTIONS"
    assert ask(service, "OPTIONS", ORDERS).status == 204
    assert ask(service, "HEAD", ORDERS).status == 200
    assert len(service.store) == 3


def test_what_breaks_inside_is_a_plain_500(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(request: Request) -> Response:
        raise RuntimeError("secret")

    service.respond = broken
    response = ask(service, "GET", ORDERS)
    assert_error(response, 500)
    assert b"secret" not in response.body
    assert "Traceback" not in capfd.readouterr().err


def test_the_journal_tells_the_truth_about_the_key(service: Service) -> None:
    service.same_key = lambda given: True
    ask(service, "DELETE", ORDERS + "/2", headers={"authorization": "Bearer x"})
    ask(service, "GET", ORDERS)
    assert [tuple(entry) for entry in service.journal] == [
        ("DELETE", ORDERS + "/2", False, 2, 409),
        ("GET", ORDERS, True, None, 200),
    ]
