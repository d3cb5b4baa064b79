"""The whole settings file as one frozen object, which only describes and starts nothing."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from schemas.records import REFER
from settings.client_settings import default_key, filled_in
from settings.sections.base import Name, Section, problem, problems
from settings.sections.broker import BrokerSettings
from settings.sections.ensemble import EnsembleSettings
from settings.sections.features import Text
from settings.sections.learners import CodeSettings, LearnerDefaults, LearnerSettings, inherit
from settings.sections.privacy import PrivacySettings
from settings.sections.topics import TopicSettings
from settings.sections.worker import WorkerSettings, state_folder


class ColumnSettings(Section):
    """Which columns of a CSV file of patients are not features."""

    id: Text | None = Field(
        default=None, description="The column with instance ids; without it, ids are generated."
    )
    label: Text | None = Field(default=None, description="The column with labels, if any.")
    subject: Text | None = Field(
        default=None,
        description="The column that names the person, if people come more than once.",
    )


class Settings(Section):
    """Everything about one ensemble."""

    version: Literal[1] = Field(description="The version of this file's layout.")
    name: Name = Field(
        description="The ensemble's name: part of topic names, consumer groups and metric labels."
    )
    labels: Annotated[tuple[Text, ...], Field(strict=False)] = Field(
        description="The classes a diagnosis can name; two or more, all different."
    )
    positive: str = Field(
        description="The label that must not be missed: the miss rate is about it."
    )
    columns: ColumnSettings = Field(
        default=ColumnSettings(), description="For commands that read CSV files."
    )
    rules: CodeSettings = Field(default=CodeSettings(), description="Code that the rules may name.")
    defaults: LearnerDefaults = Field(
        default=LearnerDefaults(), description="What all learners have in common."
    )
    learners: dict[Name, LearnerSettings] = Field(description="The local learners, one table each.")
    ensemble: EnsembleSettings = Field(
        default=EnsembleSettings(), description="The ensemble learner."
    )
    privacy: PrivacySettings = Field(
        default=PrivacySettings(), description="Encryption of features, and pseudonyms."
    )
    topics: TopicSettings = Field(default=TopicSettings(), description="Kafka topics.")
    broker: BrokerSettings = Field(default=BrokerSettings(), description="Which Kafka.")
    worker: WorkerSettings = Field(default=WorkerSettings(), description="A worker process.")

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        """Derive what other keys decide: topics from the name, learners from the defaults."""
        if not isinstance(value, Mapping):
            return value
        filled = filled_in(value, inherit)
        if isinstance(name := value.get("name"), str):
            default_key(filled, "worker", "state", state_folder(name))
        if isinstance(positive := value.get("positive"), str):
            default_key(filled, "ensemble", "prefer", positive)
        return filled

    @field_validator("defaults")
    @classmethod
    def _check_defaults(cls, defaults: LearnerDefaults, info: ValidationInfo) -> LearnerDefaults:
        if misfits := list(defaults.misfits(info.data.get("labels"), _packages(info))):
            raise problems(misfits)
        return defaults

    @field_validator("learners")
    @classmethod
    def _check_learners(
        cls, learners: dict[str, LearnerSettings], info: ValidationInfo
    ) -> dict[str, LearnerSettings]:
        if not learners:
            raise problem("needs at least one learner: a table [learners.NAME]")
        misfits = [
            ((name, *path), message)
            for name, learner in learners.items()
            for path, message in learner.misfits(info.data.get("labels"), _packages(info))
        ]
        if misfits:
            raise problems(misfits)
        return learners

    @field_validator("ensemble")
    @classmethod
    def _check_fusion(cls, ensemble: EnsembleSettings, info: ValidationInfo) -> EnsembleSettings:
        labels, learners = info.data.get("labels"), info.data.get("learners")
        if labels and learners and (misfit := ensemble.misfit(len(learners), labels)):
            raise misfit
        return ensemble

    @field_validator("privacy")
    @classmethod
    def _check_keys(cls, privacy: PrivacySettings, info: ValidationInfo) -> PrivacySettings:
        learners = info.data.get("learners")
        for name in privacy.state_keys:
            if learners is not None and name not in {*learners, "ensemble"}:
                known = "is neither a learner of these settings nor `ensemble`"
                raise problem(known, "state_keys", name)
        for name in privacy.keys:
            if learners is not None and name not in learners:
                raise problem("is not a learner of these settings", "keys", name)
            if learners is not None and learners[name].reasons:
                raise problem(
                    "its features are encrypted, and its reasons would reveal them: set"
                    f" learners.{name}.reasons = false",
                    "keys",
                    name,
                )
        return privacy

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        if len(labels) < 2:
            raise problem("needs at least two labels")
        if len(set(labels)) < len(labels):
            raise problem("must be distinct")
        if REFER in labels:
            raise problem(
                f"must not contain '{REFER}': that is the answer for patients who are referred"
            )
        return labels

    @field_validator("positive")
    @classmethod
    def _check_positive(cls, positive: str, info: ValidationInfo) -> str:
        if positive not in info.data.get("labels", (positive,)):
            raise problem("must be one of labels")
        return positive


def _packages(info: ValidationInfo) -> tuple[str, ...]:
    code: CodeSettings = info.data.get("rules", CodeSettings())
    return code.packages
