"""`audit`: re-derives the verdict of a saved run from its evidence, without the service."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from conformance import __version__
from conformance.audit import disagreements
from conformance.audit.record import LABEL, alike, veiled
from conformance.check import all_checks
from conformance.checks import credentials
from conformance.commands.saved import Saved
from conformance.console.streams import tell
from conformance.contract import catalogue, dates
from conformance.reporting import outline, results
from conformance.reporting.run import Circumstances, Run
from conformance.reporting.writing import WRITERS
from conformance.runner.collect import TOOLS
from conformance.target import ConfigError
from conformance.text import plural, visible
from conformance.transport.evidence import Exchange
from conformance.urls import port_of

#: The most sentences that are printed; the others are counted.
_MOST = 20
#: By how many seconds the clock may have been set during the run.
_CLOCK = 2.0
#: A recorded base URL from which nothing was removed as secret, except in its path.
_ADDRESS = re.compile(r"https?://[^/<>]+(/.*)?/v1")


def audit(folder: Path) -> int:
    """Say whether the evidence in `folder` supports the result there: 0 if it does, else 1.

    Raises ConfigError if something cannot be read, or comes from another version of the suite.
    """
    saved = Saved.at(folder)
    stated, made = saved.run, _auditable(saved)
    problems = list(dict.fromkeys([*_files(saved), *_plausible(stated, made)]))
    cut = [exchange.number for exchange in stated.exchanges if exchange.body_cut]
    if cut:
        numbers = ", ".join(map(str, cut[:5]))
        problems.append(
            f"the evidence has only the beginning of {plural(len(cut), 'answer')} (exchanges {numbers}…): what rests "
            "on the rest cannot be derived again"
        )
    else:
        problems += _rerun(saved.data, stated, made)
    _say(stated, problems)
    return 1 if problems else 0


def _auditable(saved: Saved) -> Circumstances:
    """What the run depended on. Raises ConfigError if it was made by another suite, or if there is no evidence."""
    stated = saved.run
    if saved.evidence is None:
        raise ConfigError(f"{saved.file.with_name('evidence.har')} is not there: an audit goes by the evidence alone")
    for file, made_by in ((saved.file, stated.suite_version), (saved.evidence, saved.archived_by)):
        if made_by != __version__:
            raise ConfigError(
                f"{file} is of version {made_by} of the suite, and this is {__version__}: "
                f"audit it with store-orders-conformance {made_by}"
            )
    if stated.catalogue != catalogue.load().digest:
        raise ConfigError(f"{saved.file} is of a suite with other requirements: audit it with that suite")
    if stated.circumstances is None:
        raise ConfigError(f"{saved.file} does not say under which circumstances the run was made")
    others = [f"{tool}=={told}" for tool, told in stated.circumstances.tools if tool in TOOLS and told != version(tool)]
    if others:
        raise ConfigError(
            f"{saved.file}: the run made its requests up with {' and '.join(others)}, another version of "
            f"which makes up others: pip install {shlex.join(others)}, and audit it again"
        )
    if credentials.LONG_KEY in stated.circumstances.wrong_keys:
        raise ConfigError(
            f"{saved.file}: the queries of the run are {credentials.LONG_KEY}, which is not on record and for which "
            "no other can stand in: make the run with a shorter key"
        )
    try:
        port_of(urlsplit(stated.base_url))
    except ValueError as error:
        raise ConfigError(f"{saved.file}: the base URL {stated.base_url} is none: {error}") from None
    if not _ADDRESS.fullmatch(stated.base_url):
        raise ConfigError(
            f"{saved.file}: what was taken out of the base URL as secret leaves {stated.base_url}, by "
            "which the checks cannot be run again: make the run with a key that coincides with no host, port or version"
        )
    return stated.circumstances


def _files(saved: Saved) -> Iterator[str]:
    """What is wrong with the files themselves: they are not those that the run wrote."""
    if not saved.as_written:
        yield "results.json was changed after the run had written it: its digest is that of another content"
    for name, render in WRITERS.items():
        path = saved.file.with_name(name)
        if not path.exists():
            continue  # nothing rests on it
        if not saved.is_named(path):
            yield f"{name} is not the file that results.json names: its digest is another"
        if path.read_bytes() != "".join(render(saved.run)).encode():
            own = name == "evidence.har"  # which says what it says
            yield f"{name} {'is not written as a run writes it' if own else 'does not say what results.json says'}"


def _plausible(stated: Run, made: Circumstances) -> Iterator[str]:
    """What is wrong with the record in itself."""
    if [exchange.number for exchange in stated.exchanges] != list(range(len(stated.exchanges))):
        yield "evidence.har does not have the exchanges from 0 on, each once"
    for exchange in stated.exchanges:
        yield from _body(exchange)
    started, finished = (_moment(text) for text in (stated.started, stated.finished))
    if abs(finished - started - stated.seconds) > 0.01:
        lasted = f"{stated.started} to {stated.finished} is {finished - started:.3f} s"
        yield f"run, seconds: {stated.seconds} s, while {lasted}"
    for exchange in stated.exchanges:
        if not started - _CLOCK <= exchange.started <= finished + _CLOCK:
            after = f"{exchange.started - started:,.0f} s after the start of the run"
            yield f"exchange {exchange.number} was sent {after}, which is not within it"
            break
    for waiver in made.waivers:
        if waiver.expires < stated.started[:10] or not waiver.reason.strip():
            yield f"the waiver for {waiver.requirement} had expired on {waiver.expires}, or has no reason"
    ran = [check for checks in made.order for check in checks]
    if len(set(ran)) != len(ran):
        yield "a check ran in more than one process"
    left_out = [check.id for check in all_checks() if check.requirement in made.selected and check.id not in ran]
    if stated.complete and left_out:
        yield f"{plural(len(left_out), 'check')} of selected requirements did not run: {', '.join(left_out[:5])}"


def _moment(text: str) -> float:
    """A moment that `results.read` has accepted, in seconds since the epoch."""
    moment = dates.instant(text)
    assert isinstance(moment, datetime)
    return moment.timestamp()


def _body(exchange: Exchange) -> Iterator[str]:
    """Whether the digest of a body is that of its bytes. This cannot be checked if something was removed from it as
    secret."""
    raw = exchange.raw_body
    if exchange.body_cut or LABEL.search(exchange.body):
        return
    if exchange.body_sha256 != sha256(raw).hexdigest() or exchange.body_size != len(raw):
        yield f"the body of exchange {exchange.number} is not the one that came: its size or its digest is another"


def _rerun(data: dict[str, Any], stated: Run, made: Circumstances) -> Iterator[str]:
    """What is wrong with the result, according to the same checks on the evidence."""
    from conformance.audit.replay import replay
    from conformance.audit.standin import stand_in
    from conformance.runner import preflight

    short = any(alike(warning, preflight.SHORT_KEY) for warning in stated.warnings)
    key = stand_in(made.wrong_keys, short=short)
    if key is None:
        yield "no key has just these invalid keys beside it: " + ", ".join(made.wrong_keys)
        return
    derived = replay(stated, made, key)
    for check, problem in derived.problems:
        yield f"{check}: {problem}"
    again = json.loads(results.render(derived.run, {}))
    hidden = frozenset(exchange.number for exchange in stated.exchanges if veiled(exchange))
    yield from disagreements.in_result(data, again, hidden)
    yield from disagreements.in_exchanges(stated.exchanges, derived.run.exchanges, hidden)


def _say(stated: Run, problems: list[str]) -> None:
    if not problems:
        checks = plural(sum(map(len, stated.circumstances.order)) if stated.circumstances else 0, "check")
        recorded = plural(len(stated.exchanges), "recorded exchange")
        tell(f"{visible(stated.target)}: {outline.headline(stated)}")
        tell(f"Borne out: {checks}, run again on {recorded}, reproduce every status and figure of results.json.")
        return
    tell(f"{visible(stated.target)}: stated as {outline.headline(stated)}")
    first = f" (the first {_MOST} of them here; one exchange that is missing puts all later ones out of step)"
    told = f"{plural(len(problems), 'difference')} between what is stated and what is on record"
    tell(f"Not borne out by the evidence: {told}{first if problems[_MOST:] else ''}:")
    for problem in problems[:_MOST]:
        tell(f"- {visible(problem)}")
    if problems[_MOST:]:
        tell(f"- and {plural(len(problems) - _MOST, 'more difference')}")
