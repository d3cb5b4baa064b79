"""Folds over many cells at once, and how to pool the folds of several partitions.

A fold must take a cell's instances one after the other, but the cells are independent. So a batch
is cut into rounds: round k holds the k-th instance of every cell that has one. Each round is one
vectorised step, and the result is the same as taking the instances one by one, in order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from learners.arrays.tables import Rows
from learners.arrays.types import Ints


@dataclass(frozen=True, slots=True)
class Rounds:
    """The plan of a batch of n instances in c cells.

    cells     (c,) the distinct cells, those with the most instances first
    counts    (c,) how many instances each of them has
    order     (n,) the instances, round by round; within a round, in the order of `cells`

    So a round's cells are a prefix of `cells`, and its instances a slice of `order`.
    """

    cells: Ints
    counts: Ints
    order: Ints

    @classmethod
    def of(cls, cells: Ints) -> "Rounds":
        """Plan a batch.

        >>> plan = Rounds.of(np.array([7, 5, 5, 7, 5]))
        >>> plan.cells.tolist(), plan.counts.tolist(), plan.order.tolist()
        ([5, 7], [3, 2], [1, 0, 2, 3, 4])
        >>> [(size, part.start, part.stop) for size, part in plan]
        [(2, 0, 2), (2, 2, 4), (1, 4, 5)]
        """
        distinct, which, counts = np.unique(cells, return_inverse=True, return_counts=True)
        by_count = np.argsort(-counts, kind="stable")
        rank = np.empty_like(by_count)
        rank[by_count] = np.arange(len(distinct))
        by_cell = np.argsort(which, kind="stable")
        turn = np.empty(len(cells), np.int64)
        turn[by_cell] = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls(distinct[by_count], counts[by_count], np.lexsort((rank[which], turn)))

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        """Yield, per round, how many of the first cells take part and their slice of `order`."""
        start, size = 0, len(self.cells)
        for turn in range(int(self.counts.max(initial=0))):
            while self.counts[size - 1] <= turn:
                size -= 1
            yield size, slice(start, start + size)
            start += size


def mean_by_count(rows: Rows) -> Rows:
    """Pool rows `[count, numbers …]` of P partitions, (P, n, width): the mean weighted by count.

    A fold has no exact sum. The mean is what decisions use with several partitions; where none has
    counted anything, it is the initial row, which all of them hold.
    """
    counts = rows[:, :, :1]
    total = counts.sum(axis=0)
    mean = (rows * counts).sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, np.concatenate([total, mean[:, 1:]], axis=1), rows[0])
