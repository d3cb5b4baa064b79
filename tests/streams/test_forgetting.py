"""A patient is erased on a real broker: afterwards no byte is left, and the audit passes.

Segments, compaction and deletion are hurried, so that what takes days takes seconds here.
"""

import asyncio
import contextlib
import itertools
import json
import shutil
from dataclasses import replace

import pytest
from engine_kit import PATIENCE
from pipeline_kit import (
    arrive,
    await_count,
    await_letters,
    create_topics,
    label,
    patients,
    publish,
    running,
    settings,
)
from test_planted_values import Search, forms

from agents.clients.client import Publisher
from agents.clients.forgetting import forget
from audit import audit
from streams.broker.reaper import temporary_broker
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import alter
from streams.kafka.topics import Topics, declared
from tests.cli_runs import Hb

VALUE = 0.7364519283641
VISITS = ("planted-5519", "planted-5520")
PERSON = "person-77120"
BYTES = [name.encode() for name in (*VISITS, PERSON)] + forms(VALUE)
HURRIED = {
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "100",
}


async def hurry(config):
    """Let segments end and be compacted within a second of the next write."""
    kinds = Topics.of(config).kinds
    sooner = {"max.compaction.lag.ms": "1000", "delete.retention.ms": "1000"}
    hurried = [
        replace(t, config={**t.config, **({"segment.ms": "4000"} if t.name in kinds else sooner)})
        for t in declared(config)
    ]
    async with admin_client(config.broker) as admin:
        await alter(admin, hurried)


async def plant(config):
    """Let patients come, two visits of one person among them; the first one's label is amended."""
    topics = Topics.of(config)
    ids, features, truth = patients(10)
    await arrive(config, ids, features)
    async with Publisher(config) as publisher:
        for name in VISITS:
            row = {"x": 0.4, "y": 0.5, "z": VALUE}
            await publisher.publish(row, id=name, subject=PERSON)
    broken = {"v": 1, "id": VISITS[0], "x": [VALUE, VALUE, VALUE], "at": 1}
    await publish(config.broker.bootstrap, topics.instances("a"), [(VISITS[0], broken)])
    await await_count(config, topics.diagnoses, 12)
    await label(config, [*ids[:5], VISITS[0]], [*truth[:5], "malignant"])
    await await_count(config, topics.feedback("c"), 6)
    amended = {"v": 1, "id": VISITS[0], "label": "benign", "at": 2, "amends": True}
    await publish(config.broker.bootstrap, topics.labels, [(VISITS[0], amended)])
    await await_count(config, topics.feedback("c"), 7)
    await await_letters(config, 1)


async def more(config, number):
    """Let something come on every topic."""
    _, features, truth = patients(1, number)
    await arrive(config, [f"later-{number}"], features)
    await label(config, [f"later-{number}"], truth)
    broken = [("later", {"v": 1, "id": "later", "x": [], "at": 1})]
    await publish(config.broker.bootstrap, Topics.of(config).instances("a"), broken)
    await asyncio.sleep(1)


async def purged(config, search):
    """Purge until it is done, and let more come until the broker has removed every byte."""
    numbers = itertools.count()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while (purge := await forget(config, VISITS, purge=True)).left or purge.missing:
                await more(config, next(numbers))
            while search.segments(BYTES):
                await more(config, next(numbers))
    assert search.segments(BYTES) == set()
    return purge


async def rewritten(search):
    """Wait until no file of a state folder names the person or holds a value."""
    async with asyncio.timeout(PATIENCE):
        while search.folders(BYTES):  # noqa: ASYNC110 - tasks rewrite their files
            await asyncio.sleep(0.1)


async def test_no_byte_is_left_and_the_audit_passes(prefix, tmp_path):
    with temporary_broker(changes=HURRIED) as broker:
        config = settings(tmp_path, broker.address, prefix.strip("."))
        await create_topics(config)
        await hurry(config)
        search = Search(broker.data, config.topics.prefix, tmp_path / "state")
        async with running(config):
            await plant(config)
            assert search.folders(BYTES) == {"local.c", "ensemble"}
            survey = await forget(config, VISITS, look_only=True)
            assert {place.topic.removeprefix(config.topics.prefix): place.records
                    for place in survey.kept.places.values()} == {
                "instances.a": 3, "instances.b": 2, "instances.c": 2, "predictions": 6,
                "diagnoses": 2, "labels": 2, "deadletter.a": 1,
                "feedback.a": 2, "feedback.b": 2, "feedback.c": 2,
            }  # fmt: skip
            outcome = await forget(config, VISITS)
            assert (outcome.missing, outcome.again) == ((), 0)
            report = await audit(config)
            assert report.findings.list() == []
            assert report.figures()["patients_erased"] == 2
            await rewritten(search)
        shutil.rmtree(tmp_path / "state")
        async with running(config):
            await rewritten(search)
            assert (await purged(config, search)).again == 2
            assert not (await forget(config, VISITS)).sent, "nothing is left to erase"
            report = await audit(config)
            assert report.findings.list() == []
            assert report.figures()["patients_erased"] == 2


@pytest.fixture
def hb(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    return Hb(monkeypatch, capsys)


def test_the_command_finds_all_visits_and_says_what_is_gone_when(
    broker_address, prefix, tmp_path, hb
):
    config = settings(tmp_path, broker_address, prefix.strip("."))
    chosen = ("--settings", tmp_path / "ensemble.toml")

    async def come():
        await create_topics(config)
        async with running(config):
            await plant(config)

    asyncio.run(come())
    shown = hb("forget", "nobody-knows", *chosen)
    assert "nothing is kept" in shown.out
    shown = hb("forget", "--subject", PERSON, "--dry-run", "--json", *chosen)
    report = json.loads(shown.out)
    assert (report["patients"], report["erasure_sent"]) == (2, False)
    assert {row["changelog"].removeprefix(prefix) for row in report["state"]} == {
        "local.c.changelog",
        "ensemble.changelog",
    }
    shown = hb("forget", "--subject", PERSON, "--wait", "0.1", *chosen)
    assert shown.code == 1
    assert "not yet confirmed by local.a, local.b, local.c, ensemble" in shown.out.replace("\n", "")
    assert not any(name in shown.out + shown.err for name in (*VISITS, PERSON))

    async def work():
        async with running(config):
            return await forget(config, VISITS)

    assert asyncio.run(work()).missing == ()
    shown = hb("forget", VISITS[1], *chosen)
    assert "erased: no agent keeps anything but a digest" in shown.out
