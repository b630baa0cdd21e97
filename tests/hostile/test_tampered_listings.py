"""Listings that show ids in ways that the contract does not know: whatever they may mean, nobody's order is cancelled.

In guarded mode the suite may only cancel where no order is, and the ids that it makes up itself are few and well known:
here a service has orders at just these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from commands import command
from raw_service import Conversation, RawService, answer

from conformance.contract.jsontext import INT64

#: Ids that anybody would try, at the edges of ranges and in the middle.
SHOWN = [0, 1, -1, 2, 3, 7, 12, 42, 99, 100, 123, 404, 999, 1000, 1234, 12345, 999999, 2**16, 10**9, 10**12, 10**15]
SHOWN += [sign * (2**bits + more) for bits in (31, 32, 52, 53, 62, 63) for more in (-1, 0, 1) for sign in (1, -1)]
KEY = "sk-Tampered.Key/42"


def each(made: Callable[[int], str]) -> str:
    """A listing of orders, each as `made` writes the one with an id."""
    return f"[{', '.join(made(number) for number in SHOWN)}]"


LISTINGS = {
    "strings": each(lambda number: f'{{"id": "{number}"}}'),
    "strings with a prefix": each(lambda number: f'{{"id": "order-{abs(number)}"}}'),
    "strings with a suffix": each(lambda number: f'{{"id": "{number}abc"}}'),
    "escaped strings": each(lambda number: json.dumps({"id": str(number)}).replace("1", "\\u0031")),
    "digits of another script": each(
        lambda number: json.dumps({"id": str(number).translate({48 + n: 0x0660 + n for n in range(10)})})
    ),
    "fractions": each(lambda number: f'{{"id": {number}.5}}'),
    "exponents": each(lambda number: f'{{"id": {number}e0}}'),
    "out of all proportion": f'[{{"id": {10**400 + 1}}}, {{"id": 1e400}}, {{"id": {2**64 + 42}}}]',
    "booleans": '[{"id": true}, {"id": false}]',
    "null": '[{"id": null}, {"id": 5000}]',
    "lists": each(lambda number: f'{{"id": [[{number}]]}}'),
    "objects": each(lambda number: f'{{"id": {{"value": {{"$numberLong": "{number}"}}}}}}'),
    "under another name": each(lambda number: f'{{"orderId": {number}, "petId": 5000}}'),
    "under a name twice": each(lambda number: f'{{"id": {number}, "id": 5000}}'),
    "without an object": each(str),
    "one level deeper": f'{{"orders": {each(lambda number: json.dumps({"id": number}))}}}',
    "as names": json.dumps({str(number): {} for number in SHOWN}),
    "as names of an element": json.dumps([{str(number): {} for number in SHOWN}]),
    "with a comma too many": each(lambda number: f'{{"id": {number}}}')[:-1] + ",]",
    "below a tower": each(lambda number: f'{{"id": {number}}}')[:-1] + ", " + "[" * 300 + "]" * 300 + "]",
    "without id": each(lambda number: '{"petId": 5000, "quantity": 1}'),
    "as a million digits": f'[{{"id": {"1" * 1_000_000}}}, {{"id": "{"0" * 999_999}7"}}]',
}
#: What some of them can be taken for, where it is not SHOWN.
MEANT = {
    "out of all proportion": {10**400 + 1, 42, INT64.stop - 1},
    "booleans": {0, 1},
    "null": {5000},
    "without id": set(),
    "as a million digits": {7},
}


def refused(segment: str, meant: set[int]) -> set[int]:
    """The ids of `meant` that a service could take the path segment for; written without a look at the guard."""
    text = unquote(segment)
    runs = {int(run) for run in re.findall(r"[0-9]+", text)}
    mine = {sign * run for run in runs for sign in (1, -1)}
    return {
        number
        for number in meant
        for sent in mine
        if sent == number or (sent - number) % 2**31 == 0 or (abs(number) < 2**1000 and float(sent) == float(number))
    }


class Tampered:
    """A service with one of the LISTINGS below each path; it notes what it is asked to cancel."""

    def __init__(self) -> None:
        self.cancelled: dict[str, list[str]] = {name: [] for name in LISTINGS}
        self.service = RawService(self._reply)

    def _reply(self, talk: Conversation) -> None:
        method, target, _ = talk.request.split(b"\r\n")[0].decode("latin-1").split(" ", 2)
        target = re.sub("^http://[^/]*", "", target)  # the absolute form (RFC 9112 section 3.2.2)
        place, _, rest = target.removeprefix("/").partition("/")
        name = list(LISTINGS)[int(place)]
        if f"Bearer {KEY}".encode() not in talk.request:
            status, body = "401 Unauthorized", '{"code": "no", "message": "no", "status": 401}'
        elif method == "GET" and rest.partition("?")[0] == "v1/store/orders":
            status, body = "200 OK", LISTINGS[name]
        else:
            status, body = "404 Not Found", '{"code": "no", "message": "no", "status": 404}'
        if method == "DELETE":
            self.cancelled[name].append(rest.removeprefix("v1/store/orders/").partition("?")[0])
        talk.send(answer(status, body.encode()))
        talk.hang_up()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Tampered:
    """A guarded run against each of them."""
    tampered, folder = Tampered(), tmp_path_factory.mktemp("tampered")
    described = [
        f'[targets.t{place}]\nbase_url = "http://127.0.0.1:{tampered.service.port}/{place}/v1"\napi_key_env = "KEY"\n'
        for place in range(len(LISTINGS))
    ]
    (folder / "targets.toml").write_text("\n".join(described), encoding="utf-8")
    targets = [f"t{place}" for place in range(len(LISTINGS))]
    only = "CANCEL,AUTH-1,AUTH-2,AUTH-8,ERR-1,HTTP-1"  # each way in which a check comes by an id to cancel
    words = ("run", *targets, "--only", only, "--mode", "guarded", "--budget", "quick", "--timeout", "3", "--seed", "1")
    done = command(folder, *words, KEY=KEY)
    tampered.service.stop()
    assert done.status in (1, 3), done.err
    assert "Traceback" not in done.said
    assert len(list(Path(folder).glob("reports/*/results.json"))) == len(LISTINGS)
    return tampered


@pytest.mark.parametrize("name", LISTINGS)
def test_no_cancel_could_mean_an_order_that_was_shown(ran: Tampered, name: str) -> None:
    meant = MEANT.get(name, set(SHOWN))
    hit = {segment: found for segment in ran.cancelled[name] if (found := refused(segment, meant))}
    assert hit == {}


@pytest.mark.parametrize("name", ["null", "without id"])
def test_an_order_without_an_id_may_have_any_in_common_use(ran: Tampered, name: str) -> None:
    assert ran.cancelled[name]
    for segment in ran.cancelled[name]:
        assert all(int(run) >= 2**32 for run in re.findall(r"[0-9]+", unquote(segment)))


def test_where_the_ids_are_plain_there_is_room_for_cancels(ran: Tampered) -> None:
    assert ran.cancelled["exponents"]
    assert ran.cancelled["strings"]
