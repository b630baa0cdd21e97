"""What the selftest leaves out between client and service, connections, makes no difference to a status."""

from __future__ import annotations

import pytest

from conformance import plugin
from conformance.commands import selftest
from conformance.configuration import settings
from conformance.runner.process import Process, Shared
from conformance.target import UNNAMED, Mode, Secret, States, Target
from conformance.verdict import Status
from reference_server.running import Running, build

KEY = "key-of-a-service-in-this-process"
#: Bytes past an end, a race, and a correct one that is odd in HTTP.
CASES = ("sends-json-after-204", "lets-two-of-several-cancels-win", "sends-chunks")

Statuses = dict[Status, tuple[str, ...]]


def over_sockets(session: pytest.Session, case: selftest.Case) -> Statuses:
    """The requirements by their status, with the suite's own client, a listener for state control, and sockets."""
    faults, variants = ([case.name], []) if case.requirement else ([], [case.name])
    with Running(build(KEY.encode(), faults=faults, variants=variants), states_port=0) as server:
        chosen = settings.read((UNNAMED,), {"seed": 1, "budget": "quick"})
        target = Target(UNNAMED, server.base_url, Secret(KEY), Mode.FULL, states=States(url=server.states_url))
        own = Process(chosen, Shared(1), {UNNAMED: target}, {})
        plugin.run_collected(session, own)
    (run,) = own.runs
    return selftest.by_status(run)


def test_connections_make_no_difference() -> None:
    chosen = [case for case in selftest.cases() if case.name in CASES]
    assert len(chosen) == len(CASES)
    seen: dict[str, tuple[Statuses, Statuses]] = {}

    def work(session: pytest.Session) -> None:
        for case in chosen:
            judged = selftest.judge(session, case, 1, "quick")
            direct = {Status.FAILED: judged.failed, Status.INCONCLUSIVE: judged.inconclusive}
            found = over_sockets(session, case)
            seen[case.name] = direct, {status: found[status] for status in direct}

    selftest.collected(work)
    assert len(seen) == len(CASES)
    for name, (direct, over) in seen.items():
        assert direct == over, name
