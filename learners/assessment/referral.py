"""Referral: which labels cannot be excluded, at a miss rate per label that holds on any stream.

Each label k with a target t has a rank u_k between 0 and 1: where its support stands among those of
past patients who had k. Of n labelled patients of label k on whom a learner had an opinion,
`missed` had k excluded. Let

    E = missed - t n,      k stays possible   iff   u_k >= t - g(n) E

so where too many were missed the bar falls, where too few were it rises, and in balance the share
of patients of k who rank below t is excluded: t of them. This is adaptive conformal inference
(I. Gibbs and E. Candès, 2021; steps that shrink: A. Angelopoulos, R. Barber and S. Bates, 2024),
label by label, on ranks, which need no scale and hence no tuning of the step.

Guarantee, for any stream of patients, supports and labels, however they drift, and any g > 0 that
never rises: when n patients of k are labelled, each before the next is decided,

    -((1 - t) / g(n) + t)  <=  E  <=  t / g(n) + (1 - t)

Proof. Before any label E = 0. A miss raises E by 1 - t, and needs t - g E > u_k >= 0, hence
E < t / g before it; a catch lowers E by t, and needs t - g E <= u_k <= 1, hence E >= -(1 - t) / g
before it. As 1/g never falls, what held before holds after. If a label is late, so that up to D
labels of k come between a decision and its own label, E may run on by D more of them: replace
(1 - t) by (1 + D)(1 - t) above, and t by (1 + D) t below. Partitions that learn of each other's
labels late are the same case.

So |missed / n - t| <= ((1 - t) / g(n) + 1) / n for t up to one half. With g(n) = 1/sqrt(n), never
below 1/20, that is about one percentage point after 2,000 patients of k; above a target of 5
percent, a tenth of that. A stream that changes is followed within some twenty misses.

A patient on whom no learner has an opinion is referred with all labels possible, and not counted:
such catches, in which the bar has no part, would break the lower bound, and the bar would rise to
make up for them. Of all patients of k the share of misses is lower.

An excluded label is a miss even where nothing was answered in its place: where no label is possible
the patient is unlike those seen before, and referred. So of `missed`, only those for whom another
label was the answer were misdiagnosed.
"""

import numpy as np

from learners.arrays.types import Bools, Floats, Ints

_SLOWEST = 0.05


def gain(cases: Ints) -> Floats:
    """Return g(n), how far the bar moves for each miss too many or too few."""
    return np.asarray(np.maximum(1.0 / np.sqrt(np.maximum(cases, 1)), _SLOWEST))


def ranks(hits: Ints, bins: Ints, along: Floats) -> Floats:
    """Return (n, K) ranks of supports among those of past patients of each label.

    hits    (K, B) patients of the label by the bin of their support for it
    bins    (n, K) bin of each support; `along` how far up within it

    Where no patient of the label is known, nothing can be excluded: the rank is 1.
    """
    below = np.cumsum(hits, axis=1) - hits
    total = hits.sum(axis=1)
    label = np.arange(hits.shape[0])
    rank = (below[label, bins] + along * hits[label, bins]) / np.maximum(total, 1)
    return np.where(total > 0, rank, 1.0)


def possible(rank: Floats, targets: Floats, cases: Ints, missed: Ints) -> Bools:
    """Return (n, K): the label cannot be excluded; False for labels without a target (nan)."""
    excess = missed - targets * cases
    with np.errstate(invalid="ignore"):
        return np.asarray(rank >= targets - gain(cases) * excess)


def furthest(target: float, cases: int, late: int = 0) -> tuple[float, float]:
    """Return how far a label's miss rate can be below and above its target, whatever the stream.

    `late` is the largest number of its labels that came between a decision and its own label.

        >>> [round(gap, 4) for gap in furthest(0.05, 2000)]
        [0.0095, 0.001]
    """
    if not cases:
        return target, 1.0 - target
    g = float(gain(np.array(cases)))
    below = (1.0 - target) / g + (1 + late) * target
    above = target / g + (1 + late) * (1.0 - target)
    return min(below / cases, target), min(above / cases, 1.0 - target)
