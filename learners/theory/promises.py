"""Which promises hold, and their values: every bound or interval that is shown comes from here.

A promise depends on the settings and on what the stream did. `None`, nan or a list of reasons mean
that there is none, and then none is shown. docs/theory.md has the theorems.

The ensemble learner (EL): Hedge's regret against each expert over the instances on which it took
part, for fusion rules that follow Hedge's weights (`ah`, `wm`, `ch`, `ch-vote`, `committee`) at the
paper's rate. Labels may be late or never come, experts silent, partitions several; it requires that
every label was learned with what its decision rested on, and that none was corrected afterwards.
`odds` adds up log-odds and `stack` fits a model: neither follows the weights, so neither has a
bound, unless a committee hedges over it.

A local learner (LL): Theorem 1 and Corollary 1, for the paper's own IUP (c = 1, no weights, no
back-off) over rules that do not learn, phase by phase under the doubling trick. Theorem 1 needs
each label learned before the next decision, which nothing tells of a running LL, so it is for
planning only; Corollary 1 does not. The interval of a rule's accuracy in a cube, for rules that do
not learn: a rule that does has no single accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.assessment.referral import furthest
from learners.fusion.active import Active
from learners.fusion.base import Fusion
from learners.fusion.committee import Committee
from learners.fusion.confidence_vote import HedgeOdds
from learners.fusion.hedge import Hedge, HedgeWeights
from learners.fusion.late_labels import bound_at_delay, regret_bounds
from learners.fusion.mixture import Mixture, floor_cost
from learners.local.iup import Choices
from learners.local.learner import Confidence, LocalLearner
from learners.local.partition import Partition, cuts_for
from learners.local.phases import Doubling
from learners.rules.base import Rule
from learners.theory.bounds import (
    PatientsNeeded,
    doubling_regret,
    ensemble_regret,
    local_regret,
    memory_bounded_limit,
    partition_term,
    patients_needed,
)
from learners.theory.intervals import accuracy_interval
from learners.theory.running_mean import DELTA, running_mean_interval

# The ensemble learner.


def followed(fusion: Fusion) -> Fusion:
    """Return the rule whose weights decide, below what chooses learners."""
    while isinstance(fusion, Active):
        fusion = fusion.inner
    return fusion


def why_no_regret_bound(fusion: Fusion) -> list[str]:
    """Say why theory does not bound the EL's regret; nothing if it does."""
    rule = followed(fusion)
    if isinstance(rule, Mixture):
        nats, per_label = log_loss_bound(fusion), floor_cost(rule.classes)
        return [
            (
                f"errors are not bounded; log loss is, at {nats:.2f} nats in each partition and"
                f" context cube plus {per_label:.3g} a label above that of the best expert, for its"
                " and the mixture's own chances when labels come"
            )
        ]
    if isinstance(rule, HedgeOdds) or not isinstance(rule, Hedge | Committee):
        return ["this fusion rule does not follow Hedge's weights; a committee over it would"]
    if not rule.weights.plain:
        return ["eta_scale or rate is not the paper's; the theorems are for those"]
    return []


def hedge_weights(fusion: Fusion) -> HedgeWeights | None:
    """Return the weights whose regret is bounded, if it is."""
    rule = followed(fusion)
    if why_no_regret_bound(fusion) or not isinstance(rule, Hedge | Committee):
        return None
    return rule.weights


def delays_table(fusion: Fusion) -> str | None:
    """Return the name of the fusion's table that a bound is computed from, if there is one."""
    weights = hedge_weights(fusion)
    if weights is None:
        return None
    return next(name for name, table in fusion.tables().items() if table is weights.late.table)


def regret_bound(
    fusion: Fusion, labelled: Ints, delays: Ints, *, partitions: int = 1, corrected: bool = False
) -> float | None:
    """Bound the EL's regret against the best expert of each context cube, summed over the cubes.

    labelled   (P,)   labels learned in each cube
    delays     (P, 6) the rows of `delays_table`, summed over partitions
    corrected  whether a label was amended or withdrawn: until then decisions rested on losses that
               were not the true ones, which the theorem does not cover
    """
    weights = hedge_weights(fusion)
    if weights is None or corrected:
        return None
    bounds = regret_bounds(delays, labelled, weights.experts, alone=partitions == 1)
    return None if np.isnan(bounds).any() else float(bounds.sum())


def error_bound(
    fusion: Fusion, comparator: float, bound: float | None, *, overruled: bool, guesses: int
) -> float | None:
    """Bound the EL's expected errors, given a comparator's errors and the bound on regret.

    An expert drawn by its weight errs as often as its weights do. A vote is wrong only where at
    least half of the weight is, so that it errs at most twice as often. Nothing is promised where
    the answer may be `overruled`, as it is to keep miss targets. `guesses` are instances on which
    no expert spoke: no loss is counted there, but the guess may be wrong.
    """
    if bound is None or overruled:
        return None
    return (2.0 if votes(fusion) else 1.0) * (comparator + bound) + guesses


def votes(fusion: Fusion) -> bool:
    """Tell whether Hedge's weights vote; the bound on regret is about an expert drawn by them."""
    rule = followed(fusion)
    return isinstance(rule, Hedge | Committee) and rule.use == "vote"


def log_loss_bound(fusion: Fusion, cubes: int = 1, labels: int = 0) -> float | None:
    """Bound the EL's log loss above that of the best expert in each visited cube, in nats.

    None where no theorem does. It is about the mixture's own chances when the label comes, however
    late that is, and after so many labels about an expert's own chances as well. Without `labels`
    it is about experts' chances as they are mixed, kept off 0 and 1.
    """
    rule = followed(fusion)
    if not isinstance(rule, Mixture):
        return None
    return cubes * log(rule.expert_count) + labels * floor_cost(rule.classes)


def planned_regret_bound(
    fusion: Fusion, labels: float, cubes: int = 1, delay: float = 0.0, *, partitions: int = 1
) -> float | None:
    """Bound the EL's regret after so many labels, each `delay` labels late, evenly over cubes.

    With nothing late this is Theorem 2, or Theorem 4 with contexts. With several partitions a label
    is late until all of them have heard of it.
    """
    weights = hedge_weights(fusion)
    if weights is None:
        return None
    alone = partitions == 1
    return cubes * bound_at_delay(labels / cubes, weights.experts, delay / cubes, alone=alone)


def oracle_bound(
    fusion: Fusion,
    learners: Sequence[str],
    local: Sequence[float | None],
    ensemble: float | None,
    *,
    overruled: bool,
) -> float | None:
    """Theorem 3: bound the EL's regret against the best local oracle, from its parts.

    `local` are the LLs' own bounds. The LLs themselves must be the experts and always be heard, and
    the answer must be that of the expert drawn, not `overruled` to keep miss targets.
    """
    bounds = [bound for bound in local if bound is not None]
    experts_are_learners = fusion.experts(learners) == list(learners) and not fusion.own_experts
    if ensemble is None or overruled or isinstance(fusion, Active):
        return None
    if not experts_are_learners or len(bounds) < len(local):
        return None
    return ensemble_regret(bounds, ensemble)


def miss_rate_gaps(
    target: float, cases: int, *, late: int = 0, corrected: int = 0
) -> tuple[float, float]:
    """Return how far a label's miss rate can be below and above its target.

    Of its patients on whom a learner had an opinion. On any stream, whatever the fusion rule.
    `late` is the largest number of its labels that came between a decision and its own label, in
    whichever partition; `corrected` how often a patient got or lost this label by a correction.
    """
    below, above = furthest(target, cases, late)
    moved = 1.5 * corrected / cases if cases else 0.0
    return min(below + moved, target), min(above + moved, 1.0 - target)


# The EL and an LL alike.


def share_interval(cases: Ints, right: Ints, *, corrections: int = 0) -> tuple[Floats, Floats]:
    """Return an interval for the mean chance of being right over all cases so far.

    It holds at all times at once, while learners learn and patients change, with probability 95 %.
    It is about the past: what they were right about on average, not what they would be now.

    After `corrections` of labels it is about the labels as they stand, and wider: each correction
    makes the outcomes another sequence, and all of these share 5 % of error (docs/theory.md).
    """
    return running_mean_interval(cases, right, DELTA / max(1, corrections * (corrections + 1)))


def window_interval(cases: Ints, right: Ints) -> tuple[Floats, Floats]:
    """Return an interval for the mean chance of being right over the latest cases.

    The martingale of `share_interval` may begin at any case that is chosen beforehand, so after any
    one number of labels, fixed in advance, the interval holds with probability 95 %, for the labels
    as they stand then; not after all numbers at once, because the window moves on.
    """
    return running_mean_interval(cases, right)


def labels_to_know_a_share(share: float, within: float) -> int:
    """Return how many labels it takes until a share of this size is known to within so much.

    >>> labels_to_know_a_share(0.05, 0.05) < labels_to_know_a_share(0.5, 0.05)
    True
    """
    counts = np.unique(np.geomspace(10, 10**7, 400).astype(np.int64))
    low, high = share_interval(counts, np.rint(counts * share).astype(np.int64))
    wide = np.flatnonzero(np.maximum(high - share, share - low) > within)
    return int(counts[min(wide[-1] + 1, len(counts) - 1)]) if wide.size else int(counts[0])


# Local learners.


def why_no_local_bound(learner: LocalLearner) -> list[str]:
    """Say why Theorem 1 and Corollary 1 do not cover an LL; nothing if they do."""
    config = learner.iup.config
    reasons = {
        f"exploration is {config.exploration:g}; the theorems need 1": config.exploration != 1.0,
        "back-off is on; the theorems are without it": bool(config.backoff),
        "rules have weights; the theorems are for equal ones": config.weights is not None,
        "a rule learns; the theorems are for fixed rules": any(r.learns for r in learner.rules),
        "features are scaled online; the theorems are for fixed cubes": bool(learner.space.online),
    }
    return [reason for reason, applies in reasons.items() if applies]


def confidence(learner: LocalLearner, choices: Choices) -> Confidence:
    """Say how sure an LL's choices are, where theory tells."""
    fixed = np.array([interval_holds(learner, rule) for rule in learner.rules])[choices.rules]
    low, high = accuracy_interval(choices.trials, choices.successes)
    epsilon = np.full(len(choices.rules), np.nan)
    if not why_no_local_bound(learner):
        epsilon = _epsilon(learner, choices)
    low, high = np.where(fixed, low, np.nan), np.where(fixed, high, np.nan)
    return Confidence(choices.accuracy, low, high, epsilon)


def interval_holds(learner: LocalLearner, rule: Rule) -> bool:
    """Tell whether a rule's accuracy in a cube has an interval: not if either changes.

    With back-off the estimate is not the mean of the cube's own counts and may lie outside.
    """
    return not (rule.learns or learner.space.online or learner.iup.config.backoff)


def _epsilon(learner: LocalLearner, choices: Choices) -> Floats:
    """Corollary 1, with the partition in use: inf where the chosen rule was never tried.

    nan for instances with missing values if these are too many to number: sharing one cell, they
    need not be near each other.
    """
    phase = learner.iup.phase(choices.phase)
    alpha, d, m = learner.iup.config.alpha, phase.partition.d, phase.partition.m
    factors = 4.0 * phase.factors(choices.cubes)
    with np.errstate(divide="ignore"):
        learned = np.sqrt(factors / choices.trials)
    far = (choices.cubes >= phase.partition.size) & (phase.partition.grid.incomplete == 1)
    near = np.where(far, np.nan, partition_term(learner.lipschitz, alpha, d, m))
    return np.asarray(learned + near)


def planned_local_bound(learner: LocalLearner, horizon: float) -> float:
    """Bound an LL's regret after `horizon` instances, were it set up for that many.

    An LL that doubles keeps its phases; the last of them counts as a whole. This is the theorem's
    figure whether or not it covers the LL: ask `why_no_local_bound`.
    """
    clock = learner.iup.config.clock
    if not isinstance(clock, Doubling):
        return theorem_1(learner, horizon)
    return doubling_regret(clock.first, int(horizon), lambda length: theorem_1(learner, length))


def average_limit(learner: LocalLearner, horizon: float) -> float | None:
    """Remark 1: the limit of an LL's average regret with the partition for this horizon."""
    if why_no_local_bound(learner):
        return None
    partition = partition_for(learner, horizon)
    alpha = learner.iup.config.alpha
    return memory_bounded_limit(learner.lipschitz, alpha, partition.d, partition.m)


@dataclass(frozen=True, slots=True)
class PlannedConfidence:
    """How many decisions an LL ever makes below a confidence, by Corollary 1.

    trials       of a rule in a cube that it takes; None where nothing promises any
    decisions    that are ever made below it, over all phases
    floor        what the partition alone costs: it cannot be promised to fall short by less
    delta_floor  the probability below which the index promises nothing
    cuts         how many parts per axis would be needed
    """

    trials: int | None
    decisions: int | None
    floor: float
    delta_floor: float
    cuts: int


def planned_confidence(
    learner: LocalLearner, horizon: int, eps: float, delta: float
) -> PlannedConfidence:
    """Plan how many decisions fall short by more than eps, with a probability of delta."""
    lengths = _phases(learner, horizon)
    needs = [_needed(learner, length, eps, delta / len(lengths)) for length in lengths]
    last, decisions = needs[-1], needs[-1].decisions
    if len(lengths) > 1:
        # Each phase starts from nothing, and has no more decisions than its length.
        below = (min(need.decisions or t, t) for need, t in zip(needs, lengths, strict=True))
        decisions = sum(below)
    promised = last.trials is not None and not why_no_local_bound(learner)
    return PlannedConfidence(
        last.trials if promised else None,
        decisions if promised else None,
        last.floor,
        len(lengths) / lengths[-1],
        last.cuts,
    )


def _phases(learner: LocalLearner, horizon: int) -> list[int]:
    """Return the lengths of the phases that so many instances meet; of a known horizon, that."""
    clock = learner.iup.config.clock
    if not isinstance(clock, Doubling):
        return [horizon]
    return [clock.length(phase) for phase in range(1, clock.phase(horizon - 1) + 1)]


def _needed(learner: LocalLearner, horizon: int, eps: float, delta: float) -> PatientsNeeded:
    partition = partition_for(learner, horizon)
    return patients_needed(
        eps,
        delta,
        T=horizon,
        d=partition.d,
        m=partition.m,
        cubes=partition.size,
        rules=len(learner.rules),
        L=learner.lipschitz,
        alpha=learner.iup.config.alpha,
    )


def theorem_1(learner: LocalLearner, horizon: float) -> float:
    """Bound an LL's regret over one horizon."""
    partition = partition_for(learner, horizon)
    return local_regret(
        horizon,
        d=partition.d,
        m=partition.m,
        cubes=partition.size,
        rules=len(learner.rules),
        L=learner.lipschitz,
        alpha=learner.iup.config.alpha,
    )


def partition_for(learner: LocalLearner, horizon: float) -> Partition:
    """Return the partition that an LL uses when it is set up for a horizon."""
    config = learner.iup.config
    real = int((learner.space.category_counts == 0).sum())
    m = config.cuts or cuts_for(max(1, int(horizon)), config.alpha, real, config.max_cuts)
    return Partition(learner.space, m)
