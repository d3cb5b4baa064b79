"""How much weight the prior, which is the support itself, has in the bins: chosen from the counts.

A bin with n labelled patients of whom s had the label, and L imagined ones for whom the support p
was the true chance, gives (s + L p) / (n + L). A small L follows the counts, which is right for
votes, whose share is no chance, and after a drift; a large one follows the support, which is right
where it is calibrated already and bins hold few patients. Each L is a belief about the bins, a beta
distribution with mean p and strength L, and the evidence says how well it predicts the counts:

    evidence(L) = product over bins of  B(L p + s, L (1 - p) + n - s) / B(L p, L (1 - p))

(beta-binomial; p at the middle of the bin). The weights of all L are proportional to it, as in a
Bayes mixture. That promises nothing for the chance that is shown: of two labels each patient counts
as half, and the curve is made to rise afterwards. It is a function of integer counts alone, so
order does not matter and an audit gets the same weights.
"""

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.assessment.bins import CENTRES
from learners.theory.intervals import log_factorial

LEANS: Floats = np.array([1.0, 10.0, 100.0, 1000.0])
"""The candidates for L, the number of imagined patients in each bin."""

_FOR = LEANS[:, None] / (1.0 + np.exp(-CENTRES))
_AGAINST = LEANS[:, None] / (1.0 + np.exp(CENTRES))
_IMAGINED: Floats = np.stack([_FOR, _AGAINST, np.broadcast_to(LEANS[:, None], _FOR.shape)])


def _log_beta(patients: Floats) -> Floats:
    """Return ln B(a, b) for a, b and a + b along the first axis."""
    a, b, total = log_factorial(patients - 1.0)
    return np.asarray(a + b - total)


_BEFORE = _log_beta(_IMAGINED)


def leaning(cases: Ints, hits: Ints, times: int = 1) -> Floats:
    """Return the weight of each of `LEANS`, from the counts of all bins.

    `times` is how often each patient was counted: counting one twice adds no evidence.

    >>> nothing, counted = np.zeros(32, np.int64), np.zeros(32, np.int64)
    >>> leaning(nothing, nothing).tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> counted[20] = 300    # of whom half have a label that the support finds 90 % likely
    >>> leaning(counted, counted // 2).round(2).tolist()
    [0.85, 0.15, 0.0, 0.0]
    """
    counted = np.stack([hits, cases - hits, cases])
    evidence = (_log_beta(_IMAGINED + counted[:, None]) - _BEFORE).sum(axis=1) / times
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())
