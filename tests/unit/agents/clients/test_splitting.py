"""Patients into what each learner sees: values as they travel, faults named without values."""

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
        ({"age": float("nan")}, "feature 'age': expected a finite number"),
        ({"age": float("inf")}, "feature 'age': expected a finite number"),
        ({"age": 10**400}, "feature 'age': expected a finite number"),
        ({"age": "12"}, "feature 'age': expected a finite number"),
        ({"age": b"12"}, "feature 'age': expected a finite number"),
        ({"age": True}, "feature 'age': expected a finite number"),
        ({"age": None}, "feature 'age': expected a finite number"),
        ({"age": [1]}, "feature 'age': expected a finite number"),
        ({"sex": "x"}, "feature 'sex': expected one of its categories"),
        ({"sex": 1}, "feature 'sex': expected one of its categories"),
        ({"sex": ["f"]}, "feature 'sex': expected one of its categories"),
        ({"sex": " f"}, "feature 'sex': expected one of its categories"),
    ],
)
def test_a_fault_names_the_feature_and_what_was_expected(change, message):
    with pytest.raises(PatientError) as caught:
        Splitter(SETTINGS).one("a17", {**PATIENT, **change}, at=5)
    assert str(caught.value) == message


@pytest.mark.parametrize("column", ["age", "sex", "dose"])
def test_a_missing_feature_is_named(column):
    with pytest.raises(PatientError, match=f"feature '{column}': expected to be there"):
        Splitter(SETTINGS).one("a", {k: v for k, v in PATIENT.items() if k != column}, at=5)


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
    split = Splitter(SETTINGS, texts=True).many(list("abcde"), columns, at=5)
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
