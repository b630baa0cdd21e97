"""Writes the files of a run. Each replaces its predecessor in one step, once all of them have been written.

So nobody reads half a file, and a full disk leaves the results of the previous run.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from conformance.reporting import badge, har, html, junit, results, summary
from conformance.reporting.files import stage
from conformance.reporting.run import Run

#: File name -> its renderer, which gives the text whole or in pieces. results.json comes last, since it holds the
#: digests of the others.
WRITERS: dict[str, Callable[[Run], str | Iterable[str]]] = {
    "junit.xml": junit.render,
    "summary.md": summary.render,
    "report.html": html.render,
    "evidence.har": har.render,
    "badge.svg": badge.render,
}

#: After so many seconds, a file that has not been put in place never will be.
ABANDONED = 600.0


def write(run: Run, folder: Path, named: Mapping[str, str] | None = None) -> None:
    """Write all files of `run` to `folder`, which is made if needed. Raises OSError, and then leaves what was there,
    unless one of the names is that of a folder.

    If the evidence of the run is missing, `named` are the files with their digests that its results.json named: then no
    evidence.har is written, and results.json goes on naming the one that exists elsewhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    staged: dict[Path, Path] = {}
    try:
        digests = dict(named or {})
        for name, render in WRITERS.items():
            if name == "evidence.har" and named is not None:
                continue
            rendered = render(run)
            digest = hashlib.sha256()
            staged[stage(folder / name, _encoded(rendered, digest.update))] = folder / name
            digests[name] = "sha256:" + digest.hexdigest()
        staged[stage(folder / "results.json", [results.render(run, digests).encode()])] = folder / "results.json"
        for temporary, path in staged.items():
            os.replace(temporary, path)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)


def prepare() -> None:
    """Load what would otherwise be loaded when the first run is written."""
    html.template()


def _sweep(folder: Path) -> None:
    """Remove what runs left behind that were killed while writing. Recent files may belong to another run."""
    for name in (*WRITERS, "results.json"):
        for left in folder.glob(f".{name}.*"):
            with suppress(FileNotFoundError):  # that run has just put it in its place
                if time.time() - left.stat().st_mtime > ABANDONED:
                    left.unlink()


def _encoded(text: str | Iterable[str], note: Callable[[bytes], object]) -> Iterator[bytes]:
    """`text` in UTF-8; `note` is called with each piece."""
    for piece in (text,) if isinstance(text, str) else text:
        encoded = piece.encode()
        note(encoded)
        yield encoded
