"""What the exchanges of a run show on topics that the specification leaves open, whichever check made them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

import msgspec

from conformance.contract.validators import ERROR_FIELDS, ORDER_FIELDS
from conformance.transport.evidence import Exchange, Trouble, first_field
from conformance.transport.request import Operation


def observed(exchanges: Iterable[Exchange]) -> dict[str, tuple[Any, list[int]]]:
    """By topic: what was observed, as plain data, and the numbers of exchanges that show it, if any."""
    everything = list(exchanges)
    answered = [exchange for exchange in everything if exchange.status is not None]
    limited = [exchange.number for exchange in answered if exchange.limited]
    closed = [exchange.number for exchange in everything if exchange.trouble == Trouble.DROPPED]
    codings = [first_field(exchange.headers, "content-encoding") or "none" for exchange in answered]
    limits = {"answers with 429 or 503": len(limited)}
    if closed:
        limits["closed without an answer among other requests"] = len(closed)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for exchange in answered:
        seconds[exchange.operation].append(exchange.seconds)
    return {
        "HTTP version": (dict(Counter(exchange.http_version for exchange in answered)), []),
        "compression": (dict(Counter(codings)), []),
        **{topic: (found, []) for topic, found in _in_bodies(answered).items()},
        "response times": ({name: _spread(found) for name, found in sorted(seconds.items())}, []),
        "rate limiting": (limits, [*limited[:10], *closed[:10]]),
    }


def _in_bodies(answered: Iterable[Exchange]) -> dict[str, Any]:
    """By topic, what the bodies of both operations show: the most orders in a listing, error codes, and fields that the
    contract does not know."""
    longest = 0
    codes: defaultdict[str, set[str]] = defaultdict(set)
    order_fields: set[str] = set()
    error_fields: set[str] = set()
    for status, body in _bodies(answered):
        if status >= 400 and isinstance(body, dict):
            codes[str(status)].add(str(body.get("code", "without code")))
            error_fields.update(body)
        elif status == 200 and isinstance(body, list):
            orders = [order for order in body if isinstance(order, dict)]
            longest = max(longest, len(orders))
            order_fields.update(*orders)
    return {
        "orders in one listing": longest,
        "error codes": {status: sorted(found) for status, found in sorted(codes.items())},
        "further Order fields": sorted(order_fields.difference(ORDER_FIELDS)),
        "further Error fields": sorted(error_fields.difference(ERROR_FIELDS)),
    }


def _bodies(answered: Iterable[Exchange]) -> Iterator[tuple[int, Any]]:
    """Each distinct body of both operations that is recorded in full and is JSON, with its status."""
    operations = (Operation.LIST, Operation.CANCEL)
    different = dict.fromkeys(
        (each.status, each.body)
        for each in answered
        if each.status is not None and each.operation in operations and not each.body_cut
    )
    for status, body in different:
        try:
            read = msgspec.json.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        yield status, read


def _spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median": round(median(ordered), 4),
        "p95": round(ordered[int(len(ordered) * 0.95)], 4),
        "max": round(ordered[-1], 4),
    }
