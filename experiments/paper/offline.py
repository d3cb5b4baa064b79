"""The paper's offline methods: trained once on a run's 285 patients, then fixed.

Logistic regression and the SVM see all 30 features; AdaBoost weights three logistic regressions
that see 10 each. Their hyper-parameter is the decision boundary. The test patients of a run are
scored once; the 10000 draws with replacement only weight the scores by how often each was drawn.
"""

import numpy as np

from experiments.paper.protocol import Runs, training_rows
from experiments.paper.rates import Rates
from experiments.paper.search import LIMIT, Tuned, choose
from learners.arrays.types import Bools, Floats, Ints
from learners.fusion.peers.adaboost import boosted_weights

BOUNDARIES = np.concatenate([np.geomspace(1e-5, 0.05, 150), np.linspace(0.0505, 0.9995, 350)])
STRENGTHS = (1.0, 0.1, 10.0)
"""C of AdaBoost's three weak learners, logistic regressions "with different parameters"."""


def scores(kind: str, x: Floats, y: Ints, unseen: Floats, strength: float = 1.0) -> Floats:
    """Train on (x, y) and return the scores in [0, 1] of the unseen rows.

    `lr-raw` and `svm-raw` skip the standardisation of the features.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    if not kind.endswith("raw"):
        scaler = StandardScaler().fit(x)
        x, unseen = scaler.transform(x), scaler.transform(unseen)
    if kind.startswith("lr"):
        # liblinear copes with features on any scale.
        model = LogisticRegression(C=strength, solver="liblinear").fit(x, y)
        return np.asarray(model.predict_proba(unseen)[:, 1])
    margin = SVC(C=strength).fit(x, y).decision_function(unseen)
    return np.asarray(1.0 / (1.0 + np.exp(-margin)))


def centralised(runs: Runs, kind: str, strength: float = 1.0) -> Floats:
    """Return (R, n) scores of the test patients by a method that sees all features."""
    return np.stack(
        [
            scores(kind, *training_rows(runs, r), runs.data.rows[runs.test[r]], strength)
            for r in range(runs.count)
        ]
    )


def tuned_boundary(runs: Runs, chances: Floats, limit: float = LIMIT) -> Tuned:
    """Return the boundary with the lowest PER among those with FNR below the limit."""
    tried = {float(b): weighed(runs, chances > b) for b in BOUNDARIES}
    return choose(tried, limit)


def weighed(runs: Runs, positive: Bools) -> Rates:
    """Return the rates of fixed decisions on the test patients, (R, n), over the draws."""
    times = draw_counts(runs)
    truth = runs.data.truth[runs.test]
    wrong = (positive != (truth == 1)) * times
    groups = times, times * (truth == 0), times * (truth == 1)
    per_run = [
        100.0 * np.where(group > 0, wrong, 0).sum(axis=1) / group.sum(axis=1) for group in groups
    ]
    return Rates(np.array(per_run))


def draw_counts(runs: Runs) -> Ints:
    """Return (R, n): how often each test patient was drawn."""
    size = len(runs.data.rows)
    every = np.stack([np.bincount(draws, minlength=size) for draws in runs.draws])
    return np.take_along_axis(every, runs.test, axis=1)


def split_scores(runs: Runs, kind: str, learners: int = 3) -> tuple[Floats, Floats]:
    """Return scores of training (R, 285, M) and test patients (R, n, M) by LLs of one kind."""
    training, unseen = [], []
    for r in range(runs.count):
        x, y = training_rows(runs, r)
        test = runs.data.rows[runs.test[r]]
        pairs = []
        for i, columns in enumerate(runs.columns(learners)):
            mine = columns[r]
            rows = np.concatenate([x[:, mine], test[:, mine]])
            pairs.append(scores(kind, x[:, mine], y, rows, STRENGTHS[i % len(STRENGTHS)]))
        every = np.stack(pairs, axis=1)
        training.append(every[: len(x)])
        unseen.append(every[len(x) :])
    return np.stack(training), np.stack(unseen)


def adaboost(runs: Runs, limit: float = LIMIT) -> Tuned:
    """Tune offline AdaBoost over its weak learners' decision boundary."""
    training, unseen = split_scores(runs, "lr")
    truth = runs.data.truth[runs.train]
    tried = {}
    for boundary in BOUNDARIES[::5].tolist():
        votes = (training > boundary).astype(np.int64)
        weights = np.stack([boosted_weights(v, t, 2) for v, t in zip(votes, truth, strict=True)])
        signs = np.where(unseen > boundary, 1.0, -1.0)
        # A tie is called malignant, as everywhere in the paper's experiments.
        tried[boundary] = weighed(runs, (signs * weights[:, None]).sum(axis=2) >= 0.0)
    return choose(tried, limit)
