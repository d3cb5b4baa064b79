"""Anytime Hedge (AH), Weighted Majority (WM) and Contextual Hedge (CH).

The paper's symbols, per context cube `p` (one cube: AH and WM; many: CH):

    N_p      labelled instances so far, plus the present one      `count + 1`
    L_{i,p}  errors of LL `i` on them                             `losses`
    q_i(t)   exp(-eta L_i) / sum_j exp(-eta L_j)                  the shares of a fused prediction
    eta(t)   sqrt(ln M / t), here with t = N_p                    rate "anytime"

`use="sample"` follows one LL drawn from `q` (AH), `use="vote"` takes the label with most of `q`
behind it (WM, the footnote to Section V). Only differences of losses matter; the smallest is taken
off before the exponential, so nothing overflows, and a constant added to all losses cancels.

Theorem 2: with `sample` and labels on time, at every T, expected errors exceed those of the best
LL by at most 2 sqrt(T ln M); Theorem 4: with m^d cubes, those of the best LL per cube by
2 sqrt(T m^d ln M). The paper supposes that every LL speaks on every instance and that each label
comes before the next decision. Where that is so, this is the paper's algorithm. Two things extend
it:

- Late labels: `t` grows by half of the earlier labels that a decision had to do without, and so
  does the bound (`late_labels`).
- An LL that was silent takes the EL's own expected loss. So being silent neither gains nor loses
  against the EL, and Theorem 2 bounds the regret against every LL over the instances on which it
  spoke. The paper lets a silent LL lose nothing, and one that seldom speaks is then trusted when it
  does, however wrong. (For experts that sleep: A. Chernov and V. Vovk, "Prediction with expert
  evaluators' advice", ALT 2009.)

State, integers per cube: `[N, L_1 … L_M]`; what each LL lost while silent, in parts; and what
`late_labels` counts. So the order of labels does not matter, and what several partitions counted
adds up.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import log, sqrt
from typing import Literal, TypeAlias, get_args

import numpy as np

from learners.arrays.shares import UNIT
from learners.arrays.tables import CellTable, Rows, table_for
from learners.arrays.types import Bools, Floats, Ints
from learners.errors import LearnerError
from learners.fusion.base import UNKNOWN, Ballot, FusedPredictions
from learners.fusion.late_labels import Basis, LateLabels, pooled_counts
from learners.fusion.weighted import Use, WeightedFusion, check_use

Rate: TypeAlias = Literal["anytime", "small-loss"]
"""How eta falls: with time (the paper), or with the errors of the best LL."""


class HedgeWeights:
    """Losses of E experts per cube, and the weights that follow from them.

    experts     E, the paper's M
    cubes       how many cubes there are; None if unknown
    eta_scale   multiplies eta. 1 is the theory, 0 makes all weights equal. Far from 1 the theorems
                do not hold
    rate        "anytime": eta = sqrt(ln M / N_p), and less where labels are late.
                "small-loss": eta = sqrt(ln M / (ln M + L*)) with L* the fewest errors of an expert
                in the cube. When good experts err seldom this stays larger for longer; see
                `small_loss_regret` for its guarantee
    """

    def __init__(
        self, experts: int, cubes: int | None, *, eta_scale: float = 1.0, rate: Rate = "anytime"
    ) -> None:
        if not 0.0 <= eta_scale < np.inf:
            raise LearnerError(f"eta_scale must be a number >= 0, not {eta_scale}")
        if rate not in get_args(Rate):
            raise LearnerError(f"rate must be one of {', '.join(get_args(Rate))}, not {rate!r}")
        self.table = table_for(cubes, 1 + experts)
        self.absences = table_for(cubes, experts)
        self.late = LateLabels(experts, cubes)
        self.experts = experts
        self.rate = rate
        self._log_experts = log(experts)
        self._eta_scale = eta_scale

    @property
    def plain(self) -> bool:
        """Tell whether the learning rate is the paper's, so that its theorems hold."""
        return self.rate == "anytime" and self._eta_scale == 1.0

    def basis(self, ballot: Ballot) -> Ints:
        """Return what decisions on these instances are based on, as `FusedPredictions.basis`."""
        labelled = self.table.rows(ballot.cells)[:, 0]
        return Basis(labelled, self.late.pace(ballot.cells, labelled), ballot.waiting).rows()

    def _eta(self, cells: Ints, rows: Rows, losses: Floats) -> Floats:
        """Return the learning rate in each cell, (n,)."""
        if not self._log_experts:
            return np.zeros(len(rows))
        if self.rate == "anytime":
            time = self.late.pace(cells, rows[:, 0])
        else:
            time = rows[:, 1:].min(axis=1) + losses.min(axis=1) + self._log_experts
        return self._eta_scale * np.sqrt(self._log_experts / time)

    def of(self, cells: Ints, present: Bools) -> Floats:
        """Return weights (n, E), the heaviest present expert's being 1."""
        rows = self.table.rows(cells)
        fewest = rows[:, 1:].min(axis=1, keepdims=True)
        losses = (rows[:, 1:] - fewest) + self.absences.rows(cells) / UNIT
        least = np.where(present, losses, np.inf).min(axis=1, keepdims=True)
        ahead = np.where(present, losses - least, 0.0)
        return np.exp(ahead * -self._eta(cells, rows, losses)[:, None])

    def learn(self, cells: Ints, votes: Ints, truth: Ints, fused: FusedPredictions) -> None:
        """Count one more instance, and an error for each expert that was wrong.

        votes    (n, E) as they are now; in `fused`, as they were when it was decided
        """
        heard = votes >= 0
        deltas = np.empty((len(cells), self.table.width), np.int64)
        deltas[:, 0] = 1
        deltas[:, 1:] = (votes != truth[:, None]) & heard
        self.table.add(cells, deltas)
        if fused.basis is None:
            return
        # Decisions that were kept without a basis count neither silence nor delay.
        with_basis = fused.basis[:, 0] != UNKNOWN
        silent = ~heard & with_basis[:, None]
        missed = silent.any(axis=1)
        if missed.any():
            losses = np.where(silent, _own_loss(fused, truth)[:, None], 0)
            self.absences.add(cells[missed], losses[missed])
        late = np.asarray((heard & (fused.votes < 0)).any(axis=1))
        self.late.learn(cells[with_basis], fused.basis[with_basis], late[with_basis])

    def tables(self) -> dict[str, CellTable]:
        """Return the state, by the names of its parts."""
        return {"losses": self.table, "absences": self.absences, "delays": self.late.table}


def pooled_weights(part: str, rows: Rows) -> Rows:
    """Return what several partitions counted in one of the tables of `HedgeWeights`, as one."""
    return pooled_counts(rows) if part == "delays" else np.asarray(rows.sum(axis=0))


def _own_loss(fused: FusedPredictions, truth: Ints) -> Ints:
    """Return the expected loss of each decision in parts; of a label without shares, its loss."""
    drawn = fused.parts.any(axis=1)
    label_loss = np.where((fused.labels != truth) & (fused.labels >= 0), UNIT, 0)
    return np.where(drawn, fused.expected_loss(truth), label_loss)


class Hedge(WeightedFusion):
    """AH (`use="sample"`) and WM (`use="vote"`); with several cubes, CH.

    References
    ----------
    C. Tekin, J. Yoon and M. van der Schaar, "Adaptive ensemble learning with confidence bounds",
    IEEE Trans. Signal Processing 65(4), 2017. Y. Freund and R. Schapire, "A decision-theoretic
    generalization of on-line learning", EuroCOLT 1995. N. Littlestone and M. Warmuth, "The weighted
    majority algorithm", FOCS 1989.

        >>> from learners.arrays.seeds import seeds_of
        >>> hedge = Hedge(learners=3, classes=2, use="vote")
        >>> ballot = Ballot.of(np.array([[0, 1, 1]]), seeds_of(["a"]), classes=2)
        >>> fused = hedge.decide(ballot)
        >>> fused.labels.tolist(), fused.parts.tolist()
        ([1], [[333333334, 333333333, 333333333]])
        >>> hedge.learn(ballot, fused, truth=np.array([0]))
        >>> hedge.decide(ballot).parts.tolist()
        [[511998876, 244000562, 244000562]]
    """

    salt = 1

    def __init__(
        self,
        learners: int,
        classes: int,
        *,
        cubes: int | None = 1,
        use: Use = "sample",
        eta_scale: float = 1.0,
        rate: Rate = "anytime",
        prefer: int = 0,
    ) -> None:
        super().__init__(learners, classes, prefer=prefer)
        check_use(use)
        self.use = use
        self.hears = frozenset({"seeds"} if use == "sample" else ())
        self.weights = HedgeWeights(learners, cubes, eta_scale=eta_scale, rate=rate)

    def _decide(self, ballot: Ballot, /) -> FusedPredictions:
        return replace(super()._decide(ballot), basis=self.weights.basis(ballot))

    def _weights(self, ballot: Ballot) -> Floats:
        return self.weights.of(ballot.cells, ballot.present)

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        self.weights.learn(ballot.cells, ballot.labels, truth, fused)

    def tables(self) -> Mapping[str, CellTable]:
        """Return the losses [N, L_1 … L_M] per cube, those of silent LLs, and what came late."""
        return self.weights.tables()

    def pooled(self, name: str, rows: Rows, /) -> Rows:
        """Pool the counts of several partitions."""
        return pooled_weights(name, rows)


def small_loss_regret(best: float, experts: int) -> float:
    """Bound the pseudo-regret of rate "small-loss" in one cube whose best expert errs `best` times.

    With l = ln M: 3 sqrt(l (l + L*)) + (l/2) ln(1 + L*/l) + 1 - l. Proof sketch, along the paper's
    proof of Theorem 2. A round's expected loss h and mix loss m obey h <= m + eta m, because losses
    are 0 or 1 and eta <= 1. Mix losses sum up to at most L* + l/eta, since eta never rises. And
    sum eta m, summed by parts, is at most 1 + 2 sqrt(l (l + L*)) + (l/2) ln(1 + L*/l) - l. See also
    P. Auer, N. Cesa-Bianchi and C. Gentile, "Adaptive and self-confident on-line learning
    algorithms", J. Computer and System Sciences 64(1), 2002, who bound such rates.

        >>> round(small_loss_regret(best=300, experts=3), 1)
        57.5
    """
    if experts == 1:
        return 0.0
    scale = log(experts)
    return 3.0 * sqrt(scale * (scale + best)) + scale / 2.0 * log(1.0 + best / scale) + 1.0 - scale
