"""Each learning rule against its formulas, computed another way."""

import numpy as np
import pytest

from learners.errors import LearnerError
from learners.local.features import unit_cube
from learners.rules.base import LearningRule, RuleError
from learners.rules.bayes import BayesianLogistic
from learners.rules.lda import RankLda
from learners.rules.logistic import Logistic
from learners.rules.naive_bayes import NaiveBayes
from learners.rules.odds import from_scores, sigmoid
from learners.rules.rule_committee import Committee, kdi
from tests.unit.learners.rules.samples import (
    CATEGORIES,
    LEARNING,
    MIXED,
    REALS,
    learning_rule,
    same,
    stream,
)


def test_odds_of_scores_far_apart():
    scores = np.array([[0.0, 800.0, -800.0], [1.0, 1.0, 1.0], [-1e6, 0.0, 1e6]])
    odds = from_scores(scores)
    np.testing.assert_allclose(odds[0], [-800.0, 800.0, -1600.0])
    np.testing.assert_allclose(odds[1], [-np.log(2.0)] * 3)
    np.testing.assert_allclose(odds[2], [-2e6, -1e6, 1e6])


@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_logistic_equals_the_formula(l2):
    rows, truth = stream(np.random.default_rng(0), 150, classes=3)
    rule = Logistic("l", REALS, 3, rate=0.3, l2=l2)
    z = Logistic("l", REALS, 3).scaler.learn(rule.columns.raw(rows))
    x = np.column_stack([z, np.ones(len(z))])
    w = np.zeros((3, 4))
    for row, y in zip(x, truth, strict=True):
        for label in range(3):
            pull = 0.3 * l2 * w[label] * [1, 1, 1, 0]
            w[label] += 0.3 * ((y == label) - sigmoid(w[label] @ row)) * row - pull
    rule.learn(rows, truth)
    np.testing.assert_allclose(rule.weights, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("space", [REALS, MIXED], ids=["real", "mixed"])
def test_lda_equals_the_formula(classes, space):
    rows, truth = stream(np.random.default_rng(1), 150, space, classes)
    rule = RankLda("d", space, classes, prior=10.0)
    shadow = RankLda("d", space, classes)
    u = shadow.scaler.learn(shadow.columns.raw(rows)) * np.sqrt(3.0)  # to variance 1
    rule.learn(rows[:-1], truth[:-1])
    past, y, now = u[:-1], truth[:-1], u[-1]
    n = np.bincount(y, minlength=classes)
    scatter = 10.0 * np.eye(u.shape[1])
    for c in range(classes):
        own = past[y == c]
        scatter += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
    mean = np.array([past[y == c].mean(axis=0) * n[c] / (n[c] + 1) for c in range(classes)])
    inverse = np.linalg.inv(scatter / len(y))
    scores = mean @ inverse @ now - 0.5 * np.einsum("ci,ij,cj->c", mean, inverse, mean)
    scores += np.log(n + 1)
    np.testing.assert_allclose(rule.log_odds(rows[-1:]), from_scores(scores[None]), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_binned_naive_bayes_equals_counting(classes):
    rows, truth = stream(np.random.default_rng(2), 200, MIXED, classes)
    rule = NaiveBayes("n", MIXED, classes, likelihood="binned", bins=4)
    rule.learn(rows[:-1], truth[:-1])

    def bins(x):
        unit = np.clip((x + 3.0) / 6.0, 0.0, 1.0)
        real = np.minimum(np.floor(unit * 4), 3)
        return np.where([True, False, True, False], real, x).astype(int)

    past, y, now = bins(rows[:-1]), truth[:-1], bins(rows[-1])
    scores = []
    for c in range(classes):
        own = past[y == c]
        chances = [
            ((own[:, j] == now[j]).sum() + 1) / (len(own) + size)
            for j, size in enumerate([4, 2, 4, 3])
        ]
        scores.append(np.log(len(own) + 1) + np.log(chances).sum())
    np.testing.assert_allclose(rule.log_odds(rows[-1:]), from_scores(np.array([scores])))


def test_binned_naive_bayes_ignores_the_order():
    rows, truth = stream(np.random.default_rng(3), 200, MIXED)
    table = LEARNING["naive bayes, binned"]
    there, back = learning_rule(table, MIXED), learning_rule(table, MIXED)
    there.learn(rows, truth)
    back.learn(rows[::-1], truth[::-1])
    assert same(there.state(), back.state())
    parts = [learning_rule(table, MIXED) for _ in range(3)]
    for part, cut in zip(parts, np.array_split(np.arange(200), 3), strict=True):
        part.learn(rows[cut], truth[cut])
    merged = there.average([part.state() for part in parts], [67, 67, 66])
    assert same(merged, there.state())


def test_gaussian_naive_bayes_equals_the_formula():
    rows, truth = stream(np.random.default_rng(4), 150)
    rule = NaiveBayes("n", REALS, 2)
    rule.learn(rows[:-1], truth[:-1])
    past, y, now = rows[:-1], truth[:-1], rows[-1]
    scores = []
    for c in range(2):
        own = past[y == c]
        mean = (own.sum(axis=0) + rows.mean(axis=0)) / (len(own) + 1)
        scatter = ((own - own.mean(axis=0)) ** 2).sum(axis=0)
        variance = (scatter + rows.var(axis=0)) / (len(own) + 1)
        density = -0.5 * (np.log(variance) + (now - mean) ** 2 / variance)
        scores.append(np.log(len(own) + 1) + density.sum())
    np.testing.assert_allclose(rule.log_odds(rows[-1:]), from_scores(np.array([scores])), rtol=1e-7)


def test_gaussian_naive_bayes_counts_categories():
    rule = NaiveBayes("n", CATEGORIES, 2)
    rows = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 1.0]])
    rule.learn(rows, np.array([0, 0, 1]))
    # label 1: (1+1) share, sex m 2 of 3, ward b 2 of 4; label 0: (2+1), 1 of 4, 2 of 5
    zero = np.log(3) + np.log(1 / 4) + np.log(2 / 5)
    mine = np.log(2) + np.log(2 / 3) + np.log(2 / 4)
    np.testing.assert_allclose(rule.log_odds(np.array([[1.0, 1.0]]))[0, 1], mine - zero)


class TestCommittee:
    def test_the_mean_of_clipped_log_odds(self):
        rows, truth = stream(np.random.default_rng(5), 400, outliers=0.0)
        rule = kdi("team", REALS, 2, seed=1)
        rule.learn(rows, truth)
        clipped = [np.clip(member.log_odds(rows), -5.0, 5.0) for member in rule.members]
        np.testing.assert_allclose(rule.log_odds(rows), np.mean(clipped, axis=0), rtol=1e-12)
        assert [member.name for member in rule.members] == ["team/K", "team/D", "team/I"]
        tight = Committee("tight", REALS, 2, rule.members, clip=0.01)
        assert abs(tight.log_odds(rows)).max() <= 0.01

    def test_a_member_that_fails_leaves_all_as_they_were(self):
        class Fails(Logistic):
            fallible = True

            def _learn(self, rows, truth):
                raise ZeroDivisionError("17.5")

        rule = Committee("team", REALS, 2, [Logistic("fine", REALS, 2), Fails("bad", REALS, 2)])
        rows, truth = stream(np.random.default_rng(6), 5)
        before = rule.state()
        with pytest.raises(RuleError, match=r"^rule bad raised ZeroDivisionError at test_learning"):
            rule.learn(rows, truth)
        assert same(before, rule.state())

    def test_members_must_fit(self):
        with pytest.raises(LearnerError, match="at least one member"):
            Committee("team", REALS, 2, [])
        with pytest.raises(LearnerError, match="share its features and labels"):
            Committee("team", REALS, 2, [Logistic("l", MIXED, 2)])


class TestPolicy:
    rows, truth = stream(np.random.default_rng(7), 4)

    @pytest.mark.parametrize(
        ("rows", "truth", "message"),
        [
            (rows[:, :2], truth, "shape"),
            (np.full_like(rows, np.inf), truth, "finite"),
            (rows, truth[:3], "one label index per row"),
            (rows, truth.astype(np.float64), "one label index per row"),
            (rows, truth - 9, "outside the set"),
            (rows, truth + 2, "outside the set"),
        ],
    )
    def test_what_is_refused_changes_nothing(self, rows, truth, message):
        rule = learning_rule(LEARNING["committee"])
        before = rule.state()
        with pytest.raises(LearnerError, match=message):
            rule.learn(rows, truth)
        assert same(before, rule.state())

    def test_no_rows_are_no_work(self):
        rule = learning_rule(LEARNING["committee"])
        before = rule.state()
        rule.learn(self.rows[:0], self.truth[:0])
        assert same(before, rule.state())
        assert rule.predict(self.rows[:0]).shape == (0,)
        assert rule.log_odds(self.rows[:0]).shape == (0, 2)

    def test_log_odds_that_are_not_finite_are_refused(self):
        class Vague(Logistic):
            def _log_odds(self, rows):
                return super()._log_odds(rows) + np.array([0.0, np.nan])

        with pytest.raises(RuleError, match="rule vague returned log-odds that are not finite"):
            Vague("vague", REALS, 2).predict(self.rows)

    def test_log_odds_of_a_wrong_shape_are_refused(self):
        class Narrow(Logistic):
            def _log_odds(self, rows):
                return np.zeros((len(rows), 1))

        with pytest.raises(RuleError, match="returned no 4 x 2 log-odds"):
            Narrow("n", REALS, 2).predict(self.rows)

    @pytest.mark.parametrize("table", LEARNING.values(), ids=LEARNING.keys())
    def test_a_state_that_does_not_fit_is_refused(self, table):
        rule, foreign = learning_rule(table), learning_rule(table, MIXED, 3)
        with pytest.raises(LearnerError, match="a stored rule does not fit its settings"):
            rule.restore(foreign.state())
        with pytest.raises(LearnerError, match="a stored rule does not fit its settings"):
            rule.restore({})

    def test_average_needs_a_count_per_state(self):
        rule = learning_rule(LEARNING["logistic"])
        for states, counts in (([], []), ([rule.state()], [1, 2]), ([rule.state()], [-1])):
            with pytest.raises(LearnerError, match="average needs one count per state"):
                rule.average(states, counts)

    def test_average_is_weighted_by_the_counts(self):
        rule = Logistic("l", unit_cube(1), 2)
        states = []
        for weight in (1.0, 5.0):
            rule.weights = np.array([[weight, 0.0]])
            states.append(rule.state())
        assert rule.average(states, [3, 1])["weights"].tolist() == [[2.0, 0.0]]

    def test_a_rule_without_a_way_to_average_says_so(self):
        class Lonely(Logistic):
            averages = property(lambda self: False)

        rule = Lonely("lonely", REALS, 2)
        with pytest.raises(LearnerError, match="rule lonely cannot be combined over partitions"):
            rule.average([rule.state()], [1])
        team = Committee("team", REALS, 2, [Logistic("l", REALS, 2), rule])
        assert not team.averages
        assert isinstance(team, LearningRule)


@pytest.mark.parametrize("fourier", [60, 200])
def test_wide_models_do_not_depend_on_the_batch(fourier):
    """BLAS takes other paths for matrices of this size than for the small ones of the contract."""
    generator = np.random.default_rng(8)
    space = unit_cube(10)
    rows, truth = stream(generator, 160, space, outliers=0.0)
    whole, cut = (BayesianLogistic("b", space, 2, fourier=fourier) for _ in range(2))
    whole.learn(rows, truth)
    for start, stop in ((0, 1), (1, 8), (8, 95), (95, 160)):
        cut.learn(rows[start:stop], truth[start:stop])
    assert same(whole.state(), cut.state())
    alone = np.concatenate([whole.log_odds(row[None]) for row in rows])
    assert alone.tobytes() == whole.log_odds(rows).tobytes()
