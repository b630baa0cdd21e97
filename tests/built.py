"""Targets, clients and answers as tests need them, each built in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from conformance.checks import credentials, invalid_keys
from conformance.judging.observer import Judge
from conformance.runner.session import Session
from conformance.target import Mode, Secret, Target
from conformance.transport.answer import Answer
from conformance.transport.evidence import Exchange, Recorder
from conformance.transport.redaction import Redactor
from conformance.transport.request import Allowed, Credential, Request

KEY = "sk-Harness.Key_42"
VALID = credentials.valid(KEY)
LIST = Request("GET", "/store/orders", VALID)


def cancel(segment: int | str, credential: Credential = VALID, allowed: Allowed = Allowed.LISTED) -> Request:
    """A cancel, not yet sent."""
    return Request("DELETE", f"/store/orders/{segment}", credential, allowed=allowed)


def target(base_url: str = "http://127.0.0.1:9/v1", mode: Mode = Mode.GUARDED, **further: Any) -> Target:
    """A target with the harness's key, and a time-out for a busy machine."""
    return Target("harness", base_url, Secret(KEY), mode, **{"timeout": 60.0, **further})


@contextlib.contextmanager
def session(base_url: str, mode: Mode = Mode.GUARDED, **further: Any) -> Iterator[Session]:
    """A session with a target, closed in the end."""
    opened = Session(target(base_url, mode, **further), seed=1)
    try:
        yield opened
    finally:
        opened.close()


def recorder(key: str = KEY) -> Recorder:
    """A recorder that knows the key and its near misses, as a session has it."""
    return Recorder(Redactor(key, invalid_keys.secrets(key)))


def answered(
    request: Request,
    status: int | None,
    body: bytes = b"",
    *headers: tuple[str, str],
    media: str | None = "application/json",
    extra: bytes = b"",
    **noted: Any,
) -> Answer:
    """An answer to `request` that never crossed a wire, judged; `noted` goes into its exchange."""
    kept = recorder()
    exchange = kept.begin(
        request, f"http://127.0.0.1/v1{request.path}", (*request.credential.headers, *request.headers), "client"
    )
    fields = ((("Content-Type", media),) if media and body else ()) + headers
    exchange.status = status
    for name, value in noted.items():
        setattr(exchange, name, value)
    made = Answer(request, exchange, fields, body, extra)
    kept.answer(exchange, fields, body)
    kept.end(exchange)
    Judge()(made)
    return made


def broken(exchange: Exchange) -> set[str]:
    """The requirements that an exchange was found to break."""
    return {requirement for requirement, problem in exchange.findings.items() if problem is not None}
