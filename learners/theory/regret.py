"""How much was lost to benchmarks that are known only in hindsight (section III of the paper).

    paper               here
    q(t)                the shares of a fused prediction, in whole parts: UNIT parts make one
    E[sum of losses]    `expected`: `FusedPredictions.expected_loss` summed over labelled instances
    L_i, L_{p,i}        `losses`: errors of LL i, in context cube p

The paper sums rewards, this module losses: as a loss is 1 - reward, the differences are the same.
Only labelled instances count. Sums are of integers, so that they do not depend on the order of
labels or on the number of partitions; the one division comes last. Leading axes are free.
"""

import numpy as np

from learners.arrays.shares import UNIT
from learners.arrays.types import Floats, Ints
from learners.errors import LearnerError


def ensemble_regret(expected: Ints, losses: Ints) -> Floats:
    """Return the EL's pseudo-regret Reg_EL(T) against the best LL in hindsight.

    `sum_t v_{I_b}(t) - E[sum_t R_EL(t)]`, in losses `E[sum_t l_EL(t)] - min_i L_i(T)`, the
    expectation being over the EL's draw. Theorem 2 bounds it for AH by 2 sqrt(T ln M)
    with labels on time. Shapes: (…) expected, (…, M) losses.

    It supposes, as the paper does, that every LL was heard on every instance. A silent LL takes no
    losses and would look like the best; `awake_regret` holds then too.

        >>> float(ensemble_regret(np.array(7 * UNIT // 2), np.array([3, 2])))
        1.5
    """
    return np.asarray((expected - UNIT * losses.min(axis=-1)) / UNIT)


def contextual_regret(expected: Ints, losses: Ints) -> Floats:
    """Return the contextual pseudo-regret Reg_CEL(T) against the best LL of each context cube.

    `sum_t v_{i*_p(t)}(t) - E[sum_t R_EL(t)]`: the pseudo-regret of each cube, summed. The expected
    losses of all cubes go in as one sum, since nothing else of them matters. Theorem 4 bounds it
    for CH by 2 sqrt(T m^d ln M) with labels on time. Shapes: (…) expected, (…, P, M) losses of the
    P cubes visited.
    """
    return np.asarray((expected - UNIT * losses.min(axis=-1).sum(axis=-1)) / UNIT)


def awake_regret(expected: Ints, losses: Ints) -> Floats:
    """Return the largest regret against any LL, over the instances on which that LL was heard.

    `max_i sum_{t: i heard} (E[l_EL(t)] - l_i(t))`, the measure for experts that sleep (Freund,
    Schapire, Singer and Warmuth, 1997). With every LL always heard it is `ensemble_regret`. Shapes:
    (…, M) expected losses of the EL on each LL's instances, (…, M) losses.
    """
    return np.asarray((expected - UNIT * losses).max(axis=-1) / UNIT)


def local_regret_parts(counts: Ints, rules: int) -> Ints:
    """Estimate an LL's regret Reg_i(T) against its local oracle, row by row in parts of 1/UNIT.

    The paper's `sum_t R_{f*(X_i(t))}(t) - sum_t R_{A_i(t)}(t)` needs the true accuracies. The
    counts take their place: per cube, the best rule's mean times the arrivals, less the successes
    of the rules chosen. It is an estimate: it treats a cube's instances as alike, knows nothing of
    rules not tried yet, and the best of several means is on average too high while trials are few.
    Under full feedback chance may make it negative; under bandit feedback it never is.

    `counts` are the rows of one phase of `Iup.tables()`: (P, 2F) under bandit feedback, N and S of
    each rule; (P, 2F + 1) under full feedback, with the successes of the rules chosen. Phases add.

    The parts are integers, so their sum does not depend on the order of the rows. A mean is rounded
    up to parts, but only for the arrivals beyond a rule's own trials (where it was always tried its
    successes are exact), so that rounding never takes the regret below 0.

        >>> (local_regret_parts(np.array([[4, 2, 1, 2], [0, 0, 0, 0]]), 2) / UNIT).tolist()
        [3.0, 0.0]
    """
    trials, successes, arrivals, hits = _columns(counts, rules)
    tried = np.maximum(trials, 1)
    times, remainder = np.divmod(arrivals[:, None], tried)
    means = -(-successes * UNIT // tried)
    best = (successes * UNIT * times + means * remainder).max(axis=1)
    return np.asarray(best - hits * UNIT)


def _columns(counts: Ints, rules: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return trials and successes of each rule, and arrivals and the chosen rules' successes."""
    if counts.shape[1:] not in {(2 * rules,), (2 * rules + 1,)}:
        raise LearnerError(f"regret: {rules} rules have rows of {2 * rules} counts, or one more")
    trials, successes = counts[:, :rules], counts[:, rules : 2 * rules]
    if counts.shape[1] > 2 * rules:
        return trials, successes, trials.max(axis=1), counts[:, 2 * rules]
    return trials, successes, trials.sum(axis=1), successes.sum(axis=1)
