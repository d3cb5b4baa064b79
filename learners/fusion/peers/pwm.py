"""Perceptron Weighted Majority (PWM): a perceptron on the votes of the LLs.

For two labels, y and votes s_i in {-1, +1}: predict sgn(w_0 + sum_i w_i s_i), and after a mistake
set w_i += y s_i, with s_0 = 1. An LL that sent nothing has s_i = 0. All weights start at zero, so
the size of the step is without effect and they stay integers.

For K labels the same perceptron in Kesler's form: every label has the score
b_y + 2 sum_{i: h_i = y} w_i, the largest wins, and a mistake that said y' in place of y moves b_y
and the weights of the LLs that said y up by one, and those for y' down by one. With two labels the
difference of the scores is twice w_0 + sum_i w_i s_i, so this is PWM itself.

Equal scores, as at the start, go to the preferred label whatever the LLs voted: sgn(0) is a fixed
label, as in any perceptron. A weight may become negative: that LL's vote counts against its label;
its share is then shown as zero.

State: `[b_1 … b_K, w_1 … w_M]` per cube, integers. The mistake is known from the fused label, so
the order of labels does not matter.

The update was not checked against its primary text, of which only the abstract could be reached; it
is the perceptron's, by which the authors name the method.

L. Canzian, Y. Zhang and M. van der Schaar, "Ensemble of distributed learners for online
classification of dynamic data streams", arXiv:1308.5281, 2013; L. Canzian and M. van der Schaar,
"Timely event detection by networked learners", IEEE Trans. Signal Processing 63(5), 2015.
"""

from collections.abc import Mapping

import numpy as np

from learners.arrays.shares import completed, proportions, rounded, tally, winner
from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import Ints
from learners.fusion.base import Ballot, FusedPredictions, Fusion


class PerceptronMajority(Fusion):
    """The perceptron on votes."""

    def __init__(
        self, learners: int, classes: int, *, cubes: int | None = 1, prefer: int = 0
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        self._table = table_for(cubes, classes + learners)

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        rows = self._table.rows(ballot.cells)
        bias, weights = rows[:, : self.classes], rows[:, self.classes :]
        score = bias + 2 * tally(ballot.labels, weights, self.classes)
        parts = completed(rounded(np.maximum(weights, 0.0), ballot.present))
        labels = winner(score, ballot.present, self.prefer)
        return FusedPredictions(labels, parts, ballot.labels, proportions(score, ballot.heard))

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        wrong = np.flatnonzero((fused.labels != truth) & ballot.heard)
        issued, true = fused.labels[wrong], truth[wrong]
        votes, rows = ballot.labels[wrong], np.arange(len(wrong))
        steps = np.zeros((len(wrong), self._table.width), np.int64)
        steps[rows, true] += 1
        decided = issued >= 0
        steps[rows[decided], issued[decided]] -= 1
        right = votes == true[:, None]
        steps[:, self.classes :] = right.astype(np.int64) - (
            (votes == issued[:, None]) & (votes >= 0)
        )
        self._table.add(ballot.cells[wrong], steps)

    def tables(self) -> Mapping[str, CellTable]:
        """Return the label biases and the LLs' weights per cube."""
        return {"perceptron": self._table}
