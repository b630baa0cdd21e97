"""The built wheel, installed into an empty environment, away from the checkout."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

from packaging.version import Version
from pipelines import oldest_libraries

PROJECT = Path(__file__).parents[1]


def test_wheel_holds_the_two_packages_and_their_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"conformance", "reference_server"}
    data = ("contract/requirements.toml", "contract/openapi.yaml", "suite.ini", "py.typed", "templates/targets.toml")
    data += ("reporting/report.html.jinja", "reporting/results.schema.json")
    assert {f"conformance/{name}" for name in data} <= names
    assert {"reference_server/data/orders.json", "reference_server/py.typed"} <= names


def test_installed_command_runs_the_suite(installed: Path, tmp_path: Path) -> None:
    """With the lowest version of each library that the project says it works with: newer ones are those of all other
    tests."""
    done = subprocess.run(
        [installed / "store-orders-conformance", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "reports" / "reference" / "results.json").read_text(encoding="utf-8"))
    assert {row["status"] for row in results["requirements"]} == {"passed"}
    assert results["warnings"] == []
    assert results["suite"]["version"] != "0+source"
    assert str(PROJECT) not in done.stdout + done.stderr


def test_the_oldest_libraries_are_those_that_are_installed(installed: Path) -> None:
    listed = [installed / "python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    found = {row["name"].lower(): Version(row["version"]) for row in json.loads(done.stdout)}
    oldest = {name: Version(version) for name, version in oldest_libraries().items()}
    assert len(oldest) > 10
    assert {name: found[name] for name in oldest} == oldest


def test_installed_templates_are_written(installed: Path, tmp_path: Path) -> None:
    subprocess.run([installed / "store-orders-conformance", "init"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "targets.toml").read_bytes() == (PROJECT / "fixtures" / "targets.toml").read_bytes()


def test_python_dash_m_works_too(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [installed / "python", "-m", "conformance", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("store-orders-conformance ")
