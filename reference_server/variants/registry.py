"""The catalogue of variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..api import Service

Install = Callable[[Service], None]


class Variant(NamedTuple):
    """One way of being correct and different."""

    name: str
    description: str
    """One sentence."""
    install: Install
    """Puts the variant into a service."""
    leaves: frozenset[str]
    """The ids of the recommended requirements that it does not follow."""


VARIANTS: dict[str, Variant] = {}
"""Every variant by its name."""


def variant(*leaves: str) -> Callable[[Install], Install]:
    """Registers a function as a variant; takes the recommended requirements that it does not follow."""

    def register(install: Install) -> Install:
        name = install.__name__.replace("_", "-")
        description = " ".join((install.__doc__ or "").split())
        if not description or name in VARIANTS:
            raise ValueError(f"the variant {name} has no description or is there twice")
        VARIANTS[name] = Variant(name, description, install, frozenset(leaves))
        return install

    return register
