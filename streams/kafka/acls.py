"""Rights as the broker's access rules: compared, and added where they are missing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka import errors as kafka

from settings.errors import BrokerError
from streams.kafka.client.requests import create_acl, describe_acls
from streams.kafka.rights import Right, Role

_RESOURCES = {"topic": 2, "group": 3, "transactional-id": 5}
OPERATIONS = {
    "read": 3, "write": 4, "create": 5, "delete": 6, "describe": 8, "describe-configs": 10,
    "alter-configs": 11,
}  # fmt: skip
_LITERAL, _PREFIXED = 3, 4
_ANY, _ALLOW = 1, 3
_ANYWHERE = "*"
_NO_ACCESS_CONTROL = 54
"""Kafka's code for a broker without an authorizer."""


@dataclass(frozen=True, order=True)
class Rule:
    """One access rule: a principal is allowed something, from any machine."""

    principal: str
    right: Right


@dataclass(frozen=True)
class Comparison:
    """What the roles need and the broker lacks, and what else it allows these principals."""

    missing: tuple[Rule, ...]
    surplus: tuple[Rule, ...]


def rules_of(roles: Iterable[Role]) -> frozenset[Rule]:
    """Return the access rules that roles need."""
    return frozenset(Rule(role.principal, right) for role in roles for right in role.rights)


async def compare(admin: Any, roles: Collection[Role], node: int | None = None) -> Comparison:
    """Compare what the roles need with what a broker allows their principals.

    Each broker of a cluster learns of new rules in its own time; any is asked if none is named.
    """
    needed = rules_of(roles)
    allowed: set[Rule] = set()
    for principal in sorted({role.principal for role in roles}):
        allowed |= await _allowed(admin, principal, node)
    return Comparison(tuple(sorted(needed - allowed)), tuple(sorted(allowed - needed)))


async def add(admin: Any, rules: Iterable[Rule]) -> None:
    """Add access rules."""
    for rule in rules:
        right = rule.right
        pattern = _PREFIXED if right.prefixed else _LITERAL
        resource, operation = _RESOURCES[right.resource], OPERATIONS[right.operation]
        creations = await create_acl(
            admin, resource, right.name, pattern, rule.principal, _ANYWHERE, operation, _ALLOW
        )
        for creation in creations:
            _check(creation["error_code"], creation["error_message"])


async def _allowed(admin: Any, principal: str, node: int | None) -> set[Rule]:
    fields = (_ANY, None, _ANY, principal, None, _ANY, _ALLOW)
    answer = await describe_acls(admin, *fields, node=node)
    _check(answer["error_code"], answer["error_message"])
    resources, operations = _inverse(_RESOURCES), _inverse(OPERATIONS)
    return {
        Rule(
            principal,
            Right(
                resources.get(resource["resource_type"], str(resource["resource_type"])),
                resource["resource_name"],
                operations.get(acl["operation"], str(acl["operation"])),
                resource["resource_pattern_type"] == _PREFIXED,
            ),
        )
        for resource in answer["resources"]
        for acl in resource["acls"]
    }


def _inverse(codes: dict[str, int]) -> dict[int, Any]:
    return {code: name for name, code in codes.items()}


def _check(code: int, message: str | None) -> None:
    error = kafka.for_code(code)
    if error is kafka.NoError:
        return
    if code == _NO_ACCESS_CONTROL:
        raise BrokerError(
            "the broker has no access control, so everybody may do everything; a Kafka needs"
            " authorizer.class.name, the embedded one: hb broker up --secure"
        )
    if error is kafka.ClusterAuthorizationFailedError:
        raise error(message)
    raise BrokerError(f"the broker's access rules cannot be used: {message or error.__name__}")
