from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.scores.error_rates import confusion, hindsight, rates
from learners.scores.window import Window, merged
from learners.theory.regret import (
    awake_regret,
    contextual_regret,
    ensemble_regret,
    local_regret_parts,
)
from tests.strategies import cuts, generators

sizes = st.integers(0, 40)
labels = st.integers(2, 4)


def outcomes(rng, n, scopes, classes):
    return rng.integers(0, classes, n), rng.integers(MISSING, classes, (n, scopes))


@given(generators, sizes, st.integers(1, 3), labels)
def test_confusion_counts_one_by_one(rng, n, scopes, classes):
    truth, predicted = outcomes(rng, n, scopes, classes)
    expected = np.zeros((scopes, classes, classes), np.int64)
    for scope in range(scopes):
        for y, label in zip(truth, predicted[:, scope], strict=True):
            if label != MISSING:
                expected[scope, y, label] += 1
    assert (confusion(truth, predicted.T, classes) == expected).all()


@given(generators, sizes, labels, st.data())
def test_confusions_of_the_parts_add_up_to_the_whole(rng, n, classes, data):
    truth, predicted = outcomes(rng, n, 2, classes)
    parts = [slice(*span) for span in pairwise(data.draw(cuts(n)))]
    total = sum(confusion(truth[part], predicted[part].T, classes) for part in parts)
    assert (total == confusion(truth, predicted.T, classes)).all()


@given(generators, st.integers(1, 4), sizes, labels)
def test_runs_are_independent_of_each_other(rng, runs, n, classes):
    outcomes_by_run = [outcomes(rng, n, 2, classes) for _ in range(runs)]
    truth = np.stack([t for t, _ in outcomes_by_run])
    predicted = np.stack([p.T for _, p in outcomes_by_run])
    together = confusion(truth[:, None], predicted, classes)
    alone = np.stack([confusion(t, p.T, classes) for t, p in outcomes_by_run])
    assert (together == alone).all()
    measured, best = rates(together, 0), hindsight(together, 0).best
    for run in range(runs):
        single = rates(alone[run], 0)
        for name in ("per", "fpr", "fnr"):
            expected = getattr(single, name)
            assert np.array_equal(getattr(measured, name)[run], expected, equal_nan=True)
        assert np.array_equal(best.per[run], hindsight(alone[run], 0).best.per, equal_nan=True)


@given(generators, st.integers(1, 40), labels, st.data())
def test_rates_are_the_shares_of_errors(rng, n, classes, data):
    positive = data.draw(st.integers(0, classes - 1))
    truth, predicted = rng.integers(0, classes, n), rng.integers(0, classes, n)
    measured = rates(confusion(truth, predicted, classes), positive)
    groups = {"per": truth >= 0, "fpr": truth != positive, "fnr": truth == positive}
    for name, group in groups.items():
        value = getattr(measured, name)
        if group.any():
            assert value == (truth != predicted)[group].sum() / group.sum()
        else:
            assert np.isnan(value)


@given(generators, sizes, st.integers(1, 12), labels, st.data())
def test_a_window_is_the_tail_of_the_stream_however_it_was_cut(rng, n, size, classes, data):
    truth, predicted = outcomes(rng, n, 3, classes)
    window = Window(scopes=3, classes=classes, size=size)
    pages = window.read_pages(np.arange(window.pages))
    for start, stop in pairwise(data.draw(cuts(n))):
        part = slice(start, stop)
        window.push(np.arange(start, stop), truth[part], predicted[part])
        changed = window.changed(stop - start)
        pages[changed] = window.read_pages(changed)
        window = Window(scopes=3, classes=classes, size=size)
        window.put_pages(np.arange(window.pages), pages, stop)
    tail = slice(max(0, n - size), n)
    assert window.rows()[0].tolist() == list(range(n)[tail])
    assert (window.confusion() == confusion(truth[tail], predicted[tail].T, classes)).all()


@given(generators, sizes, st.integers(1, 12), st.integers(1, 4))
def test_windows_of_any_partitions_merge_into_the_window_of_the_stream(rng, n, size, partitions):
    truth, predicted = outcomes(rng, n, 2, 2)
    whole = Window(scopes=2, classes=2, size=size)
    whole.push(np.arange(n), truth, predicted)
    parts = [Window(scopes=2, classes=2, size=size) for _ in range(partitions)]
    home = rng.integers(0, partitions, n)
    for number, part in enumerate(parts):
        mine = np.flatnonzero(home == number)
        part.push(mine, truth[mine], predicted[mine])
    for left, right in zip(merged(parts).rows(), whole.rows(), strict=True):
        assert (left == right).all()


@given(generators, st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_regret_in_parts_is_the_estimate_and_a_bandits_is_never_negative(rng, cubes, rules, full):
    trials = rng.integers(0, 50, (cubes, rules))
    if full:
        trials[:] = trials[:, :1]
    counts = np.concatenate([trials, rng.integers(0, trials + 1)], axis=1)
    if full:
        counts = np.concatenate([counts, rng.integers(0, trials[:, :1] + 1)], axis=1)
    parts = local_regret_parts(counts, rules)
    means = counts[:, rules : 2 * rules] / np.maximum(trials, 1)
    arrivals = trials[:, 0] if full else trials.sum(axis=1)
    hits = counts[:, -1] if full else counts[:, rules:].sum(axis=1)
    estimate = (means.max(axis=1) * arrivals - hits).sum()
    assert np.isclose(parts.sum() / UNIT, estimate, atol=1e-6)
    assert parts.sum() <= trials.sum() * UNIT
    assert full or (parts >= 0).all()


@given(generators, st.integers(1, 30), st.integers(1, 4), st.integers(1, 3))
def test_regrets_agree_where_the_paper_says_they_are_one(rng, n, learners, cubes):
    wrong = rng.random((n, learners)) < 0.4
    cells = rng.integers(0, cubes, n)
    expected = rng.integers(0, UNIT + 1, n)
    losses = np.stack([wrong[cells == p].sum(axis=0) for p in range(cubes)])
    whole = ensemble_regret(expected.sum(), losses.sum(axis=0))
    always_heard = np.repeat(expected.sum(), learners)
    assert awake_regret(always_heard, losses.sum(axis=0)) == whole
    # The benchmark per cube is never worse than the one for all (the paper's lemma).
    assert contextual_regret(expected.sum(), losses) >= whole
    assert contextual_regret(expected.sum(), losses.sum(axis=0, keepdims=True)) == whole
    per_cube = [ensemble_regret(expected[cells == p].sum(), losses[p]) * UNIT for p in range(cubes)]
    assert round(sum(float(x) for x in per_cube)) == round(
        float(contextual_regret(expected.sum(), losses)) * UNIT
    )
