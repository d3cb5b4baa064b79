"""Every role works with its rights alone, and every right it should not have is refused.

On a real broker with TLS, passwords and access control: what is not allowed is denied.
"""

import asyncio
import contextlib
from dataclasses import replace
from math import fsum

import orjson
import pytest
from aiokafka.errors import TransactionalIdAuthorizationFailed
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.produce import ProduceRequest
from engine_kit import PATIENCE, START
from pipeline_kit import TOML, patients, settings

from agents.clients.one_patient import Patient, find_patient
from agents.clients.sender import Sender
from agents.clients.topic_reader import TopicReader
from agents.monitor.watch import look
from agents.worker import Worker
from audit.end_to_end import audit
from bench.hostile.wire import Raw, record_batch
from settings.errors import BrokerError
from settings.loading import load_settings
from streams.broker import USER
from streams.broker.reaper import temporary_broker
from streams.engine.config import engine_config
from streams.kafka.abilities import abilities
from streams.kafka.acls import add, compare, rules_of
from streams.kafka.connection import admin_client
from streams.kafka.rights import roles
from streams.kafka.topic_admin import create
from streams.kafka.topics import ENSEMBLE, Topics, declared, local

NAME = "clinic"
LEARNERS = ("a", "b", "c")
EXPLAINED = ("learners.c.reasons=true", 'learners.c.rules={lr={kind="bayes"}}')
TASKS = {local(name): f"local-{name}" for name in LEARNERS} | {ENSEMBLE: ENSEMBLE}
NO_TOPIC = 29
"""Kafka's code for a topic that a client is not authorised for."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """Settings of an ensemble, and a broker with a user for each of its roles."""
    folder = tmp_path_factory.mktemp("locked")
    file = folder / "ensemble.toml"
    file.write_text(TOML.format(name=NAME, address="", state=folder / "state"))
    loaded = load_settings(file, EXPLAINED, environ={})
    users = (USER, *(role.user for role in roles(loaded)))
    with temporary_broker(users=users, short_lived=True) as broker:
        yield broker


@pytest.fixture
def as_role(locked, tmp_path, prefix):
    """Return the settings of a role: the same ensemble, another log-in."""

    def of(role, own_prefix=prefix):
        user = USER if role is None else f"{NAME}-{role}"
        config = settings(tmp_path, "", NAME, f"topics.prefix={own_prefix}", *EXPLAINED)
        return config.model_copy(update={"broker": locked.settings(user)})

    return of


async def make_ready(as_role):
    """Add the access rules as administrator, then create the topics as operator."""
    config = as_role(None)
    async with admin_client(config.broker) as admin:
        difference = await compare(admin, roles(config))
        topics = {rule for rule in rules_of(roles(config)) if rule.right.resource == "topic"}
        assert topics <= {*difference.missing}
        await add(admin, difference.missing)
        left = await compare(admin, roles(config))
        assert left.missing == ()
    operator = as_role("operator")
    async with admin_client(operator.broker) as admin:
        await create(admin, declared(operator))


async def may(config, names):
    """Return which topics may be read, and which written, with these settings.

    A broker that has just created a topic may for a moment know neither way.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            codes = await _answers(config, names)
            if {code for answer in codes for code in answer.values()} <= {0, NO_TOPIC}:
                return [{topic for topic, code in answer.items() if code == 0} for answer in codes]
            await asyncio.sleep(0.2)


async def _answers(config, names):
    # Of now: a broker removes what is older than a topic's retention, and then has no offset 0.
    batch = record_batch(Raw(START, b"k", b"v"))
    async with admin_client(config.broker) as admin:
        asked = [(name, [(0, 0, 1)]) for name in names]
        read = await admin._send_request(FetchRequest(0, 0, 1 << 20, 0, asked))
        sent = [(name, [(0, batch)]) for name in names]
        written = await admin._send_request(ProduceRequest(None, -1, 10_000, sent))
    return [{topic: parts[0][1] for topic, parts in answer.topics} for answer in (read, written)]


async def test_the_table_of_roles_and_operations(as_role):
    await make_ready(as_role)
    topics = Topics.of(as_role(None))
    names = [topic.name for topic in declared(as_role(None))]
    for role in roles(as_role(None)):
        readable, writable = await may(as_role(role.name), names)
        granted = {
            operation: {r.name for r in role.rights if r.operation == operation} & {*names}
            for operation in ("read", "write")
        }
        assert readable == granted["read"], role.name
        assert writable == granted["write"], role.name
        instances = {topics.instances(name) for name in LEARNERS if role.name != f"local-{name}"}
        if role.name != "operator":
            assert readable.isdisjoint(instances), "nobody else reads what a learner sees"
            letters = {topics.deadletter_of(name) for name in LEARNERS}
            assert readable.isdisjoint(letters), "nor what it could not use"
        for agent, task in TASKS.items():
            if role.name != task:
                assert writable.isdisjoint({topics.changelog(agent), topics.shared(agent)})
        if role.name != "labels":
            assert topics.labels not in writable
        if role.name not in ("reader", "reasons-c", "operator"):
            assert topics.diagnoses not in readable
        if role.name not in ("reasons-c", "operator"):
            assert topics.reasons("c") not in readable, "as private as what the learner sees"
        assert (topics.reasons("c") in writable) == (role.name == "local-c")
    assert await may(as_role("reader"), names) == [{topics.diagnoses}, set()]
    why = {topics.diagnoses, topics.reasons("c")}
    assert await may(as_role("reasons-c"), names) == [why, set()]
    assert await may(as_role("labels"), names) == [set(), {topics.labels}]
    assert await may(as_role("producer-a"), names) == [set(), {topics.instances("a")}]


async def test_each_user_is_told_what_it_can_and_cannot_do(as_role):
    """Without doing any of it: what `hb broker check` shows is what the access rules grant."""
    config = as_role(None)
    async with admin_client(config.broker) as admin:
        able = await abilities(admin, config)
        assert able.roles == tuple(role.name for role in roles(config)), "the administrator"
        assert able.missing == {topic.name for topic in declared(config)}
    await make_ready(as_role)
    for role in roles(config):
        async with admin_client(as_role(role.name).broker) as admin:
            able = await abilities(admin, config)
        assert role.name in able.roles
        assert able.missing == frozenset()
        implied = {replace(r, operation="describe") for r in role.rights}
        assert able.rights - implied == role.rights - implied, role.name
        allowed = [
            candidate
            for candidate in roles(config)
            if not candidate.rights <= role.rights | implied
        ]
        assert not {candidate.name for candidate in allowed} & {*able.roles}


async def test_nobody_takes_the_place_of_a_task(as_role):
    """Who may start a producer under a task's transactional id would fence the task."""
    await make_ready(as_role)
    for agent, task in TASKS.items():
        for role in (task, "operator", "producer", "local-b"):
            config = engine_config(as_role(role))
            producer = config.producer(config.transactional_id(agent, 0))
            try:
                if role == task:
                    await producer.start()
                else:
                    with pytest.raises(TransactionalIdAuthorizationFailed):
                        await producer.start()
            finally:
                await producer.abandon()


@contextlib.asynccontextmanager
async def workers(as_role):
    """Run a worker for each role, logged in as that role."""
    crew = [Worker(as_role(f"local-{name}"), [f"local:{name}"]) for name in LEARNERS]
    crew.append(Worker(as_role(ENSEMBLE), [ENSEMBLE]))
    running = [asyncio.create_task(worker.run()) for worker in crew]
    try:
        yield running
    finally:
        for worker in crew:
            worker.stop()
        await asyncio.gather(*running)


async def send(config, topic, records):
    async with Sender(config, [topic]) as sender:
        keys = [record["id"].encode() for record in records]
        values = [orjson.dumps({"v": 1, "at": 1_700_000_000_000, **record}) for record in records]
        await sender.send_many(keys, {topic: values}, None)
        await sender.flush()


async def present(config, topic):
    async with TopicReader(config, [topic], "start") as reader:
        return [record async for records in reader.present() for record in records]


async def arrive(as_role, running, ids, features, n):
    """Let patients come, and wait until n are diagnosed."""
    topics = Topics.of(as_role(None))
    rows = {"a": ("x", "y"), "b": ("z",), "c": ("x", "z")}
    for name, columns in rows.items():
        x = zip(*(features[column].tolist() for column in columns), strict=True)
        records = [{"id": name, "x": list(row)} for name, row in zip(ids, x, strict=True)]
        await send(as_role("producer"), topics.instances(name), records)
    while len(await present(as_role("reader"), topics.diagnoses)) < n:
        assert not any(task.done() for task in running)
        await asyncio.sleep(0.1)


async def test_the_pipeline_with_a_log_in_for_every_role(as_role):
    await make_ready(as_role)
    topics = Topics.of(as_role(None))
    ids, features, truth = patients(30)
    async with workers(as_role) as running, asyncio.timeout(PATIENCE):
        await arrive(as_role, running, ids, features, 30)
        records = [{"id": patient, "label": word} for patient, word in zip(ids, truth, strict=True)]
        await send(as_role("labels"), topics.labels, records)
        while set((await look(as_role("monitor"))).scores.learned.values()) != {30}:
            assert not any(task.done() for task in running)
            await asyncio.sleep(0.1)
        await arrive(as_role, running, ["later"], patients(1, 1)[1], 31)
    await one_patient(as_role, topics)
    report = await audit(as_role("operator"))
    assert report.findings.list() == []
    with pytest.raises(BrokerError, match=r"labels is missing, or not for this user \(hb acls\)"):
        await send(as_role("reader"), topics.labels, records)


async def one_patient(as_role, topics):
    """Everybody is shown of a patient what he may read, and told what is left out."""
    all_of_it = await find_patient(as_role("operator"), "later")
    why = all_of_it.reasons["c"]
    assert fsum([*(part for (part,) in why.parts.values()), *why.rest]) == pytest.approx(
        why.log_odds[0], rel=1e-15
    )
    assert (await find_patient(as_role("operator"), "p000003")).label is not None
    explained = await find_patient(as_role("reasons-c"), "later")
    assert explained == replace(all_of_it, denied=(topics.labels,))
    shown = await find_patient(as_role("reader"), "later")
    assert shown == Patient(all_of_it.diagnosis, denied=(topics.labels, topics.reasons("c")))


async def test_surplus_rules_are_found_and_only_the_administrator_sees_them(as_role):
    config = as_role(None)
    labels = next(role for role in roles(config) if role.name == "labels")
    async with admin_client(config.broker) as admin:
        await add(admin, rules_of([labels]))
        assert (await compare(admin, [labels])).missing == ()
        difference = await compare(admin, [replace(labels, rights=frozenset())])
        assert rules_of([labels]) <= {*difference.surplus}
    with pytest.raises(BrokerError, match="does not let"):
        async with admin_client(as_role("reader").broker) as admin:
            await compare(admin, [labels])
