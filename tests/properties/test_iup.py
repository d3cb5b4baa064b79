from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.local.features import unit_cube
from learners.local.iup import Feedback, Iup, IupConfig
from learners.local.partition import Partition
from learners.local.phases import Doubling, Horizon
from tests.reference.iup import PaperDoubling, PaperIup
from tests.strategies import cuts, generators


def stream(rng, n, d, rules, grid=4):
    """Points on a coarse grid (so that cubes fill and edges are met), rules' hits, seeds."""
    x = rng.integers(0, grid + 1, (n, d)) / grid
    return x, rng.random((n, rules)) < rng.random(rules), rng.integers(0, 2**64, n, dtype=np.uint64)


def number(cube, m):
    return sum(digit * m**j for j, digit in enumerate(cube))


def run_both(iup, paper, data, batches, feedback):
    """Feed both the same batches: decide a whole batch, then learn it."""
    x, correct, seeds = data
    for start, stop in pairwise(batches):
        span = slice(start, stop)
        choices = iup.decide(x[span], seeds[span])
        expected = [paper.decide(x[i], int(seeds[i])) for i in range(start, stop)]
        assert choices.cubes.tolist() == [number(p, paper.m) for p, _, _ in expected]
        assert choices.rules.tolist() == [a for _, a, _ in expected]
        assert choices.exploring.tolist() == [e for _, _, e in expected]
        assert choices.trials.tolist() == [paper.N.get((a, p), 0) for p, a, _ in expected]
        iup.learn(choices.phase, choices.cubes, choices.rules, correct[span])
        for i, (p, a, _) in zip(range(start, stop), expected, strict=True):
            for f in range(paper.rules) if feedback is Feedback.FULL else [a]:
                paper.learn(p, f, correct[i, f])


@pytest.mark.parametrize("feedback", Feedback)
@settings(max_examples=60)
@given(
    rng=generators,
    d=st.integers(1, 3),
    m=st.integers(1, 4),
    rules=st.integers(1, 4),
    c=st.sampled_from([0.0, 0.001, 0.1, 1.0]),
    weighted=st.booleans(),
    prefer=st.booleans(),
    batches=cuts(60),
)
def test_equals_the_papers_pseudocode(feedback, rng, d, m, rules, c, weighted, prefer, batches):
    weights = rng.uniform(0.5, 2.0, rules).tolist() if weighted else None
    preferred = int(rng.integers(rules)) if prefer else None
    config = IupConfig(
        rules=rules,
        clock=Horizon(60),
        exploration=c,
        feedback=feedback,
        weights=weights,
        preferred=preferred,
        cuts=m,
    )
    paper = PaperIup(60, m, d, rules, c, weights, preferred)
    run_both(Iup(unit_cube(d), config), paper, stream(rng, 60, d, rules), batches, feedback)


@settings(max_examples=40)
@given(rng=generators, d=st.integers(1, 2), rules=st.integers(1, 3), first=st.integers(1, 9))
def test_doubling_equals_the_papers_footnote(rng, d, rules, first):
    iup = Iup(unit_cube(d), IupConfig(rules=rules, clock=Doubling(first), alpha=1.0))
    paper = PaperDoubling(first, 1.0, d, rules)
    x, correct, seeds = stream(rng, 80, d, rules)
    for i in range(80):
        phase = paper.now()
        p, a, exploring = phase.decide(x[i], int(seeds[i]))
        choices = iup.decide(x[i : i + 1], seeds[i : i + 1])
        assert choices.phase == paper.j
        assert (choices.cubes[0], choices.rules[0]) == (number(p, phase.m), a)
        assert choices.exploring[0] == exploring
        iup.learn(choices.phase, choices.cubes, choices.rules, correct[i : i + 1])
        phase.learn(p, a, correct[i, a])
        paper.step()


def filled(rng, sparse_cuts=3, feedback=Feedback.FULL, backoff=0.0, n=200):
    config = IupConfig(
        rules=2, clock=Doubling(50), cuts=sparse_cuts, feedback=feedback, backoff=backoff
    )
    iup = Iup(unit_cube(2), config)
    x, correct, seeds = stream(rng, n, 2, 2)
    return iup, x, correct, seeds


@pytest.mark.parametrize("feedback", Feedback)
@pytest.mark.parametrize("backoff", [0.0, 3.0])
@settings(max_examples=25)
@given(rng=generators, batches=cuts(200))
def test_counts_of_partitions_merge_exactly(feedback, backoff, rng, batches):
    """Any split of the labelled stream over partitions gives the tables of the whole."""
    whole, x, correct, seeds = filled(rng, feedback=feedback, backoff=backoff)
    choices = whole.decide(x, seeds)
    phases = rng.integers(1, 4, 200)
    whole.learn(phases, choices.cubes, choices.rules, correct)
    merged = Iup(whole.space, whole.config)
    for start, stop in pairwise(batches):
        part = Iup(whole.space, whole.config)
        span = slice(start, stop)
        part.learn(phases[span], choices.cubes[span], choices.rules[span], correct[span])
        merged.merge(part)
    assert merged.labelled == whole.labelled
    for phase, table in whole.tables().items():
        ids, rows = table.items()
        other_ids, other_rows = merged.phase(phase).table.items()
        np.testing.assert_array_equal(ids, other_ids)
        np.testing.assert_array_equal(rows, other_rows)
    np.testing.assert_array_equal(whole.decide(x, seeds).accuracy, merged.decide(x, seeds).accuracy)


@given(rng=generators)
def test_deciding_changes_nothing(rng):
    iup, x, correct, seeds = filled(rng)
    choices = iup.decide(x, seeds)
    iup.learn(choices.phase, choices.cubes, choices.rules, correct)
    before = {p: t.items() for p, t in iup.tables().items()}
    first, second = iup.decide(x, seeds), iup.decide(x, seeds)
    assert first.rules.tolist() == second.rules.tolist()
    for phase, (ids, rows) in before.items():
        np.testing.assert_array_equal(ids, iup.tables()[phase].items()[0])
        np.testing.assert_array_equal(rows, iup.tables()[phase].items()[1])


@given(rng=generators, m=st.integers(1, 5))
def test_coarser_cells_contain_the_finer_ones(rng, m):
    partition = Partition(unit_cube(3), m)
    cells = partition.cells(rng.random((300, 3)))
    for level in partition.coarser:
        coarse = level.cells(cells)
        assert coarse.min() >= 0
        assert coarse.max() < level.size
        assert all(len(set(coarse[cells == cell])) == 1 for cell in set(cells.tolist()))
    if m > 1:
        assert partition.coarser[-1].size == 1


class Away:
    """What another learner of the same kind counted."""

    def __init__(self, iup):
        self._other = iup
        self.labelled = iup.labelled

    def rows(self, phase, cubes):
        return self._other.phase(phase).table.rows(cubes)

    def items(self, phase):
        return self._other.phase(phase).table.items()


@pytest.mark.parametrize("backoff", [0.0, 3.0])
@settings(max_examples=25)
@given(rng=generators, cut=st.integers(0, 200))
def test_deciding_by_the_sum_equals_deciding_by_the_merged_table(backoff, rng, cut):
    whole, x, correct, seeds = filled(rng, backoff=backoff)
    choices = whole.decide(x, seeds)
    parts = [Iup(whole.space, whole.config) for _ in range(2)]
    for part, span in zip(parts, (slice(0, cut), slice(cut, 200)), strict=True):
        part.learn(choices.phase, choices.cubes[span], choices.rules[span], correct[span])
    whole.learn(choices.phase, choices.cubes, choices.rules, correct)
    parts[0].elsewhere = Away(parts[1])
    together, apart = whole.decide(x, seeds), parts[0].decide(x, seeds)
    assert together.phase == apart.phase
    for field in ("cubes", "rules", "exploring", "trials", "successes"):
        np.testing.assert_array_equal(getattr(together, field), getattr(apart, field))
    np.testing.assert_array_equal(together.accuracy, apart.accuracy)
