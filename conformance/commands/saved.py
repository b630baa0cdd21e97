"""`compare` and `report`: what can be said about saved results, without a new run."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.console.streams import tell
from conformance.reporting import comparison, comparison_views, har, results
from conformance.reporting.files import replace
from conformance.reporting.run import Run
from conformance.reporting.writing import write
from conformance.target import ConfigError


@dataclass(frozen=True)
class Saved:
    """A saved result: `data` is the content of results.json, `run` the same with the evidence. `archived_by` is the
    version of the suite that wrote the evidence, empty if there is none."""

    file: Path
    evidence: Path | None
    data: dict[str, Any]
    run: Run
    archived_by: str

    @classmethod
    def at(cls, path: Path) -> Saved:
        """The result at `path`, a results.json or its folder, with the evidence beside it, if any.

        Raises ConfigError.
        """
        file = path / "results.json" if path.is_dir() else path
        evidence = file.with_name("evidence.har")
        try:
            kept = har.read(evidence.read_bytes()) if evidence.exists() else har.Archive("", [], [])
            data = results.parsed(file.read_bytes())
            run = results.read(data, kept.exchanges, kept.messages)
        except OSError as error:
            inside = sorted(path.glob("*/results.json"))
            hint = f"; for one target, give {inside[0].parent}" if inside else ""
            raise ConfigError(f"{error.filename}: cannot be read ({error.strerror}){hint}") from None
        except results.ResultsError as error:
            raise ConfigError(f"{file}: {error}") from None
        except har.HarError as error:
            raise ConfigError(f"{evidence}: {error}") from None
        return cls(file, evidence if evidence.exists() else None, data, run, kept.suite_version)

    @property
    def named(self) -> dict[str, str]:
        """The files that the run wrote, by name, with their digests."""
        return dict(self.data.get("files", {}))

    @property
    def as_written(self) -> bool:
        """Whether results.json is unchanged since the run wrote it."""
        return bool(self.data.get("digest") == results.digest(self.data))

    def is_named(self, file: Path) -> bool:
        """Whether a file beside the result is unchanged since the run wrote it."""
        return self.named.get(file.name) == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"

    @property
    def changed(self) -> Path | None:
        """Whichever of results.json and the evidence, if that is there, was changed since the run wrote it."""
        if not self.as_written:
            return self.file
        return self.evidence if self.evidence and not self.is_named(self.evidence) else None


def compare(paths: list[Path], folder: Path | None) -> int:
    """Print what changed between two results, or a matrix of more, write it to `folder` if given, and return the exit
    status: 1 if two results show a regression."""
    if len(paths) < 2:
        raise ConfigError("compare needs two results or more")
    found = [Saved.at(path) for path in paths]
    for one in found:
        if one.changed:
            sys.stderr.write(f"{one.changed} was changed after the run had written it.\n")
    runs = [one.run for one in found]
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
    """Render the reports of the result saved at `path` again and return 0.

    Raises ConfigError, also if the result or its evidence was changed since the run wrote it: rendered again,
    everything would have matching digests. Without its evidence the reports show no exchanges, and no evidence.har is
    written: results.json goes on naming that of the run.
    """
    saved = Saved.at(path)
    if saved.changed:
        raise ConfigError(
            f"{saved.changed} was changed after the run had written it; rendered anew, it would not show that"
        )
    target = folder or saved.file.parent
    if not saved.evidence:
        missing = saved.file.with_name("evidence.har")
        sys.stderr.write(f"There is no {missing}: the reports show no exchanges, and no evidence.har is written.\n")
    try:
        write(saved.run, target, None if saved.evidence else saved.named)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written to ({error.strerror})") from None
    tell(f"Reports: {target}")
    return 0


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            replace(folder / name, text.encode())
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written to ({error.strerror})") from None
    tell(f"Written to {folder}")
