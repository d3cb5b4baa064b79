"""Watches a worker: reads its metrics every five seconds, and keeps consoles open.

The Prometheus configuration in deploy/prometheus scrapes every fifteen.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from bench.processes import await_page
from settings.errors import HbError
from settings.model import Settings

METRICS = "/metrics"
EVENTS = "/events"
_EVERY = 5.0


@asynccontextmanager
async def watched(settings: Settings, pages: int = 1) -> AsyncIterator[None]:
    """Watch the worker of these settings; a page that is not served is an error."""
    page = await await_page(settings.worker.state)
    as_many_as_asked_for = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(page, connector=as_many_as_asked_for) as session:
        watching = [
            asyncio.create_task(_scrape(session), name="scrape"),
            *(asyncio.create_task(_follow(session), name="console") for _ in range(pages)),
        ]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            await asyncio.wait(watching)
        for task in watching:
            with suppress(asyncio.CancelledError):
                task.result()


async def _scrape(session: aiohttp.ClientSession) -> None:
    while True:
        async with session.get(METRICS) as answer:
            if answer.status != 200:
                raise HbError(f"the worker does not serve {METRICS}: status {answer.status}")
            await answer.read()
        await asyncio.sleep(_EVERY)


async def _follow(session: aiohttp.ClientSession) -> None:
    """Receive what the page would receive."""
    async with session.get(EVENTS, timeout=aiohttp.ClientTimeout(None)) as answer:
        if answer.status != 200:
            raise HbError(f"the worker does not serve {EVENTS}: status {answer.status}")
        async for _ in answer.content.iter_any():
            pass
