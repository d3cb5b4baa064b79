"""The paper's protocol: splits, draws, spoilt labels, rates and the search."""

import numpy as np
import pytest

from experiments.data import DATASETS, wdbc
from experiments.paper.offline import centralised, draw_counts, tuned_boundary, weighed
from experiments.paper.one_stage import FINE
from experiments.paper.protocol import make_runs, stacked
from experiments.paper.published import COMPARED, compared, published
from experiments.paper.rates import Rates, hindsight, improvement, rates
from experiments.paper.search import choose, tune


def test_training_and_test_patients_are_apart():
    runs = make_runs(3, steps=500, seed=9)
    for r in range(3):
        assert len(set(runs.train[r])) == 285
        assert not set(runs.train[r]) & set(runs.test[r])
        assert set(runs.draws[r]) <= set(runs.test[r])
        assert sorted(runs.order[r]) == list(range(30))
    assert make_runs(2, steps=10, split=False).test.shape == (2, 569)


def test_learners_share_no_feature():
    runs = make_runs(2, steps=5)
    for number in (2, 3, 7, 30):
        columns = runs.columns(number)
        joined = np.concatenate(columns, axis=1)
        assert all(sorted(row) == list(range(30)) for row in joined)


def test_spoilt_labels_come_at_their_rates_and_leave_the_truth_alone():
    runs = make_runs(4, steps=4000)
    spoilt = runs.with_labels(missing=0.3, flipped=0.1)
    assert spoilt.silent.mean() == pytest.approx(0.3, abs=0.02)
    assert (spoilt.told != spoilt.truth).mean() == pytest.approx(0.1, abs=0.02)
    assert (spoilt.truth == runs.truth).all()
    # A higher rate spoils the same labels and more.
    sparser = runs.with_labels(missing=0.5)
    assert (spoilt.silent <= sparser.silent).all()
    together = stacked([runs, spoilt])
    assert together.count == 8
    assert (together.silent[4:] == spoilt.silent).all()


def test_first_visits_are_the_first():
    runs = make_runs(1, steps=400)
    first, patients = runs.first_visits[0], set()
    for t, patient in enumerate(runs.draws[0]):
        assert first[t] == (patient not in patients)
        patients.add(patient)


@pytest.mark.parametrize("name", DATASETS)
def test_data_fit_their_feature_space(name):
    data = DATASETS[name]()
    data.space().check(data.rows)
    unit = data.unit()
    assert unit.min() >= 0
    assert unit.max() <= 1
    assert set(np.unique(data.truth)) == set(range(data.classes))


def test_malignant_is_the_positive_label():
    data = wdbc()
    assert data.labels[1] == "malignant"
    assert np.bincount(data.truth).tolist() == [357, 212]


def test_hindsight_ranks_by_each_runs_own_errors():
    truth = np.array([[1, 0, 1, 0], [1, 1, 0, 0]])
    right, wrong = truth.T, 1 - truth.T
    labels = np.stack([right, wrong], axis=2).astype(np.int8)
    labels[:, 1] = labels[:, 1, ::-1]
    scores = hindsight(labels, truth)
    assert scores["Best LL"].mean[0] == 0
    assert scores["Worst LL"].mean[0] == 100
    assert scores["Average LL"].mean[0] == 50


def fixed(per, fnr):
    return Rates(np.array([[per, per], [per, per], [fnr, fnr]]))


def test_the_search_takes_the_lowest_per_below_the_limit():
    tried = {1.0: fixed(2.0, 5.0), 2.0: fixed(3.0, 2.9), 4.0: fixed(2.5, 2.0), 8.0: fixed(9, 0.0)}
    assert choose(tried).h == 4.0
    assert choose(tried).reached
    lost = choose({1.0: fixed(2.0, 5.0), 2.0: fixed(3.0, 4.0)})
    assert lost.h == 2.0
    assert not lost.reached


def test_the_search_refines_where_the_limit_is_crossed():
    def evaluate(values):
        # FNR falls as 6/h, PER rises with h: the optimum is h = 2.
        return {name: [fixed(h, 6.0 / h) for h in limits] for name, limits in values.items()}

    grid = np.array([0.5, 1.0, 4.0, 8.0])
    tuned = tune(["a"], evaluate, grid)["a"]
    assert 2.0 <= tuned.h < 2.7
    assert set(grid) < set(tuned.tried)
    assert tune(["a"], evaluate, FINE, refine=0)["a"].h in FINE


def test_offline_scores_are_weighed_by_draws():
    runs = make_runs(3, steps=3000)
    counts = draw_counts(runs)
    assert (counts.sum(axis=1) == 3000).all()
    everybody_ill = weighed(runs, np.ones(counts.shape, bool))
    assert everybody_ill.mean[2] == 0
    assert everybody_ill.mean[1] == 100
    labels = np.random.default_rng(0).random(counts.shape) < 0.5
    by_patient = np.zeros((3, 569), bool)
    np.put_along_axis(by_patient, runs.test, labels, axis=1)
    drawn = np.take_along_axis(by_patient, runs.draws, axis=1)
    assert np.allclose(
        weighed(runs, labels).per_run, rates(drawn.T.astype(int), runs.truth).per_run
    )


def test_logistic_regression_beats_guessing_at_the_limit():
    runs = make_runs(3, steps=2000)
    tuned = tuned_boundary(runs, centralised(runs, "lr"))
    assert tuned.reached
    assert tuned.rates.mean[2] <= 3
    assert tuned.rates.mean[0] < 8


def test_comparison_is_in_standard_errors():
    ours = Rates(np.array([[2.0, 4.0], [1.0, 1.0], [0.0, 2.0]]))
    row = compared("x", [2.0, 1.0, 1.0], ours, 1.5)
    assert len(row) == len(COMPARED)
    assert row[1:5] == [2.0, 3.0, pytest.approx(1.0), pytest.approx(1.0)]
    assert row[8] is None  # no spread, no unit to measure a difference in
    assert compared("x", None, ours, 1.5)[1] is None


def test_the_papers_own_improvement_ratios_follow_from_its_tables():
    table = published()["table1"]
    ratio = improvement(table["HB(IUP+WM)"]["PER"], table["LR"]["PER"])
    assert ratio == pytest.approx(published()["improvement"]["WM over LR, PER"], abs=0.005)
