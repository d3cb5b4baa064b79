"""River's online classifiers, which see all features: the single-pass protocol's baselines.

Its logistic regression is tried with River's own online scaler and with ours (`zscore`): ours
includes the present row in its scaling and clips outliers, which helps with the first patients.
"""

from importlib import import_module
from typing import Any

import numpy as np

from experiments.single_pass.fused_passes import Pass, log_odds_of
from experiments.single_pass.local_passes import Task
from learners.arrays.types import Floats, Ints
from learners.rules.expanded_columns import Columns
from learners.rules.scalers import make_scaler
from settings.errors import InputError

DEFAULT = "River logistic, default"
ENSEMBLES = (
    "River Hoeffding tree",
    "River adaptive random forest",
    "River ADWIN bagging of logistic",
    "River naive Bayes",
)


OURS = ", scaled as ours"
"""Ends the names of models that get rows scaled by our online scaler."""


def _named(optimizer: str, rate: float, **extra: float) -> tuple[str, dict[str, Any]]:
    words = "".join(f", {key} {value:g}" for key, value in extra.items())
    name = f"River logistic, {optimizer} {rate:g}{words}"
    return name, {"optimizer": optimizer, "rate": rate, **extra}


_LOGISTIC = dict(
    [
        *(_named("SGD", rate) for rate in (0.02, 0.03, 0.05, 0.07, 0.1)),
        *(_named("SGD", rate, intercept_lr=0.05) for rate in (0.05, 0.07)),
        _named("SGD", 0.07, l2=0.01),
        *(_named("Adam", rate) for rate in (0.01, 0.02)),
        *(_named("AdaGrad", rate) for rate in (0.1, 0.2)),
        _named("RMSProp", 0.02),
    ]
)
TRIED: dict[str, dict[str, Any]] = {
    f"{name}{scaler}": options for scaler in ("", OURS) for name, options in _LOGISTIC.items()
}
"""Settings of River's logistic regression that were tried on the tuning orders."""

BEST = f"River logistic, SGD 0.05, intercept_lr 0.05{OURS}"
"""The one of these with the lowest PER, also at FNR <= 3 %."""

PEERS = (BEST, DEFAULT, *ENSEMBLES)


def river_model(name: str, classes: int) -> Any:
    """Return an untrained model by its name."""
    try:
        river = import_module("river.api")
    except ModuleNotFoundError as error:
        raise InputError(
            "this experiment needs River; install the extra: pip install"
            " 'hedged-bandits[experiments]'"
        ) from error
    scaled = river.preprocessing.StandardScaler()
    if name in {DEFAULT, *TRIED}:
        logistic = _logistic(river, classes, **TRIED.get(name, {}))
        return logistic if name.endswith(OURS) else scaled | logistic
    makers = {
        ENSEMBLES[0]: river.tree.HoeffdingTreeClassifier,
        ENSEMBLES[1]: lambda: river.forest.ARFClassifier(seed=1),
        ENSEMBLES[2]: lambda: (
            scaled | river.ensemble.ADWINBaggingClassifier(_logistic(river, classes), seed=1)
        ),
        ENSEMBLES[3]: river.naive_bayes.GaussianNB,
    }
    return makers[name]()


def _logistic(
    river: Any, classes: int, optimizer: str = "SGD", rate: float | None = None, **extra: float
) -> Any:
    optimiser = None if rate is None else getattr(river.optim, optimizer)(rate)
    logistic = river.linear_model.LogisticRegression(optimizer=optimiser, **extra)
    return logistic if classes == 2 else river.multiclass.OneVsRestClassifier(logistic)


def river_pass(job: tuple[Task, str]) -> tuple[Ints, Floats]:
    """Run one pass with a model that sees all features; return labels (N,) and log-odds (N,)."""
    task, name = job
    order = task.order()
    data = order.data
    model = river_model(name, data.classes)
    space = data.space()
    columns, keys = space.expand(order.rows), space.expanded_names
    if name.endswith(OURS):
        # Each row is scaled right after it was added, which is how a rule sees it.
        columns = make_scaler("zscore", Columns(space)).learn(columns)
    labels, odds = np.empty(len(columns), np.int64), np.zeros(len(columns))
    rows = [dict(zip(keys, row, strict=True)) for row in columns.tolist()]
    for t, x in enumerate(rows):
        chances = model.predict_proba_one(x)
        shares = np.array([chances.get(k, 0.0) for k in range(data.classes)])
        total = shares.sum()
        shares = shares / total if total > 0 else np.full(data.classes, 1.0 / data.classes)
        labels[t] = shares.argmax()
        if data.positive is not None:
            odds[t] = log_odds_of(shares[data.positive])
            # A tie goes to the positive label, as in our own methods.
            if shares[data.positive] == shares.max():
                labels[t] = data.positive
        if t >= task.late:
            model.learn_one(rows[t - task.late], int(order.told[t - task.late]))
    return labels, odds


def stacked_pass(parts: list[tuple[Ints, Floats]]) -> Pass:
    """Return several passes as one."""
    return Pass(
        np.stack([part[0] for part in parts], axis=1), np.stack([part[1] for part in parts], axis=1)
    )
