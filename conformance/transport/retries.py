"""Which requests are retried, and when, and which answers prove nothing of a service: the specification shows no rate
limits and no overload (section 8)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from conformance.transport.answer import Answer
from conformance.transport.evidence import Exchange, Trouble

#: Statuses by which something in front of a service says that it cannot reach it; they prove nothing about the service.
#: Those above 511 are Cloudflare's own.
GATEWAY = frozenset({502, 503, 504, *range(520, 527), 530})
#: Seconds to wait after a 429 without Retry-After.
WAIT_UNTOLD = 1.0


def retry_after(answer: Answer) -> float | None:
    """The seconds to wait that a 429 or 503 asks for with Retry-After (RFC 9110 section 10.2.3), else None."""
    text = answer.header("retry-after")
    if not answer.exchange.limited or text is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        return float(text)
    when = _date(text)
    if when is None:
        return None
    clocks = (datetime.now(UTC), _date(answer.header("date") or ""))  # ours, and where it is told the service's own
    return max(0.0, min((when - now).total_seconds() for now in clocks if now is not None))


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def pause(answer: Answer) -> float | None:
    """The seconds to wait before the request is sent again; None if it is not. A 429 without a time is retried, too:
    rate limits are not shown (section 8), and RFC 6585 section 4 makes Retry-After optional. What a service refused
    before it did anything is sent again at once (RFC 9113 section 8.7)."""
    if answer.exchange.trouble == Trouble.REFUSED:
        return 0.0
    delay = retry_after(answer)
    return WAIT_UNTOLD if delay is None and answer.status == 429 else delay


def turned_away(answer: Answer) -> bool:
    """Whether a limit on the rate, or on simultaneous requests, may have kept this request out; limits are not shown
    (section 8)."""
    exchange = answer.exchange
    refused = exchange.crowded and exchange.trouble in (Trouble.UNREACHABLE, Trouble.UNSENT, Trouble.WAITING)
    return refused or too_many(exchange) or pause(answer) is not None


def too_many(exchange: Exchange) -> bool:
    """Whether the service accepted the request, and then gave it up as one of too many at once; or did not wait for its
    end (408, RFC 9110 section 15.5.9), which was held back until all others were there."""
    return exchange.crowded and (exchange.status in (408, 503) or exchange.trouble == Trouble.DROPPED)
