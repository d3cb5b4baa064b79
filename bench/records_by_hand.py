"""The peer of `hb bench records`: orjson with hand-written checks, into frozen dataclasses.

What a careful programmer would write without a typed decoder. It checks types, ranges and names as
the readers of `schemas` do, but does not detect duplicate keys.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

LABELS = frozenset({"benign", "malignant"})
LEARNERS = frozenset({"imaging", "cytology", "history"})
FEATURES = tuple(f"feature {j}" for j in range(10))

_LATEST = 253_402_300_799_999
_NUMBERS = frozenset({int, float})


class RefusedError(ValueError):
    """A value is not the record it should be."""


@dataclass(frozen=True, slots=True)
class HandLabel:
    """A label."""

    id: str
    label: str | None
    at: int
    amends: bool


@dataclass(frozen=True, slots=True)
class HandInstance:
    """An instance; `x` in the order of the features."""

    id: str
    x: list[float]
    at: int


@dataclass(frozen=True, slots=True)
class HandPrediction:
    """A prediction."""

    id: str
    learner: str
    label: str
    phase: int
    cube: str
    rule: str
    exploring: bool
    trials: int
    at: int
    accuracy: float | None
    low: float | None
    high: float | None
    epsilon: float | None
    votes: dict[str, str] | None
    log_odds: list[float] | None


def read_label(value: bytes) -> HandLabel:
    """Decode and check a label."""
    record = _record(value)
    amends = record.get("amends", False)
    _demand(type(amends) is bool, "amends")
    withdrawn = amends and "label" in record and record["label"] is None
    label = None if withdrawn else _one_of(record, "label", LABELS)
    return HandLabel(_id(record), label, _at(record), bool(amends))


def read_instance(value: bytes) -> HandInstance:
    """Decode and check an instance."""
    record = _record(value)
    x: Any = record.get("x")
    _demand(isinstance(x, list | dict) and len(x) == len(FEATURES), "x")
    row = x if isinstance(x, list) else [x.get(name) for name in FEATURES]
    # orjson has already refused NaN and infinities.
    _demand(_NUMBERS.issuperset(map(type, row)), "x")
    return HandInstance(_id(record), [float(number) for number in row], _at(record))


def read_prediction(value: bytes) -> HandPrediction:
    """Decode and check a prediction."""
    record = _record(value)
    exploring, cube = record.get("exploring"), _text(record, "cube")
    _demand(type(exploring) is bool, "exploring")
    _demand(cube.isascii() and cube.isdigit() and int(cube) < 2**63, "cube")
    return HandPrediction(
        id=_id(record),
        learner=_one_of(record, "learner", LEARNERS),
        label=_one_of(record, "label", LABELS),
        phase=_count(record, "phase"),
        cube=cube,
        rule=_text(record, "rule"),
        exploring=bool(exploring),
        trials=_count(record, "trials"),
        at=_at(record),
        accuracy=_number(record, "accuracy", 1.0),
        low=_number(record, "low", 1.0),
        high=_number(record, "high", 1.0),
        epsilon=_number(record, "epsilon", float("inf")),
        votes=_votes(record),
        log_odds=record.get("log_odds"),
    )


READ: dict[str, Callable[[bytes], object]] = {
    "label": read_label,
    "instance": read_instance,
    "prediction": read_prediction,
}


def _demand(holds: bool, field: str) -> None:
    if not holds:
        raise RefusedError(field)


def _record(value: bytes) -> dict[str, Any]:
    record = orjson.loads(value)
    if type(record) is not dict:
        raise RefusedError("record")
    _demand(record.get("v") == 1, "v")
    return record


def _text(record: dict[str, Any], field: str) -> str:
    text = record.get(field)
    if type(text) is not str or not 1 <= len(text) <= 200:
        raise RefusedError(field)
    return text


def _id(record: dict[str, Any]) -> str:
    text = _text(record, "id")
    _demand(text.isprintable(), "id")
    return text


def _one_of(record: dict[str, Any], field: str, names: frozenset[str]) -> str:
    text = record.get(field)
    if type(text) is not str or text not in names:
        raise RefusedError(field)
    return text


def _count(record: dict[str, Any], field: str) -> int:
    number = record.get(field)
    if type(number) is not int or number < 0:
        raise RefusedError(field)
    return number


def _at(record: dict[str, Any]) -> int:
    number = _count(record, "at")
    _demand(number <= _LATEST, "at")
    return number


def _number(record: dict[str, Any], field: str, high: float) -> float | None:
    number = record.get(field)
    if number is None:
        return None
    _demand(type(number) is float or type(number) is int, field)
    _demand(0.0 <= number <= high, field)
    return float(number)


def _votes(record: dict[str, Any]) -> dict[str, str] | None:
    votes = record.get("votes")
    if votes is None:
        return None
    if type(votes) is not dict or not LABELS.issuperset(votes.values()):
        raise RefusedError("votes")
    return votes
