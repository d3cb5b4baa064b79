"""Faust with `take`: up to 1,000 events at a time, a table, one output each.

The table is in memory, which favours Faust: inside `take` its RocksDB store cannot be written,
since Faust does not know there which partition a change belongs to.
"""

import sys
from typing import Any

import faust

from bench.engine.peers import CELLS


class Instance(faust.Record, serializer="json"):
    """The input."""

    id: int
    x: list[float]


class Answer(faust.Record, serializer="json", include_metadata=False):
    """The output."""

    id: int
    ll: str
    y: int
    n: int


def main(address: str, prefix: str, folder: str) -> None:
    """Run until told to stop."""
    app = faust.App(
        prefix.rstrip("."),
        broker=f"kafka://{address}",
        store="memory://",
        datadir=folder,
        topic_partitions=1,
        topic_replication_factor=1,
        consumer_auto_offset_reset="earliest",
        web_enabled=False,
        topic_disable_leader=True,
    )
    source = app.topic(prefix + "in", value_type=Instance)
    sink = app.topic(prefix + "out", key_type=bytes, value_type=Answer)
    counts = app.Table("counts", default=int, partitions=1, use_partitioner=True)

    @app.agent(source)
    async def count(stream: Any) -> None:
        async for instances in stream.take(1_000, within=0.1):
            for instance in instances:
                cell = instance.id % CELLS
                counts[cell] += 1
                await sink.send(
                    key=b"%d" % instance.id,
                    value=Answer(id=instance.id, ll="a", y=1, n=counts[cell]),
                )

    faust.Worker(app, loglevel="warning", quiet=True).execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:])
