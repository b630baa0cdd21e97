"""`report.html`: one file, small, complete, and nothing in it but its own style and script acts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from reporting_runs import EVERY, KEY, conformant, exchange, failing, guarded, interrupted, passing, run, undecided

from conformance.contract.catalogue import load
from conformance.reporting import html, timing
from conformance.verdict import CheckResult, Failure, Status


class Page(HTMLParser):
    """Elements with their attributes, ids and links of a page, and whether every element is closed."""

    VOID = frozenset({"meta", "input", "br", "rect", "line", "path", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def values(self, attribute: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(attribute))]


@pytest.mark.parametrize("name", EVERY)
def test_ids_are_unique_and_links_lead_somewhere(name: str) -> None:
    page = Page(html.render(EVERY[name]()))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for link in page.values("href"):
        assert link.startswith("https://example.org/7") or link[1:] in ids, link
    for labels in page.values("aria-labelledby"):
        assert labels in ids


@pytest.mark.parametrize("name", EVERY)
def test_needs_nothing_from_elsewhere(name: str) -> None:
    page = Page(html.render(EVERY[name]()))
    assert page.values("src") == []
    assert not [tag for tag, _ in page.elements if tag in ("link", "img", "iframe", "object", "base")]
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("name", EVERY)
def test_every_requirement_has_a_place(name: str) -> None:
    made = EVERY[name]()
    ids = Page(html.render(made)).values("id")
    assert {result.requirement.id for result in made.requirements} <= set(ids)


def test_the_policy_admits_our_script_and_nothing_else() -> None:
    text = html.render(conformant())
    assert "default-src &#39;none&#39;" in text
    assert "unsafe-inline" not in text


def test_tables_have_captions_and_controls_have_labels() -> None:
    text = html.render(failing())
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("table") == tags.count("caption")
    assert {"header", "nav", "main"} <= set(tags)
    assert 'aria-live="polite"' in text


def test_a_failure_shows_clause_evidence_and_curl() -> None:
    text = html.render(failing())
    article = text[text.index('<article class="card finding failed" id="CANCEL-3"') :]
    article = article[: article.index("</article>")]
    for word in (
        "already shipped",
        "409 (Conflict)",
        "204 No Content",
        "curl -sS -i -X DELETE",
        "/store/orders/102",
    ):
        assert word in article


def test_no_dot_of_the_plot_lies_beyond_its_axis() -> None:
    """Of many answers some have no dot; the slowest sets the end of the axis whether it has one or not."""
    slow = {4001: 9.0}
    sent = [exchange(number, seconds=slow.get(number, 0.002)) for number in range(5000)]
    for place in range(0, 5000, 7):
        sent[place] = exchange(place, "DELETE", "/store/orders/1", seconds=slow.get(place, 0.002))
    drawn = timing.plot(run([], tuple(sent)))
    assert drawn is not None
    assert drawn.ticks[-1] == ("10 s", 614.0)
    for _, _, dots, _ in drawn.rows:
        assert all(24 <= float(across) <= 614 for across in re.findall(r"M([\d.]+) ", dots))


def test_the_body_of_a_request_is_shown() -> None:
    sent = exchange(0, "DELETE", "/store/orders/1", status=401, request_body="access_token=<key>")
    failed = CheckResult("c", "AUTH-4", Status.FAILED, "no", 1, (0,), Failure("401", "204", 0))
    assert "\n\naccess_token=&lt;key&gt;</pre>" in html.render(run([failed], (sent,)))


def test_curl_lines_name_the_key_of_the_target_where_nothing_failed() -> None:
    checks = [CheckResult("c", "LIST-1", Status.INCONCLUSIVE, "503", 1, (0,))]
    assert f"Bearer ${{{KEY}}}" in html.render(run(checks, (exchange(0, status=503),)))


def test_a_normal_run_is_less_than_a_mebibyte() -> None:
    order = {"id": 1, "petId": 2, "quantity": 1, "shipDate": "2026-11-30T10:00:00Z", "complete": False}
    bodies = [json.dumps([order] * 15)] * 400 + [json.dumps([order] * 1200)] * 4
    exchanges = tuple(exchange(n, body=body) for n, body in enumerate(bodies))
    checks = [
        CheckResult("c", id_, Status.FAILED, "no", 1, tuple(range(n, n + 40)), Failure("a", "b", 400, "curl"))
        for n, id_ in enumerate(load().requirements)
    ]
    text = html.render(run(checks, exchanges))
    assert len(text.encode()) < 1024 * 1024
    assert text.count('<details class="exchange" open>') == len(checks)


def test_thousands_of_exchanges_do_not_blow_it_up() -> None:
    exchanges = tuple(exchange(n, seconds=n / 1000) for n in range(20_000))
    text = html.render(run([], exchanges))
    assert len(text.encode()) < 1024 * 1024
    assert "19,000 more exchanges" in text


def test_a_run_without_evidence_at_hand_can_be_shown() -> None:
    text = html.render(replace(failing(), exchanges=()))
    assert "made without" in text
    assert "409 (Conflict)" in text


def test_says_what_was_not_exercised_and_why() -> None:
    text = html.render(guarded())
    assert "mode guarded sends no cancel to an order" in text
    assert "cut short" in html.render(interrupted())


def test_what_is_undecided_for_one_reason_has_one_card() -> None:
    """The one that differs has its own; each of the others is found in the table."""
    text = html.render(interrupted())
    assert text.count("<article") == 2
    assert "41 requirements, for the same reason" in text
    assert '<tr data-status="inconclusive" data-level="required" id="CANCEL-3"' in text
    assert "Every requirement was exercised" not in text


def test_a_group_is_no_place_for_what_is_held_against_the_service() -> None:
    ids = ("LIST-1", "LIST-2", "LIST-3")
    others = undecided("the listing is broken", *ids[1:])
    blamed = CheckResult(
        "c", ids[0], Status.INCONCLUSIVE, "the listing is broken", 1, (0,), Failure("a list", "no list", 0)
    )
    text = html.render(run([*passing(*ids), blamed, *others], (exchange(0),)))
    assert '<article class="card finding inconclusive" id="LIST-1"' in text
    assert "2 requirements, for the same reason" in text


def test_is_the_same_every_time() -> None:
    assert html.render(failing()) == html.render(failing())


def test_a_waiver_links_only_to_the_web() -> None:
    made = failing()
    results = tuple(
        replace(r, waiver=replace(r.waiver, link="javascript:alert(1)")) if r.waiver else r for r in made.requirements
    )
    assert "javascript:alert(1)" not in Page(html.render(replace(made, requirements=results))).values("href")
