"""The data that experiments run on: all of it ships inside scikit-learn and River.

Every data set is a matrix with a column per feature (raw numbers or category indices), the true
label of each row, and a feature space whose scalings were fitted to the whole set without labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.local.features import Categorical, Feature, FeatureSpace, Real
from learners.local.scaling import MinMax, Quantile, Scaling, ZLogistic
from settings.errors import InputError

SCALINGS: dict[str, type[Scaling]] = {"minmax": MinMax, "zlog": ZLogistic, "quantile": Quantile}


@dataclass(frozen=True)
class Dataset:
    """A classification problem.

    rows       (N, d) raw numbers and category indices, nan where a value is missing
    truth      (N,) label index
    labels     names of the K labels
    features   name of each feature, with its categories or None for a number
    positive   the label that FNR refers to; None if no label is special
    """

    name: str
    rows: Floats
    truth: Ints
    labels: tuple[str, ...]
    features: tuple[tuple[str, tuple[str, ...] | None], ...]
    positive: int | None

    @property
    def classes(self) -> int:
        """Return K."""
        return len(self.labels)

    def space(self, columns: Ints | None = None, scaling: str = "zlog") -> FeatureSpace:
        """Return the feature space of some columns, or of all."""
        chosen = range(len(self.features)) if columns is None else columns.tolist()
        return FeatureSpace(tuple(self._feature(j, SCALINGS[scaling]) for j in chosen))

    def _feature(self, j: int, scaling: type[Scaling]) -> Feature:
        name, categories = self.features[j]
        if categories is not None:
            return Categorical(name, categories)
        column = self.rows[:, j]
        return Real(name, scaling.fit(column[~np.isnan(column)]))

    def unit(self, scaling: str = "zlog") -> Floats:
        """Return all rows scaled into the unit cube."""
        return self.space(scaling=scaling).unit(self.rows)


@cache
def wdbc() -> Dataset:
    """Wisconsin diagnostic breast cancer: 569 patients, 30 numbers, benign or malignant."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = tuple((str(name), None) for name in bunch.feature_names)
    # scikit-learn codes malignant as 0; here the positive label is 1.
    truth = 1 - bunch.target.astype(np.int64)
    return Dataset("wdbc", bunch.data, truth, ("benign", "malignant"), names, 1)


@cache
def wine() -> Dataset:
    """Wine: 178 bottles, 13 numbers from a chemical analysis, three growers."""
    from sklearn.datasets import load_wine

    bunch = load_wine()
    names = tuple((str(name), None) for name in bunch.feature_names)
    labels = tuple(str(name) for name in bunch.target_names)
    return Dataset("wine", bunch.data, bunch.target.astype(np.int64), labels, names, None)


@cache
def segments() -> Dataset:
    """River's image segments: 2310 patches, 18 numbers, seven kinds of surface."""
    return _from_river("segments", list(_river().ImageSegments()), set(), None)


@cache
def phishing() -> Dataset:
    """River's phishing: 1250 web sites, 9 graded attributes, fraudulent or not."""
    pairs = [(x, "phishing" if y else "harmless") for x, y in _river().Phishing()]
    return _from_river("phishing", pairs, set(), "phishing")


@cache
def flares() -> Dataset:
    """River's solar flares: 1066 active regions, mixed features; does a flare follow?"""
    pairs = [(x, "flare" if sum(y.values()) else "quiet") for x, y in _river().SolarFlare()]
    return _from_river("flares", pairs, set(), "flare")


@cache
def loans(count: int = 20_000, seed: int = 7) -> Dataset:
    """River's Agrawal generator: loan applications, six numbers and three categories."""
    stream = _river().synth.Agrawal(classification_function=6, seed=seed, perturbation=0.05)
    pairs = [(x, "refuse" if y else "grant") for x, y in stream.take(count)]
    return _from_river("loans", pairs, {"elevel", "car", "zipcode"}, None)


def _river() -> Any:
    """Return River's data sets, or say how to get River."""
    try:
        return import_module("river.datasets")
    except ModuleNotFoundError as error:
        raise InputError(
            "this experiment needs River; install the extra: pip install"
            " 'hedged-bandits[experiments]'"
        ) from error


def _from_river(
    name: str,
    pairs: Sequence[tuple[dict[str, Any], str]],
    categorical: set[str],
    positive: str | None,
) -> Dataset:
    """Turn River's dictionaries into a matrix; text columns are categories."""
    columns: list[list[float]] = []
    features: list[tuple[str, tuple[str, ...] | None]] = []
    for key in pairs[0][0]:
        values = [x[key] for x, _ in pairs]
        if key in categorical or isinstance(values[0], str):
            words = sorted({str(value) for value in values})
            place = {word: i for i, word in enumerate(words)}
            columns.append([float(place[str(value)]) for value in values])
            features.append((key, tuple(words)))
        else:
            columns.append([float(value) for value in values])
            features.append((key, None))
    labels = tuple(sorted({y for _, y in pairs}))
    if positive is not None:
        labels = (*(label for label in labels if label != positive), positive)
    truth = np.array([labels.index(y) for _, y in pairs])
    at = None if positive is None else labels.index(positive)
    return Dataset(name, np.array(columns).T, truth, labels, tuple(features), at)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "wdbc": wdbc,
    "segments": segments,
    "phishing": phishing,
    "flares": flares,
    "loans": loans,
    "loans, 2000": partial(loans, 2_000),
    "wine": wine,
}
