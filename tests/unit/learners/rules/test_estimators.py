"""Exported scikit-learn models say what the models say."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from learners.errors import LearnerError
from learners.local.features import MinMax, real_features
from learners.rules.estimators import export_linear, from_estimator
from learners.rules.registry import make_rule


def problem(load):
    data = load()
    names = np.array([str(name) for name in data.target_names])
    columns = [name.replace(" ", "_") for name in data.feature_names]
    space = real_features(columns, [MinMax(0.0, 1.0)] * len(columns))
    return data.data, names[data.target], space


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two", "three labels"])
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(), RidgeClassifier()], ids=repr)
@pytest.mark.parametrize(
    "scaler",
    [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), None],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_predictions(load, model, scaler):
    x, y, space = problem(load)
    fitted = (make_pipeline(scaler, model) if scaler else model).fit(x, y)
    labels = sorted(set(y), reverse=True)  # not the estimator's order
    rule = from_estimator("exported", space, labels, fitted)
    assert (np.array(labels)[rule.predict(x)] == fitted.predict(x)).all()
    table = export_linear(fitted, space.expanded_names)
    again = make_rule(table, space, labels)
    assert (again.predict(x) == rule.predict(x)).all()
    np.testing.assert_allclose(again.log_odds(x), rule.log_odds(x))


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two", "three labels"])
def test_log_odds_are_those_of_the_probabilities(load):
    x, y, space = problem(load)
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=0.1).fit(scaler.transform(x), y)
    rule = from_estimator("exported", space, list(model.classes_), model, scaler)
    share = model.predict_proba(scaler.transform(x))
    safe = (share > 1e-9).all(axis=1)
    odds = np.log(share[safe]) - np.log1p(-share[safe])
    np.testing.assert_allclose(rule.log_odds(x)[safe], odds, rtol=1e-5, atol=1e-8)


def test_named_inputs_are_matched_by_name():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(80, 2))
    y = np.where(x[:, 0] > 0, "yes", "no")
    model = LogisticRegression().fit(x, y)
    # As if it had been fitted to a data frame whose columns stand in another order.
    model.feature_names_in_ = np.array(["b", "a"], dtype=object)
    space = real_features(["a", "b"], [MinMax(0.0, 1.0)] * 2)
    rule = from_estimator("exported", space, ["no", "yes"], model)
    said = np.array(["no", "yes"])[rule.predict(x[:, ::-1])]
    assert (said == LogisticRegression().fit(x, y).predict(x)).all()


def test_what_cannot_be_exported():
    x, y, space = problem(load_iris)
    columns = space.expanded_names
    scaled = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(x, y)
    with pytest.raises(LearnerError, match="MinMaxScaler: it is no standard scaler"):
        export_linear(scaled, columns)
    with pytest.raises(LearnerError, match="cannot export GaussianNB: no coef_, intercept_"):
        export_linear(GaussianNB().fit(x, y), columns)
    with pytest.raises(LearnerError, match="must be a fitted linear classifier"):
        export_linear(LogisticRegression(), columns)
    model = LogisticRegression(C=0.1).fit(x, y)
    with pytest.raises(LearnerError, match="has 4 inputs, but 3 columns are named"):
        export_linear(model, columns[:3])
    with pytest.raises(LearnerError, match="fitted to other labels"):
        from_estimator("exported", space, ["setosa", "versicolor"], model)
    # Three labels make three pairs, so that the shape alone would not tell.
    for names in ("abc", "abcd"):
        pairs = SVC(kernel="linear").fit(x, np.array(list(names))[np.arange(len(x)) % len(names)])
        with pytest.raises(LearnerError, match="one row of coef_ per label"):
            export_linear(pairs, columns)
    three = make_pipeline(StandardScaler(), StandardScaler(), LogisticRegression()).fit(x, y)
    with pytest.raises(LearnerError, match="at most a standard scaler and a classifier"):
        export_linear(three, columns)
