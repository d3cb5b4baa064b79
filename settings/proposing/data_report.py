"""A report on a CSV file before it is used: what is missing, repeated, lopsided or too good.

A column that gives the label away is often a result that is only known once the label is: such an
ensemble looks perfect in an evaluation and is of no use afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from learners.scores.wording import counted, percent
from schemas.kinds import is_missing
from settings.proposing.column_profile import Profile, is_label
from settings.proposing.csv_file import CsvFile

SAMPLE = 20_000
"""Rows that are looked at for columns which give the label away."""
LEAKS = 0.99
"""A single column that is right so often gives the label away, if most labels are not alike."""
_ENOUGH = 30
"""Of fewer rows a column may well tell the label by chance."""
_LOPSIDED = 0.05


@dataclass(frozen=True)
class DataReport:
    """What a file holds, and what to think about before it is used."""

    profile: Profile
    warnings: Sequence[str]

    @property
    def missing_values(self) -> int:
        """How many values of features and labels are missing."""
        return sum(self.profile.missing.values())

    def figures(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        profile = self.profile
        return {
            "rows": profile.rows,
            "missing_values": self.missing_values,
            "repeated_ids": profile.repeated,
            "unlabelled": profile.unlabelled,
            "labels": dict(profile.labels),
            "missing": dict(profile.missing),
            "left_out": dict(profile.left_out),
        }

    def sentences(self) -> list[str]:
        """Return the report in words."""
        profile = self.profile
        shares = ", ".join(
            f"{label} {count:,} ({percent(count / sum(profile.labels.values()))})"
            for label, count in profile.labels.items()
        )
        categories = sum("categories" in feature for feature in profile.features)
        features = counted(len(profile.features), "feature", "features")
        features += f", {categories} of them categories"
        lines = [
            f"{counted(profile.rows, 'row', 'rows')}, {features}",
            f"labels in column {profile.label}: {shares}",
        ]
        if profile.unlabelled:
            lines.append(counted(profile.unlabelled, "row has no label", "rows have no label"))
        if profile.missing:
            most = sorted(profile.missing.items(), key=lambda item: -item[1])
            named = ", ".join(f"{name} {count:,}" for name, count in most[:8])
            suffix = f" and {len(most) - 8} more columns" if len(most) > 8 else ""
            missing = counted(self.missing_values, "value is missing", "values are missing")
            lines.append(f"{missing}: {named}{suffix}")
        if profile.repeated:
            repeats = counted(profile.repeated, "row repeats", "rows repeat")
            lines.append(f"{repeats} the id of an earlier one")
        lines += [
            f"left out: {name or '(no name)'}: {why}" for name, why in profile.left_out.items()
        ]
        return [*lines, *self.warnings]


def data_report(data: CsvFile, profile: Profile) -> DataReport:
    """Look at a file that has been profiled."""
    total = sum(profile.labels.values())
    warnings = [
        f"only {counted(count, 'row has', 'rows have')} the label {label!r}"
        f" ({percent(count / total)}): it will be hard to learn, and harder to measure"
        for label, count in profile.labels.items()
        if count < total * _LOPSIDED
    ]
    for name, right in leaks(data, profile).items():
        warnings.append(
            f"column {name!r} alone tells the label of {percent(right)} of the rows: is it known"
            " before the label is?"
        )
    return DataReport(profile, warnings)


def leaks(data: CsvFile, profile: Profile) -> dict[str, float]:
    """Return the features that give the label away, and how often each alone is right."""
    names = [str(feature["name"]) for feature in profile.features]
    texts, labels = _sample(data, names, profile.label)
    if len(labels) < _ENOUGH or np.bincount(labels).max() >= LEAKS * len(labels):
        return {}
    right = {}
    for feature in profile.features:
        name = str(feature["name"])
        present = np.array([not is_missing(text) for text in texts[name]], np.bool_)
        column = [text for text, there in zip(texts[name], present, strict=True) if there]
        if "categories" in feature:
            groups = np.unique(column, return_inverse=True)[1]
        else:
            groups = _best_cut(np.array(column, np.float64), labels[present])
        if len(groups) * 2 > len(labels):
            right[name] = _majority(groups, labels[present])
    return {name: share for name, share in right.items() if share >= LEAKS}


def _sample(data: CsvFile, names: list[str], label: str) -> tuple[dict[str, list[str]], Any]:
    texts: dict[str, list[str]] = {name: [] for name in names}
    labels: list[str] = []
    for chunk in data.chunks([*names, label]):
        there = [k for k, text in enumerate(chunk.columns[label]) if is_label(text.strip())]
        labels += [chunk.columns[label][k].strip() for k in there]
        for name in names:
            texts[name] += [chunk.columns[name][k].strip() for k in there]
        if len(labels) >= SAMPLE:
            break
    return texts, np.unique(labels, return_inverse=True)[1]


def _majority(groups: Any, labels: Any) -> float:
    """Return how often the most frequent label of a row's group is its own."""
    counts = np.zeros((groups.max() + 1, labels.max() + 1), np.int64)
    np.add.at(counts, (groups, labels), 1)
    return float(counts.max(axis=1).sum() / len(labels))


def _best_cut(values: Any, labels: Any) -> Any:
    """Return on which side of its best cut each value lies."""
    order = values.argsort(kind="stable")
    hot = np.eye(labels.max() + 1, dtype=np.int64)[labels[order]]
    below = np.cumsum(hot, axis=0)
    above = below[-1] - below
    right = below.max(axis=1) + above.max(axis=1)
    right[:-1][values[order][1:] == values[order][:-1]] = 0
    return (values > values[order][right.argmax()]).astype(np.int64)
