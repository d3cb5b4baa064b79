"""What the ensemble learner counts beside the losses of its fusion rule."""

import numpy as np
import pytest

from learners.arrays.shares import UNIT
from learners.ensemble import EnsembleLearner
from learners.fusion.registry import make_fusion
from learners.join import JoinRules, Label, Prediction
from learners.payloads import PredictionPayload

HEARD = PredictionPayload()
ONLY = np.zeros(1, np.int64)


@pytest.fixture
def learner():
    fusion = make_fusion("ah", learners=3, classes=2)
    return EnsembleLearner(fusion, JoinRules(learners=3, fusion_timeout=100, label_ttl=10_000))


def said(name, *labels, at=1):
    """Return the predictions of some learners, None where one is silent."""
    return [
        Prediction(at, name, i, label, HEARD) for i, label in enumerate(labels) if label is not None
    ]


def test_disagreement_and_the_mix_of_labels_need_no_truth(learner):
    outcome = learner.take(
        [*said("a", 0, 0, 0), *said("b", 1, 1, 1), *said("c", 1, 0, 1), *said("d", 1, None, 1)],
        now=500,
    )
    assert len(outcome.diagnoses) == 4
    disagreed, *by_label = learner.tally.rows(ONLY)[0].tolist()
    assert disagreed == 1, "a silent learner disagrees with nobody"
    assert by_label == np.bincount(outcome.fused.labels, minlength=2).tolist()
    learner.take(said("e", 0, 1, None, at=600), now=900)
    assert learner.tally.rows(ONLY)[0, 0] == 2


def test_the_latest_shares_are_those_of_the_last_diagnosis(learner):
    assert len(learner.latest) == 0
    learner.take(said("a", 0, 0, 0))
    assert learner.latest.rows(ONLY)[0, 0] == 1
    learner.take([Label(2, "a", 1), *said("b", 0, 1, None, at=7)], now=700)
    at, *parts = learner.latest.rows(ONLY)[0].tolist()
    assert at == 7 + 100, "it was made when the silent one had been waited for"
    assert (parts[0], parts[1], parts[2]) == (UNIT // 2, UNIT // 2, 0)
    learner.take([Label(800, "b", 1)])
    assert learner.latest.rows(ONLY)[0].tolist() == [at, *parts], "labels change nothing"


def test_expected_loss_is_summed_where_each_expert_was_heard(learner):
    learner.take([*said("a", 0, 1, 1), *said("b", 0, 1, None)], now=500)
    learner.take([Label(600, "a", 1), Label(600, "b", 1)])
    labelled, expected, *losses = learner.regret.rows(ONLY)[0].tolist()
    wrong, heard = losses[:3], losses[3:]
    assert (labelled, wrong) == (2, [2, 0, 0])
    third, half = UNIT // 3, UNIT // 2
    assert expected == pytest.approx(third + half, abs=2)
    assert heard == [expected, expected, pytest.approx(third, abs=2)]
