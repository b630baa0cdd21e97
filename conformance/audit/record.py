"""The record of a run, from which the same checks are answered again: by check, in the order of their requests.

What a check sends depends on the seed, on the circumstances of the run, and on the answers so far. So its next request
must be the next one on record, and gets the recorded answer; nothing else needs to be searched for.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from conformance.reporting.run import Run
from conformance.text import brief
from conformance.transport.evidence import Exchange

#: What the evidence has in place of a secret.
LABEL = re.compile(r"<(?=[^<>]*>)[^<>]*\b(?:key|token)\b[^<>]*>")  # the look ahead keeps the search linear
#: What must be the same in a request now and on record; texts except for removed secrets.
_EXACTLY = ("method", "credential", "operation", "allowed", "shell_headers", "via", "check")
_ALIKE = ("url", "order_id", "request_body")


class Unsupported(BaseException):
    """A check does something that is not on record, and cannot go on. It is not an Exception, so that no check takes it
    for an outcome of its own."""


class CutShort(Unsupported):
    """The record ends in the middle of the check that an interruption cut short, as it should."""


def alike(recorded: str, now: str) -> bool:
    """Whether the text on record may be this one, with labels in place of what was removed as secret: a key may
    coincide with other text."""
    if recorded == now:
        return True
    first, *between = LABEL.split(recorded)
    if not between or not now.startswith(first):
        return False
    place = len(first)
    for part in between[:-1]:
        found = now.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return now[place:].endswith(between[-1])


def veiled(exchange: Exchange) -> bool:
    """Whether secrets were removed from an answer."""
    fields = (text for field in exchange.headers for text in field)
    return any(map(LABEL.search, (exchange.body, exchange.extra, exchange.reason, exchange.detail, *fields)))


class Record:
    """What is left of a run's evidence while its checks run again; `unfinished` are those that were cut short."""

    def __init__(self, run: Run, unfinished: Iterable[str]) -> None:
        self.unfinished = frozenset(unfinished)
        self.problems: list[tuple[str, str]] = []  # with each the check that it came up in
        self._exchanges: dict[str, deque[Exchange]] = {}
        for exchange in run.exchanges:
            self._exchanges.setdefault(exchange.check, deque()).append(exchange)
        self._messages: dict[str, deque[dict[str, Any]]] = {}
        for message in run.messages:
            self._messages.setdefault(str(message.get("check")), deque()).append(message)

    def exchange(self, asked: Exchange) -> Exchange | None:
        """The recorded exchange for the request just made, not judged yet; None if another one is next, or none."""
        left = self._exchanges.get(asked.check)
        if not left or not _same(left[0], asked):
            return None
        return replace(left.popleft(), findings={}, undecided={}, proven=[])

    def names(self, check: str, order: str) -> bool:
        """Whether the rest of a check, as recorded, sends this path segment for an order, or has an order placed with
        this id."""
        messages = self._messages.get(check, ())
        placed = (number for message in messages for number in message.get("params", {}).get("ids", ()))
        paths = (unquote(urlsplit(exchange.url).path) for exchange in self._exchanges.get(check, ()))
        return order in map(str, placed) or any(path.endswith(f"/{unquote(order)}") for path in paths)

    def missing(self, asked: Exchange) -> Unsupported:
        """What to raise if a request is not the next one on record."""
        left = self._exchanges.get(asked.check)
        there = f"exchange {left[0].number} is {left[0].line}" if left else "the evidence ends"
        return self._off(asked.check, f"{there}, where the check sends {asked.line}")

    def message(self, check: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        """The recorded message to the state provider; None if another one is next, or none."""
        left = self._messages.get(check)
        told = json.dumps(asked, sort_keys=True)
        if not left or not alike(json.dumps({name: left[0].get(name) for name in asked}, sort_keys=True), told):
            return None
        return left.popleft()

    def unasked(self, check: str, asked: dict[str, Any]) -> Unsupported:
        """What to raise if a message to the state provider is not the next one on record."""
        return self._off(check, f"the state provider was not asked on record for {brief(asked)}, as the check does")

    def _off(self, check: str, problem: str) -> Unsupported:
        if check in self.unfinished:
            return CutShort()
        # Noted here, since what drives the check may make something else of what is raised.
        if check not in dict(self.problems):
            self.problems.append((check, problem))
        return Unsupported(problem)

    def close(self) -> None:
        """Note what no check asked for."""
        for check, left in self._exchanges.items():
            if left:
                more = f" and {len(left) - 1} more" if len(left) > 1 else ""
                self.problems.append(
                    (check, f"the check does not send exchange {left[0].number}, {left[0].line}{more}")
                )
        for check, messages in self._messages.items():
            if messages:
                self.problems.append((check, f"the check does not ask the state provider for {brief(messages[0])}"))


def _same(recorded: Exchange, now: Exchange) -> bool:
    if any(getattr(recorded, name) != getattr(now, name) for name in _EXACTLY):
        return False
    if not all(alike(str(getattr(recorded, name)), str(getattr(now, name))) for name in _ALIKE):
        return False
    if len(recorded.request_headers) != len(now.request_headers):
        return False
    pairs = zip(recorded.request_headers, now.request_headers, strict=True)
    return all(alike(old[0], new[0]) and alike(old[1], new[1]) for old, new in pairs)
