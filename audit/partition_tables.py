"""The tables of one partition, recomputed or live, and their sums over all partitions.

The audit compares the two table by table. The metrics that follow from the recomputed ones are what
a worker's metrics would be if they were computed from the topics alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.monitor.scores import Sums
from agents.totals import AmendmentTotals, EnsembleTotals, local_width, summed
from audit.observed import Observed
from learners.arrays.tables import CellTable
from learners.arrays.types import Ints
from learners.scores.change import risen
from learners.scores.window import Window, merged
from settings.model import Settings
from streams.kafka.topics import ENSEMBLE, local

_ONLY = np.zeros(1, np.int64)


@dataclass(slots=True)
class PartitionTables:
    """The state of one partition that figures are made from.

    tables    the ensemble learner's tables of counts
    totals    the totals of each local learner
    ensemble  the totals of the ensemble learner
    amended   what it counted of corrected labels
    latest    when the latest diagnosis was made and its shares, if there was one
    window    the last labelled instances
    whole     whether the topics go back to their start; if not, recomputed tables are incomplete
    """

    partition: int
    whole: bool
    tables: Mapping[str, CellTable] = field(default_factory=dict)
    totals: dict[str, Ints] = field(default_factory=dict)
    ensemble: Ints | None = None
    amended: Ints | None = None
    latest: Ints | None = None
    window: Window | None = None


def live_tables(observed: Observed) -> PartitionTables:
    """Return the tables of the live state."""
    settings, state = observed.settings, observed.state(ENSEMBLE)
    window = Window(1 + len(settings.learners), len(settings.labels))
    window.put_pages(*state.counts["window"].items(), observed.head["settled"])
    latest = state.counts["latest"].items()[1]
    return PartitionTables(
        observed.logs.partition,
        observed.whole,
        state.counts,
        {
            name: observed.state(local(name)).counts["totals"].rows(_ONLY)[0]
            for name in settings.learners
        },
        observed.totals.row,
        observed.amendments.row,
        latest[0] if len(latest) else None,
        window,
    )


def sums(settings: Settings, parts: Sequence[PartitionTables]) -> Sums:
    """Return the sums over all partitions that figures are made from."""
    latest = [(int(p.latest[0]), p.partition, p.latest) for p in parts if p.latest is not None]
    windows = [part.window for part in parts if part.window is not None and len(part.window)]
    window = merged(windows) if windows else None
    width = EnsembleTotals.width(settings)
    return Sums(
        confusion=_added(part.tables["scores"] for part in parts),
        regret=_added(part.tables["regret"] for part in parts),
        totals={
            name: summed([part.totals[name] for part in parts], local_width(settings))
            for name in settings.learners
        },
        ensemble=EnsembleTotals(
            summed([part.ensemble for part in parts if part.ensemble is not None], width)
        ),
        amended=AmendmentTotals(
            summed(
                [part.amended for part in parts if part.amended is not None], AmendmentTotals.WIDTH
            )
        ),
        recent=None if window is None else window.confusion(),
        risen=0.0 if window is None else risen(window.wrong()),
        weights=max(latest, key=lambda row: row[:2])[2][1:] if latest else None,
        assessed=_added(part.tables["assessment"] for part in parts),
        delays=_added(
            part.tables[name]
            for part in parts
            for name in ("fusion_delays", "fusion_committee_delays")
            if name in part.tables
        ),
    )


def _added(tables: Iterable[CellTable]) -> dict[int, Ints]:
    total: dict[int, Ints] = {}
    for table in tables:
        for cell, row in zip(*table.items(), strict=True):
            total[int(cell)] = total.get(int(cell), 0) + row
    return total
