"""What a page costs depends on what it shows, not on how much was learned."""

import time
from dataclasses import replace

import numpy as np
import orjson
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.monitor.console.console import Console
from agents.monitor.console.history import MOST
from agents.monitor.console.server import add_pages
from agents.monitor.overview import figures, state_view, sums
from agents.monitor.scores import Scorer
from agents.monitor.watch import Watch
from agents.testing import Pipeline
from streams.kafka.topics import ENSEMBLE, Topics, local
from tests.unit.agents.toy import SETTINGS

WINDOW = 1_000


def plain(folder):
    """Return the toy without contexts: every label counts for the same rows."""
    ensemble = SETTINGS.ensemble.model_copy(update={"mode": "wm", "context": None})
    worker = SETTINGS.worker.model_copy(update={"state": folder})
    return SETTINGS.model_copy(update={"ensemble": ensemble, "worker": worker})


def teach(pipeline, numbers):
    for n in numbers:
        pipeline.patient(f"p{n}", {"age": n % 50, "sex": "fm"[n % 2]})
        pipeline.label(f"p{n}", "yes" if n % 3 else "no")
    pipeline.restart()  # which saves everything


def view_of(pipeline):
    """Return the rows that monitoring reads, as a worker finds them in the changelogs."""
    names = Topics.of(pipeline.settings)
    view = state_view(names)
    for agent in (ENSEMBLE, *map(local, names.learners)):
        for table in pipeline.agents[agent].tables:
            rows = list(pipeline.agents[agent]._saved.items(table))
            view.put(names.shared(agent), 0, table, rows)
    return view


def cost(view):
    rows = [
        row for parts in view._rows.values() for held in parts.values() for row in held.values()
    ]
    return len(rows), sum(map(len, rows))


def test_a_page_touches_no_more_rows_as_more_is_learned(tmp_path):
    settings = plain(tmp_path)
    pipeline = Pipeline(settings)
    costs, frames = [], []
    for numbers in (range(WINDOW + 50), range(WINDOW + 50, WINDOW + 500)):
        teach(pipeline, numbers)
        view = view_of(pipeline)
        costs.append(cost(view))
        console = Console(settings, watch := Watch(settings))
        watch.latest = figures(settings, Scorer(settings), sums(settings, view))
        for _ in range(3 * MOST):
            console._take(watch.latest)
        shown = orjson.dumps(console._page_data(in_time=True))
        frames.append(len(console.hello()) + len(shown))
        assert watch.latest.scores.labelled == numbers.stop
    assert costs[1] == costs[0]
    assert frames[1] < 1.05 * frames[0], "a few digits more"


class Counting(Watch):
    """Computes its overview from a state at hand, as a worker does for its own tasks."""

    def __init__(self, settings, view):
        super().__init__(settings)
        self._seen, self._by = view, Scorer(settings)

    async def _read(self, at):
        reading = figures(self._settings, self._by, sums(self._settings, self._seen))
        return replace(reading, at=at)


def times(view, names, factor):
    """Multiply all counts of a state, as if so many times more had been learned."""
    for agent in (ENSEMBLE, *map(local, names.learners)):
        for table in ("scores", "totals", "regret"):
            parts = view._rows.get((names.shared(agent), table), {})
            for held in parts.values():
                for key, row in held.items():
                    held[key] = (np.frombuffer(row, np.int64) * factor).tobytes()


async def test_a_page_opens_from_a_state_of_a_million_labels(tmp_path):
    """How long it takes is printed, not judged: `./hb test …/test_cost.py -s`."""
    broker = SETTINGS.broker.model_copy(update={"bootstrap": "127.0.0.1:1"})
    settings = plain(tmp_path).model_copy(update={"broker": broker})
    pipeline = Pipeline(settings)
    teach(pipeline, range(WINDOW))
    view = view_of(pipeline)
    times(view, Topics.of(settings), 1_000)
    watch = Counting(settings, view)
    console = Console(settings, watch)
    site = web.Application()
    add_pages(site, console, settings)
    async with TestClient(TestServer(site)) as client:
        await watch.refresh()
        for _ in range(3 * MOST):
            console._take(watch.latest)
        for round_ in ("first", "again"):
            began, used = time.perf_counter(), time.process_time()
            page = await (await client.get("/")).text()
            opened = time.perf_counter()
            stream = await client.get("/events")
            while b"event: snapshot" not in await stream.content.readline():
                pass
            shown = orjson.loads((await stream.content.readline()).removeprefix(b"data: "))
            ended, used = time.perf_counter(), time.process_time() - used
            stream.close()
            print(
                f"\n{round_}: page {opened - began:.3f} s, figures {ended - opened:.3f} s,"
                f" processor {used:.4f} s"
            )
        assert "hb console" in page
        assert shown["labelled"] == 1_000_000
        assert shown["last"]["labels"] == WINDOW
    await watch.__aexit__()
