"""Adversaries that see the weights, late labels and silent learners: does regret stay in bounds?

Many runs are played at once, each in a context cube of its own. In each round the adversary looks
at the weights, lets learners speak or be silent, and chooses, once the decision is made, the truth
that costs most. Labels may come late. At the end all decisions have their labels, and the regret
against each expert, over the rounds in which it took part, is compared with the bound that
`learners.theory.promises` gives, if it gives one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING, Bools, Floats, Ints
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.fusion.hedge import Hedge
from learners.theory.promises import delays_table, regret_bound


@dataclass(frozen=True)
class Duel:
    """How an adversary's stream is made.

    rounds      decisions of each run
    delay       how many rounds late labels come
    varying     whether that is only their mean, so that labels overtake each other
    silent      how often a learner says nothing
    exploring   how often it says that it explores
    never       how often a label never comes; such a decision counts for nothing
    gullible    what silent learners do: the first one speaks on 3 % and is always wrong then, the
                others err on 10 %, whatever the adversary would like
    gifted      the same, but the first one is always right
    """

    rounds: int = 10_000
    delay: int = 0
    varying: bool = False
    silent: float = 0.0
    exploring: float = 0.0
    never: float = 0.0
    gullible: bool = False
    gifted: bool = False


@dataclass(frozen=True)
class Outcome:
    """Regret of each run against its worst comparator, and the bounds; None if none is shown."""

    regret: Floats
    bound: Floats | None

    @property
    def violations(self) -> int:
        """Return how many runs exceed a bound that is shown."""
        return 0 if self.bound is None else int((self.regret > self.bound).sum())


class _Match:
    """One duel of a fusion rule, all runs at once."""

    def __init__(self, fusion: Fusion, duel: Duel, runs: int, seed: int) -> None:
        self.fusion, self.duel, self.runs = fusion, duel, runs
        self.rng = np.random.default_rng(seed)
        self.cells = np.arange(runs)
        experts = len(fusion.experts([""] * fusion.learners))
        self.gain = np.zeros((runs, experts), np.int64)
        self.labelled: Ints = np.zeros(runs, np.int64)
        self.waiting: list[tuple[int, int, Ballot, FusedPredictions, Ints]] = []

    def play(self) -> Outcome:
        """Play all rounds, then let all labels come."""
        for t in range(self.duel.rounds):
            self._settle(t)
            self._round(t)
        self._settle(None)
        return Outcome(self.gain.max(axis=1) / UNIT, self._bounds())

    def _round(self, t: int) -> None:
        ballot, fixed = self._ballot(self._weights())
        fused = self.fusion.decide(ballot)
        costs = np.stack(
            [fused.expected_loss(np.full(self.runs, y)) for y in range(self.fusion.classes)]
        )
        truth = np.where(fixed, 0, costs.argmax(axis=0))
        if self.rng.random() < self.duel.never:
            return
        heappush(self.waiting, (t + 1 + self._delay(), t, ballot, fused, truth))

    def _delay(self) -> int:
        mean = self.duel.delay
        return int(self.rng.geometric(1.0 / (1 + mean))) - 1 if self.duel.varying else mean

    def _weights(self) -> Ints:
        """Return the learners' shares, were all of them to speak."""
        votes = np.zeros((self.runs, self.fusion.learners), np.int64)
        return self.fusion.decide(self._asked(votes, None)).parts[:, -self.fusion.learners :]

    def _ballot(self, parts: Ints) -> tuple[Ballot, Bools]:
        """Return what learners say, and where the truth is fixed to label 0."""
        shape, duel, rng = parts.shape, self.duel, self.rng
        if duel.gullible or duel.gifted:
            votes = (rng.random(shape) < 0.1).astype(np.int64)
            votes[:, 0] = np.where(rng.random(shape[0]) < 0.03, int(duel.gullible), MISSING)
            return self._asked(votes, None), np.ones(self.runs, np.bool_)
        # The heaviest learner contradicts all others, or all of them guess.
        heaviest = np.arange(shape[1]) == parts.argmax(axis=1)[:, None]
        guesses = rng.integers(0, self.fusion.classes, shape)
        votes = np.where(rng.random((shape[0], 1)) < 0.8, heaviest, guesses).astype(np.int64)
        votes = np.where(rng.random(shape) < duel.silent, MISSING, votes)
        exploring = rng.random(shape) < duel.exploring
        return self._asked(votes, exploring), np.zeros(self.runs, np.bool_)

    def _asked(self, votes: Ints, exploring: Bools | None) -> Ballot:
        return Ballot.of(
            votes,
            self.rng.integers(0, 2**63, self.runs).astype(np.uint64),
            classes=self.fusion.classes,
            cells=self.cells,
            exploring=exploring,
            waiting=np.full(self.runs, len(self.waiting)),
        )

    def _settle(self, now: int | None) -> None:
        while self.waiting and (now is None or self.waiting[0][0] <= now):
            _, _, ballot, fused, truth = heappop(self.waiting)
            awake = self.fusion.awake(ballot, fused)
            lost = np.where(awake, UNIT * (fused.votes != truth[:, None]), 0)
            self.gain += awake * fused.expected_loss(truth)[:, None] - lost
            self.labelled += 1
            self.fusion.learn(ballot, fused, truth)

    def _bounds(self) -> Floats | None:
        name = delays_table(self.fusion)
        if name is None:
            return None
        rows = self.fusion.tables()[name].rows(self.cells)
        bounds = [
            regret_bound(self.fusion, self.labelled[i : i + 1], rows[i : i + 1])
            for i in range(self.runs)
        ]
        return None if None in bounds else np.array(bounds, np.float64)


def play(make: Callable[[int], Fusion], duel: Duel, *, runs: int = 5, seed: int = 1) -> Outcome:
    """Play a duel; `make` builds the fusion rule for a number of cubes."""
    return _Match(make(runs), duel, runs, seed).play()


@dataclass
class Partitions:
    """Hedge over several partitions and context cubes, one decision at a time, by pooled counts.

    Each decision is made in a cube and a partition that are drawn for it. The heaviest learner is
    contradicted; learners are silent half of the time, at times nobody speaks, or one speaks after
    the decision; some labels never come. What other partitions learned is known `lag` rounds later.
    """

    partitions: int
    delay: int
    classes: int = 2
    learners: int = 3
    cubes: int = 3
    lag: int = 20
    seed: int = 1

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, self.partitions, self.delay, self.classes])
        self.own = [self._hedge() for _ in range(self.partitions)]
        self.gain = np.zeros((self.cubes, self.learners), np.int64)
        self.labelled = np.zeros(self.cubes, np.int64)
        self._every = np.arange(self.cubes)
        self._past: list[dict[str, list[Ints]]] = [
            {name: [] for name in hedge.tables()} for hedge in self.own
        ]
        self._waiting: list[tuple[int, int, Ballot, FusedPredictions, Ints]] = []

    def _hedge(self) -> Hedge:
        return Hedge(self.learners, self.classes, cubes=self.cubes)

    def play(self, rounds: int) -> "Partitions":
        """Play all rounds, then let all labels come."""
        for t in range(rounds):
            self._settle(t)
            self._remember()
            self._round(t)
        self._settle(None)
        return self

    def bound(self, cubes: slice = slice(None)) -> float | None:
        """Return the bound on the regret in some cubes."""
        parts = [hedge.tables()["delays"].rows(self._every) for hedge in self.own]
        delays = self.own[0].pooled("delays", np.stack(parts))[cubes]
        return regret_bound(self.own[0], self.labelled[cubes], delays, partitions=self.partitions)

    def regret(self, cubes: slice = slice(None)) -> float:
        """Return the regret against the best learner of each cube, summed."""
        return float(self.gain[cubes].max(axis=1).sum()) / UNIT

    def _remember(self) -> None:
        """Keep what each partition knows, to be heard by the others later."""
        for hedge, past in zip(self.own, self._past, strict=True):
            for name, table in hedge.tables().items():
                past[name].append(table.rows(self._every))
                del past[name][: -self.lag]

    def _judge(self, at: int, cube: int) -> Hedge:
        """Return what a partition decides by: its own counts, and the others' as it has heard."""
        pooled, row = self._hedge(), np.array([cube])
        for name, table in pooled.tables().items():
            parts = [self.own[at].tables()[name].rows(row)]
            parts += [
                past[name][0][row] for p, past in enumerate(self._past) if p != at and past[name]
            ]
            table.put(row, pooled.pooled(name, np.stack(parts)))
        return pooled

    def _round(self, t: int) -> None:
        rng, shape = self.rng, (1, self.learners)
        at, cube = int(rng.integers(self.partitions)), int(rng.integers(self.cubes))
        judge = self._judge(at, cube)
        heaviest = judge.decide(self._ballot(np.zeros(shape, np.int64), cube)).parts.argmax()
        votes = np.where(np.arange(self.learners) == heaviest, rng.integers(1, self.classes), 0)
        votes = np.where(rng.random(shape) < 0.5, MISSING, votes)
        fused = judge.decide(self._ballot(votes, cube))
        costs = [int(fused.expected_loss(np.array([y]))[0]) for y in range(self.classes)]
        if rng.random() < 0.05:
            return  # its label never comes
        spoken = np.where((votes < 0) & (rng.random(shape) < 0.02), 0, votes)
        truth = np.array([np.argmax(costs)])
        ballot = self._ballot(spoken, cube)
        self._waiting.append((t + 1 + self.delay, at, ballot, fused, truth))

    def _settle(self, now: int | None) -> None:
        while self._waiting and (now is None or self._waiting[0][0] <= now):
            _, at, ballot, fused, truth = self._waiting.pop(0)
            cube = int(ballot.cells[0])
            lost = UNIT * (fused.votes[0] != truth[0])
            self.gain[cube] += (fused.votes[0] >= 0) * (fused.expected_loss(truth)[0] - lost)
            self.labelled[cube] += 1
            self.own[at].learn(ballot, fused, truth)

    def _ballot(self, votes: Ints, cube: int) -> Ballot:
        return Ballot.of(
            votes,
            np.zeros(1, np.uint64),
            classes=self.classes,
            cells=np.array([cube]),
            waiting=np.array([len(self._waiting)]),
        )
