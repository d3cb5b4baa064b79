"""When a run's outputs were written, by the broker's timestamps, and whether each is unique."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit.recording.reader import Span, opened
from settings.errors import HbError
from settings.model import Settings
from streams.kafka.batch import Batch

_PAUSE = 0.1
_QUIET = 0.5


@dataclass(slots=True)
class Marks:
    """What a topic holds; times in milliseconds since 1970, `distinct` counts keys."""

    first: int = 2**63
    last: int = 0
    records: int = 0
    distinct: int = 0


async def wait_for(
    settings: Settings, topics: Sequence[str], records: int, patience: float
) -> None:
    """Wait until topics hold this many records each, and stay unchanged for a moment.

    Raises if they stop growing for `patience` seconds before that.
    """
    async with opened(settings, "bench") as recording:
        previous: dict[str, Span] = {}
        since = time.monotonic()
        while True:
            spans = await recording.spans(topics, 0)
            quiet = time.monotonic() - since
            if spans != previous:
                previous, since = spans, time.monotonic()
            elif quiet > _QUIET and all(span.end >= records for span in spans.values()):
                return
            elif quiet > patience:
                ends = ", ".join(f"{span.topic} {span.end}" for span in spans.values())
                raise HbError(f"the run stood still before {records} records: {ends}")
            await asyncio.sleep(_PAUSE)


async def read_marks(settings: Settings, topics: Sequence[str]) -> dict[str, Marks]:
    """Read topics back."""
    async with opened(settings, "bench") as recording:
        by_topic = {}
        for topic, span in (await recording.spans(topics, 0)).items():
            by_topic[topic] = marks = Marks()
            keys: set[bytes | None] = set()

            def take(batch: Batch, marks: Marks = marks, keys: set[bytes | None] = keys) -> None:
                if len(batch):
                    marks.first = min(marks.first, batch.timestamps[0])
                    marks.last = max(marks.last, batch.timestamps[-1])
                    marks.records += len(batch)
                    keys.update(batch.keys)

            await recording.read(span, take)
            marks.distinct = len(keys)
        return by_topic


def rate(marks_by_topic: Mapping[str, Marks], patients: int) -> float:
    """Return patients per second, from the first record of all topics to the last."""
    first = min(marks.first for marks in marks_by_topic.values())
    return 1000 * patients / (max(marks.last for marks in marks_by_topic.values()) - first)
