"""Records are filled by position, for speed: each value must come out under its own name."""

import numpy as np
import pytest

from agents.prediction_records import PredictionRecords
from learners.local.iup import Choices
from learners.local.learner import Confidence, Predictions
from schemas.reading import Reader
from schemas.records import Feedback, Opinion, Prediction
from schemas.writing import encode
from tests.inline_pipeline import JOINT, Inline, configured

SENT = {
    "a": Prediction(
        "p1", "a", "ill", phase=1, cube="1", rule="sgd", exploring=True, trials=7, at=1_000_001,
        accuracy=0.5, low=0.25, high=0.75, epsilon=0.125, log_odds=(-1.0, 1.0), missing=1,
        subject="s1", history=True, learned=13,
    ),
    "b": Prediction(
        "p1", "b", "well", phase=2, cube="0", rule="lr", exploring=False, trials=9, at=1_000_002,
        accuracy=0.375, low=0.0625, high=0.875, epsilon=0.03125, votes={"lr": "well"},
        log_odds=(2.0, -2.0), subject="s1", history=True, learned=17,
    ),
}  # fmt: skip


@pytest.fixture
def joined(tmp_path):
    live = Inline(configured(tmp_path, *JOINT))
    live.now = 1_000_010
    for sent in SENT.values():
        live.publish(live.topics.predictions, b"", encode(sent), at=sent.at)
    return live


def test_a_prediction_has_each_figure_of_the_learner_under_its_name(tmp_path):
    settings = configured(tmp_path)
    choices = Choices(3, *map(np.array, ([4], [0], [True], [5], [2])))
    said = Predictions(
        choices, np.array([1]), np.array([[1, 0]]), np.array([[-1.5, 1.5]]), np.array([1])
    )
    sure = Confidence(*(np.array([value]) for value in (0.4, 0.1, 0.9, 0.2)))
    (prediction,) = PredictionRecords(settings, "b").records(
        ["p1"], [77], ["s1"], said, sure, history=[True], learned=13
    )
    rule, other = settings.learners["b"].rules
    assert prediction == Prediction(
        id="p1", learner="b", label="ill", phase=3, cube="4", rule=rule, exploring=True, trials=5,
        at=77, accuracy=0.4, low=0.1, high=0.9, epsilon=0.2, votes={rule: "ill", other: "well"},
        log_odds=prediction.log_odds, missing=1, subject="s1", history=True, learned=13,
    )  # fmt: skip
    assert prediction.log_odds is not None


def test_a_diagnosis_shows_what_each_learner_said(joined):
    (diagnosis,) = joined.diagnoses
    assert (diagnosis.id, diagnosis.subject, diagnosis.history) == ("p1", "s1", True)
    for name, sent in SENT.items():
        opinion = diagnosis.learners[name]
        for field in Opinion.__struct_fields__:
            assert getattr(opinion, field) == getattr(sent, field), (name, field)


def test_a_diagnosis_has_each_figure_under_its_name(joined):
    (diagnosis,) = joined.diagnoses
    settings = joined.settings
    assert diagnosis.complete
    assert diagnosis.missing == ()
    assert diagnosis.mode == settings.ensemble.mode
    assert diagnosis.weights.keys() == set(settings.learners)
    assert diagnosis.chance.keys() == set(settings.labels)
    assert len(diagnosis.support) == len(settings.labels)
    assert diagnosis.learned == 0
    assert diagnosis.track_record.cases == 0
    assert diagnosis.at == SENT["a"].at
    assert diagnosis.label in settings.labels
    assert diagnosis.answer == "refer"
    assert set(diagnosis.cannot_exclude) <= set(settings.labels)
    assert not set(diagnosis.why) & set(settings.labels)
    assert (diagnosis.context, diagnosis.votes) == (None, None)


def test_feedback_hands_each_figure_back(joined):
    joined.label("p1", "ill")
    for name, sent in SENT.items():
        (batch,) = joined.published[joined.topics.feedback(name)]
        feedback = Reader(Feedback).one(batch.values[0])
        assert (feedback.id, feedback.label, feedback.predicted) == ("p1", "ill", sent.label)
        for field in ("phase", "cube", "rule", "votes"):
            assert getattr(feedback, field) == getattr(sent, field), (name, field)
        (other,) = SENT.keys() - {name}
        # Of two labels the log-odds are each other's negative: the second one's travel.
        assert feedback.log_odds == sent.log_odds[1:]
        assert feedback.others == pytest.approx(SENT[other].log_odds[1:])
        assert not feedback.amends
        assert feedback.was is None
