"""`report.html` in a real browser: filters, search, links, paper, phone, no requests, no errors,
accessibility.

Needs chromium and chromedriver; the accessibility test also the npm package axe-core, whose `axe.min.js` the variable
AXE_CORE names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import named, program
from reporting_runs import EVERY, broken
from selenium import webdriver
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from conformance.reporting import comparison, comparison_views, html

#: Has axe look for violations alone: what it could say of the rest of a long page takes most of its time.
SEARCH = "axe.run({resultTypes: ['violations']}).then(arguments[arguments.length - 1])"
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "localhost")  # the driver is on this machine
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(program("chromedriver")))
        emulate(driver)
        yield driver
        driver.quit()


def emulate(driver: Any, *, dark: bool = False, width: int = 1280, media: str = "screen") -> None:
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens the report of a run by name; at the end nothing was fetched and nothing was complained of."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")

    def show(name: str, fragment: str = "") -> Any:
        path = tmp_path / f"{name}.html"
        path.write_text(html.render(EVERY[name]()), encoding="utf-8")
        browser.get(path.as_uri() + fragment)
        return browser

    yield show
    emulate(browser)
    assert browser.get_log("browser") == []
    sent = [entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent" in entry["message"]]
    assert not [message for message in sent if '"url":"http' in message]


def shown(browser: Any) -> list[str]:
    return list(
        browser.execute_script(
            "const rows = document.querySelectorAll('#requirements tbody tr:not([hidden]) th');"
            "return [...rows].map(e => e.textContent)"
        )
    )


def test_filters_and_search(page: Any) -> None:
    browser = page("failing")
    total = len(shown(browser))
    Select(browser.find_element("id", "by-status")).select_by_value("failed")
    assert shown(browser) == ["AUTH-7", "CANCEL-3", "ERR-1"]
    Select(browser.find_element("id", "by-level")).select_by_visible_text("required")
    assert shown(browser) == ["CANCEL-3", "ERR-1"]
    browser.find_element("id", "by-text").send_keys("shipped refuse")
    assert shown(browser) == ["CANCEL-3"]
    told = browser.find_element("id", "shown")
    assert told.text == f"1 of {total} requirements shown"
    assert told.get_attribute("aria-live") == "polite"
    browser.find_element("css selector", ".filters button").click()
    WebDriverWait(browser, 5).until(lambda driver: len(shown(driver)) == total)


@pytest.mark.parametrize(
    ("name", "id_"),
    [("failing", "CANCEL-3"), ("failing", "CANCEL-5"), ("failing", "LIST-7"), ("interrupted", "CANCEL-3")],
)
def test_a_link_opens_its_requirement(page: Any, name: str, id_: str) -> None:
    browser = page(name, f"#{id_}")
    assert browser.execute_script("return document.activeElement.id") == id_
    closed = f"return document.querySelectorAll('tr#{id_} details:not([open])').length"
    assert browser.execute_script(closed) == 0
    top = browser.execute_script(f"return document.getElementById('{id_}').getBoundingClientRect().top")
    assert 0 <= top < 900


def test_a_link_shows_a_requirement_that_is_filtered_out(page: Any) -> None:
    browser = page("failing")
    Select(browser.find_element("id", "by-status")).select_by_value("failed")
    browser.execute_script("location.hash = 'CANCEL-5'")
    WebDriverWait(browser, 5).until(
        lambda driver: driver.execute_script("return document.activeElement.id") == "CANCEL-5"
    )
    assert browser.find_element("id", "CANCEL-5").is_displayed()


def test_a_link_to_an_exchange_opens_the_list(page: Any) -> None:
    browser = page("failing", "#exchange-2")
    assert browser.find_element("id", "exchange-2").is_displayed()


def test_everything_can_be_reached_with_the_keyboard(page: Any) -> None:
    browser = page("failing")
    body = browser.find_element("tag name", "body")
    body.send_keys(webdriver.Keys.TAB)
    assert browser.execute_script("return document.activeElement.className") == "skip"
    browser.switch_to.active_element.send_keys(webdriver.Keys.ENTER)
    assert browser.execute_script("return document.activeElement.id") == "main"
    browser.switch_to.active_element.send_keys(webdriver.Keys.TAB)
    assert browser.execute_script("return document.activeElement.className").startswith("chip")


def test_the_copy_button_answers(page: Any) -> None:
    browser = page("failing")
    button = browser.find_element("css selector", ".copy")
    button.click()
    told = browser.find_element("id", "told")
    WebDriverWait(browser, 5).until(lambda _: "curl command" in told.get_attribute("textContent"))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("width", [320, 390, 800])
def test_nothing_is_wider_than_the_screen(page: Any, name: str, width: int) -> None:
    browser = page(name)
    emulate(browser, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_paper_shows_the_findings_and_no_controls(page: Any) -> None:
    browser = page("failing")
    emulate(browser, media="print")
    assert browser.find_element("id", "CANCEL-3").is_displayed()
    assert browser.find_element("css selector", ".exchange[open] .sides").is_displayed()
    for selector in ("nav", ".filters", ".copy", "#exchanges"):
        assert not browser.find_element("css selector", selector).is_displayed()


def test_without_scripts_nothing_is_hidden(page: Any) -> None:
    browser = page("failing")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.refresh()
        assert not browser.find_element("css selector", ".filters").is_displayed()
        assert browser.find_element("css selector", "#requirements summary").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_hostile_text_does_nothing(page: Any, tmp_path: Path) -> None:
    browser = page("failing")
    text = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    for number, made in enumerate(
        (html.render(broken(text)), comparison_views.html(comparison.compare(*[broken(text)] * 2)))
    ):
        path = tmp_path / f"hostile{number}.html"
        path.write_text(made, encoding="utf-8")
        browser.get(path.as_uri())
        assert browser.title != "owned"
        assert browser.find_elements("tag name", "img") == []


@pytest.mark.parametrize(
    ("name", "dark", "width"),
    [("conformant", True, 1280), ("failing", False, 390), ("interrupted", True, 1280), ("guarded", False, 390)],
)
def test_axe_finds_nothing_serious(page: Any, name: str, dark: bool, width: int) -> None:
    axe = Path(named("AXE_CORE", "axe.min.js")).read_text(encoding="utf-8")
    browser = page(name)
    emulate(browser, dark=dark, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.execute_script(axe)
    found = browser.execute_async_script(SEARCH)["violations"]
    told = [(v["id"], v["impact"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found]
    assert [v for v in told if v[1] in ("serious", "critical")] == []
    assert told == []
