"""Runs to write reports from, built as values: what each status, level and kind of exchange looks like."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.contract.catalogue import Level, Requirement, load
from conformance.reporting.run import Circumstances, Observed, Run
from conformance.runner.reported import CRASHED
from conformance.transport.evidence import Exchange
from conformance.verdict import CheckResult, Failure, Status, Waiver, fold, verdict

BASE = "https://staging.example.org/v1"
KEY = "STORE_ORDERS_STAGING_KEY"
BEARER = [("Authorization", "Bearer <key>"), ("User-Agent", "store-orders-conformance/0.1.0")]


def exchange(
    number: int,
    method: str = "GET",
    path: str = "/store/orders",
    status: int | None = 200,
    body: str = "[]",
    reason: str = "OK",
    seconds: float = 0.02,
    **more: Any,
) -> Exchange:
    """An exchange as the recorder leaves it."""
    raw = body.encode("utf-8", "surrogatepass")
    values: dict[str, Any] = {
        "method": method,
        "url": BASE + path,
        "request_headers": list(BEARER),
        "credential": "Bearer <key>",
        "operation": {"GET": "listOrders", "DELETE": "cancelOrder"}.get(method, "other"),
        "allowed": "LISTED",
        "order_id": path.rpartition("/")[2] if method == "DELETE" else None,
        "shell_headers": ["Authorization: Bearer $KEY"],
        "started": 1_795_000_000.25 + number,
        "seconds": seconds,
        "status": status,
        "reason": reason,
        "http_version": "HTTP/1.1",
        "headers": [("Content-Type", "application/json"), ("Content-Length", str(len(raw)))] if body else [],
        "body": raw.decode("utf-8", "surrogateescape"),
        "body_size": len(raw),
        "body_sha256": hashlib.sha256(raw).hexdigest(),
        "check": "test_listing",
        "number": number,
    }
    return Exchange(**{**values, **more})


def undecided(reason: str, *ids: str) -> list[CheckResult]:
    """Checks of these requirements that could not decide for this reason."""
    return [CheckResult("undecided", id_, Status.INCONCLUSIVE, reason) for id_ in ids]


def run(
    checks: list[CheckResult],
    exchanges: tuple[Exchange, ...] = (),
    waivers: Mapping[str, Waiver] | None = None,
    **more: Any,
) -> Run:
    """A run of these checks over the real catalogue."""
    results = tuple(fold(load().requirements.values(), checks, waivers))
    strict, complete = more.get("strict", False), more.get("complete", True)
    values: dict[str, Any] = {
        "target": "staging",
        "base_url": BASE,
        "mode": "full",
        "verdict": verdict(results, strict=strict, complete=complete),
        "requirements": results,
        "suite_version": "0.1.0",
        "catalogue": load().digest,
        "started": "2026-11-21T06:00:00Z",
        "finished": "2026-11-21T06:00:41Z",
        "seconds": 41.25,
        "seed": 20261121,
        "budget": "standard",
        "strict": strict,
        "complete": complete,
        "requests": len(exchanges),
        "command": "store-orders-conformance run staging",
        "circumstances": Circumstances((), (), (), KEY, "url", (), (), 0, False, ()),
        "exchanges": exchanges,
    }
    return Run(**{**values, **more})


def passing(*but: str) -> list[CheckResult]:
    """A check that passed for every requirement of the catalogue, those in `but` excepted."""
    return [
        CheckResult(f"check_{id_.lower().replace('-', '_')}", id_, Status.PASSED, seconds=0.1, exchanges=(0,))
        for id_ in load().requirements
        if id_ not in but
    ]


def conformant() -> Run:
    """Everything was exercised and passed."""
    return run(passing(), (exchange(0),))


ORDERS = json.dumps(
    [
        {"id": 101, "petId": 7, "quantity": 2, "shipDate": "2026-11-30T10:00:00Z", "complete": False},
        {"id": 102, "petId": 7, "quantity": 1, "shipDate": "2026-11-28T09:30:00Z", "complete": True},
    ],
    separators=(",", ":"),
)


def failing() -> Run:
    """Two required and one recommended failure, one waived, one inconclusive, some excluded."""
    exchanges = (
        exchange(0, body=ORDERS, findings={"LIST-1": None, "HTTP-1": None}),
        exchange(1, "DELETE", "/store/orders/102", 204, "", "No Content", 0.031, check="refuses_shipped"),
        exchange(
            2,
            "DELETE",
            "/store/orders/999",
            401,
            '{"code":"unauthorized","message":"no","status":"401"}',
            "Unauthorized",
            credential="no credentials",
            request_headers=[],
            shell_headers=[],
            check="errors_are_errors",
            findings={"ERR-1": "`status` is a string, not an integer"},
        ),
        exchange(3, status=None, body="", reason="", seconds=5.0, trouble="timeout", detail="no answer in 5 s"),
    )
    checks = [
        *passing("CANCEL-3", "ERR-1", "AUTH-7", "CANCEL-7", "LIST-5", "LIST-7", "LIST-8", "AUTH-2"),
        CheckResult(
            "refuses_shipped",
            "CANCEL-3",
            Status.FAILED,
            "a shipped order was cancelled",
            0.4,
            (0, 1),
            Failure(
                "409 (Conflict)",
                "204 No Content",
                1,
                f"""curl -sS -i -X DELETE -H "Authorization: Bearer ${{{KEY}}}" '{BASE}/store/orders/102'""",
            ),
        ),
        CheckResult(
            "errors_are_errors",
            "ERR-1",
            Status.FAILED,
            "`status` is a string",
            0.2,
            (2,),
            Failure("integer `status`", '`status` is the string "401"', 2, None),
        ),
        CheckResult("challenges", "AUTH-7", Status.FAILED, "no WWW-Authenticate", 0.1, (2,)),
        CheckResult(
            "one_cancel_wins",
            "CANCEL-7",
            Status.FAILED,
            "two cancels succeeded",
            1.5,
            (1,),
            Failure("one 204", "two 204", 1, None),
        ),
        CheckResult(
            "all_pages",
            "LIST-5",
            Status.INCONCLUSIVE,
            "timeout: no answer in 5 s; a higher --timeout",
            5.0,
            (3,),
        ),
        CheckResult("empty_store", "LIST-7", Status.EXCLUDED, "the state provider cannot empty the store (501)"),
        CheckResult("big_ids", "LIST-8", Status.EXCLUDED, "the state provider cannot choose ids (501)"),
        CheckResult("no_key_listing", "AUTH-2", Status.PASSED, "", 0.1, (2,)),
        CheckResult("no_key_shipped", "AUTH-2", Status.EXCLUDED, "no shipped order left"),
    ]
    waiver = Waiver("CANCEL-7", "single-writer database, fixed in 2.4", "2027-03-31", "https://example.org/7")
    return run(
        checks,
        exchanges,
        {"CANCEL-7": waiver},
        observations=(
            Observed("second cancel", {"status": 404, "body": "Error"}, (1,)),
            Observed("HTTP version", ["HTTP/1.1"], (0, 1, 2)),
        ),
        warnings=("2 orders left behind: 101, 102",),
    )


def incomplete() -> Run:
    """Nothing failed, and a required check could not decide."""
    checks = [
        *passing("CANCEL-1"),
        CheckResult("cancels", "CANCEL-1", Status.INCONCLUSIVE, "the state provider answered 500"),
    ]
    return run(checks, (exchange(0),))


def interrupted() -> Run:
    """Somebody stopped the run in the second check."""
    done, stopped, *others = passing()
    not_run = [
        CheckResult(check.id, check.requirement, Status.INCONCLUSIVE, "not run: the run was cut short")
        for check in others
    ]
    stopped = replace(stopped, status=Status.INCONCLUSIVE, message="not finished: the run was cut short")
    return run([done, stopped, *not_run], (exchange(0),), complete=False)


def robbed() -> Run:
    """A process of the run was killed, and nobody interrupted it."""
    lost, *others = passing()
    lost = replace(lost, status=Status.INCONCLUSIVE, message=CRASHED)
    return run([lost, *others], (exchange(0),), complete=False, process_lost=True)


def guarded() -> Run:
    """What a run without orders to cancel looks like: much excluded, conformant."""
    orders = [id_ for id_, row in load().requirements.items() if {"pending orders", "shipped orders"} & set(row.needs)]
    left_out = [
        CheckResult("orders", id_, Status.EXCLUDED, "mode guarded sends no cancel to an order") for id_ in orders
    ]
    return run([*passing(*orders), *left_out], (exchange(0),), mode="guarded")


def broken(text: str) -> Run:
    """A failing run in which the service and its provider put `text` wherever they can."""
    made = failing()
    evil = exchange(
        4,
        "DELETE",
        "/store/orders/1",
        500,
        text,
        text,
        headers=[("X-Evil", text), (text, "x")],
        check="refuses_shipped",
        detail=text,
        findings={"HTTP-1": text},
    )
    worse = exchange(5, status=None, body="", reason=text, trouble="broken", detail=text, url=BASE + "/" + text)
    requirements = []
    for result in made.requirements:
        checks = [
            replace(
                check,
                message=text,
                failure=Failure(text, text, 4, f"curl {text}")
                if check.status is Status.FAILED and check.failure
                else check.failure,
                exchanges=(4, 5) if check.status is Status.FAILED else check.exchanges,
            )
            if check.status is not Status.PASSED
            else check
            for check in result.checks
        ]
        waiver = replace(result.waiver, reason=text, link=text) if result.waiver else None
        requirements.append(replace(result, checks=tuple(checks), waiver=waiver))
    return replace(
        made,
        requirements=tuple(requirements),
        exchanges=(*made.exchanges, evil, worse),
        observations=(Observed("error codes", {"401": [text]}), Observed("409 body", text)),
        warnings=(text,),
        target=text,
        command=text,
    )


def small() -> Run:
    """A failing run over a catalogue of its own, for golden files that survive changes to the real one."""
    rows = [
        ("AUTH-1", Level.REQUIRED, "5", "accept the valid key", "The API key is sent as a bearer token."),
        (
            "LIST-1",
            Level.REQUIRED,
            "4.1",
            "answer 200 with a JSON array",
            "200 | JSON array of Order objects",
        ),
        ("LIST-7", Level.REQUIRED, "4.1", "answer [] when there are no orders", "200 | JSON array"),
        ("CANCEL-3", Level.REQUIRED, "3, 4.2", "refuse a shipped order with 409", "409 | already `shipped`"),
        (
            "CANCEL-7",
            Level.REQUIRED,
            "3",
            "let exactly one of several cancels succeed",
            "Rule: only `pending`",
        ),
        ("CANCEL-8", Level.REQUIRED, "3", "touch no other order", "the identifier of the order to cancel"),
        ("HTTP-1", Level.REQUIRED, "4", "answer with a listed status", "listOrders: 200, 401."),
        ("AUTH-7", Level.RECOMMENDED, "5", "send WWW-Authenticate with 401", "Scheme: HTTP bearer"),
        ("AUTH-8", Level.RECOMMENDED, "5", "take the scheme in any case", "Scheme: HTTP bearer"),
    ]
    made = failing()
    known = {result.requirement.id: result for result in made.requirements}
    known["CANCEL-8"] = replace(
        known["CANCEL-8"],
        checks=(
            *known["CANCEL-8"].checks,
            CheckResult("others", "CANCEL-8", Status.EXCLUDED, "no ids to choose"),
        ),
    )
    known["HTTP-1"] = replace(
        known["HTTP-1"],
        status=Status.INCONCLUSIVE,
        checks=(CheckResult("listed_status", "HTTP-1", Status.INCONCLUSIVE, "503 without Retry-After", 0.5, (3,)),),
    )
    results = tuple(
        replace(known[id_], requirement=Requirement(id_, level, section, title, clause, "Why.", ()))
        for id_, level, section, title, clause in rows
    )
    return replace(made, requirements=results, catalogue="sha256:" + "0" * 64)


EVERY = {
    "small": small,
    "conformant": conformant,
    "failing": failing,
    "incomplete": incomplete,
    "interrupted": interrupted,
    "robbed": robbed,
    "guarded": guarded,
}
