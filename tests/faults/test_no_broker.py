"""A worker without a broker: it waits where that helps, and says in one sentence what is wrong."""

import asyncio
import logging
from datetime import timedelta

from streams.broker.reaper import temporary_broker
from streams.engine.config import engine_config
from streams.faust.app import create_app
from tests.streams.engine_kit import create_topics, done, ids, produce, spec, until
from tests.streams.settings_kit import settings


async def test_a_broker_that_comes_later_is_waited_for(prefix, tmp_path, caplog):
    with temporary_broker() as broker:
        address = broker.address
        local = settings(prefix.rstrip("."), address, state=tmp_path, web_port=0)
        agent, conf = spec(prefix), engine_config(local)
        await create_topics(address, conf, [agent], prefix + "out")
        await produce(address, prefix + "in", ids(range(10)))
        await asyncio.to_thread(broker.nodes[0].stop)
        brief = local.broker.model_copy(update={"patience": timedelta(seconds=1)})
        app = create_app(local.model_copy(update={"broker": brief}))
        app.add_agent(agent)
        app.finalize()
        with caplog.at_level(logging.WARNING, "streams"):
            starting = asyncio.create_task(app.start())
            await until(lambda: "still trying" in caplog.text)
        assert f"cannot connect to {address}" in caplog.text
        await asyncio.to_thread(broker.nodes[0].start)
        await asyncio.wait_for(starting, 120)
        await until(lambda: done(app.engine, 10))
        await app.stop()
