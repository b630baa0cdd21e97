"""Writing the files of a run. Each replaces its predecessor in one step, once all of them could be written.

A reader never meets half a file, and a full disk leaves the results of the run before.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from conformance.reporting import badge, har, html, junit, results, summary
from conformance.reporting.run import Run

#: File name -> what renders it; results.json comes last, since it names the others with their digests.
WRITERS = {
    "junit.xml": junit.render,
    "summary.md": summary.render,
    "report.html": html.render,
    "evidence.har": har.render,
    "badge.svg": badge.render,
}


def write(run: Run, folder: Path) -> None:
    """Write all files of `run` to `folder`, made if need be. Raises OSError, and then leaves what was there."""
    folder.mkdir(parents=True, exist_ok=True)
    staged: dict[Path, Path] = {}
    try:
        digests = {}
        for name, render in WRITERS.items():
            content = render(run).encode()
            digests[name] = "sha256:" + hashlib.sha256(content).hexdigest()
            staged[_stage(folder / name, content)] = folder / name
        staged[_stage(folder / "results.json", results.render(run, digests).encode())] = folder / "results.json"
        for temporary, path in staged.items():
            os.replace(temporary, path)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step. Raises OSError, and then leaves what was there."""
    temporary = _stage(path, content)
    try:
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _stage(path: Path, content: bytes) -> Path:
    """A new file with `content` beside `path`. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)
