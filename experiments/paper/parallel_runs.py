"""Many runs at once, with the product's own learners: the run is part of the cell.

A learner's state is one row per cell, and cells are independent of each other. So R runs of M local
learners (LLs), each under H values of the hyper-parameter h, form one batch of H x R x M instances
per step: parallel run (h, run, LL) has its own copy of the cubes in one shared `Iup`. The ensemble
learner (EL) works the same way: parallel run (h, run) has its own context cubes in one fusion rule.
No part of the algorithms is reimplemented here.

LLs do not depend on the EL, so they are simulated first, and any number of fusion rules afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.paper.protocol import Runs
from learners.arrays.types import Bools, Floats, Ints, Seeds
from learners.fusion.base import Ballot, FusedPredictions, Fusion
from learners.local.iup import Feedback, Iup, IupConfig
from learners.local.partition import Partition, cuts_for, unit_cube
from learners.local.phases import Horizon

Tick = Callable[[], object]
TICK_EVERY = 500


@dataclass(frozen=True)
class LocalSettings:
    """The LLs' settings. The defaults come closest to Table I under bandit feedback."""

    learners: int = 3
    exploration: float = 0.005
    scaling: str = "zlog"
    feedback: Feedback = Feedback.BANDIT
    preferred: int | None = 1
    alpha: float = 1.65
    cuts: int | None = None
    horizon: int = 10_000

    def config(self, d: int) -> IupConfig:
        """Return IUP's settings for an LL with d features."""
        return IupConfig(
            rules=2,
            clock=Horizon(self.horizon),
            alpha=self.alpha,
            exploration=self.exploration,
            feedback=self.feedback,
            preferred=self.preferred,
            cuts=self.cuts or cuts_for(self.horizon, self.alpha, d),
        )


@dataclass(frozen=True)
class Votes:
    """The LLs' predictions: arrays of shape (T, H, R, M).

    probes   the labels that the LLs would predict for each test patient after the last step,
             (n, H, R, M), if requested
    """

    labels: NDArray[np.int8]
    exploring: Bools
    probes: NDArray[np.int8] | None = None
    probe_exploring: Bools | None = None

    def pick(self, at: Ints) -> "Votes":
        """Return the votes for the values of h at these positions."""
        return Votes(
            self.labels[:, at],
            self.exploring[:, at],
            None if self.probes is None else self.probes[:, at],
            None if self.probe_exploring is None else self.probe_exploring[:, at],
        )


class _Group:
    """LLs with the same number of features: one Iup for all their parallel runs."""

    def __init__(self, runs: Runs, settings: LocalSettings, members: list[int], h: Floats) -> None:
        columns = [runs.columns(settings.learners)[i] for i in members]
        d = columns[0].shape[1]
        config = settings.config(d)
        self.shape = len(h), runs.count, len(members)
        self.members = members
        copies = int(np.prod(self.shape))
        self.iup = Iup(unit_cube(d), config, copies=copies)
        assert config.cuts is not None  # noqa: S101 - set by LocalSettings.config
        partition = Partition(unit_cube(d), config.cuts)
        unit = runs.data.unit(settings.scaling)
        # (R, members, patients): the cube of every patient in every LL of every run.
        self.cubes = np.stack(
            [[partition.cells(unit[:, mine]) for mine in own] for own in columns], axis=1
        )
        self.first = (np.arange(copies) * partition.size).reshape(self.shape)
        positive = np.broadcast_to(h[:, None, None], self.shape)
        self.weights = np.stack([np.ones(copies), positive.reshape(-1)])

    def at(self, patients: Ints) -> Ints:
        """Return the cube of each parallel run, (H, R, members), for one patient per run."""
        own = self.cubes[np.arange(len(patients)), :, patients]
        return self.first + own

    def choose(self, cubes: Ints, seeds: Seeds) -> tuple[Ints, Bools]:
        """Return each parallel run's rule, which is also its label, and whether it explores."""
        spread = np.broadcast_to(seeds[None, :, None], self.shape).reshape(-1)
        choices = self.iup.choose(cubes.reshape(-1), spread, self.weights)
        return choices.rules.reshape(self.shape), choices.exploring.reshape(self.shape)

    def learn(self, cubes: Ints, rules: Ints, given_labels: Ints, arrived: Bools) -> None:
        """Learn from the labels of the runs in `arrived`."""
        cubes, rules = cubes[:, arrived].reshape(-1), rules[:, arrived].reshape(-1)
        shape = self.shape[0], int(arrived.sum()), self.shape[2]
        labels = np.broadcast_to(given_labels[arrived][None, :, None], shape).reshape(-1)
        self.iup.learn(1, cubes, rules, labels[:, None] == np.arange(2))


def simulate_learners(
    runs: Runs,
    settings: LocalSettings,
    h: Floats,
    *,
    delay: int = 0,
    probe: bool = False,
    tick: Tick = lambda: None,
) -> Votes:
    """Run IUP in all parallel runs; a label arrives `delay` steps after its prediction."""
    groups = list(_groups(runs, settings, h))
    shape = runs.steps, len(h), runs.count, settings.learners
    labels, exploring = np.empty(shape, np.int8), np.empty(shape, np.bool_)
    for t in range(runs.steps):
        for group in groups:
            cubes = group.at(runs.draws[:, t])
            chosen, explores = group.choose(cubes, runs.seeds[:, t])
            labels[t][:, :, group.members] = chosen
            exploring[t][:, :, group.members] = explores
            if t >= delay:
                _settle(group, runs, labels, t - delay)
        if t % TICK_EVERY == 0:
            tick()
    if not probe:
        return Votes(labels, exploring)
    return Votes(labels, exploring, *_probe(runs, groups, shape))


def _settle(group: _Group, runs: Runs, labels: NDArray[np.int8], t: int) -> None:
    arrived = ~runs.silent[:, t]
    if arrived.any():
        rules = labels[t][:, :, group.members].astype(np.int64)
        group.learn(group.at(runs.draws[:, t]), rules, runs.told[:, t], arrived)


def _groups(runs: Runs, settings: LocalSettings, h: Floats) -> Iterator[_Group]:
    widths = [columns.shape[1] for columns in runs.columns(settings.learners)]
    for d in sorted(set(widths)):
        yield _Group(runs, settings, [i for i, width in enumerate(widths) if width == d], h)


def _probe(
    runs: Runs, groups: list[_Group], shape: tuple[int, ...]
) -> tuple[NDArray[np.int8], Bools]:
    """Ask every LL about every test patient; no labels follow."""
    count = runs.test.shape[1]
    labels = np.empty((count, *shape[1:]), np.int8)
    exploring = np.empty((count, *shape[1:]), np.bool_)
    for k in range(count):
        for group in groups:
            rules, explores = group.choose(group.at(runs.test[:, k]), probe_seeds(runs, k))
            labels[k][:, :, group.members] = rules
            exploring[k][:, :, group.members] = explores
    return labels, exploring


def probe_seeds(runs: Runs, k: int) -> Seeds:
    """Return (R,) seeds for the k-th test patient, as if it came next."""
    return runs.seeds[:, 0] + np.uint64(k + 1)


@dataclass(frozen=True)
class Fused:
    """The EL's decisions.

    labels     (T, H, R)
    probes     (n, H, R) on the test patients, after the last step
    expected   (T, H, R) each step's expected loss under Hedge's shares, in integer parts
    """

    labels: NDArray[np.int8]
    probes: NDArray[np.int8] | None = None
    expected: Ints | None = None


def simulate_fusion(
    make: Callable[[int], Fusion],
    runs: Runs,
    votes: Votes,
    *,
    contexts: Ints | None = None,
    cubes: int = 1,
    delay: int = 0,
    losses: bool = False,
    tick: Tick = lambda: None,
) -> Fused:
    """Run a fusion rule in all parallel runs.

    make       builds the rule for a number of cubes
    contexts   (R, patients) each patient's context cube, below `cubes`
    losses     whether to keep the expected loss
    """
    steps, values, count = votes.labels.shape[:3]
    parallel = values * count
    fusion = make(parallel * cubes)
    desk = _Desk(runs, votes, np.arange(parallel).reshape(values, count) * cubes, contexts)
    labels = np.empty((steps, values, count), np.int8)
    expected = np.empty((steps, values, count), np.int64) if losses else None
    waiting: list[tuple[Ballot, FusedPredictions]] = []
    for t in range(steps):
        ballot = desk.ballot(t)
        fused = fusion.decide(ballot)
        labels[t] = fused.labels.reshape(values, count)
        if expected is not None:
            truth = np.tile(runs.data.truth[runs.draws[:, t]], values)
            expected[t] = fused.expected_loss(truth).reshape(values, count)
        waiting.append((ballot, fused))
        if t >= delay:
            desk.settle(fusion, *waiting.pop(0), t - delay)
        if t % TICK_EVERY == 0:
            tick()
    probes = None if votes.probes is None else desk.probe(fusion)
    return Fused(labels, probes, expected)


class _Desk:
    """Makes the ballots of all parallel runs and passes their labels to the fusion rule."""

    def __init__(self, runs: Runs, votes: Votes, first: Ints, contexts: Ints | None) -> None:
        self.runs, self.votes, self.first, self.contexts = runs, votes, first, contexts
        self.values, self.count = first.shape
        self.cells = first.reshape(-1)

    def _ballot(self, labels: Ints, exploring: Bools, seeds: Seeds, patients: Ints) -> Ballot:
        learners = labels.shape[-1]
        cells = self.cells
        if self.contexts is not None:
            cells = (self.first + self.contexts[np.arange(self.count), patients]).reshape(-1)
        return Ballot.of(
            labels.reshape(-1, learners).astype(np.int64),
            np.tile(seeds, self.values),
            classes=self.runs.data.classes,
            cells=cells,
            exploring=exploring.reshape(-1, learners),
        )

    def ballot(self, t: int) -> Ballot:
        """Return the ballot of step t, one row per parallel run."""
        seeds, patients = self.runs.seeds[:, t], self.runs.draws[:, t]
        return self._ballot(self.votes.labels[t], self.votes.exploring[t], seeds, patients)

    def settle(self, fusion: Fusion, ballot: Ballot, fused: FusedPredictions, t: int) -> None:
        """Pass on the labels of step t to the fusion rule, where they arrived."""
        labels = np.tile(self.runs.told[:, t], self.values)
        silent = np.tile(self.runs.silent[:, t], self.values)
        if silent.any():
            arrived = np.flatnonzero(~silent)
            ballot, fused, labels = ballot.take(arrived), fused.take(arrived), labels[arrived]
        fusion.learn(ballot, fused, labels)

    def probe(self, fusion: Fusion) -> NDArray[np.int8]:
        """Ask the EL about every test patient."""
        probes, exploring = self.votes.probes, self.votes.probe_exploring
        assert probes is not None  # noqa: S101 - checked by the caller
        assert exploring is not None  # noqa: S101 - made together with the probes
        labels = np.empty(probes.shape[:3], np.int8)
        for k in range(len(probes)):
            seeds, patients = probe_seeds(self.runs, k), self.runs.test[:, k]
            fused = fusion.decide(self._ballot(probes[k], exploring[k], seeds, patients))
            labels[k] = fused.labels.reshape(self.values, self.count)
        return labels
