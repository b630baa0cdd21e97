"""Services that break one requirement each and are correct otherwise: what a check must be able to see.

A fault is a function that changes one part of a service (see `api.Service` and `amend`). Its name on the
command line is the function's with hyphens, and its docstring is what people read about it.
"""

from __future__ import annotations

from ..registry import FAULTS
from . import (  # noqa: F401 - each registers its faults
    caching,
    cancelling,
    cancelling_absent,
    cancelling_shipped,
    connections,
    credentials,
    disguises,
    errors,
    identifiers,
    listing,
    listing_all_at_once,
    listing_ids,
    near_misses,
    no_content,
    orders,
    other_orders,
    protocol,
    refusals,
)

__all__ = ["FAULTS"]
