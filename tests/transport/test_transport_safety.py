"""What a service receives, whatever checks ask for and whatever it lists: nothing that the mode forbids."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from built import KEY, LIST, cancel, session
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_service import Conversation, RawService, answer
from test_transport_guard import IDS, careless_readings, disguised

from conformance.contract.transitions import State
from conformance.target import Mode
from conformance.transport.guard import Refused
from conformance.transport.request import Request

METHODS = st.sampled_from(["GET", "HEAD", "OPTIONS", "DELETE", "DELETE", "DELETE", "POST", "PUT", "PATCH", "delete"])


@dataclass
class Store:
    """A service that lists what it is told to, and keeps what it receives, with all ids that it has listed by then."""

    listing: list[int] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    received: list[tuple[str, str, set[int]]] = field(default_factory=list)

    def reply(self, talk: Conversation) -> None:
        method, path, _ = talk.request.decode("latin-1").split(" ", 2)
        if method == "GET":
            self.shown |= set(self.listing)
        self.received.append((method, path, set(self.shown)))
        body = json.dumps([{"id": number} for number in self.listing]).encode()
        # Whatever is asked for, it sends the client elsewhere, too, with its key if it would go.
        status = "200 OK" if method == "GET" else "307 Temporary Redirect"
        talk.send(answer(status, b"" if method == "HEAD" else body, "Location: /v1/store/orders/1"))
        talk.hang_up()


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[RawService, Store]]:
    store = Store()
    made = RawService(store.reply)
    yield made, store
    made.stop()


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, list[int], str]]:
    """What happens: orders appear (and are listed), or something is sent; segments are out to be mistaken."""
    known = draw(st.lists(IDS, min_size=1, max_size=4))
    segments = st.builds(disguised, st.sampled_from(known), st.integers(0, 23), st.integers(-3, 2**33)) | IDS.map(str)
    return draw(
        st.lists(
            st.tuples(METHODS | st.just("list"), st.lists(st.sampled_from(known), max_size=3), segments), max_size=8
        )
    )


@settings(max_examples=40)
@given(mode=st.sampled_from(Mode), what=steps(), handed=st.lists(IDS, max_size=2), raw=st.booleans())
def test_nothing_reaches_the_service_that_the_mode_forbids(
    service: tuple[RawService, Store],
    mode: Mode,
    what: list[tuple[str, list[int], str]],
    handed: list[int],
    raw: bool,
) -> None:
    made, store = service
    store.shown, store.received = set(), []
    with session(made.base_url, mode) as opened:
        opened.guard.hand_out(handed, State.PENDING)
        for method, listed, segment in what:
            store.listing = listed
            request = LIST if method == "list" else Request(method, f"/store/orders/{segment}", LIST.credential)
            with contextlib.suppress(Refused):
                if raw:
                    with opened.wire.connect() as connection:
                        connection.exchange(request, last=True)
                else:
                    opened.client.send(request)
    allowed = {Mode.OBSERVE: {"GET"}}.get(mode, {"GET", "HEAD", "OPTIONS", "DELETE"})
    for method, path, shown in store.received:
        assert method in allowed
        segment = path.removeprefix("/v1/store/orders/")
        if method == "DELETE" and not (mode is Mode.FULL and segment in map(str, handed)):
            spared = set(handed) if mode is Mode.FULL else set()
            assert not careless_readings(segment) & shown - spared


@pytest.mark.parametrize("mode", Mode)
def test_the_key_goes_to_one_origin(mode: Mode) -> None:
    """Wherever a service redirects to."""
    elsewhere = RawService(Store().reply)

    def reply(talk: Conversation) -> None:
        talk.send(answer("307 Temporary Redirect", b"", f"Location: {elsewhere.base_url}/store/orders"))
        talk.hang_up()

    redirecting = RawService(reply)
    with session(redirecting.base_url, mode) as opened:
        opened.guard.saw_listing([])
        opened.client.send_all([LIST] * 3)
        opened.elsewhere()
        with contextlib.suppress(Refused):
            opened.client.send(cancel(2**60 + 12345))
        with opened.wire.connect() as connection:
            connection.exchange(LIST)
        assert all(KEY.encode() in request for request in redirecting.requests)
    redirecting.stop()
    elsewhere.stop()
    assert elsewhere.connections == 0
