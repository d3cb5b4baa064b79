"""The results page in a real browser: self-contained, readable on a phone, in two themes."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from experiments.report.result import Chart, Result, Series, Table
from experiments.report.write import write_report
from tests.conftest import need_tool

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}


def results():
    """Two results with everything that a page can hold: names too long to stand, wide tables."""
    line = Chart("Lines", "c", "PER", [Series("a", [0.1, 1], [3.0, 2.0], [0.1, 0.2])], log_x=True)
    names = [f"a method with quite a long name, number {k}" for k in range(5)]
    bars = Chart("Bars", "method", "PER", [Series("ours", names, [3.0, None, 2, 1, 4])], kind="bar")
    columns = ["method", *(f"column {k}" for k in range(14))]
    table = Table("Wide", columns, [["x", *range(14)], ["y", *(k / 3 for k in range(14))]])
    figures = {"WM.M=3.PER": 3.0, "WM.M=30.PER": 9.0}
    many = Result("learners", "Many <learners>", {"runs": 2}, figures, [table], [line, bars], ["n"])
    few = Result("past", "Past", {"runs": 2}, {"WM.PER after 50": 9.0, "WM.PER after 90": 5.0})
    return {"learners": many, "past": few}


@pytest.fixture(scope="module")
def browser():
    path = need_tool("chromium", "chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.mark.parametrize(("window", "theme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_the_page_draws_and_needs_nobody(browser, tmp_path, window, theme):
    _, file = write_report(results(), tmp_path)
    wrong = []
    context = browser.new_context(viewport=window, color_scheme=theme, offline=True)
    page = context.new_page()
    page.on("console", lambda m: wrong.append(m.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else wrong.append(r))
    page.goto(file.as_uri())
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator(".main-svg").first).to_be_visible()
    expect(page.locator("#learners-0 .scatterlayer .trace")).to_have_count(1)
    expect(page.locator("#learners-1 .barlayer .point")).to_have_count(5)
    expect(page.get_by_role("cell", name="yes").first).to_be_visible()
    # Wide tables move inside their frames; the page itself never moves sideways.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = sum(map(int, re.findall(r"\d+", background)[:3])) < 3 * 128
    assert dark == (theme == "dark")
    menu = page.locator("nav details")
    assert (menu.get_attribute("open") is not None) == (window == DESKTOP)
    report = Axe().run(page, options={"resultTypes": ["violations"]})
    serious = [v for v in report.response["violations"] if v["impact"] in {"serious", "critical"}]
    assert [v["id"] for v in serious] == []
    assert wrong == []
    context.close()
