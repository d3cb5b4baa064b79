"""Which learner sees which features: named by the user, or suggested with a reason.

Learners are meant to sit where their features come from. A file does not say where that is, but it
often shows: columns that are missing in the same rows come from one place, and so, usually, do
columns whose names begin or end alike. Otherwise neighbours stay together, because files are mostly
put together source by source.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from settings.errors import InputError
from settings.proposing.proposal import split
from settings.sections.base import is_name

Features = Mapping[str, Sequence[Any]]
_MOST_GROUPS = 6
_USUAL = 3


@dataclass(frozen=True)
class Suggestion:
    """Each learner's features, and why they are together."""

    learners: dict[str, list[Any]]
    reason: str


def named_split(features: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Suggestion:
    """Read `NAME=COLUMN,COLUMN,…` for each learner; columns that none names are left out."""
    by_name = {str(feature["name"]): feature for feature in features}
    learners: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, columns = text.partition("=")
        names = [column.strip() for column in columns.split(",") if column.strip()]
        if not (equals and is_name(name) and names):
            raise InputError(f"--learner {text}: expected NAME=COLUMN,COLUMN,… with a legal name")
        if name in learners:
            raise InputError(f"--learner {name} is given twice")
        for column in names:
            if column not in by_name:
                raise InputError(
                    f"--learner {name}: there is no feature {column!r};"
                    f" the features are {', '.join(by_name)}"
                )
        learners[name] = [by_name[column] for column in names]
    return Suggestion(learners, "as given")


def suggested_split(
    features: Sequence[Mapping[str, Any]],
    sources: Sequence[Sequence[str]],
    learners: int | None = None,
) -> Suggestion:
    """Suggest a split; a number of learners that is given leaves no choice.

    >>> names = [{"name": n} for n in ("radius_mean", "area_mean", "texture_worst", "size_worst")]
    >>> suggestion = suggested_split(names, [])
    >>> {name: [f["name"] for f in fs] for name, fs in suggestion.learners.items()}
    {'mean': ['radius_mean', 'area_mean'], 'worst': ['texture_worst', 'size_worst']}
    >>> suggestion.reason
    'columns whose names end alike stay together'
    """
    if learners is not None:
        if len(features) < learners:
            raise InputError(f"there are {len(features)} features for {learners} learners")
        return Suggestion(split(features, learners), "neighbouring columns, in equal numbers")
    return (
        _by_source(features, sources)
        or _by_name(features, _first, "columns whose names begin alike stay together")
        or _by_name(features, _last, "columns whose names end alike stay together")
        or Suggestion(
            split(features, min(_USUAL, len(features))),
            "neighbouring columns stay together: neither names nor gaps show where they come from",
        )
    )


def _by_source(
    features: Sequence[Mapping[str, Any]], sources: Sequence[Sequence[str]]
) -> Suggestion | None:
    """Give columns that are missing together to one learner, the others to as many as are left."""
    if not sources or len(sources) >= _MOST_GROUPS:
        return None
    together = {name for group in sources for name in group}
    remaining = [feature for feature in features if feature["name"] not in together]
    parts = [[f for f in features if f["name"] in group] for group in sources]
    if remaining:
        count = min(max(_USUAL - len(parts), 1), len(remaining))
        parts = [*split(remaining, count).values(), *parts]
    learners = {f"ll{i + 1}": part for i, part in enumerate(parts)}
    return Suggestion(learners, "columns that are missing in the same rows come from one place")


def _by_name(
    features: Sequence[Mapping[str, Any]], key: Callable[[str], str], reason: str
) -> Suggestion | None:
    """Group by a part of the names, if that makes a few groups of two or more."""
    groups: dict[str, list[Any]] = {}
    for feature in features:
        groups.setdefault(key(str(feature["name"])), []).append(feature)
    if not 2 <= len(groups) <= _MOST_GROUPS or min(map(len, groups.values())) < 2:
        return None
    return Suggestion(groups, reason) if all(map(is_name, groups)) else None


def _first(name: str) -> str:
    return _words(name)[0]


def _last(name: str) -> str:
    return _words(name)[-1]


def _words(name: str) -> list[str]:
    """Return the words of a name in small letters; a name of one word belongs to no group."""
    words = [word for word in re.split(r"[^A-Za-z]+", name.lower()) if word]
    return words if len(words) > 1 else [""]
