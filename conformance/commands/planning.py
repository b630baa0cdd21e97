"""`run --plan`: what would run against each target, what would not, and why. Sends nothing, and starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from conformance.budgets import BUDGETS, Budget
from conformance.check import Check, checks_of, exclusion, exclusions, scaled
from conformance.checks import search
from conformance.configuration import settings, waivers
from conformance.configuration.targets import adjusted, resolve
from conformance.console.terminal import Console
from conformance.contract import catalogue
from conformance.judging import judges
from conformance.runner.session import redactor_of
from conformance.target import REFERENCE, Mode, Secret, States, Target
from conformance.text import plural

#: The reference server in a plan: it is not started, so it has no address yet.
_REFERENCE = Target(
    REFERENCE, "(started by the run)/v1", Secret("unused"), Mode.FULL, states=States(url="(started by the run)")
)


def plan(targets: tuple[str, ...], values: dict[str, Any], workers: str | None) -> int:
    """Print the plan for `targets` and return 0. Raises ConfigError."""
    chosen = settings.read(targets, values)
    settings.validate_workers(workers)
    waivers.read(chosen.waivers, datetime.now(UTC).date())
    console = Console(highlight=False, soft_wrap=True)
    checks = checks_of(chosen.selected)
    for target in resolve(chosen.targets, chosen.options, looking=True):
        for line in lines(target or adjusted(_REFERENCE, chosen.options), checks, BUDGETS[chosen.budget]):
            console.print(line, markup=False)
    return 0


def lines(target: Target, checks: Sequence[Check], budget: Budget) -> list[str]:
    """The plan for one target and a budget."""
    rows = catalogue.load().requirements
    reasons = exclusions(checks, target)
    running = [check for check in checks if check.id not in reasons]
    unless = f" (full with --confirm-cancel {target.name})" if target.unconfirmed else ""
    alike = f" since {target.protected_as!r} has the same address" if target.protected_as else ""
    protected = f", protected{alike}" if target.protected else ""
    where = redactor_of(target).clean(target.base_url)
    said = [f"{target.name}: {where}, mode {target.mode}{unless}{protected}", ""]
    for id_ in dict.fromkeys(check.requirement for check in checks):
        own = [check for check in checks if check.requirement == id_]
        run = [check for check in own if check.id not in reasons]
        state = "runs" if len(run) == len(own) else "in part" if run else "excluded"
        said.append(f"  {state:9} {id_:10} {rows[id_].title}")
        for reason in dict.fromkeys(reasons[check.id] for check in own if check.id in reasons):
            without = ", ".join(check.id for check in own if reasons.get(check.id) == reason)
            said.append(f"{'':22} not {without}: {reason}")
    exercised = {check.requirement for check in running}
    selected = dict.fromkeys(check.requirement for check in checks)
    judged = [id_ for id_ in selected if id_ in judges.JUDGES and id_ not in exercised]
    said += ["", f"  {len(running)} of {len(checks)} checks run, for {len(exercised)} of {len(selected)} requirements."]
    if judged:
        said.append(f"  Decided all the same where an answer of another check tells: {', '.join(judged)}.")
    said.append(f"  {_orders(target, checks, running, budget)}")
    if target.unconfirmed:
        said.append(
            f"  Without --confirm-cancel {target.name} or --mode guarded the run is refused, and sends nothing."
        )
    return [*said, ""]


def _orders(target: Target, checks: Sequence[Check], running: Sequence[Check], budget: Budget) -> str:
    """The orders that the run needs."""
    if target.states is not None and target.states.static:
        able = [check.needs for check in checks if exclusion(check.needs, target) is None]
        return (
            f"Static orders: the configuration has {len(target.states.pending)} pending and "
            f"{len(target.states.shipped)} shipped; all checks that can do with such want "
            f"{sum(n.pending for n in able)} and {sum(n.shipped for n in able)}. "
            "Each is used once, so name others before the next run."
        )
    if target.states is None:
        return "There is no state provider for this target, so no orders are needed."
    needs = [scaled(check.needs, target) for check in running]
    apart = [need for check, need in zip(running, needs, strict=True) if not check.id.startswith(search.CHECKS)]
    searched = search.orders_for(budget) if len(apart) < len(needs) else (0, 0)  # one search for all of them
    few = [(need.pending, need.shipped) for need in apart if not need.many_orders]
    many = [(need.pending, need.shipped) for need in apart if need.many_orders]
    # One look at many orders serves all checks that want so many, unless it shows something wrong.
    pending, shipped = map(sum, zip(searched, *few, *sorted(many)[-1:], strict=True))
    most = max((count for counts in (*few, *many) for count in counts), default=0)
    chosen = plural(sum(n.chosen_ids for n in needs), "check")
    return (
        f"Orders wanted from the state provider: about {pending} pending and {shipped} shipped, each given back after "
        f"its check, {most} of them at once at most; chosen ids for {chosen}; an empty store for "
        f"{sum(n.empty_store for n in needs)}."
    )
