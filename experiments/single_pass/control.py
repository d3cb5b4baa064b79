"""Online FNR control: what the controller achieves live, and what thresholds in hindsight achieve.

The scores are those of the proposed method and of River's best in single passes over WDBC; both
get the same controller. Longer streams draw from these scores at random, without further learning,
so that only the controller adapts. In the drifting stream the positives' scores drop by two
half-way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from experiments.paper.rates import rates
from experiments.process_pool import spread
from experiments.report.result import Chart, Result, Row, Series, Table
from experiments.single_pass.fnr_control import FnrControl
from experiments.single_pass.fused_passes import Pass, at_limit, fuse, truths
from experiments.single_pass.local_passes import Task, listen
from experiments.single_pass.methods import OURS, PROPOSED, RECIPES
from experiments.single_pass.orders import REPORTED
from experiments.single_pass.river_peers import BEST, river_pass, stacked_pass
from learners.arrays.types import Floats, Ints

Tick = Callable[[], object]
TARGET = 0.03


@dataclass(frozen=True)
class Setting:
    """A controller's settings: its step, and h before the first label."""

    step: float
    start: float = 1.0

    def __str__(self) -> str:
        return f"step {self.step:g}, start {self.start:g}"

    def made(self, streams: int = 1) -> FnrControl:
        """Return a fresh controller, with one cube for each parallel stream."""
        return FnrControl(1, target=TARGET, step=self.step, prior=log(self.start), cubes=streams)


SETTINGS = [Setting(step, start) for start in (1.0, 2.5) for step in (0.1, 0.3, 0.5, 1.0, 2.0)]
LONG = [Setting(step, 2.5) for step in (0.1, 0.3, 2.0)]
DEFAULT = Setting(0.3, 2.5)
"""The product's default."""


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
    columns = ["stream", "control", "PER", "FPR", "FNR", "FNR within target by (bound)"]
    return Result(
        name="control",
        title="Online control of the FNR",
        settings={"orders": count, "seed": seed, "target": TARGET, "ours": PROPOSED,
                  "River": BEST.removeprefix("River ")},
        figures=figures,
        tables=[Table("FNR control (percent)", columns, rows)],
        charts=[_trade(figures), *charts],
        notes=_notes(figures),
    )  # fmt: skip


def _notes(f: dict[str, float]) -> list[str]:
    key = f"single pass, ours.{DEFAULT}"
    return [
        (
            f"Live, with the product's defaults ({DEFAULT}): PER {f[f'{key}.PER']:.2f} at FNR"
            f" {f[f'{key}.FNR']:.2f}; River under the same controller"
            f" {f[f'single pass, River.{DEFAULT}.PER']:.2f} at"
            f" {f[f'single pass, River.{DEFAULT}.FNR']:.2f}."
        ),
        (
            "The bound holds for any stream: |FNR - target| <= (2 limit + step) / (step n) after n"
            " labelled positives. A single pass has 212, so it promises little there; over long"
            " streams it forces the FNR to the target."
        ),
        (
            "start is h before the first label: above 1, the positive label is said on less"
            " evidence. Step and start of the defaults were chosen on the tuning orders."
        ),
    ]


def _passes(
    whose: str, plain: Pass, truth: Ints, figures: dict[str, float], rows: list[Row]
) -> None:
    """Evaluate the single passes: without control, in hindsight, and under control."""
    issued: dict[str, tuple[Ints, float | None]] = {"no control": (plain.labels, None)}
    hindsight = at_limit(plain, truth)
    if hindsight is not None:
        above = (plain.odds >= hindsight[1]).astype(np.int64)
        issued["threshold in hindsight"] = above, None
    positives = int((truth[:, 0] == 1).sum())
    for setting in SETTINGS:
        live = controlled(plain.odds, truth, setting)
        issued[str(setting)] = live, 100 * setting.made().bound(positives)
    for name, (labels, bound) in issued.items():
        measured = rates(labels, truth)
        figures |= measured.figures(f"single pass, {whose}.{name}")
        rows.append([f"single pass, {whose}", name, *measured.mean.tolist(), bound])


def controlled(odds: Floats, truth: Ints, setting: Setting) -> Ints:
    """Return the labels (T, R) that R controlled streams issue."""
    streams = np.arange(odds.shape[1])
    control_ = setting.made(len(streams))
    chance = 1.0 / (1.0 + np.exp(-odds))
    support = np.stack([1.0 - chance, chance], axis=2)
    issued = (odds >= 0).astype(np.int64)
    for t in range(len(odds)):
        issued[t] = control_.decide(issued[t], support[t], streams)
        control_.learn(issued[t], truth[t], streams)
    return issued


def _trade(figures: dict[str, float]) -> Chart:
    """Plot the FNR and PER that each controller achieves."""
    series = []
    for whose in ("ours", "River"):
        for start in (1.0, 2.5):
            names = [f"single pass, {whose}.{s}" for s in SETTINGS if s.start == start]
            points = sorted((figures[f"{name}.FNR"], figures[f"{name}.PER"]) for name in names)
            series.append(
                Series(f"{whose}, start {start:g}", [x for x, _ in points], [y for _, y in points])
            )
    return Chart("Live control in single passes", "FNR (percent)", "PER (percent)", series)


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
    runs: dict[str, tuple[Ints, float | None]] = {
        "no control": ((odds >= 0).astype(np.int64), None)
    }
    for setting in LONG:
        bound = 100 * setting.made().bound(int(truth.sum()))
        runs[str(setting)] = controlled(odds[:, None], truth[:, None], setting)[:, 0], bound
    for name, (labels, bound_) in runs.items():
        measured = rates(labels[:, None], truth[None])
        figures |= measured.figures(f"{title}.{name}")
        rows.append([title, name, *measured.mean.tolist(), bound_])
        series.append(Series(name, ends, [_missed(labels, truth, e - size, e) for e in ends]))
    series.append(Series("target", ends, [100 * TARGET] * len(ends), dashed=True))
    return Chart(f"FNR in windows: {title}", "patients", "FNR (percent)", series)


def _missed(labels: Ints, truth: Ints, start: int, end: int) -> float:
    ill = truth[start:end] == 1
    return 100.0 * float((labels[start:end] != 1)[ill].mean())
