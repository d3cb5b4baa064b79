"""Random Fourier features: a linear model on them bends like one with a Gaussian kernel.

    phi(z) = amplitude * sqrt(d) * sqrt(2 / F) * cos(W'z + b),   W ~ N(0, spread), b ~ U(0, 2 pi)

(Rahimi and Recht 2007, "Random features for large-scale kernel machines".) `spread` is the variance
of each entry of W: the inverse squared width of the kernel. W and b come from the seed by the
project's own hash and stay the same forever, whatever numpy's generators do in later versions.

Together the features hardly change near z = 0, where most rows are: a model on them has a constant
in all but name. If `centred`, phi(0) is taken off, and they say nothing about a row whose values
are all average, or missing.
"""

from math import pi, sqrt
from statistics import NormalDist

import numpy as np

from learners.arrays.seeds import seeds_of, uniform
from learners.arrays.types import Floats
from learners.rules.odds import by_row


class FourierFeatures:
    """A fixed random map from `width` columns to `count` features."""

    def __init__(
        self,
        width: int,
        count: int,
        *,
        seed: int,
        spread: float = 0.1,
        amplitude: float = 0.5,
        centred: bool = False,
    ) -> None:
        self.count = count
        draws = uniform(seeds_of(f"fourier/{seed}/{i}" for i in range((width + 1) * count)))
        normal = NormalDist(0.0, sqrt(spread)).inv_cdf
        # A draw of exactly 0 has no normal deviate; half a step up it has.
        inner = np.maximum(draws[: width * count], 2.0**-54)
        self.frequencies: Floats = np.array([normal(u) for u in inner.tolist()]).reshape(
            width, count
        )
        self.phases: Floats = 2.0 * pi * draws[width * count :]
        self.scale = amplitude * sqrt(width) * sqrt(2.0 / count) if count else 0.0
        self.origin: Floats = np.cos(self.phases) if centred else np.zeros(count)

    def __call__(self, z: Floats) -> Floats:
        """Return the (n, count) features of scaled rows."""
        waves = np.cos(by_row(z, self.frequencies) + self.phases)
        return np.asarray(self.scale * (waves - self.origin))
