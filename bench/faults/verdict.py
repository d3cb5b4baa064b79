"""Judges a run with faults: every input answered once, state as recomputed, gaps short enough."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from bench.faults.worker import CELLS
from settings.sections.broker import BrokerSettings
from streams.engine.changelogs.changelog import META_KEY
from streams.kafka.client.reader import partitions_of
from streams.kafka.security import client_arguments


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a record that the verdict needs; time in milliseconds since 1970."""

    partition: int
    time: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many records and keys are wrong."""

    lost: int
    double: int
    differing: int


def judge(
    inputs: Sequence[Record],
    outputs: Sequence[Record],
    private: Iterable[Record],
    shared: Iterable[Record],
) -> Verdict:
    """Compare outputs and the state in both changelogs with a recomputation from the input."""
    expected, state_expected = recompute(inputs)
    state = latest(private)
    cells = int((cell_counts(shared) != expected_cells(inputs)).sum())
    answers = [orjson.loads(record.value or b"null") for record in outputs]
    times = Counter(answer["seq"] for answer in answers)
    lost = sum(number not in times for number in expected)
    double = sum(count - 1 for count in times.values())
    wrong = sum(expected.get(answer["seq"]) != answer["before"] for answer in answers)
    keys = state.keys() | state_expected.keys()
    differing = sum(state.get(key) != state_expected.get(key) for key in keys)
    return Verdict(lost, double, wrong + differing + cells)


def recompute(inputs: Iterable[Record]) -> tuple[dict[int, int], dict[bytes, bytes]]:
    """Return each record's answer and the final state, by the changelogs' keys."""
    counts: Counter[int] = Counter()
    answers = {}
    for record in inputs:
        content = orjson.loads(record.value or b"null")
        answers[content["seq"]] = counts[content["id"]]
        counts[content["id"]] += 1
    state = {b"seen/%d" % number: b"%d" % count for number, count in counts.items()}
    return answers, state


def cell_counts(records: Iterable[Record]) -> np.ndarray:
    """Return the sum over partitions of the last row of each cell in a shared changelog."""
    newest = {(r.partition, r.key): r.value for r in records if r.key is not None}
    total = np.zeros(CELLS, np.int64)
    for (_, key), value in newest.items():
        cell = int.from_bytes(key.removeprefix(b"counts/"), "big")
        total[cell] += int.from_bytes(value or b"", "little")
    return total


def expected_cells(inputs: Iterable[Record]) -> np.ndarray:
    """Return how many inputs fall into each cell."""
    ids = [orjson.loads(record.value or b"null")["id"] for record in inputs]
    return np.bincount(np.array(ids) % CELLS, minlength=CELLS)


def latest(records: Iterable[Record]) -> dict[bytes, bytes]:
    """Return what a compacted topic holds, without the positions."""
    held = {r.key: r.value for r in records if r.key is not None and r.key != META_KEY}
    return {key: value for key, value in held.items() if value is not None}


def longest_gap(outputs: Iterable[Record], start: float, end: float) -> float:
    """Return the longest gap in the outputs of any partition that overlaps a window.

    Times are in seconds since 1970. A partition that falls silent until the end counts until then.
    """
    longest = 0.0
    stamps: dict[int, list[float]] = {}
    for record in outputs:
        stamps.setdefault(record.partition, []).append(record.time / 1000)
    for times in stamps.values():
        before = [t for t in times if t <= start]
        within = sorted(t for t in times if start < t <= end)
        edges = [max(before, default=start), *within]
        longest = max([longest, *[b - a for a, b in pairwise(edges)]])
        if not within:
            longest = max(longest, end - edges[0])
    return longest


async def read_all(broker: BrokerSettings, topic: str) -> list[Record]:
    """Return all committed records of a topic."""
    async with AIOKafkaConsumer(
        **client_arguments(broker),
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_partition_fetch_bytes=4 << 20,
    ) as consumer:
        numbers = await partitions_of(consumer, topic)
        places = [TopicPartition(topic, number) for number in numbers]
        ends = await consumer.end_offsets(places)
        records: list[Record] = []
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)
        while any([await consumer.position(place) < ends[place] for place in places]):
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                records += [_record(raw) for raw in batch]
        return records


def _record(raw: Any) -> Record:
    return Record(raw.partition, raw.timestamp, raw.key, raw.value)
