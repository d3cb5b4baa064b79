"""When something is wrong, `/readyz`, the console and `hb status` name the same cause."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright
from user_kit import HB

from streams.broker.reaper import temporary_broker
from tests.browser.system import Worker
from tests.conftest import need_tool
from tests.streams.user_kit import ensemble

SECONDS = 1000
WITHIN = 120
"""Generous: what it takes on an idle machine is below ten seconds."""


@contextlib.contextmanager
def open_browser():
    """Start a browser; after all else, because it keeps a loop running in this thread."""
    path = need_tool("chromium", "chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def readiness(worker):
    try:
        with urllib.request.urlopen(f"{worker.page}/readyz") as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        return json.loads(refused.read())


def await_verdict(worker, cause):
    """Wait for a cause; a part of the broker may be missed before all of it is."""
    deadline = time.monotonic() + WITHIN
    while (verdict := readiness(worker)["verdict"])["cause"] != cause:
        assert time.monotonic() < deadline, verdict
        time.sleep(0.2)
    return verdict


def await_status(file, code):
    deadline = time.monotonic() + WITHIN
    while (shown := status(file))[0] != code:
        assert time.monotonic() < deadline, shown
    return shown


def status(file):
    command = [*HB, "status", "--json", "--settings", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WITHIN)
    return run.returncode, json.loads(run.stdout)["verdict"], run.stderr


@contextlib.contextmanager
def running(worker):
    worker.start()
    try:
        worker.await_ready()
        yield
    finally:
        worker.end()


def test_a_broker_that_goes_away_is_the_same_story_everywhere(tmp_path):
    with temporary_broker() as broker:
        file = ensemble(tmp_path, broker.address, "story", partitions=1)
        worker = Worker(file, "ensemble", "local:imaging", "local:history")
        sentence = f"the broker at {broker.address} does not answer"
        with running(worker), open_browser() as browser:
            page = browser.new_page()
            page.goto(worker.page)
            pill, explanation = page.locator("#pill-text"), page.locator("#sentence")
            expect(pill).to_have_text("Untaught", timeout=WITHIN * SECONDS)
            assert await_status(file, 0)[1]["level"] == "well"
            broker.nodes[0].pause()
            assert await_verdict(worker, "broker_away")["text"] == sentence
            expect(pill).to_have_text("Degraded", timeout=WITHIN * SECONDS)
            expect(explanation).to_have_text(
                f"Degraded because {sentence}.", timeout=WITHIN * SECONDS
            )
            _, verdict, error = await_status(file, 4)
            assert (verdict["cause"], verdict["text"]) == ("broker_away", sentence)
            assert "cannot connect" in error
            broker.nodes[0].resume()
            await_verdict(worker, None)  # nothing is wrong
            expect(pill).to_have_text("Untaught", timeout=WITHIN * SECONDS)
            await_status(file, 0)
