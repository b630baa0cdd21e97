"""Two runs side by side: what got worse, what got better, what is merely different; a matrix of any number.

The runs may be of two deployments, or of one at two times. A requirement

    regressed   if it failed, and had not before; or if it passed before and is now waived or undecided
    improved    if it passed, and had failed before, waived or not
    decided     if it passed, and had been undecided or left out before: the service may have kept it all along
    differs     in every other case: the later run left it out, waived it or could not decide it, or one does not
                know it

What a run leaves out is a decision of whoever ran it, so it says nothing about the service; it is shown all
the same. Of what was observed, only what both runs have is compared, since seeds draw different requests; of what is
counted, only whether it was seen, since they draw different numbers of them. Each rendering is a pure function: text
for a console, Markdown, HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from conformance.contract.catalogue import Level, Requirement
from conformance.reporting import outline
from conformance.reporting.run import Run
from conformance.reporting.summary import code, prose
from conformance.reporting.text import cut, plural, visible
from conformance.verdict import Status

_TEXT = 300
#: Topics under which it is counted how often something was seen.
_COUNTED = {"compression", "HTTP version", "rate limiting"}
#: Topics that say for each status what had it: where one run has no such status, nothing had it there.
_BY_STATUS = {"unknown query parameters"}
#: What stands for all requests that generated checks have made up, with every status that any of them had.
_MADE_UP = "made up"
_SIGNS = {
    Status.PASSED: "ok",
    Status.FAILED: "FAIL",
    Status.WAIVED: "waived",
    Status.INCONCLUSIVE: "?",
    Status.EXCLUDED: "-",
}


@dataclass(frozen=True)
class Change:
    """A requirement that ended differently, None where a run does not know it; `reason` is the later
    run's."""

    requirement: Requirement
    before: Status | None
    after: Status | None
    reason: str
    gating: bool

    @property
    def text(self) -> str:
        """`passed -> failed`."""
        return f"{self.before or 'unknown'} -> {self.after or 'unknown'}"


@dataclass(frozen=True)
class Difference:
    """A topic, or one entry of it, on which something else was observed."""

    topic: str
    before: str
    after: str
    entry: str = ""

    @property
    def what(self) -> str:
        """`malformed ids: blank`."""
        return f"{self.topic}: {self.entry}" if self.entry else self.topic


@dataclass(frozen=True)
class Comparison:
    """What changed from `a` to `b`: regressions first, then improvements, then what passed once it was looked at, then
    what is merely different."""

    a: Run
    b: Run
    regressions: tuple[Change, ...]
    improvements: tuple[Change, ...]
    decided: tuple[Change, ...]
    others: tuple[Change, ...]
    observed: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def regressed(self) -> bool:
        """Whether a requirement that gates the later run, and is not waived there, got worse."""
        return any(change.gating for change in self.regressions)

    @property
    def verdict(self) -> str:
        """The comparison in a sentence."""
        if self.regressed:
            gating = sum(change.gating for change in self.regressions)
            return f"regressed: {plural(gating, 'requirement')} got worse"
        if self.regressions:
            return "no regression that counts; what got worse is recommended only, or waived"
        return "no regression"


@dataclass(frozen=True)
class Matrix:
    """Each requirement with its status in each run, None where a run does not know it."""

    runs: tuple[Run, ...]
    rows: tuple[tuple[Requirement, tuple[Status | None, ...]], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each run: its target, and its start where two runs have the same target."""
        targets = [run.target for run in self.runs]
        return tuple(
            run.target if targets.count(run.target) == 1 else f"{run.target} {run.started}" for run in self.runs
        )


def compare(a: Run, b: Run) -> Comparison:
    """What changed from run `a` to run `b`, in the order of the catalogue, required before recommended."""
    changes: dict[str, list[Change]] = {"regressions": [], "improvements": [], "decided": [], "others": []}
    before = {result.requirement.id: result for result in a.requirements}
    after = {result.requirement.id: result for result in b.requirements}
    for requirement in _rows((a, b)):
        old, new = before.get(requirement.id), after.get(requirement.id)
        change = Change(
            requirement,
            old.status if old else None,
            new.status if new else None,
            new.reason if new else "",
            bool(new and new.status is not Status.WAIVED and outline.gates(b, new)),
        )
        if change.before is not change.after:
            changes[_kind(change)].append(change)
    return Comparison(
        a,
        b,
        **{kind: tuple(found) for kind, found in changes.items()},
        observed=tuple(_differences(a, b)),
        notes=tuple(_notes(a, b)),
    )


def matrix(runs: Sequence[Run]) -> Matrix:
    """The statuses of every requirement in every one of `runs`."""
    by_run = [{result.requirement.id: result.status for result in run.requirements} for run in runs]
    rows = tuple((row, tuple(statuses.get(row.id) for statuses in by_run)) for row in _rows(runs))
    return Matrix(tuple(runs), rows)


def text(compared: Comparison) -> str:
    """A comparison for a console or a log, one line for each change."""
    lines = [
        f"{_named(compared.a)}: {outline.headline(compared.a)}",
        f"{_named(compared.b)}: {outline.headline(compared.b)}",
        compared.verdict,
    ]
    for title, changes in _parts(compared):
        lines += ["", title, *(f"  {_line(change)}" for change in changes)]
    if compared.observed:
        lines += ["", "Observed differently"]
        lines += [f"  {seen.what}: {seen.before} -> {seen.after}" for seen in compared.observed]
    lines += ["", *(f"note: {note}" for note in compared.notes)] if compared.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(compared: Comparison) -> str:
    """A comparison as GitHub-flavoured Markdown."""
    lines = [
        f"## Store Orders conformance: {prose(compared.verdict)}",
        "",
        f"- before: {code(_named(compared.a))} {prose(outline.headline(compared.a))}",
        f"- after: {code(_named(compared.b))} {prose(outline.headline(compared.b))}",
        "",
    ]
    for title, changes in _parts(compared):
        lines += [f"### {title}", "", *(f"- {_markdown_line(change)}" for change in changes), ""]
    if compared.observed:
        lines += ["### Observed differently", ""]
        lines += [f"- {prose(d.what)}: {code(d.before)} → {code(d.after)}" for d in compared.observed]
        lines += [""]
    lines += [*(f"> {prose(note)}" for note in compared.notes), ""] if compared.notes else []
    return "\n".join(lines)


def html(compared: Comparison) -> str:
    """A comparison as a self-contained HTML page."""
    body = [
        _tag("p", compared.verdict, kind="verdict"),
        _table("The two runs", ("Run", "Result"), [(_named(r), outline.headline(r)) for r in (compared.a, compared.b)]),
    ]
    for title, changes in _parts(compared):
        rows = [
            (
                change.requirement.id,
                change.requirement.sentence,
                change.requirement.level,
                change.text,
                cut(change.reason, _TEXT),
            )
            for change in changes
        ]
        body.append(_table(title, ("Id", "Requirement", "Level", "Status", "Reason"), rows))
    if compared.observed:
        rows_ = [(seen.what, seen.before, seen.after) for seen in compared.observed]
        body.append(_table("Observed differently", ("Topic", "Before", "After"), rows_))
    body += [_tag("p", note) for note in compared.notes]
    return _page("Comparison of two runs", body)


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
    runs = [(name, outline.headline(run)) for name, run in zip(table.names, table.runs, strict=True)]
    rows = [(row.id, row.title, *(status or "" for status in statuses)) for row, statuses in table.rows]
    body = [
        _table("The runs", ("Run", "Result"), runs),
        _table("Requirements", ("Id", "Requirement", *table.names), rows),
    ]
    return _page("Comparison of runs", body)


def _rows(runs: Iterable[Run]) -> list[Requirement]:
    """The requirements that any of `runs` knows, in the order in which they are met, required first."""
    known: dict[str, Requirement] = {}
    for run in runs:
        for result in run.requirements:
            known.setdefault(result.requirement.id, result.requirement)
    return sorted(known.values(), key=lambda row: row.level is not Level.REQUIRED)


def _kind(change: Change) -> str:
    """The field of a Comparison that `change` belongs to."""
    lost = change.before is Status.PASSED and change.after in (Status.WAIVED, Status.INCONCLUSIVE)
    if change.after is Status.FAILED or lost:
        return "regressions"
    if change.after is not Status.PASSED or change.before is None:
        return "others"
    return "improvements" if change.before in (Status.FAILED, Status.WAIVED) else "decided"


def _differences(a: Run, b: Run) -> Iterable[Difference]:
    before, after = _seen(a), _seen(b)
    same_draw = (a.seed, a.budget, a.suite_version) == (b.seed, b.budget, b.suite_version)
    for topic in before:
        if topic not in after or topic == "response times":
            continue
        old, new = _entries(topic, before[topic]), _entries(topic, after[topic])
        if ("" in old) != ("" in new):  # told in another form
            old, new = ({"": {outline.told(seen[topic])}} for seen in (before, after))
        either = {entry for entry in (*old, *new) if entry != _MADE_UP} if topic in _BY_STATUS else set()
        for entry in dict.fromkeys([*old, *new]):
            if entry not in either and not (entry in old and entry in new):
                continue
            earlier, later = old.get(entry, set()), new.get(entry, set())
            # Requests that another seed has made up may well have another of the same statuses.
            by_chance = entry == _MADE_UP and not same_draw and earlier & later
            if earlier != later and not by_chance:
                yield Difference(topic, _told(earlier), _told(later), entry)


def _seen(run: Run) -> dict[str, list[Any]]:
    """The values observed on each topic; where they differed within the run, there are several."""
    seen: dict[str, list[Any]] = {}
    for observed in run.observations:
        seen.setdefault(observed.topic, []).extend(
            observed.value if isinstance(observed.value, list | tuple) else [observed.value]
        )
    return seen


def _entries(topic: str, values: list[Any]) -> dict[str, set[str]]:
    """What was observed under each label, under none (the empty one) where there are no labels."""
    if topic in _COUNTED:
        labels = [value if isinstance(value, Mapping) else {str(value): 1} for value in values]
        return {"": {str(label) for counted in labels for label, count in counted.items() if count}}
    entries: dict[str, set[str]] = {} if values and all(isinstance(value, Mapping) for value in values) else {"": set()}
    for value in values:
        for label, item in value.items() if isinstance(value, Mapping) else [("", value)]:
            several = item if isinstance(item, list | tuple) else [item]
            entries.setdefault(str(label), set()).update(map(outline.told, several))
    return entries


def _told(values: set[str]) -> str:
    return cut(", ".join(sorted(values)) or "none", _TEXT)


def _notes(a: Run, b: Run) -> Iterable[str]:
    """What a reader has to know before blaming the service for a difference."""
    if a.catalogue != b.catalogue:
        yield "the runs used different catalogues of requirements"
    if a.suite_version != b.suite_version:
        yield f"the runs used different versions of the suite: {a.suite_version} and {b.suite_version}"
    for what in ("mode", "budget"):
        if getattr(a, what) != getattr(b, what):
            yield f"the runs had a different {what}: {getattr(a, what)} and {getattr(b, what)}"
    if a.strict != b.strict:
        yield f"only {_named(a if a.strict else b)} was strict: recommended requirements gate there"
    for run in (a, b):
        if not run.complete:
            yield f"{_named(run)}: {outline.shortfall(run)}"


def _parts(compared: Comparison) -> list[tuple[str, tuple[Change, ...]]]:
    parts = [
        ("Regressions", compared.regressions),
        ("Improvements", compared.improvements),
        ("Newly decided", compared.decided),
        ("Otherwise different", compared.others),
    ]
    return [(title, changes) for title, changes in parts if changes]


def _named(run: Run) -> str:
    return f"{run.target} {run.started}"


def _line(change: Change) -> str:
    row = change.requirement
    reason = f": {cut(change.reason, _TEXT)}" if change.reason else ""
    return f"{row.id} ({row.level}) {change.text}  {row.sentence}{reason}"


def _markdown_line(change: Change) -> str:
    row = change.requirement
    reason = f": {code(cut(change.reason, _TEXT))}" if change.reason else ""
    return f"**{prose(row.id)}** ({row.level}) {prose(change.text)} {prose(row.sentence)}{reason}"


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1.5rem 0; font-size: .9375rem; }
caption { text-align: left; font-weight: 600; font-size: 1.125rem; padding: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-top: 1px solid #8888;
  overflow-wrap: break-word; }
td:last-child { overflow-wrap: anywhere; }
.verdict { font-size: 1.25rem; font-weight: 600; }
"""


def _page(title: str, body: list[Markup]) -> str:
    return str(
        Markup(
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            "<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
            "{body}\n</main>\n</body>\n</html>\n"
        ).format(title=title, style=Markup(_STYLE), body=Markup("\n").join(body))
    )


def _table(caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Markup:
    headings = Markup("").join(Markup('<th scope="col">{}</th>').format(visible(cell)) for cell in head)
    lines = []
    for first, *cells in rows:
        line = Markup('<tr><th scope="row">{}</th>').format(visible(first))
        lines.append(line + Markup("").join(_tag("td", cell) for cell in cells) + Markup("</tr>"))
    return Markup("<table>\n<caption>{}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>{}</tbody>\n</table>").format(
        caption, headings, Markup("\n").join(lines)
    )


def _tag(name: str, text_: str, kind: str = "") -> Markup:
    attribute = Markup(' class="{}"').format(kind) if kind else Markup("")
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), attribute, escape(visible(text_)))
