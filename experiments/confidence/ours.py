"""The learners of the pipeline on a stream: what each diagnosis says about how sure it is.

`audit.replay` plays the stream to the objects that a worker runs; this module only listens.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from audit.replay.player import Player
from experiments.confidence.streams import Stream
from learners.arrays.types import Bools, Floats, Ints
from learners.assessment.bins import chance_bins
from learners.ensemble import Outcome
from settings.model import Settings

SLACK = 1e-9
"""Sums of chances are rounded; the interval is not meant to be exact to the last bit."""


@dataclass
class _Record:
    """The labelled patients with the same track record, and the mean of their true chances."""

    cases: int = 0
    chances: float = 0.0
    covered: bool = True


@dataclass(frozen=True)
class Said:
    """What was said about every arrival, in order.

    chance     (T, K)
    possible   (T, K) the labels that were not excluded
    answered   (T,)   whether there was an answer; else the patient was referred
    records    how many track records there were, and of how many the interval held the true mean at
               every diagnosis that showed it
    """

    chance: Floats
    possible: Bools
    answered: Bools
    records: tuple[int, int]


@dataclass
class _Heard:
    chance: Floats
    possible: Bools
    answered: Bools
    labels: Ints
    records: dict[tuple[int, int], _Record] = field(default_factory=lambda: defaultdict(_Record))


class Listener(Player):
    """Plays a stream whose true chances are known, and writes down what the ensemble says."""

    def __init__(self, stream: Stream, settings: Settings) -> None:
        super().__init__(stream.recorded(settings), settings)
        steps, classes = stream.chances.shape
        self._chances = stream.chances
        self._heard = _Heard(
            np.full((steps, classes), np.nan),
            np.ones((steps, classes), np.bool_),
            np.zeros(steps, np.bool_),
            np.zeros(steps, np.int64),
        )

    def record(self, outcome: Outcome) -> None:
        """Write down the diagnoses, then the labels that were settled."""
        super().record(outcome)
        at = [self.number(case.id) for case in outcome.diagnoses]
        if at:
            assessed, heard = outcome.assessed, self._heard
            heard.chance[at], heard.possible[at] = assessed.chance, assessed.possible
            heard.answered[at], heard.labels[at] = assessed.answered, assessed.labels
            for t, shown in zip(at, assessed.track.tolist(), strict=True):
                self._check(self._record_of(t), *assessed.records[shown])
        for case in outcome.settled:
            t = self.number(case.id)
            record = self._record_of(t)
            record.cases += 1
            record.chances += float(self._chances[t, self._heard.labels[t]])

    def _record_of(self, t: int) -> _Record:
        label = int(self._heard.labels[t])
        bin_ = int(chance_bins(self._heard.chance[t, label]))
        return self._heard.records[label, bin_]

    @staticmethod
    def _check(record: _Record, cases: int, _right: int, low: float, high: float) -> None:
        assert record.cases == cases  # noqa: S101 - else other patients are compared
        if cases:
            mean = record.chances / cases
            record.covered &= low - SLACK <= mean <= high + SLACK

    def said(self) -> Said:
        """Return what was written down."""
        heard = self._heard
        used = [record for record in heard.records.values() if record.cases]
        covered = sum(record.covered for record in used)
        return Said(heard.chance, heard.possible, heard.answered, (len(used), covered))


def listen(stream: Stream, settings: Settings) -> Said:
    """Run the learners of the settings on a stream."""
    listener = Listener(stream, settings)
    listener.play()
    return listener.said()
