"""The newest diagnoses, and why the newest dead letters were refused.

Only the ends of the topics are read, only while somebody looks, and only if there is anything new:
a page shows a few diagnoses, however many thousand there are a second. Those that this worker made
itself are known to it.
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from agents.clients.deadletters import as_letter
from agents.clients.topic_reader import TopicReader
from agents.monitor.local_state import OwnState
from agents.monitor.overview import Overview
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Diagnosis
from settings.model import Settings
from streams.kafka.topics import ENSEMBLE, Topics

SHOWN = 8
COUNTED = 5_000
"""The dead letters whose reasons are counted: the newest ones."""
_STEP = 4 * SHOWN
_AT_ONCE = 2_000
_FETCH_BYTES = 64 << 10


class Letters:
    """Reasons and topics of the newest dead letters."""

    def __init__(self, most: int = COUNTED) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.all_counted = True
        """Whether these are all dead letters that are kept."""
        self._newest: deque[tuple[str, str]] = deque()
        self._most = most

    @property
    def counted(self) -> int:
        """Return how many were counted."""
        return len(self._newest)

    def add(self, reason: str, topic: str) -> None:
        """Count one; the oldest gives way if there are too many."""
        self._newest.append((reason, topic))
        self.counts[reason, topic] += 1
        if len(self._newest) > self._most:
            gone = self._newest.popleft()
            self.counts[gone] -= 1
            if not self.counts[gone]:
                del self.counts[gone]
            self.all_counted = False


class Tail:
    """Follows the ends of both topics; `look` brings it up to date."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        names = Topics.of(settings)
        self._diagnoses, self._dead = names.diagnoses, names.deadletter
        self._reader = Reader(Diagnosis)
        self._topic: TopicReader | None = None
        self._next: dict[Any, int] = {}
        self._seen: dict[str, int] = {}
        """Where topics ended at the look that led to the last reading."""
        self.latest: list[Diagnosis] = []
        """The newest diagnoses, the newest first."""
        self.letters = Letters()

    async def close(self) -> None:
        """Let go of the broker; what is known stays."""
        topic, self._topic = self._topic, None
        if topic is not None:
            await topic.__aexit__()

    async def look(self, found: Overview, own: OwnState) -> None:
        """Take in what is new; `found` is a look at the system, `own` the worker's own state."""
        ends = {topic.name: topic.ends for topic in found.topics}
        here = own.holds(ENSEMBLE, self._settings.topics.partitions)
        wanted = [self._dead] if here and self._seen else [self._dead, self._diagnoses]
        if any(ends.get(name) != self._seen.get(name) for name in wanted) or not self._seen:
            await self._read_topics()
            self._seen = ends
        self._show([self._reader.one(each) for kept in own.diagnoses.values() for each in kept])

    def _show(self, new: Iterable[Diagnosis]) -> None:
        """Show some more, which come in their order; of those of one moment the last is first."""
        known = {one.id: one for one in [*reversed(self.latest), *new]}
        last_first = list(known.values())[::-1]
        self.latest = sorted(last_first, key=lambda one: -one.at)[:SHOWN]

    async def _read_topics(self) -> None:
        topic = self._topic
        if topic is None:
            topics = [self._diagnoses, self._dead]
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
        found = []
        async for records in topic.present():
            found += [self._taken(record) for record in records]
        self._next = dict(topic.ends)
        self._show(one for one in found if one is not None)

    def _first(self, place: Any, topic: TopicReader) -> int:
        """Return where to read on: where it was left, or later if that is too far back."""
        left = max(self._next.get(place, 0), topic.begins[place])
        if place.topic == self._diagnoses:
            return max(left, topic.ends[place] - _STEP)
        first = max(left, topic.ends[place] - (_AT_ONCE if place in self._next else COUNTED))
        if first > left:
            self.letters.all_counted = False
        return first

    def _taken(self, record: Any) -> Diagnosis | None:
        if record.topic == self._dead:
            refused = as_letter(record)
            self.letters.add(refused.reason, refused.topic)
            return None
        try:
            return self._reader.one(record.value)
        except RecordError:
            return None  # somebody else's record; it is no diagnosis to show
