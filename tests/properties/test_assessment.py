"""The guarantee of referral holds on every stream, and what is counted on every order and cut."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.assessment.assessment import Assessment, counts_of
from learners.assessment.bins import MILLION, SUPPORT_BINS, millionths, support_bins
from learners.assessment.referral import furthest
from learners.fusion.base import FusedPredictions
from learners.theory.promises import miss_rate_gaps
from tests.strategies import cuts, generators

shares = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0]))
targets = st.sampled_from([0.01, 0.05, 0.3, 0.9])


def fused(support):
    none = np.zeros((len(support), 0), np.int64)
    return FusedPredictions(support.argmax(axis=1), none, none, support)


def run(assessment, supports, truth, late=0):
    """Decide one by one; labels come `late` patients later, the last ones at the end."""
    decisions = []
    for t in range(len(truth) + late):
        if t < len(truth):
            assessed = assessment.assess(fused(supports[t : t + 1]))
            decisions.append((assessed.labels, assessed.kept))
        if t >= late:
            labels, sure = decisions[t - late]
            assessment.learn(labels, truth[t - late : t - late + 1], sure)


def gaps(assessment, late=0):
    """Return by how much each label's miss rate breaks its guarantee, which it must not."""
    counts = counts_of(assessment.rows)
    for target, cases, missed in zip(assessment.targets, counts.cases, counts.missed, strict=True):
        if cases and not np.isnan(target):
            below, above = furthest(target, int(cases), late)
            yield missed / cases - target - above
            yield target - below - missed / cases


def test_patients_without_an_opinion_are_not_counted_by_support():
    assessment = Assessment(2)
    silent = np.zeros((1, 2))
    run(assessment, np.repeat(silent, 100, axis=0), np.arange(100) % 2)
    counts = counts_of(assessment.rows)
    assert counts.cases.tolist() == [50, 50]
    assert counts.support_cases.sum() == counts.support_hits.sum() == 0
    assessed = assessment.assess(fused(np.array([[1e-6, 1.0 - 1e-6], [0.0, 0.0]])))
    assert assessed.chance[0, 1] > 0.98, "what is known of them says nothing about the sure"
    assert assessed.chance[1].tolist() == [0.5, 0.5]


@settings(max_examples=15)
@given(targets, generators, st.integers(50, 200))
def test_patients_without_an_opinion_leave_the_bars_where_they_are(target, rng, silent):
    """They cannot be missed; counted, they would be made up for by misses among those that come."""
    truth = rng.integers(0, 2, 80)
    p = rng.random(80)
    heard, outage = np.stack([1 - p, p], axis=1), np.zeros((silent, 2))
    spoken, interrupted = Assessment(2, (target, target)), Assessment(2, (target, target))
    run(spoken, heard, truth)
    run(interrupted, np.concatenate([heard[:40], outage]), np.r_[truth[:40], np.ones(silent, int)])
    run(interrupted, heard[40:], truth[40:])
    ours, theirs = counts_of(spoken.rows), counts_of(interrupted.rows)
    assert (ours.missed == theirs.missed).all()
    assert theirs.cases.sum() == ours.cases.sum() + silent


def test_no_interval_is_forgotten_while_it_is_needed(monkeypatch):
    monkeypatch.setattr("learners.assessment.assessment._REMEMBERED", 2)
    assessment = Assessment(2)
    supports = np.array([[0.9, 0.1], [0.4, 0.6], [0.1, 0.9], [0.02, 0.98]])
    run(assessment, np.repeat(supports, 3, axis=0), np.tile([0, 1, 1], 4))
    for _ in range(3):  # the first are known by then, and oldest
        records = assessment.assess(fused(supports)).records
    assert all(low <= right / max(cases, 1) <= high for cases, right, low, high in records)


@given(targets, targets, st.lists(st.tuples(shares, st.booleans()), max_size=150))
def test_miss_rates_are_within_their_bounds_on_any_stream(first, second, items):
    truth = np.array([int(label) for _, label in items], np.int64)
    supports = np.array([[1.0 - p, p] for p, _ in items]).reshape(-1, 2)
    # Support of 0 for all labels means no opinion, which does not occur in this stream.
    assessment = Assessment(2, (first, second))
    run(assessment, supports, truth)
    assert max(gaps(assessment), default=0.0) <= 1e-9


@given(targets, generators, st.integers(0, 20), st.sampled_from([1, 7, 60]))
def test_the_bounds_hold_against_an_adversary_and_with_late_labels(target, rng, late, period):
    n = 300
    # Supports swing between hopeless and certain, and the other label comes in between.
    p = np.where(np.sin(np.arange(n) / period) > 0, 0.0, 1.0)
    p = np.where(rng.random(n) < 0.1, rng.random(n), p)
    assessment = Assessment(2, (target, target))
    run(assessment, np.stack([1 - p, p], axis=1), (rng.random(n) < 0.7).astype(np.int64), late)
    assert max(gaps(assessment, late)) <= 1e-9


@settings(max_examples=25)
@given(targets, generators, st.booleans(), st.booleans())
def test_the_bounds_widen_by_what_corrections_can_do(target, rng, missed_first, withdrawn):
    """Whoever corrects sees the counts, and takes back the caught patients alone, or the missed."""
    n, assessment = 250, Assessment(2, (target, target))
    p, truth = rng.random(n), (rng.random(n) < 0.7).astype(np.int64)
    corrected, correctable = np.zeros(2, np.int64), []
    for t in range(n):
        assessed = assessment.assess(fused(np.array([[1.0 - p[t], p[t]]])))
        labels, kept, label = assessed.labels, assessed.kept, truth[t : t + 1]
        assessment.learn(labels, label, kept)
        if assessed.possible[0, label[0]] != missed_first:
            correctable.append((labels, label, kept))
        for _ in range(len(correctable) if t % 100 == 99 else 0):
            labels, label, kept = correctable.pop()
            assessment.learn(labels, label, kept, sign=-1)
            corrected[label] += 1
            if not withdrawn:
                assessment.learn(labels, 1 - label, kept)
                corrected[1 - label] += 1
        counts = counts_of(assessment.rows)
        for k, (cases, missed) in enumerate(zip(counts.cases, counts.missed, strict=True)):
            below, above = miss_rate_gaps(target, int(cases), corrected=int(corrected[k]))
            assert not cases or -below - 1e-9 <= missed / cases - target <= above + 1e-9


@given(generators, st.integers(2, 4), st.data())
def test_what_is_counted_does_not_depend_on_order_or_cut(rng, classes, data):
    n = 40
    support = rng.dirichlet(np.ones(classes), n)
    assessed = Assessment(classes, (0.1,) * classes).assess(fused(support))
    truth = rng.integers(0, classes, n)
    columns = [assessed.labels, truth, np.array(assessed.kept, object)]
    whole, pieces = Assessment(classes), [Assessment(classes), Assessment(classes)]
    whole.learn(*columns)
    order = rng.permutation(n)
    for number, (start, end) in enumerate(itertools.pairwise(data.draw(cuts(n)))):
        part = order[start:end]
        pieces[number % 2].learn(*(column[part] for column in columns))
    assert (pieces[0].rows + pieces[1].rows == whole.rows).all()


@given(generators, st.integers(2, 4), st.integers(1, 200))
def test_labels_have_their_chances_in_the_order_of_their_supports(rng, classes, labelled):
    support = rng.dirichlet(np.full(classes, 0.5), 60)
    assessment = Assessment(classes)
    taught = support[rng.integers(0, 60, labelled)]
    assessed = assessment.assess(fused(taught))
    # Labels at random: whatever was counted is noise, or contradicts the support.
    assessment.learn(assessed.labels, rng.integers(0, classes, labelled), assessed.kept)
    chance = assessment.assess(fused(support)).chance
    order = support.argsort(axis=1)
    assert (np.diff(np.take_along_axis(chance, order, axis=1), axis=1) >= 0.0).all()


@given(st.lists(st.integers(0, MILLION), min_size=1))
def test_every_support_has_one_bin_and_more_support_no_lower_one(parts):
    ordered = np.sort(np.array(parts, np.int64))
    bins, along = support_bins(ordered)
    place = bins + along
    assert (np.diff(place) >= 0).all()
    assert ((bins >= 0) & (bins < SUPPORT_BINS) & (along >= 0) & (along <= 1)).all()
    assert (millionths(ordered / MILLION) == ordered).all()
