"""`badge.svg`: verdict and coverage at a glance, for a README or a dashboard.

It looks like the flat badges of shields.io. Text has a fixed width (SVG 2, `textLength`), so that no font lets it
overflow.
"""

from __future__ import annotations

from html import escape

from conformance.reporting import outline
from conformance.reporting.run import Run
from conformance.text import visible
from conformance.verdict import Status, Verdict, coverage

_LABEL = "store orders contract"
_COLOURS = {Verdict.CONFORMANT: "#17703f", Verdict.NON_CONFORMANT: "#b3261e", Verdict.INCOMPLETE: "#8a5a00"}
#: Pixels of one character and beside a text, in 11 pixel sans serif.
_CHARACTER, _MARGIN = 6.2, 8


def render(run: Run) -> str:
    """`run` as an SVG image: the verdict with how many requirements failed or are waived, or else how many of the
    required ones were exercised."""
    covered = coverage(run.requirements)
    failed = sum(result.status is Status.FAILED and outline.gates(run, result) for result in run.requirements)
    waived = sum(result.status is Status.WAIVED for result in run.requirements)
    value = f"{run.verdict}, {f'{failed} failed' if failed else f'{covered.exercised}/{covered.total} exercised'}"
    if waived:
        value += f", {waived} waived"
    if not run.complete:
        value += ", process lost" if run.process_lost else ", cut short"
    title = escape(visible(f"Store Orders contract, {run.target}: {outline.headline(run)}"))
    left, right = _width(_LABEL), _width(value)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" \
role="img" aria-label="{title}">
<title>{title}</title>
<rect width="{left + right}" height="20" rx="3" fill="{_COLOURS[run.verdict]}"/>
<path d="M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#3a4352"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" aria-hidden="true">
{_text(_LABEL, 0, left)}
{_text(value, left, right)}
</g>
</svg>
"""


def _width(text: str) -> int:
    return round(len(text) * _CHARACTER) + 2 * _MARGIN


def _text(text: str, start: int, width: int) -> str:
    shown = escape(visible(text))
    return f'<text x="{start + _MARGIN}" y="14" textLength="{width - 2 * _MARGIN}">{shown}</text>'
