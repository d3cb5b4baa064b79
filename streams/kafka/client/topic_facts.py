"""Facts about topics that aiokafka's consumer does not request: ids and settings.

Kafka gives every topic an id, and a new one when a topic is recreated under the same name.
aiokafka asks for metadata in a version that has no ids yet, so the request and its answer are
described here, by Kafka's protocol: Metadata, version 12.
"""

import random
from collections.abc import Collection
from io import BytesIO
from typing import Any
from uuid import UUID

from aiokafka.errors import KafkaError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from settings.errors import BrokerError
from streams.kafka.client.requests import send

_TOPIC = 2
"""The resource type of a topic, in requests about settings."""
_NOT_ALLOWED = 29
"""Kafka's code for a topic that a client is not authorised for."""
_UNKNOWN = UUID(int=0)
"""Stands for no id: in a request by name, and in responses of brokers that keep none."""


class _Id(AbstractType[UUID]):  # type: ignore[misc]  # aiokafka is untyped
    @classmethod
    def encode(cls, value: UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> UUID:
        return UUID(bytes=data.read(16))


_TEXT = CompactString("utf-8")
_PARTITION = (
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", CompactArray(Int32)),
    ("isr", CompactArray(Int32)),
    ("offline_replicas", CompactArray(Int32)),
    ("tags", TaggedFields),
)
_TOPIC_METADATA = (
    ("error_code", Int16),
    ("name", _TEXT),
    ("topic_id", _Id),
    ("is_internal", Boolean),
    ("partitions", CompactArray(*_PARTITION)),
    ("authorized_operations", Int32),
    ("tags", TaggedFields),
)
_BROKER = (
    ("node_id", Int32),
    ("host", _TEXT),
    ("port", Int32),
    ("rack", _TEXT),
    ("tags", TaggedFields),
)


class _MetadataResponse(Response):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", CompactArray(*_BROKER)),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        ("topics", CompactArray(*_TOPIC_METADATA)),
        ("tags", TaggedFields),
    )


class _MetadataQuestion(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 3
    API_VERSION = 12
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Id), ("name", _TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _MetadataRequest(Request[_MetadataQuestion]):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 3

    def __init__(self, topics: Collection[str], *, allowed: bool = False) -> None:
        self._topics: list[Any] = [(_UNKNOWN, topic, {}) for topic in topics]
        self._allowed = allowed

    def build(self, request_struct_class: type[_MetadataQuestion]) -> _MetadataQuestion:
        return request_struct_class(self._topics, False, self._allowed, {})


async def topic_ids(client: Any, topics: Collection[str]) -> dict[str, str]:
    """Return the id of each topic, without topics for which the broker keeps no id.

    `client` is a consumer or a producer, whose connections are used.
    """
    answer = await _ask(client, _MetadataRequest(topics))
    ids = {name: topic_id for error, name, topic_id, *_ in answer.topics if not error}
    missing = [topic for topic in topics if topic not in ids]
    if missing:
        raise BrokerError(f"a broker does not know topic {missing[0]} (yet)")
    return {name: topic_id.hex for name, topic_id in ids.items() if topic_id != _UNKNOWN}


async def topic_operations(admin: Any, topics: Collection[str]) -> dict[str, int | None]:
    """Return what we may do with each topic, as Kafka's bits by operation; None if it is missing.

    A topic that we may not even describe looks the same whether it is there or not.
    """
    answer = await send(admin, _MetadataRequest(topics, allowed=True))
    return {
        name: 0 if error == _NOT_ALLOWED else None if error else bits
        for error, name, _, _, _, bits, _ in answer.topics
    }


async def topic_setting(client: Any, topic: str, key: str) -> str | None:
    """Return one setting of a topic, None if we are not allowed to see it."""
    answer = await _ask(client, DescribeConfigsRequest([(_TOPIC, topic, [key])]))
    for error, _, _, _, entries in answer.resources:
        if not error:
            return next((entry[1] for entry in entries if entry[0] == key), None)
    return None


async def _ask(client: Any, request: Any) -> Any:
    """Return the first answer from any broker."""
    inner = client._client if hasattr(client, "_client") else client.client
    brokers = [broker.nodeId for broker in inner.cluster.brokers()]
    random.shuffle(brokers)
    error: Exception = BrokerError("no broker is known")
    for broker in brokers:
        try:
            return await inner.send(broker, request)
        except KafkaError as refused:
            error = refused
    raise error
