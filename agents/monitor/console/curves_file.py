"""Keeps the curves in the worker's state folder, so that they survive its restart.

The file holds what the curves show and nothing else: rates, weights and counts of the whole
ensemble, no patient and no label of one. It is bounded like the curves, is written every few
seconds at most and only if they have moved, and may be deleted at any time: then they start again.
It belongs to the machine. Workers that share a state folder share it, and as all of them see the
same system, it does not matter which of them wrote last.

It also holds a digest of each section of the settings, to tell a restart with other settings from
one with the same, and the number of each learner's and expert's colour: one that joins gets the
first that is free, and one that leaves keeps its own, so that no colour ever changes.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Annotated, Any, TypedDict

import msgspec
import orjson

from agents.monitor.console.history import History
from settings.model import Settings

_VERSION = 1
_log = logging.getLogger(__name__)


_Rates = list[float | None]


class _Head(msgspec.Struct):
    v: int
    name: str


class _Point(TypedDict):
    """A point of the curves, as `history.point` makes it."""

    t: int
    n: int
    h: int
    e: _Rates
    r: _Rates
    x: _Rates
    w: dict[str, float | None]
    g: float | None
    b: float | None


class _Mark(TypedDict):
    t: int
    n: int
    kind: str
    text: str


class _Stored(_Head):
    learners: list[str]
    settings: dict[str, str]
    points: list[_Point]
    marks: list[_Mark]
    added: int
    step: Annotated[int, msgspec.Meta(ge=1)]
    colours: dict[str, int] = {}


def _decode(content: bytes) -> _Stored:
    stored = msgspec.json.decode(content, type=_Stored)
    count = len(stored.learners)
    for point in stored.points:
        if (len(point["e"]), len(point["r"]), len(point["x"])) != (count + 1, count + 1, count):
            raise ValueError("a point does not have a value for each learner")
    return stored


class CurvesFile:
    """The file of one worker's curves."""

    def __init__(self, settings: Settings, experts: Iterable[str] = ()) -> None:
        self._settings = settings
        self._coloured = [*settings.learners, *experts]
        self.colours = assigned(self._coloured, {})
        self._file = settings.worker.state / "console" / "curves.json"
        self._written = 0

    def load(self, history: History, now: int) -> None:
        """Continue the curves of the last worker, if they fit, and mark the restart."""
        try:
            content = self._file.read_bytes()
            head = msgspec.json.decode(content, type=_Head)
            if (head.v, head.name) != (_VERSION, self._settings.name):
                return
            stored = _decode(content)
        except FileNotFoundError:
            return
        except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
            _log.warning("cannot read the curves in %s, starting new ones: %s", self._file, error)
            return
        before = stored.colours or {name: k for k, name in enumerate(stored.learners)}
        self.colours = assigned(self._coloured, before)
        points = _renamed(stored.points, stored.learners, self._learners)
        history.restore({**msgspec.structs.asdict(stored), "points": points})
        changed = _changed(stored.settings, _digests(self._settings))
        if changed:
            history.mark(now, "settings", f"settings changed: {', '.join(changed)}")
        else:
            history.mark(now, "restart", "the worker that serves this page restarted")

    def save(self, history: History) -> None:
        """Write the curves if they have moved; a reader never sees half of them."""
        if history.version == self._written:
            return
        version = history.version
        content = {
            "v": _VERSION,
            "name": self._settings.name,
            "learners": self._learners,
            "colours": self.colours,
            "settings": _digests(self._settings),
            **history.state(),
        }
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_bytes(orjson.dumps(content))
            fresh.replace(self._file)
        except OSError as error:
            _log.warning("cannot save the curves in %s: %s", self._file, error)
        self._written = version

    @property
    def _learners(self) -> list[str]:
        return list(self._settings.learners)


def assigned(names: Iterable[str], before: Mapping[str, int]) -> dict[str, int]:
    """Return a number for each name: the one it had, or the first that is free.

    >>> assigned(["new", "right"], {"left": 0, "right": 1})
    {'left': 0, 'right': 1, 'new': 2}
    """
    numbers = dict(before)
    for name in names:
        if name not in numbers:
            taken = set(numbers.values())
            numbers[name] = next(number for number in count() if number not in taken)
    return numbers


def _renamed(points: list[Any], before: list[str], now: list[str]) -> list[Any]:
    """Return points with their learners in today's order; those that are new have no past."""
    if before == now:
        return points
    at = [before.index(name) if name in before else None for name in now]

    def moved(values: list[Any]) -> list[Any]:
        return [None if k is None else values[k] for k in at]

    return [
        {
            **point,
            **{key: [point[key][0], *moved(point[key][1:])] for key in ("e", "r")},
            "x": moved(point["x"]),
        }
        for point in points
    ]


def _digests(settings: Settings) -> dict[str, str]:
    """Return a digest of each section that decides what is learned and answered."""
    ensemble = settings.ensemble.model_dump(mode="json")
    parts: dict[str, Any] = {f"ensemble.{key}": value for key, value in ensemble.items()}
    for name, learner in settings.learners.items():
        parts[f"learners.{name}"] = learner.model_dump(mode="json")
    parts["labels"] = [*settings.labels, settings.positive]
    return {
        key: hashlib.blake2b(
            orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=8
        ).hexdigest()
        for key, value in parts.items()
    }


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the sections that differ."""
    return sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
