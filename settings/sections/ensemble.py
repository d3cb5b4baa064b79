"""`[ensemble]`: how the ensemble learner fuses predictions and joins them with late labels."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from learners.errors import LearnerError, suggestion
from learners.fusion.base import Fusion
from learners.fusion.registry import MODES, make_fusion
from learners.local.partition import Partition
from settings.sections.base import Duration, Section, TypeName, parse_duration, problem
from settings.sections.features import Features, build_space, check_fixed


class ContextSettings(Section):
    """What a contextual ensemble learner sees; each cube of these features has its own weights."""

    features: Features = Field(description="The features of a context, like those of a learner.")
    cuts: int = Field(
        default=2, ge=1, description="The number of parts each real feature is cut into."
    )

    @property
    def fitted(self) -> bool:
        """All features are fitted and stay as they are, so that the cubes are known."""
        return all(f.fitted and (f.categorical or f.scaling != "online") for f in self.features)

    def partition(self) -> Partition:
        """Return the cubes of the context."""
        return Partition(build_space(self.features), self.cuts)

    @model_validator(mode="after")
    def _check_partition(self, info: ValidationInfo) -> "ContextSettings":
        if (info.context or {}).get("fitted"):
            check_fixed(self.features)
        if self.fitted:
            try:
                self.partition()
            except LearnerError as error:
                raise problem(str(error)) from None
        return self


class EnsembleSettings(Section):
    """The ensemble learner."""

    mode: str = Field(default="wm", description="How predictions are fused; see the modes below.")
    active: bool = Field(
        default=False, description="Use only the predictions of learners that are not exploring."
    )
    eta_scale: float | None = Field(
        default=None,
        ge=0,
        description="Multiplies the rate at which errors cost a learner its weight, in modes that"
        " weigh by Hedge. 1 is the paper's theory, 0 an unweighted vote.",
        json_schema_extra={"default_text": "`1.0`"},
    )
    prefer: str | None = Field(
        default=None,
        description="The label that wins a tie.",
        json_schema_extra={"default_text": "the positive label"},
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Further options of the mode; see the modes below."
    )
    context: ContextSettings | None = Field(
        default=None, description="If set, each context cube has weights of its own."
    )
    fusion_timeout: Duration = Field(
        default=parse_duration("5s"),
        description="How long a diagnosis waits for the slowest learner after the first prediction;"
        " then it is made without the missing ones.",
    )
    label_ttl: Duration = Field(
        default=parse_duration("30d"),
        description="How long an instance waits for its label; then it is dropped, and nothing is"
        " learned from it.",
    )
    max_pending: int = Field(
        default=1_000_000,
        ge=1,
        description="The largest number of instances that may wait, per partition.",
    )
    max_remembered: int = Field(
        default=1_000_000,
        ge=0,
        description="How many settled instances to remember per partition, so that a second label"
        " for one of them is recognised.",
    )
    amend_ttl: Duration = Field(
        default=parse_duration("7d"),
        description="How long after its first label an instance's label can be amended or"
        " withdrawn. What it takes to recount it is kept for that long.",
    )
    max_amendable: int = Field(
        default=100_000,
        ge=0,
        description="The largest number of labelled instances whose label can be amended, per"
        " partition; beyond it, or beyond 64 MiB, the oldest become final. 0: none.",
    )
    fnr_target: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The miss rate above which an alert is raised, such as 0.03; `miss_target`"
        " holds it down.",
    )
    miss_target: Annotated[
        float | dict[str, float] | None, TypeName("number, or a table by label")
    ] = Field(
        default=None,
        description="How often a label may be wrongly excluded, such as 0.05: one number for every"
        " label, or a table by label, such as `{ malignant = 0.03 }`. The long-run rate is held"
        " there on any stream; patients for whom more than one label, or none, remains possible"
        " are referred. docs/confidence.md has the guarantee and the price.",
    )
    min_labels: int = Field(
        default=10,
        ge=0,
        description="Every patient is referred until this many labels are learned; 0: never.",
    )
    per_target: float | None = Field(
        default=None, gt=0, lt=1, description="The error rate above which an alert is raised."
    )

    @field_validator("mode")
    @classmethod
    def _check_mode(cls, mode: str) -> str:
        if mode not in MODES:
            hint = suggestion(mode, MODES)
            raise problem(f"is not a fusion mode{hint} (modes: {', '.join(MODES)})")
        return mode

    @field_validator("options")
    @classmethod
    def _check_options(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Refuse what the mode does not take; the values are checked when all labels are known."""
        mode = info.data.get("mode")
        if mode is not None:
            allowed = [name for name in MODES[mode].options if name != "eta_scale"]
            for name in options:
                if name not in allowed:
                    raise problem(f"mode {mode} takes {', '.join(allowed) or 'no options'}", name)
        return options

    @model_validator(mode="before")
    @classmethod
    def _check_former(cls, table: Any) -> Any:
        """Say what to write instead of keys that no longer exist."""
        if isinstance(table, Mapping):
            for key in ("fnr_control", "fnr_step", "fnr_start"):
                if key in table:
                    raise problem(
                        "no longer exists: write miss_target = { LABEL = RATE } with the positive"
                        " label and the rate of fnr_target; it needs no step and no start",
                        key,
                    )
        return table

    @field_validator("miss_target")
    @classmethod
    def _check_miss(cls, target: float | dict[str, float] | None) -> Any:
        rates = target.values() if isinstance(target, dict) else [target]
        if any(rate is not None and not 0.0 < rate < 1.0 for rate in rates):
            raise problem("must lie between 0 and 1")
        return target

    def targets(self, labels: Sequence[str]) -> dict[str, float]:
        """Return the miss target of each label that has one."""
        target = self.miss_target
        if isinstance(target, dict):
            return target
        return {} if target is None else dict.fromkeys(labels, target)

    @field_validator("label_ttl")
    @classmethod
    def _check_times(cls, label_ttl: Any, info: ValidationInfo) -> Any:
        if label_ttl <= info.data.get("fusion_timeout", label_ttl / 2):
            raise problem("must be longer than fusion_timeout")
        return label_ttl

    def build(self, learners: int, labels: Sequence[str]) -> Fusion:
        """Return the fusion rule, untaught; LearnerError if the options do not fit the mode."""
        options = dict(self.options)
        if self.eta_scale is not None:
            options["eta_scale"] = self.eta_scale
        if self.prefer is not None:
            options["prefer"] = list(labels).index(self.prefer)
        return make_fusion(
            self.mode,
            learners,
            len(labels),
            # One cube more, for instances whose context does not come in time.
            cubes=self.context.partition().size + 1 if self.context else 1,
            active=self.active,
            **options,
        )

    def misfit(self, learners: int, labels: Sequence[str]) -> PydanticCustomError | None:
        """Return what is wrong with the fusion rule for these learners and labels."""
        chosen = [("prefer", self.prefer), *(("miss_target", k) for k in self.targets(labels))]
        for key, label in chosen:
            if label is not None and label not in labels:
                return problem("must be one of labels", key)
        if self.eta_scale is not None and "eta_scale" not in MODES[self.mode].options:
            return problem(f"mode {self.mode} does not weigh by Hedge", "eta_scale")
        if self.context is not None and not self.context.fitted:
            return None
        try:
            self.build(learners, labels)
        except LearnerError as error:
            named = [name for name in self.options if name in str(error)]
            return problem(str(error), *(["options", *named[:1]] if named else ["mode"]))
        except TypeError:  # for example a text where the mode computes with a number
            return problem(f"an option of mode {self.mode} is of the wrong type", "options")
        return None
