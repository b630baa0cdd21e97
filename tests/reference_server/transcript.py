"""A long conversation with a service, always the same, in which every fault can show itself."""

from __future__ import annotations

import itertools
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5, sha1, sha256, sha512

from reference_server.api import Service
from reference_server.messages import Request
from reference_server.orders import OrderStore, Status
from reference_server.running import install
from reference_server.seed import initial_orders

KEY = "sk-Reference.Key_42"
VALID = f"Bearer {KEY}"
LIST = "/v1/store/orders"
FURTHER = (
    "version=2",
    "limit=5", "_limit=1", "page%5Blimit%5D=1", "startDate=2999-01-01", "endDate=1900-01-01", "customerId=-1",
    "after=9223372036854775806", "pet=987654", "tenant=none", "format=csv", "format=api", "callback=f",
    "where=%7B%22status%22%3A%22none%22%7D",
)  # fmt: skip
#: Addresses of the listing that begin or end like what is open to all.
BESIDE = ("/health/../v1/store/orders", "/v1/login/../store/orders", "/v1/store/orders;x.js")
SMALL = [11, 12, 13, 15, 16, 17, 20, 21, 22, 119, 1100]
FAR = [-(2**63), -77, -8, 2**32, 2**32 + 5, 2**53 + 1, 10**17 + 1, 2**63 - 1]
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

#: A request in words, and the answer.
Said = tuple[str, bytes]


def served(faults: tuple[str, ...] = (), variants: tuple[str, ...] = ()) -> Service:
    """A service over the seed orders with these changes."""
    service = Service(OrderStore(initial_orders(None)), KEY.encode())
    install(service, faults, variants)
    return service


class Talk:
    """Says requests to a service. What was said is the request in words, and the bytes of its answer but for the
    date."""

    def __init__(self, service: Service) -> None:
        self.store = service.store
        self._service = service
        self._numbers = itertools.count(10_000)

    def say(
        self,
        method: str,
        path: str,
        authorization: str | None = VALID,
        connection: int | None = None,
        query: str = "",
        body: str = "",
        **headers: str,
    ) -> Said:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if authorization is not None:
            given["authorization"] = authorization
        request = Request(method, path, query, given, body.encode(), connection or next(self._numbers))
        response = self._service.answer(request)
        data = re.sub(rb"Date: [^\r]*", b"Date: -", self._service.write(request, response))
        return f"{method} {path} {query} {given} {body}", data + b"(closed)" * response.close

    def cancel(self, order_id: object, authorization: str | None = VALID, **more: str) -> Said:
        return self.say("DELETE", f"{LIST}/{order_id}", authorization, **more)

    def both(self, authorization: str | None, **more: str) -> Iterator[Said]:
        """The listing, and cancels of a pending, a shipped and an absent order."""
        yield self.say("GET", LIST, authorization, **more)
        for order_id in (101, 102, 999):
            yield self.cancel(order_id, authorization, **more)


def who_asks(talk: Talk) -> Iterator[Said]:
    """Who asks: nobody, strangers, keys that are nearly right, or in another place."""
    yield from talk.both(None)
    yield from talk.both(None)
    yield from talk.both("Bearer wrong")
    yield talk.say("GET", LIST, "Bearer wrong", accept="text/html, */*")
    yield from talk.both(None, accept="text/html, */*")
    yield from talk.both(VALID, accept="text/html, */*")
    yield from talk.both(None, accept="application/json")
    yield from talk.both(VALID, cookie="sessionid=0")
    yield talk.say("GET", LIST, None, host="h", referer="http://h/docs")
    near = [
        KEY + "x",
        KEY + ".x",
        KEY + ".",
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
        sha1(KEY.encode(), usedforsecurity=False).hexdigest(),
        b64encode(sha256(KEY.encode()).digest()).decode(),
        sha512(KEY.encode()).hexdigest(),
        f"{KEY}/x",
        KEY.replace(".", "x"),
        "YOUR_API_KEY",
        "eyJh.eyJz.c2ln",
        "a.b.c",
        "None",
    ]
    for wrong in near:
        yield talk.say("GET", LIST, f"Bearer {wrong}")
        yield talk.cancel(102, f"Bearer {wrong}")
    basic = b64encode(f"{KEY}:".encode()).decode()
    for other in (
        KEY,
        f"Basic {basic}",
        f"Token {KEY}",
        f"XBearer {KEY}",
        f"DPoP {KEY}",
        "Bearer Schl\u00c3\u00bcssel",
        f"Bearer {KEY}\u00c3\u00a9",
        "Bearer",
        "Bearer ",
        f"Bearer {KEY} x",
        f"bearer {KEY}",
        f"BEARER {KEY}",
        f"Bearer <{KEY}>",
        f"Bearer {KEY},",
        f"Bearer {KEY[:9]} {KEY[9:]}",
    ):
        yield talk.say("GET", LIST, other)
    for headers in (
        {"x_api_key": KEY},
        {"x_api_token": KEY},
        {"cookie": f"api_key={KEY}"},
        {"cookie": f"Authorization=Bearer {KEY}"},
        {"proxy_authorization": f"Bearer {KEY}"},
    ):
        yield talk.say("GET", LIST, None, **headers)
    for name in ("api_key", "access_token"):
        yield talk.say("GET", LIST, None, query=f"{name}={KEY}")
        yield talk.cancel(999, None, body=f"{name}={KEY}")
    yield talk.cancel(999, None, body=f'{{"token": "{KEY}"}}')
    yield from [
        talk.say("GET", LIST, credentials, connection=5)
        for credentials in (VALID, None, "Bearer wrong", VALID.swapcase(), VALID)
    ]
    yield from [talk.say("GET", LIST, "Bearer wrong") for _ in range(25)]
    yield talk.say("GET", LIST)
    talk.store.place_ids([41], Status.PENDING)
    talk.store.place_ids([42], Status.SHIPPED)
    for order_id in (41, 42):
        yield talk.say("DELETE", f"{LIST}/{order_id}", connection=6)
        yield talk.say("DELETE", f"{LIST}/999", None, connection=6)
    yield from [talk.say("GET", f"/v1/pets/{pet}", credentials) for pet in (1, 4) for credentials in (None, VALID)]


def listing(talk: Talk) -> Iterator[Said]:
    """The listing again and again, by whoever asks and with whatever query."""
    yield from [talk.say("GET", LIST) for _ in range(30)]
    talk.store.place_ids([*SMALL, *FAR], Status.PENDING)
    talk.store.place_ids([-3, 14, 18, 19, 30, 31, 32, 33], Status.SHIPPED)
    yield from [talk.say("GET", LIST) for _ in range(4)]
    yield from [talk.say("GET", LIST, query=query) for query in (*QUERIES, *FURTHER)]
    yield from [talk.say("GET", LIST, accept_language=language) for language in ("ar", "de", "fi", "tr")]
    yield talk.say("GET", LIST, range="items=0-0")
    yield talk.say("GET", LIST, prefer="return=minimal, maxpagesize=1")
    yield talk.say("GET", LIST, x_page_size="1")
    yield talk.say("GET", LIST, if_modified_since="Fri, 01 Jan 2100 00:00:00 GMT")
    yield talk.say("GET", LIST, accept_encoding="gzip, deflate")
    yield talk.say("GET", LIST, accept_charset="utf-16, utf-8;q=0.5")
    yield talk.say("GET", LIST, None, accept_language="fr")
    yield from [
        talk.say("GET", LIST, accept=accept)
        for accept in ("text/html, */*", "application/json", "application/*", "application/x-ndjson")
    ]


def cancelling(talk: Talk) -> Iterator[Said]:
    """Cancels of orders in every state and of what is no id, with listings between."""
    for text in (
        "12abc",
        "12-abc",
        "12.5",
        "12.4",
        "12.json",
        "12%20",
        "abc",
        "undefined",
        "abcdefab-abcd-abcd-abcd-abcdefabcdef",
        "12%00",
        "12%26x",
        "%FF",
        "é",
        "4294967307",
        "%EF%BC%91%EF%BC%92",
        "13%2C15",
        "-11",
        "9007199254740992",
        "4294967301.0",
        "10",
    ):
        yield talk.cancel(text)
        yield talk.say("GET", LIST)
    for order_id in (18, 19, 30, 31):
        yield talk.cancel(order_id)
        yield talk.cancel(order_id)
        yield talk.say("GET", LIST)
        yield talk.cancel(order_id)
    for beyond in (2**63, -(10**30)):
        talk.store.place_ids([-(2**63)], Status.PENDING)
        yield talk.cancel(beyond)
    for order_id in (32, 33):
        yield talk.cancel(order_id, None)
        yield talk.cancel(order_id)
    for absent in ABSENT:
        yield talk.cancel(absent)
    yield talk.cancel(434343)
    talk.store.place_ids([434343], Status.PENDING)
    yield talk.cancel(10**9 + 434343)
    yield talk.cancel(434343)
    for order_id in (*SMALL[:-1], *FAR):
        yield talk.cancel(order_id, None)
        yield talk.cancel(order_id, "Bearer wrong")
        yield talk.say("GET", LIST)
        yield talk.cancel(order_id)
        yield talk.cancel(order_id)
        yield talk.say("GET", LIST)
        yield talk.cancel(order_id)
    yield talk.cancel(1100, content_type="application/json", content_length="0")


def after_others(talk: Talk) -> Iterator[Said]:
    """Cancels that follow a refusal, a look or a stranger's."""
    talk.store.place_ids([51, 52, 53], Status.PENDING)
    for order_id in (99, 51, 51):
        yield talk.say("DELETE", f"{LIST}/{order_id}", connection=7)
    for authorization in (VALID, None, VALID):
        yield talk.cancel(52, authorization)
    yield talk.say("HEAD", f"{LIST}/53")
    yield talk.cancel(53, None)
    yield talk.say("GET", LIST, query="quantity=1")
    yield talk.say("GET", LIST)


def accepting(talk: Talk) -> Iterator[Said]:
    """Cancels by clients that say what they accept."""
    talk.store.place_ids([41, 42], Status.PENDING)
    talk.store.place_ids([43], Status.SHIPPED)
    for order_id in (41, 41, 40, 43):
        yield talk.cancel(order_id, accept="text/html, */*")
    yield talk.say("GET", LIST)
    yield talk.cancel(43, None, accept="application/json")
    for order_id in (42, 43, 44):
        yield talk.cancel(order_id, accept="application/json")
    talk.store.place_ids([45], Status.PENDING)
    yield talk.cancel(45, accept="application/*")
    talk.store.place_ids([46], Status.PENDING)
    for order_id, credentials in ((46, VALID), (46, VALID), (40, VALID), (43, VALID), (40, None), (40, "Bearer wrong")):
        yield talk.cancel(order_id, credentials, accept="application/json, text/plain, */*")


def far_ids(talk: Talk) -> Iterator[Said]:
    """Cancels of orders with ids that a double cannot tell apart, some of them shipped."""
    talk.store.place_ids([-79, 2**53 + 3], Status.SHIPPED)
    for order_id in (-79, 2**53 + 3):
        yield talk.cancel(order_id)

    talk.store.place_ids([2**54 - 1, 2**54, 2**54 + 1], Status.PENDING)
    yield talk.cancel(2**54)
    yield talk.say("GET", LIST)


def disguises(talk: Talk) -> Iterator[Said]:
    """Strangers in disguise."""
    yield talk.say("GET", LIST.replace("orders", "%6Frders"), None)
    yield talk.say("GET", LIST.replace("/orders", "%2Forders"), None)
    yield talk.say("GET", LIST.replace("/orders", "/%256Frders"), None)
    for other in (
        "/V1/store/orders",
        "/%761/store/orders",
        "/v1/./store/orders",
        "/v1/store\\orders",
        "/store/orders",
        *BESIDE,
    ):
        yield talk.say("GET", other, None)
    yield talk.say("GET", "/v2/store/orders", None)
    yield talk.say("OPTIONS", LIST, None)
    yield talk.say("GET", LIST, None, x_original_url="/")
    yield talk.say("GET", LIST, None, x_forwarded_host="localhost")
    yield talk.say("GET", LIST, None, user_agent="Mozilla/5.0")
    yield talk.cancel(999, None, x_http_method_override="GET")
    yield from [talk.cancel(f"999{odd}", None) for odd in ("/", ";x")]
    yield talk.say("GET", LIST, None, if_none_match="*")
    yield talk.say("GET", LIST, None, user_agent="kube-probe/1.29")
    yield talk.cancel(999, cookie="sessionid=0")
    yield talk.say("GET", LIST, None, user_agent="ELB-HealthChecker/2.0")
    yield talk.say("GET", LIST, accept="application/json, text/plain, */*", accept_language="de-DE,de;q=0.9")
    yield talk.cancel(999, accept="application/xml")
    yield talk.say("GET", LIST, None, x_requested_with="XMLHttpRequest")
    yield talk.say("GET", LIST, None, x_forwarded_for="127.0.0.1")
    yield talk.say("GET", LIST, None, query="debug=true")
    yield talk.cancel(999, None, x_forwarded_for="127.0.0.1")
    yield talk.cancel(999, None, query="debug=true")
    yield talk.cancel("999.css", None)
    yield talk.say("GET", LIST, None, content_type="application/json")
    yield talk.say("GET", LIST, None, forwarded="for=127.0.0.1")
    yield talk.say("GET", LIST, None, x_original_uri="/")
    yield talk.say("GET", LIST, None, query="from=/health")
    yield talk.say("GET", LIST, None, x_middleware_subrequest="middleware")


def edges(talk: Talk) -> Iterator[Said]:
    """The ids 0 and -1 and both ends of int64, and queries of cancels."""
    talk.store.place_ids([-1, 0, 52], Status.PENDING)
    talk.store.place_ids([50, 51], Status.SHIPPED)
    yield talk.say("GET", LIST)
    yield talk.cancel(-1)
    yield talk.cancel(0, None)
    yield talk.cancel(2**64 + 1)
    yield talk.cancel(0)
    talk.store.place_ids([0, -(2**63), 2**31, 2**63 - 1], Status.SHIPPED)
    yield talk.say("GET", LIST)
    yield from [talk.cancel(order_id) for order_id in (0, -(2**63), 2**31, 2**63 - 1)]
    yield talk.cancel(51, query="force=true")
    yield talk.cancel(50, body='{"reason": "mistake"}')
    yield talk.cancel(53, None, body="{}")
    yield talk.cancel(53, query="orderId=52")
    yield talk.say("GET", LIST)
    yield talk.say("GET", LIST, query="q=status%3Anone")
    yield talk.cancel(53, body='{"id": 50}')
    many = range(60_000, 60_060)
    talk.store.place_ids([*many], Status.PENDING)
    yield from [talk.cancel(order_id) for order_id in many]


def small_differences(talk: Talk) -> Iterator[Said]:
    """What differs in little: ids, their spelling, header fields, and the words for a key."""
    talk.store.place_ids([54, 55, 56, 57, 7_654_321_098], Status.PENDING)
    yield from [talk.cancel(near) for near in (76_543_210_981, 765_432_109)]
    yield talk.say("GET", LIST)
    yield talk.say("GET", f"{LIST}/54", None)
    yield from [talk.say("GET", LIST, credentials, query="q=1") for credentials in (VALID, None)]
    yield talk.cancel(54, content_length="0")
    yield talk.cancel(7_654_321_098, origin="http://127.0.0.1")
    yield talk.cancel(f"0{57:o}")
    yield talk.say("GET", f"{LIST}/57")
    yield talk.cancel("55%00x")
    yield talk.cancel("57%0Ax")
    yield talk.cancel(56)
    yield talk.cancel(56, None)
    yield talk.say("GET", LIST, None, cookie="cart=4712")
    yield from [talk.say("GET", LIST, credentials, accept="application/xml") for credentials in (VALID, None)]
    yield talk.say("GET", "/v1/pets/1", None, query=f"api_key={KEY}")
    yield talk.say("GET", "/v1/pets/1", "Bearer wrong")
    yield talk.say("GET", "/v1/pets/1", "Basic d3Jvbmc6")
    yield talk.say("GET", "/v1/pets/1/", None)
    yield talk.say("GET", "/v1/pets/1", None, accept="text/html")
    yield talk.say("GET", LIST, "Bearer wrong", accept="text/html")
    yield talk.say("GET", "/v1/pets/1", None, **{"x-forwarded-for": "127.0.0.1"})
    yield from [
        talk.say("GET", LIST, f"Bearer {word}") for word in ("".join(sorted(KEY)), "constructor", "API_KEY", "O'Brien")
    ]
    yield from [talk.cancel(name) for name in ("constructor", "O%27Brien")]
    talk.store.place_ids([61, -61], Status.PENDING)
    talk.store.place_ids([62, 61 + 2**32], Status.SHIPPED)
    yield talk.cancel(61)
    yield talk.say("GET", LIST)
    yield from [talk.cancel(62) for _ in range(6)]


def conditional(talk: Talk) -> Iterator[Said]:
    """Who has a listing and asks whether it is the same."""
    listed = talk.say("GET", LIST, accept="text/plain;q=0.5, application/json")
    yield listed
    found = re.search(rb"(?:ETag|Last-Modified): ([^\r]*)", listed[1])
    known = found[1].decode() if found else "none"
    yield talk.say("GET", LIST, if_none_match=known, if_modified_since=known)


def one_connection(talk: Talk) -> Iterator[Said]:
    """What follows each other on one connection."""
    first, _, third, *_ = talk.store.place(6, Status.PENDING)
    (refused,) = talk.store.place(1, Status.SHIPPED)
    yield talk.say("GET", LIST, connection=6)
    for order_id, credentials in (
        (first, VALID), (first, VALID), (first + 1, VALID), (refused, VALID), (third, None), (third, VALID),
        (third + 2, VALID),
    ):  # fmt: skip
        yield talk.say("DELETE", f"{LIST}/{order_id}", credentials, connection=6)
    yield talk.say("GET", LIST, connection=6)


def malformed_ids(talk: Talk) -> Iterator[Said]:
    """Ids that are none, or other notations of one, what follows them, and other paths and tokens that are odd."""
    talk.store.place_ids([71], Status.SHIPPED)
    talk.store.place_ids([72], Status.PENDING)
    yield from [talk.cancel(text) for text in ("071", 71, "--71", "71%C2%B2")]
    yield talk.cancel("abc", connection=8)
    yield from [talk.say("GET", LIST, credentials, connection=8) for credentials in (None, VALID)]
    yield talk.cancel("abc")
    yield from [talk.cancel(72) for _ in range(2)]
    yield from [talk.cancel(text, None) for text in ("999/x", "/999")]
    yield talk.say("GET", LIST, None, if_modified_since="Sat, 01 Jan 2028 00:00:00 GMT")
    yield talk.say("GET", LIST, "Bearer Schl\u00fcssel")
    yield talk.say("GET", LIST, None, accept="application/json, application/problem+json")
    for credentials in (f"Token {KEY}", f"Bearer {KEY},"):
        (order_id,) = talk.store.place(1, Status.PENDING)
        yield from [talk.cancel(one, credentials) for one in (71, order_id)]
        yield talk.cancel(order_id)


def stores_of_all_sizes(talk: Talk) -> Iterator[Said]:
    """Many orders, one, and none."""
    many = talk.store.place(1100 - len(talk.store) % 100, Status.PENDING)
    yield talk.say("GET", LIST)
    yield from [talk.say("GET", LIST, accept=accept) for accept in ("text/html, */*", "application/json")]
    yield talk.cancel(many[7])
    yield talk.cancel(talk.store.all()[499].id)
    yield talk.say("GET", LIST, query="limit=100")
    yield from [talk.cancel(many[-1]) for _ in range(2)]
    yield from [talk.cancel(order_id) for order_id in talk.store.place(110, Status.SHIPPED)[:1]]
    yield from [talk.say("GET", LIST, query=query) for query in ("", "limit=100")]
    for status in (Status.SHIPPED, Status.PENDING):
        talk.store.clear()
        yield talk.cancel(999, None)
        (only,) = talk.store.place(1, status)
        yield talk.say("GET", LIST)
        yield talk.cancel(999)
        yield talk.cancel(only)
    yield talk.say("GET", LIST)
    yield talk.say("GET", LIST, None)
    yield talk.cancel(999)
    yield talk.say("GET", LIST)


PARTS = (
    who_asks,
    listing,
    cancelling,
    accepting,
    far_ids,
    disguises,
    edges,
    small_differences,
    conditional,
    one_connection,
    after_others,
    malformed_ids,
    stores_of_all_sizes,
)


def transcript(service: Service) -> list[Said]:
    """The whole conversation."""
    return list(conversation(service))


def conversation(service: Service) -> Iterator[Said]:
    """All parts of it, one after the other: each goes on with the orders that those before it have left."""
    talk = Talk(service)
    for part in PARTS:
        yield from part(talk)


def orders_in(answer: bytes) -> object:
    """The JSON of a plain answer."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])
