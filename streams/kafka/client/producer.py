"""A transactional producer that starts quickly after a commit and can be dropped at any moment.

Three things differ from aiokafka's own producer:

- A request about a transaction that gets no answer ends the producer. aiokafka sends it again under
  the same epoch, and the first one, which was only late, then counts for the next transaction:
  a late EndTxn commits half of it. Only the next InitProducerId makes a late request harmless, so
  the producer must be thrown away. EndTxn is sent once per transaction, whatever is answered.
- After a commit the broker answers "concurrent transactions" until its markers are written, a few
  milliseconds. aiokafka sleeps 20 ms before it asks again, which would be the largest part of a
  transaction.
- `stop` waits until everything is delivered, which may be never; `abandon` does not.

docs/engine.md says for each request what is sent again and what a late one does.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import CoordinationType
from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, NodeNotReadyError
from aiokafka.producer.sender import (
    BACKOFF_OVERRIDE,
    AddPartitionsToTxnHandler,
    BaseHandler,
    EndTxnHandler,
    Sender,
)

from settings.errors import BrokerError

_AGAIN = 0.001
_CLOSE_TIMEOUT = 2.0


class UnknownOutcomeError(BrokerError):
    """A transaction request with an unknown outcome; its producer can no longer be used."""


class _SentOnce(BaseHandler):  # type: ignore[misc]  # aiokafka is untyped
    """A transaction request: not sent again unless the broker has answered it."""

    name: str

    async def do(self, node_id: int) -> bool:
        request = self.create_request()
        try:
            response = await self._sender.client.send(node_id, request, group=self.group)
        except IncompatibleBrokerVersion:
            raise
        except NodeNotReadyError:  # there is no connection: it was not sent
            await asyncio.sleep(self.handle_error())
            return False
        except KafkaError as error:
            self._sender.fail(
                UnknownOutcomeError(f"{self.name} was not answered ({type(error).__name__})")
            )
            return False
        backoff = self.handle_response(response)
        if backoff is not None:
            await asyncio.sleep(backoff)
        return backoff is None


class _AddPartitions(_SentOnce, AddPartitionsToTxnHandler):  # type: ignore[misc]  # as above
    """Asks again soon while the markers of the last transaction are being written."""

    name = "AddPartitionsToTxn"

    def handle_response(self, resp: Any) -> float | None:
        backoff: float | None = super().handle_response(resp)
        return _AGAIN if backoff == BACKOFF_OVERRIDE else backoff


class _EndTxn(_SentOnce, EndTxnHandler):  # type: ignore[misc]  # as above
    """Ends the producer unless the broker says that the transaction is decided."""

    name = "EndTxn"

    def handle_response(self, resp: Any) -> float | None:
        if super().handle_response(resp) is not None:
            self._sender.fail(UnknownOutcomeError(f"EndTxn was refused (error {resp.error_code})"))
        return None


class _Sender(Sender):  # type: ignore[misc]  # aiokafka is untyped
    """Tracks the requests in flight, so that they can be cancelled."""

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

    def fail(self, error: Exception) -> None:
        """Fail everything queued or in flight, and send nothing more."""
        self._message_accumulator.fail_all(error)
        self._txn_manager.fatal_error(error)
        # Otherwise the loop would send what is queued: nothing would hold it back.
        self.sender_task.cancel()

    async def give_up(self, seconds: float) -> None:
        """End the sender and all its requests, whatever they wait for."""
        work = [task for task in (self.sender_task, *self._requests) if task is not None]
        for task in work:
            task.cancel()
        if work:
            await asyncio.wait(work, timeout=seconds)
        for task in work:
            if task.done() and not task.cancelled():
                task.exception()  # retrieved: the caller knows why it gives up

    async def _do_add_partitions_to_txn(self, tps: Any) -> Any:
        node = await self._find_coordinator(
            CoordinationType.TRANSACTION, self._txn_manager.transactional_id
        )
        return await _AddPartitions(self, tps).do(node)

    async def _do_txn_commit(self, commit_result: Any) -> None:
        await self._message_accumulator.flush_for_commit()
        if self._txn_manager.is_empty_transaction():
            self._txn_manager.complete_transaction()
            return
        node = await self._find_coordinator(
            CoordinationType.TRANSACTION, self._txn_manager.transactional_id
        )
        await _EndTxn(self, commit_result).do(node)


class TransactionalProducer(AIOKafkaProducer):  # type: ignore[misc]  # aiokafka is untyped
    """The one producer that may write under a transactional id; starting it fences all others."""

    def __init__(
        self,
        client: Mapping[str, Any],
        transactional_id: str,
        *,
        request_timeout: float,
        transaction_timeout: float,
        batch_bytes: int,
    ) -> None:
        timeout = int(request_timeout * 1000)
        super().__init__(
            **client,
            client_id=transactional_id,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(transaction_timeout * 1000),
            max_batch_size=batch_bytes,
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
        """Close without delivering: the next owner of the id aborts the open transaction."""
        if self._closed:
            return
        self._closed = True
        self._message_accumulator._closed = True
        # Requests first: a retry would open a new connection.
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
