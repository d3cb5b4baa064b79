"""A recorded stream in the terms of other settings: who sees which row when, and when labels came.

Local learners of other settings may want other features. A replay sees all topics, so a feature is
taken from the learner's own instances if they have it, else from whoever's do: it is the same
patient. Each source counts by its first record of a patient.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audit.recording.columns import first_of_each
from audit.recording.partition_logs import PartitionLogs
from audit.recording.topic_logs import RowLog
from learners.arrays.types import Floats, Ints
from learners.local.features import Categorical, FeatureSpace
from settings.errors import InputError
from settings.model import Settings
from settings.sections.features import build_space

CONTEXT = ""
"""The source that the contexts are, among those named like learners."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows of some learner, or of the contexts: number of the patient, time and features."""

    ids: Ints
    times: Ints
    rows: Floats


@dataclass(frozen=True, slots=True)
class Tape:
    """A whole stream; patients are numbers, `names` their ids."""

    names: Sequence[str]
    arrivals: Mapping[str, Arrivals]
    contexts: Arrivals | None
    label_ids: Ints
    label_times: Ints
    labels: Ints


def tape_of(recorded: Sequence[PartitionLogs], settings: Settings) -> Tape:
    """Return the stream of all partitions, as learners of `settings` would have met it."""
    live = recorded[0].settings
    if live.labels != settings.labels:
        raise InputError("a replay cannot change the labels: the recorded ones are the truth")
    bases = np.cumsum([0, *(len(logs.names.ids) for logs in recorded)]).tolist()
    context = settings.ensemble.context
    labels = [logs.labels.columns for logs in recorded]
    return Tape(
        [name for logs in recorded for name in logs.names.ids.names()],
        {
            name: _joined(recorded, bases, name, build_space(learner.features))
            for name, learner in settings.learners.items()
        },
        None if context is None else _joined(recorded, bases, CONTEXT, context.partition().space),
        np.concatenate([c["id"] + base for c, base in zip(labels, bases, strict=False)]),
        np.concatenate([c["time"] for c in labels]),
        np.concatenate([c["label"] for c in labels]).astype(np.int64),
    )


def _joined(
    recorded: Sequence[PartitionLogs], bases: Sequence[int], name: str, space: FeatureSpace
) -> Arrivals:
    parts = [_arrivals(logs, name, space) for logs in recorded]
    return Arrivals(
        np.concatenate([part.ids + base for part, base in zip(parts, bases, strict=False)]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )


def _arrivals(logs: PartitionLogs, name: str, space: FeatureSpace) -> Arrivals:
    """Return the rows of one learner; a patient arrives when the last source it needs has come."""
    spaces = _spaces(logs)
    wanted = [_source(spaces, name, feature) for feature in space.names]
    ids: Ints | None = None
    found = {source: _first_rows(_log(logs, source)) for source in dict.fromkeys(wanted)}
    for source_ids, _, _ in found.values():
        ids = source_ids if ids is None else np.intersect1d(ids, source_ids)
    assert ids is not None  # noqa: S101 - a space has at least one feature
    times = np.zeros(len(ids), np.int64)
    rows = np.empty((len(ids), space.d))
    for source_ids, source_times, _ in found.values():
        times = np.maximum(times, source_times[np.searchsorted(source_ids, ids)])
    for j, (source, feature) in enumerate(zip(wanted, space.features, strict=True)):
        source_ids, _, source_rows = found[source]
        at = np.searchsorted(source_ids, ids)
        k = spaces[source].names.index(feature.name)
        rows[:, j] = _translated(source_rows[at, k], spaces[source].features[k], feature)
    known = ~np.isnan(rows).any(axis=1)
    return Arrivals(ids[known], times[known], rows[known])


def _spaces(logs: PartitionLogs) -> dict[str, FeatureSpace]:
    """Return the features of each source, as they were recorded."""
    settings = logs.settings
    spaces = {name: build_space(each.features) for name, each in settings.learners.items()}
    if settings.ensemble.context is not None:
        spaces[CONTEXT] = settings.ensemble.context.partition().space
    return spaces


def _source(spaces: Mapping[str, FeatureSpace], name: str, feature: str) -> str:
    """Return where a feature of a learner is taken from: its own records, if they have it."""
    for source in (name, *spaces):
        if source in spaces and feature in spaces[source].names:
            return source
    raise InputError(f"feature {feature!r} was not recorded; a replay can only use what was")


def _log(logs: PartitionLogs, source: str) -> RowLog:
    found = logs.contexts if source == CONTEXT else logs.instances[source]
    assert found is not None  # noqa: S101 - a source is named only if it was recorded
    return found


def _first_rows(log: RowLog) -> tuple[Ints, Ints, Floats]:
    """Return ids, ascending, with time and row of their first record."""
    columns = log.columns
    first = np.flatnonzero(first_of_each(columns["id"]))
    first = first[np.argsort(columns["id"][first])]
    return columns["id"][first], columns["time"][first], columns["row"][first]


def _translated(values: Floats, had: object, wants: object) -> Floats:
    """Return a recorded column in the terms of the feature that is wanted; nan where it has none.

    A category that the wanted feature does not have makes the row unusable, as it would live.
    """
    if isinstance(had, Categorical) != isinstance(wants, Categorical):
        raise InputError("a replay cannot turn numbers into categories, nor the other way round")
    if not (isinstance(had, Categorical) and isinstance(wants, Categorical)):
        return values
    index = {category: float(i) for i, category in enumerate(wants.categories)}
    new = np.array([index.get(category, np.nan) for category in had.categories])
    return np.asarray(new[values.astype(np.int64)], np.float64)
