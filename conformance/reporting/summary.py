"""`summary.md`: the run in GitHub-flavoured Markdown, short enough for a comment on a pull request.

What a service or a provider sent stands in code spans and fences only, where no reader of Markdown makes a
link, notifies an `@name` or interprets HTML (GitHub Flavored Markdown sections 4.5 and 6.3).
"""

from __future__ import annotations

import re

from conformance.contract.catalogue import Level
from conformance.reporting import outline
from conformance.reporting.run import Run
from conformance.text import cut, plural, visible
from conformance.verdict import RequirementResult, Status, Verdict, counts

#: Failures written in full; of the others there is one line each.
_IN_FULL = 12
_TEXT = 400
_CURL = 1500
_COLUMNS = (Status.PASSED, Status.FAILED, Status.INCONCLUSIVE, Status.EXCLUDED, Status.WAIVED)
_SIGNS = {Verdict.CONFORMANT: "✅", Verdict.NON_CONFORMANT: "❌", Verdict.INCOMPLETE: "⚠️"}


def render(run: Run) -> str:
    """`run` as Markdown of less than 65,536 characters: verdict and coverage first, then the failures."""
    table = counts(run.requirements)
    where = f"{code(run.target)} at {code(run.base_url)}, mode {code(run.mode)}"
    lines = [
        f"## {_SIGNS[run.verdict]} Store Orders conformance: {run.verdict}",
        "",
        f"{where}: **{prose(outline.headline(run))}**.",
        "",
        f"| | {' | '.join(_COLUMNS)} |",
        "|---|--:|--:|--:|--:|--:|",
        *(f"| {level} | " + " | ".join(str(table[level][status]) for status in _COLUMNS) + " |" for level in Level),
        "",
        *_list("Warnings about the run itself", [excerpt(text, _TEXT) for text in run.warnings[:20]]),
        *_failures(run),
        *_undecided(run),
        *_waived(run),
        *_not_exercised(run),
        *_observations(run),
        f"<sub>suite {prose(run.suite_version)} · catalogue {code(run.catalogue[:19])} · seed {run.seed} · "
        f"{prose(run.budget)}{' · strict' if run.strict else ''} · {plural(run.requests, 'request')} in "
        f"{run.seconds:.1f} s · {prose(run.started)}</sub>",
    ]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """`text` as a code span that it cannot end: delimited by more backticks than it has in a row."""
    shown = visible(text)
    if not shown.strip():
        return "*empty*"
    ticks = _backticks(shown)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def excerpt(text: str, limit: int) -> str:
    """`text` as a code span of at most `limit` characters, as they are shown, and a note of how many there are."""
    return code(cut(visible(text), limit))


def prose(text: str) -> str:
    """`text` as text: Markdown and HTML in it have no effect, code spans in backticks excepted."""
    parts = re.split(r"`([^`]+)`", visible(text))
    return "".join(code(part) if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _fence(text: str) -> list[str]:
    """A command line as a fenced block that it cannot end."""
    ticks = _backticks(text, at_least=3)
    return [f"{ticks}sh", visible(text, keep="\n"), ticks]


def _escaped(text: str) -> str:
    text = re.sub(r"([\\`*_{}\[\]<>()#+!|~&])", r"\\\1", text)
    return text.replace("@", "@<!-- -->").replace("://", ":<!-- -->//")


def _backticks(text: str, at_least: int = 1) -> str:
    """More backticks than `text` has in a row."""
    return "`" * max([at_least, *(len(run) + 1 for run in re.findall("`+", text))])


def _heading(result: RequirementResult) -> str:
    row = result.requirement
    return f"**{prose(row.id)}** ({row.level}) {prose(row.sentence)}"


def _failures(run: Run) -> list[str]:
    failed = outline.with_status(run, Status.FAILED)
    if not failed:
        return []
    lines = [f"### {plural(len(failed), 'requirement')} not kept", ""]
    pasted: list[outline.Evidence] = []
    for result in failed[:_IN_FULL]:
        row = result.requirement
        lines += [f"{_heading(result)}", "", f"> Section {prose(row.section)}: {prose(row.clause)}", ""]
        found = outline.evidence(run, result)
        if not found:
            continue
        shown = found[0]
        lines += [*_evidence(shown, outline.also(found)), ""]
        if shown.curl and len(shown.curl) <= _CURL:
            lines += [*_fence(shown.curl), ""]
            pasted.append(shown)
    for paragraph in outline.before_pasting(run, pasted):
        lines += [prose(paragraph), ""]
    lines += _list("Also not kept", [_heading(result) for result in failed[_IN_FULL:]])
    return lines


def _evidence(shown: outline.Evidence, further: str) -> list[str]:
    """What a check found, as a list; `further` says which others failed."""
    received = " ".join(line.strip() for line in shown.received.split("\n"))  # which may be steps
    lines = [
        f"- check: {code(shown.check.id)}, which `explain {shown.check.requirement}` explains",
        f"- expected: {excerpt(shown.expected, _TEXT)}",
        f"- received: {excerpt(received, 2 * _TEXT)}",
    ]
    if shown.shown:
        lines.append(f"- exchange: {excerpt(shown.shown, _TEXT)}")
    if shown.orders:
        lines.append(f"- orders placed for it: {prose(shown.orders)}")
    if further:
        lines.append(f"- also: {prose(further)}")
    return lines


def _undecided(run: Run) -> list[str]:
    groups = outline.by_reason(outline.with_status(run, Status.INCONCLUSIVE))
    return _list(
        "Could not be decided",
        [f"{_subject(group.results)}: {excerpt(group.reason, _TEXT)}" for group in groups],
    )


def _subject(results: list[RequirementResult]) -> str:
    """What a line is about: one requirement in words, or several by their ids."""
    if len(results) == 1:
        return _heading(results[0])
    return f"**{plural(len(results), 'requirement')}** ({prose(outline.ids(results))})"


def _waived(run: Run) -> list[str]:
    items = []
    for result in outline.with_status(run, Status.WAIVED):
        if result.waiver:
            said = cut(result.waiver.reason, _TEXT)
            found = "".join(f"; received {excerpt(e.received, _TEXT)}" for e in outline.evidence(run, result)[:1])
            items.append(f"{_heading(result)}: {code(said)}, until {prose(result.waiver.expires)}{found}")
    return _list("Failed and waived", items)


def _not_exercised(run: Run) -> list[str]:
    groups, partly = outline.excluded(run), outline.in_part(run)
    if not groups and not partly:
        return []
    total = sum(len(group.results) for group in groups)
    in_part = len({result.requirement.id for group in partly for result in group.results})
    lines = [
        f"<details><summary>Not exercised: {plural(total, 'requirement')}"
        + (f", {in_part} in part" if in_part else "")
        + "</summary>",
        "",
        *(f"- {excerpt(group.reason, _TEXT)}: {prose(outline.ids(group.results))}" for group in groups),
        *(f"- in part, {excerpt(group.reason, _TEXT // 2)}: {prose(outline.ids(group.results))}" for group in partly),
    ]
    return [*lines, "", "</details>", ""]


def _observations(run: Run) -> list[str]:
    if not run.observations:
        return []
    items = [f"- {prose(seen.topic)}: {excerpt(outline.told(seen.value), 160)}" for seen in run.observations[:40]]
    summary = f"Observed where the contract leaves it open: {plural(len(run.observations), 'fact')}"
    return [f"<details><summary>{summary}</summary>", "", *items, "", "</details>", ""]


def _list(title: str, items: list[str]) -> list[str]:
    return [f"### {title}", "", *(f"- {item}" for item in items), ""] if items else []
