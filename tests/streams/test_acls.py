"""Every role works with its rights alone, and every right it should not have is refused.

On a real broker with TLS, passwords and access control: what is not allowed is denied.
"""

import asyncio
import contextlib
import time
from dataclasses import asdict, replace
from functools import partial
from math import fsum
from typing import get_args

import orjson
import pytest
from attempts import let_through
from engine_kit import PATIENCE
from pipeline_kit import TOML, patients, settings

from agents.clients.forgetting import forget
from agents.clients.one_patient import Patient, find_patient
from agents.clients.sender import Sender
from agents.clients.topic_reader import TopicReader
from agents.monitor.watch import look
from agents.worker import Worker
from audit.end_to_end import audit
from settings.errors import BrokerError
from settings.loading import load_settings, read_source, validate
from settings.render import render
from streams.broker import USER
from streams.broker.reaper import temporary_broker
from streams.kafka.abilities import abilities
from streams.kafka.acls import Rule, add, compare, rules_of
from streams.kafka.connection import admin_client
from streams.kafka.rights import Resource, Right, roles
from streams.kafka.topic_admin import create
from streams.kafka.topics import ENSEMBLE, Topics, declared, local
from tests.cli_runs import Hb
from tests.role_table import LEARNERS, NAME, OVERRIDES, documented, granted, rendered, resources

TASKS = {local(name): f"local-{name}" for name in LEARNERS} | {ENSEMBLE: ENSEMBLE}


COPIES = ("topics.replication=3", "topics.min_in_sync=2")


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """Three brokers with a user for each role of an ensemble."""
    folder = tmp_path_factory.mktemp("locked")
    users = (USER, *(role.user for role in roles(settings(folder, "", NAME, *OVERRIDES))))
    with temporary_broker(brokers=3, users=users, short_lived=True) as broker:
        yield broker


@pytest.fixture
def as_role(locked, tmp_path, prefix):
    """Return the settings of a role: the same ensemble, another log-in."""

    def of(role, own_prefix=prefix):
        user = USER if role is None else f"{NAME}-{role}"
        config = settings(tmp_path, "", NAME, f"topics.prefix={own_prefix}", *COPIES, *OVERRIDES)
        return config.model_copy(update={"broker": locked.settings(user)})

    return of


@pytest.fixture
def written(locked, tmp_path):
    """Write settings of an ensemble, with a user's log-in, to a file."""

    def write(name, user):
        file = tmp_path / f"{name}-{user}.toml"
        file.write_text(TOML.format(name=name, address="", state=tmp_path / "state"))
        source = read_source(file, OVERRIDES, environ={})
        config = validate(source).model_copy(update={"broker": locked.settings(user)})
        file.write_text(render(config, source))
        return file

    return write


@pytest.fixture
def hb(monkeypatch, capsys):
    return Hb(monkeypatch, capsys)


async def make_ready(as_role):
    """Add the access rules as administrator, then create the topics as operator."""
    config = as_role(None)
    async with admin_client(config.broker) as admin:
        difference = await compare(admin, roles(config))
        topics = {rule for rule in rules_of(roles(config)) if rule.right.resource == "topic"}
        assert topics <= {*difference.missing}
        await add(admin, difference.missing)
        for broker in (await admin.describe_cluster())["brokers"]:
            asked = partial(compare, admin, roles(config), broker["node_id"])
            await until_told(asked, lambda found: found.missing == ())
    operator = as_role("operator")
    async with admin_client(operator.broker) as admin:
        await create(admin, declared(operator))


def topics_with(done, operation):
    """Return the topics with which somebody may do something."""
    return {name for kind, name, op in done if (kind, op) == ("topic", operation)}


async def test_the_table_of_roles_and_operations(as_role):
    """Every role tries everything, and may do what docs/broker.md says and nothing else."""
    await make_ready(as_role)
    config = as_role(None)
    named = [[n for k, n in resources(config) if k == kind] for kind in get_args(Resource)]
    may = {role: await let_through(as_role(role), *named) for role in granted(config)}
    assert may == granted(config)
    assert rendered(may, config) == documented()
    topics = Topics.of(config)
    letters = {topics.deadletter_of(name) for name in LEARNERS}
    for role, done in may.items():
        readable, writable = topics_with(done, "read"), topics_with(done, "write")
        others = [name for name in LEARNERS if role != f"local-{name}"]
        if role != "operator":
            seen = {topic(name) for topic in (topics.instances, topics.models) for name in others}
            assert readable.isdisjoint(seen), "nobody else reads what a learner sees or knows"
            assert readable.isdisjoint(letters), "nor what it could not use"
            assert {op for _, _, op in done} <= {"read", "write", "describe", "describe-configs"}
        for agent, task in TASKS.items():
            if role != task:
                assert writable.isdisjoint(topics.states_of(agent))
        if role != "labels":
            assert topics.labels not in writable
        if role not in ("reader", "reasons-c", "operator"):
            assert topics.diagnoses not in readable
        if role not in ("reasons-c", "operator"):
            assert topics.reasons("c") not in readable, "as private as what the learner sees"
        assert (topics.contexts in readable) == (role in (ENSEMBLE, "operator"))


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
    seen = [{"id": name, "x": [y]} for name, y in zip(ids, features["y"].tolist(), strict=True)]
    await send(as_role("producer"), topics.contexts, seen)
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
        await an_erasure(as_role)
    report = await audit(as_role("operator"))
    assert report.findings.list() == []
    assert report.figures()["patients_erased"] == 1
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


async def an_erasure(as_role):
    """The operator alone erases a patient, from the look at all topics to every task's answer."""
    for role in ("reader", "labels", "local-a", ENSEMBLE, "monitor"):
        with pytest.raises(BrokerError, match=r"for this user|does not let"):
            await forget(as_role(role), ["p000005"])
    outcome = await forget(as_role("operator"), ["p000005"])
    assert (outcome.sent, outcome.missing) == (True, ())


async def until_told(ask, holds):
    """Ask until the answer is right: each broker learns of new rules in its own time."""
    async with asyncio.timeout(PATIENCE):
        while not holds(answer := await ask()):  # noqa: ASYNC110  # only the broker knows
            await asyncio.sleep(0.05)
    return answer


async def test_surplus_rules_are_found_and_only_the_administrator_sees_them(as_role):
    config = as_role(None)
    labels = next(role for role in roles(config) if role.name == "labels")
    async with admin_client(config.broker) as admin:
        await add(admin, rules_of([labels]))
        await until_told(lambda: compare(admin, [labels]), lambda found: found.missing == ())
        rightless = [replace(labels, rights=frozenset())]
        await until_told(
            lambda: compare(admin, rightless),
            lambda found: rules_of([labels]) <= {*found.surplus},
        )
    with pytest.raises(BrokerError, match="does not let"):
        async with admin_client(as_role("reader").broker) as admin:
            await compare(admin, [labels])


def until_said(ask, holds):
    """The same for a command."""
    end = time.monotonic() + PATIENCE
    while not holds(answer := ask()):
        assert time.monotonic() < end, answer
        time.sleep(0.05)


def test_the_commands_compare_the_rules_and_add_what_is_missing(hb, written, prefix, locked):
    file = written(prefix.strip("."), USER)
    config = load_settings(file, environ={})
    labels = next(role for role in roles(config) if role.name == "labels")
    wanted = len(rules_of(roles(config)))

    def acls(*arguments):
        return hb("acls", *arguments, "--settings", file)

    before = acls("check", "--json")
    assert (before.code, len(before.json["missing"]), before.json["surplus"]) == (1, wanted, [])
    assert "missing: hb acls apply" in acls("check").out
    assert len(acls("apply", "--json").json["added"]) == wanted
    until_said(lambda: acls("apply"), lambda answer: "exist already" in answer.out)
    until_said(
        lambda: acls("check"),
        lambda answer: (answer.code, "nothing more" in answer.out) == (0, True),
    )
    until_said(
        lambda: acls("check", "--user", "labels=CN=lab", "--json"),
        lambda answer: {rule["principal"] for rule in answer.json["missing"]} == {"User:CN=lab"},
    )
    more = Right("topic", Topics.of(config).diagnoses, "read")
    asyncio.run(grant(locked.settings(USER), Rule(labels.principal, more)))
    expected = (1, [], [{"principal": labels.principal, **asdict(more)}])
    until_said(
        lambda: acls("check", "--json"),
        lambda answer: (answer.code, answer.json["missing"], answer.json["surplus"]) == expected,
    )
    until_said(lambda: acls("check"), lambda answer: "more than it needs" in answer.out)


async def grant(broker, rule):
    async with admin_client(broker) as admin:
        await add(admin, [rule])


def test_only_the_administrator_gives_rights(hb, written):
    """Who may not see the rules is told so, and which right is missing."""
    file = written(NAME, f"{NAME}-operator")
    for command in ("apply", "check"):
        run = hb("acls", command, "--settings", file)
        assert run.code == 4
        assert "does not let" in run.err


def test_a_broker_has_a_user_for_each_role_of_a_settings_file(hb, locked, written, prefix):
    options = ("--data", locked.data, "--secure", "--roles")
    assert hb("broker", "up", *options, written(NAME, USER)).code == 0, "these are its users"
    refused = hb("broker", "up", *options, written(prefix.strip("."), USER))
    assert refused.code != 0
    assert "a broker with other users" in " ".join(refused.err.split())
