"""`hb audit` on a real broker: nothing to find in a sound stream, everything that is planted."""

import asyncio
import contextlib
import re

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.errors import KafkaError
from engine_kit import committed
from pipeline_kit import (
    arrive,
    await_count,
    create_topics,
    label,
    patients,
    publish,
    running,
    settings,
)

from agents.ensemble_outputs import EnsembleOutputs
from audit import audit
from settings.loading import load_settings
from streams.engine.changelogs.changelog import META_KEY
from streams.kafka.connection import admin_client
from streams.kafka.topics import Topics, declared
from tests.cli_runs import Hb

N = 240


@pytest.fixture
def hb(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    return Hb(monkeypatch, capsys)


@pytest.fixture
def config(broker_address, prefix, tmp_path):
    settings(tmp_path, broker_address, prefix.strip(".-_"))
    file = tmp_path / "ensemble.toml"
    text = re.sub('fusion_timeout = ".*"', 'fusion_timeout = "5s"', file.read_text())
    file.write_text(text)
    loaded = load_settings(file)
    asyncio.run(create_topics(loaded))
    return loaded


def cut(features, part):
    return {name: column[part] for name, column in features.items()}


async def settled(config, n, *, learner="b"):
    await await_count(config, Topics.of(config).feedback(learner), n)


async def a_day(config, n=N):
    """Let patients come and most labels, with everything that goes wrong on a normal day."""
    ids, features, truth = patients(n)
    topics = Topics.of(config)
    address = config.broker.bootstrap
    half, settled_at = n // 2, n - 40
    audits = []
    async with running(config):
        # A patient that one learner only has seen: diagnosed without the others.
        lone = [("lone", {"v": 1, "id": "lone", "x": [0.5], "at": 1_700_000_000_000})]
        await publish(address, topics.instances("b"), lone)
        await arrive(config, ids[:half], cut(features, slice(half)))
        await label(config, ids[:half], truth[:half])
        audits.append(await audit(config))
        await arrive(config, ids[half:], cut(features, slice(half, n)))
        # The same patient again, one without features, a label twice, another one, one for nobody.
        await arrive(config, ids[:3], cut(features, slice(3)))
        await publish(address, topics.instances("a"), [("bad", {"v": 1, "id": "bad", "x": []})])
        await publish(address, topics.labels, [("bad", b"{"), ("bad", b"")])
        await label(config, ids[:5], truth[:5])
        await label(config, ids[5:7], [_other(word) for word in truth[5:7]])
        await label(config, ["nobody"], ["benign"])
        await label(config, [*ids[half:settled_at], "lone"], [*truth[half:settled_at], "benign"])
        audits.append(await audit(config))
        await settled(config, settled_at + 1)
    return audits


def _other(word):
    return "benign" if word == "malignant" else "malignant"


def test_a_sound_stream_is_clean_and_what_is_planted_is_found(config, hb, tmp_path):
    audits = asyncio.run(a_day(config))
    for report in audits:
        assert report.findings.clean, report.findings.list()
    report = asyncio.run(audit(config))
    assert report.findings.clean, report.findings.list()
    figures = report.figures()
    expected = {
        "patients": N + 1,
        "instances": 3 * (N + 3) + 1,
        "predictions": 3 * (N + 3) + 1,
        "diagnoses": N + 1,
        "diagnoses_incomplete": 1,
        "labels_settled": N - 40 + 1,
        "labels_repeated": 5,
        "labels_conflict": 2,
        "labels_waiting": 1,
        "bad_records": 3,
        "dead_letters": 5,
        "feedback": 3 * (N - 40) + 1,
    }
    assert {name: figures[name] for name in expected} == expected
    assert {name: c.note for name, c in report.findings.tables.items() if c.note} == {}
    assert report.findings.tables["local.c model lr"].values > 0
    assert report.vouched_from is None

    # A feedback record twice.
    topics = Topics.of(config)
    asyncio.run(double(config, topics.feedback("a")))
    figures = found(hb, tmp_path)
    assert figures["double"] == 1
    assert figures["lost"] == 0
    # An altered count.
    before = figures["differing"]
    asyncio.run(alter(config, topics.shared("local.b"), b"counts/"))
    assert found(hb, tmp_path)["differing"] == before + 1


def found(hb, folder):
    run = hb("audit", "--settings", folder / "ensemble.toml", "--json")
    assert run.code == 1
    assert not run.json["clean"]
    return run.json["figures"]


async def double(config, topic):
    """Write a record of a topic a second time."""
    record = (await committed(config.broker.bootstrap, topic))[17]
    async with AIOKafkaProducer(bootstrap_servers=config.broker.bootstrap) as producer:
        await producer.send_and_wait(topic, record.value, key=record.key)


async def alter(config, changelog, prefix):
    """Add one to a count in a changelog."""
    records = await committed(config.broker.bootstrap, changelog)
    record = next(r for r in records[::-1] if r.key.startswith(prefix))
    row = np.frombuffer(record.value, np.int64).copy()
    row[0] += 1
    async with AIOKafkaProducer(bootstrap_servers=config.broker.bootstrap) as producer:
        await producer.send_and_wait(changelog, row.tobytes(), key=record.key)


async def short_day(config):
    ids, features, truth = patients(60)
    async with running(config):
        if config.ensemble.context is not None:
            contexts = [
                (name, {"v": 1, "id": name, "x": [float(y)], "at": 1_700_000_000_000})
                for name, y in zip(ids, features["y"], strict=True)
            ]
            await publish(config.broker.bootstrap, Topics.of(config).contexts, contexts)
        await arrive(config, ids, features)
        await label(config, ids, truth)
        await settled(config, 60)
        await settled(config, 60, learner="c")


def test_a_dropped_feedback_is_found(config, monkeypatch, hb, tmp_path):
    sent = EnsembleOutputs.send_feedback

    def forgetful(self, cases, out, others=None):
        """Drop the feedback of one patient to the first learner."""
        for case in cases:
            if case.id == "p000030":
                case.payloads = (None, *case.payloads[1:])
        sent(self, cases, out, others)

    monkeypatch.setattr(EnsembleOutputs, "send_feedback", forgetful)
    asyncio.run(short_day(config))
    figures = found(hb, tmp_path)
    assert (figures["lost"], figures["double"], figures["differing"]) == (1, 0, 0)


def test_people_get_tables_and_hear_what_retention_removed(config, hb, tmp_path):
    asyncio.run(short_day(config))
    run = hb("audit", "--settings", tmp_path / "ensemble.toml")
    assert run.code == 0
    assert "0 lost, 0 double, 0 differing" in run.out
    assert "local.a counts" in run.out
    asyncio.run(remove(config, Topics.of(config).instances("c"), before=40))
    run = hb("audit", "--settings", tmp_path / "ensemble.toml")
    assert run.code == 0
    assert "begins at offset 40" in run.out
    assert "covers patients from" in run.out
    assert "the first instances are gone" in run.out


async def remove(config, topic, before):
    async with admin_client(config.broker) as admin:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before)})


CONTEXT = """
[ensemble.context]
cuts = 2
features = [{ name = "y", low = 0.0, high = 1.0 }]
"""


@pytest.mark.parametrize(
    ("change", "section"),
    [
        (("topics.partitions=2", "ensemble.mode=ah"), ""),
        (("ensemble.mode=committee",), ""),
        (("ensemble.mode=ch",), CONTEXT),
    ],
    ids=["partitions", "committee", "contexts"],
)
def test_every_kind_of_table_is_recomputed(broker_address, prefix, tmp_path, change, section):
    settings(tmp_path, broker_address, prefix.strip(".-_"))
    file = tmp_path / "ensemble.toml"
    file.write_text(file.read_text().replace("[broker]", f"{section}\n[broker]"))
    config = load_settings(file, change)
    asyncio.run(create_topics(config))
    asyncio.run(short_day(config))
    report = asyncio.run(audit(config))
    assert report.findings.clean, report.findings.list()
    tables = report.findings.tables
    # Chances depend on what a partition had heard of the others, which no topic tells.
    expected = ["what a partition had heard of the others"] if config.topics.partitions > 1 else []
    notes = [check.note for check in tables.values() if check.note]
    assert len(notes) == len(expected)
    assert all(text in note for text, note in zip(expected, notes, strict=True))
    assert all(check.values for name, check in tables.items() if name.startswith("ensemble fusion"))
    assert report.figures()["labels_settled"] == 60


def test_whatever_is_on_the_topics_is_reported_and_never_raised(config, hb, tmp_path):
    asyncio.run(short_day(config))
    topics = Topics.of(config)
    every = [topic.name for topic in declared(config)]
    asyncio.run(scatter(config, every))
    run = hb("audit", "--settings", tmp_path / "ensemble.toml", "--json")
    assert run.code == 1
    whats = {finding["what"] for finding in run.json["findings"]}
    assert {
        "records of tables that these settings do not lead to",
        "records of positions that cannot be read",
        "rows of table counts that cannot be read",
        "diagnoses that cannot be read",
    } <= whats
    # What can be compared still is.
    assert run.json["tables"]["local.a counts"]["values"] > 0
    # Other settings than those of the workers.
    renamed = ("--set", "name=other", "--set", f"topics.prefix={config.topics.prefix}")
    run = hb("audit", "--settings", tmp_path / "ensemble.toml", *renamed)
    assert run.code == 1
    assert "owner of the state" in run.out
    # A topic that is gone.
    asyncio.run(delete(config, topics.diagnoses))
    run = hb("audit", "--settings", tmp_path / "ensemble.toml")
    assert run.code == 1
    assert f"topic partition that does not exist at {topics.diagnoses}/0" in run.out
    assert "Traceback" not in run.out + run.err


async def scatter(config, names):
    """Write unusable records to some topics."""
    odd = [
        (None, b"\xff\x00"),
        (b"\xff", b"{}"),
        (b"counts/short", b"1"),
        (b"pending/p1", b"\xc1"),
        (b"models/lr", b"\x00"),
        (META_KEY, b"[]"),
    ]
    async with AIOKafkaProducer(bootstrap_servers=config.broker.bootstrap) as producer:
        for name in names:
            for key, value in odd:
                with contextlib.suppress(KafkaError):  # a compacted topic demands a key
                    await producer.send_and_wait(name, value, key=key, partition=0)


async def delete(config, topic):
    async with admin_client(config.broker) as admin:
        await admin.delete_topics([topic])
        while topic in {description["topic"] for description in await admin.describe_topics()}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # a broker does not announce that a topic is gone
