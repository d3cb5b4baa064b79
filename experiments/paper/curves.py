"""The paper's figures: training-set composition, number of LLs, past patients, bad labels."""

from dataclasses import asdict, replace

import numpy as np

from experiments.paper.methods import FUSIONS, evaluator
from experiments.paper.offline import STRENGTHS, scores
from experiments.paper.one_stage import tune_once
from experiments.paper.parallel_runs import LocalSettings, Tick, simulate_fusion, simulate_learners
from experiments.paper.protocol import Runs, make_runs, stacked
from experiments.paper.rates import Rates, rates
from experiments.report.result import Chart, Result, Row, Series, Table
from learners.arrays.types import Floats, Ints
from learners.fusion.peers.adaboost import boosted_weights

BASE = {name: FUSIONS[name] for name in ("WM", "AH")}
H = 2.3
"""WM's h from Table I's search, kept fixed for the curves of bad labels and past patients."""

MISSING = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FLIPPED = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
LEARNERS = (2, 3, 5, 6, 10, 15, 30)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
COMPOSED = 120


def labels(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Run with missing and erroneous labels, with h fixed."""
    runs = make_runs(count, steps=steps, seed=seed)
    cases = [("missing", rate, runs.with_labels(missing=rate)) for rate in MISSING]
    cases += [("flipped", rate, runs.with_labels(flipped=rate)) for rate in FLIPPED]
    by_case = _together([case[2] for case in cases], runs.count, tick)
    figures: dict[str, float] = {}
    rows: list[Row] = []
    for (kind, rate, _), by_method in zip(cases, by_case, strict=True):
        for name, method_rates in by_method.items():
            figures |= method_rates.figures(f"{name}.{kind}={rate:g}")
            rows.append([kind, rate, name, *method_rates.mean.tolist(), float(method_rates.se[0])])
    for name in BASE:
        clean = figures[f"{name}.missing=0.PER"]
        figures[f"{name}.loss at 50% missing"] = figures[f"{name}.missing=0.5.PER"] - clean
        figures[f"{name}.loss at 10% flipped"] = figures[f"{name}.flipped=0.1.PER"] - clean
    columns = ["labels", "rate", "method", "PER", "FPR", "FNR", "PER ±"]
    return Result(
        name="labels",
        title="Missing and erroneous labels",
        settings={"runs": count, "steps": steps, "seed": seed, "h": H, **asdict(LocalSettings())},
        figures=figures,
        tables=[Table("Missing and flipped labels (percent)", columns, rows)],
        charts=[
            _label_chart(figures, "missing", MISSING),
            _label_chart(figures, "flipped", FLIPPED),
        ],
        notes=_label_notes(figures),
    )


def _label_notes(figures: dict[str, float]) -> list[str]:
    lost = [figures[f"{name}.loss at 50% missing"] for name in BASE]
    wrong = [figures[f"{name}.loss at 10% flipped"] for name in BASE]
    return [
        (
            f"Half of the labels missing costs WM {lost[0]:.2f} and AH {lost[1]:.2f} points of PER"
            " (paper: about 1)."
        ),
        f"10 % flipped labels cost WM {wrong[0]:.2f}, AH {wrong[1]:.2f} points (paper: below 2).",
    ]


def _together(cases: list[Runs], count: int, tick: Tick) -> list[dict[str, Rates]]:
    """Simulate all cases as one set of runs, and return each case's rates."""
    every, settings = stacked(cases), LocalSettings()
    votes = simulate_learners(every, settings, np.array([H]), tick=tick)
    by_case: list[dict[str, Rates]] = [{} for _ in cases]
    for name, method in BASE.items():
        fused = simulate_fusion(method.maker(settings.learners), every, votes, tick=tick)
        per_run = rates(fused.labels[:, 0], every.truth).per_run
        for k, case_rates in enumerate(by_case):
            case_rates[name] = Rates(per_run[:, k * count : (k + 1) * count])
    return by_case


def _label_chart(figures: dict[str, float], kind: str, values: tuple[float, ...]) -> Chart:
    x = [100.0 * value for value in values]
    series = [
        Series(name, list(x), [figures[f"{name}.{kind}={value:g}.PER"] for value in values])
        for name in BASE
    ]
    return Chart(f"Labels {kind}", f"{kind} labels (percent)", "PER (percent)", series)


def learners(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Vary the number of LLs from 2 to 30, each with its share of the 30 features."""
    figures: dict[str, float] = {}
    rows: list[Row] = []
    runs = make_runs(count, steps=steps, seed=seed)
    for number in LEARNERS:
        settings = replace(LocalSettings(), learners=number)
        # Thirty LLs need ten times as much memory as three.
        at_once = 50 if number < 10 else 10
        tuned = tune_once([*BASE], evaluator(runs, settings, BASE, at_once=at_once, tick=tick))
        for name, method in tuned.items():
            figures |= method.rates.figures(f"{name}.M={number}")
            rows.append(
                [
                    number,
                    name,
                    *method.rates.mean.tolist(),
                    float(method.rates.se[0]),
                    round(method.h, 3),
                ]
            )
    falls = figures["WM.M=30.PER"] > figures["WM.M=3.PER"]
    series = [
        Series(name, list(LEARNERS), [figures[f"{name}.M={m}.PER"] for m in LEARNERS])
        for name in BASE
    ]
    columns = ["LLs", "method", "PER", "FPR", "FNR", "PER ±", "h"]
    return Result(
        name="learners",
        title="Number of local learners",
        settings={"runs": count, "steps": steps, "seed": seed, "m": "ceil(T^(1/(2 alpha + d)))"},
        figures=figures,
        tables=[Table("PER by the number of LLs (percent, FNR <= 3 %)", columns, rows)],
        charts=[Chart("Number of LLs", "local learners", "PER (percent)", series)],
        notes=[
            (
                f"With 30 LLs of one feature each WM is {'worse' if falls else 'not worse'} than"
                " with three LLs of ten; the paper says performance falls with M."
            )
        ],
    )


def past(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Show PER by the number of past patients: since the start, and over the last 500."""
    runs, settings = make_runs(count, steps=steps, seed=seed), LocalSettings()
    votes = simulate_learners(runs, settings, np.array([H]), tick=tick)
    points = np.unique(np.geomspace(50, steps, 25).astype(int))
    window = min(500, steps)
    series: list[Series] = []
    rows: list[Row] = []
    figures: dict[str, float] = {}
    for name, method in BASE.items():
        fused = simulate_fusion(method.maker(settings.learners), runs, votes, tick=tick)
        wrong = (fused.labels[:, 0] != runs.truth.T).mean(axis=1)
        total = np.cumsum(wrong)
        average = 100.0 * total[points - 1] / points
        recent = [100.0 * wrong[max(0, p - window) : p].mean() for p in points]
        series += [
            Series(f"{name}, since the start", points.tolist(), average.tolist()),
            Series(f"{name}, last {window}", points.tolist(), recent, dashed=True),
        ]
        figures |= {f"{name}.PER after {p}": float(a) for p, a in zip(points, average, strict=True)}
        rows += [
            [name, int(p), float(a), float(r)]
            for p, a, r in zip(points, average, recent, strict=True)
        ]
    columns = ["method", "past patients", "PER since the start", f"PER of the last {window}"]
    return Result(
        name="past",
        title="Number of past patients",
        settings={"runs": count, "steps": steps, "seed": seed, "h": H, **asdict(settings)},
        figures=figures,
        tables=[Table("PER by the number of past patients (percent)", columns, rows)],
        charts=[
            Chart("Past patients", "past patients", "PER (percent)", series, log_x=True, log_y=True)
        ],
    )


def composition(
    count: int = 50, *, seed: int = 2017, steps: int = 10_000, tick: Tick = lambda: None
) -> Result:
    """Show PER by the share of malignant patients in the offline methods' training set."""
    data = make_runs(1, steps=1).data
    wm = _past_per(count, seed, steps, tick)
    figures = {"WM.PER": float(wm.mean())}
    rows: list[Row] = []
    for share in SHARES:
        errors = np.array(
            [_offline_errors(data.rows, data.truth, share, [seed, r]) for r in range(count)]
        )
        lr, boost = 100.0 * errors.mean(axis=0)
        figures |= {f"LR.share={share:g}.PER": lr, f"AdaBoost.share={share:g}.PER": boost}
        rows.append([100 * share, figures["WM.PER"], lr, boost])
        tick()
    x = [100 * share for share in SHARES]
    columns = ["malignant in training (percent)", "WM", "LR", "AdaBoost"]
    series = [Series(name, x, [row[k + 1] for row in rows]) for k, name in enumerate(columns[1:])]  # type: ignore[misc]  # the rows hold numbers
    return Result(
        name="composition",
        title="Composition of the training set",
        settings={"runs": count, "steps": steps, "seed": seed, "trained on": COMPOSED, "h": 1},
        figures=figures,
        tables=[Table("PER by composition (percent, plain boundaries)", columns, rows)],
        charts=[Chart("Training set", columns[0], "PER (percent)", series)],
        notes=[
            (
                f"Offline methods learn from {COMPOSED} patients, so that every share can be drawn,"
                " and are judged on the others, weighted to the class mix. WM learns online, so it"
                " has no training set and its line is flat."
            ),
        ],
    )


def _past_per(count: int, seed: int, steps: int, tick: Tick) -> Floats:
    runs, settings = make_runs(count, steps=steps, seed=seed), LocalSettings()
    votes = simulate_learners(runs, settings, np.ones(1), tick=tick)
    fused = simulate_fusion(BASE["WM"].maker(settings.learners), runs, votes, tick=tick)
    return np.asarray(rates(fused.labels[:, 0], runs.truth).per_run[0])


def _offline_errors(
    rows: Floats, truth: Ints, share: float, seed: list[int]
) -> tuple[float, float]:
    """Return the errors of LR and AdaBoost trained on a set with that share of positives."""
    rng = np.random.default_rng([*seed, 5])
    positives = round(COMPOSED * share)
    by_label = [rng.permutation(np.flatnonzero(truth == label)) for label in (0, 1)]
    train = np.concatenate([by_label[1][:positives], by_label[0][: COMPOSED - positives]])
    test = np.setdiff1d(np.arange(len(truth)), train)
    mix = np.bincount(truth) / len(truth)
    weights = (mix / np.bincount(truth[test]))[truth[test]]
    predicted = scores("lr", rows[train], truth[train], rows[test]) > 0.5
    parts = np.array_split(rng.permutation(rows.shape[1]), 3)
    training_votes, votes = [], []
    for columns, strength in zip(parts, STRENGTHS, strict=True):
        rows_of_both = rows[np.concatenate([train, test])][:, columns]
        p = scores("lr", rows[train][:, columns], truth[train], rows_of_both, strength) > 0.5
        training_votes.append(p[: len(train)])
        votes.append(np.where(p[len(train) :], 1.0, -1.0))
    vote_weights = boosted_weights(
        np.stack(training_votes, axis=1).astype(np.int64), truth[train], 2
    )
    boosted = np.stack(votes, axis=1) @ vote_weights >= 0.0
    right = truth[test] == 1
    return float(weights @ (predicted != right)), float(weights @ (boosted != right))
