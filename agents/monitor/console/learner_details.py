"""One local learner in detail: how its labels spread over cubes, and how good its rules are.

    paper     here
    p_i       a cube; N_{f,p}, S_{f,p} its trials and successes per rule
    F_i       the rules; a rule's accuracy is its successes over its trials, in all cubes together

A cube is shown by its number only, never by what lies inside it; one with fewer labels than
`privacy.min_cube` not at all, because it may be a single patient's.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.pooling import PhaseIds
from agents.totals import FEW
from learners.arrays.types import Ints
from learners.local.learner import LocalLearner
from learners.theory.promises import share_interval
from settings.building import local_learner
from settings.model import Settings

_SHOWN = 5
_SIZES = (1, 2, 5, 10, 20, 50, 100, 1000)


def learner_details(
    settings: Settings, name: str, rows: Mapping[int, Ints], labelled: int
) -> dict[str, Any]:
    """Return a learner's cubes and rules.

    rows       its table of counts: N per rule, S per rule and, under full feedback, the hits of the
               rule that was chosen; by cell, all partitions together
    labelled   how many labels it has learned
    """
    learner = local_learner(settings, name)
    full = settings.learners[name].feedback == "full"
    cells = np.fromiter(rows, np.int64, len(rows))
    width = learner.iup.phase(1).table.width
    table = np.stack(list(rows.values())) if rows else np.zeros((0, width), np.int64)
    phase = learner.iup.config.clock.phase(labelled)
    by_phase = {number: (cubes, table[of]) for number, of, cubes in PhaseIds(learner).split(cells)}
    cubes, counts = by_phase.get(phase, (cells[:0], table[:0]))
    return {
        "name": name,
        "labelled": labelled,
        "feedback": settings.learners[name].feedback,
        "phase": phase,
        "phases": [
            _phase(learner, number, by_phase.get(number), full) for number in range(1, phase + 1)
        ],
        "thin_below": FEW,
        **_cubes(learner, cubes, counts, full, settings.privacy.min_cube),
        "rules": _rules(settings, name, learner, table),
    }


def _phase(
    learner: LocalLearner, number: int, cubes_and_counts: tuple[Ints, Ints] | None, full: bool
) -> dict[str, Any]:
    phase, F = learner.iup.phase(number), len(learner.rules)
    labels = 0 if cubes_and_counts is None else int(_visits(cubes_and_counts[1], F, full).sum())
    return {
        "phase": number,
        "horizon": phase.horizon,
        "cuts": phase.partition.m,
        # As text: JavaScript numbers cannot tell this many cubes apart.
        "cubes": str(phase.partition.size),
        "visited": 0 if cubes_and_counts is None else len(cubes_and_counts[0]),
        "labels": labels,
    }


def _visits(counts: Ints, rules: int, full: bool) -> Ints:
    """Return the labels of each cube: under full feedback each is a trial of every rule."""
    return counts[:, 0] if full else counts[:, :rules].sum(axis=1)


def _cubes(
    learner: LocalLearner, cubes: Ints, counts: Ints, full: bool, fewest: int
) -> dict[str, Any]:
    F = len(learner.rules)
    visits = _visits(counts, F, full)
    hits = counts[:, 2 * F] if full else counts[:, F : 2 * F].sum(axis=1)
    # Ties go by number, so that the order does not depend on how the counts were read.
    order = np.lexsort((cubes, visits))
    order = order[visits[order] >= fewest]
    low, high = share_interval(visits, hits)

    def one(i: int) -> dict[str, Any]:
        means = counts[i, F : 2 * F] / np.maximum(counts[i, :F], 1)
        return {
            "cube": str(cubes[i]),
            "labels": int(visits[i]),
            "accuracy": float(hits[i] / visits[i]) if visits[i] else None,
            "low": float(low[i]),
            "high": float(high[i]),
            "best": learner.rules[int(means.argmax())].name,
        }

    return {
        "visited": len(cubes),
        "thin": int((visits < FEW).sum()),
        "withheld": int((visits < fewest).sum()),
        "shown_from": fewest,
        "sizes": _sizes(visits),
        "biggest": [one(i) for i in order[::-1][:_SHOWN].tolist()],
        "thinnest": [one(i) for i in order[:_SHOWN].tolist()],
    }


def _sizes(visits: Ints) -> list[dict[str, Any]]:
    """Return how many cubes have how many labels."""
    ends = [*_SIZES[1:], None]
    return [
        {"from": low, "below": high, "cubes": int(_between(visits, low, high).sum())}
        for low, high in zip(_SIZES, ends, strict=True)
    ]


def _between(visits: Ints, low: int, high: int | None) -> Any:
    return (visits >= low) & ((visits < high) if high is not None else True)


def _rules(
    settings: Settings, name: str, learner: LocalLearner, table: Ints
) -> list[dict[str, Any]]:
    F = len(learner.rules)
    sums = table.sum(axis=0)
    trials, successes = sums[:F], sums[F : 2 * F]
    # Over all cubes together a rule has no single accuracy: where it is chosen changes.
    low, high = share_interval(trials, successes)
    return [
        {
            "name": rule.name,
            "kind": settings.learners[name].rules[rule.name].kind,
            "learns": rule.learns,
            "trials": int(trials[f]),
            "accuracy": float(successes[f] / trials[f]) if trials[f] else None,
            "low": float(low[f]),
            "high": float(high[f]),
        }
        for f, rule in enumerate(learner.rules)
    ]
