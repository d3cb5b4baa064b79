"""Learners that are often silent: our Hedge beside algorithms made for sleeping experts.

AdaNormalHedge and Squint bound the regret against an expert by the rounds in which it took part, or
by the sum of its squared differences from the ensemble, with no learning rate to choose. Here they
play against the same adversaries as AH, whose silent learners take the ensemble's own loss.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from experiments.adversary import Duel, play
from experiments.report.result import Result, Row, Table
from learners.arrays.shares import UNIT
from learners.arrays.tables import CellTable
from learners.arrays.types import Bools, Floats, Ints
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.fusion.hedge import Hedge
from learners.fusion.weighted import Use, WeightedFusion, falling_exp

Tick = Callable[[], object]
LEARNERS = (2, 5)


class _Sleeping(WeightedFusion):
    """Weights from each expert's regret R and a measure of its size, over the rounds it spoke in.

    r = (expected loss of the ensemble) - (loss of the expert) where it was awake, 0 elsewhere.
    """

    use: Use = "sample"

    def __init__(self, learners: int, classes: int, *, cubes: int = 1) -> None:
        super().__init__(learners, classes)
        self.regret: Floats = np.zeros((cubes, learners))
        self.size: Floats = np.zeros((cubes, learners))

    def _weights(self, ballot: Ballot) -> Floats:
        logs = self._log_weights(self.regret[ballot.cells], self.size[ballot.cells])
        return falling_exp(logs, ballot.present)

    def _learn(self, ballot: Ballot, fused: FusedPredictions, truth: Ints, /) -> None:
        lost = fused.votes != truth[:, None]
        ahead = fused.expected_loss(truth)[:, None] / UNIT - lost
        ahead = np.where(fused.votes >= 0, ahead, 0.0)
        np.add.at(self.regret, ballot.cells, ahead)
        np.add.at(self.size, ballot.cells, self._size(ahead))

    @abstractmethod
    def _log_weights(self, regret: Floats, size: Floats) -> Floats: ...

    @abstractmethod
    def _size(self, ahead: Floats) -> Floats: ...

    def tables(self) -> Mapping[str, CellTable]:
        """Return nothing: this state is only used here and never stored."""
        return {}


class AdaNormalHedge(_Sleeping):
    """H. Luo and R. Schapire, "Achieving all with no parameters: AdaNormalHedge", COLT 2015.

    w = (Phi(R + 1, C + 1) - Phi(R - 1, C + 1)) / 2,  Phi(R, C) = exp(max(R, 0)^2 / 3C)

    where C is the sum of |r|.
    """

    def _log_weights(self, regret: Floats, size: Floats) -> Floats:
        up = np.maximum(regret + 1.0, 0.0) ** 2 / (3.0 * (size + 1.0))
        down = np.maximum(regret - 1.0, 0.0) ** 2 / (3.0 * (size + 1.0))
        with np.errstate(divide="ignore"):
            return np.asarray(up + np.log(-np.expm1(down - up)))

    def _size(self, ahead: Floats) -> Floats:
        return np.abs(ahead)


class Squint(_Sleeping):
    """W. Koolen and T. van Erven, "Second-order quantile methods", COLT 2015.

    w = mean over rates eta of eta exp(eta R - eta^2 V),  V = sum r^2;  rates 1/2, 1/4, … 2^-12
    """

    rates: Floats = np.exp2(-np.arange(1.0, 13.0))

    def _log_weights(self, regret: Floats, size: Floats) -> Floats:
        eta = self.rates
        exponents = eta * regret[:, :, None] - eta**2 * size[:, :, None] + np.log(eta)
        return np.asarray(np.logaddexp.reduce(exponents, axis=2))

    def _size(self, ahead: Floats) -> Floats:
        return ahead**2


OURS = "AH, silence costs the ensemble's loss"
CONTENDERS: dict[str, Callable[[int, int], Fusion]] = {
    OURS: lambda M, cubes: Hedge(M, 2, cubes=cubes),
    "AdaNormalHedge": lambda M, cubes: AdaNormalHedge(M, 2, cubes=cubes),
    "Squint": lambda M, cubes: Squint(M, 2, cubes=cubes),
}


OTHERS = [name for name in CONTENDERS if name != OURS]


def streams(steps: int) -> dict[str, Duel]:
    """Return the streams by name."""
    return {
        "silent half of the time": Duel(steps, silent=0.5),
        "silent nine times of ten": Duel(steps, silent=0.9),
        "silent half of the time, labels 100 late": Duel(steps, 100, silent=0.5),
        "one speaks on 3 % and is wrong then": Duel(steps, gullible=True),
        "one speaks on 3 % and is right then": Duel(steps, gifted=True),
    }


def sleeping(
    count: int = 5, *, seed: int = 1, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Let all contenders play all streams; `count` runs of each."""
    steps, runs = (100 if quick else 2_000), min(count, 10)
    rows: list[Row] = []
    figures: dict[str, float] = {}
    regrets: dict[str, list[Floats]] = {name: [] for name in CONTENDERS}
    late: list[bool] = []
    for M in LEARNERS:
        for name, duel in streams(steps).items():
            late.append(duel.delay > 0)
            row: Row = [name, M]
            for contender, make in CONTENDERS.items():
                regret = play(partial(make, M), duel, runs=runs, seed=seed).regret
                figures[f"{contender}.{name}.M={M}"] = float(regret.mean())
                regrets[contender].append(regret)
                tick()
            row.append(float(regrets[OURS][-1].mean()))
            for other in OTHERS:
                row += [float(regrets[other][-1].mean()), _lead(regrets, other, [-1])[1]]
            rows.append(row)
    columns = ["stream", "learners", OURS]
    for other in OTHERS:
        columns += [other, "± of the difference"]
    return Result(
        name="sleeping",
        title="Learners that are often silent",
        settings={"decisions": steps, "runs": runs, "seed": seed, "learners": list(LEARNERS)},
        figures=figures,
        tables=[
            Table(
                "Regret against the worst learner, over the rounds it spoke in (mean of runs)",
                columns,
                rows,
                digits=1,
            )
        ],
        notes=_notes(regrets, np.array(late), figures),
    )


def _lead(
    regrets: Mapping[str, Sequence[Floats]], other: str, at: Sequence[int]
) -> tuple[float, float]:
    """Return by how much AH's mean regret over some streams is lower, and its standard error.

    All play the same runs, so that their differences are paired.
    """
    gaps = np.array([regrets[other][i] - regrets[OURS][i] for i in at])
    errors = gaps.var(axis=1, ddof=1) / gaps.shape[1] if gaps.shape[1] > 1 else gaps[:, 0] * np.nan
    return float(gaps.mean()), float(np.sqrt(errors.sum()) / len(at))


def _notes(
    regrets: Mapping[str, Sequence[Floats]], late: Bools, figures: dict[str, float]
) -> list[str]:
    """Compare AH with the others where labels are on time and where they are late."""
    notes = []
    when_at = {"on time": np.flatnonzero(~late), "100 late": np.flatnonzero(late)}
    for when, at in when_at.items():
        if not at.size:
            continue
        beyond = []
        for other in OTHERS:
            lead, se = _lead(regrets, other, at.tolist())
            figures |= {f"{other}.{when}.lead": lead, f"{other}.{when}.lead se": se}
            decided = abs(lead) > 2.0 * se
            word = ("in AH's favour" if lead > 0 else "against AH") if decided else "not decided"
            beyond.append(f"{other} {lead:+.1f} ± {se:.1f} ({word})")
        notes.append(f"Labels {when}: regret beyond that of AH, {', '.join(beyond)}.")
    return [*notes, "Streams differ in scale, so look at each of them: late labels weigh most."]
