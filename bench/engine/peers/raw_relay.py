"""aiokafka alone: writes back what it fetches; no decoding, no state, no transactions."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def relay(address: str, prefix: str) -> None:
    """Copy the input to the output until told to stop."""
    consumer = AIOKafkaConsumer(
        prefix + "in",
        bootstrap_servers=address,
        group_id=prefix + "relay",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2 << 20,
    )
    producer = AIOKafkaProducer(bootstrap_servers=address, acks="all", max_batch_size=512 << 10)
    topic = prefix + "out"
    async with consumer, producer:
        delivery = None
        while True:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                batch = producer.create_batch()
                for record in records:
                    item = {"timestamp": None, "key": record.key, "value": record.value}
                    if batch.append(**item) is None:
                        delivery = await producer.send_batch(batch, topic, partition=0)
                        batch = producer.create_batch()
                        batch.append(**item)
                delivery = await producer.send_batch(batch, topic, partition=0)
            if delivery is not None:
                await delivery


if __name__ == "__main__":
    asyncio.run(relay(*sys.argv[1:3]))
