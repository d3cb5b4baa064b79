"""Ten data sets as files with holes: `hb evaluate` on each as it is, beside River's best.

Of the values that a data set has, a share is removed at random; words that files use for a missing
value stand in their place. `hb evaluate` is told nothing about the file: labels, the split into
learners and everything else are guessed. River's classifiers see all features at once,
filled in and scaled online as for our rules (`experiments.confidence.river_chances`), and the best
of them on a data set is chosen in hindsight. Both are asked before each label, which comes at once.
"""

import csv
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agents.clients.patient_files import CsvPatients
from audit.evaluation.cases import read_cases
from audit.evaluation.evaluate import candidates, evaluate
from audit.evaluation.passes import ensemble_pass
from experiments.confidence.river_chances import CANDIDATES, river_chances
from experiments.confidence.streams import SETS, Stream, dataset
from experiments.data import Dataset
from experiments.process_pool import spread
from experiments.report.result import Result, Row, Table
from experiments.single_pass.bootstrap import Gap, gap
from experiments.single_pass.orders import REPORTED
from learners.arrays.types import Bools, Floats, Ints
from settings.proposing.from_csv import Wishes, propose

Tick = Callable[[], object]
GONE = 0.3
"""The share of the values that are removed."""
ORDERS = 1
"""Orders of each file; one is enough, because what matters is the interval over patients."""
_WORDS = ("", "NA", "?", "nan", "-")
_LABEL = "diagnosis"
_FIRST = 50
"""How many of the first rows `hb evaluate` runs on in full."""


@dataclass(frozen=True)
class Task:
    """One order of a data set with values removed; with `most`, only that many of its patients."""

    name: str
    number: int
    seed: int
    most: int | None = None


@dataclass(frozen=True)
class Passed:
    """Errors by patient, ours and each of River's; what `hb evaluate` refused and was short of."""

    ours: Bools
    river: dict[str, Bools]
    refused: int
    missing: int
    had: int


def messy(
    count: int = 50, *, seed: int = REPORTED, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Pass every file in a few orders, at most `count`."""
    names = ("wine",) if quick else SETS
    orders = min(count, ORDERS)
    most = _FIRST if quick else None
    tasks = [Task(name, number, seed, most) for name in names for number in range(orders)]
    passed = spread(run, tasks, tick=tick)
    figures: dict[str, float] = {}
    rows: list[Row] = []
    behind = []
    for at, name in enumerate(names):
        apart = _compare(name, passed[at * orders : (at + 1) * orders], figures, rows)
        behind += [name] if apart.ahead is False else []
    figures["behind"] = float(len(behind))
    figures["sets"] = float(len(names))
    figures["with_missing_values"] = float(sum(bool(figures[f"{n}.had_missing"]) for n in names))
    figures["refused"] = float(sum(order.refused for order in passed))
    columns = ["data", "missing", "ours", "River's best", "", "ours - River", "±", "low", "high"]
    return Result(
        name="messy",
        title="Files with holes: hb evaluate beside River's best",
        settings={"orders": orders, "seed": seed, "removed": GONE},
        figures=figures,
        tables=[Table("PER in percent; the interval is over patients, paired", columns, rows)],
        notes=[
            (
                f"Ours is behind, beyond the interval over patients, on {len(behind)} of"
                f" {len(names)} data sets{': ' + ', '.join(behind) if behind else ''}."
            ),
            "River sees all features; the best of five on each data set is chosen in hindsight.",
        ],
    )


def _compare(name: str, passed: list[Passed], figures: dict[str, float], rows: list[Row]) -> Gap:
    ours = _percent([order.ours for order in passed])
    river = {rival: _percent([order.river[rival] for order in passed]) for rival in CANDIDATES}
    best = min(river, key=lambda rival: float(river[rival].mean()))
    apart = gap(ours, river[best])
    figures |= {
        f"{name}.PER": float(ours.mean()),
        f"{name}.River.PER": float(river[best].mean()),
        f"{name}.missing": float(passed[0].missing),
        f"{name}.had_missing": float(passed[0].had),
        **apart.figures(f"{name}.over_River"),
    }
    rows.append(
        [name, passed[0].missing, float(ours.mean()), float(river[best].mean()),
         best.removeprefix("River "), apart.mean, apart.patients_se, apart.low, apart.high]
    )  # fmt: skip
    return apart


def _percent(wrong: Sequence[Bools]) -> Floats:
    """Return errors in percent, patients by orders."""
    return np.asarray(np.stack(wrong, axis=1) * 100.0, np.float64)


def run(task: Task) -> Passed:
    """Pass one order of a data set."""
    data = dataset(task.name)
    rng = np.random.default_rng([task.seed, SETS.index(task.name), task.number])
    chosen = rng.permutation(len(data.rows))[: task.most]
    holes = rng.random(data.rows.shape) < GONE
    had = int(np.isnan(data.rows[chosen]).sum())
    rows, truth = np.where(holes, np.nan, data.rows)[chosen], data.truth[chosen]
    holed = replace(data, rows=rows, truth=truth)
    with tempfile.TemporaryDirectory(prefix="hb-messy-") as folder:
        file = Path(folder, f"{task.name.split(',')[0]}.csv")
        write(file, holed)
        labels, refused = evaluated(file, holed)
    wrong = _by_patient(labels != truth, chosen)
    river = {name: _by_patient(mistakes, chosen) for name, mistakes in _river(holed).items()}
    return Passed(wrong, river, refused, int(np.isnan(holed.rows).sum()), had)


def _by_patient(wrong: Bools, chosen: Ints) -> Bools:
    """Return errors in the order of a pass, rearranged into the order of the data set."""
    return wrong[np.argsort(chosen)]


def write(file: Path, data: Dataset) -> None:
    """Write a data set as a file, each missing value as one of the words for it."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*(name for name, _ in data.features), _LABEL])
        for row in range(len(data.rows)):
            cells = [
                _WORDS[(row + j) % len(_WORDS)] if np.isnan(value) else _text(value, categories)
                for j, (value, (_, categories)) in enumerate(
                    zip(data.rows[row].tolist(), data.features, strict=True)
                )
            ]
            writer.writerow([*cells, data.labels[data.truth[row]]])


def _text(value: float, categories: tuple[str, ...] | None) -> str:
    return f"{value:.10g}" if categories is None else categories[int(value)]


def evaluated(file: Path, data: Dataset) -> tuple[Ints, int]:
    """Return the diagnoses of the proposed settings, as labels of the data set, and rows refused.

    `hb evaluate` runs in full on the first rows; the proposed settings pass over all of them.
    """
    proposed = propose(file, Wishes())
    settings = next(candidates(proposed)).settings()
    evaluate(file, proposed, delay=0, limit=_FIRST, progress=lambda *_: None)
    cases = read_cases(CsvPatients(file, settings), settings)
    diagnosed = ensemble_pass(cases, settings, 0, lambda *_: None)
    index = np.array([data.labels.index(label) for label in settings.labels])
    return index[diagnosed], cases.faults


def _river(data: Dataset) -> dict[str, Bools]:
    """Return which patients each of River's classifiers got wrong."""
    n, K = len(data.rows), data.classes
    stream = Stream(data, np.arange(n), data.truth, np.zeros((n, K)), n, 0)
    by_model = river_chances(stream)
    return {name: np.asarray(chances.argmax(1) != data.truth) for name, chances in by_model.items()}
