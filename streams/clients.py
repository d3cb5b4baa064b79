"""For users' code: publish records, and read what is committed. The settings are all they need.

    async with Publisher("ensemble.toml") as publisher:
        await publisher.send(publisher.topics.labels, Label("a17", "malignant", at))

    async with Subscriber("ensemble.toml", "wdbc.diagnoses") as diagnoses:
        async for message in diagnoses:
            print(message.value)

`BlockingPublisher` and `BlockingSubscriber` do the same without `await`, for scripts and threads.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.codec import checked
from schemas.records import Record
from settings.loading import load_settings
from settings.model import Settings
from streams.kafka.connection import PATIENCE, await_broker, explained, quiet_client
from streams.kafka.security import client_arguments, located
from streams.kafka.topics import Topics

Headers = Sequence[tuple[str, bytes]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """A committed record as it was read; `at` in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    at: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class _Client:
    """What both clients have in common: settings, names and a checked connection."""

    patience: float = PATIENCE
    """How long to wait for a broker that does not answer, in seconds."""

    def __init__(self, settings: Settings | Path | str) -> None:
        found = settings if isinstance(settings, Settings) else load_settings(Path(settings))
        self.settings = found
        self.topics = Topics.of(found)
        self._broker = located(found.broker)

    async def _reach(self) -> dict[str, Any]:
        """Wait for the broker, so that what is wrong is said in one sentence."""
        quiet_client()
        await await_broker(self._broker, self.patience)
        return client_arguments(self._broker)


class Publisher(_Client):
    """Sends records; each is on the brokers that must have it when `send` returns."""

    async def __aenter__(self) -> Self:
        self._producer = AIOKafkaProducer(
            **await self._reach(), enable_idempotence=True, linger_ms=5, acks="all"
        )
        await self._producer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._producer.stop()

    async def send(
        self, topic: str, what: Record | bytes, *, key: str | None = None, headers: Headers = ()
    ) -> None:
        """Send one record and wait until it is written."""
        await (await self.post(topic, what, key=key, headers=headers))

    async def post(
        self, topic: str, what: Record | bytes, *, key: str | None = None, headers: Headers = ()
    ) -> "asyncio.Future[Any]":
        """Send one record; what is returned is done when it is written.

        A record is checked before it leaves, and its key is its id: the key decides the partition,
        so everything about one patient meets there. Bytes need a key.
        """
        if isinstance(what, Record):
            value, key = checked(what), getattr(what, "id", key)
        else:
            value = what
        if key is None:
            raise ValueError("bytes need a key: the instance id, which decides the partition")
        try:
            future: asyncio.Future[Any] = await self._producer.send(
                topic, value, key.encode(), headers=list(headers)
            )
        except (KafkaError, TimeoutError) as error:
            raise explained(error, self._broker) from error
        return future


class Subscriber(_Client):
    """Reads what is committed in some topics; iterate over it.

    Without a group it reads everything from the start, or from now on (`new_only`), and remembers
    nothing. With a group, readers of the same group share the topics and go on where they were.
    """

    def __init__(
        self,
        settings: Settings | Path | str,
        *topics: str,
        group: str | None = None,
        new_only: bool = False,
    ) -> None:
        super().__init__(settings)
        self._names, self._group, self._new_only = topics, group, new_only

    async def __aenter__(self) -> Self:
        self._consumer = AIOKafkaConsumer(
            *self._names,
            **await self._reach(),
            group_id=self._group,
            isolation_level="read_committed",
            auto_offset_reset="latest" if self._new_only else "earliest",
            enable_auto_commit=self._group is not None,
            fetch_max_wait_ms=100,
        )
        await self._consumer.start()
        if self._group is None and self._new_only:
            # "Now" is when we were asked, not when the first fetch comes to it.
            await self._consumer.seek_to_end()
            for place in self._consumer.assignment():
                await self._consumer.position(place)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._consumer.stop()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            for message in await self.get_many(3600.0):
                yield message

    async def get_many(self, seconds: float = 1.0) -> list[Message]:
        """Return what has come, after waiting up to `seconds` if there is nothing yet."""
        try:
            found = await self._consumer.getmany(timeout_ms=int(seconds * 1000))
        except KafkaError as error:
            raise explained(error, self._broker) from error
        return [_message(record) for records in found.values() for record in records]


def _message(record: Any) -> Message:
    return Message(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )


class _Loop:
    """An event loop in a thread of its own, for clients that block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingPublisher:
    """`Publisher` without `await`."""

    def __init__(self, settings: Settings | Path | str) -> None:
        self._client = Publisher(settings)
        self.topics = self._client.topics

    def __enter__(self) -> Self:
        self._loop = _Loop()
        try:
            self._loop.run(self._client.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._client.__aexit__(None, None, None))
        self._loop.close()

    def send(
        self, topic: str, what: Record | bytes, *, key: str | None = None, headers: Headers = ()
    ) -> None:
        """Send one record and wait until it is written."""
        self._loop.run(self._client.send(topic, what, key=key, headers=headers))


class BlockingSubscriber:
    """`Subscriber` without `await`."""

    def __init__(
        self,
        settings: Settings | Path | str,
        *topics: str,
        group: str | None = None,
        new_only: bool = False,
    ) -> None:
        self._client = Subscriber(settings, *topics, group=group, new_only=new_only)
        self.topics = self._client.topics

    def __enter__(self) -> Self:
        self._loop = _Loop()
        try:
            self._loop.run(self._client.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._client.__aexit__(None, None, None))
        self._loop.close()

    def __iter__(self) -> Iterator[Message]:
        while True:
            yield from self.get_many(3600.0)

    def get_many(self, seconds: float = 1.0) -> list[Message]:
        """Return what has come, after waiting up to `seconds` if there is nothing yet."""
        return self._loop.run(self._client.get_many(seconds))
