"""A long conversation with a service, always the same, in which every fault can show itself."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5, sha256

from reference_server.api import Service
from reference_server.messages import Request
from reference_server.orders import OrderStore, Status
from reference_server.running import install
from reference_server.seed import initial_orders

KEY = "sk-Reference.Key_42"
LIST = "/v1/store/orders"
FURTHER = (
    "limit=5", "_limit=1", "page%5Blimit%5D=1", "startDate=2999-01-01", "endDate=1900-01-01", "customerId=-1",
    "after=9223372036854775806", "tenant=none", "format=csv", "format=api", "callback=f",
)  # fmt: skip
SMALL = [11, 12, 13, 15, 16, 17, 20, 21, 22, 119, 1100]
FAR = [-(2**63), -77, -8, 2**32 + 5, 2**53 + 1, 10**17 + 1, 2**63 - 1]
ABSENT = [0, -1, 424242, -424242, 2**40, 2**63 - 2, -(2**63) + 1]
QUERIES = [
    "status=shipped",
    "limit=1",
    "per_page=1",
    "page=2",
    "offset=3",
    "petId=4",
    "complete=true",
    "id=5",
    "page=0&size=1",
    "x=y",
]


def served(faults: tuple[str, ...] = (), variants: tuple[str, ...] = ()) -> Service:
    """A service over the seed orders with these changes."""
    service = Service(OrderStore(initial_orders(None)), KEY.encode())
    install(service, faults, variants)
    return service


def transcript(service: Service) -> list[tuple[str, bytes]]:
    """The whole conversation."""
    return list(conversation(service))


def conversation(service: Service) -> Iterator[tuple[str, bytes]]:
    """Every request, in words, with the bytes of its answer but for the date."""
    numbers = iter(range(10_000, 10**9))
    key = f"Bearer {KEY}"
    store = service.store

    def say(
        method: str,
        path: str,
        authorization: str | None = key,
        connection: int | None = None,
        query: str = "",
        body: str = "",
        **headers: str,
    ) -> tuple[str, bytes]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if authorization is not None:
            given["authorization"] = authorization
        request = Request(method, path, query, given, body.encode(), connection or next(numbers))
        response = service.answer(request)
        data = re.sub(rb"Date: [^\r]*", b"Date: -", service.write(request, response))
        return f"{method} {path} {query} {given} {body}", data + b"(closed)" * response.close

    def cancel(order_id: object, authorization: str | None = key, **more: str) -> tuple[str, bytes]:
        return say("DELETE", f"{LIST}/{order_id}", authorization, **more)

    def both(authorization: str | None, **more: str) -> Iterator[tuple[str, bytes]]:
        yield say("GET", LIST, authorization, **more)
        for order_id in (101, 102, 999):
            yield cancel(order_id, authorization, **more)

    # Credentials.
    yield from both(None)
    yield from both(None)
    yield from both("Bearer wrong")
    yield from both(None, accept="text/html, */*")
    yield from both(key, accept="text/html, */*")
    yield from both(None, accept="application/json")
    yield from both(key, cookie="sessionid=0")
    near = [
        KEY + "x",
        KEY + ".x",
        KEY[:-1],
        KEY[:-1] + "#",
        "#" + KEY[1:],
        KEY[:8] + "zz",
        "x" * len(KEY),
        KEY.swapcase(),
        KEY.translate(str.maketrans("-_", "_-")),
        re.sub("[-_]", "", KEY),
        "x" + KEY,
        KEY[::-1],
        KEY[:5] + "#" + KEY[6:],
        KEY[:9],
        KEY[3:],
        "SK" + KEY[2:],
        f"x:{KEY}",
        f"0{KEY}",
        sha256(KEY.encode()).hexdigest(),
        md5(KEY.encode(), usedforsecurity=False).hexdigest(),
        "YOUR_API_KEY",
        "eyJh.eyJz.c2ln",
        "None",
    ]
    for wrong in near:
        yield say("GET", LIST, f"Bearer {wrong}")
        yield cancel(102, f"Bearer {wrong}")
    basic = b64encode(f"{KEY}:".encode()).decode()
    for other in (
        KEY,
        f"Basic {basic}",
        f"Token {KEY}",
        f"XBearer {KEY}",
        "Bearer Schl\u00c3\u00bcssel",
        f"Bearer {KEY}\u00c3\u00a9",
        "Bearer",
        "Bearer ",
        f"Bearer {KEY} x",
        f"bearer {KEY}",
        f"BEARER {KEY}",
    ):
        yield say("GET", LIST, other)
    for headers in (
        {"x_api_key": KEY},
        {"x_api_token": KEY},
        {"cookie": f"api_key={KEY}"},
        {"cookie": f"Authorization=Bearer {KEY}"},
        {"proxy_authorization": f"Bearer {KEY}"},
    ):
        yield say("GET", LIST, None, **headers)
    for name in ("api_key", "access_token"):
        yield say("GET", LIST, None, query=f"{name}={KEY}")
        yield cancel(999, None, body=f"{name}={KEY}")
    yield from [say("GET", LIST, credentials, connection=5) for credentials in (key, None, "Bearer wrong", key)]
    yield from [say("GET", LIST, "Bearer wrong") for _ in range(25)]
    yield say("GET", LIST)
    yield from [say("GET", f"/v1/pets/{pet}", credentials) for pet in (1, 4) for credentials in (None, key)]

    # The listing.
    yield from [say("GET", LIST) for _ in range(30)]
    store.place_ids([*SMALL, *FAR], Status.PENDING)
    store.place_ids([-3, 14, 18, 19, 30, 31, 32, 33], Status.SHIPPED)
    yield from [say("GET", LIST) for _ in range(4)]
    yield from [say("GET", LIST, query=query) for query in (*QUERIES, *FURTHER)]
    yield from [say("GET", LIST, accept_language=language) for language in ("ar", "de", "fi", "tr")]
    yield say("GET", LIST, accept_charset="utf-16, utf-8;q=0.5")
    yield say("GET", LIST, None, accept_language="fr")
    yield from [say("GET", LIST, accept=accept) for accept in ("text/html, */*", "application/json", "application/*")]

    # Cancelling.
    for text in (
        "12abc",
        "12.5",
        "12.json",
        "12%20",
        "abc",
        "undefined",
        "abcdefab-abcd-abcd-abcd-abcdefabcdef",
        "12%00",
        "%FF",
        "é",
        "4294967307",
        "%EF%BC%91%EF%BC%92",
        "13%2C15",
        "-11",
        "9007199254740992",
        "10",
    ):
        yield cancel(text)
        yield say("GET", LIST)
    for order_id in (18, 19, 30, 31):
        yield cancel(order_id)
        yield cancel(order_id)
        yield say("GET", LIST)
        yield cancel(order_id)
    for beyond in (2**63, -(10**30)):
        store.place_ids([-(2**63)], Status.PENDING)
        yield cancel(beyond)
    for order_id in (32, 33):
        yield cancel(order_id, None)
        yield cancel(order_id)
    for absent in ABSENT:
        yield cancel(absent)
    yield cancel(434343)
    store.place_ids([434343], Status.PENDING)
    yield cancel(10**9 + 434343)
    yield cancel(434343)
    for order_id in (*SMALL[:-1], *FAR):
        yield cancel(order_id, None)
        yield cancel(order_id, "Bearer wrong")
        yield say("GET", LIST)
        yield cancel(order_id)
        yield cancel(order_id)
        yield say("GET", LIST)
        yield cancel(order_id)
    yield cancel(1100, content_type="application/json", content_length="0")

    # What clients accept.
    store.place_ids([41, 42], Status.PENDING)
    store.place_ids([43], Status.SHIPPED)
    yield cancel(41, accept="text/html, */*")
    for order_id in (42, 43, 44):
        yield cancel(order_id, accept="application/json")

    # Shipped orders with far ids.
    store.place_ids([-79, 2**53 + 3], Status.SHIPPED)
    for order_id in (-79, 2**53 + 3):
        yield cancel(order_id)

    # A pending order among those that a double cannot tell from it.
    store.place_ids([2**54 - 1, 2**54, 2**54 + 1], Status.PENDING)
    yield cancel(2**54)
    yield say("GET", LIST)

    # Strangers in disguise, the id 0, and queries of cancels.
    yield say("GET", LIST.replace("orders", "%6Frders"), None)
    yield say("GET", LIST.replace("/orders", "%2Forders"), None)
    for other in ("/V1/store/orders", "/%761/store/orders", "/v1/./store/orders", "/v1/store\\orders", "/store/orders"):
        yield say("GET", other, None)
    yield say("GET", "/v2/store/orders", None)
    yield say("OPTIONS", LIST, None)
    yield say("GET", LIST, None, x_original_url="/")
    yield say("GET", LIST, None, x_forwarded_host="localhost")
    yield say("GET", LIST, None, user_agent="Mozilla/5.0")
    yield cancel(999, None, x_http_method_override="GET")
    yield from [cancel(f"999{odd}", None) for odd in ("/", ";x")]
    yield say("GET", LIST, None, if_none_match="*")
    yield say("GET", LIST, None, user_agent="kube-probe/1.29")
    yield cancel(999, cookie="sessionid=0")
    yield say("GET", LIST, None, user_agent="ELB-HealthChecker/2.0")
    yield say("GET", LIST, accept="application/json, text/plain, */*", accept_language="de-DE,de;q=0.9")
    yield cancel(999, accept="application/xml")
    yield say("GET", LIST, None, x_forwarded_for="127.0.0.1")
    yield say("GET", LIST, None, query="debug=true")
    yield cancel(999, None, x_forwarded_for="127.0.0.1")
    yield cancel(999, None, query="debug=true")
    yield cancel("999.css", None)
    yield say("GET", LIST, None, forwarded="for=127.0.0.1")
    yield say("GET", LIST, None, x_original_uri="/")
    yield say("GET", LIST, None, query="from=/health")
    store.place_ids([0, 52], Status.PENDING)
    store.place_ids([51], Status.SHIPPED)
    yield cancel(0, None)
    yield cancel(0)
    store.place_ids([0, -(2**63), 2**63 - 1], Status.SHIPPED)
    yield say("GET", LIST)
    yield from [cancel(order_id) for order_id in (0, -(2**63), 2**63 - 1)]
    yield cancel(51, query="force=true")
    yield cancel(53, query="orderId=52")
    yield say("GET", LIST)

    store.place_ids([54, 55, 56, 57, 7_654_321_098], Status.PENDING)
    yield from [cancel(near) for near in (76_543_210_981, 765_432_109)]
    yield say("GET", LIST)
    yield say("GET", f"{LIST}/54", None)
    yield from [say("GET", LIST, credentials, query="q=1") for credentials in (key, None)]
    yield cancel(54, content_length="0")
    yield cancel(7_654_321_098, origin="http://127.0.0.1")
    yield cancel(f"0{57:o}")
    yield say("GET", f"{LIST}/57")
    yield cancel("55%00x")
    yield cancel("57%0Ax")
    yield cancel(56)
    yield cancel(56, None)
    yield say("GET", LIST, None, cookie="cart=4712")
    yield from [say("GET", LIST, credentials, accept="application/xml") for credentials in (key, None)]
    yield say("GET", "/v1/pets/1", None, query=f"api_key={KEY}")
    yield from [say("GET", LIST, f"Bearer {word}") for word in ("".join(sorted(KEY)), "constructor", "API_KEY")]
    yield cancel("constructor")

    # Who has a listing and asks whether it is the same.
    listed = say("GET", LIST, accept="text/plain;q=0.5, application/json")
    yield listed
    found = re.search(rb"(?:ETag|Last-Modified): ([^\r]*)", listed[1])
    known = found[1].decode() if found else "none"
    yield say("GET", LIST, if_none_match=known, if_modified_since=known)

    # One connection.
    first, _, third, *_ = store.place(6, Status.PENDING)
    (refused,) = store.place(1, Status.SHIPPED)
    yield say("GET", LIST, connection=6)
    for order_id, credentials in (
        (first, key), (first, key), (first + 1, key), (refused, key), (third, None), (third, key), (third + 2, key),
    ):  # fmt: skip
        yield say("DELETE", f"{LIST}/{order_id}", credentials, connection=6)
    yield say("GET", LIST, connection=6)

    # Many orders, one, and none.
    many = store.place(1100 - len(store) % 100, Status.PENDING)
    yield say("GET", LIST)
    yield from [say("GET", LIST, accept=accept) for accept in ("text/html, */*", "application/json")]
    yield cancel(many[7])
    yield cancel(store.all()[499].id)
    yield say("GET", LIST, query="limit=100")
    yield from [cancel(many[-1]) for _ in range(2)]
    yield from [cancel(order_id) for order_id in store.place(110, Status.SHIPPED)[:1]]
    yield say("GET", LIST)
    for status in (Status.SHIPPED, Status.PENDING):
        store.clear()
        yield cancel(999, None)
        (only,) = store.place(1, status)
        yield say("GET", LIST)
        yield cancel(only)
    yield say("GET", LIST)
    yield say("GET", LIST, None)
    yield cancel(999)
    yield say("GET", LIST)


def orders_in(answer: bytes) -> object:
    """The JSON of a plain answer."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])
