"""Answers that the tests of the transports have in common, and the client's answer to one request."""

from __future__ import annotations

from typing import Any

from built import LIST, session
from raw_service import Reply, answer, serving

from conformance.transport.answer import Answer
from conformance.transport.request import Request

LISTING = b'[{"id": 101}]'
OK = answer("200 OK", LISTING)
#: Time-out of the tests about it, in seconds; for all others that of a run, since the machine may be busy.
LIMIT = 0.4


def once(reply: Reply | bytes, request: Request = LIST, **further: Any) -> Answer:
    """The answer of a service to one request."""
    with serving(reply) as service, session(service.base_url, **further) as opened:
        return opened.client.send(request)
