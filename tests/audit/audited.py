"""Runs to audit, and what can be done to them afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from conformance.reporting import har, results, writing

KEY_VARIABLE = "HARNESS_AUDIT_KEY"
KEY = "sk-Audited.Key_4711"


@dataclass
class Written:
    """The files of a run, as data that can be changed."""

    folder: Path
    results: dict[str, Any]
    archive: dict[str, Any]

    @classmethod
    def copy(cls, original: Path, to: Path) -> Written:
        shutil.copytree(original, to, dirs_exist_ok=True)
        read = (json.loads((to / name).read_text(encoding="utf-8")) for name in ("results.json", "evidence.har"))
        return cls(to, *read)

    @property
    def entries(self) -> list[dict[str, Any]]:
        return list(self.archive["log"]["entries"])

    def of(self, check: str) -> list[dict[str, Any]]:
        """The entries of one check."""
        return [entry for entry in self.entries if entry["_check"] == check]

    def row(self, requirement: str) -> dict[str, Any]:
        return next(row for row in self.results["requirements"] if row["id"] == requirement)

    def check(self, name: str) -> dict[str, Any]:
        return next(check for row in self.results["requirements"] for check in row["checks"] if check["id"] == name)

    def write(self) -> None:
        """As somebody would with an editor: digests stay as they were."""
        (self.folder / "results.json").write_text(json.dumps(self.results), encoding="utf-8")
        (self.folder / "evidence.har").write_text(json.dumps(self.archive), encoding="utf-8")

    def write_sealed(self) -> None:
        """As somebody would who knows the suite: digests and the other files follow what was changed."""
        kept = har.read(json.dumps(self.archive))
        run = results.read(self.results, kept.exchanges, kept.messages)
        writing.write(run, self.folder)
        data = json.loads((self.folder / "results.json").read_text(encoding="utf-8"))
        assert har.read((self.folder / "evidence.har").read_bytes()) == kept, "what was changed is no longer there"
        self.results = {**self.results, "files": data["files"]}
        self.results["digest"] = results.digest(self.results)
        (self.folder / "results.json").write_text(json.dumps(self.results), encoding="utf-8")

    def renumber(self) -> None:
        """Number the entries from 0 on, and everything that refers to them."""
        places = {entry["_number"]: place for place, entry in enumerate(self.entries)}
        for entry in self.entries:
            entry["_number"] = places[entry["_number"]]
            content = entry["response"]["content"]
            if "_body_of" in content:
                content["_body_of"] = places[content["_body_of"]]
                content["comment"] = f"the same body as in exchange {content['_body_of']}"
        for row in self.results["requirements"]:
            for check in row["checks"]:
                check["exchanges"] = [places[number] for number in check["exchanges"] if number in places]
                if check.get("failure", {}).get("exchange") in places:
                    check["failure"]["exchange"] = places[check["failure"]["exchange"]]
        for seen in self.results["observations"]:
            seen["exchanges"] = [places[number] for number in seen["exchanges"] if number in places]
        self.results["run"]["requests"] = len(self.entries)


Tampering = Callable[[Written], None]


def with_body(entry: dict[str, Any], body: str) -> None:
    """Give an entry another body, with its size and digest."""
    entry["response"]["content"].update(text=body, size=len(body))
    entry["_body_sha256"] = sha256(body.encode()).hexdigest()
