"""Whole runs against services that misbehave: they end in time, with valid results, and let nothing through."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import jsonschema
import pytest
from authority import Authority
from commands import inherited
from hostile_service import BEHAVIOURS, BROKEN, DEEP, JUDGED, LISTING, HostileService
from markdown_it import MarkdownIt
from raw_service import RawService, always, answer

from conformance.reporting import results
from conformance.runner.reference import ReferenceServer

KEY = "sk-Hostile.Key/42+97"
#: Each kind once, for services that are good for a while, or misbehave at cancels only.
KINDS = (
    "silent", "head-for-ever", "ten-gigabytes", "gzip-bomb", "closes-in-body", "odd-chunk", "invalid-utf-8",
    "redirects", "acts-in-500", "key-everywhere",
)  # fmt: skip
CASES = [
    *(("", name) for name in BEHAVIOURS),
    *(("after9", name) for name in KINDS),
    *(("cancels", name) for name in KINDS),
]
CHECKED = "LIST-1,CANCEL-1,HTTP-2"
PEAK = 500 * 2**20
#: Runs a command, writes down the memory that it took at most, in KiB, and ends as it did.
MEASURED = """
import pathlib, resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
pathlib.Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


@dataclass
class Ran:
    """A run that has ended."""

    folder: Path
    status: int
    seconds: float
    peak: int  # bytes
    out: str
    err: str
    key: str

    def files(self, target: str) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in (self.folder / "reports" / target).iterdir()}

    def results(self, target: str) -> dict[str, Any]:
        return dict(json.loads(self.files(target)["results.json"]))

    @cached_property
    def everything(self) -> str:
        """All that the run printed and wrote."""
        written = [path.read_text(encoding="utf-8") for path in self.folder.glob("reports/*/*")]
        written.append((self.folder / "step-summary.md").read_text(encoding="utf-8"))
        return "\n".join([self.out, self.err, *written])


def run(folder: Path, targets: dict[str, str], key: str, *words: str) -> Ran:
    """A run against `targets`, name to TOML, with the memory that its process took at most."""
    text = "\n".join(f'[targets."{name}"]\napi_key_env = "KEY"\n{described}' for name, described in targets.items())
    folder.mkdir(exist_ok=True)
    (folder / "targets.toml").write_text(text, encoding="utf-8")
    summary = folder / "step-summary.md"
    outside = {**inherited(), "KEY": key, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    command = [sys.executable, "-m", "conformance", "run", *targets, "--budget", "quick", "--timeout", "1", *words]
    # Started by a small process: what this one takes counts as the memory of whatever it starts itself.
    command = [sys.executable, "-c", MEASURED, str(folder / "peak"), *command]
    started = time.monotonic()
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        status = subprocess.run(command, cwd=folder, env=outside, stdout=out, stderr=err, check=False).returncode
    peak = int((folder / "peak").read_text(encoding="ascii")) * 1024
    printed = [(folder / name).read_text(encoding="utf-8") for name in ("out", "err")]
    return Ran(folder, status, time.monotonic() - started, peak, printed[0], printed[1], key)


@pytest.fixture(scope="module")
def hostile(reference: ReferenceServer) -> Iterator[HostileService]:
    service = HostileService(reference.address.base_url)
    yield service
    service.stop()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """One run for each way in which services turn hostile, all services of that way its targets. Each has a store of
    its own, which some checks empty."""

    def judged(when: str) -> Ran:
        with contextlib.ExitStack() as opened:
            reference = ReferenceServer(())
            opened.callback(reference.stop)
            hostile = HostileService(reference.address.base_url)
            opened.callback(hostile.stop)
            states = f'.states]\nurl = "{reference.address.states_url}"\n'
            targets = {
                name: f'base_url = "{hostile.base_url(name, when)}"\n[targets."{name}"{states}'
                for way, name in CASES
                if way == when
            }
            key = reference.address.key
            ended = run(folder / (when or "first"), targets, key, "--only", CHECKED, "--max-body", "1")
        assert ended.status == 1, ended.err  # some do not conform; the others are incomplete
        return ended

    folder = tmp_path_factory.mktemp("hostile")
    ways = ("", "after9", "cancels")
    with ThreadPoolExecutor(len(ways)) as side_by_side:  # they mostly wait
        return dict(zip(ways, side_by_side.map(judged, ways), strict=True))


def said(result: dict[str, Any]) -> str:
    """All that the checks of a result say."""
    return "\n".join(check["message"] for row in result["requirements"] for check in row["checks"])


def failed(result: dict[str, Any]) -> set[str]:
    return {row["id"] for row in result["requirements"] if row["status"] == "failed"}


@pytest.mark.parametrize(("when", "name"), CASES)
def test_each_comes_to_a_clear_outcome(ran: dict[str, Ran], when: str, name: str) -> None:
    result = ran[when].results(name)
    jsonschema.Draft202012Validator(results.schema()).validate(result)
    assert result["verdict"] in ("non-conformant", "incomplete")
    comes_to = BEHAVIOURS[name].comes_to
    assert comes_to in said(result)
    if comes_to == BROKEN:
        assert failed(result) == {"HTTP-2"}
    elif comes_to == DEEP:
        assert failed(result) == {"CANCEL-1"}  # to a cancel 200 is wrong, whatever else it brings
    elif comes_to != JUDGED:
        assert failed(result) == set()
    assert "the suite itself failed" not in said(result)
    assert result["warnings"] == []


@pytest.mark.parametrize("when", ["", "after9", "cancels"])
def test_a_run_ends_in_time_and_within_memory(ran: dict[str, Ran], when: str) -> None:
    assert "Traceback" not in ran[when].everything
    assert ran[when].peak < PEAK
    count = sum(way == when for way, _ in CASES)
    # Most of it is time-outs: a second each, four before it stops asking. The two minutes are for a busy machine.
    assert ran[when].seconds < count * 10 + 120


@pytest.mark.parametrize("when", ["", "after9", "cancels"])
def test_the_key_is_nowhere(ran: dict[str, Ran], when: str) -> None:
    key = ran[when].key
    everything = ran[when].everything
    for secret in (key, quote(key, safe=""), key[:-1], key[1:], base64.b64encode(key.encode()).decode().rstrip("=")):
        assert secret not in everything
    assert key[:8] not in everything
    assert key[-8:].lower() not in everything.lower()


# --- nothing that a service sends acts on whoever reads of it


class Elements(HTMLParser):
    """The scripts, images and handlers of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.acting: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        handlers = [name for name, _ in attrs if name.startswith("on")]
        if tag in ("img", "iframe", "object", "embed", "link", "base") or handlers:
            self.acting.append(tag)

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and "alert(1)" in data:
            self.acting.append("script")


@pytest.mark.parametrize("when", ["", "after9", "cancels"])
def test_nothing_acts_on_a_terminal_or_a_log(ran: dict[str, Ran], when: str) -> None:
    for text in (ran[when].out, ran[when].err):
        acting = {char for char in text if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")} - {"\n"}
        assert acting == set()
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        assert all(re.match(r"::(error|warning) title=[A-Za-z0-9 %.,()-]*::", line) for line in commands)
    assert any(line.startswith("::") for line in ran[when].out.splitlines())


@pytest.mark.parametrize(("when", "name"), [case for case in CASES if case[1].startswith(("acts", "key", "line"))])
def test_nothing_acts_on_readers_of_reports(ran: dict[str, Ran], when: str, name: str) -> None:
    files = ran[when].files(name)
    assert Elements(files["report.html"]).acting == []
    for file in ("junit.xml", "badge.svg"):
        elements = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(files[file].encode()).iter()}
        assert not elements & {"script", "img", "a", "foreignObject"}
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = [inner for outer in markdown.parse(files["summary.md"]) for inner in (outer, *(outer.children or ()))]
    assert not {token.type for token in tokens} & {"image"}
    assert not any("owned" in token.content for token in tokens if token.type.startswith("html"))
    assert not any("owned" in token.content for token in tokens if token.tag in ("h1", "h2", "a"))
    for file in ("results.json", "evidence.har"):
        assert files[file].isascii()
        json.loads(files[file])
    for text in files.values():
        assert not {char for char in text if unicodedata.category(char) in ("Cc", "Cs")} - {"\n", "\t"}


# --- default limits


def test_memory_under_the_limits_that_are_the_default(
    reference: ReferenceServer, hostile: HostileService, tmp_path: Path
) -> None:
    """Of services that send as much as they can, in answers of any kind."""
    names = ("gzip-bomb", "until-closed-for-ever", "long-string", "wide-string", "many-values", "long-numbers")
    targets = {name: f'base_url = "{hostile.base_url(name)}"\n' for name in names}
    ended = run(tmp_path, targets, reference.address.key, "--only", "LIST-1,HTTP-2", "--timeout", "5")
    assert ended.status in (1, 3)
    assert ended.peak < PEAK
    for name in ("gzip-bomb", "until-closed-for-ever", "long-string"):
        assert "is larger than 20 MB (--max-body)" in said(ended.results(name))


# --- no connection at all


def test_no_connection(certificate: Path, tmp_path: Path) -> None:
    """Refused, no address, no TLS that can be trusted: said once, within seconds, and nothing else is sent."""
    with contextlib.ExitStack() as opened:
        said_of = {"refuses": "Connection refused", "no-address": "no-such-host.invalid"}
        targets = {"no-address": 'base_url = "https://no-such-host.invalid/v1"\n'}
        with socket.create_server(("127.0.0.1", 0)) as listener:
            targets["refuses"] = f'base_url = "http://127.0.0.1:{listener.getsockname()[1]}/v1"\n'
        served = []
        authority = Authority(tmp_path)
        for name, file, words in (
            ("other-host", authority.certify("other", "other.example"), "certificate is not valid for '127.0.0.1'"),
            ("expired", authority.certify("expired", "127.0.0.1", days=-1), "certificate has expired"),
            ("self-signed", certificate, "self-signed certificate"),
        ):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file)
            service = RawService(always(answer("200 OK", LISTING)), context)
            opened.callback(service.stop)
            served.append(service)
            targets[name] = f'base_url = "{service.base_url}"\nca_bundle = "ca.pem"\n'
            said_of[name] = words
        ended = run(tmp_path, targets, KEY)
        assert ended.status == 3
        for name, words in said_of.items():
            assert words in said(ended.results(name)), name
            assert "cannot be reached" in said(ended.results(name))
        assert [service.requests for service in served] == [[], [], []]
    assert KEY not in ended.everything
    assert "Traceback" not in ended.everything


# --- providers that misbehave, of a service that is correct


def handing_out(*ids: int) -> bytes:
    return answer("200 OK", json.dumps({"orderIds": ids}).encode())


PROVIDERS = {
    "fails": (answer("500 Oops", b"the store is down"), "the state provider answered 500"),
    "page": (answer("200 OK", b"<html>", media="text/html"), "with no JSON"),
    "twice": (handing_out(101, 101), "handed out the same order twice"),
    "other-number": (handing_out(*range(5000, 5050)), "orders and handed out 50"),
    "none": (handing_out(), "handed out 0"),
    "hangs-up": (b"", "gave no answer to"),
}
COMMANDS = {
    "exits": ('["sh", "-c", "echo no store >&2; exit 1"]', "exited with 1"),
    "no-interpreter": ('["./no_interpreter"]', "cannot be started"),
    "not-listed": ('["./not_listed"]', "handed out by the state provider, is not in the listing"),
}
NOT_LISTED = """\
#!/usr/bin/env python3
import json, sys
params = json.load(sys.stdin)["params"]
print(json.dumps({"orderIds": params.get("ids") or [880000 + n for n in range(params.get("count", 0))]}))
"""


def test_providers_that_misbehave(reference: ReferenceServer, tmp_path: Path) -> None:
    """Each is named, its answer quoted, and nothing is held against the service."""
    (tmp_path / "not_listed").write_text(NOT_LISTED, encoding="utf-8")
    (tmp_path / "no_interpreter").write_text("exit 0\n", encoding="utf-8")
    for name in ("not_listed", "no_interpreter"):
        (tmp_path / name).chmod(0o755)
    base_url = f'base_url = "{reference.address.base_url}"\n'
    targets = {"static": f'{base_url}[targets."static".states]\npending = [880001, 880002]\nshipped = [880003]\n'}
    for name, (words, _) in COMMANDS.items():
        targets[name] = f'{base_url}[targets."{name}".states]\ncommand = {words}\n'
    with contextlib.ExitStack() as opened:
        for name, (reply, _) in PROVIDERS.items():
            service = RawService(always(reply))
            opened.callback(service.stop)
            targets[name] = f'{base_url}[targets."{name}".states]\nurl = "http://127.0.0.1:{service.port}/_states"\n'
        only = ("--only", "CANCEL-1,CANCEL-5,LIST-1,LIST-5", "--timeout", "5")
        ended = run(tmp_path, targets, reference.address.key, *only)
    assert ended.status == 3
    for name in targets:
        result = ended.results(name)
        assert result["verdict"] == "incomplete"
        assert failed(result) == set()
        by_id = {row["id"]: row["status"] for row in result["requirements"]}
        assert (by_id["LIST-1"], by_id["CANCEL-1"]) == ("passed", "inconclusive")
        used_up = (b"", "of the static lists, whose ids serve one run each, is not in the listing")
        words = {**PROVIDERS, **COMMANDS, "static": used_up}[name][1]
        assert words in said(result), name
        suspected = [text for text in result["warnings"] if "does the provider place orders in the store" in text]
        assert len(suspected) == (name in ("not-listed", "other-number")), name
    assert "Traceback" not in ended.everything
