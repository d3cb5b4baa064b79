"""Whoever loads a worker's pages as fast as they can does not keep the engine from its records."""

import asyncio
import json
import subprocess
import sys
import time

import aiohttp
from pipeline_kit import (
    arrive,
    await_state,
    create_topics,
    label,
    learned,
    patients,
    running,
    settings,
)

from agents.monitor.page_guard import BURST, RATE
from streams.faust import web

N = 400
AT_ONCE = 50
FLOOD = """
import asyncio, collections, itertools, json, sys, aiohttp
PAGES = "/", "/metrics", "/learner/a", "/no-such-page", "/readyz", "/console/none", "/diagnosis/0"

async def load(session, seen):
    for path in itertools.cycle(PAGES):
        try:
            async with session.get(path) as answer:
                await answer.read()
                seen[str(answer.status)] += 1
        except aiohttp.ClientError:
            seen["broken"] += 1
        print(json.dumps(seen), flush=True)

async def main(address, times):
    seen = collections.Counter()
    async with aiohttp.ClientSession(address, connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*[load(session, seen) for _ in range(times)])

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def address(app):
    return "http://{}:{}".format(*app.web.address)


class Flood:
    """A process that asks for pages, many at a time and without a pause, and counts the answers."""

    def __init__(self, page, log):
        self._log = log
        self._file = log.open("w")
        arguments = [sys.executable, "-c", FLOOD, page, str(AT_ONCE)]
        self._process = subprocess.Popen(arguments, stdout=self._file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._file.close()

    @property
    def seen(self):
        """Return how many answers of each status have come."""
        lines = self._log.read_text().splitlines()[:-1]
        return json.loads(lines[-1]) if lines else {}

    async def refused_again(self):
        """Wait until more requests have been refused."""
        before = self.seen.get("429", 0)
        while self.seen.get("429", 0) <= before:
            assert self._process.poll() is None
            await asyncio.sleep(0.05)


async def test_records_flow_while_pages_are_loaded(broker_address, prefix, tmp_path):
    config = settings(tmp_path, broker_address, prefix.strip("."))
    await create_topics(config)
    ids, features, truth = patients(N)
    async with running(config) as app:
        began = time.monotonic()
        with Flood(address(app), tmp_path / "flood") as flood:
            await flood.refused_again()
            await arrive(config, ids, features)
            await label(config, ids, truth)
            await await_state(config, lambda state: learned(state, N))
            await flood.refused_again()
            statuses = flood.seen
            seconds = time.monotonic() - began
        answered = sum(
            count for status, count in statuses.items() if status not in ("429", "broken")
        )
        # Pages and probes have a budget each.
        assert answered <= 2 * (BURST + RATE * (seconds + 2))


async def test_open_connections_have_an_end(broker_address, prefix, tmp_path, monkeypatch):
    """They would use up the files that the process may open, which the engine needs too."""
    monkeypatch.setattr(web, "MOST_CONNECTIONS", 20)
    config = settings(tmp_path, broker_address, prefix.strip("."))
    await create_topics(config)
    async with running(config) as app:
        opened = [await asyncio.open_connection(*app.web.address) for _ in range(30)]
        for reader, _ in opened[20:]:
            ended = await asyncio.wait_for(
                asyncio.gather(reader.read(), return_exceptions=True), 10
            )
            assert not ended[0] or isinstance(ended[0], ConnectionError)
        for _, writer in opened:
            writer.close()
        async with (
            aiohttp.ClientSession(address(app)) as session,
            session.get("/healthz") as answer,
        ):
            assert answer.status == 200
