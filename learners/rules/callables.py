"""Any Python function as a rule: `package.module:function`.

The contract of the function:

    def function(columns: dict[str, numpy.ndarray]) -> Sequence[str]

It gets a batch: for each feature an array of n raw values, for a categorical one an array of n
category names (str). It returns n label names, as a list or an array of str. It must be a function
of its input alone: no clock, no chance, no memory. Then a replay repeats it. The arrays are its own
copies. If it raises, or returns anything else, the batch is refused and the learner lives on.

The function runs inside the worker with the worker's rights: name only code you trust.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from learners.arrays.types import Floats, Ints
from learners.errors import OptionError
from learners.local.features import FeatureSpace
from learners.rules.base import Rule, RuleError


class CallableRule(Rule):
    """Asks a Python function.

    labels   the names of the labels, in the order of their indices
    target   `package.module:function`
    """

    def __init__(self, name: str, space: FeatureSpace, labels: Sequence[str], target: str) -> None:
        super().__init__(name, len(labels))
        self.space = space
        self.function: Callable[[dict[str, Any]], Any] = load(name, "function", target)
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


def load(rule: str, option: str, target: str) -> Any:
    """Import `package.module:attribute`; an OptionError says what is wrong with it."""
    module, separator, attribute = target.partition(":")
    if not (module and separator and attribute):
        raise OptionError(rule, option, f"{target!r} must have the form package.module:name")
    try:
        found = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        raise OptionError(rule, option, f"{target!r}: no module named {error.name}") from error
    except Exception as error:
        raised = f"importing it raised {type(error).__name__}: {error}"
        raise OptionError(rule, option, f"{target!r}: {raised}") from error
    if not callable(found):
        raise OptionError(rule, option, f"{target!r}: {module} has no callable {attribute}")
    return found
