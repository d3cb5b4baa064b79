"""How far apart two methods are, and how sure that is: over orders, and over patients.

Orders of the same patients share their patients, so the standard error over orders only says how
much the order matters. Whether the same would hold for other patients is a question about the
patients: they are drawn again with replacement, each with its errors in all orders under both
methods. This takes what was learned as given; it does not learn again without a patient.

B. Efron and R. Tibshirani, "An introduction to the bootstrap", Chapman and Hall 1993, chapter 6.
"""

from dataclasses import dataclass

import numpy as np

from learners.arrays.types import Bools, Floats

DRAWS = 4000
LEVEL = 95.0


@dataclass(frozen=True)
class Gap:
    """The difference of two methods' PER in points, ours minus theirs.

    orders_se     standard error over the orders, paired
    patients_se   standard error over the patients, paired, by bootstrap
    low, high     95 % interval over the patients
    """

    mean: float
    orders_se: float
    patients_se: float
    low: float
    high: float

    @property
    def ahead(self) -> bool | None:
        """Return whether ours errs less; None if the interval over patients does not decide."""
        return True if self.high < 0 else False if self.low > 0 else None

    def __str__(self) -> str:
        word = {True: "ahead", False: "behind", None: "not decided"}[self.ahead]
        return (
            f"{word}: {self.mean:+.2f}, standard error {self.orders_se:.2f} over orders,"
            f" {self.patients_se:.2f} over patients (95 % interval {self.low:+.2f} to"
            f" {self.high:+.2f})"
        )

    def figures(self, name: str) -> dict[str, float]:
        """Return the figures under `name`."""
        return {
            name: self.mean,
            f"{name}_se": self.orders_se,
            f"{name}_patients_se": self.patients_se,
            f"{name}_low": self.low,
            f"{name}_high": self.high,
        }


def gap(ours: Floats, theirs: Floats, seed: int = 0, counted: Bools | None = None) -> Gap:
    """Compare errors in percent, (P, R): patients by orders, all of them or those `counted`.

    >>> one = gap(np.zeros((100, 3)), np.full((100, 3), 2.0))
    >>> one.mean, one.patients_se, one.ahead
    (-2.0, 0.0, True)
    """
    counted = np.ones(ours.shape, np.bool_) if counted is None else counted
    difference = np.where(counted, ours - theirs, 0.0)
    patients, orders = difference.shape
    per_order = difference.sum(axis=0) / counted.sum(axis=0)
    spread = float(per_order.std(ddof=1) / np.sqrt(orders)) if orders > 1 else float("nan")
    drawn = np.random.default_rng(seed).multinomial(
        patients, np.full(patients, 1.0 / patients), DRAWS
    )
    means = (drawn @ difference.sum(axis=1)) / (drawn @ counted.sum(axis=1))
    tail = (100.0 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100.0 - tail]).tolist()
    mean = float(difference.sum() / counted.sum())
    return Gap(mean, spread, float(means.std(ddof=1)), low, high)
