"""aiokafka alone: moves one record for each record that the pipeline moves, and nothing else.

    instances.<ll>   each goes on to predictions
    predictions      one of three goes on to diagnoses: a patient has three predictions
    labels           each goes on to feedback.<ll> of every learner
    feedback.<ll>    each is read

No decoding, no learning, no state, no transactions. It uses the same calls as the pipeline to send
(`create_batch`, `send_batch`) and has the same limits for fetches and batches.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from settings.loading import load_settings
from streams.kafka.topics import Topics


class Relay:
    """Moves fetched records, batch by batch."""

    def __init__(self, topics: Topics, producer: Any) -> None:
        self._producer = producer
        self._diagnoses = topics.diagnoses
        self._learners = len(topics.learners)
        self._seen = 0
        feedback = [topics.feedback(name) for name in topics.learners]
        self._onward: dict[str, Sequence[str]] = {topics.labels: feedback}
        self._onward |= dict.fromkeys(feedback, ())
        instances = [topics.instances(name) for name in topics.learners]
        self._onward |= dict.fromkeys(instances, (topics.predictions,))

    async def move(self, topic: str, records: Sequence[Any]) -> Any:
        """Forward records; return the future of the last one's delivery, None if there is none."""
        if topic in self._onward:
            sent = [await self._send(onward, records) for onward in self._onward[topic]]
            return sent[-1] if sent else None
        first = -self._seen % self._learners
        self._seen += len(records)
        thinned = records[first :: self._learners]
        return await self._send(self._diagnoses, thinned) if thinned else None

    async def _send(self, topic: str, records: Sequence[Any]) -> Any:
        producer = self._producer
        batch = producer.create_batch()
        for record in records:
            item = {"timestamp": None, "key": record.key, "value": record.value}
            if batch.append(**item) is None:
                await producer.send_batch(batch, topic, partition=0)
                batch = producer.create_batch()
                batch.append(**item)
        return await producer.send_batch(batch, topic, partition=0)


async def relay(file: str) -> None:
    """Move records until told to stop."""
    settings = load_settings(Path(file))
    topics = Topics.of(settings)
    address = settings.broker.bootstrap
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2 << 20,
    )
    producer = AIOKafkaProducer(bootstrap_servers=address, acks="all", max_batch_size=512 << 10)
    async with consumer, producer:
        mover = Relay(topics, producer)
        read = [topics.predictions, topics.labels]
        read += [topics.instances(name) for name in topics.learners]
        read += [topics.feedback(name) for name in topics.learners]
        consumer.assign([TopicPartition(topic, 0) for topic in read])
        while True:
            batches = await consumer.getmany(timeout_ms=200)
            sent = [await mover.move(place.topic, records) for place, records in batches.items()]
            await asyncio.gather(*[delivery for delivery in sent if delivery is not None])


if __name__ == "__main__":
    asyncio.run(relay(*sys.argv[1:2]))
