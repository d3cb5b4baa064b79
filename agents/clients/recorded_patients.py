"""The patients and labels that the topics of another ensemble still hold: `hb teach --from`.

The other ensemble may have other learners and features: a feature is taken by its name from
whichever topic has it, as it was sent. One that was not recorded is missing. Of a patient's records
the first of each topic counts, as it did live; of its labels the last word (docs/join.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from agents.clients.patient_files import TablePatients
from agents.clients.splitting import Splitter
from agents.clients.topic_reader import TopicReader
from agents.sealing import context_opener, instance_opener
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Context, Instance
from schemas.sealed import Opener, opened
from settings.errors import InputError
from settings.model import Settings
from settings.sections.features import FeatureSettings
from streams.kafka.topics import Topics


async def recorded_patients(other: Settings, settings: Settings, name: str) -> TablePatients:
    """Return the patients of another ensemble in the order in which they came.

    `name` is what messages call them. Features that were not recorded are missing.
    """
    if Topics.of(other).labels == Topics.of(settings).labels:
        raise InputError(
            f"{name} and these settings use the same topics: give the new ensemble its own"
            " (topics.prefix), and create them with hb topics create"
        )
    gathered = _Gathered(other)
    for topic in gathered.topics:
        async with TopicReader(other, [topic], "start") as reader:
            async for records in reader.present():
                gathered.take(topic, records)
    return gathered.patients(settings, name)


class _Gathered:
    """What was read so far, by patient."""

    def __init__(self, recorded: Settings) -> None:
        topics = Topics.of(recorded)
        self._labels_topic = topics.labels
        self._features: dict[str, tuple[Sequence[str], Opener | None, Reader[Any]]] = {}
        for name, learner in recorded.learners.items():
            opener, reader = instance_opener(recorded, name), Reader(Instance)
            self._features[topics.instances(name)] = (_names(learner.features), opener, reader)
        if recorded.ensemble.context is not None:
            named = _names(recorded.ensemble.context.features)
            self._features[topics.contexts] = (named, context_opener(recorded), Reader(Context))
        self._values: dict[str, dict[str, Any]] = {}
        self._came: dict[str, int] = {}
        self._seen: set[tuple[str, str]] = set()
        self._labels: dict[str, str] = {}

    @property
    def topics(self) -> list[str]:
        """The topics to read, the labels last: what is labelled has come before."""
        return [*self._features, self._labels_topic]

    def take(self, topic: str, records: Iterable[Any]) -> None:
        """Take in some records of a topic; those that cannot be read teach nothing."""
        for record in records:
            if topic == self._labels_topic:
                self._take_label(record.value)
            else:
                self._take_row(topic, record)

    def _take_row(self, topic: str, record: Any) -> None:
        names, opener, reader = self._features[topic]
        try:
            value = record.value if opener is None else opened(record.value, opener)
        except RecordError:
            return
        records = reader.read([value]).records
        if not records or (topic, records[0].id) in self._seen:
            return
        row = records[0]
        self._seen.add((topic, row.id))
        x = row.x if isinstance(row.x, dict) else dict(zip(names, row.x, strict=False))
        values = {name: value for name, value in x.items() if value is not None}
        self._values[row.id] = {**values, **self._values.get(row.id, {})}
        self._came[row.id] = min(record.timestamp, self._came.get(row.id, record.timestamp))

    def _take_label(self, value: bytes | None) -> None:
        try:
            label = orjson.loads(value or b"")
            name, truth = label["id"], label["label"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return
        amends = truth is None or label.get("amends")
        if isinstance(name, str) and (amends or not self._labels.get(name)):
            self._labels[name] = truth if isinstance(truth, str) else ""

    def patients(self, settings: Settings, name: str) -> TablePatients:
        """Return them for the learners of these settings."""
        columns = Splitter(settings, sealed=False).columns
        recorded = {feature for names, _, _ in self._features.values() for feature in names}
        if not recorded.intersection(columns):
            raise InputError(f"{name}: none of the features of these settings was recorded there")
        ids = sorted(self._came, key=lambda patient: self._came[patient])
        if not ids:
            raise InputError(f"{name}: its topics hold no patients, or no longer do")
        rows: list[Mapping[str, Any]] = [self._values[patient] for patient in ids]
        return TablePatients(
            name,
            {column: [row.get(column) for row in rows] for column in columns},
            [self._labels.get(patient, "") for patient in ids],
            ids,
        )


def _names(features: Sequence[FeatureSettings]) -> list[str]:
    return [feature.name for feature in features]
