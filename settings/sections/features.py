"""Features as the settings describe them: what a value is and how it becomes a number in [0, 1].

A number needs no more than its name: its scale is learned online. A scale that is to have fixed
numbers, and has none yet, is *unfitted*: `hb features fit` learns them from a file. A learner can
be built only from fitted features.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from learners.errors import LearnerError
from learners.local.features import Categorical, Feature, FeatureSpace, Real
from learners.local.scaling import MinMax, Online, Quantile, Scaling, ZLogistic
from settings.errors import SettingsError
from settings.sections.base import Section, problem

Scale = Literal["online", "minmax", "zlog", "quantile"]
NUMBERS: dict[Scale, tuple[str, ...]] = {
    "online": (),
    "minmax": ("low", "high"),
    "zlog": ("mean", "std"),
    "quantile": ("knots",),
}
"""The keys that hold what was learned about a real feature, per scale."""
SCALINGS: dict[Scale, Callable[..., Scaling]] = {
    "online": Online,
    "minmax": MinMax,
    "zlog": ZLogistic,
    "quantile": Quantile,
}


def _check_printable(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise problem("must be printable text, not empty")
    return value


Text: TypeAlias = Annotated[str, AfterValidator(_check_printable)]


class FeatureSettings(Section):
    """One feature of an instance or of a context."""

    name: Text = Field(
        max_length=200, description="The feature's name in records, and of its column in CSV files."
    )
    scale: Scale | None = Field(
        default=None,
        description="How a number is brought into [0, 1]: `online` by z-score and logistic function"
        " (an even number of cuts splits at the mean), with mean and deviation of what was learned"
        " so far; `zlog` the same with fixed numbers; `minmax` by its range, `quantile` by rank.",
        json_schema_extra={
            "default_text": "`minmax` if there are `low` and `high`, `online` without any numbers"
        },
    )
    low: float | None = Field(default=None, description="Smallest value, for minmax.")
    high: float | None = Field(default=None, description="Largest value, for minmax.")
    mean: float | None = Field(default=None, description="Mean, for zlog.")
    std: float | None = Field(default=None, gt=0, description="Standard deviation, for zlog.")
    knots: Annotated[tuple[float, ...], Field(strict=False)] | None = Field(
        default=None,
        description="Values in ascending order that cut the data into equal shares, for quantile.",
    )
    categories: Annotated[tuple[Text, ...], Field(strict=False)] | None = Field(
        default=None,
        description="The values of a feature that is not a number. An empty list is filled by"
        " `hb features fit`.",
    )

    required: bool = Field(
        default=False,
        description="Refuse records in which the feature is missing, or holds a category that is"
        " not listed. Otherwise a missing value has a cell of its own in the cube, rules see the"
        " mean of the values so far in its place, and an unlisted category counts as missing.",
    )

    @property
    def categorical(self) -> bool:
        """The feature is one of a set of categories, not a number."""
        return self.categories is not None

    @property
    def scaling(self) -> Scale:
        """The scale of a real feature."""
        return self.scale or ("online" if self.low is None is self.high else "minmax")

    @property
    def fitted(self) -> bool:
        """Everything is known that a learner needs."""
        if self.categorical:
            return bool(self.categories)
        return all(getattr(self, key) is not None for key in NUMBERS[self.scaling])

    @model_validator(mode="after")
    def _check_keys_belong(self) -> "FeatureSettings":
        allowed = () if self.categorical else NUMBERS[self.scaling]
        for key in ("low", "high", "mean", "std", "knots"):
            if getattr(self, key) is not None and key not in allowed:
                kind = "a feature with categories" if self.categorical else f"scale {self.scaling}"
                raise problem(f"does not belong to {kind}", key)
        if self.categorical and self.scale is not None:
            raise problem("does not belong to a feature with categories", "scale")
        return self

    @model_validator(mode="after")
    def _check_numbers(self, info: ValidationInfo) -> "FeatureSettings":
        numbers = [key for key in NUMBERS[self.scaling] if getattr(self, key) is not None]
        if not self.categorical and numbers and not self.fitted:
            raise problem(f"{' and '.join(NUMBERS[self.scaling])} must be set together", numbers[0])
        if (info.context or {}).get("fitted") and not self.fitted:
            parts = "categories" if self.categorical else " and ".join(NUMBERS[self.scaling])
            raise problem(f"has no {parts} yet: learn them with `hb features fit data.csv`")
        if self.fitted:
            try:
                self.build()
            except LearnerError as error:
                raise problem(str(error)) from None
        return self

    def build(self) -> Feature:
        """Return this feature as learners use it."""
        if not self.fitted:
            raise SettingsError(
                f"the feature {self.name!r} is not fitted: run `hb features fit data.csv`"
            )
        if self.categories:
            return Categorical(self.name, self.categories, self.required)
        return Real(self.name, self._build_scaling(), self.required)

    def _build_scaling(self) -> Scaling:
        numbers = [getattr(self, key) for key in NUMBERS[self.scaling]]
        return SCALINGS[self.scaling](*numbers)


def _check_features(features: Sequence[FeatureSettings]) -> Sequence[FeatureSettings]:
    if not features:
        raise problem("needs at least one feature")
    names: set[str] = set()
    for i, feature in enumerate(features):
        if feature.name in names:
            raise problem("this feature is listed twice", i)
        names.add(feature.name)
    return features


Features: TypeAlias = Annotated[
    tuple[FeatureSettings, ...],
    Field(strict=False),
    AfterValidator(_check_features),
]


def check_fixed(features: Sequence[FeatureSettings]) -> None:
    """Raise unless every feature has a scale that stays as it is."""
    for i, feature in enumerate(features):
        if not feature.categorical and feature.scaling == "online":
            why = "its scale must stay as it is: learn its numbers with `hb features fit data.csv`"
            raise problem(why, "features", i)


def build_space(features: Sequence[FeatureSettings]) -> FeatureSpace:
    """Return the space in which rows of these features lie."""
    return FeatureSpace(tuple(feature.build() for feature in features))
