"""A recorded stream as other settings see it: which learner sees which row when, and the labels.

Local learners of other settings may use other features. A replay sees all topics, so a feature is
taken from the learner's own instances if they have it, otherwise from those of a learner whose do:
it is the same patient. Of each source, a patient's first record counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audit.recording.columns import first_of_each
from audit.recording.partition_logs import PartitionLogs
from audit.recording.topic_logs import RowLog
from learners.arrays.types import Bools, Floats, Ints
from learners.local.features import Categorical, FeatureSpace
from settings.errors import InputError
from settings.model import Settings
from settings.sections.features import build_space

CONTEXT = ""
"""The contexts as a source; the other sources are named after their learners."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows of one learner, or of the contexts: numbers of the patients, times and features."""

    ids: Ints
    times: Ints
    rows: Floats


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A whole stream; patients are numbers, and `names` are their ids.

    `history` marks past patients, who are not among the rates; `amends` the labels that
    correct another, MISSING where they withdraw it; None if none does.
    """

    names: Sequence[str]
    arrivals: Mapping[str, Arrivals]
    contexts: Arrivals | None
    label_ids: Ints
    label_times: Ints
    labels: Ints
    history: Bools
    amends: Bools | None = None


def recorded_stream(recorded: Sequence[PartitionLogs], settings: Settings) -> RecordedStream:
    """Return the stream of all partitions, as learners of `settings` would have seen it."""
    live = recorded[0].settings
    if live.labels != settings.labels:
        raise InputError("a replay cannot change the labels: the recorded ones are the truth")
    bases = np.cumsum([0, *(len(logs.names.ids) for logs in recorded)]).tolist()
    context = settings.ensemble.context
    labels = [logs.labels.columns for logs in recorded]
    return RecordedStream(
        [name for logs in recorded for name in logs.names.ids.names()],
        {
            name: _joined(recorded, bases, name, build_space(learner.features))
            for name, learner in settings.learners.items()
        },
        None if context is None else _joined(recorded, bases, CONTEXT, context.partition().space),
        np.concatenate([c["id"] + base for c, base in zip(labels, bases, strict=False)]),
        np.concatenate([c["time"] for c in labels]),
        np.concatenate([c["label"] for c in labels]).astype(np.int64),
        np.concatenate([history_of(logs) for logs in recorded]),
        np.concatenate([c["amends"] for c in labels]),
    )


def history_of(logs: PartitionLogs) -> Bools:
    """Mark the past patients by their number."""
    past = np.zeros(len(logs.names.ids), np.bool_)
    for log in logs.instances.values():
        past[log.columns["id"][log.columns["history"]]] = True
    return past


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
    """Return the rows of one learner; a patient arrives with the last source it needs."""
    spaces = _spaces(logs)
    needed = [_source(spaces, name, feature) for feature in space.names]
    ids: Ints | None = None
    sources = {named: _first_rows(_log(logs, named)) for named in dict.fromkeys(needed)}
    for source in sources.values():
        ids = source.ids if ids is None else np.intersect1d(ids, source.ids)
    assert ids is not None  # noqa: S101 - a space has at least one feature
    times = np.zeros(len(ids), np.int64)
    rows = np.empty((len(ids), space.d))
    for source in sources.values():
        times = np.maximum(times, source.times[np.searchsorted(source.ids, ids)])
    for j, (name_of_source, feature) in enumerate(zip(needed, space.features, strict=True)):
        source, recorded = sources[name_of_source], spaces[name_of_source]
        at = np.searchsorted(source.ids, ids)
        k = recorded.names.index(feature.name)
        rows[:, j] = _translated(source.rows[at, k], recorded.features[k], feature)
    return Arrivals(ids, times, rows)


def _spaces(logs: PartitionLogs) -> dict[str, FeatureSpace]:
    """Return the feature space of each source, as it was recorded."""
    settings = logs.settings
    spaces = {name: build_space(learner.features) for name, learner in settings.learners.items()}
    if settings.ensemble.context is not None:
        spaces[CONTEXT] = settings.ensemble.context.partition().space
    return spaces


def _source(spaces: Mapping[str, FeatureSpace], name: str, feature: str) -> str:
    """Return the source of a feature: the learner's own records, if they have it."""
    for source in (name, *spaces):
        if source in spaces and feature in spaces[source].names:
            return source
    raise InputError(
        f"feature {feature!r} was not recorded; a replay can only use what was recorded"
    )


def _log(logs: PartitionLogs, source: str) -> RowLog:
    log = logs.contexts if source == CONTEXT else logs.instances[source]
    assert log is not None  # noqa: S101 - a source is named only if it was recorded
    return log


def _first_rows(log: RowLog) -> Arrivals:
    """Return the patients, ascending, with time and row of their first record."""
    columns = log.columns
    first = np.flatnonzero(first_of_each(columns["id"]))
    first = first[np.argsort(columns["id"][first])]
    return Arrivals(columns["id"][first], columns["time"][first], columns["row"][first])


def _translated(values: Floats, had: object, wants: object) -> Floats:
    """Return a recorded column as values of the wanted feature; nan where that has no such value.

    A category that the wanted feature lacks is missing, as it would be live.
    """
    if isinstance(had, Categorical) != isinstance(wants, Categorical):
        raise InputError("a replay cannot turn numbers into categories, nor the other way round")
    if not (isinstance(had, Categorical) and isinstance(wants, Categorical)):
        return values
    index = {category: float(i) for i, category in enumerate(wants.categories)}
    new = np.array([*(index.get(category, np.nan) for category in had.categories), np.nan])
    return np.asarray(new[np.nan_to_num(values, nan=-1.0).astype(np.int64)], np.float64)
