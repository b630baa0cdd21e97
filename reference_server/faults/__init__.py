"""Services that break one requirement each and are correct otherwise: what a check must be able to see.

A fault is a function that changes one part of a service (see `api.Service` and `amend`). Its name on the
command line is the function's with hyphens, and its docstring is what people read about it.
"""

from __future__ import annotations

from . import authentication, cancelling, errors, listing, orders, protocol
from .registry import FAULTS, NOT_FAULTABLE, Fault, fault

__all__ = [
    "FAULTS",
    "NOT_FAULTABLE",
    "Fault",
    "authentication",
    "cancelling",
    "errors",
    "fault",
    "listing",
    "orders",
    "protocol",
]
