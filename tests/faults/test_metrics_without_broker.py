"""The only broker goes away: a scrape still works, says how old its figures are, and recovers."""

import asyncio

import aiohttp
from pipeline_kit import arrive, await_count, create_topics, patients, running, settings
from prometheus_client.parser import text_string_to_metric_families

from streams.broker.reaper import temporary_broker
from streams.kafka.topics import Topics

N = 20
PATIENCE = 120
DONE, AGE = ("hb_fusions_total", "true"), ("hb_state_age_seconds",)


async def scrape(app):
    """Return the values of a worker's metrics, by name and labels but the ensemble's."""
    host, port = app.web.address
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session,
        session.get(f"http://{host}:{port}/metrics") as answer,
    ):
        assert answer.status == 200
        text = await answer.text()
    return {
        (sample.name, *(v for k, v in sample.labels.items() if k != "ensemble")): sample.value
        for metric in text_string_to_metric_families(text)
        for sample in metric.samples
    }


async def eventually(app, holds):
    async with asyncio.timeout(PATIENCE):
        while not holds(samples := await scrape(app)):  # noqa: ASYNC110 - it is served, not told
            await asyncio.sleep(0.2)
    return samples


async def test_a_scrape_needs_no_broker(tmp_path):
    with temporary_broker() as broker:
        config = settings(tmp_path, broker.address, "lone")
        await create_topics(config)
        ids, features, _ = patients(N)
        async with running(config) as app:
            await arrive(config, ids, features)
            await await_count(config, Topics.of(config).diagnoses, N)
            before = await eventually(app, lambda samples: samples[DONE] == N and samples[AGE] < 2)
            await asyncio.to_thread(broker.nodes[0].kill)
            gone = await eventually(app, lambda samples: samples[AGE] > 3)
            assert gone[DONE] == before[DONE]
            assert gone["hb_diagnoses_total", "true"] == N
            await asyncio.to_thread(broker.nodes[0].start)
            back = await eventually(app, lambda samples: samples[AGE] < 2)
            assert back[DONE] == N
