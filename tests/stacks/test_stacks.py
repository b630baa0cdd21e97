"""The suite against services that were written from the specification alone: FastAPI on uvicorn, and Node's own http.

Every correct form must come out conformant. Every wrong form must fail the requirement that its fault breaks, and of
its family no other; that nothing else fails is for the selftest to show.
Needs `node` on the PATH, and fastapi and uvicorn beside the suite. A run is mostly waiting, so two are always under
way: the next forms are judged while a test looks at its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENTLY, command
from forms import CORRECT, WRONG, Correct, Wrong
from programs import program

from conformance.contract import catalogue

HERE = Path(__file__).parent
KEY_VARIABLE = "STORE_KEY"
Form = Correct | Wrong
Judgement = tuple[int, dict[str, Any], str, Path]


def server(vendor: str) -> list[str]:
    """The command that starts a vendor's server."""
    if vendor == "fastapi":
        return [sys.executable, str(HERE / "fastapi_vendor.py")]
    return [program("node"), str(HERE / "node_vendor.mjs")]


@contextmanager
def serving(vendor: str, settings: dict[str, Any], key: str) -> Iterator[tuple[str, str]]:
    """A vendor's server at work: base URL and state provider URL."""
    process = subprocess.Popen(
        [*server(vendor), json.dumps(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, KEY_VARIABLE: key},
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=errors.extend, args=(process.stderr,))
    reader.start()
    try:
        line = process.stdout.readline()
        if not line:
            process.wait()
            reader.join()
            pytest.fail(f"the {vendor} server did not start:\n{''.join(errors)}")
        ports = json.loads(line)
        base = settings.get("base", "")
        yield f"http://127.0.0.1:{ports['port']}{base}/v1", f"http://127.0.0.1:{ports['states_port']}/_states"
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


def selected(form: Form) -> str:
    """The requirements to judge a form by: all of them, or the families that a fault breaks."""
    rows = catalogue.load().requirements if isinstance(form, Correct) else (form.requirement, *form.also)
    return ",".join({row.partition("-")[0] for row in rows})


def judge(form: Form, folder: Path) -> Judgement:
    """Exit status, results, console output and folder of a run against a form."""
    settings = form.settings if isinstance(form, Correct) else {"fault": form.fault}
    with serving(form.vendor, settings, form.key) as (base_url, states_url):
        run = command(
            folder,
            *("run", "-n", "1", "--budget", "quick", "--only", selected(form), "--report-dir", str(folder), *PATIENTLY),
            *("--base-url", base_url, "--api-key-env", KEY_VARIABLE, "--states-url", states_url),
            **{KEY_VARIABLE: form.key},
        )
    written = list(folder.glob("*/results.json"))
    assert written, f"exit {run.status} without results.json:\n{run.said}"
    return run.status, json.loads(written[0].read_text()), run.said, folder


@pytest.fixture(scope="module")
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Form], Judgement]]:
    """Judges a form, unless that has begun."""
    chosen = " ".join(item.name for item in request.session.items)
    every: list[Form] = [*CORRECT, *WRONG]
    forms = [form for form in every if f"[{form.name}]" in chosen]
    with ThreadPoolExecutor(2) as pool:
        begun: dict[str, Future[Judgement]] = {}

        def begin(form: Form) -> Future[Judgement]:
            if form.name not in begun:
                begun[form.name] = pool.submit(judge, form, tmp_path_factory.mktemp("run"))
            return begun[form.name]

        def result(form: Form) -> Judgement:
            future = begin(form)
            for following in forms[forms.index(form) + 1 :][:1]:
                begin(following)
            return future.result()

        yield result


def with_status(results: dict[str, Any], status: str, level: str) -> set[str]:
    """The ids of the requirements of a level that ended in a status."""
    return {row["id"] for row in results["requirements"] if (row["status"], row["level"]) == (status, level)}


def assert_secret(key: str, folder: Path, console: str) -> None:
    """The key, and the key less one character at either end, are in no file and not on the console."""
    texts = {path.name: path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}
    for where, text in {**texts, "the console": console}.items():
        for secret in (key, key[1:], key[:-1]):
            assert secret not in text, f"{where} holds the key, or nearly"


@pytest.mark.parametrize("form", CORRECT, ids=lambda form: form.name)
def test_correct_form_is_conformant(form: Correct, judged: Callable[[Form], Judgement]) -> None:
    status, results, console, folder = judged(form)
    assert with_status(results, "failed", "required") == set(), console
    assert with_status(results, "inconclusive", "required") == set(), console
    assert with_status(results, "excluded", "required") == set(form.excluded)
    assert with_status(results, "failed", "recommended") == set(form.recommended), console
    assert results["verdict"] == "conformant"
    assert status == 0
    assert_secret(form.key, folder, console)


@pytest.mark.parametrize("form", WRONG, ids=lambda form: form.name)
def test_wrong_form_fails_its_requirement(form: Wrong, judged: Callable[[Form], Judgement]) -> None:
    status, results, console, folder = judged(form)
    required = with_status(results, "failed", "required")
    if form.required:
        assert form.requirement in required, console
        assert required <= {form.requirement, *form.also}, console
        assert results["verdict"] == "non-conformant"
        assert status == 1
    else:
        assert required == set(), console
        assert with_status(results, "failed", "recommended") == {form.requirement}, console
        assert status == 0
    assert_secret(form.key, folder, console)


def test_every_family_has_a_wrong_form() -> None:
    families = {form.requirement.partition("-")[0] for form in WRONG}
    assert families == {"AUTH", "LIST", "CANCEL", "ERR", "HTTP", "PET"}
