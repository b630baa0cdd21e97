"""Mutation testing of the reference server's orders and operations, with the suite as the only test.

    pip install -e '.[mutation]'
    python tests/mutants/mutants.py      # half an hour of processor time; writes docs/mutants.md

mutmut makes the mutants, each of which changes one expression. One is killed if the suite does not find it conformant.
Every survivor needs a reason in `survivors.toml`, and every reason a survivor: else nothing is written, and the status
is 1. What is missing is printed as it would stand there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
JUDGE = "judged_by_the_suite.py"
MODULES = ("orders", "api")
SETTINGS = f"""[mutmut]
source_paths=reference_server
only_mutate=
{"".join(f"    reference_server/{module}.py{chr(10)}" for module in MODULES)}
also_copy={JUDGE}
pytest_add_cli_args_test_selection={JUDGE}
use_git_change_detection=false
"""
#: What mutmut calls mutants that the test did not pass, and those that it passed or that were never reached.
KILLED, SURVIVED = ("killed", "timeout", "segfault"), ("survived", "no tests")


class Mutant(NamedTuple):
    """One change: the function, the line as it is and as it became."""

    function: str
    line: str
    mutated: str


class Reason(NamedTuple):
    """Why mutants of one line are no other service as far as the contract goes."""

    why: str
    mutants: tuple[Mutant, ...]


class Added(NamedTuple):
    """A mutant that had survived, and the check that was added or made stricter for it."""

    mutant: Mutant
    check: str
    fault: str


def reasons() -> list[Reason]:
    """The reasons on record."""
    return [
        Reason(row["why"], tuple(Mutant(row["function"], row["line"], mutated) for mutated in row["mutated"]))
        for row in tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))["survivors"]
    ]


def added() -> list[Added]:
    """The checks that survivors gave rise to."""
    rows = tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))["added"]
    return [Added(Mutant(row["function"], row["line"], row["mutated"]), row["check"], row["fault"]) for row in rows]


def prepare(folder: Path) -> None:
    """Put into `folder` what is mutated and what judges it."""
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "reference_server", folder / "reference_server", ignore=caches)
    shutil.copy(HERE / JUDGE, folder)
    (folder / "setup.cfg").write_text(SETTINGS, encoding="utf-8")


def outcomes(folder: Path) -> dict[Mutant, str]:
    """What became of each mutant, in mutmut's words, after a run of it in `folder`."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    ended = []
    with contextlib.chdir(folder):
        for module in MODULES:
            noted = json.loads(Path(f"mutants/reference_server/{module}.py.meta").read_text(encoding="utf-8"))
            for name, code in noted["exit_code_by_key"].items():
                lines = get_diff_for_mutant(name).splitlines()
                changed = [line for line in lines if re.match(r"[-+](?![-+]{2} )", line)]
                before, after = (
                    " ".join(line[1:].strip() for line in changed if line[0] == sign) for sign in ("-", "+")
                )
                ended.append((Mutant(function_of(name), before, after), status_by_exit_code[code]))
    return by_text(ended)


def by_text(ended: Iterable[tuple[Mutant, str]]) -> dict[Mutant, str]:
    """What became of mutants. Those that look the same, where a function has a line twice, count as one, and that is
    killed only if all of them are."""
    found: dict[Mutant, str] = {}
    for mutant, outcome in ended:
        if found.get(mutant, "killed") in KILLED:
            found[mutant] = outcome
    return found


def function_of(name: str) -> str:
    """The function that a mutant is of: `api.Service.answer` of `reference_server.api.xǁServiceǁanswer__mutmut_3`."""
    module, _, mangled = name.removeprefix("reference_server.").partition(".")
    return f"{module}.{mangled.rpartition('__mutmut_')[0].removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def complaints(found: dict[Mutant, str], explained: Iterable[Reason]) -> list[str]:
    """What is wrong with the reasons: survivors without one, as TOML to be completed, and reasons without survivor."""
    survivors = {mutant for mutant, outcome in found.items() if outcome in SURVIVED}
    told = {mutant for reason in explained for mutant in reason.mutants}
    odd = {outcome for outcome in found.values() if outcome not in (*KILLED, *SURVIVED)}
    grouped: dict[tuple[str, str], list[str]] = {}
    for mutant in found:
        if mutant in survivors - told:
            grouped.setdefault((mutant.function, mutant.line), []).append(mutant.mutated)
    return [
        *(f"mutmut ended mutants as {outcome!r}, which says nothing" for outcome in odd),
        *(as_toml(function, line, mutated) for (function, line), mutated in grouped.items()),
        *(f"a reason without survivor: {mutant.function}: {mutant.mutated}" for mutant in sorted(told - survivors)),
    ]


def as_toml(function: str, line: str, mutated: list[str]) -> str:
    """A reason as it stands in `survivors.toml`, still to be given."""
    listed = "".join(f"  {_quoted(each)},\n" for each in mutated)
    return f'[[survivors]]\nfunction = "{function}"\nline = {_quoted(line)}\nmutated = [\n{listed}]\nwhy = ""\n'


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else f"'''{text}'''"


def report(found: dict[Mutant, str], explained: Iterable[Reason], gains: Iterable[Added], tool: str) -> str:
    """The page for people."""
    counted = Counter("killed" if outcome in KILLED else outcome for outcome in found.values())
    lines = [
        "# Mutants",
        "",
        "Our own faults are biased by our own imagination, so a tool changes the reference server as well: "
        f"{tool} makes {len(found)} mutants of its orders and operations (`orders.py`, `api.py`), one expression each. "
        "The suite is the only test: a mutant is killed if `run --strict --budget quick --seed 1` does not end with 0.",
        "",
        f"**{counted['killed']} killed, {counted['survived']} survived, {counted['no tests']} never reached.** "
        "None of those that are left is another service as far as the contract goes; the reasons are below. "
        "`tests/mutants/mutants.py` writes this page, unless a survivor has no reason or a reason no survivor.",
        "",
        "## What they taught",
        "",
        "These had survived, and the suite was made stricter:",
        "",
        "| function | mutant | check | fault of the same kind |",
        "|---|---|---|---|",
        *(f"| {g.mutant.function} | {_code(g.mutant.mutated)} | {g.check} | {g.fault} |" for g in gains),
        "",
        "## Survivors",
        "",
    ]
    function = ""
    for reason in explained:
        first = reason.mutants[0]
        if first.function != function:
            function = first.function
            lines += [f"### {function}", ""]
        lines += [f"{_code(first.line)}", "", reason.why, ""]
        lines += [*(f"- {_code(mutant.mutated)}" for mutant in reason.mutants), ""]
    return "\n".join(lines)


def _code(text: str) -> str:
    """A line of code in Markdown, within a table too."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return f"<code>{escaped}</code>" if text else "(nothing)"


def main() -> int:
    """Run mutmut, hold the survivors against the reasons, write the page."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        prepare(folder)
        environment = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
        subprocess.run([sys.executable, "-m", "mutmut", "run"], cwd=folder, env=environment, check=True)
        found = outcomes(folder)
    wrong = complaints(found, reasons())
    print("\n".join(wrong))
    if not wrong:
        page = report(found, reasons(), added(), f"mutmut {version('mutmut')}")
        (ROOT / "docs" / "mutants.md").write_text(page, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
