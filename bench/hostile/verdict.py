"""What became of every odd record: used, dead-lettered with its reason, or refused by the broker.

A dead letter names topic, partition and offset. Records without a dead letter must have been used,
which the totals that agents commit with their outputs prove: each record adds one to one of them.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from agents.clients.deadletters import as_letter
from agents.clients.topic_reader import TopicReader
from agents.monitor.watch import look
from bench.hostile.odd_records import KINDS, REFUSED, UNREAD, USED, Odd, number_of
from settings.model import Settings
from streams.kafka.topics import Topics

Place = tuple[str, int, int]


@dataclass
class Found:
    """What the topics hold: where each odd record is, and how many good ones there are."""

    places: dict[int, list[Place]] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    letters: dict[Place, list[str]] = field(default_factory=dict)
    stamps: dict[str, int] = field(default_factory=dict)
    """When each diagnosis was written, by its id."""


async def read_back(settings: Settings, odd: Mapping[int, Odd]) -> Found:
    """Read all topics of an ensemble but its changelogs."""
    evidence, topics = Found(), Topics.of(settings)
    async with TopicReader(settings, list(topics.kinds), "start") as reader:
        async for records in reader.present():
            for record in records:
                number = number_of(record.key, record.headers)
                place = record.topic, record.partition, record.offset
                if number is not None and odd[number].topic == record.topic:
                    evidence.places.setdefault(number, []).append(place)
                    continue
                evidence.others[record.topic] += 1
                if record.topic in topics.deadletters:
                    letter = as_letter(record)
                    at = letter.topic, letter.partition, letter.offset
                    evidence.letters.setdefault(at, []).append(letter.reason)
                elif record.topic == topics.diagnoses:
                    evidence.stamps[(record.key or b"").decode()] = record.timestamp
    return evidence


@dataclass(frozen=True)
class Verdict:
    """How many odd records had each outcome, and those with none or a wrong one, by kind."""

    outcomes: Counter[str]
    unaccounted: Counter[str]


def judge(odd: Mapping[int, Odd], refused: Collection[int], evidence: Found) -> Verdict:
    """Compare the outcome of every odd record with what its kind allows."""
    outcomes: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for number, record in odd.items():
        places, allowed = evidence.places.get(number, []), KINDS[record.kind].outcomes
        letters = [reason for place in places for reason in evidence.letters.get(place, [])]
        if number in refused:
            outcome, sound = REFUSED, not places
        elif UNREAD in allowed:
            outcome, sound = UNREAD, len(places) == 1 and not letters
        else:
            outcome = letters[0] if letters else USED
            sound = len(places) == 1 and len(letters) <= 1
        outcomes[outcome] += 1
        if not sound or outcome not in allowed:
            wrong[f"{record.kind}: {outcome}"] += 1
    return Verdict(outcomes, wrong)


async def misused(
    settings: Settings, odd: Mapping[int, Odd], evidence: Found, good: int
) -> dict[str, int]:
    """Return by how much the agents' own totals differ from what they should have used."""
    topics, overview = Topics.of(settings), await look(settings)
    refusals = Counter(topic for topic, _, _ in evidence.letters)
    join = {kind: sum(n for name, n in overview.counts.items() if name.startswith(kind + "_"))
            for kind in ("prediction", "label", "context")}  # fmt: skip
    late = Counter(
        topic for (topic, _, _), reasons in evidence.letters.items() if _LATE.intersection(reasons)
    )
    ours = {name: evidence.others[topics.feedback(name)] for name in topics.learners}
    strange = Counter(record.topic for number, record in odd.items() if number in evidence.places)

    def usable(topic: str, own: int) -> int:
        return own + strange[topic] - refusals[topic] + late[topic]

    own_predictions = evidence.others[topics.predictions]
    expected: dict[str, tuple[int, int]] = {
        "predictions": (join["prediction"], usable(topics.predictions, own_predictions)),
        "labels": (join["label"], usable(topics.labels, good)),
        "contexts": (join["context"], usable(topics.contexts, good)),
        **{
            f"feedback to {name}": (
                overview.scores.learned[name],
                usable(topics.feedback(name), own),
            )
            for name, own in ours.items()
        },
        "instances": (
            own_predictions,
            sum(usable(topics.instances(name), good) for name in topics.learners),
        ),
    }
    return {name: abs(is_ - should) for name, (is_, should) in expected.items() if is_ != should}


_LATE = {"conflict", "unknown", "expired", "evicted", "pending_full"}
"""Reasons that the join gives: it has counted the record before it refuses it."""


def rate(stamps: Mapping[str, int], ids: Collection[str], began: int) -> float:
    """Return the diagnoses of some patients per second, from the publishing to the last of them."""
    times = [stamps[name] for name in ids]
    return 1000 * len(times) / max(max(times) - began, 1)
