"""Hypothesis without its surroundings, so that what it makes up depends on the seed alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis import settings


def load() -> None:
    """Import Hypothesis, without what other libraries plug into it where they happen to be installed: it takes time,
    and what is made up depends on the seed alone."""
    from unittest import mock  # takes its time to load, and most processes never come here

    with mock.patch.dict(os.environ, HYPOTHESIS_NO_PLUGINS="1"):
        import_module("hypothesis.stateful")


def profile(examples: int, **more: Any) -> settings:
    """Hypothesis generates here and does nothing else."""
    from hypothesis import HealthCheck, Phase, Verbosity, settings

    return settings(
        max_examples=examples,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        **more,
    )


@contextmanager
def alone() -> Iterator[None]:
    """Hypothesis by itself: it writes no files, tells no user what it thinks of its surroundings (Python 3.14 has it
    warn of its own random numbers), and minds no constants in whatever modules happen to be loaded."""
    import warnings
    from unittest import mock

    from hypothesis import configuration
    from hypothesis.errors import HypothesisWarning
    from hypothesis.internal.conjecture import providers

    home = "__hypothesis_home_directory"
    with mock.patch.object(configuration, home, None, create=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        configuration.set_hypothesis_home_dir(f"{os.devnull}/hypothesis")  # where nothing can be written
        none = type(providers.GLOBAL_CONSTANTS)()
        with mock.patch.object(providers, "_get_local_constants", return_value=none):
            providers.CONSTANTS_CACHE.cache.clear()
            yield
            providers.CONSTANTS_CACHE.cache.clear()
