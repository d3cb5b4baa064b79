"""Table I: Hedged Bandits compared with offline methods, at an FNR just below 3 %."""

from dataclasses import asdict

import numpy as np

from experiments.paper.methods import FUSIONS, REFERENCES, evaluator
from experiments.paper.offline import adaboost, centralised, tuned_boundary
from experiments.paper.parallel_runs import LocalSettings, Tick
from experiments.paper.protocol import Runs, make_runs
from experiments.paper.published import COMPARED, compared, published
from experiments.paper.rates import METRICS, improvement
from experiments.paper.search import Tuned, tune
from experiments.report.result import Chart, Result, Row, Series, Table

PRINTED = {
    "WM": "HB(IUP+WM)",
    "AH": "HB(IUP+AH)",
    "LR": "LR",
    "AdaBoost": "AdaBoost",
    "SVM": "SVM",
    "Best LL": "Best LL",
    "Average LL": "Average LL",
    "Worst LL": "Worst LL",
}
WEAK = (10.0, 30.0)
"""C of the logistic regressions with little regularisation; C is 1 elsewhere."""

VARIANTS = {
    **{f"LR, C = {strength:g}": "LR" for strength in WEAK},
    "LR raw": "LR",
    "SVM raw": "SVM",
}
"""Less regularisation, or features that are not standardised: compared with the same rows."""

SEEDS = 5
"""How many seeds are used to show how LR's figure depends on the choice of runs."""


def table1(
    count: int = 50,
    *,
    seed: int = 2017,
    steps: int = 10_000,
    settings: LocalSettings | None = None,
    tick: Tick = lambda: None,
) -> Result:
    """Run Experiment 1."""
    settings = settings or LocalSettings()
    runs = make_runs(count, steps=steps, seed=seed)
    methods = {name: FUSIONS[name] for name in ("WM", "AH")}
    names = [*methods, *REFERENCES]
    tuned = tune(names, evaluator(runs, settings, methods, tick=tick))
    tuned |= offline_methods(runs)
    figures = {
        k: v for name, choice in tuned.items() for k, v in choice.rates.figures(name).items()
    }
    figures |= {f"{name}.PER sd": float(choice.rates.sd[0]) for name, choice in tuned.items()}
    figures |= _seeds(count, seed, steps)
    figures["IR.WM over LR"] = improvement(figures["WM.PER"], figures["LR.PER"])
    figures["IR.Best LL over LR"] = improvement(figures["Best LL.PER"], figures["LR.PER"])
    return Result(
        name="table1",
        title="Table I: comparison with offline methods",
        settings={"runs": count, "steps": steps, "seed": seed, **asdict(settings)},
        figures=figures,
        tables=[
            Table("Table I (percent, FNR just below 3 %)", COMPARED, _rows(tuned)),
            _deviations(tuned),
        ],
        charts=[_chart(tuned)],
        notes=_notes(tuned, figures),
    )


def _seeds(count: int, seed: int, steps: int) -> dict[str, float]:
    """Return the lowest and the highest PER of LR with C = 10 over several seeds."""
    drawn = [make_runs(count, steps=steps, seed=seed + k) for k in range(SEEDS)]
    errors = [
        tuned_boundary(runs, centralised(runs, "lr", WEAK[0])).rates.mean[0] for runs in drawn
    ]
    name = f"LR, C = {WEAK[0]:g}.PER"
    return {f"{name} lowest": float(np.min(errors)), f"{name} highest": float(np.max(errors))}


def offline_methods(runs: Runs) -> dict[str, Tuned]:
    """Return the offline methods at their best boundary."""
    kinds = {"LR": "lr", "SVM": "svm", "LR raw": "lr-raw", "SVM raw": "svm-raw"}
    tuned = {name: tuned_boundary(runs, centralised(runs, kind)) for name, kind in kinds.items()}
    for strength in WEAK:
        scores = centralised(runs, "lr", strength)
        tuned[f"LR, C = {strength:g}"] = tuned_boundary(runs, scores)
    return tuned | {"AdaBoost": adaboost(runs)}


def _rows(tuned: dict[str, Tuned]) -> list[Row]:
    printed = published()["table1"]
    rows = []
    for name, key in {**PRINTED, **VARIANTS}.items():
        paper = [printed[key][metric] for metric in METRICS]
        choice = tuned[name]
        rows.append(compared(name, paper, choice.rates, round(choice.h, 4), printed[key]["sd"]))
    return rows


def _deviations(tuned: dict[str, Tuned]) -> Table:
    printed = published()["table1"]
    columns = ["method", *(f"{metric}{of}" for metric in METRICS for of in (" paper", ""))]
    rows: list[Row] = []
    for name, key in {**PRINTED, **VARIANTS}.items():
        pairs = zip(printed[key]["sd"], tuned[name].rates.sd.tolist(), strict=True)
        rows.append([name, *(value for pair in pairs for value in pair)])
    return Table("Standard deviations over the runs (percent)", columns, rows)


def _chart(tuned: dict[str, Tuned]) -> Chart:
    printed = published()["table1"]
    names = list(PRINTED)
    return Chart(
        "Table I, PER at FNR just below 3 %",
        "method",
        "PER (percent)",
        [
            Series("paper", names, [printed[PRINTED[n]]["PER"] for n in names]),
            Series(
                "ours",
                names,
                [float(tuned[n].rates.mean[0]) for n in names],
                [float(tuned[n].rates.se[0]) for n in names],
            ),
        ],
        kind="bar",
    )


def _notes(tuned: dict[str, Tuned], figures: dict[str, float]) -> list[str]:
    order = ["WM", "Best LL", "AH", "Average LL", "Worst LL"]
    listed = ", ".join(f"{name} {_with_error(tuned[name])}" for name in order)
    name = f"LR, C = {WEAK[0]:g}"
    notes = [
        f"In the paper's order of PER: {listed}.",
        (
            f"{name}: {_with_error(tuned[name])} on these runs, and from"
            f" {figures[f'{name}.PER lowest']:.2f} to {figures[f'{name}.PER highest']:.2f} over"
            f" {SEEDS} seeds. The standard error does not show this spread: it takes the boundary"
            " as given, but the boundary is tuned on the same runs."
        ),
    ]
    missed = [name for name, choice in tuned.items() if not choice.reached]
    if missed:
        notes.append("FNR 3 % was not reached by: " + ", ".join(missed))
    return notes


def _with_error(choice: Tuned) -> str:
    return f"{choice.rates.mean[0]:.2f} ± {choice.rates.se[0]:.2f}"
