"""Folds what the judges found on every exchange of a run, and the doubts, into one result for each requirement."""

from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.judging.doubts import CAUSES, PROVABLE, ROWS
from conformance.text import plural
from conformance.transport.evidence import Exchange, Trouble
from conformance.transport.request import STATUSES, Operation, with_fields
from conformance.verdict import EVERY_EXCHANGE, CheckResult, Failure, Status

#: What LIST-2 finds wrong with an id that no int64 holds.
_OUTSIDE = re.compile(r"element [0-9]+: (?:id|petId) is (-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?), outside int64")


def fold(requirement: str, expected: str, exchanges: Iterable[Exchange]) -> CheckResult | None:
    """What the exchanges of a run say about one requirement; None if they say nothing."""
    judged = [
        exchange for exchange in exchanges if requirement in exchange.findings or requirement in exchange.undecided
    ]
    wrong = [exchange for exchange in judged if exchange.findings.get(requirement) is not None]
    undecided = [exchange for exchange in judged if requirement in exchange.undecided]
    if wrong:
        return _failed(requirement, expected, wrong, judged)
    if undecided:
        return _undecided(requirement, undecided)
    if judged:
        return CheckResult(EVERY_EXCHANGE, requirement, Status.PASSED, f"met by {plural(len(judged), 'exchange')}")
    return None


def _failed(requirement: str, expected: str, wrong: list[Exchange], judged: list[Exchange]) -> CheckResult:
    """The result if some of the exchanges `judged` are `wrong`."""
    first = wrong[0]
    asked = _asked_with(first, [each for each in _met(requirement, judged) if each.operation == first.operation])
    problem = f"{first.method} {first.url}: {first.findings[requirement]}{asked}"
    counted = f"{problem} ({_how_often(requirement, wrong, judged)})"
    return CheckResult(
        EVERY_EXCHANGE,
        requirement,
        Status.FAILED,
        counted,
        exchanges=tuple(exchange.number for exchange in wrong[:10]),
        failure=Failure(expected, counted, first.number),
        certain=requirement == "LIST-2" and not all(map(_rounded_only, wrong)),
    )


def _rounded_only(exchange: Exchange) -> bool:
    """Whether no Order in a listing is wrong but for ids that a double makes of those at the ends of int64: that may be
    a consequence of LIST-8."""
    problems = map(_OUTSIDE.fullmatch, (exchange.findings["LIST-2"] or "").split("; "))
    return all(found is not None and abs(float(found[1])) == 2.0**63 for found in problems)


def _undecided(requirement: str, undecided: list[Exchange]) -> CheckResult:
    """The result if none is wrong and some are `undecided`. If one of them proves the breach, the result has a failure,
    which `verdict.fold` uses if nothing required failed."""
    proof = [exchange for exchange in undecided if requirement in exchange.proven]
    first = (proof or undecided)[0]
    message = first.undecided[requirement]
    shown = undecided[:10] if proof else [first]
    due = f"{PROVABLE[requirement]}, since {ROWS[requirement]}" if proof else ""
    # For LIST-3 the proof is a later answer, which is right; the wrong one is the listing before it.
    lacking = [each for each in undecided if each.check == first.check and each.number < first.number]
    wrong = lacking[-1] if requirement == "LIST-3" and lacking else first
    return CheckResult(
        EVERY_EXCHANGE,
        requirement,
        Status.INCONCLUSIVE,
        message,
        exchanges=tuple(exchange.number for exchange in shown),
        failure=Failure(due, message, wrong.number) if proof else None,
        owners=CAUSES.get(requirement, ()),
    )


def _how_often(requirement: str, wrong: list[Exchange], judged: list[Exchange]) -> str:
    """In how many of the exchanges `judged` a requirement was broken, and whether the same request was also answered
    correctly, perhaps only when it was sent alone."""
    if len(wrong) == len(judged):
        return f"in all {len(wrong)} exchanges" if len(wrong) > 1 else "in the only exchange"
    # Not so where the state of the store may have made the difference: at a listed status, or with a condition.
    asked = {
        _request(exchange)
        for exchange in wrong
        if not (_is_listed(exchange) or _has_cancelled(exchange) or any(map(_is_condition, exchange.request_headers)))
    }
    right = [exchange for exchange in _met(requirement, judged) if not _has_cancelled(exchange)]
    others = "not in others"
    if not asked.isdisjoint(map(_request, right)):
        others = "not every time: the same request was also answered as it should be"
        alone = (_request(exchange) for exchange in right if not exchange.crowded)
        if all(exchange.crowded for exchange in wrong) and not asked.isdisjoint(alone):
            others += " when no other was under way"
        if all(exchange.trouble == Trouble.BROKEN and not exchange.http_version for exchange in wrong):
            others += "; if a limit on connections is the cause, --rate-limit keeps a run below it"
    return f"in {len(wrong)} of the {len(judged)} exchanges that this is about, {others}"


def _met(requirement: str, judged: list[Exchange]) -> list[Exchange]:
    """Those of the exchanges `judged` in which a requirement was met."""
    return [exchange for exchange in judged if exchange.findings.get(requirement, "") is None]


def _asked_with(wrong: Exchange, met: list[Exchange]) -> str:
    """The header fields, for "received", that no correctly answered request had: what is wrong may depend on them.
    Empty if no request was answered correctly, since then nothing tells which fields matter."""
    usual = {field for exchange in met for field in exchange.request_headers if not _is_condition(field)}
    return with_fields(field for field in wrong.request_headers if met and field not in usual)


def _is_condition(field: tuple[str, str]) -> bool:
    """Whether a header field makes the answer depend on the state of the store (RFC 9110 section 13.1)."""
    return field[0].startswith("If-")


def _is_listed(exchange: Exchange) -> bool:
    """Whether the operation lists the status of the answer (HTTP-1)."""
    return exchange.status in STATUSES.get(Operation(exchange.operation), ())


def _has_cancelled(exchange: Exchange) -> bool:
    """Whether this was a successful cancel, after which the same request should be answered differently."""
    return exchange.method == "DELETE" and exchange.succeeded


def _request(exchange: Exchange) -> tuple[object, ...]:
    """What was sent, as recorded, and which answers were allowed."""
    headers = tuple(map(tuple, exchange.request_headers))
    return exchange.method, exchange.url, exchange.credential, headers, exchange.request_body, exchange.allowed
