"""Topics on a broker: find, compare with the declaration, create, and alter only when told to.

aiokafka's admin client cannot change single settings of a topic (it sends the older request, which
replaces them all), so an alteration sends the topic's existing settings together with the new ones.
It cannot change the number of replicas at all: Kafka's own kafka-reassign-partitions can.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from settings.errors import BrokerError
from streams.kafka.topics import Topic

_SET_ON_TOPIC = 1  # the source of a value, in Kafka's protocol: this topic, not a default
_PAUSE = 0.05
_SETTLING = 15.0
_ALREADY_THERE = (kafka.NoError, kafka.TopicAlreadyExistsError)
_REFUSED = (kafka.TopicAuthorizationFailedError, kafka.ClusterAuthorizationFailedError)


@dataclass(frozen=True)
class Difference:
    """How a topic differs from its declaration; `what` is the part or settings key that differs.

    The parts are `topic`, `partitions` and `replication`.
    """

    topic: str
    what: str
    declared: str
    found: str

    @property
    def alterable(self) -> bool:
        """`alter` can fix it."""
        return self.what not in ("topic", "partitions", "replication")

    @property
    def remedy(self) -> str:
        """What fixes it."""
        return {
            "topic": "hb topics create",
            "partitions": "a new topics.prefix: in other partitions patients would be lost",
            "replication": "Kafka's kafka-reassign-partitions",
        }.get(self.what, "hb topics check --alter")


async def find(admin: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, Topic]:
    """Return those of the topics that exist, with all their settings."""
    requested = set(names)
    # List all topics: asking for a topic by name makes some brokers create it.
    listed = [topic for topic in await admin.describe_topics() if topic["topic"] in requested]
    configs = await _configs(admin, [topic["topic"] for topic in listed])
    return {
        topic["topic"]: Topic(
            topic["topic"],
            len(topic["partitions"]),
            min((len(part["replicas"]) for part in topic["partitions"]), default=0),
            {entry["config_names"]: entry["config_value"] for entry in configs[topic["topic"]]},
        )
        for topic in listed
        if topic["topic"] in configs
    }


def compare(topics: Iterable[Topic], existing: Mapping[str, Topic]) -> list[Difference]:
    """Return every difference between the declared topics and the existing ones."""
    pairs = [(topic, existing.get(topic.name)) for topic in topics]
    return [difference for pair in pairs for difference in _compare(*pair)]


async def create(admin: AIOKafkaAdminClient, topics: Iterable[Topic]) -> list[str]:
    """Create the topics that do not exist, wait until they can be used, and return their names."""
    topics = list(topics)
    present = await find(admin, [topic.name for topic in topics])
    missing = [topic for topic in topics if topic.name not in present]
    if missing:
        response = await admin.create_topics(
            [
                NewTopic(t.name, t.partitions, t.replication, topic_configs=dict(t.config))
                for t in missing
            ]
        )
        for answer in response.to_object()["topic_errors"]:
            _check(answer["error_code"], answer["error_message"], f"create {answer['topic']}")
        await _await_leaders(admin, {topic.name for topic in missing})
    return [topic.name for topic in missing]


async def alter(admin: AIOKafkaAdminClient, topics: Iterable[Topic]) -> list[Difference]:
    """Change the settings of existing topics as declared; return what still differs."""
    topics = list(topics)
    existing = await find(admin, [topic.name for topic in topics])
    wrong = {difference.topic for difference in compare(topics, existing) if difference.alterable}
    if wrong:
        own = await _configs(admin, sorted(wrong))
        resources = [
            ConfigResource(
                ConfigResourceType.TOPIC, t.name, {**_own(own.get(t.name, [])), **t.config}
            )
            for t in topics
            if t.name in wrong
        ]
        for response in await admin.alter_configs(resources):
            for answer in response.to_object()["resources"]:
                name = answer["resource_name"]
                _check(answer["error_code"], answer["error_message"], f"alter {name}")
    return await _await_settled(admin, topics)


def _own(entries: list[dict[str, Any]]) -> dict[str, str]:
    chosen = [entry for entry in entries if entry["config_source"] == _SET_ON_TOPIC]
    return {entry["config_names"]: entry["config_value"] for entry in chosen}


def _compare(topic: Topic, existing: Topic | None) -> list[Difference]:
    if existing is None:
        return [Difference(topic.name, "topic", "there", "missing")]
    pairs = {
        "partitions": (str(topic.partitions), str(existing.partitions)),
        "replication": (str(topic.replication), str(existing.replication)),
        **{key: (value, existing.config.get(key, "")) for key, value in topic.config.items()},
    }
    return [Difference(topic.name, key, *pair) for key, pair in pairs.items() if pair[0] != pair[1]]


async def _configs(admin: AIOKafkaAdminClient, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    configs = {}
    for response in await admin.describe_configs(resources):
        for answer in response.to_object()["resources"]:
            name = answer["resource_name"]
            # Deleted since it was listed, or listed by a broker that is ahead of this one.
            if kafka.for_code(answer["error_code"]) is kafka.UnknownTopicOrPartitionError:
                continue
            _check(answer["error_code"], answer["error_message"], f"describe {name}")
            configs[name] = answer["config_entries"]
    return configs


def _check(code: int, message: str | None, doing: str) -> None:
    error = kafka.for_code(code)
    if error in _REFUSED:
        raise error(message)
    if error not in _ALREADY_THERE:
        raise BrokerError(f"the broker cannot {doing}: {message or error.__name__}")


async def _await_leaders(admin: AIOKafkaAdminClient, names: set[str]) -> None:
    """Wait until every partition has a leader, as brokers do not learn of topics all at once."""
    deadline = time.monotonic() + _SETTLING
    while True:
        listed = [topic for topic in await admin.describe_topics() if topic["topic"] in names]
        parts = [part for topic in listed for part in topic["partitions"]]
        if len(listed) == len(names) and all(part["leader"] >= 0 for part in parts):
            return
        if time.monotonic() > deadline:
            raise BrokerError(f"the new topics have no leader after {_SETTLING:g} s")
        await asyncio.sleep(_PAUSE)


async def _await_settled(admin: AIOKafkaAdminClient, topics: list[Topic]) -> list[Difference]:
    """Wait until the broker shows what was altered, and return what is left."""
    deadline = time.monotonic() + _SETTLING
    while True:
        left = compare(topics, await find(admin, [topic.name for topic in topics]))
        if not any(difference.alterable for difference in left) or time.monotonic() > deadline:
            return left
        await asyncio.sleep(_PAUSE)
