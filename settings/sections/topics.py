"""`[topics]`: how the topics are named, spread, copied and kept.

All topics have the same number of partitions and are keyed by instance id: so one partition follows
a patient through the whole system, and a learner finds there what it stored with its decisions.
"""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from settings.sections.base import Retention, Section, parse_duration, problem


class RetentionSettings(Section):
    """How long records are kept, by kind of topic."""

    instances: Retention = Field(
        default=parse_duration("7d"),
        description="The features that local learners see. Keep it short, to hold features"
        " no longer than needed, but long enough for workers to catch up after an outage.",
    )
    contexts: Retention = Field(
        default=parse_duration("7d"),
        description="The features that a contextual ensemble learner sees.",
    )
    predictions: Retention = Field(
        default=parse_duration("90d"),
        description="The learners' predictions. `hb audit` reads them.",
    )
    labels: Retention = Field(
        default=parse_duration("90d"),
        description="The true labels. `hb audit` reads them.",
    )
    feedback: Retention = Field(
        default=parse_duration("90d"),
        description="What each learner learns from. `hb audit` reads it.",
    )
    reasons: Retention = Field(
        default=parse_duration("7d"),
        description="How much each feature moved a learner's log-odds, where switched on. Features"
        " can be inferred from it, so keep it as short as instances.",
    )
    diagnoses: Retention = Field(
        default=parse_duration("90d"), description="The ensemble's answers. `hb audit` reads them."
    )
    erasures: Retention = Field(
        default=parse_duration("90d"),
        description="Which patients were erased, by a digest of the id. Keep it long enough for"
        " workers to catch up after an outage.",
    )
    deadletters: Retention = Field(
        default=parse_duration("14d"),
        description="Records that could not be used, unchanged; they may hold features.",
    )


def _check_prefix(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{0,100}", value):
        raise problem("must be at most 100 letters, digits, '.', '-' and '_' (Kafka's topic names)")
    return value


class TopicSettings(Section):
    """What all topics of one ensemble have in common."""

    prefix: Annotated[str, AfterValidator(_check_prefix)] = Field(
        default="hb.",
        description="The beginning of every topic's name.",
        json_schema_extra={"default_text": 'the ensemble\'s name and a dot, as in "wdbc."'},
    )
    partitions: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Partitions of every topic; no more workers than this can share one role."
        " Existing topics cannot be repartitioned without moving patients, so choose early.",
    )
    replication: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Replicas of each partition; 3 on a cluster of three or more brokers.",
    )
    min_in_sync: int = Field(
        default=1,
        ge=1,
        description="Replicas that must have a record before it counts as written.",
        json_schema_extra={"default_text": "one less than `replication`, at least 1"},
    )
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="How long records are kept."
    )

    @model_validator(mode="before")
    @classmethod
    def _follow_replication(cls, value: Any) -> Any:
        copies = value.get("replication") if isinstance(value, dict) else None
        if type(copies) is int and copies > 1 and "min_in_sync" not in value:
            return {**value, "min_in_sync": copies - 1}
        return value

    @model_validator(mode="after")
    def _check_copies(self) -> "TopicSettings":
        if self.min_in_sync > self.replication:
            raise problem("must not be larger than replication", "min_in_sync")
        return self

    def retention_of(self, kind: str) -> timedelta:
        """Return how long records of a kind (`instances`, `labels`, …) are kept."""
        duration: timedelta = getattr(self.retention, kind)
        return duration
