"""What `hb init` proposes is sound, complete and says what the data says."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings.errors import InputError
from settings.loading import source_of, validate
from settings.proposing import column_profile as profiles
from settings.proposing.column_profile import guess_id, profile
from settings.proposing.csv_file import CsvFile
from settings.proposing.proposal import Proposal, proposed_text, split

DATA = """\
patient_id,age,sex,note,constant,empty,mixed,,truth
1,20,f,one,7,,1,x,no
2,40,m,two,7,,2,y,yes
3,60,f,three,7,,many,z,no
"""


def csv_file(tmp_path, text=DATA):
    file = tmp_path / "data.csv"
    file.write_text(text)
    return CsvFile(file)


def test_columns_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(profiles, "MAX_GUESSED_CATEGORIES", 2)
    online = profile(csv_file(tmp_path), "truth").features
    assert online == [{"name": "age"}, {"name": "sex", "categories": ["f", "m"]}]
    profiled = profile(csv_file(tmp_path), "truth", scale="zlog")
    assert profiled.id == "patient_id"
    assert list(profiled.labels) == ["no", "yes"]
    assert profiled.features == [
        {"name": "age", "scale": "zlog", "mean": 40.0, "std": pytest.approx(16.32993)},
        {"name": "sex", "categories": ["f", "m"]},
    ]
    assert profiled.left_out == {
        "note": "text with more than 2 different values (line 2 is the first that is not a number)",
        "constant": "the same value in every row",
        "empty": "nothing but missing values",
        "mixed": "text with more than 2 different values"
        " (line 4 is the first that is not a number)",
        "": "a column without a name",
    }


def test_an_id_column_can_be_named(tmp_path):
    profiled = profile(csv_file(tmp_path), "truth", id_column="note")
    assert profiled.id == "note"
    assert profiled.left_out["patient_id"] == "it only numbers the rows"


@pytest.mark.parametrize(
    ("name", "is_id"),
    [("id", True), ("ID", True), ("patient_id", True), ("Patient ID", True), ("patientId", True),
     ("id_number", True), ("mrn", True), ("acid", False), ("width", False), ("idle", False),
     ("CHILLED", False)],
)  # fmt: skip
def test_ids_are_recognised_by_name(name, is_id):
    assert (guess_id(["age", name], "truth") == name) is is_id


@pytest.mark.parametrize("label", ["constant", "empty"])
def test_a_column_that_cannot_hold_labels(tmp_path, label):
    with pytest.raises(InputError, match="must be 2 to 50 labels"):
        profile(csv_file(tmp_path), label)


@given(st.integers(0, 40), st.integers(1, 10))
def test_split_deals_out_everything_evenly(features, learners):
    dealt = split(range(features), learners)
    assert [f for part in dealt.values() for f in part] == list(range(features))
    sizes = [len(part) for part in dealt.values()]
    assert len(sizes) == learners
    assert max(sizes) - min(sizes) <= 1


names = st.text(
    st.characters(categories=["L", "N", "P", "S"], codec="utf-8"), min_size=1, max_size=9
)


@given(
    labels=st.lists(names, min_size=2, max_size=4, unique=True),
    features=st.lists(names, min_size=1, max_size=70, unique=True),
    left_out=st.dictionaries(names, st.just("why"), max_size=2),
    id_column=st.none() | names,
    kind=st.sampled_from(["use", "bound", "paper"]),
)
def test_every_proposal_is_sound(labels, features, left_out, id_column, kind, tmp_path_factory):
    described = [
        {"name": name, "categories": ["f", "m", "x"]}
        if i % 3 == 2
        else {"name": name, "scale": "zlog", "mean": float(i), "std": 1.0}
        for i, name in enumerate(features)
    ]
    proposal = Proposal(
        name="toy",
        labels=labels,
        positive=labels[-1],
        learners=split(described, min(3, len(features))),
        origin="a test",
        id_column=id_column,
        left_out=left_out,
        paper=kind == "paper",
        bound=kind == "bound",
    )
    folder = tmp_path_factory.getbasetemp()
    validated = validate(source_of(proposed_text(proposal), folder / "ensemble.toml"))
    assert validated.labels == tuple(labels)
    assert [f.name for ll in validated.learners.values() for f in ll.features] == features
    assert validated.columns.id == id_column
    assert validated.ensemble.mode == {"use": "stack", "bound": "committee", "paper": "wm"}[kind]
    assert all(learner.joint == (kind != "paper") for learner in validated.learners.values())


def test_very_many_features_are_not_cut():
    described = [{"name": f"f{i}", "scale": "zlog", "mean": 0.0, "std": 1.0} for i in range(100)]
    text = proposed_text(
        Proposal(
            name="wide",
            labels=("a", "b"),
            positive="a",
            learners={"ll1": described},
            origin="a test",
        )
    )
    assert validate(source_of(text, Path("ensemble.toml"))).learners["ll1"].m == 1


def test_no_line_of_a_proposal_is_too_long():
    for paper in (False, True):
        proposal = Proposal("x", ("a", "b"), "a", {"ll1": []}, "a test", paper=paper)
        assert max(map(len, proposed_text(proposal).splitlines())) <= 100
