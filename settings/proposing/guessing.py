"""Guesses about a CSV file that a user may correct: its labels, and the one not to be missed."""

import re
from collections.abc import Sequence

from schemas.kinds import is_missing
from settings.proposing.csv_file import CsvFile

MOST = 10
"""A column with more different values than this is not taken for labels unless it is named."""

_LABEL_NAMES = (
    r"class|label|target|outcome|diagnos(is|e|ed)|y",
    r"(.*[ _.-])?(class|label|target|outcome|diagnosis)",
    r"disease|condition|result|response|status|case|event|type",
    r"(.*[ _.-])?(status|disease|death|died|dead|survived|relapse|recurrence|stat)|pgstat|low",
)
_POSITIVE = (
    "malignant", "ill", "sick", "yes", "positive", "pos", "+", "true", "y", "t", "dead", "died",
    "death", "case", "abnormal", "disease", "diseased", "cancer",
)  # fmt: skip


def guess_label(data: CsvFile) -> str | None:
    """Return the column that most looks like labels: by name, else the last if it has few values.

    A column is looked at only if it has two to ten different values.
    """
    few = _with_few_values(data)
    for pattern in _LABEL_NAMES:
        for name in reversed(few):
            if re.fullmatch(f"(?i:{pattern})", name):
                return name
    return few[-1] if few and few[-1] == data.header[-1] else None


def guess_positive(labels: Sequence[str], counts: Sequence[int]) -> str:
    """Return the label that says that something is wrong, else the rarest.

    >>> guess_positive(["benign", "malignant"], [60, 40]), guess_positive(["a", "b"], [3, 7])
    ('malignant', 'a')
    >>> guess_positive(["0", "1"], [3, 7]), guess_positive(["1", "2"], [7, 3])
    ('1', '2')
    """
    for word in _POSITIVE:
        for label in labels:
            if label.lower() == word:
                return label
    if sorted(labels) in (["0", "1"], ["0.0", "1.0"]):
        return max(labels)
    return min(zip(counts, labels, strict=True))[1]


def _with_few_values(data: CsvFile) -> list[str]:
    texts: dict[str, set[str]] = {name: set() for name in data.header if name}
    for chunk in data.chunks(list(texts)):
        for name, distinct in texts.items():
            if len(distinct) <= MOST:
                distinct.update(t.strip() for t in chunk.columns[name] if not is_missing(t))
    return [name for name, distinct in texts.items() if 2 <= len(distinct) <= MOST]
