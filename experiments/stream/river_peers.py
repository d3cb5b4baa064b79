"""River's online classifiers, which see all features: the peers of the single-pass protocol."""

from importlib import import_module
from typing import Any

import numpy as np

from experiments.stream.locals import Task
from experiments.stream.passes import Pass, log_odds_of
from learners.types import Floats, Ints
from streams.errors import InputError

BEST_RATE = 0.05
"""Step size of River's logistic regression with the lowest PER on the tuning orders of WDBC."""

PEERS = (
    "River logistic, best rate",
    "River logistic, default",
    "River Hoeffding tree",
    "River adaptive random forest",
    "River ADWIN bagging of logistic",
    "River naive Bayes",
)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2)


def river_model(name: str, classes: int, rate: float | None = None) -> Any:
    """Return an untaught model by its name in PEERS; `rate` overrides the step size."""
    try:
        river = import_module("river.api")
    except ModuleNotFoundError as error:
        raise InputError(
            "this experiment needs River; install the extra: pip install"
            " 'hedged-bandits[experiments]'"
        ) from error
    rate = rate or (BEST_RATE if name == PEERS[0] else None)
    sgd = river.optim.SGD(rate) if rate else None
    scaled = river.preprocessing.StandardScaler()
    logistic = river.linear_model.LogisticRegression(optimizer=sgd)
    if "logistic" in name and classes > 2:
        logistic = river.multiclass.OneVsRestClassifier(logistic)
    makers = {
        PEERS[0]: lambda: scaled | logistic,
        PEERS[1]: lambda: scaled | logistic,
        PEERS[2]: river.tree.HoeffdingTreeClassifier,
        PEERS[3]: lambda: river.forest.ARFClassifier(seed=1),
        PEERS[4]: lambda: scaled | river.ensemble.ADWINBaggingClassifier(logistic, seed=1),
        PEERS[5]: river.naive_bayes.GaussianNB,
    }
    return makers[name]()


def river_pass(job: tuple[Task, str, float | None]) -> tuple[Ints, Floats]:
    """Make one pass with a model that sees all features: labels (N,) and log-odds (N,)."""
    task, name, rate = job
    order = task.order()
    data = order.data
    model = river_model(name, data.classes, rate)
    space = data.space()
    columns, keys = space.expand(order.rows), space.expanded_names
    labels, odds = np.empty(len(columns), np.int64), np.zeros(len(columns))
    for t, row in enumerate(columns.tolist()):
        x = dict(zip(keys, row, strict=True))
        said = model.predict_proba_one(x)
        shares = np.array([said.get(k, 0.0) for k in range(data.classes)])
        total = shares.sum()
        shares = shares / total if total > 0 else np.full(data.classes, 1.0 / data.classes)
        labels[t] = shares.argmax()
        if data.positive is not None:
            odds[t] = log_odds_of(shares[data.positive])
            # Of two equal chances the positive one is said, as by our own methods.
            if shares[data.positive] == shares.max():
                labels[t] = data.positive
        model.learn_one(x, int(order.told[t]))
    return labels, odds


def stacked_pass(parts: list[tuple[Ints, Floats]]) -> Pass:
    """Return several passes as one."""
    return Pass(
        np.stack([part[0] for part in parts], axis=1), np.stack([part[1] for part in parts], axis=1)
    )
