"""A member of a consumer group that knows when the coordinator last confirmed it.

aiokafka does not expose that. All requests to the coordinator of a group pass through `_send_req`;
a heartbeat answered without an error means that the member belongs to the group's current
generation, and so still holds its partitions.
"""

import asyncio
import time
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.group import HeartbeatRequest


class GroupMember(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka is untyped
    """A consumer that records the answers to its heartbeats."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._confirmed_at = -float("inf")
        self._answered = asyncio.Event()

    async def start(self) -> None:
        """Connect, and watch what the coordinator answers."""
        await super().start()
        coordinator: Any = self._coordinator
        send = coordinator._send_req

        async def send_and_note(request: Any) -> Any:
            sent = time.monotonic()
            response = await send(request)
            if isinstance(request, HeartbeatRequest):
                current = request._generation_id == coordinator.generation
                if current and response.error_code == 0:
                    self._confirmed_at = sent
                    self._answered.set()
            return response

        coordinator._send_req = send_and_note

    async def confirmed(self) -> None:
        """Return once a heartbeat sent after this call is answered without an error."""
        asked_at = time.monotonic()
        while self._confirmed_at < asked_at:
            self._answered.clear()
            await self._answered.wait()


def assigned(assignment: bytes) -> list[tuple[str, int]]:
    """Return the partitions that a member of a group was assigned, as the group describes it."""
    decoded = ConsumerProtocolMemberAssignment.decode(assignment)
    return [(topic, number) for topic, numbers in decoded.assignment for number in numbers]
