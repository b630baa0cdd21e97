"""The catalogues of faults and variants, in which each is registered where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from .api import Service

Install = Callable[[Service], None]
"""Puts a fault or a variant into a service."""


class Fault(NamedTuple):
    """One way of being wrong."""

    name: str
    description: str
    """One sentence."""
    install: Install
    requirement: str
    """The id of the requirement that it breaks."""


class Variant(NamedTuple):
    """One way of being correct and different."""

    name: str
    description: str
    """One sentence."""
    install: Install
    leaves: frozenset[str]
    """The ids of the recommended requirements that it does not follow."""


FAULTS: dict[str, Fault] = {}
"""Every fault by its name."""

VARIANTS: dict[str, Variant] = {}
"""Every variant by its name."""

T = TypeVar("T")


def _register(catalogue: dict[str, T], entry: Callable[[str, str, Install], T]) -> Callable[[Install], Install]:
    """Registers a function under its name in hyphens, with its docstring as the description."""

    def register(install: Install) -> Install:
        name = install.__name__.replace("_", "-")
        description = " ".join((install.__doc__ or "").split())
        if not description or name in catalogue:
            raise ValueError(f"{name} has no description or is there twice")
        catalogue[name] = entry(name, description, install)
        return install

    return register


def fault(requirement: str) -> Callable[[Install], Install]:
    """Registers a function as a fault; takes the id of the requirement that it breaks."""
    return _register(FAULTS, partial(Fault, requirement=requirement))


def variant(*leaves: str) -> Callable[[Install], Install]:
    """Registers a function as a variant; takes the recommended requirements that it does not follow."""
    return _register(VARIANTS, partial(Variant, leaves=frozenset(leaves)))
