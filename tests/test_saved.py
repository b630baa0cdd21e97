"""`compare` and `report` on results that were saved."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from conformance.cli import main
from conformance.commands import saved
from conformance.reporting import results


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of a few requirements against the reference."""
    reports = tmp_path_factory.mktemp("reports")
    assert main(["run", "--only", "CANCEL-3,LIST-1", "--seed", "1", "--report-dir", str(reports)]) == 0
    return reports / "reference"


def changed(folder: Path, to: Path, status: str) -> Path:
    """A copy of the result in `folder` in which CANCEL-3 ended with `status`."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for row in results["requirements"]:
        if row["id"] == "CANCEL-3":
            row["status"] = status
    to.write_text(json.dumps(results), encoding="utf-8")
    return to


def test_report_renders_everything_anew(folder: Path, tmp_path: Path) -> None:
    assert saved.report(folder, tmp_path) == 0
    for name in ("junit.xml", "summary.md", "badge.svg", "report.html"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_what_another_run_has_just_put_in_its_place_is_no_obstacle(folder: Path, tmp_path: Path) -> None:
    (tmp_path / ".junit.xml.taken").symlink_to("nowhere")  # listed, and not there
    assert saved.report(folder, tmp_path) == 0


@pytest.mark.parametrize("elsewhere", [True, False], ids=["another folder", "the folder of the result"])
def test_report_without_the_evidence(
    folder: Path, tmp_path: Path, elsewhere: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that looks like evidence is written, and the result goes on naming its own: once that is back beside it,
    an audit takes both."""
    kept = tmp_path / "kept"
    kept.mkdir()
    shutil.copy(folder / "results.json", kept)
    out = tmp_path / "out" if elsewhere else kept
    assert main(["report", str(kept), *(["--report-dir", str(out)] if elsewhere else [])]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"There is no {kept / 'evidence.har'}: the reports show no exchanges, and no evidence.har is written."
    ]
    assert {path.name for path in out.iterdir()} == {path.name for path in folder.iterdir()} - {"evidence.har"}
    assert "made without <code>evidence.har</code>" in (out / "report.html").read_text(encoding="utf-8")
    files = [json.loads((place / "results.json").read_text(encoding="utf-8"))["files"] for place in (folder, out)]
    assert files[0].keys() == files[1].keys()
    assert files[0]["evidence.har"] == files[1]["evidence.har"]
    shutil.copy(folder / "evidence.har", out)
    assert main(["report", str(out)]) == 0
    assert capsys.readouterr().err == ""
    assert main(["audit", str(out)]) == 0


def test_evidence_without_exchanges_is_evidence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run that ended before it had sent anything."""
    written = json.loads((folder / "evidence.har").read_text(encoding="utf-8"))
    written["log"]["entries"] = []
    (tmp_path / "evidence.har").write_text(json.dumps(written), encoding="utf-8")
    content = (tmp_path / "evidence.har").read_bytes()
    stated = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    stated["files"]["evidence.har"] = f"sha256:{hashlib.sha256(content).hexdigest()}"
    stated["digest"] = results.digest(stated)
    (tmp_path / "results.json").write_text(json.dumps(stated), encoding="utf-8")
    assert main(["report", str(tmp_path / "results.json"), "--report-dir", str(tmp_path / "out")]) == 0
    assert capsys.readouterr() == (f"Reports: {tmp_path / 'out'}\n", "")
    assert (tmp_path / "out" / "evidence.har").exists()


@pytest.mark.parametrize("name", ["results.json", "evidence.har"])
def test_what_was_changed_is_not_made_to_look_as_it_was_not(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    shutil.copytree(folder, tmp_path / "run")
    file = tmp_path / "run" / name
    file.write_text(file.read_text(encoding="utf-8").replace("listOrders", "listAll", 1).replace('"GET', '"PUT', 1))
    assert main(["report", str(tmp_path / "run")]) == 2
    assert f"{name} was changed after the run had written it" in capsys.readouterr().err
    assert main(["compare", str(folder), str(tmp_path / "run")]) == 0
    assert f"{name} was changed after the run had written it" in capsys.readouterr().err


def test_compare_says_how_much_less_is_exercised(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    less = changed(folder, tmp_path / "less.json", "excluded")
    assert main(["compare", str(folder), str(less)]) == 0
    assert "no regression; 1 requirement no longer exercised" in capsys.readouterr().out


def test_compare_says_what_got_worse(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = changed(folder, tmp_path / "worse.json", "failed")
    assert main(["compare", str(folder), str(worse)]) == 1
    assert "CANCEL-3" in capsys.readouterr().out
    assert main(["compare", str(worse), str(folder)]) == 0
    assert main(["compare", str(folder), str(folder), "--report-dir", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "comparison.html").exists()


def test_compare_of_three_is_a_matrix(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = changed(folder, tmp_path / "worse.json", "failed")
    assert main(["compare", str(folder), str(worse), str(folder)]) == 0
    assert capsys.readouterr().out.count("CANCEL-3") == 1


def test_one_result_is_no_comparison(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folder)]) == 2
    assert "compare needs two results or more" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    where = ("--report-dir", str(tmp_path / "file" / "below"))
    for words in (("compare", str(folder), str(folder)), ("report", str(folder))):
        assert main([*words, *where]) == 2
        assert f"{tmp_path / 'file' / 'below'}: cannot be written to (" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "no JSON", "{}", '{"schema": "another/1"}'])
def test_unreadable_results_are_usage_errors(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert main(["compare", str(path), str(path)]) == 2
    assert main(["report", str(path)]) == 2
    assert "results.json" in capsys.readouterr().err


def test_a_report_folder_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It holds one for each target."""
    (tmp_path / "staging").mkdir()
    (tmp_path / "staging" / "results.json").write_text("{}", encoding="utf-8")
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert f"; for one target, give {tmp_path / 'staging'}" in capsys.readouterr().err
