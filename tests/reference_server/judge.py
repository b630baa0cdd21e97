"""A small reading of the contract of its own: which required requirements does a service break?

Not the suite: it knows the store from inside, and cannot tell causes from consequences. It guards the
catalogues of faults and variants against mistakes of their own.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import zlib
from contextlib import suppress
from datetime import datetime, timedelta
from email.message import Message
from http.client import HTTPException, HTTPResponse
from socket import socket
from typing import Any, NamedTuple, cast

from reference_server.api import Service
from reference_server.messages import Request
from reference_server.orders import INT64_MAX, INT64_MIN, Status

LIST = "/store/orders"


class Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


class _Bytes:
    """Enough of a socket for `HTTPResponse`."""

    def __init__(self, data: bytes) -> None:
        self.stream = io.BytesIO(data)

    def makefile(self, mode: str) -> io.BytesIO:
        return self.stream


def alike(one: object, other: object) -> bool:
    """Whether elements of two listings agree in the fields of section 2 that both have; an expected date may be
    reckoned from now."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one == other
    names = {"id", "petId", "quantity", "complete", "shipDate"} & one.keys() & other.keys()
    return all(one[name] == other[name] or (name == "shipDate" and close(one[name], other[name])) for name in names)


def undated(element: object) -> object:
    """An element of a listing without its date, which for a pending order is an estimate."""
    return {**element, "shipDate": ""} if isinstance(element, dict) else element


def moves(elements: list[Any]) -> bool:
    """Whether the date of an order is another in each listing, ever later or ever earlier."""
    dates = [element["shipDate"] for element in elements if isinstance(element, dict) and "shipDate" in element]
    ordered = sorted(dates)
    return len(set(dates)) == len(elements) and dates in (ordered, ordered[::-1]) and not close(dates[0], dates[-1])


def close(one: str, other: str) -> bool:
    """Whether two dates are at most a minute apart."""
    with suppress(TypeError, ValueError):
        return abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) <= timedelta(minutes=1)
    return False


USUAL = {"accept-encoding": "gzip, deflate", "user-agent": "judge"}


class Judge:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.base = service.base
        self.key = f"Bearer {service.key.decode()}"
        self.broken: set[str] = set()
        self.connections = itertools.count(1000)

    def expect(self, requirement: str, holds: object) -> None:
        if not holds:
            self.broken.add(requirement)

    def send(
        self,
        method: str,
        path: str,
        authorization: str | None = "key",
        query: str = "",
        connection: int = 0,
        listed: tuple[int, ...] | None = None,
        **more: str,
    ) -> Answer:
        headers = {name.replace("_", "-"): value for name, value in more.items()} | USUAL
        if authorization is not None:
            headers["authorization"] = self.key if authorization == "key" else authorization
        for _ in range(3):
            request = Request(method, self.base + path, query, headers, b"", connection or next(self.connections))
            response = self.service.answer(request)
            answer = self.parse(method, self.service.write(request, response), response.close)
            if answer.status != 429 and not (answer.status == 503 and "Retry-After" in answer.headers):
                break
        if listed is not None:
            self.expect("HTTP-1", answer.status in listed or answer.status == 0)
            if answer.status in (401, 404):
                self.judge_error(answer)
        return answer

    def parse(self, method: str, data: bytes, close: bool) -> Answer:
        stream = _Bytes(data)
        try:
            while True:
                at = stream.stream.tell()
                status = int(data[at:].split(b" ", 2)[1])
                if status >= 200:
                    break
                stream.stream.seek(data.index(b"\r\n\r\n", at) + 4)
            parsed = HTTPResponse(cast(socket, stream), method=method)
            parsed.begin()
            lengths = parsed.headers.get_all("Content-Length", [])
            body = b"" if status == 204 else parsed.read()
        except (HTTPException, ValueError, IndexError):
            self.broken.add("HTTP-2")
            return Answer(0, Message(), b"")
        self.expect("HTTP-2", len(set(lengths)) <= 1)
        coded = parsed.headers.get("Transfer-Encoding") is not None and status != 204
        self.expect("HTTP-2", not coded or not (lengths or parsed.version == 10))
        rest = data[stream.stream.tell() :] if status == 204 else self._rest(data, parsed, body, close)
        if rest:
            self.broken.add("CANCEL-2" if status == 204 else "HTTP-2")
        if body and parsed.headers.get("Content-Encoding"):
            body = zlib.decompress(body, 47)
        return Answer(status, parsed.headers, body)

    @staticmethod
    def _rest(data: bytes, parsed: HTTPResponse, body: bytes, close: bool) -> bytes:
        if "chunked" in parsed.headers.get("Transfer-Encoding", ""):
            return b""
        end = data.rindex(body) + len(body) if body else len(data)
        return b"" if close and "Content-Length" not in parsed.headers else data[end:]

    def json(self, answer: Answer, requirement: str) -> Any:
        media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        self.expect(requirement, media_type == "application/json")
        try:
            text = answer.body.decode("utf-8")
            return json.loads(text, parse_constant=lambda name: int(name))
        except ValueError:
            self.broken.add(requirement)
            return None

    def judge_error(self, answer: Answer) -> None:
        error = self.json(answer, "ERR-1")
        if not isinstance(error, dict):
            self.broken.add("ERR-1")
            return
        types = {"code": str, "message": str, "status": int}
        self.expect("ERR-1", all(type(error.get(name)) is kind for name, kind in types.items()))
        if type(error.get("status")) is int:
            self.expect("ERR-2", error["status"] == answer.status)

    def orders(self, query: str = "", also: tuple[int, ...] = (), **more: str) -> dict[int, Any]:
        answer = self.send("GET", LIST, query=query, listed=(200, *also), **more)
        if answer.status == 401:
            self.broken.add("AUTH-1")
        if answer.status != 200:
            return {}
        if query and answer.headers.get("Content-Type", "").startswith("text/html"):
            return {}  # the page of a firewall
        elements = self.json(answer, "LIST-6" if query else "LIST-1")
        if query and not isinstance(elements, list):
            self.broken.add("LIST-6")
            return {}
        if not isinstance(elements, list):
            self.broken.add("LIST-1" if len(self.service.store) else "LIST-7")
            return {}
        for element in elements[:30] + elements[-30:]:
            self.expect("LIST-2", self.is_order(element))
        ids = [element["id"] for element in elements if isinstance(element, dict) and "id" in element]
        self.expect("LIST-4", len(set(ids)) == len(ids))
        return {element["id"]: element for element in elements if isinstance(element, dict) and "id" in element}

    def is_order(self, element: Any) -> bool:
        if not isinstance(element, dict):
            return False
        for name, value in element.items():
            if name in ("id", "petId", "quantity") and (isinstance(value, bool) or not isinstance(value, int | float)):
                return False
            if name in ("id", "petId") and not INT64_MIN <= value <= INT64_MAX:
                return False
            if name == "quantity" and value != int(value):
                return False
            if name == "complete" and not isinstance(value, bool):
                return False
            if name == "shipDate" and not self.is_date(value):
                return False
        return True

    @staticmethod
    def is_date(value: object) -> bool:
        if not isinstance(value, str) or "T" not in value:
            return False
        value = re.sub(r":60(?=\D|$)", ":59", value)
        value = re.sub(r"^\+00(?=\d{4}-)", "", value.replace("\N{MINUS SIGN}", "-"))
        value = re.sub(r"^(\d{4})-(\d{3})T", lambda day: f"{day[1]}-01-01T", value)
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return False
        return True

    def place(self, count: int, status: Status = Status.PENDING) -> list[int]:
        return self.service.store.place(count, status)

    def cancel(self, order_id: object, authorization: str | None = "key", **more: Any) -> int:
        listed = (204, 401, 404, 409)
        answer = self.send("DELETE", f"{LIST}/{order_id}", authorization, listed=more.pop("listed", listed), **more)
        if authorization == "key" and answer.status == 401:
            self.broken.add("AUTH-1")
        return answer.status

    def judge(self) -> set[str]:
        """Every required requirement found broken."""
        self.authentication()
        self.listing()
        self.cancelling()
        return self.broken

    def refused(self, requirement: str, authorization: str | None, **more: Any) -> None:
        malformed = requirement == "AUTH-4" or "#" in (authorization or "")
        allowed = (401, 400, 422) if "query" in more else (401, 400) if malformed else (401,)
        pending, shipped = self.place(1)[0], self.place(1, Status.SHIPPED)[0]
        self.expect(requirement, self.send("GET", LIST, authorization, **more).status in (*allowed, 0))
        for order_id in (pending, shipped, 31337):
            answer = self.send("DELETE", f"{LIST}/{order_id}", authorization, **more)
            if answer.status == 401:
                self.judge_error(answer)
            self.expect(requirement, answer.status in allowed)
        order = self.service.store.get(pending)
        if requirement not in self.broken:
            self.expect("AUTH-5", order and order.status is Status.PENDING)

    def authentication(self) -> None:
        key = self.key[7:]
        for _ in range(3):
            self.refused("AUTH-2", None)
            self.orders()
        for wrong in (
            key + "x",
            key[:-1],
            key[:-1] + "#",
            "#" + key[1:],
            key[:8] + "zz",
            "x" * len(key),
            key.swapcase(),
            "x" + key,
            key[::-1],
            key[:5] + "#" + key[6:],
            key[3:],
            "SK" + key[2:],
        ):
            self.refused("AUTH-3", f"Bearer {wrong}")
            self.orders()
        for odd in (key, f"Basic {key}", f"Token {key}", "Bearer", f"{self.key} x"):
            self.refused("AUTH-4", odd)
            self.orders()
        beyond_ascii = self.send("GET", LIST, "Bearer Schl\u00c3\u00bcssel").status
        self.expect("AUTH-4", 400 <= beyond_ascii < 500 or beyond_ascii == 0)
        self.refused("AUTH-4", None, x_api_key=key)
        self.orders()
        self.refused("AUTH-4", None, query=f"access_token={key}", cookie=f"key={key}", proxy_authorization=self.key)
        before = set(self.broken)
        statuses = [self.send("GET", LIST, given, connection=7).status for given in ("key", None, "Bearer x", "key")]
        self.expect("AUTH-6", statuses == [200, 401, 401, 200] or before & {"AUTH-1", "AUTH-2", "AUTH-3", "HTTP-2"})
        for _ in range(22):
            self.expect("AUTH-6", self.send("GET", LIST, "Bearer x").status == 401 or "AUTH-3" in before)
        status = self.send("GET", LIST).status
        self.expect("AUTH-6", status != 401 or "AUTH-1" in before)
        for credentials in (None, "Bearer x"):
            pet = self.send("GET", "/pets/1", credentials)
            any_path = (
                pet.headers.get("Content-Type") == "text/html" or pet.body == self.send("GET", "/no/1", None).body
            )
            self.expect("PET-1", not 200 <= pet.status < 300 or any_path or before & {"AUTH-2", "AUTH-3"})

    def listing(self) -> None:
        mine = [*self.place(4), *self.place(4, Status.SHIPPED)]
        first = self.orders()
        self.expect("LIST-3", first.keys() >= set(mine))
        readings = [first]
        for _ in range(3):
            readings.append(again := self.orders())
            self.expect("LIST-3", again.keys() >= set(mine) or not first)
            self.expect("LIST-9", all(alike(again.get(order_id), first.get(order_id)) for order_id in mine[4:]))
        for order_id in mine[:4]:
            shown = [reading.get(order_id) for reading in readings]
            self.expect("LIST-9", all(alike(undated(one), undated(shown[0])) for one in shown) and not moves(shown))
        states = [getattr(self.service.store.get(order_id), "status", None) for order_id in mine]
        self.expect("LIST-9", states == [Status.PENDING] * 4 + [Status.SHIPPED] * 4)
        for query in (
            "status=pending",
            "limit=1",
            "size=1",
            "page=2",
            "skip=1",
            "petId=4",
            "complete=true",
            "id=1",
            "a=b",
            "limit=5",
            "_limit=1",
            "page%5Blimit%5D=1",
            "startDate=2999-01-01",
            "endDate=1900-01-01",
            "customerId=-1",
        ):
            found = self.orders(query, also=(400, 422))
            self.expect("LIST-6", not found or found.keys() >= set(mine))
        if "ids" not in self.service.cannot:
            far = self.service.store.place_ids([-5, 2**53 + 1, 2**60 + 1, INT64_MAX, INT64_MIN], Status.PENDING)
            found = self.orders()
            self.expect("LIST-8", found.keys() >= set(far))
            pets = [found[order_id].get("petId", order_id) for order_id in far[1:] if order_id in found]
            exact = all(
                pet in (order_id, min(order_id + 1, INT64_MAX), 0, -1, 1, INT64_MIN, INT64_MAX)
                for pet, order_id in zip(pets, far[1:], strict=False)
            )
            self.expect("LIST-8", exact)
            self.service.store.remove(far)
        for language in ("ar", "de", "fi", "tr"):
            self.orders(accept_language=language)
        self.orders(accept="application/*")
        bulk = self.place(1150)
        for accept in ("*/*", "text/html, */*", "application/json"):
            self.expect("LIST-5", self.orders(accept=accept).keys() >= set(bulk))
        self.service.store.remove(bulk)
        if "no orders" not in self.service.cannot:
            self.service.store.clear()
            answer = self.send("GET", LIST)
            if answer.status == 200 and not len(self.service.store):  # else somebody was faster
                self.expect("LIST-7", answer.body.strip() == b"[]")
            (only,) = self.place(1)
            self.expect("LIST-3", only in self.orders())
            self.expect("CANCEL-1", self.cancel(only) in (204, 200, 202, 401, 0))

    def cancelling(self) -> None:
        for round_ in range(3):
            pending, other, (shipped, still) = self.place(3), self.place(8), self.place(2, Status.SHIPPED)
            store = self.service.store
            rest = [*pending[1:], *other, shipped, still]
            before = [store.get(order_id) for order_id in rest]
            self.expect("CANCEL-1", self.cancel(pending[0]) in (204, 200, 202, 401, 0))
            self.orders()
            self.expect("CANCEL-8", [store.get(order_id) for order_id in rest] == before)
            again = self.cancel(pending[0], listed=tuple(range(400, 500)))
            self.expect("CANCEL-6", not 200 <= again < 300)
            third = self.cancel(pending[0], listed=tuple(range(400, 500)))
            self.expect("CANCEL-6", not 200 <= third < 300)
            unchanged = store.get(shipped)
            for requirement in ("CANCEL-3", "CANCEL-4"):
                status = self.cancel(shipped)
                self.expect(requirement, status in (409, 0, 500, 403, 302, 429, 401))
                self.expect("CANCEL-4", store.get(shipped) == unchanged or status == 204)
            for absent in (-4, 2**40 + round_, INT64_MAX - 10**6, INT64_MIN + 10**6):
                self.expect("CANCEL-5", self.cancel(absent) in (404, 0, 500, 403, 302, 429))
            for used in (0, 31337, INT64_MAX - 1, INT64_MIN + 1):  # perhaps, once
                status = self.cancel(used, listed=tuple(range(400, 500)))
                self.expect("CANCEL-5", status in (0, 302, *range(400, 501)))
            target = other[0]
            far = (target + 2**32, -target, target - 2**32, target + 2**64)
            for odd in (f"{target}abc", f"{target}.5", "abc", "1.5", *far):
                self.send("DELETE", f"{LIST}/{odd}")
            if "ids" not in self.service.cannot:
                store.place_ids([2**53 + 1, 2**53 + 7], Status.PENDING)
                self.send("DELETE", f"{LIST}/{2**53}")
                self.send("DELETE", f"{LIST}/{2**53 + 6}")
                self.expect("CANCEL-9", store.get(2**53 + 1) and store.get(2**53 + 7))
            self.expect("CANCEL-9", store.get(target) == before[2])
            plain, typed = self.place(2)
            status = self.cancel(plain)
            if status != 204:
                full = self.cancel(typed, content_type="application/json", content_length="0")
                self.expect("CANCEL-10", full != 204 or status in (500, 403, 302, 429))
