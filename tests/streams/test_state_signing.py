"""State on the broker that is signed: what another program writes there is refused, however valid.

The forger here may write to the changelog, as a broker's administrator may, and has no key.
"""

import shutil
from base64 import b64encode
from dataclasses import replace

import pipeline_kit as pipeline
import pytest
from aiokafka import AIOKafkaProducer

from audit import audit
from settings.loading import load_settings
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.changelogs.signing import HEADER, Signer
from streams.engine.tasks.task import Phase
from streams.kafka.topics import Topics
from tests.streams.engine_kit import (
    committed,
    config,
    create_topics,
    done,
    ids,
    produce,
    running,
    spec,
    until,
)

OLD, NEW = bytes(32), bytes(range(32))


def signed(agent, **keys):
    """Return an agent whose state is signed with the first of these keys."""
    return replace(agent, signer=lambda: Signer(keys) if keys else None)


@pytest.fixture
async def taught(broker_address, prefix, tmp_path):
    """An agent that has counted 200 ids with the key `old`, and how it is run."""
    conf, agent = config(broker_address, prefix, tmp_path / "a"), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", ids(range(200)))
    async with running(conf, signed(agent, old=OLD)) as group:
        await until(lambda: done(group, 200))
    return conf, agent


async def restored(conf, agent, folder):
    """Return the ids that a task remembers after reading its changelog into an empty folder."""
    async with running(replace(conf, state=folder), agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.RUNNING)
        return len(group.tasks["count", 0].session._tables[1])


async def refusal(conf, agent, folder):
    """Return why a task does not open on an empty folder."""
    async with running(replace(conf, state=folder), agent) as group:
        await until(lambda: group.statuses()[0].phase is Phase.FAILED)
        return group.statuses()[0].reason


async def test_what_was_signed_is_read_back_and_keys_change(taught, broker_address, tmp_path):
    conf, agent = taught
    assert await restored(conf, signed(agent, old=OLD), tmp_path / "b") == 200
    both = signed(agent, new=NEW, old=OLD)
    await produce(broker_address, agent.inputs[0], ids(range(200, 210)))
    async with running(conf, both) as group:
        await until(lambda: done(group, 10))
    assert await restored(conf, both, tmp_path / "c") == 210
    assert "not signed with a key that is known" in await refusal(
        conf, signed(agent, new=NEW), tmp_path / "d"
    )


async def forge(address, topic, key, value, headers=()):
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait(topic, value, key, partition=0, headers=list(headers))


async def test_a_valid_number_of_somebody_else_is_refused(taught, broker_address, tmp_path):
    conf, agent = taught
    topic = conf.shared_changelog("count")
    entry = next(r for r in await committed(broker_address, topic) if r.key[:7] == b"counts/")
    more = (int.from_bytes(entry.value, "little") + 1).to_bytes(8, "little")
    await forge(broker_address, topic, entry.key, more, entry.headers)
    assert await restored(conf, agent, tmp_path / "b") == 200, "who asks for no key takes it"
    reason = await refusal(conf, signed(agent, old=OLD), tmp_path / "c")
    assert f"{topic}/0" in reason
    assert "does not fit its signature" in reason


@pytest.mark.parametrize("how", ["moved", "deleted", "unsigned", "positions"])
async def test_no_entry_can_be_moved_deleted_or_added(how, taught, broker_address, tmp_path):
    conf, agent = taught
    topic = conf.changelog("count")
    records = await committed(broker_address, topic)
    one, other = [r for r in records if r.key[:5] == b"seen/"][:2]
    meta = [r for r in records if r.key == META_KEY][-1]
    key, value, headers = {
        "moved": (other.key, one.value, one.headers),
        "deleted": (one.key, None, one.headers),
        "unsigned": (b"seen/900", b"1", ()),
        "positions": (META_KEY, meta.value.replace(b":200}", b":100}"), meta.headers),
    }[how]
    await forge(broker_address, topic, key, value, headers)
    assert (
        "signature" in (reason := await refusal(conf, signed(agent, old=OLD), tmp_path / "b"))
        or "is not signed" in reason
    )


async def test_state_from_before_there_was_a_key_is_refused(broker_address, prefix, tmp_path):
    conf, agent = config(broker_address, prefix, tmp_path / "a"), spec(prefix)
    await create_topics(broker_address, conf, [agent], prefix + "out")
    await produce(broker_address, prefix + "in", ids(range(20)))
    async with running(conf, agent) as group:
        await until(lambda: done(group, 20))
    reason = await refusal(conf, signed(agent, old=OLD), tmp_path / "b")
    assert "from before there were keys" in reason


async def test_an_ensemble_signs_all_its_state_and_reads_it_back(broker_address, prefix, tmp_path):
    agents = ("a", "b", "c", "ensemble")
    for number, name in enumerate(agents):
        (tmp_path / name).write_text(b64encode(bytes([number]) * 32).decode())
    listed = ", ".join(f'{name}=[{{id="k", file="{tmp_path / name}"}}]' for name in agents)
    pipeline.settings(tmp_path, broker_address, prefix.strip("."), "topics.partitions=2")
    overrides = ["topics.partitions=2", f"privacy.state_keys={{{listed}}}"]
    conf = load_settings(tmp_path / "ensemble.toml", overrides)
    await pipeline.create_topics(conf)
    patients, features, truth = pipeline.patients(40)
    async with pipeline.running(conf):
        await pipeline.arrive(conf, patients, features)
        await pipeline.label(conf, patients, truth)
        await pipeline.await_state(conf, lambda state: pipeline.learned(state, 40))
    topics = Topics.of(conf)
    records = [
        record
        for agent in topics.agents
        for name in topics.states_of(agent)
        for record in await committed(broker_address, name)
    ]
    assert records
    assert all(HEADER in dict(record.headers) for record in records)
    shutil.rmtree(tmp_path / "state")
    async with pipeline.running(conf):
        await pipeline.arrive(conf, ["one more"], {name: col[:1] for name, col in features.items()})
        await pipeline.label(conf, ["one more"], truth[:1])
        await pipeline.await_state(conf, lambda state: pipeline.learned(state, 41))
    assert (await audit(conf)).findings.list() == []
