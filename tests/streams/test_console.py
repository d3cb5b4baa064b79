"""The console on a real broker: one look for a hundred pages, the whole system from any worker."""

import asyncio
import contextlib
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from operator import itemgetter

import aiohttp
import numpy as np
import orjson
import pytest
from engine_kit import PATIENCE
from pipeline_kit import (
    arrive,
    await_count,
    await_raw,
    await_state,
    create_topics,
    label,
    learned,
    patients,
    publish,
    read,
    running,
    settings,
)
from user_kit import HB, ensemble

from agents.monitor.console.learner_reader import FRESH
from agents.monitor.console.server import CONSOLE
from learners.theory.running_mean import running_mean_interval
from streams.kafka.topics import Topics

PAGES = 100
N = 400


def address(app):
    return "http://{}:{}".format(*app.web.address)


@pytest.fixture
async def session():
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=2**20) as client:
        yield client


@contextlib.asynccontextmanager
async def opened(session, app):
    """Open a page's stream; yields a function that returns the next event, raw."""
    async with session.get(f"{address(app)}/events", timeout=None) as answer:
        assert answer.status == 200

        async def event():
            async with asyncio.timeout(PATIENCE):
                return await answer.content.readuntil(b"\n\n")

        assert await event() == b"retry: 1000\n\n"
        yield event


def data(event, kind):
    head, body = event.split(b"\n", 1)
    assert head == f"event: {kind}".encode()
    return orjson.loads(body.removeprefix(b"data: "))


async def until_shown(event, look, wanted):
    """Return the first frame in which the wanted values are seen; fail with those that differ.

    A frame puts together what was read at different moments, so all of them are waited for.
    """
    shown = {}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while shown != wanted:
                frame = data(await event(), "snapshot")
                shown = look(frame) if "rates" in frame else {}
    assert shown == wanted
    return frame


async def test_a_hundred_pages_are_one_look_a_second(broker_address, prefix, tmp_path, session):
    config = settings(tmp_path, broker_address, prefix.strip("."))
    await create_topics(config)
    ids, features, truth = patients(N)
    async with running(config) as app, contextlib.AsyncExitStack() as stack:
        feed = app.web.web_app[CONSOLE].events
        pages = [await stack.enter_async_context(opened(session, app)) for _ in range(PAGES)]
        hellos = [data(await page(), "hello") for page in pages]
        assert len({hello["worker"] for hello in hellos}) == 1
        began, looks = time.monotonic(), feed.frame_number
        assert feed.pages == PAGES
        await arrive(config, ids, features)
        await label(config, ids, truth)

        async def follow(page):
            followed = []
            while not followed or data(followed[-1], "snapshot").get("labelled") != N:
                followed.append(await page())
            return followed

        frame_lists = await asyncio.gather(*[follow(page) for page in pages])
        looks, seconds = feed.frame_number - looks, time.monotonic() - began
        assert looks <= seconds + 2, "one a second, however many pages"
        counts = Counter(frame for frames in frame_lists for frame in set(frames))
        # Pages that were opened first have also got frames from before the last was open.
        assert len(counts) <= feed.frame_number, "every page gets the same bytes"
        assert max(counts.values()) > 1
        assert min(map(len, frame_lists)) >= 1
    shown = b"".join(counts)
    assert not [name for name in ids if name.encode() in shown], "no id in full"


def counted_readings(monkeypatch, app):
    """Return a list that grows with each reading of a learner's changelog."""
    reader, readings = app.web.web_app[CONSOLE].learners, []
    read = reader._read

    def counted(*arguments):
        readings.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(reader, "_read", counted)
    return readings


async def test_what_a_page_shows_is_what_is_on_the_topics(
    broker_address, prefix, tmp_path, session, monkeypatch
):
    """Two workers: one for the learners, one for the ensemble; each shows the whole system."""
    config = settings(tmp_path, broker_address, prefix.strip("."))
    elsewhere = settings(
        tmp_path, broker_address, prefix.strip("."), f"worker.state={tmp_path}/other"
    )
    await create_topics(config)
    _, features, truth = patients(N)
    # A page shows the first three characters: they tell every patient from every other.
    ids = [f"{number:03d}-{number:03d}" for number in range(N)]
    learners = [f"local:{name}" for name in config.learners]
    async with (
        running(config, *learners) as first,
        running(elsewhere, "ensemble") as second,
        opened(session, first) as first_page,
        opened(session, second) as two,
    ):
        # Most at once, the last ones each in a transaction of its own.
        for start, end in ((0, N - 3), *((n, n + 1) for n in range(N - 3, N))):
            few = {name: column[start:end] for name, column in features.items()}
            await arrive(config, ids[start:end], few)
            await await_count(config, Topics.of(config).diagnoses, end)
        await publish(broker_address, Topics.of(config).labels, [("x", b"no json")])
        await label(config, ids[: N // 2], truth[: N // 2])
        await await_raw(config, Topics.of(config).deadletter, 1)
        state = await await_state(config, lambda state: learned(state, N // 2))
        wanted = due(state, await read(config, Topics.of(config).diagnoses))
        for event in (first_page, two):
            data(await event(), "hello")
        frames = [await until_shown(event, seen, wanted) for event in (first_page, two)]
        readings = counted_readings(monkeypatch, first)
        began = time.monotonic()
        answers = [await session.get(f"{address(first)}/learner/b") for _ in range(5)]
        details = [await answer.json() for answer in answers]
        seconds = time.monotonic() - began
    assert {"phase" in task for task in frames[1]["tasks"]} == {True, False}
    assert 1 <= len(readings) <= 1 + seconds / FRESH, (
        "questions within a few seconds are one reading"
    )
    await check_details(config, details[0])


FIGURES = ("rates", "recent", "weights", "regret", "bound")


def due(state, diagnoses):
    """Return what a page has to show of the state and of the diagnoses, oldest first."""
    scores = state.scores
    newest = sorted(diagnoses, key=itemgetter("at"))[:-9:-1]
    return {
        **{name: getattr(scores, name) for name in FIGURES},
        "waiting": N // 2,
        "settled": N // 2,
        "workers": 2,
        "behind": 0,
        "held": {True},
        "passed": N,
        "refused": [("malformed", "labels", 1)],
        "diagnoses": [("…" + diagnosis["id"][-3:], diagnosis["label"]) for diagnosis in newest],
    }


def seen(frame):
    """Return the same of a frame."""
    return {
        **{name: frame[name] for name in FIGURES},
        "waiting": frame["labels"]["waiting"],
        "settled": frame["labels"]["settled"],
        "workers": frame["workers"],
        "behind": sum(task["behind"] for task in frame["tasks"]),
        "held": {bool(task["holder"]) for task in frame["tasks"]},
        "passed": frame["passed"]["diagnoses"],
        "refused": [(r["reason"], r["topic"], r["count"]) for r in frame["dead"]["reasons"]],
        "diagnoses": [(diagnosis["id"], diagnosis["label"]) for diagnosis in frame["diagnoses"]],
    }


async def check_details(config, shown):
    """Count what a learner learned again, from the feedback that it got."""
    feedback = await read(config, Topics.of(config).feedback("b"))
    assert shown["labelled"] == len(feedback) == N // 2
    cubes = Counter(lesson["cube"] for lesson in feedback)
    assert shown["visited"] == len(cubes)
    assert {cube["cube"]: cube["labels"] for cube in shown["biggest"]} == dict(cubes)
    for rule in shown["rules"]:
        right = sum(lesson["votes"][rule["name"]] == lesson["label"] for lesson in feedback)
        assert rule["trials"] == len(feedback)
        assert rule["accuracy"] == pytest.approx(right / len(feedback))
        low, high = running_mean_interval(np.array([len(feedback)]), np.array([right]))
        assert (rule["low"], rule["high"]) == (pytest.approx(low[0]), pytest.approx(high[0]))


async def test_a_page_can_be_switched_off(broker_address, prefix, tmp_path, session):
    config = settings(tmp_path, broker_address, prefix.strip("."), "worker.console=false")
    await create_topics(config)
    async with running(config) as app:
        for path, status in (("/", 404), ("/events", 404), ("/learner/a", 404), ("/healthz", 200)):
            answer = await session.get(address(app) + path)
            assert answer.status == status


def test_hb_up_says_where_the_console_is(tmp_path, broker_address, prefix):
    file = ensemble(tmp_path, broker_address, prefix.strip("."))
    command = [*HB, "up", "--settings", str(file)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    line = next(line for line in process.stderr if line.startswith("console: "))
    with urllib.request.urlopen(line.split()[1]) as page:
        assert b"<title>hb console</title>" in page.read()
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "console" not in output, "it is said once: any worker's will do"
