import numpy as np
import pytest

from learners.arrays.tables import DenseTable, SparseTable
from learners.errors import LearnerError
from learners.local.features import Categorical, FeatureSpace, Real, unit_cube
from learners.local.iup import Feedback, Iup, IupConfig
from learners.local.partition import Partition
from learners.local.phases import Doubling, Horizon
from learners.local.scaling import MinMax, Quantile, ZLogistic

SEEDS = np.arange(6, dtype=np.uint64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": 0}, "at least one rule"),
        ({"alpha": 0}, "alpha must be above 0"),
        ({"exploration": -1}, "exploration"),
        ({"weights": (1.0,)}, "one weight above 0 per rule"),
        ({"weights": (1.0, 0.0)}, "one weight above 0 per rule"),
        ({"preferred": 2}, "preferred rule"),
        ({"cuts": 0}, "cuts and max_cuts"),
        ({"max_cuts": 0}, "cuts and max_cuts"),
        ({"backoff": float("inf")}, "backoff"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(change, message):
    with pytest.raises(LearnerError, match=message):
        IupConfig(**{"rules": 2, **change})


def test_more_cells_than_ids_is_an_error_when_the_learner_is_built():
    with pytest.raises(LearnerError, match="64-bit"):
        Iup(unit_cube(64), IupConfig(rules=2, cuts=2))
    assert Partition(unit_cube(62), 2).size == 2**62


def test_ids_beyond_2_53_are_exact():
    partition = Partition(unit_cube(62), 2)
    x = np.zeros((3, 62))
    x[1, 0] = x[2, 0] = x[2, 61] = 1.0
    assert partition.cells(x).tolist() == [0, 1, 1 + 2**61]


def test_dense_or_sparse_by_the_number_of_cells():
    assert isinstance(Iup(unit_cube(10), IupConfig(rules=2, cuts=2)).phase(1).table, DenseTable)
    assert isinstance(Iup(unit_cube(20), IupConfig(rules=2, cuts=4)).phase(1).table, SparseTable)


def test_memory_bound_and_formula_set_the_number_of_cuts():
    def m(**config):
        return Iup(unit_cube(1), IupConfig(rules=2, clock=Horizon(1000), **config)).phase(1)

    assert m().partition.m == 10
    assert m(max_cuts=4).partition.m == 4
    assert m(cuts=7).partition.m == 7


def test_each_category_is_a_cell_and_real_axes_alone_set_the_cuts():
    space = FeatureSpace((Real("a", MinMax(0, 1)), Categorical("b", ("x", "y", "z"))))
    iup = Iup(space, IupConfig(rules=2, clock=Horizon(1000)))
    assert iup.phase(1).partition.m == 10
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 2.0]])
    assert iup.decide(space.unit(rows), SEEDS[:4]).cubes.tolist() == [0, 10, 20, 29]


def test_only_categories_means_one_cell_per_combination():
    space = FeatureSpace((Categorical("a", ("p", "q")), Categorical("b", ("x", "y", "z"))))
    assert Iup(space, IupConfig(rules=2)).phase(1).partition.size == 6


def test_the_weight_of_a_rule_moves_the_choice():
    def choice(weights):
        config = IupConfig(rules=2, cuts=1, exploration=0.0, weights=weights, preferred=0)
        iup = Iup(unit_cube(1), config)
        x = np.zeros((10, 1))
        cubes = np.zeros(10, np.int64)
        for rule, hits in ((0, 6), (1, 9)):
            correct = np.zeros((10, 2), np.bool_)
            correct[:hits, rule] = True
            iup.learn(1, cubes, np.full(10, rule), correct)
        return iup.decide(x[:1], SEEDS[:1])

    assert choice(None).rules.tolist() == [1]
    favoured = choice((2.0, 1.0))
    assert favoured.rules.tolist() == [0]
    assert favoured.exploring.tolist() == [True], "the mean alone would have chosen rule 1"


def test_ties_go_to_the_preferred_rule_or_to_a_hash_that_repeats():
    x = np.zeros((1000, 1))
    seeds = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64)
    preferred = Iup(unit_cube(1), IupConfig(rules=3, preferred=2)).decide(x, seeds)
    assert (preferred.rules == 2).all()
    hashed = Iup(unit_cube(1), IupConfig(rules=3))
    share = np.bincount(hashed.decide(x, seeds).rules, minlength=3) / 1000
    assert np.abs(share - 1 / 3).max() < 0.06
    assert (hashed.decide(x, seeds).rules == hashed.decide(x, seeds).rules).all()


def test_late_feedback_counts_in_the_phase_of_its_decision():
    iup = Iup(unit_cube(1), IupConfig(rules=2, clock=Doubling(2), cuts=1))
    early = iup.decide(np.zeros((6, 1)), SEEDS)
    hits = np.ones((1, 2), np.bool_)
    for i in range(6):
        iup.learn(np.full(1, early.phase), early.cubes[i : i + 1], early.rules[i : i + 1], hits)
    assert iup.current == 3, "phases last 2, 4, 8 …"
    assert iup.tables()[1].items()[1][0, :2].sum() == 6
    fresh = iup.decide(np.zeros((1, 1)), SEEDS[:1])
    assert (fresh.phase, fresh.trials[0]) == (3, 0)


def test_full_feedback_keeps_the_hits_of_the_chosen_rule():
    iup = Iup(unit_cube(1), IupConfig(rules=2, cuts=1, feedback=Feedback.FULL))
    correct = np.array([[True, False], [False, True], [True, True]])
    iup.learn(1, np.zeros(3, np.int64), np.array([0, 0, 1]), correct)
    assert iup.tables()[1].items()[1].tolist() == [[3, 3, 2, 2, 2]]


def test_a_thin_cube_follows_the_coarser_cells_and_a_full_one_itself():
    config = IupConfig(
        rules=2, cuts=4, exploration=0.0, feedback=Feedback.FULL, backoff=2.0, preferred=0
    )
    iup = Iup(unit_cube(1), config)
    elsewhere = np.array([[False, True]] * 10)
    iup.learn(1, np.zeros(10, np.int64), np.zeros(10, np.int64), elsewhere)
    thin = iup.decide(np.array([[0.9]]), SEEDS[:1])
    assert thin.rules.tolist() == [1], "rule 1 is better elsewhere"
    assert (thin.trials.tolist(), 0.5 < thin.accuracy[0] < 1.0) == ([0], True)
    here = np.array([[True, False]] * 40)
    iup.learn(1, np.full(40, 3), np.zeros(40, np.int64), here)
    assert iup.decide(np.array([[0.9]]), SEEDS[:1]).rules.tolist() == [0]
    assert iup.decide(np.array([[0.0]]), SEEDS[:1]).rules.tolist() == [1]


def test_a_restored_learner_decides_like_the_one_that_was_saved():
    config = IupConfig(rules=2, cuts=3, feedback=Feedback.FULL, backoff=1.5)
    rng = np.random.default_rng(4)
    iup = Iup(unit_cube(2), config)
    x = rng.random((300, 2))
    seeds = rng.integers(0, 2**64, 300, dtype=np.uint64)
    choices = iup.decide(x, seeds)
    iup.learn(choices.phase, choices.cubes, choices.rules, rng.random((300, 2)) < 0.7)
    again = Iup(unit_cube(2), config)
    again.labelled = iup.labelled
    for phase, table in iup.tables().items():
        again.restore(phase, *table.items())
    np.testing.assert_array_equal(iup.decide(x, seeds).accuracy, again.decide(x, seeds).accuracy)


@pytest.mark.parametrize(
    "build",
    [
        lambda: MinMax(1.0, 1.0),
        lambda: MinMax(0.0, float("inf")),
        lambda: ZLogistic(0.0, 0.0),
        lambda: ZLogistic(float("nan"), 1.0),
        lambda: Quantile((1.0,)),
        lambda: Quantile((2.0, 1.0)),
        lambda: MinMax.fit([]),
        lambda: ZLogistic.fit([1.0, float("nan")]),
        lambda: Categorical("a", ()),
        lambda: Categorical("a", ("x", "x")),
        lambda: FeatureSpace(()),
        lambda: FeatureSpace((Real("a", MinMax(0, 1)), Real("a", MinMax(0, 1)))),
        lambda: Partition(unit_cube(1), 0),
        lambda: Horizon(0),
        lambda: Doubling(0),
        lambda: DenseTable(3, 2).merge(DenseTable(3, 3)),
        lambda: SparseTable(2, np.int32),
    ],
)
def test_what_cannot_be_built_says_so(build):
    with pytest.raises(LearnerError):
        build()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 3)), "shape"),
        (np.array([[np.nan, 0.0]]), "finite"),
        (np.array([[0.0, 2.0]]), "unknown category"),
        (np.array([[0.0, 0.5]]), "unknown category"),
    ],
)
def test_rows_are_checked_where_data_enters(rows, message):
    space = FeatureSpace((Real("a", MinMax(0, 1)), Categorical("b", ("x", "y"))))
    space.check(np.array([[3.0, 1.0]]))
    with pytest.raises(LearnerError, match=message):
        space.check(rows)


def test_mixed_features_scale_and_expand_by_column():
    space = FeatureSpace(
        (
            Real("a", MinMax(0, 10)),
            Categorical("b", ("x", "y")),
            Real("c", ZLogistic(5.0, 2.0)),
            Real("d", Quantile((0.0, 1.0, 10.0))),
        )
    )
    rows = np.array([[5.0, 1.0, 5.0, 1.0], [-3.0, 0.0, 1e9, 5.5]])
    np.testing.assert_allclose(space.unit(rows), [[0.5, 0.75, 0.5, 0.5], [0.0, 0.25, 1.0, 0.75]])
    assert space.expanded_names == ("a", "b=x", "b=y", "c", "d")
    np.testing.assert_array_equal(space.expand(rows)[:, 1:3], [[0, 1], [1, 0]])
    named = space.columns(rows)
    assert named["b"].tolist() == ["y", "x"]
    assert named["a"].tolist() == [5.0, -3.0]
