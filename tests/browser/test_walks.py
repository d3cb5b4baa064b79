"""Walks through the console as its users take them: a clinician, then an engineer on call.

One system for both, with a broker of its own, which the engineer's walk stops. How long each
verdict takes is printed (`-s`); the tests wait for the verdict, not for time to pass. With
`HB_RECORD=FOLDER` each walk is recorded there, picture by picture: `playwright show-trace FILE`.
"""

import asyncio
import contextlib
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from agents.clients.sender import Sender
from streams.broker.reaper import temporary_broker
from streams.kafka.topics import Topics
from tests.browser.system import System
from tests.conftest import need_tool

SECONDS = 1000
PATIENCE = 180
COLOURS = {"grey": "6b7280", "green": "0b6e69", "amber": "b7791f", "red": "b3261e"}


@pytest.fixture(scope="module")
def broker():
    with temporary_broker() as started:
        yield started


@pytest.fixture(scope="module")
def system(tmp_path_factory, broker):
    need_tool("chromium", "chromium")
    with System(tmp_path_factory.mktemp("walks"), broker.address).running() as started:
        yield started


@pytest.fixture
def page(system, request):
    path = need_tool("chromium", "chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = browser.new_context()
        with recorded(context, request.node.name):
            page = context.new_page()
            page.set_default_timeout(PATIENCE * SECONDS)
            expect.set_options(timeout=PATIENCE * SECONDS)
            page.goto(system.main.page)
            yield page
        browser.close()


@contextlib.contextmanager
def recorded(context, name):
    """Record what a browser shows, if that is asked for."""
    folder = os.environ.get("HB_RECORD")
    if folder is None:
        yield
        return
    context.tracing.start(screenshots=True, snapshots=True)
    try:
        yield
    finally:
        context.tracing.stop(path=Path(folder) / f"{name}.zip")


def check_agreement(page, colour):
    """The sentence, the pill and the tab's icon have the same colour."""
    for place in ("#verdict", "#pill"):
        expect(page.locator(place)).to_have_attribute("data-colour", colour)
    assert COLOURS[colour] in page.locator("#icon").get_attribute("href")


@contextlib.contextmanager
def measured(title):
    began = time.monotonic()
    yield
    print(f"\n{title}: {time.monotonic() - began:.1f} s")


def test_a_clinician_opens_a_diagnosis_and_later_finds_its_label(system, page):
    expect(page.locator("#pill-text")).to_have_text("Healthy")
    check_agreement(page, "green")
    panel = page.locator("#panel-body")
    with system.patients.paused():
        # Nothing comes, so the newest has no label yet, and stays the newest.
        diagnosed = f"{len(system.patients.ids):,}"
        expect(page.locator("#figure-diagnosed .value")).to_have_text(diagnosed)
        row = page.locator("#diagnoses tbody tr").first
        answer = row.locator(".label").inner_text()
        share = row.locator(".chance .number").inner_text()
        row.locator(".label").click()  # anywhere in the row
        expect(page.locator("#truth")).to_have_text("Not known yet.")
        expect(panel.locator(".answer .label")).to_have_text(answer)
        expect(panel.locator(".chances")).to_contain_text(f"{answer}{share}")
        expect(panel.locator(".record")).to_contain_text("diagnosed like this before")
        expect(panel.locator("tbody tr")).to_have_count(2)
        expect(panel.locator("h3")).to_contain_text(["Label", "Chance", "To know"])
        link = page.url
        assert "#diagnosis=" in link
    expect(page.locator("#truth")).to_contain_text("it came at")
    truth = page.locator("#truth .label").inner_text()
    verdict = "right" if truth == answer else "wrong"
    expect(page.locator("#truth")).to_contain_text(f"was {verdict}")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("#"))
    page.goto("about:blank")
    page.goto(link)
    expect(panel.locator(".answer .label")).to_have_text(answer)
    expect(page.locator("#truth .label")).to_have_text(truth)


def test_an_engineer_on_call_is_told_what_is_wrong(system, broker, page):
    sentence, concerns = page.locator("#sentence"), page.locator("#verdict")
    expect(page.locator("#pill-text")).to_have_text("Healthy")

    with measured("wrong labels"), system.patients.wrongly():
        expect(sentence).to_contain_text("the error rate has risen")
        check_agreement(page, "amber")

    with measured("kill -9 of a worker"):
        system.other.end(signal.SIGKILL)
        expect(sentence).to_have_text("Degraded because task local.history/0 is held by no worker.")
        check_agreement(page, "red")
    expect(page.locator("#pill-text")).to_have_text("Degraded")
    system.other.start()
    expect(sentence).not_to_contain_text("history")

    with measured("garbage on a topic"):
        with ThreadPoolExecutor(1) as pool:  # the browser keeps a loop running in this thread
            pool.submit(asyncio.run, garbage(system)).result()
        expect(concerns).to_contain_text("ecords sent to the ensemble could not be used")
        check_agreement(page, "amber")
    expect(page.locator("#dead")).to_contain_text("malformed")

    with system.patients.paused(), measured("the broker stopped"):
        broker.nodes[0].pause()
        try:
            expect(sentence).to_have_text(
                f"Degraded because the broker at {broker.address} does not answer."
            )
            check_agreement(page, "red")
        finally:
            broker.nodes[0].resume()
        expect(sentence).not_to_contain_text("does not answer")

    system.main.end()
    expect(sentence).to_contain_text("This worker has stopped.")
    check_agreement(page, "grey")


async def garbage(system):
    topic = Topics.of(system.settings).labels
    async with Sender(system.settings, [topic]) as sender:
        await sender.send(b"p1", {topic: b"{not json"}, int(1000 * time.time()))
