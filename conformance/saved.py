"""`compare` and `report`: what can be said from saved results, without a new run."""

from __future__ import annotations

from pathlib import Path

from conformance.reporting import comparison, har, results
from conformance.reporting.run import Run
from conformance.target import ConfigError
from conformance.writing import replace, write


def load(path: Path) -> Run:
    """The run saved at `path`, a results.json or its folder, with its evidence where that lies beside it.

    Raises ConfigError.
    """
    file = path / "results.json" if path.is_dir() else path
    evidence = file.parent / "evidence.har"
    try:
        kept = har.read(evidence.read_bytes()) if evidence.exists() else har.Evidence("", [], [])
        return results.read(file.read_bytes(), kept.exchanges, kept.messages)
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be read ({error.strerror})") from None
    except (results.ResultsError, har.HarError) as error:
        raise ConfigError(f"{file}: {error}") from None


def compare(paths: list[Path], folder: Path | None) -> int:
    """Print what changed between two results, or a matrix of more, write it to `folder` if given, and return the exit
    status: 1 where two results show a regression."""
    if len(paths) < 2:
        raise ConfigError("compare needs two results or more")
    runs = [load(path) for path in paths]
    regressed = False
    if len(runs) == 2:
        two = comparison.compare(*runs)
        regressed = two.regressed
        text, markdown, html = comparison.text(two), comparison.markdown(two), comparison.html(two)
    else:
        more = comparison.matrix(runs)
        text = comparison.matrix_text(more)
        markdown, html = comparison.matrix_markdown(more), comparison.matrix_html(more)
    print(text)
    if folder is not None:
        _write(folder, {"comparison.md": markdown, "comparison.html": html})
    return 1 if regressed else 0


def report(path: Path, folder: Path | None) -> int:
    """Render the reports of the result saved at `path` anew and return 0."""
    run = load(path)
    target = folder or (path if path.is_dir() else path.parent)
    if not run.exchanges:
        print("There is no evidence.har beside the result: the reports will show no exchanges.")
    try:
        write(run, target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written to ({error.strerror})") from None
    print(f"Reports: {target}")
    return 0


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            replace(folder / name, text.encode())
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written to ({error.strerror})") from None
    print(f"Written to {folder}")
