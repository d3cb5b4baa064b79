"""With labels awaited one by one, the pipeline equals the pure learners on the same sequence."""

import numpy as np
import pytest
from engine_kit import until
from pipeline_kit import (
    arrive,
    await_count,
    create_topics,
    label,
    patients,
    publish,
    running,
    settings,
)

from learners.arrays.seeds import seeds_of
from learners.fusion.base import Ballot
from learners.local.learner import Labelled, Lessons
from settings.building import fusion, local_learner
from streams.kafka.topics import Topics

CONTEXT = 'ensemble.context={cuts=2,features=[{name="y",low=0.0,high=1.0}]}'


class PureEnsemble:
    """The learners in a loop: decide a patient, take its label, go on."""

    def __init__(self, config):
        self.config = config
        self.learners = {name: local_learner(config, name) for name in config.learners}
        self.fusion = fusion(config)
        context = config.ensemble.context
        self.grid = context.partition() if context else None

    def step(self, patient, features, truth):
        """Return what each learner says, the weights and the diagnosis; then learn."""
        seeds, labels = seeds_of([patient]), self.config.labels
        predictions, rows = {}, {}
        for name, learner in self.learners.items():
            names = [feature.name for feature in self.config.learners[name].features]
            rows[name] = np.array([[features[feature] for feature in names]])
            predictions[name] = learner.decide(rows[name], seeds)
        ballot = Ballot.of(
            np.array([[p.labels[0] for p in predictions.values()]]),
            seeds,
            classes=2,
            cells=None if self.grid is None else self.grid.cells(np.array([[features["y"]]])),
            exploring=np.array([[p.choices.exploring[0] for p in predictions.values()]]),
            accuracy=np.array([[p.choices.accuracy[0] for p in predictions.values()]]),
            log_odds=np.array([[p.log_odds[0] for p in predictions.values()]]),
        )
        fused = self.fusion.decide(ballot)
        y = np.array([labels.index(truth)])
        for name, learner in self.learners.items():
            learner.learn(Labelled.of(predictions[name], y), Lessons(rows[name], y))
        self.fusion.learn(ballot, fused, y)
        votes = {name: labels[p.labels[0]] for name, p in predictions.items()}
        return votes, fused.weights[0].tolist(), labels[fused.labels[0]]


def took_in(app, name):
    """Return how many labels the local learner has taken in."""
    session = app.engine.tasks[f"local.{name}", 0].session
    return session._processor.learner.iup.labelled


@pytest.mark.parametrize(
    "overrides",
    [("ensemble.mode=ah",), ("ensemble.mode=stack",), ("ensemble.mode=ch", CONTEXT)],
    ids=["ah", "stack", "ch"],
)
async def test_one_by_one(broker_address, prefix, tmp_path, overrides):
    config = settings(tmp_path, broker_address, prefix.strip("."), *overrides)
    topics = Topics.of(config)
    await create_topics(config)
    ids, features, truth = patients(40, seed=11)
    pure = PureEnsemble(config)
    async with running(config) as app:
        for k, patient in enumerate(ids):
            if config.ensemble.context:
                record = {"v": 1, "id": patient, "x": [float(features["y"][k])], "at": 5}
                await publish(config.broker.bootstrap, topics.contexts, [(patient, record)])
            await arrive(config, [patient], {f: v[k : k + 1] for f, v in features.items()})
            diagnosis = (await await_count(config, topics.diagnoses, k + 1))[-1]
            row = {f: float(v[k]) for f, v in features.items()}
            votes, weights, decided = pure.step(patient, row, truth[k])
            assert {n: o["label"] for n, o in diagnosis["learners"].items()} == votes
            assert list(diagnosis["weights"].values()) == pytest.approx(weights, abs=1e-9)
            assert diagnosis["label"] == decided
            await label(config, [patient], [truth[k]])
            await until(lambda n=k + 1: all(took_in(app, name) == n for name in config.learners))
