"""The application: pages on loopback only, no tables served, red when commits are stuck."""

import asyncio
import json
import socket
from datetime import timedelta

import aiohttp
import pytest

from settings.errors import HbError
from streams.engine.config import engine_config
from streams.engine.tasks.commit import Step
from streams.engine.tasks.task import Phase
from streams.faust.app import WebConfig, build_app, create_app
from streams.faust.web import free_socket
from tests.streams.app_kit import worker
from tests.streams.engine_kit import (
    PATIENCE,
    config,
    create_topics,
    done,
    ids,
    produce,
    spec,
    until,
)
from tests.streams.settings_kit import settings

ANY = WebConfig(port=0)


async def get(app, path):
    host, port = app.web.address
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{port}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def readiness(app, status, text=""):
    """Wait until the page has this status and says this; it is served, not told."""
    async with asyncio.timeout(PATIENCE):
        while (page := await get(app, "/readyz"))[0] != status or text not in page[1]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return json.loads(page[1])


async def test_pages_and_nothing_else(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    async with worker(conf, agent, web=ANY) as app:
        assert (await get(app, "/healthz"))[0] == 200
        report = await readiness(app, 200)
        assert (report["ready"], report["trouble"]) == (True, [])
        for path in ("/", "/table/", "/tables/", "/router/", "/stats/", "/graph/"):
            assert (await get(app, path))[0] == 404
        assert app.web.address[0] == "127.0.0.1"


async def test_a_rebalance_that_does_not_end_turns_readiness_red_and_back(
    broker_address, prefix, tmp_path
):
    conf, agent = config(broker_address, prefix, tmp_path, stuck_after=0.1), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    async with worker(conf, agent, web=ANY) as app:
        await until(lambda: not app.engine.trouble())
        app.consumer.stop_flow()
        await readiness(app, 503, "a rebalance does not end")
        app.consumer.resume_flow()
        await readiness(app, 200)


async def test_a_stuck_commit_turns_readiness_red_and_back(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path, stuck_after=0.3), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", ids(range(10)))
    stuck, go = asyncio.Event(), asyncio.Event()

    async def hold(step):
        if step is Step.BEGUN:
            stuck.set()
            await go.wait()

    app = build_app(conf, ANY, hook=hold)
    app.add_agent(agent)
    app.finalize()
    async with app:
        await asyncio.wait_for(stuck.wait(), PATIENCE)
        await readiness(app, 503, "task count/0 has not committed for")
        go.set()
        await until(lambda: done(app.engine, 10))
        await readiness(app, 200)


async def test_a_failed_task_turns_readiness_red(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path, retries=0), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", [b'{"id":-1}'])
    async with worker(conf, agent, web=ANY) as app:
        await until(lambda: [s.phase for s in app.engine.statuses()] == [Phase.FAILED])
        await readiness(app, 503, "task count/0 is failed: RuntimeError in agent count")


def test_the_next_free_port_is_taken():
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with free_socket("127.0.0.1", port) as free:
            assert port < free.getsockname()[1] < port + 100


def test_an_address_that_is_not_ours_is_refused_in_one_sentence():
    with pytest.raises(HbError, match=r"cannot serve web pages on 203\.0\.113\.1"):
        free_socket("203.0.113.1", 6066)


def test_settings_lead_to_the_engines_configuration(tmp_path):
    engine = engine_config(
        settings(state=tmp_path, batch_size=77, session_timeout=timedelta(seconds=6))
    )
    assert engine.app == "wdbc"
    assert engine.changelog("ensemble") == "wdbc.ensemble.changelog"
    assert engine.transactional_id("local.a", 3) == "wdbc.local.a.3"
    assert engine.deadletters == "wdbc.deadletter"
    assert engine.client["bootstrap_servers"] == ["localhost:9092"]
    assert (engine.max_records, engine.session_timeout, engine.state) == (77, 6.0, tmp_path)


def test_an_agent_cannot_take_the_inputs_of_another(tmp_path):
    app = create_app(settings(state=tmp_path))
    app.add_agent(spec("x."))
    with pytest.raises(HbError, match="taken"):
        app.add_agent(spec("x.", name="other"))
