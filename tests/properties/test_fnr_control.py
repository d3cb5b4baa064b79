"""The controller's guarantee holds for every stream, and its state for every order and cut."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.single_pass.fnr_control import FnrControl
from tests.strategies import cuts, generators

chances = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0]))
controls = st.builds(
    FnrControl,
    st.just(1),
    target=st.sampled_from([0.01, 0.03, 0.2, 0.5, 0.9]),
    step=st.sampled_from([0.05, 0.5, 3.0]),
    limit=st.sampled_from([0.5, 4.0, 8.0]),
    prior=st.sampled_from([-0.5, 0.0, 0.5]),
)


def bar(control):
    return control.log_h(np.zeros(1, np.int64))[0]


def support(p):
    return np.array([[1.0 - p, p]])


def stream(control, scores, truth, waiting=0):
    """Decide one by one; labels of positives come `waiting` instances later."""
    issued = []
    for t, p in enumerate(scores):
        issued.append(control.decide(np.zeros(1, np.int64), support(p)))
        if t >= waiting:
            control.learn(issued[t - waiting], truth[t - waiting : t - waiting + 1])
    for t in range(max(0, len(scores) - waiting), len(scores)):
        control.learn(issued[t], truth[t : t + 1])


@given(controls, st.lists(st.tuples(chances, st.booleans()), max_size=200))
def test_fnr_is_within_its_bound_on_any_stream(control, items):
    truth = np.array([int(positive) for _, positive in items], np.int64)
    stream(control, [p for p, _ in items], truth)
    n = control.caught + control.missed
    assert n == truth.sum()
    assert n == 0 or abs(control.missed / n - control.target) <= control.bound() + 1e-12


@given(controls, generators, st.integers(0, 20))
def test_the_bound_holds_against_an_adversary_and_with_late_labels(control, rng, waiting):
    n = 300
    # All positives; scores swing between hopeless and certain at the worst moments.
    scores = np.where(np.sin(np.arange(n) / rng.integers(1, 60)) > 0, 0.0, 1.0)
    scores = np.where(rng.random(n) < 0.1, rng.random(n), scores)
    stream(control, scores, np.ones(n, np.int64), waiting)
    assert control.caught + control.missed == n
    bound = control.bound(n, waiting=waiting)
    assert abs(control.missed / n - control.target) <= bound + 1e-12


@given(generators, st.data())
def test_counts_depend_neither_on_order_nor_on_batches(rng, data):
    n = 60
    issued, truth = rng.integers(-1, 2, n), rng.integers(0, 2, n)
    whole, parts, shuffled = FnrControl(1), FnrControl(1), FnrControl(1)
    whole.learn(issued, truth)
    ends = data.draw(cuts(n))
    for start, stop in itertools.pairwise(ends):
        parts.learn(issued[start:stop], truth[start:stop])
    order = rng.permutation(n)
    shuffled.learn(issued[order], truth[order])
    assert bar(whole) == bar(parts) == bar(shuffled)
    half, second_half = FnrControl(1), FnrControl(1)
    half.learn(issued[: n // 2], truth[: n // 2])
    second_half.learn(issued[n // 2 :], truth[n // 2 :])
    half.table.merge(second_half.table)
    assert bar(half) == bar(whole)
