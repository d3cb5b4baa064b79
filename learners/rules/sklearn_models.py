"""Fitted linear classifiers of scikit-learn as fixed rules.

Anything with `coef_`, `intercept_` and `classes_` will do (logistic regression, linear SVM, ridge
classifier, SGD, …), alone or behind a standard scaler in a pipeline of two steps. The scaler is
folded into the weights: what is left is a `linear` rule on raw values.

The settings name a function without arguments that returns the classifier, as

    def model():
        return joblib.load("/path/to/model.joblib")

It is called once, when the rule is built, with the worker's rights, so it must come from a package
that `rules.packages` in the settings allows.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from learners.arrays.types import Floats
from learners.errors import LearnerError, OptionError
from learners.local.features import FeatureSpace
from learners.named_code import load
from learners.rules.linear import Linear


@dataclass(frozen=True)
class _Fitted:
    """A fitted classifier on raw inputs: a row of weights per label, or a single one for two."""

    labels: list[str]
    weights: list[dict[str, float]]
    bias: list[float]
    softmax: bool


def sklearn_rule(
    name: str, space: FeatureSpace, labels: Sequence[str], target: str, allowed: Collection[str]
) -> Linear:
    """Return the rule of the fitted classifier that `package.module:function` returns."""
    function = load(name, "model", target, allowed)
    try:
        estimator = function()
    except Exception as error:
        raised = f"it raised {type(error).__name__}: {error}"
        raise OptionError(name, "model", f"{target!r}: {raised}") from error
    try:
        return linear_rule(name, space, labels, estimator)
    except LearnerError as error:
        raise OptionError(name, "model", f"{target!r}: {error}") from error


def linear_rule(name: str, space: FeatureSpace, labels: Sequence[str], estimator: Any) -> Linear:
    """Return the linear rule of a fitted classifier.

    Its inputs are the learner's columns: by name if it was fitted with names, else in their order.
    """
    fitted = _read(estimator, space.expanded_names)
    if sorted(fitted.labels) != sorted(labels):
        raise LearnerError("the classifier was fitted to other labels")
    weights, bias = fitted.weights, fitted.bias
    if len(weights) == 1:
        zero: dict[str, float] = {}
        weights, bias = [zero, *weights], [0.0, *bias]
    order = [fitted.labels.index(label) for label in labels]
    return Linear(
        name,
        space,
        len(labels),
        weights=tuple(weights[i] for i in order),
        bias=tuple(bias[i] for i in order),
        softmax=fitted.softmax,
    )


def _read(estimator: Any, columns: Sequence[str]) -> _Fitted:
    estimator, scaler = _unpack(estimator)
    first = estimator if scaler is None else scaler
    names = [str(name) for name in getattr(first, "feature_names_in_", columns)]
    weights = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    if weights.shape[1] != len(names):
        inputs = weights.shape[1]
        raise LearnerError(
            f"the classifier has {inputs} inputs, but the learner has {len(names)} columns"
        )
    bias = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), len(weights))
    weights, bias = _fold_scaler(weights, bias, scaler)
    labels = [str(label) for label in estimator.classes_]
    # A support vector machine has a row per pair of labels: three rows for three labels, too.
    by_pairs = len(labels) > 2 and hasattr(estimator, "support_vectors_")
    if by_pairs or len(weights) != (1 if len(labels) == 2 else len(labels)):
        raise LearnerError("the classifier needs one row of coef_ per label (not one per pair)")
    rows = [dict(zip(names, row, strict=True)) for row in weights.tolist()]
    return _Fitted(labels, rows, bias.tolist(), hasattr(estimator, "predict_proba"))


def _unpack(estimator: Any) -> tuple[Any, Any]:
    """Return the classifier and the scaler before it, if there is one."""
    steps = [step for _, step in getattr(estimator, "steps", [])] or [estimator]
    if len(steps) > 2:
        raise LearnerError("a pipeline must be a classifier, or a standard scaler and a classifier")
    scaler, estimator = (steps[0] if len(steps) == 2 else None), steps[-1]
    missing = [a for a in ("coef_", "intercept_", "classes_") if not hasattr(estimator, a)]
    if missing:
        raise LearnerError(
            f"{type(estimator).__name__} has no {', '.join(missing)};"
            " it must be a fitted linear classifier"
        )
    return estimator, scaler


def _fold_scaler(weights: Floats, bias: Floats, scaler: Any) -> tuple[Floats, Floats]:
    """Return weights and bias for raw values: w'((x - mean) / scale) + b."""
    if scaler is None:
        return weights, bias
    if not (hasattr(scaler, "mean_") and hasattr(scaler, "scale_")):
        raise LearnerError(f"{type(scaler).__name__} is not a standard scaler")
    scale = 1.0 if scaler.scale_ is None else np.asarray(scaler.scale_, np.float64)
    # With with_mean=False a StandardScaler still keeps the mean it does not use.
    centred = scaler.mean_ is not None and getattr(scaler, "with_mean", True)
    raw = weights / scale
    return raw, bias - (raw * scaler.mean_).sum(axis=1) if centred else bias
