"""The array types that learners pass to each other. The first axis is always the batch."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Seeds: TypeAlias = NDArray[np.uint64]
State: TypeAlias = dict[str, NDArray[Any]]
"""A learner's whole state as named arrays: what is written to disk, restored and compared."""

MISSING = -1
"""The label index of a learner that sent no prediction, or one without an opinion."""

ABSTAINED = -2
"""In the join, the label index of a learner that sent a prediction without an opinion."""
