"""`[defaults]` and `[learners.<name>]`: the local learners, their features and their rules.

A key that a learner leaves out is taken from `[defaults]`; what neither has is the paper's value.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from learners.errors import LearnerError, OptionError
from learners.local.features import FeatureSpace
from learners.local.partition import Partition, cuts_for
from learners.rules.base import Rule
from learners.rules.options import problems as option_problems
from learners.rules.registry import KINDS, find_kind, is_joint, make_rule
from settings.sections.base import KeyPath, Name, Section, problem
from settings.sections.features import Features, build_space


def _check_package(value: str) -> str:
    if not all(part.isidentifier() for part in value.split(".")):
        raise problem("must be a Python package, such as clinic or clinic.rules")
    return value


Package: TypeAlias = Annotated[str, AfterValidator(_check_package)]
_NO_REASONS = (
    "no rule of this learner is additive, so there are no reasons to publish; those of kind linear,"
    " logistic, bayes, lda, naive_bayes and committee are"
)
EXCLUSIVE = ("horizon", "doubling")
"""Two ways to say how long a learner plans ahead; one at a time."""


class CodeSettings(Section):
    """Which code the rules may name. It runs in the worker, with the worker's rights."""

    packages: Annotated[tuple[Package, ...], Field(strict=False)] = Field(
        default=(),
        description="Python packages that a rule's `package.module:name` may come from; River's"
        " own classifiers need no permission. It can only be set in the file or by `--set`, never"
        " by the environment.",
    )


class RuleSettings(Section):
    """One prediction rule: its kind, its weight, and the options of that kind."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(description="The kind of rule; see the kinds below.")
    weight: float = Field(
        default=1.0,
        gt=0,
        description="Multiplies the rule's index when the learner chooses: above 1 on the positive"
        " rule trades false negatives for false positives (the paper's h).",
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options of the rule's kind."""
        return dict(self.model_extra or {})

    @field_validator("kind")
    @classmethod
    def _check_kind(cls, kind: str) -> str:
        try:
            return find_kind(kind, "").name
        except OptionError as error:
            raise problem(error.message) from None

    def build(
        self, name: str, space: FeatureSpace, labels: Sequence[str], packages: Collection[str]
    ) -> Rule:
        """Return the rule, untaught; LearnerError if its options do not fit."""
        return make_rule({"kind": self.kind, **self.options}, space, labels, name, packages)

    def misfits(
        self,
        name: str,
        space: FeatureSpace | None,
        labels: Sequence[str] | None,
        packages: Collection[str],
    ) -> Iterator[tuple[KeyPath, str]]:
        """Yield what is wrong with the options, as far as it can be told with what is known."""
        wrong = list(option_problems(self.options, KINDS[self.kind].options, labels))
        if not wrong and space is not None and labels is not None:
            try:
                self.build(name, space, labels, packages)
            except OptionError as error:
                wrong = [(error.option, error.message)]
            except LearnerError as error:
                yield (), str(error).removeprefix(f"rule {name}: ")
        for option, message in wrong:
            # What is missing has no line of its own: the rule's table is to blame.
            yield ((option,), message) if option in self.options else ((), f"{option} {message}")


class LearnerDefaults(Section):
    """The parameters of a local learner; `[defaults]` sets them for all learners."""

    horizon: int | None = Field(
        default=None,
        ge=1,
        description="T, the number of labelled instances that the learner plans for. It goes on"
        " learning after T.",
        json_schema_extra={"default_text": "10000, unless `doubling` is set"},
    )
    doubling: int | None = Field(
        default=None,
        ge=1,
        description="Instead of a horizon: the length of the first phase. Each later phase is twice"
        " as long as the one before, and starts afresh.",
    )
    alpha: float = Field(
        default=1.0,
        gt=0,
        description="How smoothly a rule's accuracy varies over the features: the exponent of the"
        " paper's similarity condition. Larger means fewer cuts.",
    )
    lipschitz: float = Field(
        default=1.0,
        gt=0,
        description="L, the factor of that condition. Only the bounds depend on it.",
    )
    exploration: float = Field(
        default=1.0,
        ge=0,
        description="c, how much the index of a rarely tried rule is raised. 1 is the paper's"
        " theory; far smaller values do better in practice.",
    )
    feedback: Literal["bandit", "full"] = Field(
        default="bandit",
        description="Which counts a label updates: those of the rule that was chosen (`bandit`),"
        " or of all rules (`full`).",
    )
    ties: str = Field(
        default="hash",
        min_length=1,
        description="How ties between rules are broken: by a hash of the instance id (`hash`), or"
        " in favour of the rule named here.",
    )
    cuts: int | None = Field(
        default=None,
        ge=1,
        description="m, the number of parts each real feature is cut into; 1 makes a single cube.",
        json_schema_extra={"default_text": "the paper's formula, from horizon, alpha and features"},
    )
    max_cuts: int | None = Field(
        default=None, ge=1, description="An upper limit of m, to save memory (the paper's M_i)."
    )
    backoff: float = Field(
        default=0.0,
        ge=0,
        description="Trials that a cube with few of its own borrows from the coarser cells around"
        " it; the paper's value is 0.",
    )
    reasons: bool = Field(
        default=False,
        description="Whether to publish, on a topic of the learner's own (`reasons.<learner>`), how"
        " much each feature moved the log-odds, for rules that are additive. Features can be"
        " inferred from it.",
    )
    rules: dict[Name, RuleSettings] = Field(
        default_factory=dict,
        description="The prediction rules to choose from, one table each. A learner without rules"
        " of its own has those of `[defaults.rules]`.",
    )

    @field_validator("doubling")
    @classmethod
    def _check_clock(cls, doubling: int | None, info: ValidationInfo) -> int | None:
        if doubling is not None and info.data.get("horizon") is not None:
            raise problem("horizon and doubling exclude each other")
        return doubling

    @model_validator(mode="after")
    def _check_cuts(self) -> "LearnerDefaults":
        if self.cuts is not None and self.max_cuts is not None and self.cuts > self.max_cuts:
            raise problem("must not be larger than max_cuts", "cuts")
        return self

    @model_validator(mode="after")
    def _check_no_rule_is_called_hash(self) -> "LearnerDefaults":
        if "hash" in self.rules:
            raise problem(
                'a rule cannot be called hash: `ties = "hash"` means something else', "rules"
            )
        return self

    def misfits(
        self, labels: Sequence[str] | None, packages: Collection[str]
    ) -> Iterator[tuple[KeyPath, str]]:
        """Yield what is wrong with the rules' options; labels may not be known."""
        for name, rule in self.rules.items():
            for path, message in rule.misfits(name, self._space(), labels, packages):
                yield ("rules", name, *path), message

    def _space(self) -> FeatureSpace | None:
        """Return the space of the features, if it is known."""
        return None


class LearnerSettings(LearnerDefaults):
    """One local learner, with what it takes from `[defaults]`."""

    features: Features = Field(description="What this learner sees of an instance.")

    @model_validator(mode="before")
    @classmethod
    def _plan_ahead(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and not any(key in value for key in EXCLUSIVE):
            return {**value, "horizon": 10_000}
        return value

    @model_validator(mode="after")
    def _check_rules(self) -> "LearnerSettings":
        if not self.rules:
            raise problem("has no rules: add [learners.NAME.rules.RULE] or [defaults.rules.RULE]")
        if self.ties != "hash" and self.ties not in self.rules:
            raise problem('must be "hash" or the name of a rule of this learner', "ties")
        return self

    @model_validator(mode="after")
    def _check_partition(self) -> "LearnerSettings":
        if self.fitted:
            try:
                Partition(build_space(self.features), self.m)
            except LearnerError as error:
                raise problem(str(error)) from None
        return self

    def misfits(
        self, labels: Sequence[str] | None, packages: Collection[str]
    ) -> Iterator[tuple[KeyPath, str]]:
        """Yield what is wrong with the rules; reasons need one that has any."""
        wrong = list(super().misfits(labels, packages))
        yield from wrong
        space = self._space()
        if self.reasons and not wrong and space is not None and labels is not None:
            built = [rule.build(n, space, labels, packages) for n, rule in self.rules.items()]
            if not any(rule.additive for rule in built):
                yield ("reasons",), _NO_REASONS

    @property
    def joint(self) -> bool:
        """A rule learns jointly: feedback must carry the log-odds of the other learners."""
        return any(is_joint({"kind": r.kind, **r.options}) for r in self.rules.values())

    @property
    def fitted(self) -> bool:
        """All features are fitted, so that the learner can be built."""
        return all(feature.fitted for feature in self.features)

    def _space(self) -> FeatureSpace | None:
        return build_space(self.features) if self.fitted else None

    @property
    def m(self) -> int:
        """Return into how many parts each real feature is cut (in the first phase, if doubling)."""
        horizon = self.horizon or self.doubling
        assert horizon is not None  # noqa: S101 - guaranteed by _plan_ahead
        real = sum(not feature.categorical for feature in self.features)
        return self.cuts or cuts_for(horizon, self.alpha, real, self.max_cuts)


def inherit(defaults: Mapping[str, Any], learner: Mapping[str, Any]) -> dict[str, Any]:
    """Return a learner's table with what it leaves out taken from the defaults.

    >>> inherit({"doubling": 100, "alpha": 2.0}, {"horizon": 5})
    {'alpha': 2.0, 'horizon': 5}
    """
    inherited = dict(defaults)
    if any(key in learner for key in EXCLUSIVE):
        for key in EXCLUSIVE:
            inherited.pop(key, None)
    return {**inherited, **learner}
