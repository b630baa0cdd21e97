"""What all tests share: how Hypothesis searches. The same examples every time, so that nothing is flaky."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "harness",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("harness")
