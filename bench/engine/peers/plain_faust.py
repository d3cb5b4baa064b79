"""Faust as its documentation shows it, with one output for each event.

Either one event at a time with a RocksDB table; or, with the option `take`, up to 1,000 events at a
time. Then the table is in memory, which favours Faust: inside `take` its RocksDB store cannot be
written, since Faust does not know there which partition a change belongs to.
"""

import sys
from typing import Any

import faust

from bench.engine.peers import CELLS
from bench.plain_faust import MEMORY, ROCKSDB, create_app, run

TAKE = "take"


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


def main(address: str, prefix: str, folder: str, option: str = "") -> None:
    """Run until told to stop."""
    taking = option == TAKE
    app = create_app(address, prefix.rstrip("."), folder, MEMORY if taking else ROCKSDB)
    source = app.topic(prefix + "in", value_type=Instance)
    sink = app.topic(prefix + "out", key_type=bytes, value_type=Answer)
    counts = app.Table("counts", default=int, partitions=1, use_partitioner=taking)

    async def count(instance: Instance) -> None:
        cell = instance.id % CELLS
        counts[cell] += 1
        answer = Answer(id=instance.id, ll="a", y=1, n=counts[cell])
        await sink.send(key=b"%d" % instance.id, value=answer)

    async def one_at_a_time(stream: Any) -> None:
        async for instance in stream:
            await count(instance)

    async def many_at_a_time(stream: Any) -> None:
        async for instances in stream.take(1_000, within=0.1):
            for instance in instances:
                await count(instance)

    app.agent(source)(many_at_a_time if taking else one_at_a_time)
    run(app)


if __name__ == "__main__":
    main(*sys.argv[1:])
