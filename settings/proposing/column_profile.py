"""What the columns of a CSV file seem to hold: numbers, categories, labels, ids."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any

from schemas.kinds import is_missing
from settings.errors import InputError
from settings.proposing.csv_file import Chunk, CsvFile, is_number
from settings.proposing.fitting import Fit, scale_fit
from settings.sections.features import Scale

MAX_GUESSED_CATEGORIES = 50
"""Columns of text with more different values than this hold names or notes, not categories."""
MAX_LABELS = 50
_ID = re.compile(r"(?i:(?:.*[ _.-])?(?:id|uuid|mrn)|id[ _.-].*)|.*[a-z](?:Id|ID)")


@dataclass
class Column:
    """What is known about one column so far.

    texts     its different texts, as long as they are few; missing values are none
    missing   how many values are missing, and a digest of where
    """

    name: str
    scale: Scale
    numeric: bool = True
    texts: set[str] = field(default_factory=set)
    first_text: int = 0  # the line of the first text that is not a number
    rows: int = 0
    missing: int = 0
    counts_rows: bool = True  # each number is one more than the one before
    fit: Fit = field(init=False)

    def __post_init__(self) -> None:
        self.fit = scale_fit(self.scale)
        self._where = sha256()
        self._last: float | None = None

    @property
    def where_missing(self) -> str:
        """Return a digest of the rows in which a value is missing."""
        return self._where.hexdigest()

    def take(self, chunk: Chunk) -> None:
        """Take in the next chunk."""
        blank = chunk.blank(self.name)
        self.rows += len(blank)
        self.missing += int(blank.sum())
        self._where.update(blank.tobytes())
        if len(self.texts) <= MAX_GUESSED_CATEGORIES:
            texts = chunk.columns[self.name]
            self.texts.update(text.strip() for text in texts if not is_missing(text))
        if self.numeric:
            self._take_numbers(chunk)

    def _take_numbers(self, chunk: Chunk) -> None:
        try:
            self.fit.take(chunk, self.name)
        except InputError:
            self.numeric = False
            texts = zip(chunk.lines, chunk.columns[self.name], strict=True)
            self.first_text = next(
                line for line, t in texts if not is_missing(t) and not is_number(t)
            )
            return
        if self.counts_rows:
            numbers = chunk.numbers(self.name).tolist()
            before = [] if self._last is None else [self._last]
            self.counts_rows = all(b == a + 1 for a, b in pairwise([*before, *numbers]))
            self._last = numbers[-1] if numbers else self._last

    @property
    def left_out(self) -> str:
        """Say why the column is of no use as a feature; empty if it is."""
        if not self.texts:
            return "nothing but missing values"
        if len(self.texts) == 1 and not self.missing:
            return "the same value in every row"
        if len(self.texts) == 1:
            return "the same value wherever there is one"
        if self.numeric and self.counts_rows and not self.missing and self.rows > 2:
            return "it only numbers the rows"
        if not self.numeric and len(self.texts) > MAX_GUESSED_CATEGORIES:
            return (
                f"text with more than {MAX_GUESSED_CATEGORIES} different values"
                f" (line {self.first_text} is the first that is not a number)"
            )
        return ""

    def feature(self) -> dict[str, Any]:
        """Return the feature as the settings file writes it."""
        if not self.numeric:
            return {"name": self.name, "categories": sorted(self.texts)}
        if self.scale == "online":
            return {"name": self.name}
        return {"name": self.name, "scale": self.scale, **self.fit.learned(self.name)}


@dataclass(frozen=True)
class Profile:
    """The columns of a file, by their use.

    features    as the settings file writes them
    left_out    columns that are not features, and why
    labels      how often each label comes, by label
    missing     how many values are missing, by column, where any are
    sources     features that are missing in exactly the same rows
    unlabelled  rows without a label
    repeated    rows whose id came before
    subject     the column that says whose visit a row is: named, or ids that come more than once
    """

    rows: int
    features: Sequence[dict[str, Any]]
    left_out: dict[str, str]
    labels: Mapping[str, int]
    label: str
    id: str | None
    missing: Mapping[str, int]
    sources: Sequence[Sequence[str]]
    unlabelled: int
    repeated: int
    subject: str | None = None


def profile(
    data: CsvFile,
    label: str,
    *,
    id_column: str | None = None,
    subject: str | None = None,
    scale: Scale = "online",
    advance: Callable[[int], None] = lambda _: None,
) -> Profile:
    """Read a file once and say what its columns hold.

    A column that looks like ids is used as such only if each comes once: where a person comes
    again, an id would name two cases.
    """
    data.need([label, *filter(None, (id_column, subject))])
    ids = id_column or guess_id(data.header, label)
    named = [name for name in data.header if name]
    columns = [Column(name, scale) for name in named if name not in (label, ids, subject)]
    labels: Counter[str] = Counter()
    rows, hashes = 0, set[int]()
    for chunk in data.chunks(named, advance):
        rows += len(chunk.lines)
        for column in columns:
            column.take(chunk)
        labels.update(text.strip() for text in chunk.columns[label])
        if ids:
            hashes.update(hash(text.strip()) for text in chunk.columns[ids])
    repeated = rows - len(hashes) if ids else 0
    left_out = {column.name: column.left_out for column in columns if column.left_out}
    if "" in data.header:
        left_out[""] = "a column without a name"
    if repeated and not id_column:
        left_out[str(ids)] = (
            f"ids, of which {repeated:,} came before: each row gets an id of its own"
        )
    return Profile(
        rows=rows,
        features=[column.feature() for column in columns if not column.left_out],
        left_out=left_out,
        labels=_labels(labels, label),
        label=label,
        id=id_column or (None if repeated else ids),
        missing={c.name: c.missing for c in columns if c.missing},
        sources=_sources([c for c in columns if not c.left_out]),
        unlabelled=sum(count for text, count in labels.items() if not is_label(text)),
        repeated=repeated,
        subject=subject or (ids if repeated and not id_column else None),
    )


def guess_id(header: Sequence[str], label: str) -> str | None:
    """Return the first column whose name suggests an id.

    >>> guess_id(["age", "patient_id", "width"], "diagnosis"), guess_id(["acid", "ph"], "ok")
    ('patient_id', None)
    """
    return next((name for name in header if name != label and _ID.fullmatch(name)), None)


def is_label(text: str) -> bool:
    """Say whether a text in the column of labels is one; a minus sign may be, beside a plus.

    >>> [is_label(text) for text in ("ill", "-", "NA", "")]
    [True, True, False, False]
    """
    return text == "-" or not is_missing(text)


def _labels(counts: Counter[str], column: str) -> dict[str, int]:
    labels = {text: counts[text] for text in sorted(counts) if is_label(text)}
    if not 2 <= len(labels) <= MAX_LABELS:
        raise InputError(
            f"column {column!r} has {len(labels)} different values;"
            f" there must be 2 to {MAX_LABELS} labels"
        )
    return labels


def _sources(columns: Sequence[Column]) -> list[list[str]]:
    """Return groups of columns that lack a value in the same rows, at least one row in a hundred.

    Such columns come from one place: a test that was done or not, a form that was filled in or not.
    """
    groups: dict[str, list[str]] = {}
    for column in columns:
        if column.missing * 100 >= column.rows:
            groups.setdefault(column.where_missing, []).append(column.name)
    return [names for names in groups.values() if len(names) > 1]
