"""Feature spaces, streams and rules that the tests of rules share."""

import numpy as np

from learners.local.features import Categorical, FeatureSpace, MinMax, Real
from learners.rules.base import LearningRule
from learners.rules.registry import make_rule

LABELS = {2: ("benign", "malignant"), 3: ("low", "middle", "high")}

REALS = FeatureSpace(tuple(Real(name, MinMax(-3.0, 3.0)) for name in ("age", "dose", "size")))
MIXED = FeatureSpace(
    (
        Real("age", MinMax(-3.0, 3.0)),
        Categorical("sex", ("f", "m")),
        Real("dose", MinMax(-3.0, 3.0)),
        Categorical("ward", ("a", "b", "c")),
    )
)
CATEGORIES = FeatureSpace((Categorical("sex", ("f", "m")), Categorical("ward", ("a", "b", "c"))))

LEARNING = {
    "logistic": {"kind": "logistic"},
    "logistic, shrunk ranks": {"kind": "logistic", "l2": 0.01, "scaling": "rank"},
    "bayes": {"kind": "bayes"},
    "bayes, fourier": {"kind": "bayes", "fourier": 7, "scaling": "zscore"},
    "naive bayes": {"kind": "naive_bayes"},
    "naive bayes, binned": {"kind": "naive_bayes", "likelihood": "binned", "bins": 5},
    "lda": {"kind": "lda", "capacity": 8},
    "cells": {"kind": "cells", "enough": 12, "backoff": 8.0},
    "committee": {
        "kind": "committee",
        "members": [
            {"kind": "logistic"},
            {"kind": "lda", "capacity": 16},
            {"kind": "bayes", "fourier": 5},
        ],
    },
    "joint committee": {
        "kind": "committee",
        "members": [
            {"kind": "logistic", "joint": True},
            {"kind": "lda", "capacity": 16},
            {"kind": "bayes", "joint": True},
        ],
    },
    "mixed committee": {"kind": "committee", "preset": "mixed"},
}
"""Tables of rules that learn; sketches small enough to be compacted within a test."""


def learning_rule(table, space=REALS, classes=2) -> LearningRule:
    rule = make_rule(table, space, LABELS[classes])
    assert isinstance(rule, LearningRule)
    return rule


def stream(generator, n, space=REALS, classes=2, outliers=0.02):
    """Rows with ties and outliers, and labels that follow the first feature, with noise."""
    rows = generator.normal(size=(n, space.d)).round(1)
    rows[generator.random((n, space.d)) < outliers] *= 1e6
    for j, count in enumerate(space.category_counts):
        if count:
            rows[:, j] = generator.integers(0, count, n)
    score = rows[:, 0] + generator.normal(size=n)
    edges = [0.0] if classes == 2 else [-0.7, 0.7]
    return rows, np.digitize(score, edges).astype(np.int64)


def same(left, right) -> bool:
    """Whether two states are equal, bit for bit."""
    return left.keys() == right.keys() and all(
        left[key].dtype == right[key].dtype
        and left[key].shape == right[key].shape
        and left[key].tobytes() == right[key].tobytes()
        for key in left
    )
