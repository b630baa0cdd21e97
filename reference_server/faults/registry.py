"""The catalogue of faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..api import Service

Install = Callable[[Service], None]


class Fault(NamedTuple):
    """One way of being wrong."""

    name: str
    requirement: str
    """The id of the requirement that it breaks."""
    description: str
    """One sentence."""
    install: Install
    """Puts the fault into a service."""


FAULTS: dict[str, Fault] = {}
"""Every fault by its name."""


def fault(requirement: str) -> Callable[[Install], Install]:
    """Registers a function as a fault; takes the id of the requirement that it breaks."""

    def register(install: Install) -> Install:
        name = install.__name__.replace("_", "-")
        description = " ".join((install.__doc__ or "").split())
        if not description or name in FAULTS:
            raise ValueError(f"the fault {name} has no description or is there twice")
        FAULTS[name] = Fault(name, requirement, description, install)
        return install

    return register
