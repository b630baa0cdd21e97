"""Writing the files of a run. Each replaces its predecessor in one step: a reader never meets half a file."""

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
    """Write all files of `run` to `folder`, which is made if need be. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    for name, render in WRITERS.items():
        text = render(run).encode()
        replace(folder / name, text)
        digests[name] = "sha256:" + hashlib.sha256(text).hexdigest()
    replace(folder / "results.json", results.render(run, digests).encode())


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step. Raises OSError, and then leaves what was there."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
