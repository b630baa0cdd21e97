"""The corpus under fixtures/bodies: each body is judged as its index says, and breaks nothing besides."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from built import LIST, answered, broken, cancel

from conformance.contract.catalogue import load
from conformance.transport.request import NOBODY, Request

BODIES = Path(__file__).parents[2] / "fixtures" / "bodies"
ENTRIES: list[dict[str, Any]] = tomllib.loads((BODIES / "index.toml").read_text(encoding="utf-8"))["body"]
KEYS = {"file", "is", "status", "requirement", "right", "also", "media_type", "what"}
ASKED: dict[int, Request] = {
    200: LIST,
    401: Request("GET", "/store/orders", NOBODY),
    404: cancel(1),
    409: cancel(2),
}


def test_the_index_is_complete() -> None:
    files = [entry["file"] for entry in ENTRIES]
    assert sorted(files) == sorted(path.name for path in BODIES.iterdir() if path.name != "index.toml")
    assert len(set(files)) == len(files) >= 50
    for entry in ENTRIES:
        assert not entry.keys() - KEYS, entry["file"]
        assert not (KEYS - {"also", "media_type"}) - entry.keys(), entry["file"]
        assert (entry["is"] == "listing") is (entry["status"] == 200), entry["file"]
        assert {entry["requirement"], *entry.get("also", [])} <= load().requirements.keys()


def test_each_requirement_has_bodies_right_and_wrong() -> None:
    seen: dict[str, set[bool]] = {}
    for entry in ENTRIES:
        seen.setdefault(entry["requirement"], set()).add(entry["right"])
    assert {requirement for requirement, sides in seen.items() if sides != {True, False}} == set()
    assert seen.keys() == {
        "LIST-1",
        "LIST-2",
        "LIST-4",
        "LIST-10",
        "LIST-11",
        "ERR-1",
        "ERR-2",
        "ERR-3",
        "ERR-4",
        "ERR-5",
    }


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_a_body_is_judged_as_the_index_says(entry: dict[str, Any]) -> None:
    body = (BODIES / entry["file"]).read_bytes()
    media = entry.get("media_type", "application/json") or None
    answer = answered(ASKED[entry["status"]], entry["status"], body, ("WWW-Authenticate", "Bearer"), media=media)
    assert entry["requirement"] in answer.exchange.findings
    expected = set(entry.get("also", [])) | (set() if entry["right"] else {entry["requirement"]})
    assert broken(answer.exchange) == expected
