"""The dead letters: read them, export them for correction, and send corrected ones again.

A line of the file is one JSON object: `topic` and `value` are what is sent; the rest says what was
wrong. A value that is JSON is an object to edit, other text is text, other bytes are in base64.
"""

import base64
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from agents.clients.sender import Sender
from agents.clients.topic_reader import TopicReader
from agents.sealing import context_opener, instance_opener
from schemas.deadletters import from_message
from schemas.errors import RecordError
from schemas.reading import BatchReader, Reader
from schemas.records import DeadLetter, Label
from schemas.rows import Feature, RowReader
from settings.errors import InputError
from settings.model import Settings
from settings.sections.features import FeatureSettings
from streams.clock import wall
from streams.kafka.topics import Topics

UNREADABLE = "unreadable"
"""The reason given for a record on the topic that is not a dead letter."""


class LetterKind(NamedTuple):
    """Why a record could not be used, and the topic it came from."""

    reason: str
    topic: str


@dataclass
class Summary:
    """How many there are, by reason and topic, and the latest ones."""

    total: int = 0
    counts: Counter[LetterKind] = field(default_factory=Counter)
    last: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=0))


async def read_letters(settings: Settings) -> AsyncIterator[DeadLetter]:
    """Yield every dead letter that there is now, those of all agents."""
    topics = list(Topics.of(settings).deadletters)
    async with TopicReader(settings, topics, "start") as reader:
        async for records in reader.present():
            for record in records:
                yield as_letter(record)


def as_letter(record: Any) -> DeadLetter:
    """Return a record of the topic as a dead letter, even if it is not one."""
    try:
        return from_message(record.headers, record.key, record.value)
    except RecordError as error:
        where = record.topic, record.partition, record.offset
        return DeadLetter(
            UNREADABLE, *where, str(error), record.timestamp, record.key, record.value
        )


async def summarise(settings: Settings, keep: int) -> Summary:
    """Count all dead letters, and keep the latest ones."""
    summary = Summary(last=deque(maxlen=keep))
    async for letter in read_letters(settings):
        summary.total += 1
        summary.counts[LetterKind(letter.reason, letter.topic)] += 1
        summary.last.append(letter)
    return summary


def line_of(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter as a line to correct."""
    return {
        "topic": letter.topic,
        "reason": letter.reason,
        "detail": letter.detail,
        "partition": letter.partition,
        "offset": letter.offset,
        "at": letter.at,
        **({} if letter.sha256 is None else {"size": letter.size, "sha256": letter.sha256}),
        **_value(letter.value),
    }


def _value(value: bytes | None) -> dict[str, Any]:
    if value is None:
        return {"value": None}
    try:
        return {"value": orjson.loads(value)}
    except orjson.JSONDecodeError:
        pass
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(value).decode()}


async def export(settings: Settings, path: Path) -> int:
    """Write all dead letters to a file that only its owner can read; return how many."""
    count = 0
    with _private(path) as file:
        async for letter in read_letters(settings):
            file.write(orjson.dumps(line_of(letter)) + b"\n")
            count += 1
    return count


@contextmanager
def _private(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that only its owner can read."""
    try:
        path.touch(mode=0o600, exist_ok=False)
        with path.open("wb") as file:
            yield file
    except FileExistsError:
        raise InputError(f"{path} already exists; name another file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot write it: {error.strerror}") from None


class Replayer:
    """Checks corrected records and sends them to the topics that they were meant for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        topics = Topics.of(settings)
        self._readers: dict[str, BatchReader[Any]] = {
            topics.instances(name): RowReader(
                _features(learner.features), opener=instance_opener(settings, name)
            )
            for name, learner in settings.learners.items()
        }
        if settings.ensemble.context is not None:
            features = _features(settings.ensemble.context.features)
            self._readers[topics.contexts] = RowReader(features, opener=context_opener(settings))
        self._readers[topics.labels] = Reader(Label, known={"label": settings.labels})

    async def replay(self, path: Path) -> Counter[str]:
        """Send every record of a file, or none if one is bad; return how many went where."""
        values: dict[str, list[bytes]] = {}
        for number, line in self._lines(path):
            topic, value = self._checked(f"{path}:{number}", line)
            values.setdefault(topic, []).append(value)
        async with Sender(self._settings, list(values)) as sender:
            for topic, column in values.items():
                keys = [orjson.loads(value)["id"].encode() for value in column]
                await sender.send_many(keys, {topic: column}, wall())
            await sender.flush()
        return Counter({topic: len(column) for topic, column in values.items()})

    @staticmethod
    def _lines(path: Path) -> Iterable[tuple[int, bytes]]:
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise InputError(f"{path}: cannot read it: {error.strerror}") from None
        return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]

    def _checked(self, where: str, line: bytes) -> tuple[str, bytes]:
        """Return the topic of a line and the value to send there."""
        try:
            document = orjson.loads(line)
            topic, value = document["topic"], document["value"]
            reader = self._readers.get(topic)
        except (orjson.JSONDecodeError, KeyError, TypeError):
            expected = "a JSON object with topic and value, as --export writes it"
            raise InputError(f"{where}: expected {expected}") from None
        if reader is None:
            topics = ", ".join(self._readers)
            raise InputError(
                f"{where}: topic: only records for these topics can be sent again: {topics}"
            )
        wire = value.encode() if isinstance(value, str) else orjson.dumps(value)
        fault = reader.fault(wire)
        if fault is not None:
            raise InputError(f"{where}: {fault}")
        return topic, wire


def _features(features: Sequence[FeatureSettings]) -> list[Feature]:
    return [Feature(feature.name, feature.categories) for feature in features]
