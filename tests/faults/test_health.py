"""No worker that has stopped reading, fetching, following or committing calls itself ready."""

import asyncio
import dataclasses
import json

import aiohttp
import pytest
from aiokafka.consumer.fetcher import Fetcher

from streams.broker.reaper import temporary_broker
from streams.engine.changelogs.replica import Replica
from streams.faust.app import WebConfig
from streams.faust.fetching import Fetching
from tests.streams.app_kit import worker
from tests.streams.engine_kit import config, create_topics, done, ids, produce, spec, until

ANY = WebConfig(port=0)
WITHIN = 90


async def page(app, path):
    host, port = app.web.address
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{port}{path}") as answer,
    ):
        return answer.status, json.loads(await answer.text())


async def eventually(app, holds):
    async with asyncio.timeout(WITHIN):
        while not holds(answer := await page(app, "/readyz")):  # noqa: ASYNC110 - it is asked for
            await asyncio.sleep(0.2)
    return answer[1]


async def test_a_broker_that_is_silent_or_gone_is_named_until_it_is_back(prefix, tmp_path):
    with temporary_broker() as broker:
        conf, agent = config(broker.address, prefix, tmp_path), spec(prefix)
        await create_topics(broker.address, conf, [agent], prefix + "out")
        node = broker.nodes[0]
        sentence = f"the broker at {broker.address} does not answer"
        async with worker(conf, agent, web=ANY) as app:
            await eventually(app, lambda answer: answer[0] == 200)
            for away, back in ((node.pause, node.resume), (node.kill, node.start)):
                await asyncio.to_thread(away)
                # The coordinator may be missed first; in the end all of the broker is.
                report = await eventually(
                    app, lambda answer: answer[1]["verdict"]["cause"] == "broker_away"
                )
                assert report["verdict"]["text"] == report["trouble"][0] == sentence
                # A restart would not help, so a container is not restarted for it.
                assert (await page(app, "/healthz"))[0] == 200
                await asyncio.to_thread(back)
                report = await eventually(app, lambda answer: answer[0] == 200)
                assert report["verdict"]["level"] == "well"
            assert not app.crashed


def poison_reading(monkeypatch):
    async def fail(*_args, **_options):
        raise ValueError("a record that nobody can read")

    monkeypatch.setattr(Fetching, "_fetch_records", fail)


def poison_fetching(monkeypatch):
    def fail(*_args):
        raise ValueError("an answer that nobody can read")

    monkeypatch.setattr(Fetcher, "_get_actions_per_node", fail)


def poison_following(monkeypatch):
    def fail(*_args):
        raise ValueError("a changelog that nobody can read")

    monkeypatch.setattr(Replica, "apply", fail)


@pytest.mark.parametrize("poison", [poison_reading, poison_fetching, poison_following])
async def test_a_part_that_crashes_ends_its_worker(
    poison, broker_address, prefix, tmp_path, monkeypatch
):
    conf = config(broker_address, prefix, tmp_path)
    agent = dataclasses.replace(spec(prefix), follow=True)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", ids(range(10)))
    async with worker(conf, agent, web=ANY) as app:
        await until(lambda: done(app.engine, 10))
        poison(monkeypatch)
        await produce(broker_address, prefix + "in", ids(range(10, 20)))
        async with asyncio.timeout(WITHIN):
            await app.wait_until_stopped()
        assert app.crashed
        monkeypatch.undo()


async def test_a_worker_without_partitions_proves_that_it_reads_too(
    broker_address, prefix, tmp_path
):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    elsewhere = dataclasses.replace(conf, state=tmp_path / "other")
    async with worker(conf, agent) as first, worker(elsewhere, agent) as second:
        engines = (first.engine, second.engine)
        await until(lambda: all(engine.joined for engine in engines), WITHIN)
        await until(lambda: sum(len(engine.tasks) for engine in engines) == 1, WITHIN)
        idle = first if not first.engine.tasks else second
        for _ in range(3):
            before = idle.consumer._turned
            await until(lambda: idle.consumer._turned > before, WITHIN)  # noqa: B023 - at once
        await until(lambda: idle.engine.verdict().well, WITHIN)


async def test_a_loop_that_hangs_is_named_and_the_process_is_not_alive(
    broker_address, prefix, tmp_path, monkeypatch
):
    conf = config(broker_address, prefix, tmp_path, silent_after=2.0, hung_after=4.0)
    agent = spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    released = asyncio.Event()
    fetch = Fetching._fetch_records

    async def hang(*arguments, **options):
        await released.wait()
        return await fetch(*arguments, **options)

    async with worker(conf, agent, web=ANY) as app:
        await eventually(app, lambda answer: answer[0] == 200)
        monkeypatch.setattr(Fetching, "_fetch_records", hang)
        report = await eventually(
            app, lambda answer: answer[1]["verdict"]["cause"] == "not_reading"
        )
        assert report["verdict"]["text"].startswith("nothing has been read for")
        async with asyncio.timeout(WITHIN):
            while (await page(app, "/healthz"))[0] == 200:  # noqa: ASYNC110 - it is asked for
                await asyncio.sleep(0.2)
        assert "not reading for" in (await page(app, "/healthz"))[1]["status"]
        released.set()
        await eventually(app, lambda answer: answer[0] == 200)
        assert (await page(app, "/healthz"))[0] == 200
