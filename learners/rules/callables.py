"""Any Python function as a rule: `package.module:function`.

The contract of the function:

    def function(columns: dict[str, numpy.ndarray]) -> Sequence[str]

It gets a batch: for each feature an array of n raw values, for a categorical one an array of n
category names (str). There are no gaps to look out for: as for every rule, what is known of the
feature stands in for a missing value (`learners.local.moments`). It returns n label names, as a
list or an array of str. It must be a function of its input alone: no clock, no chance, no memory.
Then a replay repeats it. The arrays are its own copies. If it raises, or returns anything else, the
batch is refused and the learner lives on.

The function runs inside the worker with the worker's rights, so it must come from a package that
`rules.packages` in the settings allows.
"""

from collections.abc import Callable, Collection, Sequence
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


def within(module: str, packages: Collection[str]) -> bool:
    """Tell whether a module is one of some packages, or below one.

    >>> within("clinic.rules", ["clinic"]), within("clinical", ["clinic"])
    (True, False)
    """
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def load(rule: str, option: str, target: str, allowed: Collection[str]) -> Any:
    """Import `package.module:attribute` of an allowed package; an OptionError says what is wrong.

    Nothing is imported from any other package: importing is running.
    """
    module, separator, attribute = target.partition(":")
    if not (module and separator and attribute):
        raise OptionError(rule, option, f"{target!r} must have the form package.module:name")
    if not within(module, allowed):
        raise OptionError(rule, option, f"{target!r}: {_how_to_allow(module)}")
    found = _attribute(rule, option, target, module, attribute)
    home = getattr(found, "__module__", None) or module
    if not within(home, allowed):
        message = f"{target!r}: it comes from {home}; {_how_to_allow(home)}"
        raise OptionError(rule, option, message)
    return found


def _how_to_allow(module: str) -> str:
    package = module.partition(".")[0]
    return f'code of {package} is not allowed; if you trust it: [rules] packages = ["{package}"]'


def _attribute(rule: str, option: str, target: str, module: str, attribute: str) -> Any:
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
