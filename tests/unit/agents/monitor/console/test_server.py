"""The console's addresses, without a broker: files, headers, refusals, streams."""

import asyncio
import contextlib
import gzip
import tempfile
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.monitor.console import server
from agents.monitor.console.console import Console
from agents.monitor.console.diagnosis_reader import FOLLOWED, DiagnosisReader
from agents.monitor.console.event_stream import MOST_PAGES, event
from agents.monitor.console.server import CONSOLE, add_pages
from agents.monitor.console.snapshot import token_of
from agents.monitor.page_guard import guard
from agents.monitor.watch import Watch
from schemas.records import Diagnosis, Label
from tests.unit.agents.monitor.console.looks import overview
from tests.unit.agents.toy import SETTINGS

NOWHERE = SETTINGS.model_copy(
    update={"broker": SETTINGS.broker.model_copy(update={"bootstrap": "127.0.0.1:1"})}
)


@contextlib.asynccontextmanager
async def served(farewell=""):
    site = web.Application(middlewares=[guard(NOWHERE.worker)])
    with tempfile.TemporaryDirectory() as folder:
        worker = NOWHERE.worker.model_copy(update={"state": Path(folder), "farewell": farewell})
        settings = NOWHERE.model_copy(update={"worker": worker})
        watch = Watch(settings)
        add_pages(site, Console(settings, watch), settings)
        async with serving(site, watch) as client:
            yield client


@contextlib.asynccontextmanager
async def serving(site, watch):
    async with TestClient(TestServer(site)) as client:
        client.watch, client.console = watch, site[CONSOLE]
        yield client
    await watch.__aexit__()


async def one(stream):
    """Return the next event: its kind and its data."""
    kind = None
    while line := await stream.content.readline():
        if line.startswith(b"event: "):
            kind = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            return kind, orjson.loads(line[6:])
    return None


async def test_the_page_its_files_and_their_headers():
    async with served() as client:
        page = await client.get("/")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-cache"
        assert "<title>hb console</title>" in await page.text()
        again = await client.get("/", headers={"If-None-Match": page.headers["ETag"]})
        assert again.status == 304
        script = await client.get("/console/main.js")
        assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert script.headers["X-Content-Type-Options"] == "nosniff"
        assert (await client.get("/console/no.js")).status == 404
        assert (await client.get("/console/..%2Fserver.py")).status == 404


async def test_the_chart_library_is_sent_compressed_and_may_be_kept():
    async with served() as client:
        answer = await client.get(
            "/console/plotly.min.js", headers={"Accept-Encoding": "gzip"}, auto_decompress=False
        )
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "immutable" in answer.headers["Cache-Control"]
        assert gzip.decompress(await answer.read()).startswith(b"/**\n* plotly.js")
        plain = await client.get("/console/plotly.min.js", headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers


@pytest.mark.parametrize("path", ["/", "/console/main.js", "/events", "/learner/left"])
@pytest.mark.parametrize(
    "headers", [{"Host": "rebound.example"}, {"Origin": "http://evil.example"}]
)
async def test_pages_of_other_sites_are_refused(path, headers):
    async with served() as client:
        answer = await client.get(path, headers=headers)
        assert answer.status == 403
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_learner_that_is_not_there_and_a_broker_that_is_not():
    async with served() as client:
        answer = await client.get("/learner/nobody")
        assert (answer.status, (await answer.json())["error"]) == (404, "no such learner")


async def test_without_a_broker_a_page_hears_what_is_wrong():
    async with served() as client:
        client.console.patience = 0.1
        stream = await client.get("/events")
        assert stream.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        kind, hello = await one(stream)
        assert kind == "hello"
        assert [learner["name"] for learner in hello["learners"]] == ["left", "right"]
        kind, frame = await one(stream)
        assert kind == "snapshot"
        assert frame["worker"] == hello["worker"]
        assert "rates" not in frame
        standing = frame["standing"]
        assert (standing["state"], standing["colour"]) == ("degraded", "amber")
        assert standing["cause"] == "broker_slow"


async def test_what_is_known_is_shown_at_once_and_the_curves_from_the_start():
    async with served() as client:
        for n in range(3):
            state = overview(left=n, learned=n, rates={"ensemble": {"per": 0.5}})
            for tell in client.watch.listeners:
                tell(state)
            client.watch.latest = state
        stream = await client.get("/events")
        _, hello = await one(stream)
        assert [point["n"] for point in hello["history"]] == [0, 1, 2]
        _, frame = await one(stream)
        assert frame["rates"] == {"ensemble": {"per": 0.5}}
        assert [point["n"] for point in frame["points"]] == [0, 1, 2]


async def test_a_page_that_reads_nothing_misses_frames_and_holds_up_nobody():
    async with served() as client:
        feed = client.console.events
        padding = "x" * 200_000

        async def make():
            return event("snapshot", {"n": feed.frame_number, "padding": padding})

        feed._make, feed._every = make, 0.005
        host, port = client.server.host, client.server.port
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 18)
        writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        fast = await client.get("/events")
        await one(fast)
        for _ in range(150):
            _, frame = await one(fast)
        assert frame["n"] >= 149
        assert feed.pages == 2
        fast.close()
        got = []
        async with asyncio.timeout(20):
            while not got or got[-1] < 150:
                line = await reader.readuntil(b'"n":')
                got.append(int((await reader.readuntil(b","))[:-1]))
                del line
        assert len(got) < 100, "the frames between were dropped, not kept"
        began = asyncio.get_running_loop().time()
        await client.server.close()
        assert asyncio.get_running_loop().time() - began < 5, "it is not waited for"
        writer.close()


async def test_there_is_an_end_to_the_pages_that_are_served():
    async with served() as client:
        client.console.events.pages = MOST_PAGES
        answer = await client.get("/events")
        assert answer.status == 503
        client.console.events.pages = 0


async def test_one_client_cannot_take_all_pages(monkeypatch):
    monkeypatch.setattr(server, "PAGES_PER_CLIENT", 3)
    async with served() as client:
        open_pages = [await client.get("/events") for _ in range(3)]
        assert {page.status for page in open_pages} == {200}
        assert (await client.get("/events")).status == 503
        open_pages[0].close()
        async with asyncio.timeout(20):
            while (await client.get("/events")).status != 200:  # noqa: ASYNC110 - it is asked for
                await asyncio.sleep(0.05)


async def test_stopping_ends_the_streams_at_once_and_says_goodbye():
    async with served(farewell="This demo has ended.") as client:
        client.console.patience = 0.1
        stream = await client.get("/events")
        await one(stream)
        began = asyncio.get_running_loop().time()
        await client.server.close()
        assert asyncio.get_running_loop().time() - began < 5
        while (message := await one(stream)) and message[0] != "bye":
            pass
        assert message == ("bye", {"farewell": "This demo has ended."})
        assert await one(stream) is None


async def test_a_diagnosis_is_found_by_its_token_only():
    diagnosis = Diagnosis("patient-17", "yes", True, (), "wm", {}, {}, 1)
    async with served() as client:
        client.console.diagnoses.show(diagnosis)
        client.console.diagnoses._followed[token_of("toy", diagnosis.id)].label = Label(
            diagnosis.id, "no", 2
        )
        answer = await client.get(f"/diagnosis/{token_of('toy', diagnosis.id)}")
        shown = await answer.json()
        assert (shown["label"], shown["truth"]) == ("yes", {"label": "no", "at": 2})
        assert diagnosis.id not in await answer.text()


def test_only_so_many_diagnoses_are_remembered():
    reader = DiagnosisReader(SETTINGS)
    for n in range(3 * FOLLOWED):
        reader.show(Diagnosis(f"p{n}", "yes", True, (), "wm", {}, {}, 1))
    assert len(reader._followed) == FOLLOWED
    assert token_of("toy", f"p{3 * FOLLOWED - 1}") in reader._followed
