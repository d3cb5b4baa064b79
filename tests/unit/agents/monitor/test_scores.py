"""The score from rows of the state tables: rates, regret, its bounds, exploration."""

from math import log, sqrt

import numpy as np
import pytest

from agents.monitor.scores import Accuracy, Regret, Sums, score
from agents.totals import EnsembleTotals
from learners.arrays.shares import UNIT
from learners.assessment.assessment import WIDTH
from learners.join import COUNTERS
from learners.theory.running_mean import running_mean_interval
from tests.unit.agents.toy import SETTINGS

PLAIN = SETTINGS.model_copy(
    update={"ensemble": SETTINGS.ensemble.model_copy(update={"mode": "wm", "context": None})}
)
SCORES = {
    0: np.array([90, 10, 2, 18]),
    1: np.array([80, 20, 4, 16]),
    2: np.array([95, 5, 10, 10]),
}
# labelled, instances, explored, forgotten, thin, cubes, lost, predicted as each label
TOTALS = {
    "left": np.array([120, 200, 50, 0, 12, 4, 5 * UNIT // 2, 150, 50]),
    "right": np.array([120, 0, 0, 0, 0, 2, 0, 0, 0]),
}
ROW = np.array([120, 27 * UNIT, 24, 15, 27 * UNIT, 27 * UNIT])


def delays(labelled, late=0, **changed):
    """Return the delays of so many labels, of which the last came after so many others."""
    # Recorded, labels seen, sum of rates, drift, predictions that came late, largest pace.
    row = {"recorded": labelled, "seen": labelled * (labelled - 1) // 2 - late}
    row |= {"rates": 12 * UNIT, "drift": late * UNIT, "spoken_late": 0, "peak": labelled}
    return np.array(list({**row, **changed}.values()))


ON_TIME = {0: delays(120)}


def mode(settings, name, **changes):
    ensemble = settings.ensemble.model_copy(update={"mode": name, **changes})
    return settings.model_copy(update={"ensemble": ensemble})


def learners(settings, **changes):
    update = {
        name: learner.model_copy(update=changes) for name, learner in settings.learners.items()
    }
    return settings.model_copy(update={"learners": update})


def test_rates_are_those_of_the_confusion_counts():
    scores = score(PLAIN, Sums(SCORES, {}, TOTALS))
    assert scores.labelled == 120
    assert scores.rates["ensemble"] == {"per": 0.1, "fpr": 0.1, "fnr": 0.1}
    assert scores.rates["left"] == {"per": 0.2, "fpr": 0.2, "fnr": 0.2}
    assert scores.rates["right"]["fnr"] == 0.5
    assert scores.confusion["right"].tolist() == [[95, 5], [10, 10]]
    assert scores.best == "right"
    assert scores.exploration == {"left": 0.25, "right": None}
    assert scores.learned == {"left": 120, "right": 120}
    assert (scores.regret, scores.bound, scores.recent, scores.weights) == (None, None, {}, {})


def test_accuracies_have_an_interval():
    scores = score(PLAIN, Sums(SCORES))
    low, high = running_mean_interval(np.array([120]), np.array([105]))
    assert scores.accuracy["right"] == Accuracy(105 / 120, float(low[0]), float(high[0]))
    assert scores.accuracy["ensemble"].low < 0.9 < scores.accuracy["ensemble"].high


def test_nothing_labelled_yet_has_no_rates():
    scores = score(PLAIN, Sums())
    assert scores.rates["ensemble"] == {"per": None, "fpr": None, "fnr": None}
    assert (scores.best, scores.accuracy, scores.regrets, scores.error_bounds) == (None, {}, [], {})
    assert (scores.targets, scores.missed, scores.disagreements) == ({}, {}, 0)


def test_regret_and_the_bound_of_theorem_2():
    scores = score(PLAIN, Sums(SCORES, {0: ROW}, delays=ON_TIME))
    assert scores.regret == pytest.approx(12.0)
    assert scores.bound == pytest.approx(2 * sqrt(120 * log(2)))
    assert scores.regrets == [Regret("best_learner", scores.regret, scores.bound)]
    # PLAIN takes a vote, which errs at most twice as often as its weights.
    assert scores.error_bounds == {"best_learner": pytest.approx(2 * (15 + scores.bound) / 120)}
    drawn = score(mode(PLAIN, "ah"), Sums(SCORES, {0: ROW}, delays=ON_TIME))
    assert drawn.error_bounds == {"best_learner": pytest.approx((15 + scores.bound) / 120)}


def test_late_labels_and_late_predictions_widen_the_bound():
    late = score(PLAIN, Sums(SCORES, {0: ROW}, delays={0: delays(120, late=1000)})).bound
    assert late > 2 * sqrt((120 + 500) * log(2))
    spoken = score(PLAIN, Sums(SCORES, {0: ROW}, delays={0: delays(120, spoken_late=3)})).bound
    assert spoken == pytest.approx(2 * sqrt(120 * log(2)) + 6)


def test_labels_of_which_it_is_not_known_how_late_they_came_have_no_bound():
    for columns in ({}, {0: delays(119)}):
        scores = score(PLAIN, Sums(SCORES, {0: ROW}, delays=columns))
        assert (scores.bound, scores.error_bounds) == (None, {})


def test_regret_per_cube_and_the_bound_of_all_cubes():
    twenty, seven = 20 * UNIT, 7 * UNIT
    rows = {
        0: np.array([100, twenty, 20, 10, twenty, twenty]),
        3: np.array([20, seven, 4, 5, seven, seven]),
    }
    scores = score(SETTINGS, Sums(SCORES, rows, delays={0: delays(100), 3: delays(20)}))
    assert scores.regret == pytest.approx(27 - 10 - 4)
    # Theorem 2 in each cube; Theorem 4 is what this is at most.
    assert scores.bound == pytest.approx(2 * sqrt(100 * log(2)) + 2 * sqrt(20 * log(2)))
    assert scores.bound <= 2 * sqrt(120 * 2 * log(2))
    regrets = {regret.comparator: regret.value for regret in scores.regrets}
    assert regrets == {"best_learner_per_context": 27 - 10 - 4, "best_learner": 27 - 15}
    assert scores.error_bounds["best_learner"] == pytest.approx((15 + scores.bound) / 120)
    assert scores.error_bounds["best_learner_per_context"] == pytest.approx(
        (14 + scores.bound) / 120
    )


def test_a_silent_learner_is_compared_where_it_spoke():
    # The second learner spoke for 20 of 120, made 2 errors there, and the ensemble 3 on average.
    row = np.array([120, 27 * UNIT, 24, 2, 27 * UNIT, 3 * UNIT])
    scores = score(mode(PLAIN, "ah"), Sums(SCORES, {0: row}, delays=ON_TIME))
    assert scores.regret == pytest.approx(27 - 24)
    assert scores.error_bounds["best_learner"] == pytest.approx((24 + scores.bound) / 120)
    row[3] = 0
    row[2] = 26
    assert score(PLAIN, Sums(SCORES, {0: row})).regret == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("name", "changes", "bounded"),
    [
        ("ah", {}, True),
        ("wm", {}, True),
        ("odds", {}, False),
        ("ah", {"eta_scale": 1.0}, True),
        ("ah", {"eta_scale": 0.0}, False),
        ("ah", {"options": {"rate": "small-loss"}}, False),
        ("stack", {}, False),
        ("majority", {}, False),
    ],
)
def test_a_bound_is_given_only_where_theory_gives_one(name, changes, bounded):
    scores = score(mode(PLAIN, name, **changes), Sums(SCORES, {0: ROW}, delays=ON_TIME))
    assert (scores.bound is not None) == bounded
    assert bool(scores.error_bounds) == bounded
    assert scores.regret is not None


def test_regret_against_the_local_oracle_is_estimated():
    scores = score(learners(PLAIN, exploration=0.5), Sums(totals=TOTALS))
    assert scores.regrets == [
        Regret("local_oracle", 2.5, None, "left"),
        Regret("local_oracle", 0.0, None, "right"),
    ]
    # Labels on time for the ensemble may have reached a learner after its next decision.
    settings = learners(PLAIN, exploration=1.0, horizon=1000, cuts=3)
    sums = Sums(regret={0: ROW}, totals=TOTALS, delays=ON_TIME)
    assert [regret.bound for regret in score(settings, sums).regrets[1:]] == [None, None]


def test_guesses_on_which_no_learner_spoke_are_errors_beside_the_bound():
    bound = score(PLAIN, Sums(SCORES, {0: ROW}, delays=ON_TIME)).error_bounds["best_learner"]
    # Nobody spoke on forty of them: the weights lost nothing there, and the guesses may be wrong.
    quiet = {0: SCORES[0], 1: SCORES[1] * 2 // 3, 2: SCORES[2] // 2}
    heard = int(quiet[1].sum())
    scores = score(PLAIN, Sums(quiet, {0: ROW}, delays=ON_TIME))
    assert scores.error_bounds["best_learner"] == pytest.approx(bound + (120 - heard) / 120)
    late = {0: delays(120, spoken_late=3)}
    late_bound = score(PLAIN, Sums(quiet, {0: ROW}, delays=late)).error_bounds["best_learner"]
    assert late_bound == pytest.approx(bound + (120 - heard + 3 + 2 * 6) / 120), (
        "they may have spoken late"
    )


def test_weights_are_those_of_the_latest_diagnosis():
    recent = np.array([[[1, 0], [0, 1]], [[1, 0], [1, 0]], [[0, 1], [0, 1]]])
    weights = np.array([UNIT // 4, 3 * UNIT // 4])
    scores = score(PLAIN, Sums(SCORES, recent=recent, weights=weights))
    assert scores.weights == {"left": 0.25, "right": 0.75}
    assert scores.recent["right"]["per"] == 0.5


def test_what_needs_no_label():
    row = np.arange(EnsembleTotals.width(PLAIN))
    scores = score(PLAIN, Sums(totals=TOTALS, ensemble=EnsembleTotals(row)))
    total = len(COUNTERS) + 3
    assert scores.disagreements == total
    assert scores.predicted["ensemble"] == {"no": total + 1, "yes": total + 2}
    assert scores.predicted["left"] == {"no": 150, "yes": 50}
    assert (scores.thin["left"], scores.cubes) == (12, {"left": 4, "right": 2})


def test_targets_answers_and_misses():
    targets = {"fnr_target": 0.1, "per_target": 0.2, "miss_target": {"yes": 0.05}}
    settings = mode(PLAIN, "wm", **targets)
    scores = score(settings, Sums())
    assert scores.targets == {"fnr": 0.1, "per": 0.2}
    assert (scores.miss_targets, scores.missed) == ({"yes": 0.05}, {})
    no, yes = np.zeros((2, WIDTH), np.int64)
    no[-5:], yes[-5:] = (100, 7, 3, 80, 20), (40, 2, 1, 30, 10)
    scores = score(settings, Sums(assessed={0: no, 1: yes}))
    assert scores.answers == {"given": 110, "referred": 30}
    assert scores.missed == {"yes": 0.05}, "only where there is a target"
