"""Functions that the tests name as rules: `tests.unit.learners.rules.functions:…`."""

import numpy as np


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
