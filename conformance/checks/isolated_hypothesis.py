"""Hypothesis without its plugins, files and caches, so that what it generates depends on the seed alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis import settings


def load() -> None:
    """Import Hypothesis without the plugins of other installed libraries, which take time to load and could change what
    is generated."""
    from unittest import mock  # slow to load, and most processes never come here

    with mock.patch.dict(os.environ, HYPOTHESIS_NO_PLUGINS="1"):
        import_module("hypothesis.stateful")


def profile(examples: int, **more: Any) -> settings:
    """Settings with which Hypothesis generates `examples` and does nothing else; `more` are further settings."""
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
def isolated() -> Iterator[None]:
    """Keep Hypothesis from writing files, from printing warnings of its own (on Python 3.14 it has one about random
    numbers), and from drawing constants from whatever modules happen to be loaded."""
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
