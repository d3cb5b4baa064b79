"""One run of one rival: preparation before it, and reading back its outputs after it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from bench.pipeline.job import outputs, patients, publish, write_settings
from bench.pipeline.output_stamps import Marks, read_marks
from settings.errors import HbError
from settings.model import Settings
from settings.sections.broker import BrokerSettings
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topics, declared, local

_AGO = 3_600_000
"""Age of the patients in milliseconds: old enough to be a backlog."""
_STAMPED = {"message.timestamp.type": "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to run the pipeline, and the number of patients it is measured on."""

    name: str
    patients: int
    quick: int
    programs: Callable[[Path], Sequence[Sequence[str]]]
    learns: bool = False
    """Its state is in the pipeline's changelogs: it is done when the last of them is written."""
    pages: int = 0
    """Number of open consoles; if any, its metrics are read too."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a rival will run: its topics, with all patients and labels on them."""

    rival: Rival
    folder: Path
    settings: Settings
    patients: int

    @property
    def outputs(self) -> Sequence[str]:
        """Return the topics on which a patient ends."""
        return outputs(Topics.of(self.settings))

    @property
    def commands(self) -> Sequence[Sequence[str]]:
        """Return the programs to run."""
        return self.rival.programs(self.folder)

    async def results(self) -> dict[str, Marks]:
        """Read back the outputs; raise unless every patient is there, exactly once if ours."""
        marks = await read_marks(self.settings, marked(Topics.of(self.settings), self.rival))
        for topic in self.outputs:
            mark, count = marks[topic], self.patients
            once = mark.records == mark.distinct == count
            if mark.records < count or (self.rival.learns and not once):
                raise HbError(
                    f"{self.rival.name}: {count} patients, and {topic} has {mark.records} records"
                    f" of {mark.distinct} of them"
                )
        return marks


async def prepared(
    broker: str | BrokerSettings, rival: Rival, folder: Path, quick: bool, seed: int
) -> Site:
    """Create a rival's topics, and publish its patients and their labels."""
    count = rival.quick if quick else rival.patients
    settings = write_settings(folder, broker, f"b{uuid4().hex[:8]}")
    await _create(settings, marked(Topics.of(settings), rival))
    begin = time.time_ns() // 1_000_000 - _AGO - count
    await publish(settings, patients(settings, count, seed, begin))
    return Site(rival, folder, settings, count)


def marked(topics: Topics, rival: Rival) -> list[str]:
    """Return the topics whose timestamps show when a rival began and finished."""
    learned = [topics.changelog(local(name)) for name in topics.learners] if rival.learns else []
    return [*outputs(topics), *learned]


async def _create(settings: Settings, marks: Sequence[str]) -> None:
    """Create the topics as declared, with broker timestamps where the pipeline allows it."""
    topics = [
        replace(topic, config={**topic.config, **_STAMPED}) if topic.name in marks else topic
        for topic in declared(settings)
    ]
    async with admin_client(settings.broker) as admin:
        await create(admin, topics)
