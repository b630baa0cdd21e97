"""`report.html`: the run for people, as one file that needs no network, no server and no other file.

The template decides how the page looks, this module what it says. The page's Content Security Policy (CSP level 3)
allows its own style and script, by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from jinja2 import Template
from markupsafe import Markup, escape

from conformance.contract.catalogue import Level
from conformance.reporting import outline, pages, timing
from conformance.reporting.pretty import pretty
from conformance.reporting.run import Run
from conformance.target import Shell
from conformance.text import cut, plural, visible
from conformance.transport.curl import curl
from conformance.transport.evidence import Exchange
from conformance.verdict import CheckResult, RequirementResult, Status, counts, coverage

#: The most characters of one body, and of one message, that the page shows.
_BODY = 3_000
_TEXT = 2_000
#: The most characters of all laid-out exchanges together: of those that show a failure, and of those around them.
_TELLING = 300_000
_AROUND = 200_000
#: The most exchanges laid out for one check, and the most rows in the list of all exchanges.
_PER_CHECK = 12
_ROWS = 1_000

_FAMILIES = {
    "AUTH": "Authentication",
    "LIST": "Listing",
    "CANCEL": "Cancelling",
    "ERR": "Errors",
    "HTTP": "Protocol",
    "BASE": "Base URL",
    "PET": "Pet lookup",
}
_SIGNS = {
    Status.PASSED: "✓",
    Status.FAILED: "✕",
    Status.WAIVED: "~",
    Status.INCONCLUSIVE: "?",
    Status.EXCLUDED: "–",
}


def render(run: Run) -> str:
    """`run` as an HTML page."""
    style, script = pages.resource("report.css"), pages.resource("report.js")
    room = _Room()
    shell = outline.shell(run)
    together = _together(run)
    grouped = {result.requirement.id for group in together for result in group.results}
    found = [result for result in _found(run) if result.requirement.id not in grouped]
    findings = [_finding(run, result, room, shell) for result in found]
    return template().render(
        run=run,
        outline=outline,
        Status=Status,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        bars=[_bar(run, level) for level in Level],
        families=_families(run),
        findings=findings,
        known=outline.before_pasting(run, (c.evidence for found in findings for c in found.cases if c.evidence)),
        together=together,
        carded={finding.result.requirement.id for finding in findings},
        groups=outline.excluded(run),
        partly=outline.in_part(run),
        statuses=[(s, sum(r.status is s for r in run.requirements)) for s in Status],
        timings=timing.timings(run),
        plot=timing.plot(run),
        listed=run.exchanges[:_ROWS],
        unlisted=len(run.exchanges[_ROWS:]),
        ids={result.requirement.id for result in run.requirements},
        numbers={exchange.number for exchange in run.exchanges[:_ROWS]},
        slowest=timing.slowest(run),
        unanswered=sum(exchange.status is None for exchange in run.exchanges),
    )


@dataclass(frozen=True)
class Shown:
    """An exchange laid out: request and response as text, what was found in it, and how to repeat it."""

    exchange: Exchange
    request: str
    response: str
    note: str
    findings: dict[str, str]
    curl: str
    telling: bool


@dataclass(frozen=True)
class Case:
    """A check of a finding: expected against received where it failed, and its exchanges in their order."""

    check: CheckResult
    evidence: outline.Evidence | None
    exchanges: list[Shown]
    left_out: list[int]


@dataclass(frozen=True)
class Finding:
    """A requirement that failed, was waived or could not be decided, with the checks that say so."""

    result: RequirementResult
    cases: list[Case]
    passed: int


@dataclass(frozen=True)
class Bar:
    """How the requirements of one level ended, as the segments of a bar that is 100 wide."""

    level: Level
    coverage: str
    segments: list[tuple[Status, int, float, float]]


class _Room:
    """How much space is left on the page for exchanges: for those that show a failure, and for those around them."""

    def __init__(self) -> None:
        self._left = {True: _TELLING, False: _AROUND}

    def take(self, shown: Shown) -> bool:
        """Whether an exchange still fits; if so, its space is used up."""
        size = len(escape(shown.request)) + len(escape(shown.response))
        fits = size <= self._left[shown.telling]
        if fits:
            self._left[shown.telling] -= size
        return fits


def _found(run: Run) -> Iterable[RequirementResult]:
    return (
        result
        for status in (Status.FAILED, Status.WAIVED, Status.INCONCLUSIVE)
        for result in outline.with_status(run, status)
    )


def _together(run: Run) -> list[outline.Group]:
    """Groups of requirements without evidence that are undecided for the same reason. One card for the reason says it
    all; a card for each requirement would bury the others."""
    undecided = outline.with_status(run, Status.INCONCLUSIVE)
    groups = outline.by_reason(result for result in undecided if not outline.evidence(run, result))
    return [group for group in groups if group.results[1:]]


def _finding(run: Run, result: RequirementResult, room: _Room, shell: Shell) -> Finding:
    evidence = {found.check: found for found in outline.evidence(run, result)}
    telling = [check for check in result.checks if check.status in (Status.FAILED, Status.INCONCLUSIVE)]
    cases = [_case(run, check, evidence.get(check), room, shell) for check in telling]
    return Finding(result, cases, sum(check.status is Status.PASSED for check in result.checks))


def _case(run: Run, check: CheckResult, evidence: outline.Evidence | None, room: _Room, shell: Shell) -> Case:
    """A check of a finding, with those of its exchanges that there is room for."""
    telling = evidence.number if evidence else None
    numbers = set(check.exchanges)
    if telling is not None:
        numbers.add(telling)
    ordered = sorted(numbers)
    near = _near(ordered, telling)
    shown, left_out = [], []
    for number in ordered:
        laid_out = _shown(run.by_number.get(number), number == telling, shell) if number in near else None
        if laid_out and room.take(laid_out):
            shown.append(laid_out)
        else:
            left_out.append(number)
    return Case(check, evidence, shown, left_out)


def _near(numbers: list[int], telling: int | None) -> list[int]:
    """Those of `numbers` to lay out: around the telling one, most of them before it; if there is none, the last
    ones."""
    place = numbers.index(telling) if telling is not None else len(numbers)
    start = max(0, min(place - 2 * _PER_CHECK // 3, len(numbers) - _PER_CHECK))
    return numbers[start : start + _PER_CHECK]


def _shown(exchange: Exchange | None, telling: bool, shell: Shell) -> Shown | None:
    if exchange is None:
        return None
    request = [f"{exchange.method} {exchange.url}", *_fields(exchange.request_headers)]
    if exchange.request_body is not None:
        request += ["", visible(cut(pretty(exchange.request_body), _BODY), keep="\n")]
    if exchange.status is None:
        response = [exchange.received]
    else:
        line = f"{exchange.http_version} {exchange.status} {exchange.reason}".strip()
        response = [line, *_fields(exchange.headers)]
    if exchange.body:
        response += ["", visible(pretty(exchange.body[:_BODY]), keep="\n")]
    note = f"{plural(exchange.body_size, 'byte')} of body"
    if len(exchange.body) > _BODY or exchange.body_cut:
        note += f", the beginning shown; sha256 of all {exchange.body_sha256}"
    return Shown(
        exchange,
        "\n".join(request),
        "\n".join(response),
        note,
        {row: problem for row, problem in sorted(exchange.findings.items()) if problem},
        curl(exchange, shell),
        telling,
    )


def _fields(headers: list[tuple[str, str]]) -> list[str]:
    return [visible(cut(f"{name}: {value}", _TEXT)) for name, value in headers[:100]]


def _bar(run: Run, level: Level) -> Bar:
    table = counts(run.requirements)[level]
    total = sum(table.values())
    start, segments = 0.0, []
    for status in Status:
        if table[status]:
            width = 100 * table[status] / total
            segments.append((status, table[status], round(start, 2), round(width, 2)))
            start += width
    return Bar(level, str(coverage(run.requirements, level)), segments)


def _families(run: Run) -> list[tuple[str, str, list[RequirementResult]]]:
    groups: dict[str, list[RequirementResult]] = {}
    for result in run.requirements:
        groups.setdefault(result.requirement.family, []).append(result)
    return [(family, _FAMILIES.get(family, family), results) for family, results in groups.items()]


def _moment(text: str) -> str:
    """An RFC 3339 time in UTC for reading: `2026-11-21 06:00:41 UTC`."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)", text)
    return f"{match[1]} {match[2]} UTC" if match else text


def _prose(text: str) -> Markup:
    """Text of the catalogue, with code between backticks."""
    parts = re.split(r"`([^`]+)`", visible(text))
    spans = (Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))
    return Markup("").join(spans)


def _is_link(text: str | None) -> bool:
    return bool(text and re.fullmatch(r"https?://[!-~]+", text))


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def template() -> Template:
    """The page, compiled."""
    environment = pages.environment()
    environment.filters.update(cut=cut, plural=plural, duration=timing.duration, moment=_moment, prose=_prose)
    environment.tests["link"] = _is_link
    environment.globals.update(signs=_SIGNS, TEXT=_TEXT)
    return environment.get_template("report.html.jinja")
