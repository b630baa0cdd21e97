"""What the exchanges of a run say on topics that the specification leaves open, whichever check they were made for."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any

from conformance.contract.validators import ERROR_FIELDS, ORDER_FIELDS
from conformance.transport.evidence import Exchange, Operation, Trouble


def observed(exchanges: Iterable[Exchange]) -> dict[str, tuple[Any, list[int]]]:
    """By topic what was observed, as plain data, and the numbers of exchanges that show it, if some do."""
    versions: Counter[str] = Counter()
    codings: Counter[str] = Counter()
    codes: defaultdict[str, set[str]] = defaultdict(set)
    order_fields: set[str] = set()
    error_fields: set[str] = set()
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    limited: list[int] = []
    closed: list[int] = []
    read: set[tuple[int, str]] = set()
    for exchange in exchanges:
        if exchange.trouble == Trouble.DROPPED:
            closed.append(exchange.number)
        if exchange.status is None:
            continue
        versions[exchange.http_version] += 1
        codings[next((v for k, v in exchange.headers if k.lower() == "content-encoding"), "none")] += 1
        seconds[exchange.operation].append(exchange.seconds)
        if exchange.status in (429, 503):
            limited.append(exchange.number)
        if exchange.body_cut or exchange.operation not in (Operation.LIST, Operation.CANCEL):
            continue
        if (exchange.status, exchange.body) in read:
            continue
        read.add((exchange.status, exchange.body))
        try:
            body = json.loads(exchange.body)
        except (ValueError, RecursionError):
            continue
        if exchange.status >= 400 and isinstance(body, dict):
            codes[str(exchange.status)].add(str(body.get("code", "without code")))
            error_fields.update(body)
        elif exchange.status == 200 and isinstance(body, list):
            order_fields.update(*(order for order in body if isinstance(order, dict)))
    limits = {"answers with 429 or 503": len(limited)}
    if closed:
        limits["closed without an answer among other requests"] = len(closed)
    return {
        "HTTP version": (dict(versions), []),
        "compression": (dict(codings), []),
        "error codes": ({status: sorted(found) for status, found in sorted(codes.items())}, []),
        "further Order fields": (sorted(order_fields.difference(ORDER_FIELDS)), []),
        "further Error fields": (sorted(error_fields.difference(ERROR_FIELDS)), []),
        "response times": ({name: _spread(found) for name, found in sorted(seconds.items())}, []),
        "rate limiting": (limits, [*limited[:10], *closed[:10]]),
    }


def _spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median": round(median(ordered), 4),
        "p95": round(ordered[int(len(ordered) * 0.95)], 4),
        "max": round(ordered[-1], 4),
    }
