"""What pipelines do with our files: a composite action step by step, scripts of others as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from commands import inherited

PROJECT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((PROJECT / "action.yml").read_text(encoding="utf-8"))


def of_no_checkout() -> dict[str, str]:
    """The inherited variables without those that lead to this checkout or its environment."""
    return {name: value for name, value in inherited().items() if not name.startswith(("VIRTUAL_ENV", "PYTHONPATH"))}


def oldest_libraries() -> dict[str, str]:
    """The lowest version of each library with which the project says it works, by the name of the library."""
    described = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    found = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", each) for each in described)
    return dict(match.groups() for match in found if match is not None)


@dataclass
class Runner:
    """A machine that runs the steps of the action with bash, in `folder`, as GitHub's do; what it does not run are the
    actions of others."""

    folder: Path
    action_path: Path = PROJECT
    environment: dict[str, str] = field(default_factory=dict)
    console: str = ""

    def __post_init__(self) -> None:
        self.temporary = self.folder / "runner"
        self.temporary.mkdir(exist_ok=True)
        self._python = self.folder / "python"  # as the action that sets up Python puts it on the path
        self._python.mkdir(exist_ok=True)
        program = self._python / "python"
        program.write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python3" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        for name in ("path", "output", "summary"):
            (self.temporary / name).touch()

    def run(self, step: str, **inputs: str) -> int:
        """Run the step of this name with these inputs, its defaults elsewhere; its exit status."""
        (found,) = [one for one in ACTION["runs"]["steps"] if one.get("name") == step]
        assert found["shell"] == "bash"
        given = {name: str(told.get("default", "")) for name, told in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        told = {name: filled(value, inputs=given) for name, value in found.get("env", {}).items()}
        assert "${{" not in found["run"], "what is given as input is no part of a script"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]],
            cwd=self.folder,
            env={
                **of_no_checkout(),
                "PATH": f"{self._python}{os.pathsep}{os.environ['PATH']}",
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(self.action_path),
                "GITHUB_PATH": str(self.temporary / "path"),
                "GITHUB_OUTPUT": str(self.temporary / "output"),
                "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
                "RUNNER_TEMP": str(self.temporary),
                **self.environment,
                **told,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.console = done.stdout
        return done.returncode

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the action."""
        lines = (self.temporary / "output").read_text(encoding="utf-8").splitlines()
        steps = {f"run.outputs.{name}": value for name, _, value in (line.partition("=") for line in lines)}
        return {name: filled(told["value"], steps=steps) for name, told in ACTION["outputs"].items()}


def filled(text: str, **contexts: dict[str, str]) -> str:
    """`text` with GitHub's expressions replaced by what they stand for."""

    def value(match: re.Match[str]) -> str:
        context, _, name = match[1].partition(".")
        return contexts[context].get(name, "")

    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, str(text))


def blocks(page: Path, heading: str, language: str) -> list[str]:
    """The code blocks of a language in the section of a page with this heading."""
    text = page.read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return re.findall(rf"^```{language}\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
