"""A coarse grid for values that a rule keeps: fine enough for ranks, not for anybody's own value.

A feature's scale in the settings gives the grid its origin and its unit: the range of a min-max or
quantile scale, eight standard deviations of a z-score. Within one unit of the origin a step is
1/256 of the unit; further out, steps double with every doubling of the distance, so that outliers
keep their order. A feature whose scale is learned online has no unit: there a value keeps eight
significant bits.

    >>> from learners.local.features import unit_cube
    >>> Grid(unit_cube(1)).rounded(np.array([[0.5], [0.7071], [1000.3]])).tolist()
    [[0.5], [0.70703125], [1000.0]]
"""

import numpy as np

from learners.arrays.types import Floats
from learners.local.features import FeatureSpace, Real
from learners.local.scaling import MinMax, Quantile, Scaling, ZLogistic

GRID_VERSION = 1
"""Stored beside values on this grid."""
_BITS = 8
_DEVIATIONS = 8.0
_TINY = 1e-300
_NO_FLOOR = -1074
"""Below the exponent of every float: all steps are relative."""


class Grid:
    """The grids of the real features of a space, column by column."""

    def __init__(self, space: FeatureSpace) -> None:
        scalings = [f.scaling for f in space.features if isinstance(f, Real)]
        units = [_unit(scaling) for scaling in scalings]
        self._origin = np.array([origin for origin, _ in units], np.float64)
        self._unit = np.array([unit or 1.0 for _, unit in units], np.float64)
        self._floor = np.array([0 if unit else _NO_FLOOR for _, unit in units], np.int64)

    def rounded(self, values: Floats) -> Floats:
        """Return values as multiples of their units, rounded to the grid; their order stays.

        There is one zero only: equal values that differ in their bits would be stored in an order
        that depends on where a worker was started again.
        """
        with np.errstate(over="ignore"):
            distance = (values - self._origin) / self._unit
        exponent = np.maximum(np.frexp(distance)[1], self._floor) - _BITS
        return np.asarray(np.ldexp(np.rint(np.ldexp(distance, -exponent)), exponent) + 0.0)


def _unit(scaling: Scaling) -> tuple[float, float]:
    """Return the origin and the unit of a scale; a unit of 0 if it has none."""
    if isinstance(scaling, MinMax):
        return scaling.low, scaling.high - scaling.low
    if isinstance(scaling, ZLogistic):
        return scaling.mean, _DEVIATIONS * scaling.std
    if isinstance(scaling, Quantile) and scaling.knots[-1] - scaling.knots[0] >= _TINY:
        return scaling.knots[0], scaling.knots[-1] - scaling.knots[0]
    return 0.0, 0.0
