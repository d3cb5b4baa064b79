"""Any Python function as a rule: `package.module:function`.

The contract of the function:

    def function(columns: dict[str, numpy.ndarray]) -> Sequence[str]

It gets a batch: for each feature an array of n raw values, for a categorical one an array of n
category names (str). There are no gaps to look out for: as for every rule, what is known of the
feature stands in for a missing value (`learners.local.fill_and_scale`). It returns n label
names, as a list or an array of str. It must be a function of its input alone: no clock, no
randomness, no memory. Then a replay repeats it. The arrays are its own copies. If it raises, or
returns anything else, the batch is refused and the learner goes on.

The function runs inside the worker with the worker's rights, so it must come from a package that
`rules.packages` in the settings allows.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.local.features import FeatureSpace
from learners.named_code import load
from learners.rules.base import Rule, RuleError


class CallableRule(Rule):
    """Asks a Python function.

    labels   the names of the labels, in the order of their indices
    target   `package.module:function`
    allowed  the packages it may come from
    """

    scale_free = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        labels: Sequence[str],
        target: str,
        allowed: Collection[str],
    ) -> None:
        super().__init__(name, len(labels))
        self.space = space
        self.function: Callable[[dict[str, Any]], Any] = load(name, "function", target, allowed)
        self._order = np.argsort(np.array(labels))
        self._names = np.array(labels)[self._order]

    def _predict(self, rows: Floats) -> Ints:
        columns = {name: column.copy() for name, column in self.space.columns(rows).items()}
        names = np.asarray(self.function(columns))
        if names.shape != (len(rows),) or (len(rows) and names.dtype.kind != "U"):
            raise RuleError(self.name, f"did not return {len(rows)} label names")
        if not len(rows):
            return np.zeros(0, np.int64)
        place = np.minimum(self._names.searchsorted(names), len(self._names) - 1)
        if (self._names[place] != names).any():
            raise RuleError(self.name, "returned a label outside the set")
        return self._order[place]
