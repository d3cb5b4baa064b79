"""Functions that the tests name as rules: `tests.unit.learners.rules.functions:…`."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def by_age(columns):
    assert columns["sex"].dtype.kind == "U"
    old = (columns["age"] > 1.0) | (columns["sex"] == "m")
    return np.where(old, "malignant", "benign")


def as_list(columns):
    return ["malignant"] * len(columns["age"])


def vandal(columns):
    columns["age"][:] = 0.0
    return as_list(columns)


def raises(columns):
    raise KeyError(f"secret {columns['age'][0]}")


def unknown_label(columns):
    return ["purple"] * len(columns["age"])


def too_few(columns):
    return ["benign"] * (len(columns["age"]) - 1)


def numbers(columns):
    return np.zeros(len(columns["age"]), np.int64)


def nothing(columns):
    return None


not_callable = 3


def fitted_by_age():
    rows = np.array([[-1.0, 0.0, 0.0], [-0.5, 1.0, 0.0], [0.5, 0.0, 1.0], [1.0, 1.0, 1.0]])
    return LogisticRegression().fit(rows, ["benign", "benign", "malignant", "malignant"])


def fitted_to_two():
    rows = np.random.default_rng(3).random((200, 2))
    labels = np.where(rows @ [2.0, 1.0] > 1.5, "ill", "well")
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels)


def unfitted():
    return LogisticRegression()


def raises_without_arguments():
    raise OSError("no model here")
