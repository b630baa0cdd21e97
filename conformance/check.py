"""What a check is: a pytest test that is tied to a requirement and declares what it needs.

The decorator only records this. Which checks cannot run against a target follows from their needs and the target alone
(`exclusions`), for `--plan` as for a run.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from conformance.contract import catalogue
from conformance.target import Mode, Target

PACKAGE = "conformance.checks"


@dataclass(frozen=True)
class Needs:
    """What a check needs: a mode, how many orders of each kind, and abilities that only some providers have."""

    mode: Mode = Mode.OBSERVE
    pending: int = 0
    shipped: int = 0
    chosen_ids: bool = False
    many_orders: bool = False
    empty_store: bool = False
    placing: bool = False  # its orders must be placed while it runs, and not before

    @property
    def orders(self) -> bool:
        """Whether it needs orders of its own."""
        return bool(self.pending or self.shipped or self.chosen_ids or self.many_orders)

    @property
    def more_than_lists(self) -> bool:
        """Whether it needs something that static lists of orders cannot provide."""
        return self.chosen_ids or self.many_orders or self.empty_store or self.placing


@dataclass(frozen=True)
class Check:
    """One check: its stable id, its requirement, its needs, and what it does in a sentence or two."""

    id: str
    requirement: str
    needs: Needs
    description: str


Function = TypeVar("Function", bound=Callable[..., None])
_NOTE = "__conformance_check__"


def requirement(
    id: str,  # noqa: A002 - the catalogue's own word
    *,
    mode: Mode = Mode.OBSERVE,
    pending: int = 0,
    shipped: int = 0,
    chosen_ids: bool = False,
    many_orders: bool = False,
    empty_store: bool = False,
    placing: bool = False,
) -> Callable[[Function], Function]:
    """Tie a test function to the requirement `id` and declare what it needs; its docstring says what it demands.

    `mode` is the least mode in which it may run. Raises KeyError for an id that is not in the catalogue.
    """
    row = catalogue.load().requirements[id]

    def note(function: Function) -> Function:
        check = Check(
            id=f"{_part(function.__module__)}.{function.__name__.removeprefix('test_')}",
            requirement=row.id,
            needs=Needs(
                mode,
                pending,
                shipped,
                chosen_ids=chosen_ids,
                many_orders=many_orders,
                empty_store=empty_store,
                placing=placing,
            ),
            description=inspect.cleandoc(function.__doc__ or ""),
        )
        setattr(function, _NOTE, check)
        return function

    return note


def _part(module: str) -> str:
    """The part of the contract that a module of checks is about: a folder below `checks`, or the module itself."""
    part, *_ = module.removeprefix(f"{PACKAGE}.").split(".")
    return part.removeprefix("test_")


def of_function(function: Any) -> Check | None:
    """The check that a test function implements, or None."""
    return getattr(inspect.unwrap(function), _NOTE, None)


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check of the suite, in the order of the catalogue, and within a requirement in the order of the source."""
    package = importlib.import_module(PACKAGE)
    found: list[Check] = []
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if module.name.rpartition(".")[2].startswith("test_"):
            members = vars(importlib.import_module(module.name)).values()
            found += [check for member in members if callable(member) and (check := of_function(member))]
    order = list(catalogue.load().requirements)
    return tuple(sorted(found, key=lambda check: order.index(check.requirement)))


def checks_of(requirements: Container[str]) -> list[Check]:
    """The checks of these requirements, in the order of `all_checks`."""
    return [check for check in all_checks() if check.requirement in requirements]


@cache
def places() -> dict[str, int]:
    """The position of each check in `all_checks`, by its id."""
    return {check.id: place for place, check in enumerate(all_checks())}


def exclusion(needs: Needs, target: Target) -> str | None:
    """Why a check with these needs cannot run against `target`; None if it can."""
    if needs.empty_store and target.states is not None and (target.mode is not Mode.FULL or target.protected):
        return "the store is emptied in mode full only, and never that of a protected target"
    if needs.mode > target.mode:
        what = "orders of the state provider" if needs.mode is Mode.FULL else "where no order is"
        provided = " and a state provider" if needs.orders and target.states is None else ""
        return f"needs mode {needs.mode}{provided}: mode {target.mode} does not cancel {what}"
    if not (needs.orders or needs.empty_store):
        return None
    if target.states is None:
        return "no state provider hands out orders for this target"
    if target.states.static and needs.more_than_lists:
        return "static lists of orders cannot provide this"
    if needs.chosen_ids and target.mode is not Mode.FULL:
        return "only in mode full is the state provider asked for ids of the suite's choice"
    if needs.many_orders and target.bulk_orders == 0:
        return "bulk_orders is 0 for this target"
    return None


def exclusions(checks: Iterable[Check], target: Target) -> dict[str, str]:
    """For those `checks` that cannot run against `target`: the reason, by their ids."""
    chosen = list(checks)
    reasons = {check.id: reason for check in chosen if (reason := exclusion(check.needs, target)) is not None}
    if target.states is not None and target.states.static:
        shared = shares(chosen, target)
        for check in chosen:
            if check.needs.orders and check.id not in shared:
                reasons.setdefault(check.id, "the static lists of orders have too few ids left for this check")
    return reasons


#: With static lists each id is used once; the requirements whose failure tells most come first.
MOST_TELLING = (
    "CANCEL-1", "CANCEL-3", "CANCEL-6", "CANCEL-4", "AUTH-2", "AUTH-5", "AUTH-3", "CANCEL-2", "LIST-3", "CANCEL-8",
    "CANCEL-9", "AUTH-1", "CANCEL-7",
)  # fmt: skip

Shares = dict[str, tuple[list[int], list[int]]]


def shares(checks: Iterable[Check], target: Target) -> Shares:
    """How the static ids of `target` are divided among `checks`, as by `allot`; empty for other providers."""
    states = target.states
    if states is None or not states.static:
        return {}
    return allot((check for check in checks if check.needs.mode <= target.mode), states.pending, states.shipped)


def allot(checks: Iterable[Check], pending: tuple[int, ...], shipped: tuple[int, ...]) -> Shares:
    """Divide static ids among checks: by check id, its pending and its shipped ids.

    The requirements take turns, the most telling first, each with its check that needs the fewest orders, so that a few
    ids serve many requirements. The walks against the model come last. A check that cannot get all that it needs gets
    none, and leaves the ids to others.
    """
    takers = [check for check in checks if check.needs.orders and not check.needs.more_than_lists]
    turn: Counter[tuple[bool, str]] = Counter()
    place: dict[str, tuple[bool, int, int, str]] = {}
    for check in sorted(takers, key=lambda check: (check.needs.pending + check.needs.shipped, check.id)):
        rank = MOST_TELLING.index(check.requirement) if check.requirement in MOST_TELLING else len(MOST_TELLING)
        walks = check.id.startswith("model.")
        turn[walks, check.requirement] += 1
        place[check.id] = (walks, turn[walks, check.requirement], rank, check.requirement)
    left_pending, left_shipped = list(pending), list(shipped)
    found: Shares = {}
    for check in sorted(takers, key=lambda check: place[check.id]):
        needs = check.needs
        if needs.pending <= len(left_pending) and needs.shipped <= len(left_shipped):
            found[check.id] = (left_pending[: needs.pending], left_shipped[: needs.shipped])
            left_pending, left_shipped = left_pending[needs.pending :], left_shipped[needs.shipped :]
    return found


def scaled(needs: Needs, target: Target) -> Needs:
    """`needs` with the orders that checks of many orders take in addition, which `target` configures (bulk_orders);
    shipped ones only if the check needs any."""
    if not needs.many_orders:
        return needs
    shipped = needs.shipped + target.bulk_shipped if needs.shipped else 0
    return replace(needs, pending=needs.pending + target.bulk_orders, shipped=shipped)
