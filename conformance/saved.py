"""`compare` and `report`: what can be said from saved results, without a new run."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from conformance.files import replace
from conformance.reporting import comparison, comparison_views, har, results
from conformance.reporting.run import Run
from conformance.target import ConfigError
from conformance.terminal import tell
from conformance.writing import write


def load(path: Path) -> Run:
    """The run saved at `path`, a results.json or its folder, with its evidence where that lies beside it.

    Raises ConfigError.
    """
    file, evidence = _files(path)
    try:
        kept = har.read(evidence.read_bytes()) if evidence.exists() else har.Archive("", [], [])
        return results.read(file.read_bytes(), kept.exchanges, kept.messages)
    except OSError as error:
        inside = sorted(path.glob("*/results.json"))
        hint = f"; for one target, give {inside[0].parent}" if inside else ""
        raise ConfigError(f"{error.filename}: cannot be read ({error.strerror}){hint}") from None
    except (results.ResultsError, har.HarError) as error:
        raise ConfigError(f"{file}: {error}") from None


def compare(paths: list[Path], folder: Path | None) -> int:
    """Print what changed between two results, or a matrix of more, write it to `folder` if given, and return the exit
    status: 1 where two results show a regression."""
    if len(paths) < 2:
        raise ConfigError("compare needs two results or more")
    runs = [load(path) for path in paths]
    for path in paths:
        if changed := _changed(*_files(path)):
            sys.stderr.write(f"{changed} was changed after the run had written it.\n")
    regressed = False
    if len(runs) == 2:
        two = comparison.compare(*runs)
        regressed = two.regressed
        text, markdown, html = comparison_views.text(two), comparison_views.markdown(two), comparison_views.html(two)
    else:
        more = comparison.matrix(runs)
        text = comparison_views.matrix_text(more)
        markdown, html = comparison_views.matrix_markdown(more), comparison_views.matrix_html(more)
    tell(text)
    if folder is not None:
        _write(folder, {"comparison.md": markdown, "comparison.html": html})
    return 1 if regressed else 0


def report(path: Path, folder: Path | None) -> int:
    """Render the reports of the result saved at `path` anew and return 0.

    Raises ConfigError, also where the result or its evidence is not as the run wrote it: what is rendered has digests
    that agree. Without its evidence they show no exchanges, and none is made up for it: results.json names the evidence
    of the run.
    """
    run = load(path)
    file, evidence = _files(path)
    if changed := _changed(file, evidence):
        raise ConfigError(f"{changed} was changed after the run had written it; rendered anew, it would not show that")
    target = folder or file.parent
    named = None
    if not evidence.exists():
        named = json.loads(file.read_bytes()).get("files", {})
        sys.stderr.write(f"There is no {evidence}: the reports show no exchanges, and no evidence.har is written.\n")
    try:
        write(run, target, named)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written to ({error.strerror})") from None
    tell(f"Reports: {target}")
    return 0


def _files(path: Path) -> tuple[Path, Path]:
    """The results.json that `path` means, and where its evidence should lie."""
    file = path / "results.json" if path.is_dir() else path
    return file, file.parent / "evidence.har"


def _changed(file: Path, evidence: Path) -> Path | None:
    """Which of a saved result and its evidence, if that is there, is not as the run wrote it."""
    data = json.loads(file.read_bytes())
    if data.get("digest") != results.digest(data):
        return file
    named = data.get("files", {}).get(evidence.name)
    if evidence.exists() and named != f"sha256:{hashlib.sha256(evidence.read_bytes()).hexdigest()}":
        return evidence
    return None


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            replace(folder / name, text.encode())
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written to ({error.strerror})") from None
    tell(f"Written to {folder}")
