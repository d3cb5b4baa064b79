"""Referral: which labels cannot be excluded, at a miss rate per label that holds on any stream.

Each label k with a target t has a rank u_k between 0 and 1: where its support stands among those of
past patients who had k. Of n labelled patients of label k on whom a learner had an opinion,
`missed` had k excluded. Let

    E = missed - t n,      k stays possible   iff   u_k >= bar(E)

where the bar is t for E = 0, so that in balance the share of patients of k who rank below t is
excluded: t of them. It falls to 0 while E rises to a, rises to 1 while E falls to -b, and beyond:

    bar(E) = t (1 - E / a)                             for E > 0, never below 0
    bar(E) = t + s x + (1 - t - s) x^3,  x = -E / b    for E < 0,  s = min(t, 1 - t)

This is adaptive conformal inference (I. Gibbs and E. Candès, 2021), label by label, on ranks, which
need no scale. The bar moves in proportion to t near E = 0: a step that does not depend on t moves
it by more than t after a single miss, so that nothing can be excluded for some twenty patients, and
then too much. Only where E is far off does it move fast, which is what the guarantee needs.

Guarantee, for any stream of patients, supports and labels, however they drift, and any a and b that
never fall: when n patients of k are labelled, each before the next is decided,

    -(b + t)  <=  E  <=  a + (1 - t)

Proof. Before any label E = 0. A miss raises E by 1 - t, and needs bar(E) > u_k >= 0, hence E < a
before it; a catch lowers E by t, and needs bar(E) <= u_k <= 1, hence E >= -b before it. As a and b
never fall, what held before holds after. If a label is late, so that up to D labels of k come
between a decision and its own label, E may run on by D more of them: replace (1 - t) by
(1 + D)(1 - t) above, and t by (1 + D) t below. Partitions that learn of each other's labels late
are the same case.

With b = sqrt(n), at most 19, and a half of it, |missed / n - t| is at most one percentage point
after 2,000 patients of k, and about half a point above the target. A changing stream is
followed within some ten misses.

A patient on whom no learner has an opinion is referred with all labels possible, and not counted:
such catches, in which the bar has no part, would break the lower bound, and the bar would rise to
make up for them. Of all patients of k the share of misses is lower.

An excluded label is a miss even where nothing was answered in its place: where no label is possible
the patient is unlike those seen before, and referred. So of `missed`, only those for whom another
label was the answer were misdiagnosed.
"""

import numpy as np

from learners.arrays.types import Bools, Floats, Ints

_ROOM = 19.0


def room(cases: Ints) -> tuple[Floats, Floats]:
    """Return a and b: how many misses too many take the bar to 0, how many too few take it to 1."""
    few = np.asarray(np.minimum(np.sqrt(np.maximum(cases, 1)), _ROOM))
    return few / 2.0, few


def bars(targets: Floats, cases: Ints, missed: Ints) -> Floats:
    """Return each label's bar; nan for labels without a target.

    >>> target, cases = np.array([0.05]), np.array([400])
    >>> [bars(target, cases, np.array([n])).round(3).tolist()[0] for n in (1, 18, 20, 22, 30)]
    [1.0, 0.056, 0.05, 0.039, 0.0]
    """
    excess = missed - targets * cases
    many, few = room(cases)
    x = np.maximum(-excess / few, 0.0)
    slope = np.minimum(targets, 1.0 - targets)
    above = targets + slope * x + (1.0 - targets - slope) * x * x * x
    below = targets * (1.0 - np.clip(excess / many, 0.0, 1.0))
    return np.asarray(np.where(excess > 0.0, below, above))


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
    with np.errstate(invalid="ignore"):
        return np.asarray(rank >= bars(targets, cases, missed))


def furthest(target: float, cases: int, late: int = 0) -> tuple[float, float]:
    """Return how far a label's miss rate can be below and above its target, whatever the stream.

    `late` is the largest number of its labels that came between a decision and its own label.

        >>> [round(gap, 4) for gap in furthest(0.05, 2000)]
        [0.0095, 0.0052]
    """
    if not cases:
        return target, 1.0 - target
    many, few = (float(limit) for limit in room(np.array(cases)))
    below = few + (1 + late) * target
    above = many + (1 + late) * (1.0 - target)
    return min(below / cases, target), min(above / cases, 1.0 - target)
