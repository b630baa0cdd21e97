"""pytest within a command: with the settings and plugins of the suite, and no others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files

import pytest


def main(options: Sequence[str], plugins: Sequence[object]) -> int:
    """Run pytest on the checks with `options` and `plugins`; returns its exit status. Raises KeyboardInterrupt for one
    that arrives before its session begins."""
    _seclude()
    package = files("conformance")
    own = ["-c", str(package / "suite.ini"), "--rootdir", str(package), "--noconftest", "-p", "conformance.plugin"]
    return int(pytest.main([*own, *options, "--pyargs", "conformance.checks"], plugins=list(plugins)))


def _seclude() -> None:
    """Exclude a project's own pytest settings and plugins, here and in the workers."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_DEBUG", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)


class Quiet:
    """Keeps pytest from printing anything."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.pluginmanager.unregister(name="terminalreporter")
