"""A learner that knows nothing yet says so: no vote, no loss, no trial; it learns all the same."""

import numpy as np
import pytest

from agents.testing import Pipeline
from schemas.reading import Reader
from schemas.records import Feedback
from tests.inline_pipeline import JOINT, configured

ROW = {"x": 0.9, "y": 0.1, "z": 0.9}
LEARNS = 'learners.a.rules={lr={kind="bayes"}}'


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_before_its_first_lesson_a_learner_abstains(tmp_path, feedback):
    pipeline = Pipeline(configured(tmp_path, LEARNS, f"learners.a.feedback={feedback}"))
    diagnosis = pipeline.patient("first", ROW)
    prediction = pipeline.predictions("a")[0]
    assert (prediction.label, prediction.log_odds) == (None, None)
    assert diagnosis.complete, "it has spoken: nobody waits for it"
    assert diagnosis.learners["a"].label is None
    assert diagnosis.weights["a"] == 0
    pipeline.label("first", "ill")
    feedback_record = Reader(Feedback).one(
        pipeline.published[pipeline.topics.feedback("a")][0].values[0]
    )
    assert feedback_record.predicted is None
    after = pipeline.patient("second", ROW)
    assert after.learners["a"].label == "ill", "it has learned from what it had no opinion on"
    assert after.learners["a"].trials == 0, "and was not tried by it"
    scores = pipeline.agents["ensemble"].processor.learner.scores.rows(np.arange(2))
    assert scores.sum(axis=1).tolist() == [1, 0], "neither right nor wrong"


def test_without_any_opinion_the_preferred_label_is_the_guess(tmp_path):
    pipeline = Pipeline(configured(tmp_path, *JOINT, "ensemble.prefer=ill"))
    diagnosis = pipeline.patient("first", ROW)
    assert {opinion.label for opinion in diagnosis.learners.values()} == {None}
    assert diagnosis.label == "ill"
    assert sum(diagnosis.weights.values()) == 0


@pytest.mark.parametrize("changes", [(), JOINT])
def test_a_learner_that_sees_nothing_has_no_opinion_and_nobody_waits_for_it(tmp_path, changes):
    pipeline = Pipeline(configured(tmp_path, *changes, "ensemble.mode=stack"))
    for number in range(20):
        pipeline.patient(f"p{number}", {"x": number / 20, "y": 0.5, "z": number / 20})
        pipeline.label(f"p{number}", "ill" if number > 9 else "well")
    diagnosis = pipeline.patient("blind", {"x": None, "y": "NA", "z": 0.9})
    assert diagnosis is not None, "diagnosed at once, not after the time-out"
    assert diagnosis.complete
    assert (diagnosis.learners["a"].label, diagnosis.learners["a"].missing) == (None, 2)
    assert (diagnosis.learners["b"].label, diagnosis.learners["b"].missing) == ("ill", 0)
    partly = pipeline.patient("partly", {"x": 0.9, "y": None, "z": 0.9})
    assert partly.learners["a"].label is not None
    assert partly.learners["a"].missing == 1
    assert pipeline.dead_letters == []
