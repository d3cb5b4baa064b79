"""The engine on a broker that demands TLS and a password: two agents in a row, exactly once."""

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streams.engine import AgentSpec, EngineConfig
from streams.engine.state import CountsTable, EntriesTable
from streams.kafka.admin import create
from streams.kafka.connection import admin_client
from streams.kafka.security import client_arguments
from streams.kafka.topics import Topic
from tests.streams.app_kit import worker
from tests.streams.engine_kit import CELLS, Counting, done, ids, until

RECORDS = 2_000


def counting(name, source, sink):
    return AgentSpec(
        name,
        (source,),
        lambda: [CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")],
        lambda context: Counting(context, sink),
    )


async def read(client, topic, count):
    consumer = AIOKafkaConsumer(
        topic, **client, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    async with consumer:
        return [(await consumer.getone()).value for _ in range(count)]


async def test_two_agents_in_a_row_on_a_secure_broker(secure_broker, prefix, tmp_path):
    settings = secure_broker.settings()
    client = client_arguments(settings)
    client.pop("request_timeout_ms")
    config = EngineConfig(prefix.rstrip("."), prefix, client, tmp_path, f"{prefix}deadletter")
    agents = [
        counting("first", f"{prefix}in", f"{prefix}middle"),
        counting("second", f"{prefix}middle", f"{prefix}out"),
    ]
    logs = [config.changelog(each.name) for each in agents]
    logs += [config.shared_changelog(each.name) for each in agents]
    names = [f"{prefix}{name}" for name in ("in", "middle", "out", "deadletter")]
    async with admin_client(settings) as admin:
        compact = {"cleanup.policy": "compact"}
        await create(admin, [Topic(name, 1, 1) for name in names])
        await create(admin, [Topic(name, 1, 1, compact) for name in logs])
    async with AIOKafkaProducer(**client, linger_ms=5) as producer:
        for value in [*ids(range(RECORDS)), b"not JSON"]:
            await producer.send(f"{prefix}in", value)
    async with worker(config, *agents) as app:
        await until(lambda: done(app.engine, 2 * RECORDS + 1), 60)
    out = [orjson.loads(value)["id"] for value in await read(client, f"{prefix}out", RECORDS)]
    assert out == list(range(RECORDS))
    assert await read(client, f"{prefix}deadletter", 1) == [b"not JSON"]
