"""What the topics of one partition lead to, and the metrics of all partitions that follow from it.

The audit compares it table by table; the metrics of a worker can then be held against what they
would be if they were worked out from the topics alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.monitor.scores import Sums
from agents.totals import EnsembleTotals, local_width, summed
from audit.observed import Evidence
from learners.arrays.tables import CellTable
from learners.arrays.types import Ints
from learners.scores.window import Window, merged
from settings.model import Settings
from streams.kafka.topics import ENSEMBLE, local

_ONLY = np.zeros(1, np.int64)


@dataclass(slots=True)
class Again:
    """The state of one partition, worked out once more.

    tables    the ensemble learner's tables of counts
    totals    the totals of each local learner
    ensemble  the totals of the ensemble learner
    latest    when the latest diagnosis was made and its shares, if there was one
    window    the last labelled instances
    whole     whether the topics go back to the beginning; if not, nothing here can be relied on
    """

    partition: int
    whole: bool
    tables: Mapping[str, CellTable] = field(default_factory=dict)
    totals: dict[str, Ints] = field(default_factory=dict)
    ensemble: Ints | None = None
    latest: Ints | None = None
    window: Window | None = None


def live(evidence: Evidence) -> Again:
    """Return the same of the state as it was found."""
    settings, state = evidence.settings, evidence.state(ENSEMBLE)
    window = Window(1 + len(settings.learners), len(settings.labels))
    window.put_pages(*state.counts["window"].items(), evidence.head["settled"])
    latest = state.counts["latest"].items()[1]
    return Again(
        evidence.logs.partition,
        evidence.whole,
        state.counts,
        {
            name: evidence.state(local(name)).counts["totals"].rows(_ONLY)[0]
            for name in settings.learners
        },
        evidence.totals.row,
        latest[0] if len(latest) else None,
        window,
    )


def sums(settings: Settings, parts: Sequence[Again]) -> Sums:
    """Return what figures are made from: all partitions together."""
    latest = [(int(p.latest[0]), p.partition, p.latest) for p in parts if p.latest is not None]
    windows = [part.window for part in parts if part.window is not None and len(part.window)]
    width = EnsembleTotals.width(settings)
    return Sums(
        scores=_added(part.tables["scores"] for part in parts),
        regret=_added(part.tables["regret"] for part in parts),
        totals={
            name: summed([part.totals[name] for part in parts], local_width(settings))
            for name in settings.learners
        },
        ensemble=EnsembleTotals(
            summed([part.ensemble for part in parts if part.ensemble is not None], width)
        ),
        recent=merged(windows).confusion() if windows else None,
        weights=max(latest, key=lambda row: row[:2])[2][1:] if latest else None,
        control=_added(
            part.tables["fusion_fnr_control"]
            for part in parts
            if "fusion_fnr_control" in part.tables
        ),
    )


def _added(tables: Iterable[CellTable]) -> dict[int, Ints]:
    total: dict[int, Ints] = {}
    for table in tables:
        for cell, row in zip(*table.items(), strict=True):
            total[int(cell)] = total.get(int(cell), 0) + row
    return total
