"""From a fused prediction to chances that add up, an answer or a referral, and a track record."""

import numpy as np
import pytest

from learners.arrays.seeds import seeds_of
from learners.assessment.assessed_fusion import AssessedFusion
from learners.assessment.assessment import Assessment, counts_of
from learners.errors import LearnerError
from learners.fusion.base import Ballot, FusedPredictions
from learners.fusion.registry import MODES, make_fusion

BOTH = (0.05, 0.05)


def fused(*positive):
    """Return fused predictions on two labels from the supports of the second."""
    support = np.array([[1.0 - p, p] for p in positive]).reshape(-1, 2)
    none = np.zeros((len(positive), 0), np.int64)
    return FusedPredictions(support.argmax(axis=1), none, none, support)


def learn(assessment, decision, truth):
    assessed = assessment.assess(decision)
    assessment.note(assessed.labels, assessed.answered)
    assessment.learn(assessed.labels, np.array(truth), assessed.kept)
    return assessed


def stream(assessment, n, rng, sharpness=2.0):
    """Let patients come one by one, their support overconfident; return what was said of each."""
    truth = rng.integers(0, 2, n)
    odds = 6.0 * ((2 * truth - 1) * sharpness / 2 + rng.normal(size=n))
    assessments = [
        learn(assessment, fused(p), [label])
        for p, label in zip(1.0 / (1.0 + np.exp(-odds)), truth, strict=True)
    ]
    return assessments, truth


def test_untaught_it_refers_and_says_so():
    assessment = Assessment(2, min_labels=2)
    for learned in range(3):
        assessed = learn(assessment, fused(0.9), [1])
        assert assessed.learned == learned
        assert assessed.answered.tolist() == [learned >= 2]
        assert assessed.untaught == (learned < 2)
        assert assessed.possible.tolist() == [[learned < 2, True]]


def test_without_any_opinion_all_labels_have_the_same_chance():
    assessed = Assessment(3).assess(
        FusedPredictions(np.array([2]), np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((1, 3)))
    )
    assert assessed.chance.tolist() == [[0.3333] * 3]
    assert not assessed.answered.any()
    assert assessed.possible.all()


def test_before_any_label_the_chance_is_the_support_but_never_certain():
    chance = Assessment(2).assess(fused(0.5, 0.9, 1.0)).chance
    assert chance[:, 1].tolist() == [0.5, 0.896, 0.9947]


def test_overconfident_support_becomes_a_chance():
    assessment = Assessment(2)
    assessments, truth = stream(assessment, 3000, np.random.default_rng(3))
    chance = np.array([assessed.chance[0, 1] for assessed in assessments[1000:]])
    support = np.array([assessed.support[0, 1] / 1e6 for assessed in assessments[1000:]])
    hit = truth[1000:] == 1

    def log_loss(p):
        p = np.clip(np.where(hit, p, 1 - p), 1e-4, 1)
        return -np.log(p).mean()

    assert log_loss(chance) < log_loss(support) - 0.05
    assert abs(chance[chance > 0.8].mean() - hit[chance > 0.8].mean()) < 0.03


def test_the_track_record_counts_diagnoses_like_it():
    assessment = Assessment(2)
    for truth in ([1] * 9 + [0]) * 10:
        learn(assessment, fused(0.97), [truth])
    counts = counts_of(assessment.rows)
    assert (counts.track_cases.sum(), counts.track_right.sum()) == (100, 90)
    again = assessment.assess(fused(0.97))
    cases, right, low, high = again.records[again.track[0]]
    assert cases > 0
    assert low <= right / cases <= high


def test_a_miss_rate_is_held_and_its_price_counted():
    assessment = Assessment(2, BOTH)
    assessments, truth = stream(assessment, 4000, np.random.default_rng(1))
    counts = counts_of(assessment.rows)
    assert (np.abs(counts.missed / counts.cases - 0.05) < 0.011).all()
    answered = np.array([assessed.answered[0] for assessed in assessments])
    labels = np.array([assessed.labels[0] for assessed in assessments])
    assert counts.referred.sum() == (~answered).sum() > 0
    wrong = answered & (labels != truth)
    assert counts.misdiagnosed.tolist() == [(wrong & (truth == k)).sum() for k in (0, 1)]
    assert (counts.misdiagnosed <= counts.missed).all()


def test_a_target_on_one_label_is_control_of_its_false_negatives():
    assessment = Assessment(2, (np.nan, 0.03))
    assessments, truth = stream(assessment, 4000, np.random.default_rng(2))
    assert all(assessed.answered[0] for assessed in assessments), (
        "the other label is the answer where it is not"
    )
    labels = np.array([assessed.labels[0] for assessed in assessments])
    fnr = (labels != truth)[truth == 1].mean()
    assert abs(fnr - 0.03) < 0.011
    assert counts_of(assessment.rows).missed[1] == (labels != truth)[truth == 1].sum()


def test_targets_are_one_per_label():
    with pytest.raises(LearnerError, match="one miss target per label"):
        Assessment(3, BOTH)


@pytest.mark.parametrize("mode", [mode for mode in MODES if not mode.startswith("ch")])
def test_it_follows_every_fusion_rule(mode):
    rng = np.random.default_rng(7)
    fusion = AssessedFusion(make_fusion(mode, 3, 3), Assessment(3, (0.1, np.nan, 0.1), 5))
    for t in range(60):
        truth = rng.integers(0, 3, 2)
        labels = np.where(rng.random((2, 3)) < 0.7, truth[:, None], rng.integers(-1, 3, (2, 3)))
        ballot = Ballot.of(labels, seeds_of([f"{t}a", f"{t}b"]), classes=3)
        decision, assessed = fusion.decide(ballot)
        assert (decision.labels == assessed.labels).all()
        np.testing.assert_allclose(assessed.chance.sum(axis=1), 1.0, atol=2e-4)
        single = assessed.possible.sum(axis=1) == 1
        assert (assessed.answered == (single & ballot.heard & (t > 2))).all()
        fusion.learn(ballot, decision, assessed, truth)
    assert counts_of(fusion.assessment.rows).cases.sum() == 120
