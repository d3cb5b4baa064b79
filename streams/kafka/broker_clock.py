"""How far the broker's clock is from ours.

Kafka does not answer what time it is, but it stamps what is written to a topic if told to. So a
topic is made for two records, and deleted.
"""

import time
from uuid import uuid4

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from settings.sections.broker import BrokerSettings
from streams.clock import wall
from streams.kafka.security import client_arguments, located
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topic

_STAMPED = {"message.timestamp.type": "LogAppendTime"}


async def clock_offset(admin: AIOKafkaAdminClient, broker: BrokerSettings) -> tuple[float, float]:
    """Return by how many milliseconds the broker's clock is ahead, and how far off that may be.

    The broker stamped the record between our sending it and its answer, so half of that time is
    the error.
    """
    name = f"hb-doctor-{uuid4().hex}"
    await create(admin, [Topic(name, 1, 1, _STAMPED)])
    producer = AIOKafkaProducer(**client_arguments(located(broker)))
    try:
        await producer.start()
        await producer.send_and_wait(name, b"")  # finds the leader, so that the next one is quick
        sent_at, began = wall(), time.monotonic()
        sent = await producer.send_and_wait(name, b"")
        half = 500 * (time.monotonic() - began)
        return sent.timestamp - (sent_at + half), half
    finally:
        await producer.stop()
        await admin.delete_topics([name])
