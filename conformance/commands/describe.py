"""The catalogue for readers: as a list, as JSON, as Markdown, and one requirement explained."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from conformance.check import Check, all_checks
from conformance.contract import catalogue
from conformance.contract.catalogue import Requirement
from conformance.target import ConfigError


def requirements(form: str | None) -> str:
    """All requirements: `form` is None for a list, "json" or "markdown"."""
    rows = catalogue.load()
    if form == "json":
        checks = all_checks()
        return json.dumps(
            {
                "catalogue": rows.digest,
                "requirements": [_row(row, checks) for row in rows.requirements.values()],
                "observations": [vars(row) for row in rows.observations.values()],
                "undecidable": [vars(row) for row in rows.undecidable],
            },
            indent=1,
            ensure_ascii=False,
        )
    if form == "markdown":
        return _markdown(rows)
    width = max(len(row.id) for row in rows.requirements.values())
    return "\n".join(f"{row.id:{width}}  {row.level.value:11}  {row.title}" for row in rows.requirements.values())


def explain(requirement: str) -> str:
    """One requirement: clause, reasoning, how it is checked, what it needs. Raises ConfigError for an unknown id."""
    rows = catalogue.load().requirements
    row = rows.get(requirement.upper())
    if row is None:
        raise ConfigError(f"{requirement!r} is not a requirement; {catalogue.load().hint(requirement)}")
    parts = [
        f"{row.id} ({row.level.value}; specification, section {row.section})",
        f"{row.sentence[0].upper()}{row.sentence[1:]}.",
        _labelled("clause", row.clause),
        _labelled("why", row.why),
        "checked by",
    ]
    for check in all_checks():
        if check.requirement == row.id:
            parts.append(f"  {check.id}  (mode {check.needs.mode}{_orders(check)})")
            parts.append(_described(check.description))
    from conformance.judging import judges

    if row.id in judges.JUDGES:
        parts.append("  every exchange of the run")
        demand = (judges.JUDGES[row.id].__doc__ or "").removeprefix(f"{row.id}: ")
        parts.append(_described(f"{demand[:1].upper()}{demand[1:]}"))
    parts.append(_labelled("needs", ", ".join(row.needs) or "nothing but a listing"))
    return "\n".join(parts)


def faults(form: str | None) -> str:
    """The faults and the variants of the reference server; variants break no requirement. `form` is None for a list, or
    "json"."""
    from conformance.commands.selftest import cases

    known = cases()
    if form == "json":
        rows = [{"name": c.name, "requirement": c.requirement, "description": c.description} for c in known]
        return json.dumps(rows, indent=1, ensure_ascii=False)
    width = max(len(case.name) for case in known)
    return "\n".join(f"{case.name:{width}}  {case.requirement or 'correct':10}  {case.description}" for case in known)


def _described(text: str) -> str:
    return textwrap.indent(textwrap.fill(" ".join(text.split()), 94, break_on_hyphens=False), "    ")


def _labelled(label: str, text: str) -> str:
    return textwrap.fill(text, 98, initial_indent=f"  {label:8}", subsequent_indent=" " * 10, break_on_hyphens=False)


def _orders(check: Check) -> str:
    needs = check.needs
    words = {
        f"{needs.pending} pending": needs.pending,
        f"{needs.shipped} shipped": needs.shipped,
        "chosen ids": needs.chosen_ids,
        "many orders": needs.many_orders,
        "an empty store": needs.empty_store,
        "placed meanwhile": needs.placing,
    }
    told = ", ".join(word for word, needed in words.items() if needed)
    return f"; {told}" if told else ""


def _row(row: Requirement, checks: Sequence[Check]) -> dict[str, Any]:
    own = [
        {"id": c.id, "mode": str(c.needs.mode), "description": " ".join(c.description.split())}
        for c in checks
        if c.requirement == row.id
    ]
    return {**vars(row), "level": row.level.value, "needs": list(row.needs), "checks": own}


def _markdown(rows: catalogue.Catalogue) -> str:
    lines = ["| id | level | section | the service must … (recommended: should …) |", "|---|---|---|---|"]
    lines += [f"| {r.id} | {r.level.value} | {r.section} | {r.title} |" for r in rows.requirements.values()]
    lines += ["", "| observed | section | what |", "|---|---|---|"]
    lines += [f"| {row.topic} | {row.section} | {row.title} |" for row in rows.observations.values()]
    lines += ["", "| not decidable from outside | section | why |", "|---|---|---|"]
    lines += [f"| {row.statement} | {row.section} | {row.reason} |" for row in rows.undecidable]
    return "\n".join(lines)
