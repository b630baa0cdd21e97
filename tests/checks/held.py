"""A reference server in this process, and what a check is given to look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from built import KEY, target

from conformance.api import Api, Orders
from conformance.runner.direct import DirectSession
from conformance.target import Mode, States
from reference_server.running import build


def held(*faults: str, variants: Sequence[str] = (), **further: Any) -> tuple[DirectSession, Api, Orders]:
    """A session with a reference server in this process, and what a check is given."""
    own = target(**{"mode": Mode.FULL, "states": States(url="http://127.0.0.1:9"), **further})
    session = DirectSession(own, 1, service=build(KEY.encode(), faults=list(faults), variants=list(variants)))
    session.recorder.check = "a check"
    api = session.api("a check")
    return session, api, Orders(session.leases("a check"), api)
