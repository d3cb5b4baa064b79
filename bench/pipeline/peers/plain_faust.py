"""The pipeline as plain Faust agents: one event at a time, RocksDB tables, each role a process.

It does what the pipeline does for this job, without the most expensive parts: no intervals and
bounds with a prediction, no time-outs, no expiry, no input checks, no dead letters; at least once.
"""

import math
import sys
from pathlib import Path
from typing import Any

import faust

from bench.pipeline.job import CUTS, EXPLORATION, HORIZON, LABELS, LEARNERS, WIDTH
from bench.plain_faust import create_app, run
from settings.loading import load_settings
from streams.kafka.topics import ENSEMBLE, Topics

_LOG = 1 + 2 * math.log(2 * len(LABELS) * CUTS**WIDTH * HORIZON**1.5)
_TOTAL = "all"


class Instance(faust.Record, serializer="json"):
    """What a learner sees of a patient."""

    id: str
    x: dict[str, float]
    at: int


class Prediction(faust.Record, serializer="json", include_metadata=False):
    """What a learner says."""

    id: str
    learner: str
    label: str
    cube: int
    rule: str
    exploring: bool
    trials: int
    accuracy: float | None
    at: int


class Label(faust.Record, serializer="json"):
    """The truth."""

    id: str
    label: str
    at: int


class Diagnosis(faust.Record, serializer="json", include_metadata=False):
    """What the ensemble says."""

    id: str
    label: str
    weights: dict[str, float]
    learners: dict[str, dict[str, Any]]
    at: int


class Feedback(faust.Record, serializer="json", include_metadata=False):
    """The truth, for one learner."""

    id: str
    label: str
    predicted: str
    cube: int
    rule: str
    at: int


def local_learner(app: faust.App, topics: Topics, name: str) -> None:
    """Add the agents of a local learner."""
    instances = app.topic(topics.instances(name), value_type=Instance)
    feedback = app.topic(topics.feedback(name), value_type=Feedback)
    predictions = app.topic(topics.predictions, value_type=Prediction)
    counts = app.Table("counts", default=list, partitions=1)

    @app.agent(instances)
    async def decide(stream: Any) -> None:
        async for instance in stream:
            cube = 0
            for value in instance.x.values():
                cube = cube * CUTS + min(int(value * CUTS), CUTS - 1)
            row = counts[cube] or [0, 0, 0, 0]
            rule, exploring = choose(row)
            trials, hits = row[rule], row[2 + rule]
            await predictions.send(
                key=instance.id,
                value=Prediction(
                    id=instance.id,
                    learner=name,
                    label=LABELS[rule],
                    cube=cube,
                    rule=LABELS[rule],
                    exploring=exploring,
                    trials=trials,
                    accuracy=hits / trials if trials else None,
                    at=instance.at,
                ),
            )

    @app.agent(feedback)
    async def learn(stream: Any) -> None:
        async for lesson in stream:
            row = list(counts[lesson.cube] or [0, 0, 0, 0])
            rule = LABELS.index(lesson.rule)
            row[rule] += 1
            row[2 + rule] += lesson.label == lesson.predicted
            counts[lesson.cube] = row


def choose(row: list[int]) -> tuple[int, bool]:
    """Return the rule with the largest index, and whether that is an exploration."""
    means = [row[2 + f] / row[f] if row[f] else 0.0 for f in range(2)]
    index = [
        means[f] + EXPLORATION * math.sqrt(2 / row[f] * _LOG) if row[f] else math.inf
        for f in range(2)
    ]
    rule = index.index(max(index))
    return rule, means[rule] < max(means)


def diagnosis(opinions: dict[str, dict[str, Any]], losses: list[int]) -> Diagnosis:
    """Return the weighted majority of what the learners said."""
    t, *lost = losses
    eta = math.sqrt(math.log(len(LEARNERS)) / (t + 1))
    heavy = [math.exp(-eta * (loss - min(lost))) for loss in lost]
    share = {name: weight / sum(heavy) for name, weight in zip(LEARNERS, heavy, strict=True)}
    votes = dict.fromkeys(LABELS, 0.0)
    for name, opinion in opinions.items():
        votes[opinion["label"]] += share[name]
    first = next(iter(opinions.values()))
    return Diagnosis(
        id=first["id"],
        label=max(LABELS, key=lambda label: votes[label]),
        weights=share,
        learners=opinions,
        at=first["at"],
    )


def ensemble_learner(app: faust.App, topics: Topics) -> None:
    """Add the agents of the ensemble learner."""
    predictions = app.topic(topics.predictions, value_type=Prediction)
    labels = app.topic(topics.labels, value_type=Label)
    diagnoses = app.topic(topics.diagnoses, value_type=Diagnosis)
    feedback = {
        name: app.topic(topics.feedback(name), value_type=Feedback) for name in topics.learners
    }
    pending = app.Table("pending", default=dict, partitions=1)
    losses = app.Table("losses", default=list, partitions=1)

    async def settle(case: dict[str, Any], label: str) -> None:
        row = list(losses[_TOTAL] or [0, 0, 0, 0])
        row[0] += 1
        for i, name in enumerate(LEARNERS):
            opinion = case["opinions"][name]
            row[1 + i] += opinion["label"] != label
            await feedback[name].send(
                key=opinion["id"],
                value=Feedback(
                    id=opinion["id"],
                    label=label,
                    predicted=opinion["label"],
                    cube=opinion["cube"],
                    rule=opinion["rule"],
                    at=opinion["at"],
                ),
            )
        losses[_TOTAL] = row

    @app.agent(predictions)
    async def fuse(stream: Any) -> None:
        async for prediction in stream:
            case = dict(pending[prediction.id]) or {"opinions": {}, "label": None}
            case["opinions"] = {**case["opinions"], prediction.learner: prediction.asdict()}
            pending[prediction.id] = case
            if len(case["opinions"]) < len(LEARNERS):
                continue
            answer = diagnosis(case["opinions"], losses[_TOTAL] or [0, 0, 0, 0])
            await diagnoses.send(key=prediction.id, value=answer)
            if case["label"] is not None:
                await settle(case, case["label"])
                del pending[prediction.id]

    @app.agent(labels)
    async def join(stream: Any) -> None:
        async for truth in stream:
            case = dict(pending[truth.id]) or {"opinions": {}, "label": None}
            if len(case["opinions"]) == len(LEARNERS):
                await settle(case, truth.label)
                del pending[truth.id]
            else:
                case["label"] = truth.label
                pending[truth.id] = case


def main(file: str, folder: str, role: str) -> None:
    """Run one role until told to stop."""
    settings = load_settings(Path(file))
    topics = Topics.of(settings)
    address = str(settings.broker.bootstrap)
    app = create_app(address, f"{topics.prefix}faust.{role}", folder)
    if role == ENSEMBLE:
        ensemble_learner(app, topics)
    else:
        local_learner(app, topics, role)
    run(app)


if __name__ == "__main__":
    main(*sys.argv[1:])
