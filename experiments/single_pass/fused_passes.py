"""Fusion over single passes, all orders in one batch, and rates at plain and tuned thresholds."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.paper.rates import Rates, rates
from experiments.single_pass.local_passes import Heard
from experiments.single_pass.orders import Order
from learners.arrays.types import Floats, Ints
from learners.fusion.base import Ballot, FusedPredictions, Fusion

LIMIT = 3.0


@dataclass(frozen=True)
class Pass:
    """A method's output in R passes: labels (N, R), and log-odds of the positive label (N, R)."""

    labels: Ints
    odds: Floats


def fuse(
    make: Callable[[int], Fusion], heard: Sequence[Heard], orders: Sequence[Order], late: int = 0
) -> Pass:
    """Run a fusion rule over all passes at once, with one cube per pass."""
    fusion, cells = make(len(heard)), np.arange(len(heard))
    classes, positive = orders[0].data.classes, orders[0].data.positive
    steps = len(orders[0].patients)
    labels = np.stack([learners.labels for learners in heard], axis=1)
    accuracy = np.stack([learners.accuracy for learners in heard], axis=1)
    odds = np.stack([learners.log_odds for learners in heard], axis=1)
    exploring = np.stack([learners.exploring for learners in heard], axis=1)
    seeds = np.stack([order.seeds for order in orders], axis=1)
    told_labels = np.stack([order.told for order in orders], axis=1)
    issued, score = np.empty((steps, len(heard)), np.int64), np.zeros((steps, len(heard)))
    waiting: deque[tuple[Ballot, FusedPredictions]] = deque()
    for t in range(steps):
        ballot = Ballot.of(
            labels[t],
            seeds[t],
            classes=classes,
            cells=cells,
            exploring=exploring[t],
            accuracy=accuracy[t],
            log_odds=odds[t],
        )
        fused = fusion.decide(ballot)
        issued[t] = np.where(ballot.heard, fused.labels, fusion.prefer)
        if positive is not None:
            score[t] = np.where(ballot.heard, log_odds_of(fused.support[:, positive]), 0.0)
        waiting.append((ballot, fused))
        if t >= late:
            fusion.learn(*waiting.popleft(), told_labels[t - late])
    return Pass(issued, score)


def log_odds_of(chance: Floats) -> Floats:
    """Return ln(p/(1-p)), finite."""
    p = np.clip(chance, 1e-12, 1.0 - 1e-12)
    return np.asarray(np.log(p) - np.log1p(-p))


def truths(orders: Sequence[Order]) -> Ints:
    """Return (N, R) true labels."""
    return np.stack([order.truth for order in orders], axis=1)


def at_limit(scored: Pass, truth: Ints, limit: float = LIMIT) -> tuple[Rates, float] | None:
    """Return the rates at the threshold with the lowest PER and a mean FNR below the limit.

    The threshold is the same for all passes and chosen in hindsight, for every method: it shows how
    well scores rank patients, not what is possible live. None if no threshold reaches the limit.
    """
    candidates = np.quantile(scored.odds, np.linspace(0.0, 1.0, 800))
    best: tuple[Rates, float] | None = None
    for threshold in np.unique(candidates):
        measured = rates((scored.odds >= threshold).astype(np.int8), truth)
        if measured.mean[2] <= limit and (best is None or measured.mean[0] < best[0].mean[0]):
            best = measured, float(threshold)
    return best
