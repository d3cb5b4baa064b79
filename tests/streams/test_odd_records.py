"""What others may write: it is read or goes to the dead letters; patients are diagnosed."""

import dataclasses
import hashlib

import engine_kit
import orjson
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from engine_kit import Counting, committed, until
from pipeline_kit import (
    arrive,
    await_count,
    await_letters,
    await_raw,
    create_topics,
    dead_letters,
    patients,
    running,
    settings,
)

from audit.end_to_end import audit
from bench.hostile.wire import Raw, record_batch
from schemas.deadletters import from_message
from streams.clock import wall
from streams.engine.tasks.task import Phase
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics, declared

LABEL = b'{"v":1,"id":"%s","label":"benign","at":5}'


@pytest.fixture
async def config(broker_address, prefix, tmp_path):
    local = settings(tmp_path, broker_address, prefix.strip(".-_"))
    await create_topics(local)
    return local


async def write(config, topic, key, value, *, at=None, headers=(), partition=0):
    """Write one record with bytes of our own."""
    async with AIOKafkaProducer(bootstrap_servers=config.broker.bootstrap) as producer:
        batch = producer.create_batch()
        batch._buffer = record_batch(Raw(wall() if at is None else at, key, value, headers))
        batch._relative_offset = 1
        batch.close()
        await (await producer.send_batch(batch, topic, partition=partition))


async def compressed(config, topic, codec, *values):
    """Write values in one compressed batch."""
    producer = AIOKafkaProducer(
        bootstrap_servers=config.broker.bootstrap,
        compression_type=codec,
        max_request_size=1 << 30,
        max_batch_size=1 << 30,
    )
    async with producer:
        batch = producer.create_batch()
        for value in values:
            batch.append(timestamp=wall(), key=b"k", value=value)
        await (await producer.send_batch(batch, topic, partition=0))


async def letters(config, count):
    records = await await_letters(config, count)
    return [from_message(record.headers, record.key, record.value) for record in records]


async def diagnosed(config, count, seed):
    """Let patients come, and wait for their diagnoses."""
    ids, features, _ = patients(count, seed)
    ids = [f"{seed}-{name}" for name in ids]
    topics = Topics.of(config)
    before = len(await committed(config.broker.bootstrap, topics.diagnoses))
    await arrive(config, ids, features)
    await await_count(config, topics.diagnoses, before + count)


async def test_no_header_codec_or_size_ends_the_reading(config):
    topics = Topics.of(config)
    row = b'{"v":1,"id":"h","x":[0.1,0.2],"at":5}'
    large = LABEL % (b"a" * (3 << 20))
    async with running(config) as app:
        await write(config, topics.instances("a"), b"h", row, headers=((b"\xff\xfe", b"1"),))
        await write(config, topics.labels, b"h", b"{", headers=((b"\xc3\x28", None),))
        await write(config, topics.labels, b"h", b"{", headers=((b"h", bytes(600 << 10)),))
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            await compressed(config, topics.labels, codec, large, LABEL % codec.encode())
        await compressed(config, topics.labels, "zstd", LABEL % b"b", bytes(70 << 20))
        await compressed(config, topics.labels, "zstd", *[None] * 300_000)
        await diagnosed(config, 20, seed=1)
        dead = await letters(config, 2 + 4 + 2)
        predictions = await await_count(config, topics.predictions, 61)
        await until(lambda: not app.engine.trouble())
    assert "h" in {prediction["id"] for prediction in predictions}
    assert [letter.reason for letter in dead] == ["malformed"] * 2 + ["too_large"] * 6
    for letter in dead[2:6]:
        assert letter.value is None
        assert letter.size == len(large)
        assert letter.sha256 == hashlib.sha256(large).hexdigest()
    for letter in dead[6:]:  # of batches that were never unpacked: as they were fetched
        assert letter.size < 1_000_000


class Growing(Counting):
    """Writes an output, or a row, as long as a record asks for."""

    def process(self, batch, out):
        for value in batch.values:
            asked = orjson.loads(value)
            if "row" in asked:
                self.seen.put(b"row", bytes(asked["row"]))
            else:
                out.emit_many(self.output, [b"k"], [bytes(asked["out"])], [wall()])


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"out": 2 << 20}, "larger than the 1000000 bytes"),
        ({"row": 17 << 20}, "larger than the 16777216 bytes"),
        ({"row": 2 << 20}, "hb topics check --alter"),  # this changelog is not as declared
    ],
)
async def test_what_cannot_be_written_stops_its_task_with_a_message(
    broker_address, prefix, tmp_path, asked, reason
):
    conf = engine_kit.config(broker_address, prefix, tmp_path)
    agent = dataclasses.replace(
        engine_kit.spec(prefix), processor=lambda context: Growing(context, prefix + "out")
    )
    await engine_kit.create_topics(broker_address, conf, [agent], prefix + "out")
    await engine_kit.produce(broker_address, prefix + "in", [orjson.dumps(asked)])
    async with engine_kit.running(conf, agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
        assert reason in group.statuses()[0].reason
        assert prefix in group.statuses()[0].reason
        assert group.statuses()[0].reopenings == 0


async def test_rows_larger_than_a_brokers_default_are_written_and_restored(
    broker_address, prefix, tmp_path
):
    config = settings(tmp_path, broker_address, prefix.strip(".-_"))
    await create_topics(config)
    changelog = Topics.of(config).changelog("ensemble")
    assert next(t for t in declared(config) if t.name == changelog).config["max.message.bytes"]
    async with AIOKafkaProducer(bootstrap_servers=broker_address) as producer:
        batch = producer.create_batch()
        batch._buffer = record_batch(Raw(wall(), b"k", bytes(15 << 20)))
        batch._relative_offset = 1
        batch.close()
        await (await producer.send_batch(batch, changelog, partition=0))
    (record,) = await committed(broker_address, changelog)
    assert len(record.value) == 15 << 20


async def test_no_record_moves_the_clock_ahead_of_time(broker_address, prefix, tmp_path):
    """Nor does one without a time end a learner; who waits is diagnosed after the time-out."""
    config = settings(tmp_path, broker_address, prefix.strip(".-_"), "ensemble.fusion_timeout=1s")
    await create_topics(config)
    topics, now = Topics.of(config), wall()
    row = {"a": b"[0.1,0.2]", "b": b"[0.3]", "c": b"[0.1,0.3]"}
    stamps = {"none": -1, "zero": 0, "ahead": now + 3_500_000}
    async with running(config) as app:
        for name, at in stamps.items():
            label = LABEL % name.encode()
            for learner, x in row.items():
                value = b'{"v":1,"id":"%s","x":%s,"at":5}' % (name.encode(), x)
                await write(config, topics.instances(learner), name.encode(), value, at=at)
            await write(config, topics.labels, name.encode(), label, at=at)
        await write(config, topics.instances("a"), b"w", b'{"v":1,"id":"w","x":[0,0],"at":5}')
        diagnoses = await await_count(config, topics.diagnoses, 4)
        ledger = app.engine.tasks["ensemble", 0].session._processor.learner.ledger
        await until(lambda: ledger.counts["settled"] == len(stamps))
        await until(lambda: not app.engine.trouble())
        assert ledger.clock <= wall()
    assert sorted(d["id"] for d in diagnoses) == ["ahead", "none", "w", "zero"]
    assert all(d["at"] <= wall() for d in diagnoses)
    assert await dead_letters(config) == []


async def test_what_is_on_the_wrong_partition_is_refused_at_once(broker_address, prefix, tmp_path):
    """As librdkafka chooses partitions, unless it is told otherwise."""
    config = settings(tmp_path, broker_address, prefix.strip(".-_"), "topics.partitions=4")
    await create_topics(config)
    topics = Topics.of(config)
    ids, features, _ = patients(12)
    foreign = Producer({"bootstrap.servers": broker_address})
    async with running(config):
        await arrive(config, ids, features)
        diagnoses = await await_count(config, topics.diagnoses, 12)
        for name in ids:
            foreign.produce(topics.labels, LABEL % name.encode(), name.encode())
        foreign.flush()
        written = await await_raw(config, topics.labels, 12)
        strays = [r for r in written if r.partition != partition_of(r.key, 4)]
        dead = await letters(config, len(strays))
        for learner in config.learners:
            await await_count(config, topics.feedback(learner), 12 - len(strays))
        assert len(diagnoses) == 12
        assert 0 < len(strays) < 12  # some are right by luck
        assert {(r.partition, r.offset) for r in strays} == {(d.partition, d.offset) for d in dead}
        assert {letter.reason for letter in dead} == {"wrong_partition"}
        report = await audit(config)
    assert report.findings.list() == []
