"""Fixed linear models of scikit-learn, exported as weights of a `linear` rule.

Duck-typed: anything with `coef_`, `intercept_` and `classes_` (logistic regression, linear SVM,
ridge classifier, SGD, …), alone or behind a standard scaler, also as a two-step pipeline. The
scaler is folded into the weights, so that the rule works on raw values and the settings file holds
plain numbers; nothing of scikit-learn is needed to run it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from learners.arrays.types import Floats
from learners.errors import LearnerError
from learners.local.features import FeatureSpace
from learners.rules.linear import Linear


@dataclass(frozen=True)
class _Fitted:
    """A fitted estimator on raw inputs: a row of weights per label, or a single one for two."""

    labels: list[str]
    weights: list[dict[str, float]]
    bias: list[float]
    softmax: bool


def export_linear(estimator: Any, columns: Sequence[str], scaler: Any = None) -> dict[str, object]:
    """Return the settings table of a fitted estimator.

    columns   names of the estimator's inputs, in its order, as in `FeatureSpace.expanded_names`;
              an estimator that was fitted with named inputs knows better
    scaler    a fitted StandardScaler that stood before it
    """
    fitted = _read(estimator, columns, scaler)
    if len(fitted.weights) == 1:
        return {
            "kind": "linear",
            "label": fitted.labels[1],
            "weights": fitted.weights[0],
            "bias": fitted.bias[0],
        }
    return {
        "kind": "linear",
        "weights": dict(zip(fitted.labels, fitted.weights, strict=True)),
        "bias": dict(zip(fitted.labels, fitted.bias, strict=True)),
        "softmax": fitted.softmax,
    }


def from_estimator(
    name: str, space: FeatureSpace, labels: Sequence[str], estimator: Any, scaler: Any = None
) -> Linear:
    """Return the linear rule of a fitted estimator whose inputs are the learner's columns."""
    fitted = _read(estimator, space.expanded_names, scaler)
    if sorted(fitted.labels) != sorted(labels):
        raise LearnerError(f"rule {name}: the estimator was fitted to other labels")
    weights, bias = fitted.weights, fitted.bias
    if len(weights) == 1:
        zero: dict[str, float] = {}
        weights, bias = [zero, *weights], [0.0, *bias]
    places = [fitted.labels.index(label) for label in labels]
    return Linear(
        name,
        space,
        len(labels),
        weights=tuple(weights[i] for i in places),
        bias=tuple(bias[i] for i in places),
        softmax=fitted.softmax,
    )


def _read(estimator: Any, columns: Sequence[str], scaler: Any) -> _Fitted:
    estimator, scaler = _unpack(estimator, scaler)
    first = estimator if scaler is None else scaler
    names = [str(name) for name in getattr(first, "feature_names_in_", columns)]
    weights = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    if weights.shape[1] != len(names):
        raise LearnerError(
            f"the estimator has {weights.shape[1]} inputs, but {len(names)} columns are named"
        )
    bias = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), len(weights))
    weights, bias = _fold_scaler(weights, bias, scaler)
    labels = [str(label) for label in estimator.classes_]
    # A support vector machine has a row per pair of labels: three rows for three labels, too.
    by_pairs = len(labels) > 2 and hasattr(estimator, "support_vectors_")
    if by_pairs or len(weights) != (1 if len(labels) == 2 else len(labels)):
        raise LearnerError("the estimator needs one row of coef_ per label (not one per pair)")
    rows = [dict(zip(names, row, strict=True)) for row in weights.tolist()]
    return _Fitted(labels, rows, bias.tolist(), hasattr(estimator, "predict_proba"))


def _unpack(estimator: Any, scaler: Any) -> tuple[Any, Any]:
    """Take a pipeline of a scaler and a classifier apart."""
    steps = [step for _, step in getattr(estimator, "steps", [])]
    if len(steps) > 2 or (steps and scaler is not None):
        raise LearnerError("a pipeline to export has at most a standard scaler and a classifier")
    if steps:
        scaler, estimator = (steps[0] if len(steps) == 2 else None), steps[-1]
    missing = [a for a in ("coef_", "intercept_", "classes_") if not hasattr(estimator, a)]
    if missing:
        raise LearnerError(
            f"cannot export {type(estimator).__name__}: no {', '.join(missing)};"
            " it must be a fitted linear classifier"
        )
    return estimator, scaler


def _fold_scaler(weights: Floats, bias: Floats, scaler: Any) -> tuple[Floats, Floats]:
    """Return weights and bias for raw values: w'((x - mean) / scale) + b."""
    if scaler is None:
        return weights, bias
    if not (hasattr(scaler, "mean_") and hasattr(scaler, "scale_")):
        raise LearnerError(f"cannot export {type(scaler).__name__}: it is no standard scaler")
    scale = 1.0 if scaler.scale_ is None else np.asarray(scaler.scale_, np.float64)
    # With with_mean=False a StandardScaler still keeps the mean it does not use.
    centred = scaler.mean_ is not None and getattr(scaler, "with_mean", True)
    raw = weights / scale
    return raw, bias - (raw * scaler.mean_).sum(axis=1) if centred else bias
