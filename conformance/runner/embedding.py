"""pytest within a command: with the settings and plugins of the suite, and with nobody else's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files

import pytest


def main(options: Sequence[str], plugins: Sequence[object]) -> int:
    """Run pytest on the checks with `options` and `plugins`; returns its exit status. Raises KeyboardInterrupt where
    one comes before its session, which heeds it."""
    _seclude()
    package = files("conformance")
    own = ["-c", str(package / "suite.ini"), "--rootdir", str(package), "--noconftest", "-p", "conformance.plugin"]
    return int(pytest.main([*own, *options, "--pyargs", "conformance.checks"], plugins=list(plugins)))


def _seclude() -> None:
    """See to it that a project's own pytest settings and plugins have no part in this, here and in the workers."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_DEBUG", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)


class Quiet:
    """Has pytest print nothing."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.pluginmanager.unregister(name="terminalreporter")
