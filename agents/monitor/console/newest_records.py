"""The newest diagnoses, and why the newest dead letters were refused.

Only the ends of the topics are read, only while a page is open, and only if there is anything new:
a page shows a few diagnoses, however many thousand there are per second. Diagnoses of this worker
itself come from its local state.
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from agents.clients.deadletters import LetterKind, as_letter
from agents.clients.topic_reader import TopicReader
from agents.monitor.local_state import LocalState
from agents.monitor.overview import Overview
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Diagnosis
from settings.model import Settings
from streams.kafka.topics import ENSEMBLE, Topics

SHOWN = 8
COUNTED = 5_000
"""How many of the newest dead letters have their reasons counted."""
_STEP = 4 * SHOWN
_AT_ONCE = 2_000
_FETCH_BYTES = 64 << 10


class DeadLetterReasons:
    """Reasons and topics of the newest dead letters."""

    def __init__(self, most: int = COUNTED) -> None:
        self.counts: Counter[LetterKind] = Counter()
        self.all_counted = True
        """Whether every dead letter on the topic was counted."""
        self._newest: deque[LetterKind] = deque()
        self._most = most

    @property
    def counted(self) -> int:
        """Return how many were counted."""
        return len(self._newest)

    def add(self, reason: str, topic: str) -> None:
        """Count one; the oldest is dropped if there are too many."""
        kind = LetterKind(reason, topic)
        self._newest.append(kind)
        self.counts[kind] += 1
        if len(self._newest) > self._most:
            oldest = self._newest.popleft()
            self.counts[oldest] -= 1
            if not self.counts[oldest]:
                del self.counts[oldest]
            self.all_counted = False


class NewestRecords:
    """Follows the ends of these topics; `read` brings it up to date."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        names = Topics.of(settings)
        self._diagnoses, self._dead = names.diagnoses, list(names.deadletters)
        self._reader = Reader(Diagnosis)
        self._topic: TopicReader | None = None
        self._next: dict[Any, int] = {}
        self._seen: dict[str, int] = {}
        """Where topics ended in the overview that led to the last reading."""
        self.latest: list[Diagnosis] = []
        """The newest diagnoses, the newest first."""
        self.letters = DeadLetterReasons()

    async def close(self) -> None:
        """Disconnect from the broker; what was read stays."""
        topic, self._topic = self._topic, None
        if topic is not None:
            await topic.__aexit__()

    async def read(self, overview: Overview, local: LocalState) -> None:
        """Read what is new, given an overview and the state of the worker's own tasks."""
        ends = {topic.name: topic.ends for topic in overview.topics}
        here = local.holds(ENSEMBLE, self._settings.topics.partitions)
        topics = self._dead if here and self._seen else [*self._dead, self._diagnoses]
        if any(ends.get(name) != self._seen.get(name) for name in topics) or not self._seen:
            await self._read_topics()
            self._seen = ends
        self._show(
            [self._reader.one(value) for values in local.diagnoses.values() for value in values]
        )

    def _show(self, new: Iterable[Diagnosis]) -> None:
        """Add diagnoses, which come in order; of several at one time the last is shown first."""
        by_id = {diagnosis.id: diagnosis for diagnosis in [*reversed(self.latest), *new]}
        last_first = list(by_id.values())[::-1]
        self.latest = sorted(last_first, key=lambda diagnosis: -diagnosis.at)[:SHOWN]

    async def _read_topics(self) -> None:
        topic = self._topic
        if topic is None:
            topics = [self._diagnoses, *self._dead]
            topic = TopicReader(self._settings, topics, "end", fetch_bytes=_FETCH_BYTES)
            await topic.__aenter__()
            self._topic = topic
        else:
            await topic.renew()
        topic.wake()
        await self._read(topic)
        topic.rest()

    async def _read(self, topic: TopicReader) -> None:
        first = {place: self._first(place, topic) for place in topic.ends}
        topic.seek(first)
        read = []
        async for records in topic.present():
            read += [self._taken(record) for record in records]
        self._next = dict(topic.ends)
        self._show(diagnosis for diagnosis in read if diagnosis is not None)

    def _first(self, place: Any, topic: TopicReader) -> int:
        """Return where to continue: where reading stopped, or later if that is too far back."""
        left = max(self._next.get(place, 0), topic.begins[place])
        if place.topic == self._diagnoses:
            return max(left, topic.ends[place] - _STEP)
        first = max(left, topic.ends[place] - (_AT_ONCE if place in self._next else COUNTED))
        if first > left:
            self.letters.all_counted = False
        return first

    def _taken(self, record: Any) -> Diagnosis | None:
        if record.topic != self._diagnoses:
            refused = as_letter(record)
            self.letters.add(refused.reason, refused.topic)
            return None
        try:
            return self._reader.one(record.value)
        except RecordError:
            return None  # not a diagnosis, so not shown
