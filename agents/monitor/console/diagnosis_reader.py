"""One diagnosis in detail, on request: its label and its reasons, once they have come, and visits.

A diagnosis is asked for by its `token`, which pages and links use in place of the id: a keyed hash
that tells diagnoses apart and says nothing else. It is found among those that a page was shown, or
among the latest on the topic. Its label and its reasons are looked for in its partition of their
topics, from the time of the diagnosis on; a request reads a bounded number of records, and the next
one goes on from there. What this worker may not read (`hb acls`) is not shown.

Other visits of the same person are those among the latest diagnoses. Pages get their tokens; the
subject stays here.
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from aiokafka import TopicPartition

from agents.clients.one_patient import EARLIER, overrules
from agents.clients.topic_reader import TopicReader
from agents.monitor.console.snapshot import diagnosis, token_of
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import REFER, Diagnosis, Label, Reasons
from settings.errors import HbError
from settings.model import Settings
from streams.kafka.connection import NotAllowedError
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics

FOLLOWED = 100
"""Diagnoses that are remembered with how far their labels were looked for."""
LATEST = 2_000
"""Among how many of the latest a diagnosis is looked for that no page was shown lately."""
RECORDS = 20_000
"""Records of a topic that one request reads at most."""
_log = logging.getLogger(__name__)


@dataclass
class _Search:
    """How far a topic was read for one diagnosis."""

    topic: str
    next: int | None = None
    over: bool = False


class _Followed:
    """A diagnosis, and what has come for it so far."""

    def __init__(self, diagnosis: Diagnosis, names: Topics) -> None:
        self.diagnosis = diagnosis
        self.labels = _Search(names.labels)
        self.label: Label | None = None
        self.why = {learner: _Search(names.reasons(learner)) for learner in names.explained}
        self.reasons: dict[str, Reasons] = {}
        self.visits_known = diagnosis.subject is None


class DiagnosisReader:
    """Details of diagnoses, as JSON."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = Topics.of(settings)
        self._followed: OrderedDict[str, _Followed] = OrderedDict()
        self._visits: OrderedDict[str, str] = OrderedDict()
        self._people: defaultdict[str, dict[str, Diagnosis]] = defaultdict(dict)
        self._diagnoses = Reader(Diagnosis)
        self._labels = Reader(Label, known={"label": settings.labels})
        self._reasons = Reader(Reasons)
        self._lock = asyncio.Lock()
        self._denied: set[str] = set()
        self.read = 0
        """Records read so far in search of labels and reasons."""

    def show(self, diagnosis: Diagnosis) -> None:
        """Remember a diagnosis that pages are shown."""
        token = self._token(diagnosis)
        followed = self._followed.get(token)
        if followed is None or followed.diagnosis.at != diagnosis.at:  # else ids are reused
            self._followed[token] = _Followed(diagnosis, self._names)
        self._followed.move_to_end(token)
        while len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)
        self._remember_visit(diagnosis)

    def returns(self, diagnosis: Diagnosis) -> bool:
        """Tell whether this person was diagnosed before, among the latest."""
        return any(visit.at < diagnosis.at for visit in self._others(diagnosis))

    async def of(self, token: str) -> bytes | None:
        """Return a diagnosis in detail, None if it is not among the latest."""
        async with self._lock:
            if token not in self._followed:
                await self._look_through_latest(token)
            followed = self._followed.get(token)
            if followed is None:
                return None
            try:
                await self._look_for_all(followed)
            except HbError as error:
                _log.debug("details cannot be read: %s", error)  # the verdict says so as well
        return orjson.dumps(self._shown(followed))

    def _shown(self, followed: _Followed) -> dict[str, Any]:
        label, record = followed.label, followed.diagnosis
        return {
            **diagnosis(self._settings, record),
            "truth": None if label is None else {"label": label.label, "at": label.at},
            "readable": self._names.labels not in self._denied,
            "reasons": {
                name: _parts(self._settings, why, record.label)
                for name, why in followed.reasons.items()
            },
            "visits": [
                {
                    "token": self._token(visit),
                    "at": visit.at,
                    "label": visit.label,
                    "referred": visit.answer == REFER,
                }
                for visit in self._others(record)
            ],
        }

    def _token(self, diagnosis: Diagnosis) -> str:
        return token_of(self._settings.name, diagnosis.id)

    # Visits.

    def _remember_visit(self, diagnosis: Diagnosis) -> None:
        if diagnosis.subject is None:
            return
        self._visits[diagnosis.id] = diagnosis.subject
        self._people[diagnosis.subject][diagnosis.id] = diagnosis
        if len(self._visits) > LATEST:
            oldest, person = self._visits.popitem(last=False)
            self._people[person].pop(oldest, None)
            if not self._people[person]:
                del self._people[person]

    def _others(self, diagnosis: Diagnosis) -> list[Diagnosis]:
        """Return the other visits of the same person, the newest first."""
        visits = self._people.get(diagnosis.subject or "", {}).values()
        others = (visit for visit in visits if visit.id != diagnosis.id)
        return sorted(others, key=lambda visit: -visit.at)

    # Reading.

    async def _look_through_latest(self, token: str = "") -> None:
        """Remember the visits among the latest diagnoses, and the one with this token."""
        async with TopicReader(self._settings, [self._names.diagnoses]) as topic:
            for record in await topic.last(LATEST):
                try:
                    diagnosis = self._diagnoses.one(record.value)
                except RecordError:
                    continue
                self._remember_visit(diagnosis)
                if self._token(diagnosis) == token:
                    self.show(diagnosis)
                    self._followed[token].visits_known = True

    async def _look_for_all(self, followed: _Followed) -> None:
        if not followed.visits_known:
            followed.visits_known = True
            await self._look_through_latest()

        def labelled(label: Label) -> None:
            if overrules(label, followed.label):
                followed.label = label

        await self._look_for(followed.diagnosis, followed.labels, self._labels, labelled)
        for learner, search in followed.why.items():

            def explained(why: Reasons, learner: str = learner) -> None:
                followed.reasons.setdefault(learner, why)

            # A learner says why before the ensemble decides, so there is nothing to wait for.
            if not search.over:
                search.over = await self._look_for(
                    followed.diagnosis, search, self._reasons, explained
                )

    async def _look_for(
        self,
        diagnosis: Diagnosis,
        search: _Search,
        reader: Reader[Any],
        take: Callable[[Any], None],
    ) -> bool:
        """Read on where the last request stopped; return whether the end was reached."""
        if search.topic in self._denied:
            return True
        try:
            return await self._read_on(diagnosis, search, reader, take)
        except NotAllowedError:
            self._denied.add(search.topic)  # this worker's role does not include it
            return True

    async def _read_on(
        self,
        diagnosis: Diagnosis,
        search: _Search,
        reader: Reader[Any],
        take: Callable[[Any], None],
    ) -> bool:
        key = diagnosis.id.encode()
        place = TopicPartition(search.topic, partition_of(key, self._settings.topics.partitions))
        async with TopicReader(self._settings, [place.topic], only=[place.partition]) as topic:
            begin = search.next
            if begin is None:
                begin = (await topic.since(diagnosis.at - EARLIER))[place]
            topic.seek({place: max(begin, topic.begins[place])})
            left = RECORDS
            async for records in topic.present():
                for record in records:
                    search.next = record.offset + 1
                    if record.key == key:
                        with contextlib.suppress(RecordError):  # it is among the dead letters
                            take(reader.one(record.value))
                left -= len(records)
                self.read += len(records)
                if left <= 0:
                    return False
            search.next = topic.ends[place]
        return True


def _parts(settings: Settings, why: Reasons, label: str) -> dict[str, Any]:
    """Return how much each feature spoke for a label, the strongest first, and the rest."""
    labels = list(settings.labels)

    def for_label(odds: Sequence[float]) -> float:
        if len(odds) > 1:
            return odds[labels.index(label)]
        return odds[0] if label == settings.positive else -odds[0]

    parts = {feature: for_label(odds) for feature, odds in why.parts.items()}
    strongest = sorted(parts.items(), key=lambda item: -abs(item[1]))
    return {"rule": why.rule, "parts": strongest, "rest": for_label(why.rest)}
