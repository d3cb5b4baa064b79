"""The page in every state that it can show, whatever it takes for a system to get there."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from agents.monitor.console.snapshot import token_of
from agents.monitor.scores import Accuracy
from schemas.examples import EXAMPLES
from schemas.records import Diagnosis, Label, Opinion, Reasons
from tests.browser.stage import PATIENCE, Stage, await_true, check_axe
from tests.conftest import need_tool
from tests.unit.agents.monitor.console.looks import overview

SECONDS = 1000
DESKTOP, WIDE, PHONE = ((1280, 900), (1920, 1080), (360, 740))
RATES = {"per": 0.1, "fnr": 0.12, "fpr": 0.08}
NAMES = ("ensemble", "left", "right")
CONFUSION = np.array([[460, 40], [60, 440]])
TAUGHT = overview(
    left=1000,
    right=1000,
    learned=1000,
    predictions=2000,
    diagnosed=1010,
    labels=["no", "yes"],
    rates=dict.fromkeys(NAMES, RATES),
    recent=dict.fromkeys(NAMES, RATES),
    confusion=dict.fromkeys(NAMES, CONFUSION),
    window=CONFUSION,
    accuracy={"ensemble": Accuracy(0.9, 0.87, 0.93)},
    weights={"left": 0.7, "right": 0.3},
    exploration={"left": 0.01, "right": 0.02},
    answers={"given": 900, "referred": 110},
    regret=1.5,
    bound=20.0,
)
STATES = {
    "grey": overview(),
    "green": TAUGHT,
    "amber": replace(TAUGHT, refused=("the ensemble",)),
    "red": replace(TAUGHT, tasks=[replace(TAUGHT.tasks[0], holder=None), *TAUGHT.tasks[1:]]),
}
OPINIONS = {
    "left": Opinion("yes", "always", False, 412, accuracy=0.953, low=0.918, high=0.976),
    "right": Opinion("no", "always", True, 0),
}


def made(name, at, **changes):
    return msgspec.structs.replace(
        EXAMPLES[Diagnosis],
        id=name,
        at=at,
        label="yes",
        missing=(),
        complete=True,
        weights={"left": 0.7, "right": 0.3},
        learners=OPINIONS,
        chance={"no": 0.3, "yes": 0.7},
        cannot_exclude=("no", "yes"),
        **changes,
    )


VISITS = made("a-later", 1_760_090_000_000), made("an-earlier", 1_760_000_000_000)


@pytest.fixture(scope="module")
def browser():
    path = need_tool("chromium", "chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def stage(tmp_path):
    with Stage(tmp_path, farewell="This demo has ended.") as started:
        yield started


@pytest.fixture
def opened(browser, stage):
    """Give a function that opens the console in a given size, in a given state."""
    contexts = []
    expect.set_options(timeout=PATIENCE * SECONDS)

    def open_page(state, *latest, size=DESKTOP, scheme="light"):
        stage.show(state, *latest)
        viewport = dict(zip(("width", "height"), size, strict=True))
        contexts.append(browser.new_context(
            viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
        ))  # fmt: skip
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE * SECONDS)
        page.goto(stage.page)
        expect(page.locator("body")).to_have_attribute("data-link", "live")
        expect(page.locator("#learners tbody tr")).to_have_count(3)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", STATES)
def test_every_verdict_is_accessible(opened, colour, scheme):
    page = opened(STATES[colour], *VISITS, scheme=scheme)
    expect(page.locator("#verdict")).to_have_attribute("data-colour", colour)
    check_axe(page)


def test_so_is_the_end(opened, stage):
    page = opened(TAUGHT, *VISITS)
    stage.end()
    expect(page.locator("#sentence")).to_have_text("This demo has ended.")
    check_axe(page)


@pytest.mark.parametrize("size", [DESKTOP, WIDE, PHONE])
def test_so_are_all_views_in_all_sizes(opened, stage, size):
    page = opened(TAUGHT, *VISITS, size=size)
    expect(page.locator("#plot-error .main-svg").first).to_be_visible()
    check_axe(page)
    page.get_by_role("link", name="theory").click()
    expect(page.locator("#plot-regret .main-svg").first).to_be_visible()
    check_axe(page)


def test_a_diagnosis_opens_to_reasons_visits_and_a_withdrawn_label(opened, stage):
    why = EXAMPLES[Reasons]
    later = token_of("toy", "a-later")

    def told(console):
        for visit in VISITS:
            console.diagnoses.show(visit)
        followed = console.diagnoses._followed[later]
        followed.label = Label("a-later", None, 1_760_099_000_000)
        followed.reasons["left"] = why

    stage.do(told)
    page = opened(TAUGHT, *VISITS)
    first, second = (page.locator("#diagnoses tbody tr").nth(n) for n in (0, 1))
    expect(first.locator(".badge")).to_have_text(["referred", "return visit"])
    expect(second.locator(".badge")).to_have_text(["referred"])
    first.locator(".label").click()
    panel = page.locator("#panel-body")
    expect(page.locator("#truth")).to_contain_text("Withdrawn at")
    expect(panel.locator(".parts li")).to_have_text(
        ["radius +1.50", "texture +0.88", "site -0.38", "the rest +0.25"]
    )
    check_axe(page, "#panel")
    panel.locator(".visits a").click()
    expect(page).to_have_url(f"{stage.page}/#diagnosis={token_of('toy', 'an-earlier')}")
    expect(page.locator("#truth")).to_have_text("Not known yet.")
    assert VISITS[0].subject not in page.content()


def test_the_target_of_exclusion_stands_beside_its_own_rate(opened):
    scores = replace(TAUGHT.scores, missed={"yes": 0.021}, miss_targets={"yes": 0.03})
    page = opened(replace(TAUGHT, scores=scores))
    excluded = page.locator("#figure-excluded")
    expect(excluded.locator(".value")).to_have_text("2.1\u00a0%")
    expect(excluded.locator(".more")).to_have_text("target 3.0\u00a0%")
    expect(page.locator("#figure-miss .value")).to_have_text("12.0\u00a0%")
    expect(page.locator("#figure-miss .more")).not_to_contain_text("target")


def test_what_was_corrected_and_who_came_again_is_shown(opened):
    page = opened(TAUGHT)
    expect(page.locator("#labels")).not_to_contain_text("Amended")
    changed = {"amendment_taken": 3, "withdrawal_taken": 2, "unlearned": 1}
    again = {"prediction_duplicate": 4, "prediction_settled": 5}
    page = opened(replace(TAUGHT, counts=TAUGHT.counts | changed | again))
    for name, count in {
        "Amended": 3, "Withdrawn": 2, "Not unlearned": 1, "Second predictions": 4,
        "After their label": 5,
    }.items():  # fmt: skip
        row = page.locator("#labels dl > div", has_text=name)
        expect(row.locator(".value")).to_have_text(str(count))


def box(page, place):
    return page.locator(place).first.bounding_box()


def test_a_wide_screen_is_used(opened):
    page = opened(TAUGHT, *VISITS, size=WIDE)
    expect(page.locator("#plot-error .main-svg").first).to_be_visible()
    diagnoses, curves = box(page, ".diagnoses"), box(page, ".curves")
    assert diagnoses["x"] + diagnoses["width"] < curves["x"]
    assert curves["x"] + curves["width"] - diagnoses["x"] > 1800


def test_a_phone_has_verdict_figures_and_diagnoses_first(opened):
    page = opened(TAUGHT, *VISITS, size=PHONE)
    places = ("#verdict", "#figures", ".diagnoses", ".curves", ".learners")
    tops = [box(page, place)["y"] for place in places]
    assert tops == sorted(tops)


def test_curves_wait_then_show_a_point_then_lines_with_marks_and_values(opened, stage):
    page = opened(overview())
    expect(page.locator("#none-error")).to_have_text("Waiting for the first label.")
    expect(page.locator("#plot-error")).to_be_hidden()
    one = overview(learned=1, diagnosed=1, rates=dict.fromkeys(NAMES, RATES))
    stage.show(one)
    expect(page.locator("#plot-error .main-svg").first).to_be_visible()
    expect(page.locator("#none-error")).to_be_hidden()
    drawn = "document.querySelector('#plot-error').data"
    assert page.evaluate(f"{drawn}[0].mode") == "markers", "a single point is drawn"
    stage.do(lambda console: console.history.mark(1, "settings", "settings changed: labels"))
    stage.show(TAUGHT)
    await_true(page, f"{drawn}[0].mode === 'lines'")
    assert "settings changed: labels" in page.evaluate(f"{drawn}.at(-1).text.join()")
    plot = page.locator("#plot-error .nsewdrag").first
    edge = plot.bounding_box()  # the newest point is on the right
    plot.hover(position={"x": edge["width"] - 2, "y": edge["height"] / 2})
    expect(page.locator("#plot-error .hoverlayer")).to_contain_text("ensemble : 10.0 %")
