"""Whether the error rate has risen within the last labelled instances."""

import numpy as np

from learners.scores.change import DELTA, risen
from learners.scores.window import Window


def errors(rng, *parts):
    """Return errors with a rate for each stretch of (length, rate)."""
    return np.concatenate([rng.random(length) < rate for length, rate in parts])


def test_a_rate_that_rises_is_noticed_within_a_window():
    rng = np.random.default_rng(0)
    for before, after in ((0.03, 0.3), (0.1, 0.4), (0.25, 0.6)):
        rises = [risen(errors(rng, (800, before), (200, after))) for _ in range(50)]
        assert np.mean(np.array(rises) > 0) > 0.95
        assert abs(np.mean(rises) - (after - before)) < 0.06


def test_a_steady_or_falling_rate_is_not():
    rng = np.random.default_rng(1)
    for rate in (0.02, 0.2, 0.5):
        alarms = [risen(errors(rng, (1000, rate))) > 0 for _ in range(400)]
        assert np.mean(alarms) <= 2 * DELTA
    assert not any(risen(errors(rng, (500, 0.4), (500, 0.1))) for _ in range(50))


def test_a_few_labels_say_nothing():
    assert risen(np.zeros(0, np.bool_)) == 0.0
    assert risen(np.ones(1, np.bool_)) == 0.0
    assert risen(np.array([False] * 5 + [True] * 5)) == 0.0


def test_the_order_of_labels_of_the_same_time_does_not_matter():
    rng = np.random.default_rng(2)
    at, truth = np.repeat(np.arange(50), 4), rng.integers(0, 2, 200)
    labels = rng.integers(-1, 2, (200, 1))
    windows = []
    for shuffle in (np.arange(200), np.lexsort((rng.random(200), at))):
        window = Window(1, 2)
        window.push(at[shuffle], truth[shuffle], labels[shuffle])
        windows.append(window.wrong())
    assert (windows[0] == windows[1]).all()
    assert windows[0].sum() == ((labels[:, 0] >= 0) & (labels[:, 0] != truth)).sum()
