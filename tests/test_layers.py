"""The direction of imports, read from the syntax trees: also what is imported inside functions counts."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What puts the parts together: it may import anything, and no other part may import it.
COMPOSITION = {"__init__", "__main__", "audit", "cli", "commands", "plugin", "runner"}
#: What each other part may import of ours, besides itself.
ALLOWED: dict[str, set[str]] = {
    "contract": set(),
    "target": set(),
    "budgets": set(),
    "signals": set(),
    "text": set(),
    "verdict": {"contract", "text"},
    "urls": {"target"},
    "configuration": {"budgets", "contract", "target", "urls", "verdict"},
    "check": {"contract", "target"},
    "transport": {"contract", "target", "text", "urls"},
    "outcomes": {"text", "transport"},
    "verify": {"contract", "outcomes", "transport"},
    "states": {"contract", "signals", "target", "text", "transport"},
    "api": {"contract", "outcomes", "states", "transport", "verify"},
    "checks": {"api", "budgets", "check", "contract", "outcomes", "target", "text", "transport", "urls", "verify"},
    "judging": {"contract", "text", "transport", "verdict"},
    "reporting": {"contract", "target", "text", "transport", "verdict"},
    "runner.reported": {"outcomes", "target", "transport", "verdict"},
    "runner.collect": {
        "check",
        "configuration",
        "contract",
        "judging",
        "reporting",
        "runner.reported",
        "states",
        "target",
        "transport",
        "verdict",
    },
    "runner.embedding": set(),
    "runner.reference": {"target"},
    "console": set(),
    "templates": {"target"},
}
#: Third parties that have one place.
ONE_PLACE = {
    "httpx": {"conformance/transport/client.py"},
    "httpcore": {"conformance/transport/deadline.py"},
    "h11": {"conformance/transport/client.py", "conformance/transport/http11.py", "conformance/transport/wire.py"},
    "h2": {"conformance/transport/client.py"},
    "jinja2": {"conformance/reporting/html.py", "conformance/reporting/pages.py"},
    "harfile": {"conformance/reporting/har.py"},
    "filelock": {"conformance/runner/process.py", "conformance/transport/endpoint.py"},
}


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found
    return found


@cache
def imported(path: Path) -> frozenset[str]:
    """The dotted names that a source imports; `from conformance import x` as `conformance.x`, relative ones in full."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(path)}


def part_of(name: str) -> str:
    """The part of the suite that a dotted name below `conformance` belongs to: what the table has a row for, else the
    module or package at the top."""
    top, _, inner = name.partition(".")
    module = f"{top}.{inner.partition('.')[0]}"
    return module if module in ALLOWED else top


def part(path: Path) -> str:
    """The part of the suite that a source belongs to."""
    return part_of(".".join(path.relative_to(ROOT / "conformance").with_suffix("").parts))


def ours(path: Path) -> set[str]:
    """The parts of the suite that a source imports, besides its own. `__version__` belongs to none."""
    found = {part_of(name.partition(".")[2]) for name in imported(path) if name.startswith("conformance.")}
    return found - {part(path), "__version__"}


PARTS = [path for path in sources("conformance") if part(path) not in COMPOSITION]


@pytest.mark.parametrize("path", PARTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    assert ours(path) <= ALLOWED[part(path)]


def test_the_table_has_no_circle() -> None:
    settled: set[str] = set()
    while len(settled) < len(ALLOWED):
        ready = {name for name, needs in ALLOWED.items() if needs <= settled} - settled
        assert ready, f"a circle among {sorted(ALLOWED.keys() - settled)}"
        settled |= ready


def test_the_table_is_about_what_is_there() -> None:
    assert ALLOWED.keys() | COMPOSITION == {part(path) for path in sources("conformance")}


def test_the_contract_imports_nothing_of_ours() -> None:
    for path in sources("conformance/contract"):
        assert not {name for name in imported(path) if name.startswith("conformance.")} - {
            name for name in imported(path) if name.startswith("conformance.contract")
        }, path
        assert tops(path) <= sys.stdlib_module_names | {"conformance", "msgspec"}, path


#: What modules that call themselves pure do not import.
IMPURE = {"os", "pathlib", "socket", "ssl", "subprocess", "time", "io", "threading", "pytest"}


def test_pure_modules_do_no_input_and_output() -> None:
    """The guard, the verdict, the validators: values in, values out."""
    told = {path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in sources("conformance")}
    pure = {path for path, text in told.items() if re.search(r"\bPure\b", text or "")}
    assert {"guard", "verdict", "validators", "doubts", "disagreements", "model"} <= {path.stem for path in pure}
    for path in pure:
        assert tops(path) & IMPURE == set(), path


def test_reporting_knows_the_exchange_only() -> None:
    allowed = (
        "conformance.reporting",
        "conformance.verdict",
        "conformance.contract",
        "conformance.target.ConfigError",
        "conformance.target.Shell",
        "conformance.text",
        "conformance.transport.curl",
        "conformance.transport.evidence",
        "conformance.transport.request.Operation",
    )
    for path in sources("conformance/reporting"):
        strange = {name for name in imported(path) if name.startswith("conformance.") and not name.startswith(allowed)}
        assert strange - {"conformance.__version__", "conformance.target"} == set(), path
        assert tops(path) & {"httpx", "pytest", "socket"} == set(), path


def test_checks_get_what_they_need_as_fixtures() -> None:
    for path in sources("conformance/checks"):
        names = imported(path)
        assert not {name for name in names if name.startswith(("conformance.states", "conformance.reporting"))}, path
        assert (
            tops(path) & {"httpx", "httpcore", "h11", "socket", "ssl", "subprocess", "requests", "urllib3"} == set()
        ), path


@pytest.mark.parametrize("library", ONE_PLACE)
def test_some_libraries_have_one_place(library: str) -> None:
    using = {str(path.relative_to(ROOT)) for path in sources("conformance") if library in tops(path)}
    assert using <= ONE_PLACE[library]


def test_the_reference_server_needs_the_standard_library_only() -> None:
    for path in sources("reference_server"):
        assert tops(path) <= sys.stdlib_module_names | {"reference_server"}, path


def test_the_suite_reaches_the_reference_server_from_few_places() -> None:
    """The server is a process of its own, except in the selftest; the commands serve it and list its faults."""
    using = {str(path.relative_to(ROOT)) for path in sources("conformance") if "reference_server" in tops(path)}
    places = ("cli", "commands/describe", "commands/selftest", "runner/direct")
    assert using <= {f"conformance/{name}.py" for name in places}


def test_commands_are_the_last_layer() -> None:
    """A run, and pytest with the plugin, need none of them."""
    using = {str(path.relative_to(ROOT)) for path in sources("conformance") if "commands" in ours(path)}
    assert using == {"conformance/cli.py"}


def test_only_these_know_pytest() -> None:
    using = {str(path.relative_to(ROOT)) for path in sources("conformance") if tops(path) & {"pytest", "_pytest"}}
    checks = {name for name in using if name.startswith("conformance/checks/")}
    assert using - checks <= {
        "conformance/runner/embedding.py",
        "conformance/runner/fixtures.py",
        "conformance/runner/items.py",
        "conformance/plugin.py",
        "conformance/commands/running.py",
        "conformance/commands/selftest.py",
        "conformance/runner/side_by_side.py",
        "conformance/outcomes.py",
    }


def test_data_folders_hold_no_importable_python() -> None:
    """`fixtures` and `reports` belong to other projects on the package index."""
    for folder in ("fixtures", "reports"):
        assert not list((ROOT / folder).rglob("__init__.py"))
