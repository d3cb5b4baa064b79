"""Late labels and drift.

Delay: labels arrive 0 to 5000 steps after their predictions, and nothing is learned from a patient
before then. AH's regret is counted over all steps, and its bound grows with the delay.

Drift: in one stream the labels of a group of patients (those with a large mean radius) swap
half-way, so that what was learned about them is wrong. In another the best of three given experts
changes half-way, and only the fusion rule can adapt.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from experiments.data import Dataset, wdbc
from experiments.paper.methods import FUSIONS, Method, run_method
from experiments.paper.parallel_runs import LocalSettings, Votes, simulate_learners
from experiments.paper.protocol import Runs, make_runs
from experiments.paper.rates import rates
from experiments.report.result import Chart, Result, Row, Series, Table
from experiments.single_pass.fused_passes import fuse
from experiments.single_pass.local_passes import together
from experiments.single_pass.methods import OURS, PROPOSED, RECIPES
from experiments.single_pass.orders import Order
from learners.arrays.seeds import seeds_of
from learners.arrays.types import Bools, Floats
from learners.fusion.late_labels import bound_at_delay
from learners.local.iup import Feedback
from learners.theory.regret import ensemble_regret

Tick = Callable[[], object]
KINDS = {
    "bandit": LocalSettings(),
    "full": LocalSettings(feedback=Feedback.FULL, exploration=0.0),
}
SWAP = "labels swap for a group"
LEARNING_STEPS = 2_400
"""How many patients rules that learn are shown: they take a millisecond each."""
DELAYS = (0, 10, 100, 1000, 5000)
RATES = {"first": (0.05, 0.2, 0.35), "second": (0.35, 0.2, 0.05)}
FOLLOWERS = {
    "WM": FUSIONS["WM"],
    "AH": FUSIONS["AH"],
    "TrackExp": FUSIONS["TrackExp"],
    "CH vote, d_EL = 2": Method("ch-vote", contexts=2),
    "majority": Method("majority"),
}


def delay(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Show PER and regret by delay, under bandit and full feedback."""
    runs = make_runs(count, steps=steps, seed=seed)
    figures: dict[str, float] = {}
    rows: list[Row] = []
    waits = [d for d in DELAYS if d < steps]
    for wait in waits:
        for kind in KINDS:
            _delayed(runs, wait, kind, figures=figures, rows=rows, tick=tick)
    columns = [
        "delay", "feedback", "method", "PER", "FPR", "FNR", "PER ±", "pseudo-regret", "largest",
    ]  # fmt: skip
    allowed = ", ".join(f"{bound_at_delay(steps, 3, wait):,.0f} at {wait:,}" for wait in waits)
    series = [
        Series(
            f"{name}, {kind}",
            [max(d, 1) for d in waits],
            [figures[f"{name}.{kind}.delay={d}.PER"] for d in waits],
        )
        for name in ("WM", "AH")
        for kind in KINDS
    ]
    return Result(
        name="delay",
        title="Late labels",
        settings={"runs": count, "steps": steps, "seed": seed, "h": 1},
        figures=figures,
        tables=[Table("By the delay of labels (percent)", columns, rows)],
        charts=[
            Chart("PER by delay (0 is drawn at 1)", "steps", "PER (percent)", series, log_x=True)
        ],
        notes=[f"The bound on AH's regret, by the delay of labels: {allowed}."],
    )


def _delayed(
    runs: Runs, wait: int, kind: str, *, figures: dict[str, float], rows: list[Row], tick: Tick
) -> None:
    """Run WM and AH with one delay and one kind of feedback."""
    settings = KINDS[kind]
    votes = simulate_learners(runs, settings, np.ones(1), delay=wait, tick=tick)
    for name in ("WM", "AH"):
        fused = run_method(FUSIONS[name], runs, settings, votes, delay=wait, losses=True, tick=tick)
        measured = rates(fused.labels[:, 0], runs.truth)
        regret = pseudo_regret(runs, votes, fused.expected)[-1]
        key = f"{name}.{kind}.delay={wait}"
        figures |= {**measured.figures(key), f"{key}.regret": float(regret.mean())}
        rows.append(
            [wait, kind, name, *measured.mean.tolist(), float(measured.se[0]), float(regret.mean()),
             float(regret.max())]
        )  # fmt: skip


def pseudo_regret(runs: Runs, votes: Votes, expected: np.ndarray | None) -> Floats:
    """Return (T, R): expected errors so far minus those of the best LL so far, for one h."""
    assert expected is not None  # noqa: S101 - requested with losses=True
    wrong = votes.labels[:, 0] != runs.truth.T[:, :, None]
    losses = np.cumsum(wrong, axis=0, dtype=np.int64)
    return ensemble_regret(np.cumsum(expected[:, 0], axis=0), losses)


def drift(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Show what happens when a group's labels swap, and when the best expert changes."""
    figures: dict[str, float] = {}
    rows: list[Row] = []
    charts = []
    for title, (runs, votes) in _streams(count, seed, steps, tick).items():
        series = []
        for name, method in FOLLOWERS.items():
            fused = run_method(method, runs, LocalSettings(), votes, tick=tick)
            wrong = (fused.labels[:, 0] != runs.told.T).mean(axis=1)
            series.append(Series(name, *_windows(wrong, max(1, steps // 40))))
            if name == "WM":
                series.append(_since_start("WM, since the start", wrong, series[0].x))
            parts = _around(wrong)
            rows.append([title, name, *parts.values()])
            figures |= {f"{title}.{name}.{key}": value for key, value in parts.items()}
        charts.append(Chart(f"Drift: {title}", "patients", "PER in a window (percent)", series))
    learned = _around(rules_that_learn(min(steps, LEARNING_STEPS), seed))
    rows.append([f"{SWAP}, rules that learn", PROPOSED, *learned.values()])
    figures |= {f"{SWAP}.{PROPOSED}.{key}": value for key, value in learned.items()}
    tenth = f"{steps // 10} patients"
    columns = [
        "stream", "method", f"last {tenth} before", f"first {tenth} after", f"last {tenth}", "all",
    ]  # fmt: skip
    return Result(
        name="drift",
        title="A changing world",
        settings={"runs": count, "steps": steps, "seed": seed, "h": 1},
        figures=figures,
        tables=[Table("PER around the change (percent)", columns, rows)],
        charts=charts,
        notes=[
            "Windowed rates show the change at once; rates since the start hide it.",
            (
                f"Rules that learn follow by themselves: {learned['before']:.1f} % before,"
                f" {learned['after']:.1f} % just after, {learned['end']:.1f} % at the end of"
                f" {min(steps, LEARNING_STEPS)} patients (tenths of the stream)."
            ),
            (
                "When the LLs' own counts are wrong, no fusion rule can repair it: they have to"
                " unlearn. When the best of given experts changes, fixed share (TrackExp) can"
                " follow within a few labels, while losses since the start hold Hedge back."
            ),
        ],
    )


def rules_that_learn(steps: int, seed: int) -> Floats:
    """Return (steps,) the share of errors in two runs of what `hb init` proposes, at a swap."""
    orders = [_swapping_order(steps, [seed, 7, number]) for number in range(2)]
    recipe = RECIPES[OURS[PROPOSED].recipe]
    heard = [
        together([recipe.learner(order, mine) for mine in order.columns], order) for order in orders
    ]
    diagnosed = fuse(OURS[PROPOSED].maker(3, 2, 1), heard, orders).labels
    labels = np.stack([order.told for order in orders], axis=1)
    return np.asarray((diagnosed != labels).mean(axis=1))


def _swapping_order(steps: int, seed: list[int]) -> Order:
    """Return patients drawn at random, a group of whose labels swaps half-way."""
    data, rng = wdbc(), np.random.default_rng(seed)
    patients = rng.integers(0, len(data.rows), steps)
    columns = np.array_split(rng.permutation(data.rows.shape[1]), 3)
    moved = _group(data)[patients] & (np.arange(steps) >= steps // 2)
    truth = data.truth[patients]
    seeds = seeds_of(f"{seed}/{t}" for t in range(steps))
    return Order(data, patients, columns, seeds, np.where(moved, 1 - truth, truth))


def _group(data: Dataset) -> Bools:
    """(N,) the patients with a large mean radius."""
    radius = data.rows[:, 0]
    return np.asarray(radius > np.quantile(radius, 0.75))


def _since_start(name: str, wrong: Floats, at: list[int]) -> Series:
    """Return the rate since the start, at the ends of the windows."""
    rate = 100.0 * np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    return Series(name, list(at), [float(rate[min(x, len(wrong)) - 1]) for x in at], dashed=True)


def _around(wrong: Floats) -> dict[str, float]:
    """Return the PER of a tenth of the stream before the change, after it and at the end."""
    half, tenth = len(wrong) // 2, len(wrong) // 10
    parts = {
        "before": wrong[half - tenth : half],
        "after": wrong[half : half + tenth],
        "end": wrong[-tenth:],
        "PER": wrong,
    }
    return {key: 100.0 * float(part.mean()) for key, part in parts.items()}


def _streams(count: int, seed: int, steps: int, tick: Tick) -> dict[str, tuple[Runs, Votes]]:
    runs = make_runs(count, steps=steps, seed=seed)
    swapped = swap_group(runs)
    votes = simulate_learners(swapped, KINDS["full"], np.ones(1), tick=tick)
    return {
        SWAP: (swapped, votes),
        "the best expert changes": (runs, given_experts(runs, seed)),
    }


def swap_group(runs: Runs) -> Runs:
    """Return the runs with the labels of patients with a large mean radius swapped half-way."""
    group = _group(runs.data)[runs.draws]
    late = np.arange(runs.steps) >= runs.steps // 2
    return replace(runs, told=np.where(group & late, 1 - runs.truth, runs.truth))


def given_experts(runs: Runs, seed: int) -> Votes:
    """Return three experts with fixed error rates; the best and the worst swap half-way."""
    rng = np.random.default_rng([seed, 3])
    late = (np.arange(runs.steps) >= runs.steps // 2)[:, None]
    chance = np.where(late, RATES["second"], RATES["first"])[:, None, :]
    wrong = rng.random((runs.steps, runs.count, 3)) < chance
    truth = runs.truth.T[:, :, None]
    labels = np.where(wrong, 1 - truth, truth).astype(np.int8)[:, None]
    return Votes(labels, np.zeros_like(labels, np.bool_))


def _windows(wrong: Floats, size: int) -> tuple[list[int], list[float | None]]:
    starts = range(0, len(wrong), size)
    return (
        [start + size for start in starts],
        [100.0 * float(wrong[start : start + size].mean()) for start in starts],
    )
