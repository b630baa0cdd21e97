"""Other tools on the same work: the same faults and correct variants, judged from the same OpenAPI document.

Schemathesis is the one that installs from Python's registry and reads OpenAPI; Dredd, from npm's, is measured where it
is on the PATH. Both are told the key, as their manuals have it. A tool finds a fault if it reports anything at all (its
exit status), which is generous: the selftest asks of our suite that it names the requirement that the fault breaks.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from benchmarks.figure import Figure, reference, seconds, suite, workplace
from conformance.reference import Address
from reference_server.faults import FAULTS
from reference_server.variants import VARIANTS

#: Judges a service; returns whether it reported something.
Judge = Callable[[Address, Path], bool]
SPECIFICATION = str(files("conformance.contract") / "openapi.yaml")
LIMIT = 300


def _reported(words: list[str], folder: Path) -> bool:
    done = subprocess.run(words, capture_output=True, timeout=LIMIT, cwd=folder, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{words[0]} exited with {done.returncode}: {done.stderr[-500:]!r}{done.stdout[-500:]!r}")
    return done.returncode == 1


def schemathesis(address: Address, folder: Path) -> bool:
    """Schemathesis with all of its checks and phases, as it comes."""
    program = str(Path(sys.executable).with_name("schemathesis"))
    words = [program, "run", SPECIFICATION, "--url", address.base_url]
    return _reported([*words, "--header", f"Authorization: Bearer {address.key}", "--seed", "1", "--no-color"], folder)


def dredd(address: Address, folder: Path) -> bool:
    """Dredd with the examples of the document."""
    words = ["dredd", SPECIFICATION, address.base_url.removesuffix("/v1") + "/v1"]
    return _reported([*words, "--header", f"Authorization: Bearer {address.key}", "--loglevel=error"], folder)


def ours(address: Address, folder: Path) -> bool:
    """This suite, in standard, with the state control of the reference server."""
    return bool(suite(address, folder, "--seed", "1", allowed=(0, 1, 3))["verdict"] != "conformant")


def peers(quick: bool) -> Figure:
    """A fault of every third requirement, and every twelfth variant, given to each tool."""
    faults = list({fault.requirement: fault.name for fault in FAULTS.values()}.values())[:: 8 if quick else 3]
    variants = list(VARIANTS)[:: 32 if quick else 12]
    tools: dict[str, Judge] = {"this suite": ours, "schemathesis": schemathesis}
    if shutil.which("dredd"):
        tools["dredd"] = dredd
    details: dict[str, object] = {"faults": len(faults), "correct variants": len(variants)}
    found = {}
    for tool, judge in tools.items():
        times: list[float] = []
        caught = sum(_judged(judge, "--fault", name, times) for name in faults)
        wronged = sum(_judged(judge, "--variant", name, times) for name in variants)
        found[tool] = caught
        took = round(statistics.median(times), 1)
        details[tool] = f"{caught} faults found, {wronged} variants wrongly failed, {took} s for each"
    best = max(count for tool, count in found.items() if tool != "this suite")
    return Figure(
        "peers",
        "faults found by the best peer, over those found here",
        round(best / found["this suite"], 3),
        1,
        details,
    )


def _judged(judge: Judge, option: str, name: str, times: list[float]) -> bool:
    said: list[bool] = []
    with workplace() as folder, reference(option, name) as address:
        times.append(seconds(lambda: said.append(judge(address, folder))))
    return said[0]


__all__ = ["peers"]
