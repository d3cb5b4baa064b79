"""The declaration of topics, and topics on a real broker."""

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidTimestampError

from settings.errors import BrokerError
from settings.loading import load_settings
from settings.sections.base import FOREVER
from streams.clock import wall
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import Difference, alter, compare, create, find
from streams.kafka.topics import Topic, Topics, declared
from tests.cli_runs import Hb
from tests.settings_files import GOOD

DAY = 24 * 60 * 60 * 1000


@pytest.fixture
def settings(tmp_path, prefix, broker_address):
    """Return a function that loads settings for this test's own topics."""
    file = tmp_path / "ensemble.toml"
    file.write_text(GOOD)

    def load(*overrides):
        ours = (f"topics.prefix={prefix}", f"broker.bootstrap={broker_address}")
        return load_settings(file, [*ours, "topics.partitions=2", *overrides], environ={})

    return load


def by_name(topics):
    return {topic.name: topic for topic in topics}


def test_every_topic_is_declared_once(settings, prefix):
    names = [topic.name.removeprefix(prefix) for topic in declared(settings())]
    assert sorted(names) == [
        "deadletter",
        "deadletter.left",
        "deadletter.right",
        "diagnoses",
        "ensemble.changelog",
        "ensemble.shared",
        "erasures",
        "feedback.left",
        "feedback.right",
        "instances.left",
        "instances.right",
        "labels",
        "local.left.changelog",
        "local.left.models",
        "local.left.shared",
        "local.right.changelog",
        "local.right.models",
        "local.right.shared",
        "predictions",
    ]


def test_contexts_are_declared_for_a_contextual_ensemble(settings, prefix):
    names = Topics(prefix, ("left",), contextual=True)
    assert names.contexts in names.kinds
    assert names.contexts not in Topics(prefix, ("left",)).kinds


def test_reasons_are_declared_where_they_are_switched_on(settings, prefix):
    rules = 'learners.left.rules={lr={kind="logistic"}}'
    topics = by_name(declared(settings(rules, "learners.left.reasons=true")))
    assert topics[f"{prefix}reasons.left"].config["retention.ms"] == str(7 * DAY)
    assert f"{prefix}reasons.right" not in topics


def test_all_topics_are_cut_alike(settings):
    topics = declared(settings("topics.replication=3"))
    assert {(topic.partitions, topic.replication) for topic in topics} == {(2, 3)}
    assert {topic.config["min.insync.replicas"] for topic in topics} == {"2"}


@pytest.mark.parametrize(
    ("span", "retention", "segment"),
    [
        ("7d", 7 * DAY, 7 * DAY // 10),
        ("90d", 90 * DAY, DAY),
        ("5s", 5000, 60_000),
        ("forever", -1, None),
    ],
)
def test_retention_and_segments(settings, prefix, span, retention, segment):
    topics = by_name(declared(settings(f"topics.retention.instances={span}")))
    config = topics[f"{prefix}instances.left"].config
    assert config["cleanup.policy"] == "delete"
    assert config["retention.ms"] == str(retention)
    assert config["message.timestamp.after.max.ms"] == str(60 * 60 * 1000)
    assert config.get("segment.ms") == (str(segment) if segment else None)
    assert topics[f"{prefix}labels"].config["retention.ms"] == str(90 * DAY)


def test_a_dead_letter_has_room_for_more_than_any_record(settings, prefix):
    topics = by_name(declared(settings()))
    for name in ("deadletter", "deadletter.left"):
        assert int(topics[f"{prefix}{name}"].config["max.message.bytes"]) > 1_048_588
    assert "max.message.bytes" not in topics[f"{prefix}labels"].config


def test_state_is_compacted(settings, prefix):
    topics = by_name(declared(settings()))
    states = Topics.of(settings()).states
    assert {name.removeprefix(prefix) for name in states} >= {
        "ensemble.shared",
        "local.left.models",
    }
    assert {topics[name].config["cleanup.policy"] for name in states} == {"compact"}


async def test_created_topics_are_as_declared(settings):
    topics = declared(settings())
    async with admin_client(settings().broker) as admin:
        missing = compare(topics, await find(admin, [topic.name for topic in topics]))
        assert {difference.what for difference in missing} == {"topic"}
        assert len(missing) == len(topics)
        assert await create(admin, topics) == [topic.name for topic in topics]
        assert compare(topics, await find(admin, [topic.name for topic in topics])) == []
        assert await create(admin, topics) == []


async def test_a_record_of_the_future_cannot_stay_beyond_its_retention(settings):
    config = settings("topics.partitions=1")
    async with admin_client(config.broker) as admin:
        await create(admin, declared(config))
    ahead = wall() + DAY
    async with AIOKafkaProducer(bootstrap_servers=config.broker.bootstrap) as producer:
        with pytest.raises(InvalidTimestampError):
            await producer.send_and_wait(
                Topics.of(config).instances("left"), b"{}", timestamp_ms=ahead
            )


async def test_forever_is_what_kafka_takes_it_for(settings):
    topics = declared(settings("topics.retention.labels=forever"))
    assert settings("topics.retention.labels=forever").topics.retention.labels == FOREVER
    async with admin_client(settings().broker) as admin:
        await create(admin, topics)
        assert compare(topics, await find(admin, [topic.name for topic in topics])) == []


async def test_nothing_is_changed_unless_told_to(settings, prefix):
    name = f"{prefix}labels"
    wanted = by_name(declared(settings()))[name]
    async with admin_client(settings().broker) as admin:
        own = {"retention.ms": "1000", "retention.bytes": "7777"}
        await create(admin, [Topic(name, 3, 1, own)])
        assert await create(admin, [wanted]) == []
        differences = compare([wanted], await find(admin, [name]))
        assert {
            (difference.what, difference.declared, difference.found) for difference in differences
        } == {
            ("partitions", "2", "3"),
            ("retention.ms", str(90 * DAY), "1000"),
            ("segment.ms", str(DAY), str(7 * DAY)),
        }
        left = await alter(admin, [wanted])
        assert [(difference.what, difference.alterable) for difference in left] == [
            ("partitions", False)
        ]
        topic = (await find(admin, [name]))[name]
        assert topic.config["retention.bytes"] == "7777", "what we do not declare stays"


async def test_altering_leaves_other_topics_alone(settings, prefix):
    foreign = Topic(f"{prefix}other", 1, 1, {"retention.ms": "1234"})
    ours = Topic(f"{prefix}ours", 1, 1, {"retention.ms": "1000"})
    async with admin_client(settings().broker) as admin:
        await create(admin, [foreign, ours])
        assert await alter(admin, [Topic(ours.name, 1, 1, {"retention.ms": "2000"})]) == []
        assert compare([foreign], await find(admin, [foreign.name])) == []


async def test_too_many_copies_are_said_so(settings, prefix):
    with pytest.raises(BrokerError, match=r"cannot create .* replication factor of 3"):
        async with admin_client(settings().broker) as admin:
            await create(admin, [Topic(f"{prefix}copied", 1, 3)])


@pytest.mark.parametrize(
    ("aspect", "remedy"),
    [
        ("topic", "hb topics create"),
        ("partitions", "prefix"),
        ("replication", "reassign"),
        ("retention.ms", "--alter"),
    ],
)
def test_each_difference_has_a_remedy(aspect, remedy):
    difference = Difference("t", aspect, "1", "2")
    assert remedy in difference.remedy
    assert difference.alterable == (remedy == "--alter")


@pytest.fixture
def hb(monkeypatch, capsys, tmp_path, prefix, broker_address):
    """`hb topics` with this test's settings."""
    (tmp_path / "ensemble.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HB_SET__TOPICS__PREFIX", prefix)
    monkeypatch.setenv("HB_SET__BROKER__BOOTSTRAP", broker_address)
    return Hb(monkeypatch, capsys)


def test_the_commands(hb, prefix):
    before = hb("topics", "check", "--json")
    assert (before.code, before.json["as_declared"]) == (1, False)
    created = hb("topics", "create", "--json")
    assert created.code == 0
    assert len(created.json["created"]) == len(before.json["differences"])
    assert hb("topics", "create").out.startswith("all topics exist")
    assert hb("topics", "check").code == 0

    longer = ("--set", "topics.retention.labels=91d")
    differs = hb("topics", "check", *longer, "--json")
    assert differs.code == 1
    assert [difference["topic"] for difference in differs.json["differences"]] == [
        f"{prefix}labels"
    ]
    assert hb("topics", "create", *longer, "--json").json["differences"]
    assert hb("topics", "check", *longer, "--json").code == 1, "create alters nothing"
    described = hb("topics", "describe", *longer, "--json").json["topics"]
    wrong = [topic["name"] for topic in described if topic["differences"]]
    assert wrong == [f"{prefix}labels"]
    assert "differs: retention.ms" in " ".join(hb("topics", "describe", *longer).out.split())
    assert hb("topics", "check", *longer, "--alter", "--json").json == {
        "as_declared": True,
        "differences": [],
    }


def test_a_broker_that_is_not_there_is_exit_code_4(hb, monkeypatch):
    monkeypatch.setenv("HB_SET__BROKER__PATIENCE", "300ms")
    monkeypatch.setenv("HB_SET__BROKER__BOOTSTRAP", "127.0.0.1:1")
    run = hb("topics", "check")
    assert run.code == 4
    assert run.err == (
        "hb: cannot connect to 127.0.0.1:1 within 0.3 s: nothing listens there; is it running? "
        "See broker.bootstrap\n"
    )
