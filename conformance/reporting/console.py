"""What a person reads at the end of a run, in a terminal or in the log of a pipeline; and GitHub's annotations.

In a terminal, text is wrapped to its width and aligned under its label. In a log nothing is wrapped, so that it can be
searched. `curl` lines are never wrapped or cut, so that they can be copied.
"""

from __future__ import annotations

from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.reporting import outline
from conformance.reporting.run import Run
from conformance.text import cut, plural, visible
from conformance.transport.evidence import Trouble
from conformance.verdict import RequirementResult, Status, Verdict

_STYLES = {
    Verdict.CONFORMANT: "bold green",
    Verdict.NON_CONFORMANT: "bold red",
    Verdict.INCOMPLETE: "bold yellow",
}
#: The most characters of what a service sent that one line shows; the reports have the rest.
_TEXT = 1000
#: The most warnings that are shown: a provider may cause one with every check.
_WARNINGS = 8
#: From so many seconds on, it may be worth knowing how to make a run shorter.
_LONG = 10.0
#: A service that answers within so many seconds gains little from several checks at a time.
_NEAR = 0.01
#: The most annotations that GitHub shows for one step.
_ANNOTATIONS = 10


def summary(run: Run, console: Console) -> None:
    """Print `run` on `console`: verdict and coverage, then what casts doubt on the run itself (a wrong base path
    explains everything that follows), then whatever a person would want to act on."""
    paper = _Paper(console)
    paper.line((f"{run.target}: ", "bold"), (outline.headline(run), _STYLES[run.verdict]))
    for warning in run.warnings[:_WARNINGS]:
        paper.field("warning", warning, "yellow")
    if len(run.warnings) > _WARNINGS:
        paper.field("warning", f"and {len(run.warnings) - _WARNINGS} more, which the reports have", "yellow")
    pasted: list[outline.Evidence] = []
    for result in outline.with_status(run, Status.FAILED):
        pasted += _failure(paper, run, result)
    for result in outline.with_status(run, Status.WAIVED):
        if result.waiver:
            _block(paper, result, "waived", f"until {result.waiver.expires}: {result.waiver.reason}")
            for shown in outline.evidence(run, result)[:1]:  # it may be another failure than the one that was waived
                paper.field("check", outline.explained(shown.check))
                paper.field("received", shown.received)
    for group in outline.by_reason(outline.with_status(run, Status.INCONCLUSIVE)):
        if len(group.results) == 1:
            _block(paper, group.results[0], "reason", group.reason)
            continue
        paper.line()
        paper.line((f"INCONCLUSIVE {len(group.results)} requirements", "bold yellow"), f" {outline.ids(group.results)}")
        paper.field("reason", group.reason)
    groups, partly = outline.excluded(run), outline.in_part(run)
    if groups or partly:
        paper.line()
        paper.line(("not exercised", "bold"))
    for group in groups:
        paper.field(f"{len(group.results):>8}", f"{group.reason}: {outline.ids(group.results)}")
    for group in partly:
        paper.field("in part", f"{group.reason}: {outline.ids(group.results)}")
    for paragraph in outline.before_pasting(run, pasted):
        paper.line()
        paper.line(paragraph)


def hint(run: Run) -> str | None:
    """What to do differently in the next run, judging by this one; None if nothing."""
    waited = _waited(run)
    if run.seconds > _LONG and waited > run.seconds / 2:
        return (
            f"For {waited:.0f} s of that the run waited because the service asked it to (429, or 503 with "
            "Retry-After); --rate-limit keeps it below a limit that you know."
        )
    processes = sum(bool(checks) for checks in run.circumstances.order) if run.circumstances else 0
    if processes > 1 and run.verdict is not Verdict.CONFORMANT and run.complete:
        return "Checks ran side by side, and one may have spoilt another's orders: -n 1 tells causes apart."
    answered = [exchange.seconds for exchange in run.exchanges if exchange.status is not None]
    spent = sum(answered)
    near = spent < _NEAR * len(answered)
    limited = any(exchange.limited or exchange.trouble == Trouble.DROPPED for exchange in run.exchanges)
    if processes == 1 and run.seconds > _LONG and spent > run.seconds / 2 and not (limited or near or _in_line(run)):
        return "Most of that time went into waiting for answers one by one; with -n 4, four checks wait at a time."
    return None


def _waited(run: Run) -> float:
    """The seconds in which nothing was sent because the service had asked for that."""
    total = until = 0.0
    for exchange in sorted(run.exchanges, key=lambda exchange: exchange.started + exchange.seconds):
        if exchange.waited and exchange.status is not None:
            asked = exchange.started + exchange.seconds
            ends = max(until, asked + exchange.waited)
            total += ends - max(until, asked)
            until = ends
    return total


def _in_line(run: Run) -> bool:
    """Whether the service answered simultaneous requests one after the other."""
    answered = [exchange for exchange in run.exchanges if exchange.status is not None]
    together = [exchange.seconds for exchange in answered if exchange.crowded]
    alone = [exchange.seconds for exchange in answered if not exchange.crowded]
    return bool(together and alone) and median(together) > 2 * median(alone)


def github_annotations(run: Run) -> list[str]:
    """Workflow commands that annotate `run` on GitHub, worst first, at most as many as it shows.

    An error for each failed requirement that gates; a warning for each other failure, and for what could not be
    decided.
    """
    commands = []
    for result in outline.with_status(run, Status.FAILED):
        row, found = result.requirement, outline.evidence(run, result)
        said = [f"{row.sentence} (section {row.section})"]
        for shown in found[:1]:
            said += [f"expected: {cut(shown.expected, _TEXT)}", f"received: {cut(shown.received, _TEXT)}"]
        kind = "error" if outline.gates(run, result) else "warning"
        commands.append(_command(kind, f"{row.id} not kept by {run.target}", said))
    for group in outline.by_reason(outline.undecided(run)):
        said = [f"{r.requirement.sentence} (section {r.requirement.section})" for r in group.results[:1]]
        what = group.results[0].requirement.id
        if group.results[1:]:
            what, said = plural(len(group.results), "requirement"), [outline.ids(group.results)]
        commands.append(_command("warning", f"{what} not decided for {run.target}", [*said, cut(group.reason, _TEXT)]))
    return commands[:_ANNOTATIONS]


def _failure(paper: _Paper, run: Run, result: RequirementResult) -> list[outline.Evidence]:
    """Write a failure. Returns the evidence whose `curl` lines are shown."""
    found = outline.evidence(run, result)
    _head(paper, result)
    paper.field("clause", f"section {result.requirement.section}: {result.requirement.clause}")
    if result.requirement.why:
        paper.field("why", result.requirement.why)
    for shown in found[:1]:
        paper.field("check", outline.explained(shown.check))
        paper.field("expected", shown.expected)
        paper.field("received", shown.received)
        if shown.shown:
            paper.field("exchange", shown.shown)
        if shown.orders:
            paper.field("orders", f"placed for it: {shown.orders}")
        for line in shown.curl.splitlines():
            paper.whole(line)
    if further := outline.also(found):
        paper.field("also", further)
    return found[:1]


def _block(paper: _Paper, result: RequirementResult, label: str, text: str) -> None:
    _head(paper, result)
    paper.field(label, text or "none given")


def _head(paper: _Paper, result: RequirementResult) -> None:
    row, style = result.requirement, "bold red" if result.status is Status.FAILED else "bold yellow"
    paper.line()
    paper.line((f"{result.status.upper()} {row.id}", style), f" ({row.level}) {row.sentence}")


def _command(kind: str, title: str, lines: list[str]) -> str:
    """A workflow command with the escapes of github.com/actions/toolkit, packages/core/src/command.ts."""
    message = "\n".join(visible(line, keep="\n") for line in lines)
    message = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    title = visible(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={title}::{message}"


class _Paper:
    """Writes lines and labelled fields; text is printed unchanged, without markup, highlighting or emoji."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, *parts: str | tuple[str, str]) -> None:
        """One line of text, in parts that may have a style."""
        pairs = [(part, "") if isinstance(part, str) else part for part in parts]
        text = Text.assemble(*((self._safe(words), style) for words, style in pairs))
        self._print(text)

    def field(self, label: str, text: str, style: str = "dim") -> None:
        """`text` after its label, with all its lines indented."""
        shown = cut("\n".join(map(self._safe, text.split("\n"))), _TEXT)
        if self._console.is_terminal:
            grid = Table.grid(padding=(0, 1))
            grid.add_column(min_width=10, no_wrap=True)
            grid.add_column(overflow="fold")
            grid.add_row(Text(f"  {label}", style), Text(shown))
            self._console.print(grid)
        else:
            self._print(Text(f"  {label:<8} {shown}".replace("\n", f"\n{'':11}")))

    def whole(self, text: str) -> None:
        """`text` on a line of its own, never wrapped or cut."""
        self._console.print(Text(f"  {self._safe(text)}"), soft_wrap=True, markup=False, highlight=False, emoji=False)

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=not self._console.is_terminal, highlight=False)

    def _safe(self, text: str) -> str:
        encoding = self._console.encoding
        return visible(text).encode(encoding, "backslashreplace").decode(encoding)
