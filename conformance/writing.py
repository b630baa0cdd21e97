"""Writing the files of a run. Each replaces its predecessor in one step, once all of them could be written.

A reader never meets half a file, and a full disk leaves the results of the run before.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from conformance.reporting import badge, har, html, junit, results, summary
from conformance.reporting.run import Run
from conformance.target import ConfigError

#: File name -> what renders it, whole or piece by piece; results.json comes last, since it names the others with their
#: digests.
WRITERS: dict[str, Callable[[Run], str | Iterable[str]]] = {
    "junit.xml": junit.render,
    "summary.md": summary.render,
    "report.html": html.render,
    "evidence.har": har.lines,
    "badge.svg": badge.render,
}

#: Seconds after which a file that has not taken its place never will.
ABANDONED = 600.0


def write(run: Run, folder: Path) -> None:
    """Write all files of `run` to `folder`, made if need be. Raises OSError, and then leaves what was there."""
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    staged: dict[Path, Path] = {}
    try:
        digests = {}
        for name, render in WRITERS.items():
            rendered = render(run)
            digest = hashlib.sha256()
            staged[_stage(folder / name, _encoded(rendered, digest.update))] = folder / name
            digests[name] = "sha256:" + digest.hexdigest()
        staged[_stage(folder / "results.json", [results.render(run, digests).encode()])] = folder / "results.json"
        for temporary, path in staged.items():
            os.replace(temporary, path)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what runs that were killed as they wrote have left behind; what is young may be another run's."""
    for name in (*WRITERS, "results.json"):
        for left in folder.glob(f".{name}.*"):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """See to it that files can be written to `folder`. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--report-dir {folder}: cannot be made ({error.strerror}); choose another") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--report-dir {folder}: cannot be written to; choose another")


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step. Raises OSError, and then leaves what was there."""
    temporary = _stage(path, [content])
    try:
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _encoded(text: str | Iterable[str], note: Callable[[bytes], object]) -> Iterator[bytes]:
    """`text` in UTF-8, each piece of which is noted."""
    for piece in (text,) if isinstance(text, str) else text:
        encoded = piece.encode()
        note(encoded)
        yield encoded


def _stage(path: Path, content: Iterable[bytes]) -> Path:
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
