"""Has the error rate risen? The test of ADWIN, on the last labelled instances.

The instances are cut in two at every possible place. With m the harmonic mean of the two parts'
lengths (1/m = 1/n0 + 1/n1), s2 the variance of all, and d = ln(2 n / delta), the means of two parts
with the same error rate differ by no more than

    sqrt(2 s2 d / m) + 2 d / (3 m)

at any of the n cuts, except with a probability of about delta each time one looks (A. Bifet and
R. Gavaldà, "Learning from time-changing data with adaptive windowing", SDM 2007, section 3). Where
a later part exceeds an earlier one by more, the rate has risen. It needs no state: the window holds
all of it.
"""

from math import log

import numpy as np

from learners.arrays.types import Bools

DELTA = 0.002
"""The chance of a false alarm each time one looks. A window is looked at for ever, so on a steady
stream there will be one in the end."""


def risen(wrong: Bools, delta: float = DELTA) -> float:
    """Return by how much the error rate has risen at the clearest cut; 0 if it may be chance.

    wrong   (n,) whether each instance was diagnosed wrongly, oldest first

        >>> calm, troubled = np.arange(400) % 10 == 0, np.arange(100) % 2 == 0
        >>> risen(calm), round(risen(np.concatenate([calm, troubled])), 2)
        (0.0, 0.4)
    """
    n = len(wrong)
    if n < 2:
        return 0.0
    counts = np.arange(1, n)
    errors = np.cumsum(wrong)
    before = errors[:-1] / counts
    after = (errors[-1] - errors[:-1]) / (n - counts)
    share = float(errors[-1]) / n
    m = counts * (n - counts) / n
    d = log(2.0 * n / delta)
    limit = np.sqrt(2.0 * share * (1.0 - share) * d / m) + 2.0 * d / (3.0 * m)
    excess = after - before - limit
    clearest = int(excess.argmax())
    return float(after[clearest] - before[clearest]) if excess[clearest] > 0.0 else 0.0
