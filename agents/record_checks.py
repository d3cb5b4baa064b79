"""What readers check beyond a record itself: its partition, and whether it fits the settings."""

from collections.abc import Sequence
from typing import Any

from schemas.reading import Check
from schemas.refusals import Reason
from settings.model import Settings
from streams.kafka.partition_columns import all_at


def at_home(settings: Settings, partition: int) -> Check:
    """Return the check that an id belongs to the partition it was read from.

    In another partition it would never meet the other records of its patient.
    """
    partitions = settings.topics.partitions

    def passes(records: Sequence[Any]) -> bool:
        return partitions == 1 or all_at([r.id.encode() for r in records], partition, partitions)

    return Check(passes, Reason.WRONG_PARTITION, "expected the partition that murmur2 gives its id")


def predictable(settings: Settings) -> list[Check]:
    """Return the checks that predictions fit their learner: its rules, and the labels' log-odds."""
    rules = {name: frozenset(learner.rules) for name, learner in settings.learners.items()}
    pairs = {(learner, rule) for learner, named in rules.items() for rule in named}
    K = len(settings.labels)
    fitting = {0, K} | ({1} if K == 2 else set())

    def known(records: Sequence[Any]) -> bool:
        return pairs.issuperset([(r.learner, r.rule) for r in records]) and all(
            rules[r.learner].issuperset(r.votes) for r in records if r.votes
        )

    def fits(records: Sequence[Any]) -> bool:
        return fitting.issuperset([len(r.log_odds or ()) for r in records])

    return [
        Check(known, Reason.UNKNOWN_RULE, "rule, votes: expected rules of the learner"),
        Check(
            fits,
            Reason.WRONG_DIMENSION,
            f"log_odds: expected {K} entries, or one of two labels",
        ),
    ]
