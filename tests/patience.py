"""How long tests wait: they share their machine with others, and it may stand still for minutes."""

from __future__ import annotations

#: Seconds to wait for what should come: only what never comes fails.
PATIENCE = 900.0
#: Seconds that only work out of all proportion takes. What takes half of one has been seen to take sixteen.
AGES = 200.0
