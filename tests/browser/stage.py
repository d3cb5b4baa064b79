"""The console of a system that a test makes up: any state at once, without a broker."""

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path

from aiohttp import web
from axe_playwright_python.sync_playwright import Axe

from agents.monitor.console.console import Console
from agents.monitor.console.server import add_pages
from agents.monitor.watch import Watch
from tests.unit.agents.toy import SETTINGS

PATIENCE = 120
"""Seconds to wait for what must come, however busy the machine is."""


class StagedWatch(Watch):
    """Sees what the test says."""

    async def _read(self, at):
        return replace(self.state, at=at)


class Stage:
    """A console in a thread of its own; `state` and `latest` are what its pages show."""

    def __init__(self, folder: Path, **worker) -> None:
        self.settings = SETTINGS.model_copy(
            update={"worker": SETTINGS.worker.model_copy(update={"state": folder, **worker})}
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_):
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def show(self, state, *latest) -> None:
        """Let the system be like this, with these latest diagnoses, the newest first."""
        self._watch.state = state
        self._console._newest.latest = list(latest)

    def end(self) -> None:
        """Stop the worker."""
        self._run(self._runner.cleanup())

    def do(self, call) -> None:
        """Call something with the console, in its own thread."""

        async def called():
            call(self._console)

        self._run(called())

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _start(self):
        self._watch = StagedWatch(self.settings)
        self._console = console = Console(self.settings, self._watch)

        async def nothing_new(*_):
            return True

        console._newest.read = console.diagnoses._read_on = nothing_new
        console.diagnoses._look_through_latest = nothing_new
        site = web.Application()
        add_pages(site, console, self.settings)
        self._runner = web.AppRunner(site, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.page = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self):
        await self._watch.__aexit__()
        await self._runner.cleanup()


def await_true(page, condition):
    """Wait for a JavaScript condition; the page bars the text that playwright would evaluate."""
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, condition
        page.wait_for_timeout(100)


def check_axe(page, part=None):
    """Look for what keeps people from using a page."""
    report = Axe().run(page, context=part).response
    assert len(report["passes"]) > 10, "it has looked"
    grave = [
        (rule["id"], node["html"][:200], node.get("failureSummary"))
        for rule in report["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert grave == []
