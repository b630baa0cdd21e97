"""A comparison of two runs, and a matrix of any number, as text for a console, as Markdown and as HTML. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.reporting import outline
from conformance.reporting.comparison import TEXT, Change, Comparison, Matrix, named
from conformance.reporting.pages import page
from conformance.reporting.summary import code, prose
from conformance.text import cut, visible
from conformance.verdict import Status

#: A caption, the headings, and the rows.
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]

_SIGNS = {
    Status.PASSED: "ok",
    Status.FAILED: "FAIL",
    Status.WAIVED: "waived",
    Status.INCONCLUSIVE: "?",
    Status.EXCLUDED: "-",
}


def text(compared: Comparison) -> str:
    """A comparison for a console or a log, one line for each change."""
    lines = [
        f"{named(compared.a)}: {outline.headline(compared.a)}",
        f"{named(compared.b)}: {outline.headline(compared.b)}",
        compared.verdict,
    ]
    for title, changes in _parts(compared):
        lines += ["", title, *(f"  {_line(change)}" for change in changes)]
    if compared.observed:
        seen = [f"  {each.what}: {each.before} -> {each.after}" for each in compared.observed]
        lines += ["", "Observed differently", *seen]
    if compared.notes:
        lines += ["", *(f"note: {note}" for note in compared.notes)]
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(compared: Comparison) -> str:
    """A comparison as GitHub-flavoured Markdown."""
    lines = [
        f"## Store Orders conformance: {prose(compared.verdict)}",
        "",
        f"- before: {code(named(compared.a))} {prose(outline.headline(compared.a))}",
        f"- after: {code(named(compared.b))} {prose(outline.headline(compared.b))}",
        "",
    ]
    for title, changes in _parts(compared):
        lines += [f"### {title}", "", *(f"- {_markdown_line(change)}" for change in changes), ""]
    if compared.observed:
        seen = [f"- {prose(each.what)}: {code(each.before)} → {code(each.after)}" for each in compared.observed]
        lines += ["### Observed differently", "", *seen, ""]
    if compared.notes:
        lines += [*(f"> {prose(note)}" for note in compared.notes), ""]
    return "\n".join(lines)


def html(compared: Comparison) -> str:
    """A comparison as a self-contained HTML page."""
    runs = [(named(run), outline.headline(run)) for run in (compared.a, compared.b)]
    tables: list[Table] = [("The two runs", ("Run", "Result"), runs)]
    for title, changes in _parts(compared):
        rows = [
            (c.requirement.id, c.requirement.sentence, c.requirement.level, c.text, cut(c.reason, TEXT))
            for c in changes
        ]
        tables.append((title, ("Id", "Requirement", "Level", "Status", "Reason"), rows))
    if compared.observed:
        seen = [(each.what, each.before, each.after) for each in compared.observed]
        tables.append(("Observed differently", ("Topic", "Before", "After"), seen))
    return _page("Comparison of two runs", tables, verdict=compared.verdict, notes=compared.notes)


def matrix_text(table: Matrix) -> str:
    """A matrix for a console: a column for each run, headed by a number that the first lines explain."""
    columns = [f"[{number}]" for number, _ in enumerate(table.names, 1)]
    lines = [
        f"{column} {name}: {outline.headline(run)}"
        for column, name, run in zip(columns, table.names, table.runs, strict=True)
    ]
    wide = max(len(row.id) for row, _ in table.rows) if table.rows else 0
    lines += ["", " ".join([" " * wide, *(f"{column:>6}" for column in columns)])]
    for row, statuses in table.rows:
        cells = [f"{_SIGNS[status] if status else '':>6}" for status in statuses]
        lines.append(" ".join([f"{row.id:<{wide}}", *cells, f" {row.title}"]))
    met = {status for _, statuses in table.rows for status in statuses if status and _SIGNS[status] != status}
    lines += ["", " · ".join(f"{_SIGNS[status]} {status}" for status in Status if status in met)]
    return "\n".join(visible(line).rstrip() for line in lines) + "\n"


def matrix_markdown(table: Matrix) -> str:
    """A matrix as GitHub-flavoured Markdown; the runs are numbered, and named above the table."""
    numbers = range(1, len(table.runs) + 1)
    lines = ["## Store Orders conformance, run by run", ""]
    lines += [
        f"{number}. {code(name)}: {prose(outline.headline(run))}"
        for number, name, run in zip(numbers, table.names, table.runs, strict=True)
    ]
    lines += ["", f"| | {' | '.join(map(str, numbers))} |", f"|---|{'---|' * len(table.runs)}"]
    for row, statuses in table.rows:
        lines.append(f"| {prose(row.id)} | {' | '.join(status or '' for status in statuses)} |")
    return "\n".join(lines) + "\n"


def matrix_html(table: Matrix) -> str:
    """A matrix as a self-contained HTML page."""
    numbers = [f"[{number}]" for number, _ in enumerate(table.names, 1)]
    runs = list(zip(numbers, table.names, map(outline.headline, table.runs), strict=True))
    rows = [(row.id, row.title, *(status or "" for status in statuses)) for row, statuses in table.rows]
    tables: list[Table] = [
        ("The runs", ("Number", "Run", "Result"), runs),
        ("Requirements", ("Id", "Requirement", *numbers), rows),
    ]
    return _page("Comparison of runs", tables)


def _parts(compared: Comparison) -> list[tuple[str, tuple[Change, ...]]]:
    parts = [
        ("Regressions", compared.regressions),
        ("Improvements", compared.improvements),
        ("Newly decided", compared.decided),
        ("Otherwise different", compared.others),
    ]
    return [(title, changes) for title, changes in parts if changes]


def _line(change: Change) -> str:
    row = change.requirement
    reason = f": {cut(change.reason, TEXT)}" if change.reason else ""
    return f"{row.id} ({row.level}) {change.text}  {row.sentence}{reason}"


def _markdown_line(change: Change) -> str:
    row = change.requirement
    reason = f": {code(cut(change.reason, TEXT))}" if change.reason else ""
    return f"**{prose(row.id)}** ({row.level}) {prose(change.text)} {prose(row.sentence)}{reason}"


def _page(title: str, tables: Sequence[Table], verdict: str = "", notes: Sequence[str] = ()) -> str:
    return page("tables.html.jinja", title=title, tables=tables, verdict=verdict, notes=notes, statuses=[*Status])
