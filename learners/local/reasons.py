"""Why a local learner says what it says: how much each feature moved its log-odds.

For rules whose log-odds are a sum over features, or have a part that is (`Rule.parts`):

    log_odds = sum of the features' parts + rest

A part is measured from a feature at its mean so far (z-scores, also on the logarithmic scale) or
its median (ranks); with naive Bayes it is the logarithm of the ratio of likelihoods, with a fixed
linear rule weight times value. The rest is the constant, and what cannot be ascribed to one
feature: random Fourier features, members of a committee that are not additive and, with more than
two labels, the competition of the others. A missing value counts as what stands in for it.

The rest is the log-odds less the exact sum of the parts, rounded once. So the exact sum of all
(`math.fsum`) is the log-odds, to one unit in the last place of the larger of the two.
"""

from dataclasses import dataclass
from math import fsum

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.local.learner import Pooled, Predictions


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons for n of the predictions of a batch.

    at         (n,)      which predictions they are
    log_odds   (n, K)    of the rule that was followed
    parts      (n, d, K) what each feature added to them
    rest       (n, K)    what else is in them
    """

    at: Ints
    log_odds: Floats
    parts: Floats
    rest: Floats


def reasons(pooled: Pooled, rows: Floats, predictions: Predictions) -> Reasons:
    """Return the reasons for predictions that have an opinion, by rules that are additive."""
    chosen = predictions.choices.rules
    at = np.flatnonzero(
        np.array([r.additive for r in pooled.rules])[chosen] & (predictions.labels >= 0)
    )
    complete = pooled.filling.look(rows[at])
    classes = pooled.rules[0].classes
    log_odds = np.empty((len(at), classes))
    parts = np.empty((*complete.shape, classes))
    for f in np.unique(chosen[at]).tolist():
        of = chosen[at] == f
        log_odds[of] = pooled.rules[f].log_odds(complete[of])
        parts[of] = pooled.rules[f].parts(complete[of])
    return Reasons(at, log_odds, parts, _rest(log_odds, parts))


def _rest(log_odds: Floats, parts: Floats) -> Floats:
    terms = np.concatenate([log_odds[:, None, :], -parts], axis=1).transpose(0, 2, 1)
    return np.array([[fsum(label) for label in row] for row in terms.tolist()]).reshape(
        log_odds.shape
    )
