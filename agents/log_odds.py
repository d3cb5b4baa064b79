"""Log-odds as they travel and as learners use them: the one place that converts them.

With two labels a single number travels, the log-odds of the positive label; with more, one per
label. Learners always use one per label.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TypeAlias

import numpy as np

from learners.arrays.types import Floats
from settings.model import Settings

Sent: TypeAlias = tuple[float, ...] | None
"""The log-odds of a record; None if it has none."""


class LogOddsFormat:
    """How log-odds travel between the learners of some settings."""

    def __init__(self, settings: Settings) -> None:
        self._labels = len(settings.labels)
        self._positive = settings.labels.index(settings.positive)

    def fits(self, sent: Sent) -> bool:
        """Tell whether there are none, or one per label, or one for two labels."""
        return sent is None or len(sent) == self._labels or (self._labels == 2 and len(sent) == 1)

    def send(self, log_odds: Floats) -> list[Sent]:
        """Return what travels of (n, K) log-odds; None for rows that are not known."""
        if np.isnan(log_odds).all():
            return [None] * len(log_odds)
        columns = log_odds[:, [self._positive]] if self._labels == 2 else log_odds
        return [tuple(row) if isfinite(row[0]) else None for row in columns.tolist()]

    def expand(self, sent: Sent) -> Sent:
        """Return one number per label for the log-odds of one record; what does not fit stays."""
        if sent is None or len(sent) != 1 or self._labels != 2:
            return sent
        return (-sent[0], sent[0]) if self._positive else (sent[0], -sent[0])

    def shorten(self, log_odds: Sequence[float] | None) -> Sent:
        """Return what travels of one number per label; the reverse of `expand`."""
        if log_odds is None:
            return None
        return (log_odds[self._positive],) if self._labels == 2 else tuple(log_odds)

    def hear(self, sent: Sequence[Sent]) -> Floats:
        """Return (n, K) log-odds; nan where a record has none, or some that do not fit."""
        log_odds = np.full((len(sent), self._labels), np.nan)
        for row, received in enumerate(sent):
            if received is not None and self.fits(received):
                log_odds[row] = self.expand(received)
        return log_odds
