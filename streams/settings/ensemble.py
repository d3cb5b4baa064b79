"""`[ensemble]`: how the ensemble learner fuses predictions and joins them with late labels."""

from pydantic import Field, model_validator

from streams.settings.base import Duration, Section, parse_duration, problem
from streams.settings.features import Features


class ContextSettings(Section):
    """What a contextual ensemble learner sees: one set of weights per cube of these features."""

    features: Features = Field(description="The features of a context, like those of a learner.")
    cuts: int = Field(default=2, ge=1, description="The parts each real feature is cut into.")


class EnsembleSettings(Section):
    """The ensemble learner."""

    mode: str = Field(default="wm", description="How predictions are fused.", min_length=1)
    active: bool = Field(
        default=False, description="Hear and weigh only the learners that are not exploring."
    )
    eta_scale: float = Field(
        default=1.0,
        ge=0,
        description="Multiplies the rate at which errors cost a learner its weight. 1 is the"
        " paper's theory, 0 an unweighted vote.",
    )
    context: ContextSettings | None = Field(
        default=None, description="Set to keep separate weights per context."
    )
    fusion_timeout: Duration = Field(
        default=parse_duration("5s"),
        description="How long a diagnosis waits for the slowest learner, from the first prediction."
        " Then it is made without those that are missing.",
    )
    label_ttl: Duration = Field(
        default=parse_duration("30d"),
        description="How long an instance waits for its label. Then it is forgotten, unlearned.",
    )
    max_pending: int = Field(
        default=1_000_000, ge=1, description="The most instances that may wait, per partition."
    )
    max_remembered: int = Field(
        default=1_000_000,
        ge=0,
        description="Settled instances, per partition, whose second labels are still recognised.",
    )
    fnr_target: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The false negative rate to keep below, such as 0.03.",
    )
    per_target: float | None = Field(
        default=None, gt=0, lt=1, description="The error rate above which an alert is raised."
    )

    @model_validator(mode="after")
    def _check_times(self) -> "EnsembleSettings":
        if self.fusion_timeout >= self.label_ttl:
            raise problem("must be shorter than label_ttl", "fusion_timeout")
        return self
