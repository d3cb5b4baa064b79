"""Patients from files, in chunks, so that memory stays bounded however long the file is.

Errors name the file, the line and the column, never a value.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson

from agents.clients.splitting import Splitter
from schemas.kinds import is_missing
from settings.errors import InputError
from settings.model import Settings
from settings.proposing.csv_file import CHUNK, JSON_LINES, CsvFile

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patients:
    """Some patients, column by column.

    lines    where each is in its source, for messages
    ids      None where the source has none
    labels   None where the source has none; "" for a patient without one
    subjects whose visit each is: None where the source has none, or none for a row
    share    how much of the source is read when these are done, 0 … 1
    """

    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    ids: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    share: float = 1.0
    subjects: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: Sequence[int], share: float | None = None) -> "Patients":
        """Return some of them."""
        return Patients(
            [self.lines[row] for row in rows],
            {name: [column[row] for row in rows] for name, column in self.columns.items()},
            None if self.ids is None else [self.ids[row] for row in rows],
            None if self.labels is None else [self.labels[row] for row in rows],
            self.share if share is None else share,
            None if self.subjects is None else [self.subjects[row] for row in rows],
        )


class Source(Protocol):
    """Where patients come from.

    texts      values are text, as in a CSV file
    labelled   it has labels
    grouped    it says whose visit each row is
    """

    name: str
    texts: bool
    labelled: bool
    grouped: bool
    id_column: str

    def chunks(self) -> Iterator[Patients]:
        """Read from the start."""


class CsvPatients:
    """A CSV file with a header; `[columns]` of the settings names ids, labels and subjects."""

    texts = True

    def __init__(self, path: Path, settings: Settings) -> None:
        self.name = str(path)
        self._file = CsvFile(path)
        self._features = Splitter(settings, sealed=False).columns
        self._file.need(self._features)
        columns, header = settings.columns, self._file.header
        self._id = columns.id if columns.id in header else None
        self._label = columns.label if columns.label in header else None
        self._subject = columns.subject if columns.subject in header else None
        self._labels = frozenset(settings.labels)
        self.id_column = self._id or "id"
        self.labelled = self._label is not None
        self.grouped = self._subject is not None

    def chunks(self) -> Iterator[Patients]:
        """Read from the start."""
        special = [name for name in (self._id, self._label, self._subject) if name]
        names = list(dict.fromkeys([*self._features, *special]))
        read, size = 0, max(self._file.size, 1)

        def advance(position: int) -> None:
            nonlocal read
            read = position

        for chunk in self._file.chunks(names, advance):
            columns = chunk.columns
            yield Patients(
                chunk.lines,
                {name: columns[name] for name in self._features},
                [text.strip() for text in columns[self._id]] if self._id else None,
                [_label(text, self._labels) for text in columns[self._label]]
                if self._label
                else None,
                min(read / size, 1.0),
                [_subject(text) for text in columns[self._subject]] if self._subject else None,
            )


class _Row(NamedTuple):
    """A row of a JSONL file: its line, its values, its size in bytes."""

    line: int
    values: dict[str, Any]
    size: int


class JsonPatients:
    """A file with one JSON object per line; ids, labels and subjects as `[columns]` names them.

    Where the settings name none, the keys `id`, `label` and `subject` are looked for.
    """

    texts = False

    def __init__(self, path: Path, settings: Settings) -> None:
        self.name = str(path)
        self._path = path
        self._features = Splitter(settings, sealed=False).columns
        self.id_column = settings.columns.id or "id"
        self._label = settings.columns.label or "label"
        self._subject = settings.columns.subject or "subject"
        self._labels = frozenset(settings.labels)
        first = next(iter(self._rows()), None)
        if first is None:
            raise InputError(f"{path}: the file is empty; expected one JSON object per line")
        self._has_ids = self.id_column in first[1]
        self.labelled = self._label in first[1]
        self.grouped = self._subject in first[1]

    def chunks(self) -> Iterator[Patients]:
        """Read from the start."""
        rows, size, read = self._rows(), max(self._path.stat().st_size, 1), 0
        while batch := list(islice(rows, CHUNK)):
            read += sum(row.size for row in batch)
            objects = [row.values for row in batch]
            yield Patients(
                [row.line for row in batch],
                {name: [row.get(name) for row in objects] for name in self._features},
                [_text(row.get(self.id_column)) for row in objects] if self._has_ids else None,
                [_label(_text(row.get(self._label)), self._labels) for row in objects]
                if self.labelled
                else None,
                min(read / size, 1.0),
                [_subject(_text(row.get(self._subject))) for row in objects]
                if self.grouped
                else None,
            )

    def _rows(self) -> Iterator[_Row]:
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield _Row(number, self._object(number, line), len(line))
        except FileNotFoundError:
            raise InputError(f"{self._path}: there is no such file") from None
        except OSError as error:
            raise InputError(f"{self._path}: cannot read it: {error.strerror}") from None

    def _object(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise InputError(f"{self._path}:{number}: expected one JSON object")
        return value


def _label(text: str, labels: Collection[str]) -> str:
    """Return a label as it is; nothing where a word says that it is missing."""
    text = text.strip()
    return "" if text not in labels and is_missing(text) else text


def _subject(text: str) -> str | None:
    """Return a subject as it is; None where a word says that it is missing."""
    return None if is_missing(text) else text.strip()


def _text(value: object) -> str:
    """Return an id or a label as text: numbers are written as JSON writes them."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


class TablePatients:
    """Patients that are already in memory."""

    texts = False

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Sequence[Any]],
        labels: Sequence[str] | None,
        ids: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.id_column = "id"
        self.labelled, self.grouped = labels is not None, False
        count = len(next(iter(columns.values())))
        self.patients = Patients(range(1, count + 1), columns, ids, labels)

    def need(self, names: Sequence[str]) -> None:
        """Raise InputError unless all these features exist."""
        missing = [name for name in names if name not in self.patients.columns]
        if missing:
            raise InputError(
                f"{self.name} has no feature {missing[0]!r}; are these settings for this data?"
            )

    def chunks(self) -> Iterator[Patients]:
        """Read from the start."""
        count = len(self.patients)
        for start in range(0, count, CHUNK):
            end = min(start + CHUNK, count)
            yield self.patients.take(range(start, end), end / count)


def file_patients(path: Path, settings: Settings) -> Source:
    """Return the patients of a file, by its ending: `.jsonl` or `.ndjson`, anything else is CSV."""
    if path.suffix.lower() in JSON_LINES:
        return JsonPatients(path, settings)
    return CsvPatients(path, settings)


def gathered(source: Source) -> Patients:
    """Return all patients of a source at once, for shuffling."""
    parts = list(source.chunks())
    names = parts[0].columns if parts else {}
    return Patients(
        [line for part in parts for line in part.lines],
        {name: [value for part in parts for value in part.columns[name]] for name in names},
        _joined([part.ids for part in parts]),
        _joined([part.labels for part in parts]),
        subjects=_joined([part.subjects for part in parts]),
    )


def _joined(parts: Sequence[Sequence[T] | None]) -> list[T] | None:
    if not parts or parts[0] is None:
        return None
    return [text for part in parts for text in part or ()]
