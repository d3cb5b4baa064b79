"""Past patients as lessons: labelled, each once, and none that was learned before.

What was learned is read from the feedback topics. So the same command can be given again after an
interruption: it continues where it ended, for as long as the topics keep their feedback. Ids that
have to be made up follow from what the file holds, so that they are the same each time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from agents.clients.patient_files import Patients, Source
from agents.clients.topic_reader import TopicReader
from settings.errors import InputError
from settings.model import Settings
from streams.kafka.topics import Topics


@dataclass
class LeftOut:
    """Patients of a source that are not sent.

    unlabelled   their label is not known
    repeated     an earlier one of the source has their id
    learned      they were learned before
    """

    unlabelled: int = 0
    repeated: int = 0
    learned: int = 0


class PastPatients:
    """A source of past patients, without those that `left_out` counts.

    known   ids of those who were learned before, as keys
    run     what made-up ids begin with
    """

    def __init__(self, source: Source, run: str) -> None:
        if not source.labelled:
            raise InputError(
                f"{source.name} has no labels, and only labelled patients teach; see columns.label"
                " in the settings"
            )
        self.name, self.texts, self.id_column = source.name, source.texts, source.id_column
        self.labelled, self.grouped = True, source.grouped
        self.known: set[bytes] = set()
        self.left_out = LeftOut()
        self._source, self._run = source, run

    def chunks(self) -> Iterator[Patients]:
        """Read from the start."""
        self.left_out, taught = LeftOut(), set[str]()
        for chunk in self._source.chunks():
            ids = chunk.ids
            if ids is None:
                ids = [f"{self._run}-{line}" for line in chunk.lines]
            labels = chunk.labels or [""] * len(ids)
            rows = [
                row
                for row, (name, label) in enumerate(zip(ids, labels, strict=True))
                if self._teaches(name, label, taught)
            ]
            yield replace(chunk, ids=ids).take(rows)

    def _teaches(self, name: str, label: str, taught: set[str]) -> bool:
        if not label:
            self.left_out.unlabelled += 1
        elif name in taught:
            self.left_out.repeated += 1
        elif name.encode() in self.known:
            self.left_out.learned += 1
        else:
            taught.add(name)
            return True
        return False


def run_of(path: Path) -> str:
    """Return what made-up ids of a file's patients begin with: it follows from the contents."""
    digest = sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise InputError(f"{path}: cannot read it: {error.strerror}") from None
    return digest.hexdigest()[:8]


async def learned_before(settings: Settings) -> set[bytes]:
    """Return the keys of all patients that the ensemble has learned from."""
    topics = Topics.of(settings)
    keys: set[bytes] = set()
    feedback = [topics.feedback(name) for name in settings.learners]
    async with TopicReader(settings, feedback, "start") as reader:
        async for records in reader.present():
            keys.update(record.key for record in records)
    return keys
