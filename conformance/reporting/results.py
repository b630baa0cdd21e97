"""`results.json`: the whole result as data, from which every other report can be written again.

The format is published as `results.schema.json` beside this module (JSON Schema 2020-12). Other programs rely on it:
its demands change only together with the number at the end of SCHEMA.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files as package_files
from typing import Any, TypeVar

import msgspec

from conformance.contract import dates
from conformance.contract.catalogue import Requirement
from conformance.reporting.run import Circumstances, Observed, Run
from conformance.transport.evidence import Exchange
from conformance.verdict import CheckResult, RequirementResult, Status, Verdict, Waiver, counts

SCHEMA = "store-orders-conformance/results/1"
INTERFACE_VERSION = "1.0.0"
_T = TypeVar("_T")


class ResultsError(ValueError):
    """This is not a `results.json` that this version can read; the message says why."""


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of `results.json`."""
    text = package_files(__package__).joinpath("results.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def to_json(run: Run, files: Mapping[str, str]) -> dict[str, Any]:
    """`run` as plain data that the schema admits; `files` are the other files of the run with their digests
    (`sha256:…`). The exchanges are not in it: they are `evidence.har`, referred to by number."""
    data = {
        "schema": SCHEMA,
        "suite": {
            "version": run.suite_version,
            "interface_version": INTERFACE_VERSION,
            "catalogue": run.catalogue,
        },
        "run": {
            "started": run.started,
            "finished": run.finished,
            "seconds": run.seconds,
            "seed": run.seed,
            "budget": run.budget,
            "strict": run.strict,
            "complete": run.complete,
            **({"process_lost": True} if run.process_lost else {}),
            "requests": run.requests,
            "command": run.command,
        },
        "target": {"name": run.target, "base_url": run.base_url, "mode": run.mode},
        "verdict": run.verdict.value,
        "counts": {
            level.value: {status.value: table[status] for status in Status}
            for level, table in counts(run.requirements).items()
        },
        "requirements": [_requirement(result) for result in run.requirements],
        "observations": [
            {"topic": seen.topic, "value": _plain(seen.value), "exchanges": list(seen.exchanges)}
            for seen in run.observations
        ],
        "warnings": list(run.warnings),
        "circumstances": _circumstances(run.circumstances),
        "files": dict(sorted(files.items())),
    }
    return {**data, "digest": digest(data)}


def digest(data: Mapping[str, Any]) -> str:
    """The digest of `data`, the content of a `results.json`, without the digest in it. Anybody can compute it, so it
    shows that something was changed since, not by whom."""
    rest = {name: value for name, value in data.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def render(run: Run, files: Mapping[str, str]) -> str:
    """`to_json` as the text of the file: printable ASCII, so that nothing in it can act on a terminal."""
    return json.dumps(to_json(run, files), indent=1, allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def parsed(text: str | bytes) -> Any:
    """The content of a `results.json`, which may still be any JSON. Raises ResultsError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"not JSON: {error}") from error


def read(data: Any, exchanges: Iterable[Exchange] = (), messages: Iterable[dict[str, Any]] = ()) -> Run:
    """The run that `data`, the content of a `results.json`, describes; `exchanges` and `messages` are those of
    `evidence.har`.

    Raises ResultsError, naming the place, for anything that the schema does not allow.
    """
    if not isinstance(data, dict) or "schema" not in data:
        raise ResultsError("not the results of a conformance run: no `schema` that says so")
    if data["schema"] != SCHEMA:
        raise ResultsError(f"in the format {data['schema']!r}, and this version reads {SCHEMA!r}")
    from jsonschema import Draft202012Validator  # a run only writes, and need not wait for it to load
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema()).iter_errors(data))
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the document"
        raise ResultsError(f"{place}: {error.message[:300]}")
    rows = data["requirements"]
    for named in (rows, *(row["checks"] for row in rows)):
        for name, count in Counter(each["id"] for each in named).items():
            if count > 1:
                raise ResultsError(f"requirements: {name} stands there {count} times")
    suite, run, target = data["suite"], data["run"], data["target"]
    for name in ("started", "finished"):
        if not (dates.is_rfc3339(run[name]) and isinstance(dates.instant(run[name]), datetime)):
            raise ResultsError(f"run/{name}: {run[name][:300]!r} is no moment in time")
    return Run(
        target=target["name"],
        base_url=target["base_url"],
        mode=target["mode"],
        verdict=Verdict(data["verdict"]),
        requirements=tuple(map(_read_requirement, rows)),
        suite_version=suite["version"],
        catalogue=suite["catalogue"],
        started=run["started"],
        finished=run["finished"],
        seconds=run["seconds"],
        seed=run["seed"],
        budget=run["budget"],
        strict=run["strict"],
        complete=run["complete"],
        process_lost=run.get("process_lost", False),
        requests=run["requests"],
        command=run.get("command", ""),
        observations=tuple(
            Observed(row["topic"], row["value"], tuple(row.get("exchanges", ()))) for row in data["observations"]
        ),
        warnings=tuple(data.get("warnings", ())),
        circumstances=_read_circumstances(data.get("circumstances")),
        messages=tuple(messages),
        exchanges=tuple(sorted(exchanges, key=lambda exchange: exchange.number)),
    )


def _circumstances(made: Circumstances | None) -> dict[str, Any] | None:
    if made is None:
        return None
    data = dict(vars(made))
    data["tools"] = dict(made.tools)
    data["waivers"] = [_present(vars(waiver)) for waiver in made.waivers]
    return dict(_plain(data))


def _read_circumstances(data: dict[str, Any] | None) -> Circumstances | None:
    """What an earlier version of the suite did not write has its default, as it had then."""
    return None if data is None else _converted({**data, "tools": list(data["tools"].items())}, Circumstances)


def _converted(value: dict[str, Any], kind: type[_T]) -> _T:
    """`value` as a dataclass. Raises ResultsError for what the schema allows but the class does not."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ResultsError(f"{kind.__name__.lower()}: {error}") from error


def _requirement(result: RequirementResult) -> dict[str, Any]:
    row = result.requirement
    return {
        "id": row.id,
        "level": row.level.value,
        "section": row.section,
        "title": row.title,
        "clause": row.clause,
        "why": row.why,
        "needs": list(row.needs),
        "rests_on": list(row.rests_on),
        "status": result.status.value,
        "checks": [_check(check) for check in result.checks],
        "waiver": _waiver(result.waiver),
    }


def _check(check: CheckResult) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": check.id,
        "status": check.status.value,
        "message": check.message,
        "seconds": check.seconds,
        "exchanges": list(check.exchanges),
    }
    if check.failure:
        data["failure"] = _present(vars(check.failure))
    return data


def _waiver(waiver: Waiver | None) -> dict[str, Any] | None:
    if waiver is None:
        return None
    return _present({"reason": waiver.reason, "expires": waiver.expires, "link": waiver.link})


def _present(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def _read_requirement(row: dict[str, Any]) -> RequirementResult:
    own, waiver = {"requirement": row["id"]}, row.get("waiver")
    return RequirementResult(
        _converted({"clause": "", "why": "", "needs": (), **row}, Requirement),
        Status(row["status"]),
        tuple(_converted({**check, **own}, CheckResult) for check in row["checks"]),
        _converted({**waiver, **own}, Waiver) if waiver else None,
    )


def _plain(value: Any) -> Any:
    """An observed value in JSON terms: names are strings, and sequences arrays."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
