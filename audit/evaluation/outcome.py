"""How a pass went: error rates, how they fell with the labels, and when it became useful."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from learners.arrays.types import MISSING, Bools, Floats, Ints
from learners.scores.error_rates import confusion, rates

_Z = 1.645
"""One-sided 5 % point of the normal distribution."""
_POINTS = 20


@dataclass(frozen=True)
class Outcome:
    """What was predicted for n patients, beside the truth."""

    answers: Ints
    truth: Ints
    classes: int
    positive: int

    @property
    def counted(self) -> Bools:
        """Which patients have both a label and an answer."""
        return np.asarray((self.truth != MISSING) & (self.answers != MISSING))

    @property
    def wrong(self) -> Bools:
        """Which answers were wrong, of those that count."""
        of = self.counted
        return np.asarray(self.answers[of] != self.truth[of])

    def rates(self) -> dict[str, float | None]:
        """Return PER, FPR and FNR with their standard errors; None where there is nothing."""
        matrix = confusion(self.truth, self.answers, self.classes)
        error, sick = rates(matrix, self.positive), int(matrix[self.positive].sum())
        figures: dict[str, float | None] = {}
        for name, share, n in (
            ("PER", float(error.per), int(matrix.sum())),
            ("FPR", float(error.fpr), int(matrix.sum()) - sick),
            ("FNR", float(error.fnr), sick),
        ):
            figures[name] = share if n else None
            figures[f"{name}_se"] = sqrt(share * (1 - share) / n) if n else None
        return figures

    def curve(self) -> list[tuple[int, float]]:
        """Return the error of the last tenth of the patients at points along the pass."""
        wrong = self.wrong
        n = len(wrong)
        width = max(min(n, 20), n // 10)
        ends = np.unique(np.linspace(width, n, _POINTS).astype(np.int64)).tolist() if n else []
        return [(end, float(wrong[end - width : end].mean())) for end in ends]


def lead(outcome: Outcome, rival: Outcome) -> tuple[float, float]:
    """Return by how much `outcome` errs less than `rival` on the same patients, and its error."""
    gain = _gains(outcome, rival)
    return float(gain.mean()), float(gain.std() / sqrt(len(gain)))


def leads(outcome: Outcome, rival: Outcome) -> dict[str, tuple[float | None, float | None]]:
    """Return the lead in each rate, with its standard error; None where there are no patients."""
    truth = outcome.truth[outcome.counted & rival.counted]
    of = {
        "PER": truth != MISSING,
        "FPR": truth != outcome.positive,
        "FNR": truth == outcome.positive,
    }
    gains = {name: _gains(outcome, rival)[which] for name, which in of.items()}
    return {
        name: (float(gain.mean()), float(gain.std() / sqrt(len(gain))))
        if len(gain)
        else (None,) * 2
        for name, gain in gains.items()
    }


def labels_until_useful(outcome: Outcome, majority: Outcome) -> int | None:
    """Return after how many labels the lead over the majority class was, and stayed, beyond chance.

    By the sign test on those patients of whom only one of the two was right: one-sided, 5 %. None
    if that never came.
    """
    gain = _gains(outcome, majority)
    ahead = np.cumsum(gain) > _Z * np.sqrt(np.cumsum(gain != 0))
    behind = np.flatnonzero(~ahead)
    first = int(behind[-1]) + 1 if len(behind) else 0
    return first + 1 if first < len(gain) else None


def _gains(outcome: Outcome, rival: Outcome) -> Floats:
    common = outcome.counted & rival.counted
    truth = outcome.truth[common]
    gains = (rival.answers[common] != truth).astype(np.float64) - (outcome.answers[common] != truth)
    return np.asarray(gains, np.float64)
