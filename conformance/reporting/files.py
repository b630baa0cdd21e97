"""Files that are replaced in one step, so that nobody reads half a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from conformance.target import ConfigError


def make_folder(folder: Path) -> None:
    """Make `folder` if needed, and check that files can be written to it. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--report-dir {folder}: cannot be made ({error.strerror}); choose another") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--report-dir {folder}: cannot be written to; choose another")


def validate_folder(folder: Path) -> None:
    """Check that files can be written to `folder`, or that it can be made. Raises ConfigError."""
    if folder.is_dir():
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"--report-dir {folder.parent}: {folder} cannot be written to; choose another")
    elif os.path.lexists(folder):
        raise ConfigError(f"--report-dir {folder.parent}: {folder} is in the way, and no folder; choose another")


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step. Raises OSError, and then leaves what was there."""
    temporary = stage(path, [content])
    try:
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def stage(path: Path, content: Iterable[bytes]) -> Path:
    """A new file with `content` beside `path`. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(content)
        os.chmod(name, 0o644)
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)
