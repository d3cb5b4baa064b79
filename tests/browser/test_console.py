"""The console in a real browser, on a real pipeline: what it says is true, and anybody can use it.

One system for all tests. They run in this order: the last one kills a worker.
"""

import contextlib
import re
import signal
import time

import orjson
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.stage import PATIENCE, await_true, check_axe
from tests.browser.system import System
from tests.conftest import need_tool

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
ENSEMBLE, LEARNERS = ("ensemble",), ("imaging", "history")
SECONDS = 1000
expect.set_options(timeout=PATIENCE * SECONDS)


@pytest.fixture(scope="module")
def system(tmp_path_factory, broker_address):
    need_tool("chromium", "chromium")
    with System(tmp_path_factory.mktemp("browser"), broker_address).running() as started:
        yield started


@pytest.fixture(scope="module")
def browser(system):
    """A browser; after the system, because it keeps a loop running in this thread."""
    path = need_tool("chromium", "chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def wrong():
    """What went wrong in any page."""
    return []


@pytest.fixture(autouse=True)
def nothing_went_wrong(wrong):
    yield
    assert wrong == []


@pytest.fixture(scope="module")
def opened(browser, system, wrong):
    """Give a function that opens the console in a browser that knows nothing of it yet."""
    with contextlib.ExitStack() as stack:

        def open_page(viewport=DESKTOP, address=system.main.page, **options):
            context = stack.enter_context(browser.new_context(viewport=viewport, **options))
            page = context.new_page()
            page.set_default_timeout(PATIENCE * SECONDS)
            page.on("console", lambda m: wrong.append(m.text) if m.type != "log" else None)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("request", lambda r: None if r.url.startswith(address) else wrong.append(r.url))
            page.goto(address)
            await_filled(page)
            return page

        yield open_page


STICKING_OUT = """[...document.querySelectorAll("#picture .topic")].flatMap((topic) => {
    const edge = topic.querySelector("rect").getBoundingClientRect().right;
    const texts = [...topic.querySelectorAll("text")];
    return texts.filter((text) => text.getBoundingClientRect().right > edge - 4)
        .map((text) => text.textContent);
})"""


def await_filled(page):
    expect(page.locator("body")).to_have_attribute("data-link", "live")
    expect(page.locator("#learners tbody tr")).to_have_count(3)
    expect(page.locator("#plot-error .main-svg").first).to_be_visible()


@pytest.fixture(scope="module")
def page(opened):
    """A page that stays open."""
    return opened(color_scheme="light")


def number(text):
    return float(re.sub(r"[^\d.]", "", text))


def more_than(place, least):
    """Return a JavaScript condition: the number shown there is larger."""
    return f"document.querySelector('{place}').textContent.replace(/[^\\d.]/g, '') > {least}"


def shown(page, place):
    return number(page.locator(place).inner_text())


def test_the_page_fills_and_its_numbers_are_those_of_metrics(system, opened, page):
    second = opened(address=system.other.page)
    pages = [page, second]
    for page in pages:
        await_true(page, more_than("#figure-waiting .note", 60))
    with system.patients.paused():
        metrics = await_rest(system)
        for page in pages:
            check_shown(page, metrics)
            check_numbers(page, metrics)
            check_sections(page)
    second.context.close()


def await_rest(system):
    """Return the state metrics once everything that was sent is diagnosed and learned."""
    sent, labelled = len(system.patients.ids), system.patients.labelled
    wanted = {
        ("hb_fusions_total", frozenset({"true"})): sent,
        **{("hb_labelled_total", labels_of(name)): labelled for name in (*ENSEMBLE, *LEARNERS)},
    }
    deadline = time.monotonic() + PATIENCE
    for worker in (system.main, system.other):
        while wanted.items() - (metrics := worker.metrics()).items():
            assert time.monotonic() < deadline, {key: metrics.get(key) for key in wanted}
            time.sleep(0.2)
    return metrics


def check_shown(page, metrics):
    """Wait until a page shows all that was learned and the latest weights."""
    for row, name in enumerate((*ENSEMBLE, *LEARNERS), start=1):
        cells = page.locator(f"#learners tbody tr:nth-child({row}) td")
        expect(cells.nth(6)).to_have_text(f"{metrics['hb_labelled_total', labels_of(name)]:,.0f}")
    diagnosed = metrics["hb_fusions_total", frozenset({"true"})]
    expect(page.locator("#figure-diagnosed .value")).to_have_text(f"{diagnosed:,.0f}")
    # Only a page whose first look came before the first label knows how the weights began.
    trust = re.compile(r"(Weights started equal at 0\.50; n|N)ow \w+ has 0\.\d\d and \w+ has 0\.")
    expect(page.locator("#words")).to_contain_text(trust)
    assert not re.search(r"-\d", page.locator("#words").inner_text())


def labels_of(name, *pairs):
    return frozenset(("ensemble",) if name == "ensemble" else ("learner", name)) | {*pairs}


def check_numbers(page, metrics):
    """Every figure that both show is the same, to the digits shown."""

    def of(name, *labels):
        return metrics[f"hb_{name}", frozenset(labels)]

    for row, name in enumerate((*ENSEMBLE, *LEARNERS), start=1):
        all_of, newest = labels_of(name, "all"), labels_of(name, "1000")
        expected = [
            100 * of("prediction_error_rate", *all_of),
            100 * of("prediction_error_rate", *newest),
            100 * of("false_negative_rate", *all_of),
            100 * of("false_positive_rate", *all_of),
        ]
        cells = page.locator(f"#learners tbody tr:nth-child({row}) td").all_inner_texts()
        assert [number(cell) for cell in cells[:4]] == pytest.approx(expected, abs=0.051)
        if name in LEARNERS:
            assert number(cells[4]) == pytest.approx(of("weight", name), abs=0.00051)
            exploring = 100 * of("exploration_ratio", name)
            assert number(cells[5]) == pytest.approx(exploring, abs=0.051)
    regret, bound = re.findall(r"[\d.]+\d", page.locator("#says-regret").text_content())
    assert float(regret) == pytest.approx(of("regret", "best_learner"), abs=0.051)
    assert float(bound) == pytest.approx(of("regret_bound", "best_learner"), abs=0.051)
    assert shown(page, "#figure-diagnosed .value") == of("fusions_total", "true")
    settled = page.locator("#labels dd .value").nth(1).inner_text()
    assert number(settled) == of("labels_total", "settled")


def check_sections(page):
    for name in (*ENSEMBLE, *LEARNERS):
        expect(page.locator("#picture")).to_contain_text(name)
    expect(page.locator("#diagnoses tbody tr")).to_have_count(8)
    expect(page.locator("#diagnoses tbody tr").first.locator(".vote")).to_have_count(2)
    expect(page.locator("#tasks tbody tr")).to_have_count(3)
    for view, charts in {
        "theory": ("regret", "exploration"),
        "overview": ("error", "weights"),
    }.items():
        page.get_by_role("link", name=view).click()
        for chart in charts:
            expect(page.locator(f"#plot-{chart} .trace").first).to_be_attached()
            expect(page.locator(f"#says-{chart}")).not_to_be_empty()


def test_no_id_leaves_the_worker_in_full(system, page):
    await_true(page, more_than("#figure-diagnosed .value", 50))
    heard = page.evaluate(
        """() => new Promise((done) => {
            const source = new EventSource("events");
            const heard = [];
            source.addEventListener("snapshot", (event) => {
                heard.push(event.data);
                if (heard.length === 3) { source.close(); done(heard); }
            });
        })"""
    )
    assert all(patient not in heard[-1] for patient in system.patients.ids)
    assert all(len(diagnosis["id"]) <= 5 for diagnosis in orjson.loads(heard[-1])["diagnoses"])


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")]
)
def test_it_is_accessible(page, viewport, scheme):
    page.set_viewport_size(viewport)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    try:
        # Nothing sticks out, once everything has found its size.
        await_true(page, f"document.scrollingElement.scrollWidth <= {viewport['width']}")
        await_true(page, "document.getAnimations().length === 0")  # motion is reduced
        await_true(page, f"({STICKING_OUT}).length === 0")  # every name is inside its box
        check_axe(page)
        page.locator("#learners button").first.click()
        expect(page.locator("#panel h3").first).to_have_text("Rules")
        check_axe(page, "#panel")
        page.keyboard.press("Escape")
    finally:
        page.set_viewport_size(DESKTOP)
        page.emulate_media(color_scheme="light", reduced_motion="no-preference")


def test_it_can_be_used_by_keyboard_alone(page):
    page.reload()
    await_filled(page)

    def focused():
        return page.evaluate(
            "(document.activeElement.dataset.learner || document.activeElement.id"
            " || document.activeElement.textContent).trim()"
        )

    met = []
    for _ in range(30):
        page.keyboard.press("Tab")
        met.append(focused())
        if met[-1] == "As a table":
            break
    assert met[:4] == ["Skip to content", "theme", "Overview", "Theory"]
    assert all(name.endswith("details") for name in met[4:12]), "the diagnoses"
    page.locator("[data-learner=history]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel-name")).to_have_text("history")
    assert focused() == "panel-close"
    page.keyboard.press("Tab")
    inside = "document.querySelector('#panel').contains(document.activeElement)"
    outside = "document.activeElement === document.body"
    assert page.evaluate(f"{inside} || {outside}"), "the page behind cannot be reached"
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert focused() == "history", "back where it was opened"
    page.locator("#span input").first.focus()
    expect(page.locator("#span input").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#span input").nth(1)).to_be_checked()


def test_a_learner_from_near(page):
    page.locator("#learners button", has_text="imaging").click()
    assert page.url.endswith("#learner=imaging"), "which can be sent to somebody"
    panel = page.locator("#panel-body")
    expect(panel.locator(".features")).to_have_text("2 features: radius, texture.")
    expect(panel.locator("h3")).to_have_text(
        ["Rules", "Cubes", "Labels in a cube", "Biggest and thinnest"]
    )
    details = page.request.get(f"{page.url.partition('#')[0]}learner/imaging").json()
    rows = panel.locator("table", has_text="The learner's rules").locator("tbody tr")
    expect(rows).to_have_count(len(details["rules"]))
    assert {rule["name"] for rule in details["rules"]} == {"benign", "malignant"}
    expect(panel.locator("table", has_text="Cubes by phase").locator("tbody td")).to_have_count(4)
    assert details["visited"] <= 4
    page.keyboard.press("Escape")


def test_light_and_dark_by_choice(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="Theme: light").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    await_filled(page)
    assert page.evaluate(ground) == dark, "it is remembered"


def test_a_page_opened_late_sees_the_curves_from_the_start(page):
    page.reload()
    await_filled(page)
    await_true(page, "document.querySelector('#plot-error').data[0].x.at(-1) > 40")
    assert page.evaluate("document.querySelector('#plot-error').data[0].x[0]") < 20


def test_a_learner_that_falls_silent_is_shown(system, page):
    card = page.locator("[data-learner=history]")
    expect(card).to_contain_text("working")
    system.other.send(signal.SIGSTOP)
    try:
        expect(card).to_contain_text("silent")
        expect(page.locator("#announce")).to_contain_text("history: no progress")
        row = page.locator("#learners tbody tr", has_text="history")
        expect(row.locator(".unwell")).to_contain_text("records waiting")
    finally:
        system.other.send(signal.SIGCONT)
    expect(card).to_contain_text("working")
    expect(page.locator("#announce")).to_contain_text("well again")


def test_a_worker_that_is_killed_and_started_again(system, opened, page, wrong):
    before = shown(page, "#figure-waiting .note")
    worker = page.locator("#foot").inner_text()
    curves = system.file.parent / "ensemble" / "console" / "curves.json"
    deadline = time.monotonic() + PATIENCE
    while not curves.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    system.main.end(signal.SIGKILL)
    expect(page.locator("#sentence")).to_contain_text("No connection to this worker")
    expect(page.locator("#pill")).to_contain_text("Lost for")
    assert shown(page, "#figure-waiting .note") >= before, "what is known stays"
    system.main.start()
    # The banner goes after a while, so it is looked for first.
    expect(page.locator("#banner")).to_contain_text("The worker has restarted")
    expect(page.locator("body")).to_have_attribute("data-link", "live")
    expect(page.locator("#foot")).not_to_have_text(worker)
    assert shown(page, "#figure-waiting .note") >= before, "nothing that was learned is lost"
    points = page.evaluate("document.querySelector('#plot-error').data[0].x")
    assert points[0] < 20, "the curves go on"
    late = opened()
    points = late.evaluate("document.querySelector('#plot-error').data[0].x")
    assert points[0] < 20, "also on a page that has not seen them before"
    happened = late.evaluate("document.querySelector('#plot-error').data.at(-1).text")
    assert any("restarted" in label for label in happened), "and the restart is marked"
    refused = [text for text in wrong if "Failed to load resource" in text]
    assert wrong == refused, "the browser says itself that nobody answers"
    wrong.clear()
