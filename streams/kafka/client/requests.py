"""Requests for which aiokafka's admin client has no method of its own."""

from typing import Any

from aiokafka.conn import create_conn
from aiokafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.metadata import MetadataRequest


async def send(admin: Any, request: Any, node: int | None = None) -> Any:
    """Send a request to a broker, to any if none is named; return its answer."""
    return await admin._send_request(request, node)


async def create_acl(admin: Any, *fields: Any) -> list[dict[str, Any]]:
    """Create one access rule, given as Kafka's fields; return what became of it."""
    answer = await send(admin, CreateAclsRequest(*fields))
    creations: list[dict[str, Any]] = answer.to_object()["creation_responses"]
    return creations


async def describe_acls(admin: Any, *fields: Any, node: int | None = None) -> dict[str, Any]:
    """Return the access rules that match, as a broker knows them."""
    answer: dict[str, Any] = (await send(admin, DescribeAclsRequest(*fields), node)).to_object()
    return answer


async def find_coordinator(admin: Any, name: str, kind: int) -> Any:
    """Ask who coordinates a group or a transactional id."""
    return await send(admin, FindCoordinatorRequest(name, kind))


async def strange_heartbeat(admin: Any, group: str, node: int) -> Any:
    """Send the heartbeat of a member that the group does not have."""
    return await send(admin, HeartbeatRequest(group, -1, ""), node)


async def try_connection(host: str, port: int, arguments: dict[str, Any]) -> None:
    """Connect, log in, get one answer, and close."""
    connection = await create_conn(host, port, **arguments)
    try:
        await connection.send(MetadataRequest([]))
    finally:
        await connection.close()
