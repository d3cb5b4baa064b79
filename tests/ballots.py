"""Random streams of ballots, and ways to run a fusion rule over them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from learners.arrays.types import MISSING, Ints
from learners.fusion.base import Ballot, FusedPredictions, Fusion


@dataclass(frozen=True)
class Stream:
    """Ballots with their labels."""

    ballot: Ballot
    truth: Ints

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, rows: Ints) -> "Stream":
        return Stream(self.ballot.take(rows), self.truth[rows])


def random_stream(
    rng: np.random.Generator,
    n: int,
    learners: int,
    classes: int,
    *,
    cubes: int = 1,
    silent: float = 0.15,
    confident: bool = True,
) -> Stream:
    """Draw LLs of unequal skill, some of them silent or exploring, some sending confidence."""
    truth = rng.integers(0, classes, n)
    skill = rng.uniform(0.3, 1.0, learners)
    guess = rng.integers(0, classes, (n, learners))
    labels = np.where(rng.random((n, learners)) < skill, truth[:, None], guess)
    labels = np.where(rng.random((n, learners)) < silent, MISSING, labels)
    accuracy = rng.uniform(0.0, 1.0, (n, learners))
    accuracy[rng.random((n, learners)) < 0.3] = np.nan
    log_odds = rng.normal(0.0, 3.0, (n, learners, classes))
    log_odds[rng.random((n, learners)) < 0.3] = np.nan
    ballot = Ballot.of(
        labels,
        rng.integers(0, 2**63, n).astype(np.uint64),
        classes=classes,
        cells=rng.integers(0, cubes, n),
        exploring=rng.random((n, learners)) < 0.3,
        accuracy=accuracy if confident else None,
        log_odds=log_odds if confident else None,
    )
    return Stream(ballot, truth)


def run(fusion: Fusion, stream: Stream, edges: list[int]) -> list[FusedPredictions]:
    """Decide batch by batch and learn each batch's labels after its decisions."""
    all_fused = []
    for start, stop in pairwise(edges):
        part = stream.take(np.arange(start, stop))
        all_fused.append(fusion.decide(part.ballot))
        fusion.learn(part.ballot, all_fused[-1], part.truth)
    return all_fused


def snapshot(fusion: Fusion) -> dict[str, tuple[list[int], bytes]]:
    """Return the whole state, bit by bit."""
    return {
        name: (table.items()[0].tolist(), table.items()[1].tobytes())
        for name, table in fusion.tables().items()
    }
