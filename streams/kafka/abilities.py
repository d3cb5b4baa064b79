"""What this user may do on the broker, found out without doing any of it.

Kafka tells a client what it may do with a topic. For groups and transactional ids it does not, so
they are asked something harmless: who coordinates them, and a heartbeat of a member that is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from aiokafka import errors as kafka

from settings.model import Settings
from streams.kafka.acls import OPERATIONS
from streams.kafka.client.requests import find_coordinator, strange_heartbeat
from streams.kafka.client.topic_facts import topic_operations
from streams.kafka.rights import Operation, Right, roles

_GROUP, _TRANSACTION = 0, 1
_SUFFIX = "0"
"""Makes one name of all that begin in some way."""
_REFUSED = (
    kafka.GroupAuthorizationFailedError.errno,
    kafka.TransactionalIdAuthorizationFailed.errno,
)
TOPIC_OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Abilities:
    """What this user may do, which topics are missing, and which roles it can play."""

    rights: frozenset[Right]
    missing: frozenset[str]
    roles: tuple[str, ...]


async def abilities(admin: Any, settings: Settings) -> Abilities:
    """Ask the broker about everything that any role of the ensemble needs."""
    all_roles = roles(settings)
    needed = {right for role in all_roles for right in role.rights}
    topics = sorted({right.name for right in needed if right.resource == "topic"})
    bits = await topic_operations(admin, topics)
    able = set(_on_topics(bits))
    for right in needed:
        if right.resource != "topic" and await _may(admin, right):
            able.add(right)
    missing = frozenset(name for name, rights in bits.items() if rights is None)
    # Of topics that are missing nothing is known: a role is not refused for them.
    there = [{r for r in role.rights if r.name not in missing} for role in all_roles]
    able_roles = [role.name for role, needs in zip(all_roles, there, strict=True) if needs <= able]
    return Abilities(frozenset(able), missing, tuple(able_roles))


def _on_topics(bits: dict[str, int | None]) -> Iterable[Right]:
    for name, rights in bits.items():
        for operation in TOPIC_OPERATIONS:
            if rights and rights >> OPERATIONS[operation] & 1:
                yield Right("topic", name, operation)


async def _may(admin: Any, right: Right) -> bool:
    name = right.name + _SUFFIX if right.prefixed else right.name
    kind = _TRANSACTION if right.resource == "transactional-id" else _GROUP
    coordinator = await find_coordinator(admin, name, kind)
    if coordinator.error_code or kind == _TRANSACTION or right.operation == "describe":
        return coordinator.error_code not in _REFUSED
    beat = await strange_heartbeat(admin, name, coordinator.coordinator_id)
    return beat.error_code not in _REFUSED
