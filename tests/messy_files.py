"""Files as people have them: bundled data sets with gaps, repeats and columns of no use."""

import csv
import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from experiments import missing_values
from experiments.confidence.streams import SETS, dataset
from experiments.missing_values import GONE

BIOPSY = Path(__file__).parent / "data" / "biopsy.csv"
Table = tuple[list[str], list[list[str]]]


def _sklearn(load: Callable) -> Table:
    data = load()
    names = [str(name).replace(",", "") for name in data.feature_names]
    rows = [
        [*(f"{value:g}" for value in row), str(data.target_names[label])]
        for row, label in zip(data.data, data.target, strict=True)
    ]
    np.random.default_rng(0).shuffle(rows)
    return [*names, "class"], rows


def _river(name: str, label: str) -> Table:
    packed = (files("river.datasets") / name).read_bytes()
    if name.endswith(".gz"):
        text = gzip.decompress(packed).decode()
    else:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    header, *rows = list(csv.reader(io.StringIO(text)))
    return [("class" if column == label else column) for column in header], rows


def _damaged(table: Table, *, share: float, word: str, seed: int) -> Table:
    """Remove a share of the values, put a word in their place."""
    header, rows = table
    at, rng = header.index("class"), np.random.default_rng(seed)
    gone = rng.random((len(rows), len(header))) < share
    gone[:, at] = False
    return header, [
        [word if hole else value for value, hole in zip(row, holes, strict=True)]
        for row, holes in zip(rows, gone.tolist(), strict=True)
    ]


def _with_clutter(table: Table) -> Table:
    """Add row numbers without a name, ids that come again, a constant, and a note."""
    header, rows = table
    return ["", "patient_id", "site", "note", *header], [
        [str(k), f"p{k % 50}", "north", f"note {k}", *row] for k, row in enumerate(rows)
    ]


def _with_categories(table: Table) -> Table:
    """Turn the first column into words, one of them rare."""
    header, rows = table
    middle = np.median([float(row[0]) for row in rows])
    for k, row in enumerate(rows):
        row[0] = "rare" if k == 7 else ("high" if float(row[0]) > middle else "low")
    return header, rows


def _without_some_labels(table: Table) -> Table:
    header, rows = table
    for row in rows[::9]:
        row[header.index("class")] = "NA"
    return header, rows


MESSY: dict[str, Callable[[], Table]] = {
    "wdbc": lambda: _damaged(_sklearn(load_breast_cancer), share=0.3, word="?", seed=1),
    "wdbc-clutter": lambda: _with_clutter(_sklearn(load_breast_cancer)),
    "wine": lambda: _damaged(_sklearn(load_wine), share=0.1, word="", seed=2),
    "wine-categories": lambda: _with_categories(_sklearn(load_wine)),
    "iris": lambda: _damaged(_sklearn(load_iris), share=0.3, word="NA", seed=3),
    "iris-unlabelled": lambda: _without_some_labels(_sklearn(load_iris)),
    "phishing": lambda: _damaged(
        _river("phishing.csv.gz", "is_phishing"), share=0.3, word="nan", seed=4
    ),
    "phishing-clutter": lambda: _with_clutter(_river("phishing.csv.gz", "is_phishing")),
    "segment": lambda: _damaged(_river("segment.csv.zip", "category"), share=0.2, word="-", seed=5),
}


def write(name: str, folder: Path, delimiter: str = ",") -> Path:
    """Write one of the messy files; biopsy is as it is shipped."""
    file = folder / f"{name}.csv"
    if name == "biopsy":
        file.write_bytes(BIOPSY.read_bytes())
        return file
    header, rows = MESSY[name]()
    with file.open("w", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows([header, *rows])
    return file


def holed(file: Path, name: str, *, rows: int) -> None:
    """Write some rows of one of the experiments' data sets, with values removed as they do it."""
    data, rng = dataset(name), np.random.default_rng(SETS.index(name))
    chosen = rng.permutation(len(data.rows))[:rows]
    values = np.where(rng.random(data.rows.shape) < GONE, np.nan, data.rows)
    missing_values.write(file, replace(data, rows=values[chosen], truth=data.truth[chosen]))
