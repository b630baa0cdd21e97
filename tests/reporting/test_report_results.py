"""`results.json` is valid against the published schema, and says all that the other reports are written
from."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from reporting_runs import EVERY, broken, conformant, failing

from conformance.reporting import html, junit, results, summary
from conformance.reporting.run import Observed, Run

FILES = {"summary.md": "sha256:" + "1" * 64, "badge.svg": "sha256:" + "2" * 64}


@pytest.fixture(params=EVERY)
def run(request: pytest.FixtureRequest) -> Run:
    return EVERY[request.param]()


def test_valid_against_the_published_schema(run: Run) -> None:
    Draft202012Validator.check_schema(results.schema())
    Draft202012Validator(results.schema()).validate(results.to_json(run, FILES))


def test_comes_back_as_it_went(run: Run) -> None:
    assert results.read(results.parsed(results.render(run, FILES)), run.exchanges) == run


def test_every_report_can_be_written_anew(run: Run) -> None:
    again = results.read(json.loads(results.render(run, {})), run.exchanges)
    for render in (html.render, junit.render, summary.render):
        assert render(again) == render(run)


def test_the_files_are_named_with_their_digests() -> None:
    assert list(results.to_json(conformant(), FILES)["files"].items()) == sorted(FILES.items())


def test_counts_every_status_of_both_levels() -> None:
    counted = results.to_json(failing(), {})["counts"]
    assert counted["required"]["failed"] == 2
    assert counted["recommended"]["failed"] == 1
    assert sum(sum(level.values()) for level in counted.values()) == len(failing().requirements)


def test_is_printable_ascii() -> None:
    text = results.render(broken("\x1b[31m\x7f\x85\ud800ü\u202e"), FILES)
    assert all(" " <= character <= "~" or character == "\n" for character in text)


def test_observed_values_are_told_as_json_has_them() -> None:
    value = {"none": None, 3: (1, {404: [0.5]}), "text": "x"}
    run = conformant()
    told = results.to_json(Run(**{**vars(run), "observations": (Observed("t", value),)}), {})
    assert told["observations"][0]["value"] == {"none": None, "3": [1, {"404": [0.5]}], "text": "x"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not the results"),
        ('{"schema": "store-orders-conformance/results/2"}', "this version reads"),
        ('{"schema": "store-orders-conformance/results/1"}', "required property"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
)
def test_says_why_something_cannot_be_read(text: str | bytes, said: str) -> None:
    with pytest.raises(results.ResultsError, match=said):
        results.read(results.parsed(text))


@pytest.mark.parametrize("told", ["", "yesterday", "2026-11-21", "2026-11-21T06:00:00", "2026-11-21T06:00:60Z"])
def test_a_run_begins_and_ends_at_some_time(told: str) -> None:
    for name in ("started", "finished"):
        data = results.to_json(conformant(), {})
        data["run"][name] = told
        with pytest.raises(results.ResultsError, match=f"run/{name}: .* is no moment in time"):
            results.read(data)


def test_names_the_place_of_a_mistake() -> None:
    data = results.to_json(conformant(), {})
    data["requirements"][3]["status"] = "great"
    with pytest.raises(results.ResultsError, match=r"requirements/3/status: 'great'"):
        results.read(data)


def test_nothing_stands_twice() -> None:
    """A reader that goes by ids would see one of them, and a reader that counts both."""
    data = results.to_json(failing(), {})
    data["requirements"].append(data["requirements"][0])
    with pytest.raises(results.ResultsError, match=f"requirements: {data['requirements'][0]['id']} stands there 2 tim"):
        results.read(data)
    data = results.to_json(failing(), {})
    checks = data["requirements"][0]["checks"]
    checks.append({**checks[0], "status": "excluded"})
    with pytest.raises(results.ResultsError, match=f"requirements: {checks[0]['id']} stands there 2 times"):
        results.read(data)


def test_a_whole_number_with_a_fraction_is_a_mistake_too() -> None:
    """JSON Schema takes 1.0 for an integer."""
    data = results.to_json(conformant(), {})
    data["requirements"][0]["checks"][0]["exchanges"] = [1.0]
    with pytest.raises(results.ResultsError, match=r"checkresult: Expected `int`, got `float` - at `\$\.exchanges"):
        results.read(data)


def test_reads_results_without_our_further_properties() -> None:
    data = results.to_json(failing(), {})
    del data["run"]["command"], data["warnings"]
    for row in data["requirements"]:
        del row["clause"], row["why"], row["needs"], row["rests_on"], row["waiver"]
        for check in row["checks"]:
            check.pop("failure", None)
            del check["message"]
    assert results.read(data).verdict is failing().verdict


def test_reads_circumstances_of_an_earlier_version() -> None:
    made = failing()
    data = results.to_json(made, {})
    del data["circumstances"]["curl_options"], data["circumstances"]["protected"]
    assert results.read(data).circumstances == made.circumstances
