"""The last labelled instances, for rates that forget what is long past.

A ring of `size` rows, all integers: when the label came, the label, and what each scope (the
ensemble learner, then each local learner) predicted. The window is over labelled instances, so a
local learner that was silent has fewer predictions in it than there are rows. A row whose label is
MISSING takes its place and counts for nothing: a past patient, who is counted elsewhere.

Each partition of a stream keeps its own window. The last 1,000 of the whole stream are among the
last 1,000 of each partition, so `merged` finds them exactly, by the times of the labels; where
those of several partitions came in the same millisecond, the last partition's count as the latest.
"""

from collections.abc import Sequence
from math import gcd

import numpy as np

from learners.arrays.types import MISSING, Bools, Ints
from learners.errors import LearnerError
from learners.scores.error_rates import confusion

_PAGE = 50
"""Rows that are written down together: few pages change with a label, and few records hold all."""


class Window:
    """The last `size` labelled instances of `scopes` predictors.

    >>> window = Window(scopes=1, classes=2, size=2)
    >>> window.push(np.array([1, 2, 3]), np.array([0, 1, 1]), np.array([[0], [0], [1]]))
    >>> window.confusion().tolist()
    [[[0, 0], [1, 1]]]
    """

    def __init__(self, scopes: int, classes: int, size: int = 1000) -> None:
        if min(scopes, size) < 1 or classes < 2:
            raise LearnerError("a window needs a scope, two labels and room for one instance")
        self.scopes = scopes
        self.classes = classes
        self.size = size
        self.pushed = 0
        self.page = gcd(size, _PAGE)
        # A row is the time of the label, the label, and what each scope predicted.
        self._rows = np.full((size, 2 + scopes), MISSING, np.int64)

    def __len__(self) -> int:
        return min(self.pushed, self.size)

    def push(self, at: Ints, truth: Ints, predicted: Ints) -> None:
        """Add n labelled instances, oldest first; `predicted` is (n, scopes)."""
        n = len(truth)
        if at.shape != (n,) or predicted.shape != (n, self.scopes):
            raise LearnerError(f"window: expected {n} times and {n} x {self.scopes} predictions")
        slots = self.slots(n)
        newest = slice(n - len(slots), n)
        self._rows[slots] = np.column_stack([at[newest], truth[newest], predicted[newest]])
        self.pushed += n

    def amend(self, serials: Ints, truth: Ints) -> None:
        """Change the labels of instances that were pushed as number `serials`; MISSING for none.

        Those that are no longer in the window are left alone; if one comes twice, its last label
        counts.
        """
        for serial, label in zip(serials.tolist(), truth.tolist(), strict=True):
            if self.pushed - len(self) <= serial < self.pushed:
                self._rows[serial % self.size, 1] = label

    def pages_of(self, serials: Ints) -> Ints:
        """Return the pages that some instances are on, or were."""
        return np.unique(serials % self.size // self.page)

    def slots(self, n: int) -> Ints:
        """Return where the next `n` instances go; of more than `size`, the last ones stay.

        Asked before `push`, it names the rows that change: a caller may write down only those.
        """
        return np.arange(self.pushed + max(0, n - self.size), self.pushed + n) % self.size

    def confusion(self) -> Ints:
        """Return the confusion matrices of the window, (scopes, K, K)."""
        return confusion(self._rows[:, 1], self._rows[:, 2:].T, self.classes)

    def wrong(self) -> Bools:
        """Tell which instances the first scope was wrong about, by the times of their labels.

        Of labels that came in the same millisecond the wrong ones count as the latest, whatever
        their order. A scope that predicted nothing was not wrong.
        """
        at, truth, predicted = self.rows()
        at, truth, predicted = at[truth >= 0], truth[truth >= 0], predicted[truth >= 0]
        wrong = (predicted[:, 0] >= 0) & (predicted[:, 0] != truth)
        return np.asarray(wrong[np.lexsort((wrong, at))])

    # Pages: the same rows, as many as fit on a page together, to be written down when they change.

    @property
    def pages(self) -> int:
        """Return how many pages the window has."""
        return self.size // self.page

    @property
    def page_width(self) -> int:
        """Return how many numbers are on a page."""
        return self.page * (2 + self.scopes)

    def changed(self, n: int) -> Ints:
        """Return the pages that the last `n` instances are on."""
        newest = np.arange(self.pushed - min(n, self.size), self.pushed) % self.size
        return np.unique(newest // self.page)

    def read_pages(self, numbers: Ints) -> Ints:
        """Return some pages, a row of numbers each."""
        return self._rows.reshape(self.pages, self.page_width)[numbers]

    def put_pages(self, numbers: Ints, pages: Ints, pushed: int) -> None:
        """Put back pages that were read; `pushed` is how many instances there ever were."""
        self._rows.reshape(self.pages, self.page_width)[numbers] = pages
        self.pushed = pushed

    def rows(self) -> tuple[Ints, Ints, Ints]:
        """Return times, labels and predictions, oldest first."""
        order = np.arange(self.pushed - len(self), self.pushed) % self.size
        rows = self._rows[order]
        return rows[:, 0], rows[:, 1], rows[:, 2:]


def merged(windows: Sequence[Window]) -> Window:
    """Return the window of the whole stream from those of its partitions."""
    first = windows[0]
    at, truth, predicted = (
        np.concatenate(parts) for parts in zip(*(window.rows() for window in windows), strict=True)
    )
    # Past patients must not take the places of those who are counted.
    at, truth, predicted = at[truth >= 0], truth[truth >= 0], predicted[truth >= 0]
    latest = np.argsort(at, kind="stable")[-first.size :]
    whole = Window(first.scopes, first.classes, first.size)
    whole.push(at[latest], truth[latest], predicted[latest])
    return whole
