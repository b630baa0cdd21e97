"""What was changed after a run is not accepted: as an editor leaves it, and with every digest made to fit."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from audited import Tampering, Written, with_body

from conformance.checks import credentials
from conformance.cli import main
from conformance.runner.reference import ReferenceServer

#: A shipped order is removed behind its 409: CANCEL-4 fails, and CANCEL-3 beside it does not.
FAULT = "cancels-refused-orders"
CHECK = "cancelling.refused_order_stays_as_it_was"
#: The first thing that this check sends is a listing without a key.
REFUSED = "errors.refused_listing_is_an_error"
ONLY = "CANCEL-3,CANCEL-4,CANCEL-5,AUTH-2,LIST-1,ERR-1"


def ran(folder: Path, seed: int, *faults: str) -> Path:
    """The folder of a run on the reference with these faults."""
    words = [word for fault in faults for word in ("--fault", fault)]
    server = ReferenceServer(words)
    os.environ["HARNESS_AUDIT_KEY"] = server.address.key
    where = ["--base-url", server.address.base_url, "--states-url", server.address.states_url]
    further = ["--only", ONLY, "--budget", "quick", "--seed", str(seed), "--report-dir", str(folder)]
    try:
        main(["run", *where, "--api-key-env", "HARNESS_AUDIT_KEY", *further])
    finally:
        server.stop()
        del os.environ["HARNESS_AUDIT_KEY"]
    return folder / "target"


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which CANCEL-4 failed."""
    return ran(tmp_path_factory.mktemp("failing"), 7, FAULT)


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with another seed, in which nothing failed."""
    return ran(tmp_path_factory.mktemp("passing"), 8)


@pytest.fixture
def written(failing: Path, tmp_path: Path) -> Written:
    """A copy of the failing run."""
    return Written.copy(failing, tmp_path / "handed-in")


def test_both_are_accepted_as_they_are(failing: Path, passing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, verdict in ((failing, "non-conformant"), (passing, "conformant")):
        assert json.loads((folder / "results.json").read_text())["verdict"] == verdict
        assert main(["audit", str(folder)]) == 0, capsys.readouterr().out
        assert "Borne out" in capsys.readouterr().out


# --- what is done to the result


def a_status(written: Written) -> None:
    written.row("CANCEL-4")["status"] = "passed"


def the_failure_everywhere(written: Written) -> None:
    """The requirement passes, all of its checks pass, and verdict and counts agree with that."""
    row = written.row("CANCEL-4")
    row["status"] = "passed"
    for check in row["checks"]:
        check["status"] = "passed"
        check["message"] = ""
        check.pop("failure", None)
    written.results["verdict"] = "conformant"
    written.results["counts"]["required"]["failed"] -= 1
    written.results["counts"]["required"]["passed"] += 1


def a_check(written: Written) -> None:
    row = written.row("CANCEL-4")
    row["checks"] = [check for check in row["checks"] if check["id"] != CHECK]


def a_check_with_all_traces(written: Written) -> None:
    """Check, exchanges, messages, and its place in the order of the run."""
    for row in written.results["requirements"]:
        row["checks"] = [check for check in row["checks"] if check["id"] != CHECK]
    made = written.results["circumstances"]
    made["order"] = [[check for check in checks if check != CHECK] for checks in made["order"]]
    log = written.archive["log"]
    log["_messages"] = [message for message in log["_messages"] if message["check"] != CHECK]
    log["entries"] = [entry for entry in log["entries"] if entry["_check"] != CHECK]
    written.renumber()


def the_selection(written: Written) -> None:
    """The requirement that failed is said not to have been selected."""
    made = written.results["circumstances"]
    made["selected"].remove("CANCEL-4")
    row = written.row("CANCEL-4")
    row["status"] = "excluded"
    nothing = {"id": "none", "status": "excluded", "message": "not selected", "seconds": 0.0, "exchanges": []}
    row["checks"] = [nothing]
    written.results["verdict"] = "conformant"
    written.results["counts"]["required"]["failed"] -= 1
    written.results["counts"]["required"]["excluded"] += 1


def a_failure_to_inconclusive(written: Written) -> None:
    for check in written.row("CANCEL-4")["checks"]:
        if check["status"] == "failed":
            check.update(status="inconclusive", message="not finished: the run was cut short")
            check.pop("failure")
    written.row("CANCEL-4")["status"] = "inconclusive"
    written.results["run"]["complete"] = False
    written.results["verdict"] = "incomplete"


def the_verdict(written: Written) -> None:
    written.results["verdict"] = "conformant"


def the_coverage(written: Written) -> None:
    written.results["counts"]["required"]["passed"] += 3


def the_requests(written: Written) -> None:
    written.results["run"]["requests"] += 100


def the_seed(written: Written) -> None:
    written.results["run"]["seed"] += 1


def the_mode(written: Written) -> None:
    written.results["target"]["mode"] = "guarded"


def the_address(written: Written) -> None:
    written.results["target"]["base_url"] = "https://orders.example.com/v1"


def an_observation(written: Written) -> None:
    seen = next(seen for seen in written.results["observations"] if seen["topic"] == "409 body")
    seen["value"] = "none"


def a_message(written: Written) -> None:
    written.row("CANCEL-4")["checks"][0]["message"] = "nothing much"


def the_level(written: Written) -> None:
    written.row("CANCEL-4")["level"] = "recommended"


def the_key(written: Written) -> None:
    written.results["circumstances"]["wrong_keys"].remove("the key and one character more")


# --- what is done to the evidence


def an_exchange(written: Written) -> None:
    written.archive["log"]["entries"].remove(written.of(CHECK)[1])


def an_exchange_and_the_numbers(written: Written) -> None:
    written.archive["log"]["entries"].remove(written.of(REFUSED)[0])
    written.renumber()


def one_exchange_more(written: Written) -> None:
    entry = copy.deepcopy(written.entries[-1])
    entry["_number"] += 1
    entry["response"]["content"].pop("_body_of", None)
    written.archive["log"]["entries"].append(entry)
    written.results["run"]["requests"] += 1


def the_order(written: Written) -> None:
    one, other = written.of("cancelling.absent_order_is_not_found")[2:4]
    one["_number"], other["_number"] = other["_number"], one["_number"]
    written.archive["log"]["entries"].sort(key=lambda entry: entry["_number"])


def a_response_status(written: Written) -> None:
    written.of(REFUSED)[0]["response"].update(status=200, statusText="OK")


def a_response_body(written: Written) -> None:
    entry = written.of(REFUSED)[0]
    with_body(entry, entry["response"]["content"]["text"].replace('"status":401', '"status":403'))


def a_response_header(written: Written) -> None:
    entry = written.of(REFUSED)[0]
    for header in entry["response"]["headers"]:
        if header["name"] == "Content-Type":
            header["value"] = entry["response"]["content"]["mimeType"] = "text/html"


def a_credential(written: Written) -> None:
    entry = written.of(REFUSED)[0]
    entry["_credential"] = "the key"


def a_finding(written: Written) -> None:
    written.of(REFUSED)[0]["_findings"]["ERR-1"] = "is no good"


def an_order_handed_out(written: Written) -> None:
    message = next(message for message in written.archive["log"]["_messages"] if message["check"] == CHECK)
    message["answer"]["orderIds"][0] += 1


def the_answer_that_failed_and_its_status(written: Written) -> None:
    """In both files, as somebody would who reads the report but not the checks: the order is in the listing again, and
    the requirement passes. Its other checks, and what this one goes on to ask, say otherwise."""
    listing = written.of(CHECK)[0]["response"]["content"]["text"]
    entry = written.entries[written.check(CHECK)["failure"]["exchange"]]
    assert entry["response"]["status"] == 409
    for entry in written.of(CHECK):
        if entry["_operation"] == "listOrders":
            with_body(entry, listing)
    the_failure_everywhere(written)


def a_refusal_made_up(written: Written) -> None:
    """A service that passes made to fail: the evidence has only one of the answers so."""
    entry = written.of("cancelling.shipped_order_is_refused")[-1]
    entry["response"].update(status=404, statusText="Not Found")
    row = written.row("CANCEL-3")
    row["status"] = "failed"


RESULT: list[Tampering] = [
    a_status, the_failure_everywhere, a_check, a_check_with_all_traces, the_selection, a_failure_to_inconclusive,
    the_verdict, the_coverage, the_requests, the_seed, the_mode, the_address, an_observation, a_message, the_level,
    the_key,
]  # fmt: skip
EVIDENCE: list[Tampering] = [
    an_exchange, an_exchange_and_the_numbers, one_exchange_more, the_order, a_response_status, a_response_body,
    a_response_header, a_credential, a_finding, an_order_handed_out, the_answer_that_failed_and_its_status,
    a_refusal_made_up,
]  # fmt: skip


@pytest.mark.parametrize("change", [*RESULT, *EVIDENCE], ids=lambda change: change.__name__)
def test_rejected_however_well_it_fits(change: Tampering, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    change(written)
    written.write_sealed()
    capsys.readouterr()
    assert main(["audit", str(written.folder)]) == 1
    said = capsys.readouterr().out
    assert "Not borne out" in said
    assert "digest" not in said, "the checks find it, not the digests alone"
    assert "suite itself failed" not in said


@pytest.mark.parametrize("change", [a_status, an_exchange], ids=lambda change: change.__name__)
def test_an_editor_is_found_by_the_digests(
    change: Tampering, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    change(written)
    written.write()
    assert main(["audit", str(written.folder)]) == 1
    assert "digest" in capsys.readouterr().out


@pytest.mark.parametrize(
    "place", [("run", "command"), ("run", "started"), ("circumstances", "key_variable"), ("suite", "interface_version")]
)
def test_what_no_check_comes_to_is_found_by_the_digest(
    place: tuple[str, str], written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    part, name = place
    told: Any = written.results[part][name]
    written.results[part][name] = told.replace(told[:4], "2001") if name == "started" else told
    written.results[part] = {**written.results[part], "further": True}
    written.write()
    assert main(["audit", str(written.folder)]) == 1
    assert "results.json was changed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["report.html", "junit.xml", "summary.md", "badge.svg"])
def test_another_report_beside_it_is_found(name: str, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    path = written.folder / name
    path.write_text(path.read_text(encoding="utf-8").replace("non-conformant", "conformant"), encoding="utf-8")
    assert main(["audit", str(written.folder)]) == 1
    assert name in capsys.readouterr().out


def test_reports_that_were_not_handed_in_are_not_missed(written: Written) -> None:
    for name in ("report.html", "junit.xml", "summary.md", "badge.svg"):
        (written.folder / name).unlink()
    assert main(["audit", str(written.folder)]) == 0


def test_the_evidence_of_another_run_is_none(passing: Path, written: Written) -> None:
    other = (passing / "evidence.har").read_text(encoding="utf-8")
    (written.folder / "evidence.har").write_text(other, encoding="utf-8")
    assert main(["audit", str(written.folder)]) == 1
    written.archive = json.loads(other)
    written.write_sealed()
    assert main(["audit", str(written.folder)]) == 1


def a_body_and_not_its_digest(written: Written) -> None:
    content = written.of(REFUSED)[0]["response"]["content"]
    content["text"] = content["text"].replace("401", "403")


def only_the_beginning_of_a_body(written: Written) -> None:
    written.of(REFUSED)[0]["_body_cut"] = True


def a_moment(written: Written) -> None:
    written.of(REFUSED)[0]["_started"] -= 3600


def a_run_that_ended_in_a_leap_second(written: Written) -> None:
    written.results["run"]["finished"] = "2016-12-31T23:59:60Z"


def a_run_of_long_ago(written: Written) -> None:
    written.results["run"]["started"] = "0001-01-01T00:00:00Z"


def a_check_in_two_processes(written: Written) -> None:
    order = written.results["circumstances"]["order"]
    order.append(order[0][:1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (a_body_and_not_its_digest, r"the body of exchange \d+ is not the one that came"),
        (only_the_beginning_of_a_body, r"the evidence has only the beginning of 1 answer \(exchanges \d+…\)"),
        (a_moment, r"exchange \d+ was sent .* s after the start of the run, which is not within it"),
        (a_run_that_ended_in_a_leap_second, r"run, seconds: .* s, while .* to 2016-12-31T23:59:60Z is -\d+\.\d{3} s"),
        (a_run_of_long_ago, r"run, seconds: .* s, while 0001-01-01T00:00:00Z to .* is \d+\.\d{3} s"),
        (a_check_in_two_processes, "a check ran in more than one process"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_record_that_cannot_be_one(
    change: Tampering, words: str, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    change(written)
    written.write_sealed()
    assert main(["audit", str(written.folder)]) == 1
    assert re.search(words, said := capsys.readouterr().out), said
    assert "suite itself failed" not in said


def test_a_waiver_that_had_expired_is_none(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    waiver = {"reason": "known", "expires": "2020-01-01"}
    written.results["circumstances"]["waivers"] = [{"requirement": "CANCEL-4", **waiver}]
    written.row("CANCEL-4").update(status="waived", waiver=waiver)
    written.results["verdict"] = "conformant"
    written.results["counts"]["required"]["failed"] -= 1
    written.results["counts"]["required"]["waived"] += 1
    written.write_sealed()
    assert main(["audit", str(written.folder)]) == 1
    assert "expired" in capsys.readouterr().out


@pytest.mark.parametrize("half", ["results.json", "evidence.har"])
def test_a_truncated_file_is_unreadable(half: str, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    path = written.folder / half
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert main(["audit", str(written.folder)]) == 2
    assert half in capsys.readouterr().err


def of_the_first(**changed: Any) -> Tampering:
    return lambda written: written.entries[0].update(changed)


MALFORMED: dict[str, Tampering] = {
    "a body that has no bytes": lambda written: with_text(written.entries[0], "\ud83d"),
    "seconds that are no number": of_the_first(_seconds=float("nan")),
    "a moment without end": of_the_first(_started=float("inf")),
    "a wait without end": of_the_first(_waited=float("inf")),
    "a message that is none": lambda written: written.archive["log"].update(_messages=[1]),
    "messages that are none": lambda written: written.archive["log"].update(_messages={"a": {}}),
    "an answer that is none": lambda written: written.archive["log"]["_messages"][0].update(answer=[1]),
    "ids that are none": lambda written: written.archive["log"]["_messages"][0].update(params={"ids": 1}),
    "no HAR": lambda written: written.archive.update(log=[]),
}


def with_text(entry: dict[str, Any], text: str) -> None:
    entry["response"]["content"]["text"] = text


@pytest.mark.parametrize("tampering", MALFORMED.values(), ids=MALFORMED)
def test_malformed_evidence_is_unreadable(
    tampering: Tampering, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    tampering(written)
    written.write()
    capsys.readouterr()
    assert main(["audit", str(written.folder)]) == 2
    assert "evidence.har: not a HAR file: " in capsys.readouterr().err


@pytest.mark.parametrize("base_url", ["http://[::1/v1", "http://127.0.0.1:99999/v1", "http://127.0.0.1:x/v1"])
def test_a_malformed_address_is_unreadable(base_url: str, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    written.results["target"]["base_url"] = base_url
    written.write()
    capsys.readouterr()
    assert main(["audit", str(written.folder)]) == 2
    assert f"results.json: the base URL {base_url} is none: " in capsys.readouterr().err


def test_a_message_of_which_nothing_came_is_a_difference(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    for message in written.archive["log"]["_messages"]:
        message.pop("answer", None)
    written.write_sealed()
    capsys.readouterr()
    assert main(["audit", str(written.folder)]) == 1
    assert "Not borne out by the evidence" in capsys.readouterr().out


def test_what_is_counted_is_what_is_told(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """One exchange that is missing makes many lines: it is said what the number counts, and how many are here."""
    del written.archive["log"]["entries"][3]
    written.write()
    capsys.readouterr()
    assert main(["audit", str(written.folder)]) == 1
    head, *lines = capsys.readouterr().out.splitlines()[1:]
    found = re.fullmatch(r"Not borne out by the evidence: ([0-9,]+) differences between .* \(the first 20 of .*", head)
    assert found
    total = int(found[1].replace(",", ""))
    assert total > 100
    assert len(lines) == 20 + 1
    assert lines[-1] == f"- and {total - 20:,} more differences"


@pytest.mark.parametrize("missing", ["results.json", "evidence.har"])
def test_both_files_are_needed(missing: str, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    (written.folder / missing).unlink()
    assert main(["audit", str(written.folder)]) == 2
    assert missing in capsys.readouterr().err


def test_another_version_of_the_suite_is_asked_for(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    for place, value in (
        (written.results["suite"], "0.0.9"),
        (written.archive["log"]["creator"], "0.0.9"),
    ):
        before, place["version"] = place["version"], value
        written.write()
        assert main(["audit", str(written.folder)]) == 2
        assert "audit it with store-orders-conformance 0.0.9" in capsys.readouterr().err
        place["version"] = "\x1b[31m0"
        written.write()
        assert main(["audit", str(written.folder)]) == 2
        assert r"audit it with store-orders-conformance \x1b[31m0" in capsys.readouterr().err
        place["version"] = before


def test_so_are_other_requirements_and_other_tools(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    written.results["circumstances"]["tools"]["hypothesis"] = "5.0.0"
    written.write()
    assert main(["audit", str(written.folder)]) == 2
    assert "pip install hypothesis==5.0.0" in capsys.readouterr().err
    written.results["circumstances"]["tools"]["hypothesis"] = "5; reboot"
    written.write()
    assert main(["audit", str(written.folder)]) == 2
    assert "pip install 'hypothesis==5; reboot'," in capsys.readouterr().err
    written.results["suite"]["catalogue"] = "sha256:" + "0" * 64
    written.write()
    assert main(["audit", str(written.folder)]) == 2
    assert "other requirements" in capsys.readouterr().err


def test_a_result_without_circumstances_cannot_be_audited(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    del written.results["circumstances"]
    written.write()
    assert main(["audit", str(written.folder)]) == 2
    assert "circumstances" in capsys.readouterr().err


def test_a_run_with_a_very_long_key_cannot_be_audited(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """Which of its requests were too long for the service hangs on the length of the key to the character."""
    assert credentials.query_kinds("x" * 3049)[-1] != credentials.LONG_KEY
    kinds = credentials.query_kinds("x" * 3050)
    assert kinds[-1] == credentials.LONG_KEY
    written.results["circumstances"]["wrong_keys"] += kinds
    written.write_sealed()
    assert main(["audit", str(written.folder)]) == 2
    assert "with a shorter key" in capsys.readouterr().err
