"""The paper's runs: which patient is drawn when, and which features each local learner (LL) sees.

In Experiments 1 and 2, each run trains the offline methods on 285 random patients, and all methods
diagnose T = 10000 draws, with replacement, from the other 284. The paper says that its other
experiments draw from all 569, yet their tables repeat figures from Experiment 1; here all draw from
284, and `protocols.py` compares the two. In each run the features are dealt to the LLs at
random, and no two LLs share a feature. Labels may be missing or flipped when the learners get them;
results are always judged by the true labels.

All randomness comes from one seed and the run's number, so a run is the same whatever other runs
are made with it. Instance ids are `<seed>/<run>/<t>`: the learners' tie-breaks and random draws
depend on them, as in a live stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.data import Dataset, wdbc
from learners.arrays.seeds import seeds_of
from learners.arrays.types import Bools, Floats, Ints, Seeds

_BY_RUN = ("train", "test", "draws", "order", "seeds", "told", "silent")
TRAINING = 285
T = 10_000


@dataclass(frozen=True)
class Runs:
    """R runs over one data set.

    train     (R, 285) training patients of the offline methods; none if all 569 are drawn from
    test      (R, n) patients to draw from
    draws     (R, T) the patient of each step
    order     (R, d) the features, shuffled; LLs get consecutive parts
    seeds     (R, T) from the instance ids
    told      (R, T) the label given to the learners
    silent    (R, T) whether the label never arrives
    """

    data: Dataset
    train: Ints
    test: Ints
    draws: Ints
    order: Ints
    seeds: Seeds
    told: Ints
    silent: Bools

    @property
    def count(self) -> int:
        """Return R."""
        return len(self.draws)

    @property
    def steps(self) -> int:
        """Return T."""
        return int(self.draws.shape[1])

    @property
    def truth(self) -> Ints:
        """(R, T) the true label of each step."""
        return self.data.truth[self.draws]

    @property
    def first_visits(self) -> Bools:
        """(R, T): the run has not drawn this patient before."""
        first = np.zeros(self.draws.shape, np.bool_)
        for row, draws in zip(first, self.draws, strict=True):
            row[np.unique(draws, return_index=True)[1]] = True
        return first

    def columns(self, learners: int) -> list[Ints]:
        """Return, for each LL, its (R, d_i) features: equal parts, give or take one."""
        return np.array_split(self.order, learners, axis=1)

    def with_labels(self, *, missing: float = 0.0, flipped: float = 0.0, seed: int = 0) -> "Runs":
        """Return the same runs with some of the labels missing and some of them wrong."""
        rng = np.random.default_rng([seed, 1])
        lost, wrong = rng.random((2, *self.draws.shape))
        labels = np.where(wrong < flipped, 1 - self.truth, self.truth)
        return replace(self, told=labels, silent=lost < missing)

    def parts(self, size: int) -> Iterator["Runs"]:
        """Yield the runs in parts of at most `size`, so that each simulation fits in memory."""
        for start in range(0, self.count, size):
            of = slice(start, start + size)
            yield replace(self, **{name: getattr(self, name)[of] for name in _BY_RUN})

    def cut(self, steps: int) -> "Runs":
        """Return only the first steps of the runs."""
        return replace(
            self,
            draws=self.draws[:, :steps],
            seeds=self.seeds[:, :steps],
            told=self.told[:, :steps],
            silent=self.silent[:, :steps],
        )


def stacked(parts: Sequence[Runs]) -> Runs:
    """Return several sets of runs as one, so that they can be simulated together."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_RUN
    }
    return replace(parts[0], **joined)


def make_runs(
    count: int = 50,
    *,
    steps: int = T,
    seed: int = 2017,
    split: bool = True,
    data: Dataset | None = None,
) -> Runs:
    """Draw the runs; `split` sets 285 patients aside, as in Experiments 1 and 2.

    >>> runs = make_runs(2, steps=5)
    >>> runs.train.shape, runs.test.shape, runs.draws.shape
    ((2, 285), (2, 284), (2, 5))
    >>> bool((make_runs(3, steps=5).draws[:2] == runs.draws).all())
    True
    """
    data = data or wdbc()
    size = len(data.rows)
    training = TRAINING if split else 0
    parts = [
        _one_run(np.random.default_rng([seed, r]), data, training, steps) for r in range(count)
    ]
    patients, draws, order = (np.array(column) for column in zip(*parts, strict=True))
    seeds = seeds_of(f"{seed}/{r}/{t}" for r in range(count) for t in range(steps))
    return Runs(
        data=data,
        train=patients[:, :training],
        test=patients[:, training:size],
        draws=draws,
        order=order,
        seeds=seeds.reshape(count, steps),
        told=data.truth[draws],
        silent=np.zeros((count, steps), np.bool_),
    )


def _one_run(
    rng: np.random.Generator, data: Dataset, training: int, steps: int
) -> tuple[Ints, Ints, Ints]:
    patients = rng.permutation(len(data.rows))
    order = rng.permutation(data.rows.shape[1])
    return patients, rng.choice(patients[training:], steps), order


def training_rows(runs: Runs, run: int) -> tuple[Floats, Ints]:
    """Return the features and labels of a run's training patients."""
    patients = runs.train[run]
    return runs.data.rows[patients], runs.data.truth[patients]
