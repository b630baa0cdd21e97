"""Services that are correct and different: what the specification does not show, decided every way.

None of them breaks a required requirement, so none may be failed; a few leave what is recommended, and say
so. A variant is a function that changes a service (see `api.Service` and `amend`), as a fault is.
"""

from __future__ import annotations

from ..registry import VARIANTS
from . import answers, deployment, orders, protocol  # noqa: F401 - each registers its variants

__all__ = ["VARIANTS"]
