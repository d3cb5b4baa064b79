"""A miss target for one label: what it achieves live, and what thresholds in hindsight achieve.

The control is the product's own (`learners.assessment`), with a target for the positive label and
none for the other: the positive label is the answer unless it can be excluded. The scores are those
of the proposed method and of River's best in single passes over WDBC; both get the same control.
Longer streams draw from these scores at random, without further learning, so that only the control
adapts. In the drifting stream the positives' scores drop by two half-way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from experiments.paper.rates import rates
from experiments.process_pool import spread
from experiments.report.result import Chart, Result, Row, Series, Table
from experiments.single_pass.fused_passes import Pass, at_limit, fuse, truths
from experiments.single_pass.local_passes import Task, listen
from experiments.single_pass.methods import OURS, PROPOSED, RECIPES
from experiments.single_pass.orders import REPORTED
from experiments.single_pass.river_peers import BEST, river_pass, stacked_pass
from learners.arrays.types import Bools, Floats, Ints
from learners.assessment.assessment import Assessment
from learners.fusion.base import FusedPredictions
from learners.theory.promises import miss_rate_gaps
from settings.sections.ensemble import EnsembleSettings

Tick = Callable[[], object]
TARGET = 0.03


MISS = f"miss target {TARGET:g}"
"""What the product's control of one label's miss rate is called here."""
MIN_LABELS: int = EnsembleSettings.model_fields["min_labels"].default


def control(
    count: int = 50, *, seed: int = REPORTED, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Run the controller on single passes, and on long steady and drifting streams."""
    count = min(count, 2) if quick else count
    tasks = [Task("wdbc", seed, number, RECIPES[OURS[PROPOSED].recipe]) for number in range(count)]
    orders = [task.order() for task in tasks]
    truth = truths(orders)
    ours = fuse(OURS[PROPOSED].maker(3, 2, 1), spread(listen, tasks, tick=tick), orders)
    river = stacked_pass(spread(river_pass, [(task, BEST) for task in tasks], tick=tick))
    figures: dict[str, float] = {}
    rows: list[Row] = []
    for whose, scored_stream in (("ours", ours), ("River", river)):
        _passes(whose, scored_stream, truth, figures, rows)
    streams = _long(ours, truth, seed, 20_000 if not quick else 2_000)
    charts = [
        _stream(title, *scored_stream, figures, rows) for title, scored_stream in streams.items()
    ]
    columns = ["stream", "control", "PER", "FPR", "FNR", "referred", "FNR above target (bound)"]
    return Result(
        name="control",
        title="Online control of the FNR",
        settings={"orders": count, "seed": seed, "target": TARGET, "ours": PROPOSED,
                  "River": BEST.removeprefix("River ")},
        figures=figures,
        tables=[Table("A miss target for one label (percent; of those answered)", columns, rows)],
        charts=charts,
        notes=_notes(figures),
    )  # fmt: skip


def _notes(f: dict[str, float]) -> list[str]:
    ours, river = (f"single pass, {whose}.{MISS}" for whose in ("ours", "River"))
    return [
        (
            f"Live, with a {MISS} for the positive label: PER {f[f'{ours}.PER']:.2f} at FNR"
            f" {f[f'{ours}.FNR']:.2f}; River under the same control {f[f'{river}.PER']:.2f} at"
            f" {f[f'{river}.FNR']:.2f}."
        ),
        (
            "The bound holds for any stream, with labels on time. A single pass has 212 positives,"
            " so it promises little there; over long streams it forces the FNR to the target."
        ),
        (
            f"Referred are the first patients, until {MIN_LABELS} labels are known. There is no"
            " step and no start to choose."
        ),
    ]


class Controlled(NamedTuple):
    """What a control issues in R streams, (T, R): labels, and whether they are answers."""

    labels: Ints
    answered: Bools

    @classmethod
    def always(cls, labels: Ints) -> "Controlled":
        """Return what issues an answer for every patient."""
        return cls(labels, np.ones(labels.shape, np.bool_))

    def row(
        self, stream: str, name: str, truth: Ints, bound: float | None, figures: dict[str, float]
    ) -> list[Any]:
        """Return a row of the table, and note its figures."""
        measured = rates(self.labels, truth, self.answered)
        referred = 100.0 * float(1.0 - self.answered.mean())
        figures |= measured.figures(f"{stream}.{name}") | {f"{stream}.{name}.referred": referred}
        return [stream, name, *measured.mean.tolist(), referred, bound]


def _passes(
    whose: str, plain: Pass, truth: Ints, figures: dict[str, float], rows: list[Row]
) -> None:
    """Evaluate the single passes: without control, in hindsight, and under control."""
    issued = {"no control": Controlled.always(plain.labels)}
    hindsight = at_limit(plain, truth)
    if hindsight is not None:
        above = (plain.odds >= hindsight[1]).astype(np.int64)
        issued["threshold in hindsight"] = Controlled.always(above)
    issued[MISS] = controlled(plain.odds, truth)
    for name, live in issued.items():
        bound = _bound(truth[:, 0]) if name == MISS else None
        rows.append(live.row(f"single pass, {whose}", name, truth, bound, figures))


def _bound(truth: Ints) -> float:
    """Return how many points above its target the FNR can be, after these labels."""
    return 100.0 * miss_rate_gaps(TARGET, int((truth == 1).sum()))[1]


def controlled(odds: Floats, truth: Ints, min_labels: int = MIN_LABELS) -> Controlled:
    """Return what is issued in R streams, by log-odds (T, R) and truth (T, R)."""
    issued = Controlled(np.zeros(odds.shape, np.int64), np.zeros(odds.shape, np.bool_))
    none = np.zeros((1, 0), np.int64)
    chance = 1.0 / (1.0 + np.exp(-odds))
    for stream in range(odds.shape[1]):
        assessment = Assessment(2, (np.nan, TARGET), min_labels)
        for t, ill in enumerate(chance[:, stream].tolist()):
            support = np.array([[1.0 - ill, ill]])
            fused = FusedPredictions(np.array([int(ill >= 0.5)]), none, none, support)
            assessed = assessment.assess(fused)
            issued.labels[t, stream] = assessed.labels[0]
            issued.answered[t, stream] = assessed.answered[0]
            assessment.learn(assessed.labels, truth[t, stream : stream + 1], assessed.kept)
    return issued


def _long(plain: Pass, truth: Ints, seed: int, steps: int) -> dict[str, tuple[Floats, Ints]]:
    """Return long streams of trained learners' scores: one steady, one that drifts half-way."""
    rng = np.random.default_rng([seed, 9])
    late = slice(len(truth) // 2, None)
    scores, labels = plain.odds[late].reshape(-1), truth[late].reshape(-1)
    at = rng.integers(0, len(scores), steps)
    odds, drawn = scores[at], labels[at]
    fallen = odds - np.where((np.arange(steps) >= steps // 2) & (drawn == 1), 2.0, 0.0)
    return {"steady stream": (odds, drawn), "drifting stream": (fallen, drawn)}


def _stream(
    title: str, odds: Floats, truth: Ints, figures: dict[str, float], rows: list[Row]
) -> Chart:
    size = len(odds) // 20
    ends = list(range(size, len(odds) + 1, size))
    series = []
    scores, labels = odds[:, None], truth[:, None]
    runs = {
        "no control": Controlled.always((scores >= 0).astype(np.int64)),
        MISS: controlled(scores, labels),
    }
    for name, live in runs.items():
        bound = _bound(truth) if name == MISS else None
        rows.append(live.row(title, name, labels, bound, figures))
        missed: list[float | None] = [_missed(live.labels[:, 0], truth, e - size, e) for e in ends]
        series.append(Series(name, ends, missed))
    series.append(Series("target", ends, [100 * TARGET] * len(ends), dashed=True))
    return Chart(f"FNR in windows: {title}", "patients", "FNR (percent)", series)


def _missed(labels: Ints, truth: Ints, start: int, end: int) -> float:
    ill = truth[start:end] == 1
    return 100.0 * float((labels[start:end] != 1)[ill].mean())
