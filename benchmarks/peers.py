"""Other tools on the same work: the same faults and correct variants, judged from the same OpenAPI document.

Schemathesis comes from Python's registry, Dredd and Specmatic from npm's; a tool that is not there is left out. Each is
set up as a user who knows it would have it, so that it leaves the correct reference server alone:

- the shipped document is widened by what the contract leaves open: a 400 to a cancel, a body of the 409;
- all are told the key, and those that need examples get orders of each kind from the state control.

A tool finds a fault if it reports anything at all, which is generous: the selftest asks of our suite
that it names the requirement that the fault breaks. The requests are counted by the server.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from benchmarks.figure import Figure, shell, suite, workplace
from conformance.contract import catalogue
from conformance.contract.transitions import State
from conformance.runner.reference import Address
from conformance.states.provider import connect, setup
from conformance.target import States
from reference_server.faults import FAULTS
from reference_server.messages import Request, Response
from reference_server.running import Running, build
from reference_server.variants import VARIANTS

#: Judges a service with files in a folder of its own; returns whether it reported something.
Judge = Callable[[Address, Path], bool]
KEY = "sk-Benchmark.Key-of-30-letters"
ABSENT = 987_654_321_987
CANCEL = "/store/orders/{orderId}"
ERROR = {"code": "any", "message": "any", "status": 0}

HOOKS = """
const hooks = require('hooks');
const ids = {204: process.env.PENDING, 404: process.env.ABSENT, 409: process.env.SHIPPED};
hooks.beforeEach((transaction, done) => {
  const status = transaction.expected.statusCode;
  if (status == 401) delete transaction.request.headers['Authorization'];
  else if (status == 400) transaction.skip = true;
  else
    transaction.fullPath = transaction.fullPath.replace(/orders[/].*/, `orders/${ids[status]}`);
  done();
});
"""


# --- the tools


def _document(folder: Path) -> Path:
    """The shipped document, widened."""
    document: dict[str, Any] = yaml.safe_load((files("conformance.contract") / "openapi.yaml").read_text("utf-8"))
    cancel = document["paths"][CANCEL]["delete"]
    cancel["parameters"][0]["example"] = ABSENT
    cancel["responses"]["400"] = {"description": "not shown"}
    cancel["responses"]["409"]["content"] = {"application/json": {"schema": {}}}
    file = folder / "openapi.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def _orders(address: Address) -> dict[str, str]:
    """Orders of each kind, by its name."""
    provider = connect(States(url=address.states_url))
    (pending,) = setup(provider, State.PENDING, {"count": 1})
    (shipped,) = setup(provider, State.SHIPPED, {"count": 1})
    provider.close()
    return {"PENDING": str(pending), "SHIPPED": str(shipped), "ABSENT": str(ABSENT)}


def _run(words: list[str], folder: Path, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool in `folder`; it ends with 1 where it reports something."""
    return shell(words, variables, allowed=(0, 1), folder=folder)


def ours(address: Address, folder: Path) -> bool:
    """This suite, in standard, with the state control of the reference server."""
    return bool(suite(address, folder, "--seed", "1", allowed=(0, 1, 3))["verdict"] == "non-conformant")


def schemathesis(address: Address, folder: Path) -> bool:
    """Schemathesis with all of its checks and phases, as it comes."""
    program = str(Path(sys.executable).with_name("schemathesis"))
    words = [program, "run", str(_document(folder)), "--url", address.base_url, "--seed", "1", "--no-color"]
    return _run([*words, "--header", f"Authorization: Bearer {address.key}"], folder).returncode == 1


def dredd(address: Address, folder: Path) -> bool:
    """Dredd with a hook that gives each transaction an order of its kind."""
    (folder / "hooks.js").write_text(HOOKS, encoding="utf-8")
    words = ["dredd", str(_document(folder)), address.base_url, "--hookfiles=./hooks.js", "--loglevel=error"]
    words += ["--header", f"Authorization: Bearer {address.key}"]
    return _run(words, folder, _orders(address)).returncode == 1


def specmatic(address: Address, folder: Path) -> bool:
    """Specmatic with an example for each response."""
    orders = _orders(address)
    examples: list[tuple[str, str, str, int, Any]] = [
        ("GET", "/store/orders", address.key, 200, []),
        ("GET", "/store/orders", "wrong", 401, {**ERROR, "status": 401}),
        ("DELETE", f"/store/orders/{orders['PENDING']}", "wrong", 401, {**ERROR, "status": 401}),
        ("DELETE", f"/store/orders/{orders['PENDING']}", address.key, 204, None),
        ("DELETE", f"/store/orders/{orders['SHIPPED']}", address.key, 409, {}),
        ("DELETE", f"/store/orders/{orders['ABSENT']}", address.key, 404, {**ERROR, "status": 404}),
    ]
    (folder / "openapi_examples").mkdir()
    for number, (method, path, key, status, body) in enumerate(examples):
        asked = {"method": method, "path": path, "headers": {"Authorization": f"Bearer {key}"}}
        answered = {"status": status} if body is None else {"status": status, "body": body}
        file = folder / "openapi_examples" / f"{number}.json"
        file.write_text(json.dumps({"http-request": asked, "http-response": answered}), encoding="utf-8")
    words = ["specmatic", "test", str(_document(folder)), f"--testBaseURL={address.base_url}"]
    said = re.search(r"Tests run: \d+, .*Failures: (\d+), .*Errors: (\d+)", _run(words, folder).stdout)
    assert said is not None, "its last lines count the tests; its exit status says nothing"
    return said.groups() != ("0", "0")


#: Tools by name, with the program that each needs on the PATH, if it does not come with the suite.
TOOLS: dict[str, tuple[Judge, str | None]] = {
    "this suite": (ours, None),
    "schemathesis": (schemathesis, None),
    "dredd": (dredd, "dredd"),
    "specmatic": (specmatic, "specmatic"),
}


# --- the work


@dataclass(frozen=True)
class Judged:
    """One service judged by one tool: whether it reported something, in how many requests and seconds."""

    reported: bool
    requests: int
    seconds: float


@contextmanager
def _counting(option: str, name: str) -> Iterator[tuple[Address, list[str]]]:
    """A reference server with a fault or a variant, or neither, in this process, and the methods it was asked with."""
    asked: list[str] = []
    faults = [name] if option == "fault" else []
    variants = [name] if option == "variant" else []
    service = build(KEY.encode(), faults=faults, variants=variants)
    inner = service.respond

    def respond(request: Request) -> Response:
        asked.append(request.method)
        return inner(request)

    service.respond = respond
    with Running(service, states_port=0) as server:
        assert server.states_url is not None
        yield Address(server.base_url, server.states_url, KEY), asked


def _judged(judge: Judge, option: str, name: str) -> Judged:
    with workplace() as folder, _counting(option, name) as (address, asked):
        started = time.perf_counter()
        reported = judge(address, folder)
        return Judged(reported, len(asked), time.perf_counter() - started)


def peers(quick: bool) -> Figure:
    """A fault of every second required requirement, and every eighth variant, given to each tool."""
    required = {row.id for row in catalogue.load().requirements.values() if row.level == "required"}
    telling = {fault.requirement: fault.name for fault in FAULTS.values() if fault.requirement in required}
    faults = list(telling.values())[:: 8 if quick else 2]
    variants = list(VARIANTS)[:: 32 if quick else 8]
    work = [("", ""), *(("fault", name) for name in faults), *(("variant", name) for name in variants)]
    details: dict[str, object] = {"faults": len(faults), "correct variants": len(variants)}
    right = {}
    for tool, (judge, program) in TOOLS.items():
        if program is not None and not shutil.which(program):
            continue
        found = [(option, _judged(judge, option, name)) for option, name in work]
        caught = sum(each.reported for option, each in found if option == "fault")
        wronged = sum(each.reported for option, each in found if option == "variant")
        right[tool] = caught + len(variants) - wronged
        details[tool] = (
            f"{caught} faults found, {wronged} variants wrongly failed"
            f"{', and the reference server itself' if found[0][1].reported else ''}; for each "
            f"{round(statistics.median(each.requests for _, each in found))} requests, "
            f"{statistics.median(each.seconds for _, each in found):.1f} s"
        )
    best = max(count for tool, count in right.items() if tool != "this suite")
    return Figure(
        "faults found and variants left alone by the best peer, over those here",
        round(best / right["this suite"], 3),
        1,
        details,
    )
