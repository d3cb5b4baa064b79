"""A transactional producer that begins quickly after a commit and can be dropped at any moment.

Two things differ from aiokafka's own. After a commit the broker answers "concurrent transactions"
until its markers are written, a few milliseconds; aiokafka sleeps 20 ms before it asks again,
which would be the largest part of a transaction. And `stop` waits until everything is delivered,
which may be never; `abandon` does not.
"""

import asyncio
import contextlib
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import CoordinationType
from aiokafka.producer.sender import BACKOFF_OVERRIDE, AddPartitionsToTxnHandler, Sender

from streams.engine.config import EngineConfig

_AGAIN = 0.001
_CLOSE_TIMEOUT = 2.0


class _AddPartitions(AddPartitionsToTxnHandler):  # type: ignore[misc]  # aiokafka is untyped
    """Asks again soon while the markers of the last transaction are being written."""

    def handle_response(self, resp: Any) -> float | None:
        backoff: float | None = super().handle_response(resp)
        return _AGAIN if backoff == BACKOFF_OVERRIDE else backoff


class _Sender(Sender):  # type: ignore[misc]  # aiokafka is untyped
    """Knows the requests that are under way, so that they can be given up."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._requests: set[asyncio.Task[Any]] = set()

    def _maybe_do_transactional_request(self) -> Any:
        request = super()._maybe_do_transactional_request()
        if request is not None:
            self._note(request)
        return request

    async def _send_produce_req(self, node_id: int, batches: Any) -> None:
        self._note(asyncio.current_task())
        await super()._send_produce_req(node_id, batches)

    def _note(self, request: Any) -> None:
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)

    async def give_up(self, seconds: float) -> None:
        """End the sender and all its requests, whatever they wait for."""
        work = [task for task in (self.sender_task, *self._requests) if task is not None]
        for task in work:
            task.cancel()
        if work:
            await asyncio.wait(work, timeout=seconds)
        for task in work:
            if task.done() and not task.cancelled():
                task.exception()  # seen: the caller knows why he gives up

    async def _do_add_partitions_to_txn(self, tps: Any) -> Any:
        node = await self._find_coordinator(
            CoordinationType.TRANSACTION, self._txn_manager.transactional_id
        )
        return await _AddPartitions(self, tps).do(node)


class TransactionalProducer(AIOKafkaProducer):  # type: ignore[misc]  # aiokafka is untyped
    """The one producer that may write under a transactional id; starting it fences all others."""

    def __init__(self, config: EngineConfig, transactional_id: str) -> None:
        timeout = int(config.request_timeout * 1000)
        super().__init__(
            **config.client,
            client_id=transactional_id,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(config.transaction_timeout * 1000),
            max_batch_size=config.batch_bytes,
            request_timeout_ms=timeout,
            retry_backoff_ms=50,
        )
        self._closed: bool
        self._sender = _Sender(
            self.client,
            acks=-1,
            txn_manager=self._txn_manager,
            retry_backoff_ms=50,
            message_accumulator=self._message_accumulator,
            request_timeout_ms=timeout,
        )

    async def abandon(self) -> None:
        """Close without delivering: what is open is aborted by the next owner of the id."""
        if self._closed:
            return
        self._closed = True
        self._message_accumulator._closed = True
        # Requests first: one that is tried again would open a connection anew.
        await self._sender.give_up(_CLOSE_TIMEOUT)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self.client.close()
        self._forget_futures()

    def _forget_futures(self) -> None:
        """Mark the errors of undelivered batches and of the open transaction as seen."""
        accumulator = self._message_accumulator
        waiting = [batch for queue in accumulator._batches.values() for batch in queue]
        for batch in [*waiting, *accumulator._pending_batches]:
            for future in (batch.future, batch._drain_waiter):
                if future.done() and not future.cancelled():
                    future.exception()
        waiter = self._txn_manager._transaction_waiter
        if waiter is not None and waiter.done() and not waiter.cancelled():
            waiter.exception()
