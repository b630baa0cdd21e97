"""The judges of every exchange: each right, wrong, and not about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
from built import LIST, answered, broken, cancel
from patience import within

from conformance import outcomes, verify
from conformance.contract import catalogue
from conformance.contract.traces import SEARCHED
from conformance.judging import facts, judges, universal
from conformance.judging.judges import NOT_APPLICABLE, Finding
from conformance.judging.observer import Judge
from conformance.transport.answer import Answer
from conformance.transport.evidence import PREFLIGHT, Exchange, Trouble
from conformance.transport.request import NOBODY, Allowed, Credential, Request
from conformance.verdict import Status

PET = Request("GET", "/pets/1", NOBODY, allowed=Allowed.OPEN)
STRANGER = Request("GET", "/store/orders", NOBODY)
ODD = cancel("abc", allowed=Allowed.OPEN)
LONG = Request("GET", "/store/orders", Credential("a long key", (("Authorization", "Bearer " + "x" * 5000),)))
FORM = Request("DELETE", "/store/orders/1", NOBODY, body=b"api_key=x", allowed=Allowed.OPEN)
ELSEWHERE = Request("GET", "/", NOBODY, allowed=Allowed.OPEN, whole=True)
AGAIN = cancel(1, allowed=Allowed.ANY_4XX)
BEARER = ("WWW-Authenticate", "Bearer")
CHUNKED, LENGTH = ("Transfer-Encoding", "chunked"), ("Content-Length", "2")


def error(number: int = 401, **changed: Any) -> bytes:
    return json.dumps({"code": "c", "message": "m", "status": number, **changed}).encode()


def say(finding: Finding) -> str:
    """A finding as these tests write it."""
    return "not about" if finding is NOT_APPLICABLE else "met" if finding is None else str(finding)


SILENT = answered(LIST, None, trouble=Trouble.TIMEOUT)
CASES: list[tuple[str, Answer, str]] = [
    # AUTH-7
    ("AUTH-7", answered(STRANGER, 401, error(), BEARER), "met"),
    ("AUTH-7", answered(STRANGER, 401, error(), ("www-authenticate", 'bearer realm="a, b"')), "met"),
    ("AUTH-7", answered(STRANGER, 401, error(), ("WWW-Authenticate", 'Basic realm="x", Bearer')), "met"),
    ("AUTH-7", answered(STRANGER, 401, error(), ("WWW-Authenticate", "Negotiate"), BEARER), "met"),
    ("AUTH-7", answered(STRANGER, 401, error(), ("WWW-Authenticate", "Bearer ,Negotiate YWJj==, Bearer")), "met"),
    (
        "AUTH-7",
        answered(STRANGER, 401, error(), ("WWW-Authenticate", 'Bearer realm = "a\\"b,", error=x , scope="",')),
        "met",
    ),
    ("AUTH-7", answered(STRANGER, 401, error(), ("WWW-Authenticate", 'Bearer realm="x" error="y"')), "not a list of"),
    (
        "AUTH-7",
        answered(STRANGER, 401, error(), ("WWW-Authenticate", 'Bearer realm="x"None')),
        "not a list of challenges",
    ),
    ("AUTH-7", answered(STRANGER, 401, error(), ("WWW-Authenticate", 'Bearer realm="x')), "not a list of challenges"),
    ("AUTH-7", answered(STRANGER, 401, error()), "a 401 without WWW-Authenticate"),
    (
        "AUTH-7",
        answered(STRANGER, 401, error(), ("WWW-Authenticate", 'Basic realm="Bearer, Bearer"')),
        "WWW-Authenticate: ",
    ),
    ("AUTH-7", answered(STRANGER, 401, error(), ("WWW-Authenticate", "BearerX")), "WWW-Authenticate: 'BearerX'"),
    ("AUTH-7", answered(LIST, 200, b"[]"), "not about"),
    ("AUTH-7", answered(PET, 401, error()), "not about"),
    ("AUTH-7", SILENT, "not about"),
    # LIST-1
    ("LIST-1", answered(LIST, 200, b"[]"), "met"),
    ("LIST-1", answered(LIST, 200, b"[]", media="APPLICATION/json;charset=utf-8"), "met"),
    ("LIST-1", answered(LIST, 200, b"[]", media="text/json"), "its media type is 'text/json', not application/json"),
    *[
        ("LIST-1", answered(LIST, 200, b"[]", *(("Content-Type", each) for each in sent), media=None), said)
        for sent, said in (
            (("application/json", "application/json"), "met"),
            (("application/json; charset=utf-8", "application/JSON"), "met"),
            (('application/json; profile="a;b, text/html"; charset=utf-8',), "met"),
            (('application/json; profile="a\\", text/html',), "met"),
            (("application/json;;", ""), "met"),
            (("application/json", "text/html"), "is 'application/json, text/html', not application/json"),
            (("application/json; charset=utf-8", "text/html"), "a listing: its media type is 'application/json; ch"),
            (("text/html; a", "application/json"), "not application/json"),
            (("application/json; q=1, text/html",), "not application/json"),
        )
    ],
    ("LIST-1", answered(LIST, 200, b"[]", media=None), "it has no Content-Type, where application/json is due"),
    ("LIST-1", answered(LIST, 200, b"[", media="application/json"), "a listing: the body is not a JSON text: "),
    ("LIST-1", answered(LIST, 200, b"{}"), "a listing: the body is {}, not an array"),
    ("LIST-1", answered(LIST, 401, error()), "not about"),
    ("LIST-1", answered(LIST, 206, b"[]"), "not about"),
    ("LIST-1", answered(PET, 200, b"{}"), "not about"),
    # LIST-2, LIST-4, LIST-10, LIST-11
    ("LIST-2", answered(LIST, 200, b'[{"id": 1}]'), "met"),
    ("LIST-2", answered(LIST, 200, b'[{"id": "1"}]'), "element 0: id is the string '1', not an integer"),
    ("LIST-2", answered(LIST, 200, b"{}"), "not about"),
    ("LIST-2", answered(LIST, 200, b"["), "not about"),
    ("LIST-2", answered(LIST, 500, b"[3]"), "not about"),
    ("LIST-4", answered(LIST, 200, b'[{"id": 1}, {"id": 2}]'), "met"),
    ("LIST-4", answered(LIST, 200, b'[{"id": 1}, {"id": 1}]'), "id 1 occurs more than once in the listing"),
    ("LIST-4", answered(LIST, 200, b"null"), "not about"),
    ("LIST-10", answered(LIST, 200, b'[{"shipDate": "2026-11-21T07:00:00Z"}]'), "met"),
    ("LIST-10", answered(LIST, 200, b'[{"shipDate": "soon"}]'), "met"),  # LIST-2 has that
    ("LIST-10", answered(LIST, 200, b'[{"shipDate": "2026-11-21T07:00"}]'), "which is not RFC 3339"),
    ("LIST-11", answered(LIST, 200, b'[{"id": 1, "weight": 1.0}]'), "met"),
    ("LIST-11", answered(LIST, 200, b'[{"id": 1.0}]'), "element 0: id is written 1.0"),
    # CANCEL-2
    ("CANCEL-2", answered(cancel(1), 204, via="wire"), "met"),
    (
        "CANCEL-2",
        answered(AGAIN, 204, extra=b"xx", via="wire"),
        "2 bytes after the header section of the 204: 'xx'",
    ),
    ("CANCEL-2", answered(AGAIN, 204, extra=b"x", via="wire"), "1 byte after the header section of the 204: 'x'"),
    ("CANCEL-2", answered(cancel(1), 204), "not about"),  # a client hides them
    ("CANCEL-2", answered(cancel(1), 404, error(404), extra=b"xx", via="wire"), "not about"),
    # CANCEL-12
    ("CANCEL-12", answered(cancel(1), 204), "met"),
    ("CANCEL-12", answered(cancel(1), 204, b"", ("content-length", "0")), "a 204 with Content-Length: '0'"),
    (
        "CANCEL-12",
        answered(cancel(1), 204, b"", ("Transfer-Encoding", "chunked")),
        "a 204 with Transfer-Encoding: 'chunked'",
    ),
    ("CANCEL-12", answered(cancel(1), 404, error(404), ("Content-Length", "1")), "not about"),
    # ERR-1
    ("ERR-1", answered(STRANGER, 401, error()), "met"),
    ("ERR-1", answered(cancel(1), 404, error(404, further=None)), "met"),
    ("ERR-1", answered(cancel(1), 404), "a 404: it has no Content-Type and no body, where application/json is due"),
    ("ERR-1", answered(cancel(1), 404, b"{}"), "a 404: code is missing; message is missing; status is missing"),
    ("ERR-1", answered(STRANGER, 401, error(), media="text/plain"), "not application/json"),
    (
        "ERR-1",
        answered(STRANGER, 401, error(), ("Content-Type", "text/html"), media="application/json; charset=utf-8"),
        "not application/json",
    ),
    ("ERR-1", answered(AGAIN, 404, b"{}"), "code is missing"),
    ("ERR-1", answered(ODD, 404, b"<html>"), "not about"),
    ("ERR-1", answered(cancel(1), 409, b"<html>"), "not about"),
    ("ERR-1", answered(PET, 404, b"<html>"), "not about"),
    # ERR-2
    ("ERR-2", answered(STRANGER, 401, error()), "met"),
    ("ERR-2", answered(STRANGER, 401, error(401, status=401.0)), "met"),
    ("ERR-2", answered(STRANGER, 401, error(404)), "a 401 whose body says status 404"),
    ("ERR-2", answered(STRANGER, 401, error(status="404")), "not about"),
    ("ERR-2", answered(STRANGER, 401, b"x"), "not about"),
    ("ERR-2", answered(cancel(1), 409, error(404)), "not about"),
    # ERR-3
    ("ERR-3", answered(STRANGER, 401, error()), "met"),
    ("ERR-3", answered(STRANGER, 401, error(code="", message=" ")), "a 401 whose code and message is empty"),
    ("ERR-3", answered(STRANGER, 401, error(code=5)), "met"),  # ERR-1 has that
    ("ERR-3", answered(STRANGER, 401, b"[]"), "not about"),
    # ERR-4
    ("ERR-4", answered(STRANGER, 401, error()), "met"),
    (
        "ERR-4",
        answered(LIST, 500, b"Traceback (most recent call last):\n", media="text/plain"),
        "500 that shows a stack",
    ),
    ("ERR-4", answered(LIST, 500, error(message="\n\tat a.b.C.d(C.java:3)")), "a stack trace"),
    ("ERR-4", answered(LIST, 500, error(message="goroutine 7 [running]")), "a stack trace"),
    ("ERR-4", answered(LIST, 500, error(message="see /home/app/x.py")), "a 500 that shows a file path: '/home/app"),
    ("ERR-4", answered(LIST, 500, error(message="C:\\inetpub\\x.cs")), "a file path"),
    ("ERR-4", answered(cancel(1), 404, error(message="no /v1/store/orders/1, look at 10:30 a.m.")), "met"),
    ("ERR-4", answered(cancel(1), 404, error(message="see https://example.com/home/x")), "met"),
    ("ERR-4", answered(LIST, 200, b'["/home/app/x.py"]'), "not about"),
    # ERR-5
    ("ERR-5", answered(cancel(1), 409), "met"),
    ("ERR-5", answered(cancel(1), 409, b"3"), "met"),
    ("ERR-5", answered(cancel(1), 409, b"shipped"), "a 409: the body is not a JSON text"),
    ("ERR-5", answered(cancel(1), 409, b"{}", media="text/html"), "a 409: its media type is 'text/html'"),
    ("ERR-5", answered(cancel(1), 404, b"x"), "not about"),
    ("ERR-5", answered(ODD, 409, b"x"), "not about"),
    # HTTP-1
    *[("HTTP-1", answered(LIST, status), "met") for status in (200, 401)],
    *[("HTTP-1", answered(cancel(1), status), "met") for status in (204, 401, 404, 409)],
    *[
        ("HTTP-1", answered(LIST, status), ", where listOrders lists 200, 401")
        for status in (204, 301, 400, 403, 404, 409, 500)
    ],
    *[
        ("HTTP-1", answered(cancel(1), status), "lists 204, 401, 404, 409")
        for status in (200, 202, 302, 400, 403, 410, 500)
    ],
    *[("HTTP-1", answered(LIST, status, b"", ("Retry-After", "1")), "met") for status in (429, 503)],
    *[("HTTP-1", answered(LIST, status), "not about") for status in (502, 503, 504, 522, 530)],
    ("HTTP-1", answered(LIST, 429), "met"),
    ("HTTP-1", answered(LIST, 408), "408, where"),
    ("HTTP-1", answered(cancel(1), 408, crowded=True), "not about"),
    ("HTTP-1", answered(LIST, 500, b"", ("Retry-After", "1")), "500, where"),
    *[("HTTP-1", answered(AGAIN, status), "met") for status in (204, 400, 404, 409, 410, 422)],
    *[("HTTP-1", answered(AGAIN, status), "where cancelOrder lists") for status in (200, 302, 500)],
    ("HTTP-1", answered(ODD, 400), "not about"),
    ("HTTP-1", answered(PET, 500), "not about"),
    ("HTTP-1", SILENT, "not about"),
    # HTTP-2
    ("HTTP-2", answered(LIST, 200, b"[]"), "met"),
    ("HTTP-2", answered(LIST, None, trouble=Trouble.BROKEN, detail="cut"), "no complete HTTP response: cut"),
    ("HTTP-2", answered(cancel(1), None, trouble=Trouble.BROKEN, detail="cut"), "no complete HTTP response: cut"),
    ("HTTP-2", answered(LIST, 200, b"[]", extra=b"xx"), "2 bytes after the end of the 200: 'xx'"),
    ("HTTP-2", answered(cancel(1), 204, extra=b"xx"), "met"),  # CANCEL-2 has that
    ("HTTP-2", answered(LIST, 200, b"[]", CHUNKED, http_version="HTTP/1.1"), "met"),
    ("HTTP-2", answered(LIST, 200, b"[]", LENGTH, http_version="HTTP/1.0"), "met"),
    ("HTTP-2", answered(LIST, 200, b"[]", LENGTH, CHUNKED, http_version="HTTP/1.1"), "both Content-Length: '2' and"),
    (
        "HTTP-2",
        answered(cancel(1), 404, b"{}", CHUNKED, LENGTH, http_version="HTTP/1.1"),
        "a 404 with both Content-Len",
    ),
    ("HTTP-2", answered(LIST, 200, b"[]", CHUNKED, http_version="HTTP/1.0"), "in HTTP/1.0 with Transfer-Encoding: 'ch"),
    ("HTTP-2", answered(LIST, 200, b"[]", LENGTH, CHUNKED, http_version="HTTP/2"), "met"),
    ("HTTP-2", answered(LIST, 200, b"[]", LENGTH, http_version="HTTP/1.2"), "met"),
    *[
        ("HTTP-2", answered(cancel(1), 204, http_version=version), f"a 204 whose status line has {version}, over")
        for version in ("HTTP/0.9", "HTTP/2.0", "HTTP/3.7")
    ],
    ("HTTP-2", answered(cancel(1), 204, b"", CHUNKED, LENGTH, http_version="HTTP/1.1"), "met"),  # CANCEL-12 has that
    ("HTTP-2", answered(ODD, 400, b"{}", LENGTH, CHUNKED, http_version="HTTP/1.1"), "both Content-Length: '2' and"),
    ("HTTP-2", answered(ODD, 400, b"{}", extra=b"xx"), "2 bytes after the end of the 400: 'xx'"),
    ("HTTP-2", answered(PET, 200, b"{}"), "met"),
    ("HTTP-2", answered(PET, None, trouble=Trouble.BROKEN), "not about"),
    ("HTTP-2", answered(ODD, None, trouble=Trouble.BROKEN, http_version="HTTP/1.1", detail="cut"), "response: cut"),
    ("HTTP-2", answered(LONG, None, trouble=Trouble.BROKEN, http_version="HTTP/1.1"), "not about"),
    ("HTTP-2", answered(LONG, 400, b"{}", extra=b"xx"), "2 bytes after"),
    ("HTTP-2", answered(FORM, None, trouble=Trouble.BROKEN, http_version="HTTP/1.1"), "not about"),
    ("HTTP-2", answered(ELSEWHERE, None, trouble=Trouble.BROKEN, http_version="HTTP/1.1"), "not about"),
    ("HTTP-2", answered(ELSEWHERE, 200, b"{}", LENGTH, CHUNKED, http_version="HTTP/1.1"), "not about"),
    *[
        ("HTTP-2", answered(LIST, None, trouble=trouble), "not about")
        for trouble in Trouble
        if trouble != Trouble.BROKEN
    ],
    # PET-2
    ("PET-2", answered(PET, 200, b"{}"), "met"),
    ("PET-2", answered(PET, 404, b"", ("Deprecation", "@1688169599")), "met"),
    ("PET-2", answered(PET, 404, b"", ("Deprecation", "@1688169599;x=1; y")), "met"),
    ("PET-2", answered(PET, 404, b"", ("Deprecation", "@1;a=" + " " * 90_000 + '"')), "not a structured date"),
    ("PET-2", answered(PET, 200, b"", ("Sunset", "Sat, 21 Nov 2026 07:00:00 GMT")), "met"),
    ("PET-2", answered(PET, 200, b"", ("Deprecation", "true")), "Deprecation: 'true', not a structured date"),
    ("PET-2", answered(PET, 200, b"", ("Sunset", "2026-11-21")), "Sunset: '2026-11-21', not an HTTP date"),
    ("PET-2", answered(PET, 200, b"", ("Sunset", "Sun, 21 Nov 2026 07:00:00 GMT")), "not an HTTP date"),
    ("PET-2", answered(PET, 200, b"", ("Sunset", "Sat, 31 Nov 2026 07:00:00 GMT")), "not an HTTP date"),
    ("PET-2", answered(LIST, 200, b"[]", ("Sunset", "soon")), "not an HTTP date"),
    ("PET-2", answered(LIST, 200, b"[]"), "not about"),
    ("PET-2", answered(PET, None, trouble=Trouble.TIMEOUT), "not about"),
]


@pytest.mark.parametrize(
    ("requirement", "answer", "expected"), CASES, ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)]
)
def test_judges(requirement: str, answer: Answer, expected: str) -> None:
    found = say(judges.JUDGES[requirement](answer))
    assert found == expected if expected in ("met", "not about") else expected in found


@pytest.mark.parametrize("answer", [case[1] for case in CASES])
def test_who_is_not_asked_would_have_said_nothing(answer: Answer) -> None:
    """Not every judge is asked about every status."""
    noted = {requirement: say(finding) for requirement, finding in answer.exchange.findings.items()}
    found = {requirement: say(judge(answer)) for requirement, judge in judges.JUDGES.items()}
    assert noted == {requirement: said for requirement, said in found.items() if said != "not about"}


def test_every_judge_was_seen_right_wrong_and_silent() -> None:
    seen: dict[str, set[str]] = {}
    for requirement, _, expected in CASES:
        seen.setdefault(requirement, set()).add(expected if expected in ("met", "not about") else "wrong")
    assert seen.keys() == judges.JUDGES.keys()
    for requirement, kinds in seen.items():
        assert kinds >= {"met", "wrong"}, requirement


def test_a_key_in_an_error_is_noticed() -> None:
    from built import KEY

    answer = answered(STRANGER, 401, error(message=f"not {KEY}"))
    assert answer.exchange.findings["ERR-4"] == "a 401 that repeats the API key"
    assert KEY not in json.dumps(vars(answer.exchange))


TRACES = [
    # Java, Kotlin, Scala
    {
        "stackTrace": [
            {"methodName": "cancel", "fileName": "OrderService.java", "lineNumber": 42, "className": "Orders"}
        ]
    },
    {"cause": {"stackTrace": [{"className": "a.B", "methodName": "c", "fileName": None, "lineNumber": -2}]}},
    "com.shop.OrderService.cancel(OrderService.java:42)",
    "java.lang.NullPointerException\n\tat com.shop.OrderService.cancel(Unknown Source)",
    "\tat com.shop.Main.main(Native Method)",
    "Caused by: java.lang.RuntimeException",
    "nested exception. Caused by: org.postgresql.util.PSQLException: ERROR",
    "\tat com.shop.OrderService$cancel$1.invokeSuspend(OrderService.kt)",
    "cancel (Orders.kt:42)",
    "Orders.scala:42",
    # Rust, Go, Elixir, Ruby
    "thread 'main' panicked at src/orders.rs:42:9: called `Option::unwrap()` on a `None` value",
    "thread 'main' panicked at 'no such order', src/orders.rs:42:9",
    "   at ./src/orders.rs:42:9",
    "main.(*Store).Cancel(0xc000)\n\t\t/go/src/orders/store.go:42 +0x1d",
    "orders/store.go:42: index out of range",
    "(orders 0.1.0) lib/orders/store.ex:42: Orders.Store.cancel/1",
    "app/models/order.rb:42:in 'Order#cancel'",
    # .NET
    "   at Orders.Store.Cancel(Int64 id) in D:\\build\\Orders\\Store.cs:line 42",
    "   at Orders.Store.Cancel(Int64 id)\r\n   at lambda_method(Closure , Object )\r\n",
    "NullReferenceException: x\r\n   at A.B.C(Int64 id)\r\n   at A.B.<D>d__4.MoveNext()",
    ["at A.B`1.C(Int64 id)", "at A.B.D[T](List`1 all)"],
    # Node
    "TypeError: x is undefined\n    at cancel (src/orders.js:42:9)",
    "    at cancel (C:\\app\\orders.js:42:9)",
    "    at Object.<anonymous> (/data/orders.mjs:42:9)",
    "node_modules/express/lib/router/index.js:284:15",
    "src/orders.ts:42:9",
    # PHP, Python
    "PDOException: SQLSTATE[HY000] in Order.php on line 42",
    "<b>Warning</b>: x in <b>Order.php</b> on line <b>42</b>",
    "#0 Order.php(42): cancel()\n#1 {main}",
    {"exception": "PDOException", "file": "Order.php", "line": 42},
    {"trace": [{"file": "vendor/laravel/src/Router.php", "function": "run", "class": "Router"}]},
    {"frames": [{"filename": "app/orders.py", "lineno": 42, "function": "cancel"}]},
    "  File 'orders.py', line 42, in cancel",
]
PATHS = [
    "cannot open /data/app/orders.db",
    "cannot open /data/orders.db",
    "cannot open /data/attributes.db",
    "cannot open /mnt/efs/orders/config.yml",
    "in /builds/shop/orders/store.c",
    "at /nix/store/abc-orders/bin/orders",
    "see /go/src/orders",
    "/workspaces/orders/x.rb",
    "file:///app/orders.js",
    "in /app/orders/store.c",
    "in /app/orders.c",
    "in /home/deploy/orders",
    "File:///C:/orders.js",
]
HARMLESS = [
    "Order 42 at 10:42",
    "Order 42 was cancelled at 2026-11-21T10:42:09.123456Z (UTC+01:00).",
    "see https://shop.example.rs:8443/help and http://shop.com.py:443, or http://orders.java.example/data/orders.db",
    "see https://example.com/mnt/efs/orders, /v1/store/orders/42 or /store/orders",
    "ask at the shop (open 10:42)\nat the shop (closed 18:00)",
    "at orders.store(closed)",
    "Caused by: an order that has shipped",
    "go, line 42",
    "the file orders.csv, line 42",
    "#0 (42), #1 (43)",
    "order 42:9",
    "Unknown Source, Native Method",
    "Read at /help:12:30, or ask at helpdesk(ext:12:3)",
    "no panic: it was there before",
    {"type": "/code/UNAUTHORIZED", "links": {"help": "/app/help", "self": "/home/index", "more": "/opt/in"}},
    "panicked at 10:42",
    "/data, /mnt/ and /builds",
    "under /data/ or /go/help/errors",
    {"source": {"pointer": "/data/attributes/orderId"}, "detail": "/data/0/id", "file": None, "line": 3},
    {"file": "orders.csv", "line": 42},
    {"method": "DELETE", "path": "/v1/store/orders/42", "line": 42},
    {"className": "Order", "methodName": "cancel"},
    {"file": "store.py", "size": 42},
]


@pytest.mark.parametrize("shown", TRACES, ids=str)
def test_stack_traces(shown: Any) -> None:
    assert "shows a stack trace: " in say(judges.error_reveals(answered(LIST, 500, error(500, detail=shown))))
    if isinstance(shown, str):
        page = answered(LIST, 500, f"<pre>{shown}</pre>".encode(), media="text/html")
        assert "shows a stack trace: " in say(judges.error_reveals(page)) or shown.startswith(" ")


@pytest.mark.parametrize("shown", PATHS)
def test_file_paths(shown: str) -> None:
    assert "shows a file path: " in say(judges.error_reveals(answered(LIST, 500, error(500, message=shown))))


@pytest.mark.parametrize("shown", HARMLESS, ids=str)
def test_what_is_neither(shown: Any) -> None:
    assert judges.error_reveals(answered(cancel(42), 404, error(404, detail=shown))) is None


@pytest.mark.parametrize("base", ["/app/v1", "/srv/v1", "/data/shop/v1", "/opt/gr%C3%B6%C3%9Fe/v1", "/v1"])
@pytest.mark.parametrize("segment", ["42", "42abc", "%00", "%F0%28%8C%28", "42%27"])
def test_the_path_of_the_request_may_be_repeated(base: str, segment: str) -> None:
    request, url = cancel(segment, allowed=Allowed.OPEN), f"http://127.0.0.1{base}/store/orders/{segment}"
    path = url.removeprefix("http://127.0.0.1")
    for text in (path, f"DELETE {path}", f"no order at {unquote(path)}.", path.removesuffix(segment) + "?", url):
        assert judges.error_reveals(answered(request, 404, error(404, path=text), url=url)) is None, text
    for text in (f"/home{path}", f"{path} is in /srv/orders.db", f"/opt{path}.py", f"/var/log/app.log {path}"):
        assert judges.error_reveals(answered(request, 404, error(404, path=text), url=url)) is not None, text


def test_a_gateway_proves_neither_way() -> None:
    exchange = answered(LIST, 502).exchange
    assert "HTTP-1" not in exchange.findings
    assert "answered 502, which proves neither way" in exchange.undecided["HTTP-1"]
    assert answered(LIST, 503, b"", ("Retry-After", "1")).exchange.undecided == {}


def test_one_body_is_judged_once_and_the_same() -> None:
    judge = Judge()
    answers = [answered(LIST, 200, b'[{"id": "x"}]') for _ in range(2)]
    for answer in answers:
        answer.exchange.findings.clear()
        judge(answer)
    assert answers[0].exchange.findings == answers[1].exchange.findings
    assert broken(answers[1].exchange) == {"LIST-2"}


def test_the_same_body_under_another_status_is_another_matter() -> None:
    judge = Judge()
    listed, refused = answered(LIST, 200, b'[{"id": "x"}]'), answered(LIST, 500, b'[{"id": "x"}]')
    for answer in (listed, refused):
        answer.exchange.findings.clear()
        judge(answer)
    assert "LIST-2" in broken(listed.exchange)
    assert "LIST-2" not in refused.exchange.findings


# --- folding


def numbered(*answers: Answer) -> Sequence[Exchange]:
    for number, answer in enumerate(answers):
        answer.exchange.number = number
    return [answer.exchange for answer in answers]


def test_one_wrong_exchange_is_enough() -> None:
    exchanges = numbered(answered(LIST, 200, b"[]"), answered(LIST, 500), answered(LIST, 502), answered(LIST, 403))
    found = universal.fold("HTTP-1", "the service must do so", exchanges)
    assert found is not None
    assert (found.id, found.status, found.exchanges) == ("every_exchange", Status.FAILED, (1, 3))
    told = (
        "(in 2 of the 4 exchanges that this is about, not every time: the same request was also answered as it should"
    )
    assert found.message.endswith(f"{told} be)")
    assert found.failure is not None
    assert (found.failure.expected, found.failure.exchange) == ("the service must do so", 1)


@pytest.mark.parametrize(
    ("ids", "certain"),
    [
        ("9223372036854776000", False),
        ("-9223372036854776000", False),
        ("9223372036854775808", False),
        ("9.223372036854776e18", False),
        ("1e30", True),
        ('"9223372036854775808"', True),
        ('9223372036854775808},{"petId":true', True),
    ],
)
def test_an_id_that_a_double_made_may_be_a_consequence(ids: str, certain: bool) -> None:
    """LIST-8 owns what became of the ids at the ends of int64; what else is no Order is LIST-2's in any case."""
    found = universal.fold("LIST-2", "x", numbered(answered(LIST, 200, f'[{{"id":{ids}}}]'.encode())))
    assert found is not None
    assert (found.status, found.certain) == (Status.FAILED, certain)


def test_connections_that_are_dropped_now_and_then_may_meet_a_limit() -> None:
    """A proxy may hang up on who opens too many in a second; nothing in an answer tells."""
    advice = "if a limit on connections is the cause, --rate-limit keeps a run below it"
    met, cut = answered(LIST, 200, b"[]"), {"trouble": Trouble.BROKEN, "detail": "cut"}

    def told(*answers: Answer) -> str:
        found = universal.fold("HTTP-2", "x", numbered(*answers))
        assert found is not None
        return found.message

    assert advice in told(answered(LIST, None, **cut), met)
    assert advice not in told(answered(LIST, None, **cut), answered(STRANGER, 401, error()))
    assert advice not in told(answered(LIST, None, http_version="HTTP/1.1", **cut), met)


def test_how_often_a_requirement_is_broken() -> None:
    wrong, met, other = answered(LIST, 500), answered(LIST, 200, b"[]"), answered(STRANGER, 401, error())

    def told(*answers: Answer) -> str:
        found = universal.fold("HTTP-1", "x", numbered(*answers))
        assert found is not None
        return found.message.rpartition(" (")[2]

    assert told(wrong) == "in the only exchange)"
    assert told(wrong, wrong) == "in all 2 exchanges)"
    assert told(wrong, other) == "in 1 of the 2 exchanges that this is about, not in others)"
    assert told(answered(cancel(1), 500), wrong, met).startswith(
        "in 2 of the 3 exchanges that this is about, not every time: the same"
    )
    assert told(wrong, other, met).startswith(
        "in 1 of the 3 exchanges that this is about, not every time: the same request"
    )
    wrong.exchange.crowded = True
    assert told(wrong, met).endswith("was also answered as it should be when no other was under way)")
    met.exchange.crowded = True
    assert told(wrong, met).endswith("as it should be)")
    # What a cancel did, what the request may be answered, and what is in the store make another answer right.
    assert (
        told(answered(cancel(1), 400), answered(cancel(1, allowed=Allowed.ANY_4XX), 400))
        == "in 1 of the 2 exchanges that this is about, not in others)"
    )
    assert told(answered(cancel(1), 200), answered(cancel(1), 404, error(status=404))).endswith("not in others)")
    assert told(answered(cancel(1), 500), answered(cancel(1), 404, error(status=404))).endswith("as it should be)")


def test_what_the_store_may_have_changed_is_not_now_and_then() -> None:
    """An order that had shipped is gone later; and a condition asks for what is in the store."""
    gone, shipped = answered(cancel(1), 404, error(status=404)), answered(cancel(1), 409, error(status=409))
    gone.exchange.findings["ERR-4"], shipped.exchange.findings["ERR-4"] = "it shows a trace", None
    found = universal.fold("ERR-4", "x", numbered(gone, shipped))
    assert found is not None
    assert found.message.endswith("(in 1 of the 2 exchanges that this is about, not in others)")
    conditional = replace(LIST, headers=(("If-None-Match", '"1"'),))
    found = universal.fold("HTTP-1", "x", numbered(answered(conditional, 500), answered(conditional, 200, b"[]")))
    assert found is not None
    assert found.message.endswith(
        ', asked with If-None-Match: "1" (in 1 of the 2 exchanges that this is about, not in others)'
    )


def test_a_breach_names_the_header_fields_that_only_its_request_had() -> None:
    met, wrong = answered(LIST, 200, b"[]"), answered(replace(LIST, headers=(("Accept", "text/csv"),)), 500)

    def told(*answers: Answer) -> str:
        found = universal.fold("HTTP-1", "x", numbered(*answers))
        assert found is not None
        return found.message.rpartition(" (")[0]

    assert told(met, wrong).endswith(", asked with Accept: text/csv")
    assert told(met, answered(LIST, 500)) == told(answered(LIST, 500))
    assert told(wrong) == told(answered(LIST, 500))  # where no other was right, nothing tells which field it is


def test_undecided_exchanges_make_it_inconclusive() -> None:
    found = universal.fold("HTTP-1", "x", numbered(answered(LIST, 200, b"[]"), answered(LIST, 504)))
    assert found is not None
    assert (found.status, found.exchanges) == (Status.INCONCLUSIVE, (1,))


def test_met_by_all_or_about_none() -> None:
    found = universal.fold("HTTP-1", "x", numbered(answered(LIST, 200, b"[]"), answered(PET, 500)))
    assert found is not None
    assert (found.status, found.message) == (Status.PASSED, "met by 1 exchange")
    assert universal.fold("ERR-1", "x", numbered(answered(LIST, 200, b"[]"))) is None


def test_a_request_that_is_never_answered_leaves_http_1_open() -> None:
    """Not where it was one of many, or the first, or where the contract has no answer to it."""

    def left_open(request: Request, **more: Any) -> bool:
        answer = answered(request, None, trouble=Trouble.TIMEOUT)
        for name, value in more.items():
            setattr(answer.exchange, name, value)
        answer.exchange.undecided.clear()  # it was judged as it was made
        Judge()(answer)
        return "HTTP-1" in answer.exchange.undecided

    assert left_open(LIST)
    assert left_open(cancel(5))
    assert not left_open(LIST, crowded=True)
    assert not left_open(LIST, check=PREFLIGHT)
    assert not left_open(cancel(5, allowed=Allowed.ANY_4XX))
    assert not left_open(PET)


# --- facts


def test_facts() -> None:
    answers = [
        answered(LIST, 200, b'[{"id": 1, "status": "x"}, 3]', ("Content-Encoding", "gzip")),
        answered(STRANGER, 401, error(code="no", trace=1)),
        answered(LIST, 429, b"", ("Retry-After", "1")),
        answered(LIST, None, trouble=Trouble.TIMEOUT),
        answered(PET, 404, b'{"pet": 1}'),
    ]
    found = facts.observed(numbered(*answers))
    assert found.keys() <= catalogue.load().observations.keys()
    assert found["compression"][0] == {"gzip": 1, "none": 3}
    assert found["orders in one listing"] == (1, [])
    assert found["error codes"][0] == {"401": ["no"]}
    assert found["further Order fields"][0] == ["status"]
    assert found["further Error fields"][0] == ["trace"]
    assert found["rate limiting"] == ({"answers with 429 or 503": 1}, [2])
    assert found["response times"][0].keys() == {"listOrders", "pet lookup"}


@pytest.mark.parametrize("body", [b"[" * 100_000, b"nonsense", b"9" * 5000, b'{"code": ["\\ud800"], "\\ud800": 1}'])
def test_facts_of_odd_bodies(body: bytes) -> None:
    json.dumps(facts.observed(numbered(answered(STRANGER, 401, body), answered(LIST, 200, body))))


@pytest.mark.parametrize(
    "text",
    [
        "at a(", "at a(:1", "at /", 'File "', "in a", "#1 /a.php", "goroutine 1", "C:\\a\\", "C:\\ ", "/home/", "#1 a",
        "panicked at :1", "panicked at ", "\n at a.b(", " at a.b()\n", "\n at a.a", "Caused by: a.", "a.php on line ",
        "/mnt/a", "/data/a.", " /nix/", "file:///", "a(b", "a(a.", "a.js:", "/v1/store", "/",
    ],
)  # fmt: skip
def test_no_text_keeps_its_judge_busy(text: str) -> None:
    """Nor does a header: each of them takes far less than a second, however it is made."""
    body = (text * SEARCHED)[:SEARCHED].encode()
    assert within(60, lambda: judges.error_reveals(answered(LIST, 500, body)))


@pytest.mark.parametrize("text", ['"\\', '"', ",", "Bearer ", "a=", 'a="x",', "a \t", "a  ="])
def test_no_challenge_keeps_its_judge_busy(text: str) -> None:
    answer = answered(STRANGER, 401, error(), ("WWW-Authenticate", (text * 100_000)[:100_000]))
    assert within(60, lambda: judges.challenge(answer))


def test_nesting_past_the_limit_is_held_against_nobody() -> None:
    """RFC 8259 section 9 lets a reader have a limit: an answer past it is neither right nor wrong."""
    deep = b'[{"id": 1, "further": ' + b"[" * 500 + b"]" * 500 + b"}]"
    for answer, requirement in (
        (answered(LIST, 200, deep), "LIST-1"),
        (answered(cancel(1), 404, deep), "ERR-1"),
        (answered(cancel(1), 409, deep), "ERR-5"),
    ):
        Judge()(answer)
        assert requirement not in answer.exchange.findings
        assert "deeper than 200 levels" in answer.exchange.undecided[requirement]
        with pytest.raises(outcomes.Inconclusive, match="deeper than 200 levels"):
            verify.meets(requirement, answer)
