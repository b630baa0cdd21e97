"""What checks are given, as pytest fixtures; loaded by `plugin`.

pytest makes `request` anew for each fixture that asks for it, so only those of a whole session do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from conformance import outcomes
from conformance.api import Api, Observations, Orders
from conformance.budgets import BUDGETS, Budget
from conformance.check import Check
from conformance.contract import catalogue
from conformance.runner import preflight
from conformance.runner.items import process_in
from conformance.runner.process import Process
from conformance.runner.reported import CheckReport
from conformance.runner.session import Session
from conformance.target import Secret, Target
from conformance.transport.answer import Answer
from conformance.transport.wire import Wire


@pytest.fixture(scope="session")
def process(request: pytest.FixtureRequest) -> Process:
    """The process that runs the checks."""
    return process_in(request.config)


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest, process: Process) -> Session:
    """The session of the target that the check is parametrised by."""
    return process.session(request.param)


@pytest.fixture(autouse=True)
def recorded(process: Process) -> Iterator[CheckReport | None]:
    """What the check has to report, None for a test that is no check. Sees to it that a check which cannot run is not
    run, and that what it sends is kept as its evidence."""
    check, report = process.check, process.report
    if check is None or report is None:
        yield None
        return
    name = report.target
    session = process.session(name)
    if check.id in session.exclusions:
        raise outcomes.Excluded(session.exclusions[check.id])
    if name in process.shared.dead:
        raise outcomes.Inconclusive(process.shared.dead[name])
    if check.needs.chosen_ids and name in process.shared.counts_on:
        raise outcomes.Excluded(preflight.COUNTS_ON)
    session.recorder.check = check.id
    yield report
    report.exchanges, report.messages = session.recorder.take()


@pytest.fixture
def own_check(process: Process) -> Check:
    """The check itself."""
    assert process.check is not None, "only checks ask for it"
    return process.check


@pytest.fixture
def check_id(own_check: Check) -> str:
    """The id of the check."""
    return own_check.id


@pytest.fixture
def shown_in(recorded: CheckReport) -> Callable[[str], None]:
    """Notes which other check has the exchanges that this one relies on."""

    def note(check: str) -> None:
        recorded.message = f"shown by the exchanges of {check}"

    return note


@pytest.fixture(scope="session")
def seen_met(session: Session) -> dict[str, str]:
    """The checks of this process whose demand another one has seen met, and which one that was. All of them are in one
    `xdist_group`; `session` stands for the target."""
    return {}


@pytest.fixture
def met(check_id: str, seen_met: dict[str, str]) -> Iterator[set[str]]:
    """Collects the ids of further checks whose demand this check sees met, so that they need not look themselves."""
    others: set[str] = set()
    yield others
    seen_met.update(dict.fromkeys(others, check_id))


@pytest.fixture
def already_met(check_id: str, seen_met: dict[str, str], shown_in: Callable[[str], None]) -> bool:
    """Whether another check has seen the demand of this one met, so that it need not look itself."""
    if check_id in seen_met:
        shown_in(seen_met[check_id])
    return check_id in seen_met


@pytest.fixture
def api(recorded: CheckReport, session: Session) -> Api:
    """The two operations, with the valid key."""
    return session.api(recorded.check)


@pytest.fixture(scope="session")
def wire(session: Session) -> Wire:
    """Raw connections."""
    return session.wire


@pytest.fixture(scope="session")
def key(session: Session) -> Secret:
    """The valid key itself, to make credentials from. It is a Secret, since pytest prints what fixtures return if told
    to."""
    return session.target.key


@pytest.fixture(scope="session")
def target(session: Session) -> Target:
    """The target's configuration."""
    return session.target


@pytest.fixture
def crowded(session: Session) -> bool:
    """Whether other processes send requests to the target."""
    return session.endpoint.crowded


@pytest.fixture(scope="session")
def budget(process: Process) -> Budget:
    """How hard generated checks search."""
    return BUDGETS[process.settings.budget]


@pytest.fixture(scope="session")
def seed(process: Process) -> int:
    """What the random choices of the run derive from."""
    return process.shared.seed


@pytest.fixture
def orders(recorded: CheckReport, session: Session, api: Api) -> Iterator[Orders]:
    """Orders of the check's own, given back when it ends."""
    leases = session.leases(recorded.check)
    try:
        yield Orders(leases, api)
    finally:
        leases.give_back(session.warnings)


@pytest.fixture
def kept_orders(recorded: CheckReport, session: Session, api: Api) -> Orders:
    """Orders of the check's own that stay when it ends, until another check returns them by `give_back`."""
    return Orders(session.leases(recorded.check, kept=True), api)


@pytest.fixture(scope="session")
def give_back(session: Session) -> Callable[[], None]:
    """Returns all orders that were kept."""
    return session.give_back


@pytest.fixture
def ids_come_again(session: Session) -> bool:
    """Whether the store gives the ids of cancelled orders to new ones, as far as this process knows."""
    return session.ids_used_again


@pytest.fixture(scope="session")
def due(session: Session) -> frozenset[str]:
    """The ids of the checks that a run against the target can decide."""
    return session.due


@pytest.fixture
def observe(recorded: CheckReport) -> Iterator[Observations]:
    """Collects facts on topics that the specification leaves open."""
    observations = Observations(catalogue.load().observations)
    yield observations
    recorded.observations += observations.facts


@pytest.fixture
def elsewhere(session: Session) -> Callable[[], list[Answer]]:
    """Asks for the listing next to the base URL."""
    return session.elsewhere


@pytest.fixture
def moment(process: Process) -> Callable[[float], None]:
    """Waits for that many seconds."""
    return process.wait
