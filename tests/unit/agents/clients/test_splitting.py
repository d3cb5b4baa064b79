"""Patients into what each learner sees: values as they travel, faults named without values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.clients.splitting import PatientError, Splitter, label_value
from schemas.reading import Reader
from schemas.records import Context, Instance, Label
from schemas.rows import Feature, RowReader
from tests.unit.agents.toy import SETTINGS

PATIENT = {"age": 41, "sex": "m", "dose": 0.5}


def test_every_topic_gets_its_own_features():
    values = Splitter(SETTINGS).one("a17", PATIENT, at=5)
    assert Reader(Instance).one(values["toy.instances.left"]).x == {"age": 41.0}
    assert Reader(Instance).one(values["toy.instances.right"]).x == {"age": 41.0, "sex": "m"}
    assert Reader(Context).one(values["toy.contexts"]).x == {"dose": 0.5}
    assert Splitter(SETTINGS).columns == ["age", "sex", "dose"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": float("inf")}, "feature 'age': expected a finite number"),
        ({"age": 10**400}, "feature 'age': expected a finite number"),
        ({"age": "12"}, "feature 'age': expected a finite number"),
        ({"age": b"12"}, "feature 'age': expected a finite number"),
        ({"age": True}, "feature 'age': expected a finite number"),
        ({"age": [1]}, "feature 'age': expected a finite number"),
        ({"sex": 1}, "feature 'sex': expected one of its categories"),
        ({"sex": ["f"]}, "feature 'sex': expected one of its categories"),
    ],
)
def test_a_fault_names_the_feature_and_what_was_expected(change, message):
    with pytest.raises(PatientError) as caught:
        Splitter(SETTINGS).one("a17", {**PATIENT, **change}, at=5)
    assert str(caught.value) == message


def demanding():
    """The toy settings with every feature of the learners required."""
    learners = {
        name: learner.model_copy(
            update={
                "features": tuple(
                    feature.model_copy(update={"required": True}) for feature in learner.features
                )
            }
        )
        for name, learner in SETTINGS.learners.items()
    }
    return SETTINGS.model_copy(update={"learners": learners})


@pytest.mark.parametrize("column", ["age", "sex"])
def test_a_feature_may_be_left_out_unless_it_is_required(column):
    patient = {k: v for k, v in PATIENT.items() if k != column}
    right = Splitter(SETTINGS).one("a", patient, at=5)["toy.instances.right"]
    assert Reader(Instance).one(right).x[column] is None
    with pytest.raises(PatientError, match=f"feature '{column}': expected a value: it is required"):
        Splitter(demanding()).one("a", patient, at=5)


def test_a_patient_without_any_known_feature_is_a_mistake():
    with pytest.raises(PatientError, match="expected at least one of the features age, sex, dose"):
        Splitter(SETTINGS).one("a", {"Age": 41}, at=5)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "\ud800"])
def test_an_id_that_readers_would_refuse_is_refused(name):
    for call in (
        lambda: Splitter(SETTINGS).one(name, PATIENT, at=5),
        lambda: label_value(name, "yes", 5, SETTINGS.labels),
    ):
        with pytest.raises(PatientError, match="id: expected 1 to 200 characters"):
            call()


def test_labels():
    assert Reader(Label).one(label_value("a", "no", 5, SETTINGS.labels)) == Label("a", "no", 5)
    with pytest.raises(PatientError, match=r"^label: expected one of no, yes$"):
        label_value("a", "maybe", 5, SETTINGS.labels)


def test_bad_rows_are_left_out_and_listed():
    columns = {
        "age": ["1", "x", " 3 ", "4", ""],
        "sex": ["f", "f", " m ", "q", "q"],
        "dose": ["0", "0", "0", "0", "0"],
    }
    split = Splitter(demanding(), texts=True).many(list("abcde"), columns, at=5)
    assert split.rows == [0, 2]
    assert split.ids == ["a", "c"]
    assert [(fault.row, fault.column) for fault in split.faults] == [
        (1, "age"),
        (3, "sex"),
        (4, "age"),
    ]
    rows = RowReader([Feature("age"), Feature("sex", ("f", "m"))]).read(
        split.values["toy.instances.right"]
    )
    assert rows.rows == [[1.0, 0.0], [3.0, 1.0]]
    assert [len(values) for values in split.values.values()] == [2, 2, 2]


@pytest.mark.parametrize("texts", [False, True])
def test_a_missing_value_is_sent_as_such_however_it_is_written(texts):
    gaps = ["", " NA ", "nan", "?", "-"] + (
        [] if texts else [None, float("nan"), np.float32("nan")]
    )
    count = len(gaps)
    columns = {"age": gaps, "sex": gaps, "dose": ["1" if texts else 1] * count}
    split = Splitter(SETTINGS, texts=texts).many([f"p{i}" for i in range(count)], columns, at=5)
    assert not split.faults
    reader = RowReader([Feature("age"), Feature("sex", ("f", "m"))])
    read = reader.read(split.values["toy.instances.right"])
    assert not read.errors
    assert np.isnan(read.rows).all()
    assert b"null" in split.values["toy.instances.right"][0]


def test_a_new_category_is_sent_and_text_in_place_of_a_number_is_not():
    columns = {"age": ["1", "old"], "sex": ["x", "f"], "dose": ["0", "0"]}
    split = Splitter(SETTINGS, texts=True).many(["a", "b"], columns, at=5)
    assert split.rows == [0]
    assert [str(fault) for fault in split.faults] == ["feature 'age': expected a finite number"]


@given(
    ids=st.lists(st.text(max_size=5), max_size=6),
    age=st.floats() | st.integers(),
    sex=st.sampled_from(["f", "m", "x"]),
)
def test_what_is_sent_can_be_read_and_what_is_not_has_a_fault(ids, age, sex):
    columns = {"age": [age] * len(ids), "sex": [sex] * len(ids), "dose": [1] * len(ids)}
    split = Splitter(SETTINGS).many(ids, columns, at=5)
    assert sorted([*split.rows, *(fault.row for fault in split.faults)]) == list(range(len(ids)))
    reader = RowReader([Feature("age"), Feature("sex", ("f", "m"))])
    read = reader.read(split.values["toy.instances.right"])
    assert read.errors == []
    assert read.ids == [ids[row] for row in split.rows]
