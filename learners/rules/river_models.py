"""Classifiers of River as rules: the optional extra `river`.

River is never imported here; the class is loaded by the name in the settings, such as
`river.linear_model:LogisticRegression`, and anything with `learn_one` and `predict_proba_one` will
do. A model that takes a `seed` and is given none gets 0, so that a replay repeats it.

The model gets each row as a dictionary of columns: real features scaled online if wanted (linear
models need it, trees do not mind), categories as 0/1 columns. Its probabilities become log-odds.

The state is the model's objects as plain data (`object_graphs`), which cannot run code when it is
read; the pickles of earlier versions could, and are refused. The data belongs to its River version:
after an upgrade of River that changes the class, rebuild the state from the topics. Two models with
the same history predict the same bits, but their data may differ (River keeps unseeded generators
that it never draws from), hence `exact` is False.
"""

import inspect
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from learners.arrays.types import Floats, Ints, State
from learners.errors import LearnerError, OptionError
from learners.local.features import FeatureSpace
from learners.named_code import load
from learners.rules import object_graphs
from learners.rules.base import LearningRule
from learners.rules.expanded_columns import Columns
from learners.rules.odds import from_heads
from learners.rules.scalers import make_scaler
from learners.rules.states import array, nest, part_of

RIVER = tuple(f"river.{package}" for package in sorted(object_graphs.RIVER))
"""Packages whose classes need no permission."""
_FLOOR = 1e-12
"""A probability of 0 or 1 becomes this far from it: log-odds stay finite, within +-27.6."""


class RiverModel(LearningRule):
    """A River classifier.

    model       `package.module:Class`
    arguments   its keyword arguments; one that is a model itself is a table with `model` and
                `arguments` of its own
    packages    packages besides River's whose classes may be named
    scaling     online scaling of the real features: zscore, log, rank or none
    """

    exact = False
    scale_free = True
    fallible = True

    def __init__(
        self,
        name: str,
        space: FeatureSpace,
        classes: int,
        *,
        model: str,
        arguments: Mapping[str, Any] | None = None,
        scaling: str = "zscore",
        packages: Collection[str] = (),
    ) -> None:
        super().__init__(name, space, classes)
        self.columns = Columns(space)
        self.scaler = None if scaling == "none" else make_scaler(scaling, self.columns)
        self.model = _Maker(name, (*RIVER, *packages)).build(model, arguments or {})
        self._vocabulary = object_graphs.Vocabulary(packages)
        self._stored = self._store()
        if classes > 2 and not getattr(self.model, "_multiclass", True):
            raise LearnerError(
                f"rule {name}: {model} supports two labels only; use a multi-class model of River"
            )

    def _log_odds(self, rows: Floats) -> Floats:
        raw = self.columns.raw(rows)
        z = raw if self.scaler is None else self.scaler.look(raw)
        shares = np.array([self._shares(x) for x in self._records(z)]).reshape(-1, self.classes)
        if self.classes == 2:
            return from_heads(np.log(shares[:, 1:]) - np.log(shares[:, :1]), 2)
        return np.asarray(np.log(shares) - np.log1p(-shares))

    def _shares(self, x: dict[str, float]) -> list[float]:
        """Return the probability of each label; even ones while the model knows nothing."""
        probabilities = self.model.predict_proba_one(x)
        shares = [float(probabilities.get(label, 0.0)) for label in range(self.classes)]
        total = sum(shares)
        if total <= 0.0:
            return [1.0 / self.classes] * self.classes
        return [min(max(share / total, _FLOOR), 1.0 - _FLOOR) for share in shares]

    def _records(self, z: Floats) -> list[dict[str, float]]:
        names = self.space.expanded_names
        return [dict(zip(names, row, strict=True)) for row in z.tolist()]

    def _learn(self, rows: Floats, truth: Ints) -> None:
        before = self.state()
        try:
            raw = self.columns.raw(rows)
            z = raw if self.scaler is None else self.scaler.learn(raw)
            for x, y in zip(self._records(z), truth.tolist(), strict=True):
                self.model.learn_one(x, y)
            self._stored = self._store()
        except Exception:
            self.restore(before)
            raise

    def _store(self) -> bytes:
        try:
            return object_graphs.write(self.model, self._vocabulary)
        except LearnerError as error:
            raise OptionError(self.name, "model", f"its state cannot be stored: {error}") from None

    def state(self) -> State:
        """Return the model's objects as bytes, and the scaler's statistics."""
        scaler = {} if self.scaler is None else nest("scaler", self.scaler.state())
        return {"objects": np.frombuffer(self._stored, np.uint8), **scaler}

    def restore(self, state: State) -> None:
        """Put back what `state` returned; LearnerError if it is not of such a model."""
        if "pickle" in state:
            raise LearnerError(
                f"the stored model of rule {self.name} is a pickle of an earlier version, which"
                " could run code and is not read; rebuild the learner's state from the topics"
            )
        stored = array(state, "objects", np.uint8, (None,)).tobytes()
        try:
            model = object_graphs.read(stored, self._vocabulary)
        except LearnerError as error:
            raise self._refusal(str(error)) from None
        if type(model) is not type(self.model):
            raise self._refusal("it is of another class")
        self.model, self._stored = model, stored
        if self.scaler is not None:
            self.scaler.restore(part_of(state, "scaler"))

    def _refusal(self, why: str) -> LearnerError:
        return LearnerError(f"the stored model of rule {self.name} is refused: {why}")

    @property
    def averages(self) -> bool:
        """Trees and foreign models have no parameters that could be averaged."""
        return False


class _Maker:
    """Makes a model from its name and arguments, out of classes of the allowed packages."""

    def __init__(self, rule: str, allowed: Collection[str]) -> None:
        self._rule, self._allowed = rule, allowed

    def build(self, model: str, arguments: Mapping[str, Any]) -> Any:
        """Return a model that learns and predicts."""
        instance = self._make(model, arguments)
        missing = [m for m in ("learn_one", "predict_proba_one") if not hasattr(instance, m)]
        if missing:
            raise OptionError(self._rule, "model", f"{model} has no {', '.join(missing)}")
        return instance

    def _make(self, model: str, arguments: Mapping[str, Any]) -> Any:
        """Call a class with keyword arguments; a table with a `model` of its own is made first."""
        kind = self._load(model)
        keywords = {key: self._argument(value) for key, value in arguments.items()}
        try:
            if "seed" in inspect.signature(kind).parameters:
                keywords.setdefault("seed", 0)
            return kind(**keywords)
        except Exception as error:
            raise OptionError(
                self._rule, "arguments", f"{model} raised {type(error).__name__}: {error}"
            ) from error

    def _argument(self, value: Any) -> Any:
        if not (isinstance(value, Mapping) and "model" in value):
            return value
        unknown = set(value) - {"model", "arguments"}
        if unknown or not isinstance(value["model"], str):
            raise OptionError(
                self._rule, "arguments", "a model inside it has model and arguments only"
            )
        return self._make(value["model"], value.get("arguments", {}))

    def _load(self, model: str) -> Any:
        try:
            return load(self._rule, "model", model, self._allowed)
        except LearnerError as error:
            cause = error.__cause__
            if isinstance(cause, ModuleNotFoundError) and cause.name == "river":
                raise LearnerError(
                    f"rule {self._rule}: River is not installed; install the extra:"
                    " pip install 'hedged-bandits[river]'"
                ) from error
            raise
