"""An admin client that asks another broker if one is down."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, NodeNotReadyError

_PAUSE = 0.25


class PatientAdmin(AIOKafkaAdminClient):  # type: ignore[misc]  # aiokafka is untyped
    """Asks again for `patience` seconds.

    aiokafka's own client picks any broker and gives up if that one is down. Every request made
    here may be sent twice.
    """

    def __init__(self, patience: float, client: Mapping[str, Any]) -> None:
        super().__init__(**client)
        self._patience = patience

    async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return await super()._send_request(request, node_id)
            except (NodeNotReadyError, KafkaConnectionError):
                if node_id is not None or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_PAUSE)
