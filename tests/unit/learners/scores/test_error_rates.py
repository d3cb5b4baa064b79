import numpy as np
import pytest

from learners.arrays.types import MISSING
from learners.errors import LearnerError
from learners.scores.error_rates import confusion, hindsight, rates
from learners.scores.window import Window, merged


def ints(*values):
    return np.array(values, np.int64)


# Columns: confusion matrix (truth by prediction), positive label, PER, FPR, FNR.
RATES = [
    ([[95, 5], [1, 39]], 1, 6 / 140, 5 / 100, 1 / 40),
    ([[95, 5], [1, 39]], 0, 6 / 140, 1 / 40, 5 / 100),
    ([[0, 0], [0, 0]], 1, None, None, None),
    ([[7, 0], [0, 0]], 1, 0.0, 0.0, None),
    ([[0, 0], [2, 0]], 1, 1.0, None, 1.0),
    # Three labels: mistaking one negative for another is an error on negatives too.
    ([[8, 1, 1], [2, 6, 2], [0, 1, 9]], 2, 7 / 30, 6 / 20, 1 / 10),
]


@pytest.mark.parametrize(("counts", "positive", "per", "fpr", "fnr"), RATES)
def test_rates(counts, positive, per, fpr, fnr):
    result = rates(np.array(counts), positive)
    for value, expected in ((result.per, per), (result.fpr, fpr), (result.fnr, fnr)):
        assert np.isnan(value) if expected is None else value == expected, (value, expected)


def test_what_is_missing_counts_for_nobody():
    counts = confusion(ints(0, 1, MISSING), ints(MISSING, 1, 1), 2)
    assert counts.tolist() == [[0, 0], [0, 1]]


def test_an_empty_batch_counts_nothing():
    assert confusion(ints(), np.zeros((3, 0), np.int64), 4).tolist() == np.zeros((3, 4, 4)).tolist()


def test_hindsight_ranks_by_error_rate_and_averages_each_rate():
    counts = np.array([[[8, 2], [0, 10]], [[10, 0], [4, 6]], [[9, 1], [0, 10]]])
    result = hindsight(counts, positive=1)
    assert (result.best.per, result.best.fpr, result.best.fnr) == (0.05, 0.1, 0.0)
    assert (result.worst.per, result.worst.fpr, result.worst.fnr) == (0.2, 0.0, 0.4)
    assert result.average.per == pytest.approx((2 + 4 + 1) / 60)
    assert result.average.fpr == pytest.approx(0.1)
    assert result.average.fnr == pytest.approx(0.4 / 3)


def test_hindsight_leaves_out_who_was_never_heard():
    counts = np.array([np.zeros((2, 2)), [[1, 1], [0, 2]]], np.int64)
    result = hindsight(counts, positive=1)
    assert result.best.per == result.worst.per == result.average.per == 0.25
    nobody = hindsight(np.zeros((2, 2, 2), np.int64), positive=1)
    assert all(np.isnan(figures.per) for figures in (nobody.best, nobody.average, nobody.worst))


def test_hindsight_takes_independent_runs():
    runs = np.array([[[[8, 2], [0, 10]], [[9, 1], [0, 10]]], [[[5, 5], [5, 5]], [[4, 6], [5, 5]]]])
    result = hindsight(runs, positive=1)
    assert result.best.per.tolist() == [0.05, 0.5]
    assert result.worst.per.tolist() == [0.1, 0.55]


# The window


def test_a_window_forgets_the_oldest():
    window = Window(scopes=1, classes=2, size=3)
    assert len(window) == 0
    window.push(ints(1, 2), ints(0, 0), ints([1], [0]))
    window.push(ints(3, 4), ints(1, 1), ints([1], [0]))
    assert len(window) == 3
    at, truth, predicted = window.rows()
    assert (at.tolist(), truth.tolist(), predicted[:, 0].tolist()) == (
        [2, 3, 4],
        [0, 1, 1],
        [0, 1, 0],
    )
    assert window.confusion().tolist() == [[[1, 0], [1, 1]]]


def test_only_the_pages_change_that_are_named():
    window = Window(scopes=1, classes=2, size=150)
    assert (window.pages, window.page) == (3, 50)
    every = np.arange(window.pages)
    for n, pages in [(20, [0]), (40, [0, 1]), (85, [1, 2]), (10, [0, 2]), (400, [0, 1, 2])]:
        before = window.read_pages(every)
        at = window.pushed + np.arange(n)
        window.push(at, np.zeros(n, np.int64), np.zeros((n, 1), np.int64))
        assert window.changed(n).tolist() == pages
        differing = (before != window.read_pages(every)).any(axis=1)
        assert np.flatnonzero(differing).tolist() == pages


def test_windows_of_partitions_merge_into_that_of_the_stream():
    left, right = Window(1, 2, size=2), Window(1, 2, size=2)
    left.push(ints(1, 4), ints(0, 1), ints([0], [0]))
    right.push(ints(2, 3), ints(1, 1), ints([1], [1]))
    assert merged([left, right]).rows()[0].tolist() == [3, 4]
    assert merged([left, right]).confusion().tolist() == [[[0, 0], [1, 1]]]


@pytest.mark.parametrize(
    ("at", "truth", "predicted"),
    [(ints(1), ints(0, 0), ints([0], [0])), (ints(1, 2), ints(0, 0), ints([0, 0], [0, 0]))],
)
def test_a_window_refuses_what_does_not_fit(at, truth, predicted):
    with pytest.raises(LearnerError, match="window"):
        Window(scopes=1, classes=2).push(at, truth, predicted)


def test_a_window_needs_something_to_look_at():
    with pytest.raises(LearnerError, match="needs"):
        Window(scopes=0, classes=2)
