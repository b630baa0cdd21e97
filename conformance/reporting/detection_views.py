"""What a selftest writes: the matrix as text, JSON, Markdown and HTML, and what it found for the records. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from conformance import __version__
from conformance.contract import catalogue
from conformance.reporting.detection import LEAST_FAULTS, Judged, Matrix, Sent
from conformance.reporting.pages import page
from conformance.transport.evidence import Exchange

#: Faults that are put on record for each way in which a check stops.
STOPS = 2
#: Ids, dates and ports are random, and differ by the seed.
_DRAWN = re.compile(r"[0-9]{4,}")
#: What differs between reasons that a check gives at one step: addresses, what is quoted, numbers but for statuses.
_VARIES = re.compile(r"\S+://\S+|'[^']*'|-?[0-9]{4,}|\(see [^)]*\)|\b[0-9]{1,2}\b")


def complaint(judged: Judged) -> str:
    """What is wrong with a case, in a line or two."""
    case = judged.case
    if case.requirement:
        instead = ", ".join(judged.failed) or "nothing"
        said = judged.messages.get(case.requirement, "")
        return f"MISSED {case.name}: {case.requirement} did not fail, {instead} did. {said}"
    wrong = [id_ for id_ in (*judged.failed, *judged.inconclusive) if id_ not in case.leaves]
    reasons = [f"{id_}: {judged.messages.get(id_, '')}" for id_ in wrong[:3]]
    reasons += [f"{id_} did not fail" for id_ in sorted(case.leaves - set(judged.failed))]
    return f"WRONGED {case.name}: exit status {judged.exit_status}. {'; '.join(reasons)}"


def text(matrix: Matrix) -> str:
    """The matrix in short, for the console: the counts, and whatever is wrong."""
    lines = [
        f"{', '.join(matrix.tally)}, {matrix.further_per_fault:.2f} further required requirements failed per fault, "
        f"{matrix.seconds:.0f} s",
    ]
    beside = [judged for judged in matrix.faults if judged.further]
    if beside:
        lines.append("further failures:")
        lines += [f"  {j.case.name} ({j.case.requirement}): {', '.join(j.further)}" for j in beside]
    lines += [complaint(judged) for judged in matrix.missed]
    lines += [f"UNCOVERED {id_}: fewer than {LEAST_FAULTS} faults" for id_ in matrix.uncovered]
    lines += [f"LOST {sentence}" for sentence in matrix.lost]
    lines += [f"PASSING {sentence}" for sentence in matrix.passing]
    lines += [f"UNPROVEN {check}: no fault is on record that it fails on" for check in matrix.unproven]
    lines += [f"LESS {sentence}" for sentence in matrix.less]
    return "\n".join(lines)


def as_json(matrix: Matrix) -> str:
    """The matrix as JSON, for programs."""
    document = {
        "suite": __version__,
        "seconds": matrix.seconds,
        "faults": len(matrix.faults),
        "variants": len(matrix.variants),
        "missed": [judged.case.name for judged in matrix.missed],
        "uncovered": matrix.uncovered,
        "lost": matrix.lost,
        "passing": matrix.passing,
        "unproven": matrix.unproven,
        "less": matrix.less,
        "further_per_fault": round(matrix.further_per_fault, 3),
        "cases": [
            {
                "name": judged.case.name,
                "requirement": judged.case.requirement,
                "description": judged.case.description,
                "failed": list(judged.failed),
                "checks": list(judged.checks),
                "inconclusive": list(judged.inconclusive),
                "good": judged.good,
                "exit_status": judged.exit_status,
                "seconds": judged.seconds,
                "requests": judged.requests,
            }
            for judged in matrix.judged
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def markdown(matrix: Matrix) -> str:
    """The matrix as Markdown, for the documentation. Without times, so that it changes only when a result does."""
    lines = [
        "# Detection matrix",
        "",
        f"{'; '.join(matrix.tally)}; {matrix.further_per_fault:.2f} further required requirements failed per fault. "
        "Written by `store-orders-conformance selftest`.",
        "",
        "| fault | what it does | breaks | failed beside it |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {j.case.name} | {j.case.description} | {j.case.requirement}{'' if j.good else ' **(missed)**'} "
        f"| {', '.join(id_ for id_ in j.failed if id_ != j.case.requirement)} |"
        for j in matrix.faults
    ]
    lines += ["", "| correct variant | what it does | left alone |", "|---|---|---|"]
    lines += [f"| {j.case.name} | {j.case.description} | {'yes' if j.good else '**no**'} |" for j in matrix.variants]
    return "\n".join(lines) + "\n"


def as_html(matrix: Matrix) -> str:
    """The matrix as a page: cases down, requirements across, a mark where a requirement failed."""
    rows = catalogue.load().requirements.values()
    seen = [row for row in rows if any(row.id in (j.case.requirement, *j.failed) for j in matrix.judged)]
    return page("detection.html.jinja", summary=text(matrix).splitlines()[0], rows=seen, cases=matrix.judged)


def proofs_of(judged: Iterable[Judged]) -> str:
    """The proofs that one selftest found, as JSON: check -> the faults of its requirement that it failed on."""
    found: dict[str, list[str]] = {}
    for each in judged:
        for check in each.checks:
            found.setdefault(check, []).append(each.case.name)
    return _as_record(found)


def stops_of(judged: Iterable[Judged]) -> str:
    """The stops that one selftest found, as JSON: check -> faults of other requirements that it did not pass on, the
    first few for each reason that it gave."""
    found: dict[str, list[str]] = {}
    given: Counter[tuple[str, str]] = Counter()
    for each in judged:
        for check, reason in each.stopped.items():
            kind = check, _VARIES.sub("", reason)
            given[kind] += 1
            if given[kind] <= STOPS:
                found.setdefault(check, []).append(each.case.name)
    return _as_record(found)


def _as_record(faults: Mapping[str, Iterable[str]]) -> str:
    """The faults found for each check as JSON, all sorted."""
    return json.dumps({check: sorted(faults[check]) for check in sorted(faults)}, indent=1) + "\n"


def sent_by(exchanges: Iterable[Exchange]) -> dict[str, list[int]]:
    """What each check sent in these exchanges, as `Sent` has it."""
    requests: Counter[str] = Counter()
    things: dict[str, set[str]] = {}
    for exchange in exchanges:
        requests[exchange.check] += 1
        things.setdefault(exchange.check, set()).update(_DRAWN.sub("0", thing) for thing in _things(exchange))
    return {check: [requests[check], len(things[check])] for check in sorted(requests)}


def sent_of(sent: Sent) -> str:
    """`sent` as JSON, with a line for each check."""
    lines = ",\n".join(f" {json.dumps(check)}: {json.dumps(counts)}" for check, counts in sorted(sent.items()))
    return f"{{\n{lines}\n}}\n"


def _things(exchange: Exchange) -> Iterator[str]:
    path, _, query = exchange.url.partition("?")
    yield f"{exchange.method} {path}"
    yield from query.split("&")
    yield from (f"{name}: {value}" for name, value in exchange.request_headers)
    yield exchange.credential
    yield f"body {exchange.request_body}"


WRITERS: dict[str, Callable[[Matrix], str]] = {
    "matrix.json": as_json,
    "matrix.md": markdown,
    "matrix.html": as_html,
    "proofs.json": lambda matrix: proofs_of(matrix.judged),
    "stops.json": lambda matrix: stops_of(matrix.faults),
    "sent.json": lambda matrix: sent_of(matrix.sent),
}
