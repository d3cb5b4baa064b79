"""CSV files of patients, read in chunks: however long the file, memory stays bounded.

Errors name the file, the line and the column, never a value.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from learners.arrays.types import Bools, Floats
from schemas.kinds import is_missing
from settings.errors import InputError

CHUNK = 4096
JSON_LINES = {".jsonl", ".ndjson", ".json"}
"""How the names of files end that hold a JSON object per line."""
_DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file: the line on which each ends, and the texts of each column."""

    file: Path
    lines: Sequence[int]
    columns: dict[str, list[str]]

    def blank(self, name: str) -> Bools:
        """Return where a column's value is missing: a blank, or a word that stands for one."""
        return np.array([is_missing(text) for text in self.columns[name]], np.bool_)

    def numbers(self, name: str) -> Floats:
        """Return a column's numbers, without what is missing."""
        texts = [text for text in self.columns[name] if not is_missing(text)]
        try:
            numbers = np.array(texts, np.float64)
        except ValueError:
            numbers = np.array([np.nan])
        if not np.isfinite(numbers).all():
            raise InputError(f"{self._first_bad(name)}: column {name!r}: not a finite number")
        return numbers

    def _first_bad(self, name: str) -> str:
        for line, text in zip(self.lines, self.columns[name], strict=True):
            if not is_missing(text) and not is_number(text):
                return f"{self.file}:{line}"
        return str(self.file)


def is_number(text: str) -> bool:
    """Say whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


class CsvFile:
    """A CSV file with a header line, from which the delimiter is guessed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix.lower() in JSON_LINES:
            raise InputError(
                f"{path}: expected a CSV file; JSON lines are for hb produce, teach and label"
            )
        with self._open() as file, self._readable():
            first = file.readline()
            if not first.strip():
                raise InputError(f"{path}: the file is empty; the first line must name the columns")
            self.delimiter = max(_DELIMITERS, key=first.count)
            file.seek(0)
            names = next(csv.reader(file, delimiter=self.delimiter))
        self.header = tuple(name.strip() for name in names)
        repeated = sorted({name for name in self.header if name and self.header.count(name) > 1})
        if repeated:
            raise InputError(f"{path}: the header names {', '.join(map(repr, repeated))} twice")

    @property
    def size(self) -> int:
        """Return the file's size in bytes, for progress bars."""
        return self.path.stat().st_size

    def need(self, names: Sequence[str]) -> None:
        """Raise InputError unless the file has all these columns."""
        missing = [name for name in names if name not in self.header]
        if missing:
            raise InputError(
                f"{self.path}: no column {', '.join(map(repr, missing))};"
                f" the file has: {', '.join(self.header)}"
            )

    def chunks(
        self, names: Sequence[str], advance: Callable[[int], None] = lambda _: None
    ) -> Iterator[Chunk]:
        """Read some columns chunk by chunk; `advance` gets the number of bytes read so far."""
        self.need(names)
        indices = [self.header.index(name) for name in names]
        rows_seen = False
        with self._open() as file:
            for lines, rows in self._batches(file):
                rows_seen = True
                advance(file.buffer.tell())
                texts = ([row[index] for row in rows] for index in indices)
                yield Chunk(self.path, lines, dict(zip(names, texts, strict=True)))
        if not rows_seen:
            raise InputError(f"{self.path}: the file has a header and no rows")

    def _batches(self, file: Iterable[str]) -> Iterator[tuple[list[int], list[list[str]]]]:
        reader = csv.reader(file, delimiter=self.delimiter)
        numbered = ((reader.line_num, row) for row in reader if row)
        with self._readable():
            next(reader)
            while batch := list(islice(numbered, CHUNK)):
                self._check_widths(batch)
                yield [line for line, _ in batch], [row for _, row in batch]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn what makes a file unreadable into an InputError."""
        try:
            yield
        except csv.Error as error:
            raise InputError(f"{self.path}: not a CSV file: {error}") from None
        except UnicodeDecodeError:
            raise InputError(
                f"{self.path}: not UTF-8 text: save it as UTF-8, or convert it with"
                " iconv -f LATIN1 -t UTF-8"
            ) from None

    def _check_widths(self, batch: Sequence[tuple[int, list[str]]]) -> None:
        width = len(self.header)
        for line, row in batch:
            if len(row) != width:
                raise InputError(
                    f"{self.path}:{line}: {len(row)} fields, but the header has {width}"
                )

    def _open(self) -> "io.TextIOWrapper[io.BufferedReader]":
        try:
            return io.TextIOWrapper(self.path.open("rb"), encoding="utf-8-sig", newline="")
        except FileNotFoundError:
            raise InputError(f"{self.path}: there is no such file") from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot read it: {error.strerror}") from None
