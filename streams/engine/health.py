"""Whether something is healthy, and if not, why, for `/readyz`, the console and `hb status`.

A symptom is one thing that is wrong. A verdict names the gravest symptom, which usually explains
the others: while the broker does not answer, tasks do not open either. Every display of a worker's
or the whole system's health collects symptoms and calls `verdict`, so that all of them agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How bad it is."""

    WELL = "well"
    STARTING = "starting"
    """It is not working yet, or partitions are moving; this passes."""
    TROUBLE = "trouble"


class Cause(StrEnum):
    """What can be wrong, the gravest first."""

    BROKER_AWAY = "broker_away"
    BROKER_UNUSABLE = "broker_unusable"
    STATE_UNREADABLE = "state_unreadable"
    CRASHED = "crashed"
    NO_WORKER = "no_worker"
    TASK_FAILED = "task_failed"
    NOT_READING = "not_reading"
    NOT_FETCHING = "not_fetching"
    NO_COORDINATOR = "no_coordinator"
    NOT_FOLLOWING = "not_following"
    NOT_COMMITTING = "not_committing"
    HELD_BACK = "held_back"
    TASK_REOPENING = "task_reopening"
    TASK_UNHELD = "task_unheld"
    REBALANCE_STUCK = "rebalance_stuck"
    TASK_OPENING = "task_opening"
    NOT_JOINED = "not_joined"
    BROKER_SLOW = "broker_slow"

    @property
    def level(self) -> Level:
        """Return how bad it is."""
        return Level.STARTING if self in _PASSING else Level.TROUBLE


_PASSING = (Cause.TASK_OPENING, Cause.NOT_JOINED)
_MOST = 500
_GRAVITY = {cause: number for number, cause in enumerate(Cause)}


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that is wrong; `text` is a sentence without its full stop."""

    cause: Cause
    text: str

    def written(self) -> str:
        """Return it as one line that `read` understands."""
        return f"{self.cause}: {self.text}"[:_MOST]

    @classmethod
    def read(cls, line: str) -> "Symptom | None":
        """Return the symptom written on a line, None if there is none.

        >>> Symptom.read(Symptom(Cause.TASK_FAILED, "task a/0 is failed: a bug").written())
        Symptom(cause=<Cause.TASK_FAILED: 'task_failed'>, text='task a/0 is failed: a bug')
        >>> Symptom.read("")
        """
        cause, _, text = line.partition(": ")
        return cls(Cause(cause), text) if cause in set(Cause) else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How something is doing: its level, the cause in one sentence, and all symptoms."""

    level: Level = Level.WELL
    cause: Cause | None = None
    text: str = ""
    symptoms: tuple[Symptom, ...] = ()

    @property
    def well(self) -> bool:
        """Tell whether nothing is wrong."""
        return self.level is Level.WELL

    @property
    def troubled(self) -> bool:
        """Tell whether something is wrong that will not pass by itself."""
        return self.level is Level.TROUBLE

    def report(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "level": str(self.level),
            "cause": None if self.cause is None else str(self.cause),
            "text": self.text,
            "symptoms": [
                {"cause": str(symptom.cause), "text": symptom.text} for symptom in self.symptoms
            ],
        }


def verdict(symptoms: Iterable[Symptom]) -> Verdict:
    """Return what the symptoms amount to.

    >>> verdict([])
    Verdict(level=<Level.WELL: 'well'>, cause=None, text='', symptoms=())
    >>> opening = Symptom(Cause.TASK_OPENING, "task ensemble/0 is opening")
    >>> verdict([opening, broker_away("here:9092")]).text
    'the broker at here:9092 does not answer'
    """
    ordered = tuple(sorted(dict.fromkeys(symptoms), key=lambda s: _GRAVITY[s.cause]))
    if not ordered:
        return Verdict()
    gravest = ordered[0]
    return Verdict(gravest.cause.level, gravest.cause, gravest.text, ordered)


def broker_away(address: str) -> Symptom:
    """Return the symptom of a broker that does not answer."""
    return Symptom(Cause.BROKER_AWAY, f"the broker at {address} does not answer")
