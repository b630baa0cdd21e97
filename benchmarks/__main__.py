"""Measures the figures: `python -m benchmarks [NAME ...]`. Writes them as JSON and as a table for the documentation.

`--guard` measures the cheap ones and compares them with those on record: a ratio that is half as large again, four
times in a row, ends with exit status 1.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import figures, peers
from benchmarks.figure import Figure

ROOT = Path(__file__).parent.parent
PACKAGES = ("benchmarks", "conformance", "reference_server")
ON_RECORD = Path(__file__).with_name("figures.json")
TABLE = ROOT / "docs" / "benchmarks.md"
MEASURES: dict[str, Callable[[bool], Figure]] = {
    "overhead": figures.overhead,
    "listing": figures.large_listing,
    "distance": figures.distance,
    "workers": figures.workers,
    "peers": peers.peers,
    "selftest": figures.selftest,
    "server": figures.reference_server,
}
#: Figures that take seconds, and are ratios of things measured in the same minute.
CHEAP = ("overhead", "listing", "server")
#: How many times worse than on record a ratio may be.
TOLERANCE = 1.5
#: How often it may be so in a row before it counts: machines are shared.
TRIES = 4
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def main(arguments: list[str]) -> int:
    """Measure, print, write. Exit status 1 where the guard finds a figure worse."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(MEASURES)}")
    parser.add_argument("--guard", action="store_true", help="compare the cheap ones with those on record")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(MEASURES)
    if unknown:
        parser.error(f"no figure is called {min(unknown)}; there are {', '.join(MEASURES)}")
    for package in PACKAGES:  # as an installation has it; else what is not compiled would be so at each start
        compileall.compile_dir(str(ROOT / package), quiet=2)
    if options.guard:
        return guard()
    known = json.loads(ON_RECORD.read_text(encoding="utf-8")) if ON_RECORD.exists() else {}
    for name in options.names or MEASURES:
        figure = MEASURES[name](False)
        print(line(name, figure), flush=True)
        known[name] = asdict(figure)
        known["machine"] = {"processors": os.cpu_count(), "python": platform.python_version()}
        ON_RECORD.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    text = TABLE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    TABLE.write_text(f"{before}{BEGIN}\n{table(known)}{after}", encoding="utf-8")
    return 0


def guard() -> int:
    """Whether a cheap figure has become worse; measured again before anything is said."""
    known = json.loads(ON_RECORD.read_text(encoding="utf-8"))
    worse = 0
    for name in CHEAP:
        limit = known[name]["value"] * TOLERANCE
        least = math.inf
        for _ in range(TRIES):
            least = min(least, MEASURES[name](True).value)
            if least <= limit:
                break
        failed = least > limit
        worse += failed
        print(f"{name}: {least} (on record {known[name]['value']}){', WORSE' if failed else ''}", flush=True)
    return int(worse > 0)


def line(name: str, figure: Figure) -> str:
    """One figure in a line."""
    aim = "" if figure.aim is None else f" (aim: {figure.aim}, {'met' if figure.met else 'not met'})"
    return f"{name}: {figure.says}: {figure.value}{aim} {json.dumps(figure.details)}"


def table(known: dict[str, dict[str, Any]]) -> str:
    """The figures as Markdown."""
    rows = ["| name | figure | measured | aim | details |", "|---|---|---|---|---|"]
    for name in MEASURES:
        if name in known:
            each = known[name]
            told = "; ".join(f"{key}: {value}" for key, value in each["details"].items())
            rows.append(f"| {name} | {each['says']} | {each['value']} | {each['aim'] or ''} | {told} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
