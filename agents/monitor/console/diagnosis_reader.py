"""One diagnosis in detail, and its label once that has come, on request.

A diagnosis is asked for by its `token`, which pages and links use in place of the id: a keyed hash
that tells diagnoses apart and says nothing else. It is found among those that a page was shown, or
among the latest on the topic. Its label is looked for on the topic of labels from the time of the
diagnosis on; a request reads a bounded number of records, and the next one goes on from there.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import orjson
from aiokafka import TopicPartition

from agents.clients.topic_reader import TopicReader
from agents.monitor.console.snapshot import diagnosis, token_of
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Diagnosis, Label
from settings.errors import HbError
from settings.model import Settings
from streams.kafka.connection import NotAllowedError
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics

FOLLOWED = 100
"""Diagnoses that are remembered with how far their labels were looked for."""
LATEST = 2_000
"""Among how many of the latest a diagnosis is looked for that no page was shown lately."""
LABELS = 20_000
"""Labels that one request reads at most."""
_EARLIER = 60_000
"""How far clocks may differ, in milliseconds: a label may seem to come before its diagnosis."""
_log = logging.getLogger(__name__)


@dataclass
class _Followed:
    diagnosis: Diagnosis
    next: int | None = None
    label: Label | None = None


class DiagnosisReader:
    """Details of diagnoses, as JSON."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = Topics.of(settings)
        self._followed: OrderedDict[str, _Followed] = OrderedDict()
        self._diagnoses = Reader(Diagnosis)
        self._labels = Reader(Label, known={"label": settings.labels})
        self._lock = asyncio.Lock()
        self.may_read_labels = True
        self.read = 0
        """Labels read so far."""

    def show(self, diagnosis: Diagnosis) -> None:
        """Remember a diagnosis that pages are shown."""
        token = token_of(self._settings.name, diagnosis.id)
        followed = self._followed.setdefault(token, _Followed(diagnosis))
        followed.diagnosis = diagnosis
        self._followed.move_to_end(token)
        while len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)

    async def of(self, token: str) -> bytes | None:
        """Return a diagnosis with its label, None if it is not among the latest."""
        async with self._lock:
            if token not in self._followed:
                await self._look(token)
            followed = self._followed.get(token)
            if followed is None:
                return None
            try:
                await self._look_for_label(followed)
            except NotAllowedError:
                self.may_read_labels = False  # this worker's role does not include them
            except HbError as error:
                _log.debug("labels cannot be read: %s", error)  # the verdict says so as well
        label = followed.label
        return orjson.dumps(
            {
                **diagnosis(self._settings, followed.diagnosis),
                "truth": None if label is None else {"label": label.label, "at": label.at},
                "readable": self.may_read_labels,
            }
        )

    async def _look(self, token: str) -> None:
        async with TopicReader(self._settings, [self._names.diagnoses]) as topic:
            for record in await topic.last(LATEST):
                try:
                    diagnosis = self._diagnoses.one(record.value)
                except RecordError:
                    continue
                if token_of(self._settings.name, diagnosis.id) == token:
                    self.show(diagnosis)
                    return

    async def _look_for_label(self, followed: _Followed) -> None:
        """Read on where the last request stopped, to the end or until it is enough.

        The first label counts until one amends it, which may also withdraw it.
        """
        if not self.may_read_labels:
            return
        key = followed.diagnosis.id.encode()
        place = TopicPartition(
            self._names.labels, partition_of(key, self._settings.topics.partitions)
        )
        async with TopicReader(self._settings, [place.topic], only=[place.partition]) as topic:
            begin = followed.next
            if begin is None:
                begin = (await topic.since(followed.diagnosis.at - _EARLIER))[place]
            topic.seek({place: max(begin, topic.begins[place])})
            left = LABELS
            async for records in topic.present():
                for record in records:
                    followed.next = record.offset + 1
                    if record.key != key or (label := self._label(record)) is None:
                        continue
                    if followed.label is None or label.amends:
                        followed.label = label
                left -= len(records)
                self.read += len(records)
                if left <= 0:
                    return
            followed.next = topic.ends[place]

    def _label(self, record: Any) -> Label | None:
        try:
            return self._labels.one(record.value)
        except RecordError:
            return None  # it is among the dead letters, and another may come
