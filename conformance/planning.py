"""`run --plan`: what would run against each target and what would not, and why. Sends nothing, starts nothing."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from conformance import settings
from conformance.check import Check, all_checks, exclusion, scaled
from conformance.contract import catalogue
from conformance.session import static_allotments
from conformance.target import REFERENCE, Mode, Secret, States, Target, adjusted, resolve

#: The reference as `--plan` sees it: nothing is started, so there is no address yet.
_REFERENCE = Target(
    REFERENCE, "(started by the run)/v1", Secret("unused"), Mode.FULL, states=States(url="(started by the run)")
)


def plan(targets: tuple[str, ...], values: dict[str, Any]) -> int:
    """Print the plan for `targets` and return 0. Raises ConfigError."""
    chosen = settings.read(targets, values)
    console = Console(highlight=False, soft_wrap=True)
    checks = [check for check in all_checks() if check.requirement in chosen.selected]
    for target in resolve(chosen.targets, chosen.options):
        for line in lines(target or adjusted(_REFERENCE, chosen.options), checks):
            console.print(line, markup=False)
    return 0


def lines(target: Target, checks: list[Check]) -> list[str]:
    """The plan for one target, line by line."""
    rows = catalogue.load().requirements
    allotments = static_allotments(target, checks)
    reasons: dict[str, str | None] = {}
    for check in checks:
        reasons[check.id] = exclusion(check.needs, target)
        static = target.states is not None and target.states.static
        if static and check.needs.orders and reasons[check.id] is None and check.id not in allotments:
            reasons[check.id] = "the static lists of orders have too few ids left for this check"
    running = [check for check in checks if reasons[check.id] is None]
    said = [f"{target.name}: {target.base_url}, mode {target.mode}", ""]
    for id_ in dict.fromkeys(check.requirement for check in checks):
        own = [check for check in checks if check.requirement == id_]
        run = [check for check in own if reasons[check.id] is None]
        state = "runs" if len(run) == len(own) else "in part" if run else "excluded"
        said.append(f"  {state:9} {id_:10} {rows[id_].title}")
        said += [f"{'':22} not {check.id}: {reasons[check.id]}" for check in own if reasons[check.id]]
    needs = [scaled(check.needs, target) for check in running]
    exercised = {check.requirement for check in running}
    selected = {check.requirement for check in checks}
    said += [
        "",
        f"  {len(running)} of {len(checks)} checks run, for {len(exercised)} of {len(selected)} requirements.",
        f"  Orders wanted from the state provider: {sum(n.pending for n in needs)} pending and "
        f"{sum(n.shipped for n in needs)} shipped, in small portions that are given back; chosen ids for "
        f"{sum(n.chosen_ids for n in needs)} checks; an empty store for {sum(n.empty_store for n in needs)}.",
        "",
    ]
    return said
