"""Why a record was refused: a closed set of codes, safe as a metric label and stable over versions.

>>> Reason.NOT_FINITE.value, Reason("empty").meaning
('not_finite', 'the value is empty, or there is none (a tombstone)')
"""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """A code and its meaning; the first group is about reading a record, the second about using it.

    The codes of the join are those of `learners.join`, so that one enum converts to the other.
    """

    meaning: str

    def __new__(cls, code: str, meaning: str) -> Self:
        """Make a member that carries its meaning."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    EMPTY = "empty", "the value is empty, or there is none (a tombstone)"
    TOO_LARGE = "too_large", "the value is longer than the reader's limit; it was not parsed"
    NOT_UTF8 = "not_utf8", "the value is not UTF-8"
    MALFORMED = "malformed", "the value is not valid JSON, or is nested too deeply"
    WRONG_VERSION = "wrong_version", "`v` names a version that this reader does not know"
    MISSING_FIELD = "missing_field", "a required field is absent"
    WRONG_TYPE = "wrong_type", "a field holds a value of the wrong type"
    NOT_FINITE = "not_finite", "a number is NaN, infinite or too large for a double"
    OUT_OF_RANGE = "out_of_range", "a number or the length of a text lies outside its range"
    BAD_ID = "bad_id", "the id or the subject is empty, too long or holds control characters"
    WRONG_DIMENSION = "wrong_dimension", "`x` has more or fewer entries than the features"
    MISSING_FEATURE = "missing_feature", "`x` lacks one of the learner's features"
    EXTRA_FEATURE = "extra_feature", "`x` names a feature that the learner does not have"
    UNDECRYPTABLE = "undecryptable", "`x` is encrypted, and none of the reader's keys opens it"
    UNKNOWN_CATEGORY = "unknown_category", "a categorical feature holds none of its categories"
    UNKNOWN_LABEL = "unknown_label", "a label is not in the settings"
    UNKNOWN_LEARNER = "unknown_learner", "a learner is not in the settings"
    UNKNOWN_RULE = "unknown_rule", "a rule is not among the learner's rules"

    WRONG_PARTITION = (
        "wrong_partition",
        (
            "its id belongs to another partition: let the producer choose partitions by murmur2 of"
            " the id, as Kafka's Java client does (librdkafka: `partitioner=murmur2_random`)"
        ),
    )
    RULE_FAILED = "rule_failed", "a rule raised an error, or returned something that is not a label"
    CONFLICT = "conflict", "the instance already has a different label, and the first one counts"
    UNKNOWN = "unknown", "no prediction came for the instance while its label or context waited"
    EXPIRED = "expired", "it came after the diagnosis had expired (`label_ttl`)"
    EVICTED = "evicted", "it came after the diagnosis had given way to newer ones at `max_pending`"
    FINAL = (
        "final",
        "it came after the label could be changed (`amend_ttl`, `max_amendable`)",
    )
    PENDING_FULL = "pending_full", "`max_pending` instances were waiting, and none could give way"
