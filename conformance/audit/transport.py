"""The transports and the state provider of an audit: nothing is sent, the record answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from conformance.audit.record import Record
from conformance.contract.transitions import State
from conformance.states.provider import CannotDo, ProviderError
from conformance.transport.answer import Answer, Observer
from conformance.transport.client import Client
from conformance.transport.endpoint import GIVE_UP_AFTER, Endpoint, ServiceGone
from conformance.transport.evidence import Recorder, Trouble
from conformance.transport.guard import Guard
from conformance.transport.request import Headers, Request
from conformance.transport.wire import Connection, Wire

_SILENT = frozenset({Trouble.UNREACHABLE, Trouble.TIMEOUT})


class ReplayedClient(Client):
    """Answers from a record. The guard decides as in the run, on the same listings and the same orders."""

    def __init__(
        self, endpoint: Endpoint, guard: Guard, recorder: Recorder, observer: Observer, record: Record
    ) -> None:
        super().__init__(endpoint, guard, recorder, observer)
        self._record = record
        self._silent: Counter[str] = Counter()

    def send_all(self, requests: Iterable[Request], *, at_once: bool = False) -> list[Answer]:
        """The recorded answers to `requests`. Raises like the client, and Unsupported."""
        ordered = list(requests)
        for request in ordered:
            self.guard.check(request.method, request.path)
        attempts: list[list[Answer]] = []
        try:
            for request in ordered:
                attempts.append([])
                self._try(request, attempts[-1])
        finally:  # an interruption may have come when some of them were on record
            answers = [answer for tries in attempts for answer in tries]
            for answer in sorted(answers, key=lambda answer: answer.exchange.started + answer.exchange.seconds):
                self.endpoint.after(answer.request, answer.exchange)
            self.keep(*answers)
        return self._last(ordered, attempts)

    def _try(self, request: Request, tries: list[Answer]) -> None:
        """Add answers to `request` to `tries`, until one that was not retried."""
        headers = self.endpoint.headers(request, connection="close")
        while not tries or tries[-1].exchange.waited is not None:
            answer = self.recall(request, headers, "client")
            if answer is None:
                break
            tries.append(answer)

    def recall(self, request: Request, headers: Headers, via: str) -> Answer | None:
        """The recorded answer to `request`; None if there is none because the run had stopped asking by then.

        When exactly it stopped is a matter of time if requests overlap. Stopping leaves a check inconclusive, so it
        excuses nothing.
        """
        asked = self.recorder.begin(request, self.endpoint.url(request), headers, via)
        exchange = self._record.exchange(asked)
        if exchange is None:
            if self._silent[request.operation] >= GIVE_UP_AFTER:
                return None
            raise self._record.missing(asked)
        self._silent[request.operation] += exchange.trouble in _SILENT
        extra = exchange.extra.encode("latin-1", "replace")
        answer = Answer(request, exchange, tuple(exchange.headers), exchange.raw_body, extra)
        self.texts.share(answer)
        return answer


class ReplayedWire(Wire):
    """Opens connections that answer from a record."""

    _client: ReplayedClient

    def connect(self) -> Connection:
        return ReplayedConnection(self._client)


class ReplayedConnection(Connection):
    """A connection as it was: the answers to what was prepared, and whether it was seen to stay open, come from the
    record."""

    _client: ReplayedClient

    def __init__(self, client: ReplayedClient) -> None:
        super().__init__(client)
        self._touched = False  # whether the cancel of an order was set off
        self._order_before: State | None = None  # and what the guard said of that order then

    def left_open(self) -> bool:
        return self._answer.exchange.kept_open is True

    def prepare(
        self, request: Request, *, last: bool = False, minimal: bool = False, within: float | None = None
    ) -> None:
        self._client.guard.check(request.method, request.path)
        headers = self._headers(request, last=last, minimal=minimal)
        answer = self._client.recall(request, headers, "wire")
        if answer is None:
            raise ServiceGone(self._endpoint.gone[request.operation])
        answer.touched, answer.before = self._touched, self._order_before
        self._touched, self._order_before = False, None
        self._client.touch(answer)
        self._pending = answer

    def set_off(self, request: Request, *, last: bool = False, minimal: bool = False) -> None:
        self._client.guard.check(request.method, request.path)
        self._again = partial(self.prepare, request, last=last, minimal=minimal)
        if request.order_id is not None:
            self._touched, self._order_before = True, self._client.guard.touch(request.order_id)

    def conclude(self) -> Answer:
        self._again()
        return super().conclude()

    def release(self) -> None:
        pass

    def receive(self, *, keep: bool = True) -> Answer:
        answer = self._answer
        self._endpoint.after(answer.request, answer.exchange)
        if keep:
            self._client.keep(answer)
        return answer

    def _holds_for_retry(self, answer: Answer) -> bool:
        return answer.exchange.waited is not None


class ReplayedProvider:
    """A state provider that answers as the recorded one did."""

    def __init__(self, record: Record, recorder: Recorder) -> None:
        self._record = record
        self._recorder = recorder

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        check = self._recorder.check
        kept = self._record.message(check, message)
        if kept is None:
            problem = self._record.unasked(check, message)
            if message["action"] != "teardown":
                raise problem
            return {}  # the check is over, so there is nothing to keep it from
        if "failed" in kept:
            raise ProviderError(str(kept["failed"]))
        if "cannot" in kept:
            raise CannotDo(str(kept["cannot"]))
        return dict(kept.get("answer", {}))

    def close(self) -> None:
        pass
