"""What the columns of a CSV file hold, as far as one can tell: numbers, categories, labels, ids."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from settings.errors import InputError
from settings.proposing.csv_file import Chunk, CsvFile, is_number
from settings.proposing.fitting import CategoryFit, Fit, scale_fit
from settings.sections.features import Scale

MAX_GUESSED_CATEGORIES = 50
"""Columns of text with more different values than this hold names or notes, not categories."""
MAX_LABELS = 50
_ID = re.compile(r"(?i:(?:.*[ _.-])?(?:id|uuid|mrn)|id[ _.-].*)|.*[a-z](?:Id|ID)")


@dataclass
class Column:
    """What is known about one column so far."""

    name: str
    scale: Scale
    numeric: bool = True
    texts: set[str] = field(default_factory=set)
    first_text: int = 0  # the line of the first text that is not a number
    fit: Fit = field(init=False)

    def __post_init__(self) -> None:
        self.fit = scale_fit(self.scale)

    def take(self, chunk: Chunk) -> None:
        """Take in the next chunk."""
        if len(self.texts) <= MAX_GUESSED_CATEGORIES:
            self.texts.update(text.strip() for text in chunk.columns[self.name] if text.strip())
        if self.numeric:
            self._take_numbers(chunk)

    def _take_numbers(self, chunk: Chunk) -> None:
        try:
            self.fit.take(chunk, self.name)
        except InputError:
            self.numeric = False
            texts = zip(chunk.lines, chunk.columns[self.name], strict=True)
            self.first_text = next(line for line, t in texts if t.strip() and not is_number(t))

    @property
    def left_out(self) -> str:
        """Say why the column is of no use as a feature; empty if it is."""
        if not self.texts:
            return "nothing but blanks"
        if len(self.texts) == 1:
            return "the same value in every row"
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
        return {"name": self.name, "scale": self.scale, **self.fit.learned(self.name)}


@dataclass(frozen=True)
class Profile:
    """The columns of a file, by their use."""

    features: Sequence[dict[str, Any]]
    left_out: dict[str, str]
    labels: Sequence[str]
    label: str
    id: str | None


def profile(
    data: CsvFile,
    label: str,
    *,
    id_column: str | None = None,
    scale: Scale = "zlog",
    advance: Callable[[int], None] = lambda _: None,
) -> Profile:
    """Read a file once and say what its columns hold."""
    data.need([label, *([id_column] if id_column else [])])
    id_column = id_column or guess_id(data.header, label)
    named = [name for name in data.header if name]
    columns = [Column(name, scale) for name in named if name not in (label, id_column)]
    labels = CategoryFit()
    for chunk in data.chunks(named, advance):
        for column in columns:
            column.take(chunk)
        labels.take(chunk, label)
    return Profile(
        features=[column.feature() for column in columns if not column.left_out],
        left_out={
            **{column.name: column.left_out for column in columns if column.left_out},
            **({"": "a column without a name"} if "" in data.header else {}),
        },
        labels=_labels(labels, label),
        label=label,
        id=id_column,
    )


def guess_id(header: Sequence[str], label: str) -> str | None:
    """Return the first column whose name suggests an id.

    >>> guess_id(["age", "patient_id", "width"], "diagnosis"), guess_id(["acid", "ph"], "ok")
    ('patient_id', None)
    """
    return next((name for name in header if name != label and _ID.fullmatch(name)), None)


def _labels(fit: CategoryFit, column: str) -> list[str]:
    labels: list[str] = fit.learned(column)["categories"]
    if not 2 <= len(labels) <= MAX_LABELS:
        raise InputError(
            f"column {column!r} has {len(labels)} different values;"
            f" there must be 2 to {MAX_LABELS} labels"
        )
    return labels
