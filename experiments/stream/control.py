"""Online FNR control: what the controller reaches live, beside thresholds chosen in hindsight.

The scores are those of the proposed method in single passes over WDBC; longer streams repeat the
patients in new orders without learning anew, so that only the controller moves. In the drifting
stream the scores of the ill fall by two half-way.
"""

from collections.abc import Callable

import numpy as np

from experiments.paper.rates import rates
from experiments.report.result import Chart, Result, Row, Series, Table
from experiments.stream.locals import Task, listen
from experiments.stream.orders import REPORTED
from experiments.stream.passes import Pass, at_limit, fuse, truths
from experiments.stream.single_pass import OURS
from experiments.workers import spread
from learners.fnr_control import FnrControl
from learners.types import Floats, Ints

Tick = Callable[[], object]
STEPS = (0.1, 0.3, 0.5, 1.0, 2.0)
TARGET = 0.03
PROPOSED = "kdi, stack"


def control(
    count: int = 50, *, seed: int = REPORTED, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Run the controller on single passes, and on long steady and drifting streams."""
    count = min(count, 2 if quick else 20)
    tasks = [Task("wdbc", seed, number) for number in range(count)]
    orders = [task.order() for task in tasks]
    heard = spread(listen, tasks, tick=tick)
    truth = truths(orders)
    plain = fuse(OURS[PROPOSED].maker(3, 2, 1), heard, orders)
    figures: dict[str, float] = {}
    rows: list[Row] = []
    _passes(plain, truth, figures, rows)
    streams = _long(plain, truth, seed, 20_000 if not quick else 2_000)
    charts = [_stream(title, *one, figures, rows) for title, one in streams.items()]
    columns = ["stream", "method", "PER", "FPR", "FNR", "FNR within target by (bound)"]
    return Result(
        name="control",
        title="Online control of the FNR",
        settings={"orders": count, "seed": seed, "target": TARGET, "method": PROPOSED},
        figures=figures,
        tables=[Table("FNR control (percent)", columns, rows)],
        charts=charts,
        notes=[
            (
                "The bound holds for any stream: |FNR - target| <= (2 limit + step) / (step n)"
                " after n labelled positives. A single pass has 212, so it promises little"
                " there; over long streams it forces the FNR to the target."
            ),
        ],
    )


def _passes(plain: Pass, truth: Ints, figures: dict[str, float], rows: list[Row]) -> None:
    """Judge the single passes: as they are, with hindsight, and under control."""
    said: dict[str, tuple[np.ndarray, float | None]] = {"no control": (plain.labels, None)}
    hindsight = at_limit(plain, truth)
    if hindsight is not None:
        said["threshold in hindsight"] = _above(plain, hindsight[1]), None
    positives = int((truth[:, 0] == 1).sum())
    for step in STEPS:
        live = [_live(plain.odds[:, r], truth[:, r], step)[0] for r in range(truth.shape[1])]
        bound = 100 * FnrControl(1, target=TARGET, step=step).bound(positives)
        said[f"step {step:g}"] = np.stack(live, axis=1), bound
    for name, (labels, bound_) in said.items():
        found = rates(labels, truth)
        figures |= found.figures(f"single pass.{name}")
        rows.append(["single pass", name, *found.mean.tolist(), bound_])


def _above(plain: Pass, threshold: float) -> Ints:
    return (plain.odds >= threshold).astype(np.int64)


def _live(odds: Floats, truth: Ints, step: float) -> tuple[np.ndarray, Floats]:
    """Return the labels (T,) that a controlled stream issues, and ln h at each step."""
    control_ = FnrControl(1, target=TARGET, step=step)
    chance = 1.0 / (1.0 + np.exp(-odds))
    support = np.stack([1.0 - chance, chance], axis=1)
    said, path = np.empty(len(odds), np.int8), np.empty(len(odds))
    plain = (odds >= 0).astype(np.int64)
    for t in range(len(odds)):
        path[t] = control_.log_h(np.zeros(1, np.int64))[0]
        issued = control_.decide(plain[t : t + 1], support[t : t + 1])
        said[t] = issued[0]
        control_.learn(issued, truth[t : t + 1])
    return said, path


def _long(plain: Pass, truth: Ints, seed: int, steps: int) -> dict[str, tuple[Floats, Ints]]:
    """Return long streams of the scores of trained learners: steady, and drifting half-way."""
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
    series = []
    runs = {"no control": (odds >= 0).astype(np.int8)}
    runs |= {f"step {step:g}": _live(odds, truth, step)[0] for step in (0.1, 0.5, 2.0)}
    for name, said in runs.items():
        found = rates(said[:, None], truth[None])
        figures |= found.figures(f"{title}.{name}")
        bound = None
        if name != "no control":
            step = float(name.removeprefix("step "))
            bound = 100 * FnrControl(1, target=TARGET, step=step).bound(int(truth.sum()))
        rows.append([title, name, *found.mean.tolist(), bound])
        ends = range(size, len(odds) + 1, size)
        windows = [
            100.0 * float((said[e - size : e] != 1)[truth[e - size : e] == 1].mean()) for e in ends
        ]
        series.append(Series(name, list(ends), list(windows)))
    target = [100 * TARGET] * len(series[0].x)
    series.append(Series("target", series[0].x, list(target), dashed=True))
    return Chart(f"FNR in windows: {title}", "patients", "FNR (percent)", series)
