"""Which partition a key belongs to: by murmur2, as in Kafka's own Java client.

Producers that choose differently (as librdkafka does by default) would send a patient's records to
different partitions, where they never meet.
"""

from aiokafka.partitioner import murmur2

POSITIVE = 0x7FFFFFFF
"""The bits of a hash that count."""


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key.

    >>> partition_of(b"a17", 1), partition_of(b"a17", 4), partition_of(b"a18", 4)
    (0, 1, 2)
    """
    return 0 if partitions == 1 else int((murmur2(key) & POSITIVE) % partitions)
