"""Rules of fitted scikit-learn models predict what the models predict."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from audit.end_to_end import recompute
from learners.errors import LearnerError
from learners.local.features import FeatureSpace, MinMax, Real
from learners.rules.registry import make_rule
from learners.rules.sklearn_models import linear_rule
from schemas.reading import Reader
from schemas.records import Instance, Prediction
from tests.inline_pipeline import configured, lived
from tests.unit.learners.rules.functions import fitted_to_two
from tests.unit.learners.rules.samples import LABELS, REALS

FUNCTIONS = "tests.unit.learners.rules.functions"


def unit_space(names):
    return FeatureSpace(tuple(Real(name, MinMax(0.0, 1.0)) for name in names))


def problem(load):
    data = load()
    names = np.array([str(name) for name in data.target_names])
    columns = [name.replace(" ", "_") for name in data.feature_names]
    return data.data, names[data.target], unit_space(columns)


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
    labels = sorted(set(y), reverse=True)  # not the classifier's order
    rule = linear_rule("fitted", space, labels, fitted)
    assert (np.array(labels)[rule.predict(x)] == fitted.predict(x)).all()


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two", "three labels"])
def test_log_odds_are_those_of_the_probabilities(load):
    x, y, space = problem(load)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(x, y)
    rule = linear_rule("fitted", space, list(model.classes_), model)
    share = model.predict_proba(x)
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
    rule = linear_rule("fitted", unit_space(["a", "b"]), ["no", "yes"], model)
    predicted = np.array(["no", "yes"])[rule.predict(x[:, ::-1])]
    assert (predicted == LogisticRegression().fit(x, y).predict(x)).all()


def pairs(names):
    x, _, _ = problem(load_iris)
    return SVC(kernel="linear").fit(x, np.array(list(names))[np.arange(len(x)) % len(names)])


def iris(*steps):
    x, y, _ = problem(load_iris)
    return make_pipeline(*steps).fit(x, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: iris(MinMaxScaler(), LogisticRegression()), "MinMaxScaler is not a standard scal"),
        (lambda: iris(GaussianNB()), "GaussianNB has no coef_, intercept_; it must be a fitted"),
        (LogisticRegression, "it must be a fitted linear classifier"),
        (lambda: iris(StandardScaler(), StandardScaler(), LogisticRegression()), "a pipeline must"),
        # Three labels make three pairs, so that the shape alone would not tell.
        (lambda: pairs("abc"), "one row of coef_ per label"),
        (lambda: pairs("abcd"), "one row of coef_ per label"),
    ],
)
def test_what_cannot_be_a_rule(model, message):
    _, y, space = problem(load_iris)
    with pytest.raises(LearnerError, match=message):
        linear_rule("fitted", space, sorted(set(y)), model())


def test_columns_and_labels_must_be_those_of_the_learner():
    x, y, space = problem(load_iris)
    model = LogisticRegression(C=0.1).fit(x, y)
    with pytest.raises(LearnerError, match="has 4 inputs, but the learner has 3 columns"):
        linear_rule("fitted", unit_space(["a", "b", "c"]), sorted(set(y)), model)
    with pytest.raises(LearnerError, match="fitted to other labels"):
        linear_rule("fitted", space, ["setosa", "versicolor"], model)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("missing", "has no callable missing"),
        ("raises_without_arguments", "it raised OSError: no model here"),
        ("unfitted", "LogisticRegression has no coef_"),
    ],
)
def test_errors_name_the_option(function, message):
    table = {"kind": "sklearn", "model": f"{FUNCTIONS}:{function}"}
    with pytest.raises(LearnerError, match=rf"^rule mine: option model: '.*: .*{message}"):
        make_rule(table, REALS, LABELS[2], "mine", ["tests"])


def test_a_fitted_model_in_the_pipeline(tmp_path):
    rule = f'{{kind="sklearn", model="{FUNCTIONS}:fitted_to_two"}}'
    own = f"learners.a.rules={{model={rule}}}", 'rules.packages=["tests"]'
    live = lived(configured(tmp_path, *own), 60)
    rows = {
        instance.id: instance.x for instance in read(live, Instance, live.topics.instances("a"))
    }
    predictions = [
        prediction
        for prediction in read(live, Prediction, live.topics.predictions)
        if prediction.rule == "model"
    ]
    assert len(predictions) == len(rows) == 60
    x = np.array(
        [[rows[prediction.id]["x"], rows[prediction.id]["y"]] for prediction in predictions]
    )
    assert [prediction.label for prediction in predictions] == fitted_to_two().predict(x).tolist()
    assert recompute(live.observed())[0].clean


def read(live, record, topic):
    return Reader(record).read([batch.values[0] for batch in live.published[topic]]).records
