"""Tries every operation that access rules are about, and tells which ones the broker let through.

Nothing but `write` changes anything where it is allowed: a topic is validated and not created, its
records are deleted up to the first, its settings are checked and not kept.
"""

import asyncio
import time

from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.protocol.admin import (
    AlterConfigsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import JoinGroupRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from engine_kit import PATIENCE, START

from bench.hostile.wire import Raw, record_batch
from streams.kafka.client.topic_facts import topic_operations
from streams.kafka.connection import admin_client

NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_TRANSACTIONAL_ID = 29, 30, 31, 53
"""Kafka's codes for what a client is not authorised for."""
DONE = {0, 36, 69, 79}
"""Success, and what only those who are allowed are told: the topic exists, no such group, join with
the member id that you are given."""
_GROUP, _TRANSACTION = 0, 1
_NOBODY = "User:nobody"
_WAIT = 10_000


async def let_through(config, topics, groups, transactional_ids):
    """Return (kind, name, operation) of all that the user of some settings was not refused."""
    done = set()
    async with admin_client(config.broker) as admin:
        for kind, names, refused, attempts in (
            ("topic", topics, NO_TOPIC, TOPIC_ATTEMPTS),
            ("group", groups, NO_GROUP, GROUP_ATTEMPTS),
            ("transactional-id", transactional_ids, NO_TRANSACTIONAL_ID, {"write": _begin}),
            ("cluster", ["cluster"], NO_CLUSTER, CLUSTER_ATTEMPTS),
        ):
            for operation, attempt in attempts.items():
                allowed = await _settled(admin, attempt, names, refused)
                done |= {(kind, name, operation) for name in allowed}
        # Who may delete a topic's records may delete the topic: only those who may not try it.
        kept = [name for name in topics if ("topic", name, "delete") not in done]
        assert await _settled(admin, _delete_topics, kept, NO_TOPIC) == set()
    return done


async def _settled(admin, attempt, names, refused):
    """Return for which names an attempt succeeds, once each has succeeded or been refused.

    Only one broker leads a topic or coordinates a group, and one that has just been told of a topic
    or a rule may for a moment know neither way.
    """
    allowed, nodes = set(), [node.nodeId for node in admin._client.cluster.brokers()]
    deadline = time.monotonic() + PATIENCE
    while left := [name for name in names if name not in allowed]:
        answers = [await attempt(admin, node, left) for node in nodes]
        codes = {name: {answer[name] for answer in answers} for name in left}
        allowed |= {name for name in left if codes[name] & DONE}
        if all(codes[name] == {refused} for name in left if name not in allowed):
            break
        assert time.monotonic() < deadline, (attempt.__name__, codes)
        await asyncio.sleep(0.2)
    return allowed


async def _read(admin, node, names):
    wanted = [(name, [(0, 0, 1)]) for name in names]
    answer = await admin._send_request(FetchRequest(0, 0, 1 << 20, 0, wanted), node)
    return {topic: parts[0][1] for topic, parts in answer.topics}


async def _write(admin, node, names):
    # Of now: a broker removes what is older than a topic's retention, and then has no offset 0.
    batch = record_batch(Raw(START, b"k", b"v"))
    request = ProduceRequest(None, -1, _WAIT, [(name, [(0, batch)]) for name in names])
    answer = await admin._send_request(request, node)
    return {topic: parts[0][1] for topic, parts in answer.topics}


async def _create(admin, node, names):
    wanted = [(name, 1, 1, [], []) for name in names]
    answer = await admin._send_request(CreateTopicsRequest(wanted, _WAIT, True), node)
    return {topic: code for topic, code, *_ in answer.topic_errors}


async def _delete_records(admin, node, names):
    wanted = [(name, [(0, 0)]) for name in names]
    answer = await admin._send_request(DeleteRecordsRequest(wanted, _WAIT), node)
    return {topic: parts[0][2] for topic, parts, *_ in answer.topics}


async def _delete_topics(admin, node, names):
    answer = await admin._send_request(DeleteTopicsRequest(names, _WAIT), node)
    return dict(answer.topic_error_codes)


async def _add_partitions(admin, node, names):
    wanted = [(name, (100, None)) for name in names]
    answer = await admin._send_request(CreatePartitionsRequest(wanted, _WAIT, True), node)
    return {topic: code for topic, code, _ in answer.topic_errors}


async def _describe(admin, node, names):
    bits = await topic_operations(admin, names)
    return {name: 0 if allowed else NO_TOPIC for name, allowed in bits.items()}


async def _describe_configs(admin, node, names):
    wanted = [(ConfigResourceType.TOPIC, name, None) for name in names]
    answer = await admin._send_request(DescribeConfigsRequest(wanted), node)
    return {name: code for code, _, _, name, _ in answer.resources}


async def _alter_configs(admin, node, names):
    wanted = [(ConfigResourceType.TOPIC, name, []) for name in names]
    answer = await admin._send_request(AlterConfigsRequest(wanted, True), node)
    return {name: code for code, _, _, name in answer.resources}


async def _join(admin, node, names):
    answers = {}
    for name in names:
        await admin._send_request(FindCoordinatorRequest(name, _GROUP), node)  # may appoint one
        request = JoinGroupRequest(name, _WAIT, _WAIT, "", None, "consumer", [("range", b"")])
        answers[name] = (await admin._send_request(request, node)).error_code
    return answers


async def _offsets(admin, node, names):
    answers = {}
    for name in names:
        answers[name] = (await admin._send_request(OffsetFetchRequest(name, None), node)).error_code
    return answers


async def _delete_groups(admin, node, names):
    answer = await admin._send_request(DeleteGroupsRequest(names), node)
    return dict(answer.results)


async def _begin(admin, node, names):
    answers = {}
    for name in names:
        await admin._send_request(FindCoordinatorRequest(name, _TRANSACTION), node)
        answer = await admin._send_request(InitProducerIdRequest(name, _WAIT), node)
        answers[name] = answer.error_code
    return answers


async def _add_rule(admin, node, names):
    request = CreateAclsRequest(2, "any", 3, _NOBODY, "*", 3, 3)
    ((code, _),) = (await admin._send_request(request, node)).creation_responses
    return {"cluster": code}


async def _see_rules(admin, node, names):
    request = DescribeAclsRequest(1, None, 1, _NOBODY, None, 1, 3)
    return {"cluster": (await admin._send_request(request, node)).error_code}


async def _alter_broker(admin, node, names):
    wanted = [(ConfigResourceType.BROKER, str(node), [])]
    ((code, *_),) = (await admin._send_request(AlterConfigsRequest(wanted, True), node)).resources
    return {"cluster": code}


TOPIC_ATTEMPTS = {
    "read": _read,
    "write": _write,
    "create": _create,
    "delete": _delete_records,
    "alter": _add_partitions,
    "describe": _describe,
    "describe-configs": _describe_configs,
    "alter-configs": _alter_configs,
}
GROUP_ATTEMPTS = {"read": _join, "describe": _offsets, "delete": _delete_groups}
CLUSTER_ATTEMPTS = {"alter": _add_rule, "describe": _see_rules, "alter-configs": _alter_broker}
