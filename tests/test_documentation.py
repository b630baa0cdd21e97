"""The documentation says what is so: commands, links, tables and copies."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conformance import cli
from conformance.commands import describe
from conformance.contract import catalogue
from reference_server.faults import FAULTS
from reference_server.variants import VARIANTS

PROJECT = Path(__file__).parents[1]
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_shown_are_commands(page: Path) -> None:
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|\||[;|]", line.partition(" #")[0]):
                words = shlex.split(part)
                if words and words[0].endswith("store-orders-conformance"):
                    cli.parser().parse_args(words[1:])


def test_requirements_page_is_the_catalogue() -> None:
    assert describe.requirements("markdown") in (PROJECT / "docs" / "requirements.md").read_text(encoding="utf-8")


def test_readme_counts() -> None:
    rows = catalogue.load().requirements.values()
    required = sum(row.level == "required" for row in rows)
    text = " ".join((PROJECT / "README.md").read_text(encoding="utf-8").split())
    assert f"judges {len(rows)} requirements" in text
    assert f"({required} of them required)" in text
    assert f"misbehave in {len(FAULTS)} ways" in text
    assert f"correct and odd in {len(VARIANTS)} " in text


@pytest.mark.parametrize(
    ("fixture", "template"),
    [("targets.toml", "targets.toml"), ("providers/command.py", "state_provider.py")],
)
def test_fixtures_are_what_init_writes(fixture: str, template: str) -> None:
    shipped = PROJECT / "conformance" / "templates" / template
    assert (PROJECT / "fixtures" / fixture).read_bytes() == shipped.read_bytes()


def test_gate_calls_the_readme_commands() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    for name in ("main-job", "tests"):
        assert re.search(rf"<!-- {name} -->\n```sh\n[^\n]+\n```\n", readme), f"one command behind <!-- {name} -->"
    gate = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert "$(readme_command tests)" in gate
    assert "$(readme_command main-job)" in gate
