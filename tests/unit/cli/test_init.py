"""`hb init`."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from settings.building import fusion, local_learner
from settings.loading import load_settings
from tests.messy_files import write

DATA = "id,age,sex,mass,diag\n1,20,f,50,no\n2,40,m,70,yes\n3,60,f,90,no\n"


@pytest.fixture
def csv(tmp_path):
    file = tmp_path / "My Patients.csv"
    file.write_text(DATA)
    return file


@pytest.mark.parametrize("options", [[], ["--bound"], ["--paper"]])
def test_wdbc(hb, tmp_path, options):
    run = hb("init", *options)
    assert run.code == 0
    assert "wrote ensemble.toml" in run.out
    assert hb("settings", "check").code == 0
    settings = load_settings(tmp_path / "ensemble.toml")
    data = load_breast_cancer()
    features = [f for learner in settings.learners.values() for f in learner.features]
    assert [len(learner.features) for learner in settings.learners.values()] == [10, 10, 10]
    assert sorted(f.name for f in features) == sorted(map(str, data.feature_names))
    for feature in features:
        column = data.data[:, list(data.feature_names).index(feature.name)]
        assert feature.mean == pytest.approx(column.mean(), rel=1e-6)
        assert feature.std == pytest.approx(column.std(), rel=1e-6)
    assert {ll.m for ll in settings.learners.values()} == {2}
    assert fusion(settings).learners == 3


def test_a_bound_is_the_papers_or_ours(hb):
    assert hb("init", "--paper", "--bound").code == 2


def test_the_paper_setting_is_the_papers(hb, tmp_path):
    hb("init", "--paper")
    settings = load_settings(tmp_path / "ensemble.toml")
    learner = settings.learners["ll1"]
    assert [rule.kind for rule in learner.rules.values()] == ["constant", "constant"]
    assert (learner.feedback, learner.horizon, settings.ensemble.mode) == ("bandit", 10_000, "wm")
    assert learner.ties == "malignant"


def test_the_setting_for_use_learns(hb, tmp_path):
    hb("init")
    settings = load_settings(tmp_path / "ensemble.toml")
    assert all(local_learner(settings, name).learns for name in settings.learners)
    assert settings.learners["ll1"].feedback == "full"


def test_seeds_deal_differently_and_repeat(hb, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert hb("init", "--seed", seed, "--out", f"{name}.toml").code == 0
    a, b, c = ((tmp_path / f"{name}.toml").read_text() for name in "abc")
    assert a == b != c


def test_a_csv_file(hb, tmp_path, csv):
    options = ("--csv", csv, "--label", "diag", "--positive", "yes", "--learners", 2)
    assert hb("init", *options, "--out", "online.toml").code == 0
    online = load_settings(tmp_path / "online.toml")
    scales = {f.scaling for learner in online.learners.values() for f in learner.features}
    assert scales == {"online"}, "learned, and not taken from the file"
    run = hb("init", *options, "--scale", "zlog")
    assert run.code == 0
    assert "ids in column id" in run.out
    settings = load_settings(tmp_path / "ensemble.toml")
    assert settings.name == "my-patients"
    assert settings.labels == ("no", "yes")
    assert (settings.columns.id, settings.columns.label) == ("id", "diag")
    left, right = (learner.features for learner in settings.learners.values())
    assert [f.name for f in (*left, *right)] == ["age", "sex", "mass"]
    assert left[1].categories == ("f", "m")
    assert right[0].mean == 70
    assert right[0].std == pytest.approx(np.std([50, 70, 90]), rel=1e-6)
    # What init wrote, fit learns again from the same file.
    again = hb("features", "fit", csv, "--json").json
    assert not any(feature["changed"] for feature in again["features"])


def test_json_says_what_was_found(hb, csv):
    run = hb("init", "--csv", csv, "--label", "diag", "--positive", "yes", "--json")
    report = {key: run.json[key] for key in run.json if key not in {"data", "split"}}
    assert run.json["data"]["rows"] == 3
    assert report == {
        "warnings": [],
        "guessed": {},
        "file": "ensemble.toml",
        "name": "my-patients",
        "learners": {"ll1": ["age"], "ll2": ["sex"], "ll3": ["mass"]},
        "id": "id",
        "label": "diag",
        "left_out": {},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--csv", "none.csv", "--label", "x"], 3, "there is no such file"),
        (["numbers.csv"], 3, "--label must name the column of the labels"),
        (["--csv", "My Patients.csv", "--label", "x"], 3, "no column 'x'"),
        (["--csv", "My Patients.csv", "--label", "diag", "--positive", "?"], 3, "--positive must"),
        (
            ["--csv", "My Patients.csv", "--label", "diag", "--positive", "yes", "--learners", 4],
            3,
            "there are 3 features for 4 learners",
        ),
        (["--csv", "My Patients.csv", "--dataset", "wdbc"], 2, "cannot be combined"),
        (["--label", "diag"], 2, "--label needs a FILE"),
        (["--learners", 0], 2, "--learners"),
        (["--out", "no/such/folder.toml"], 3, "cannot write it"),
    ],
)
def test_what_cannot_be_done(hb, csv, tmp_path, arguments, code, message):
    numbers = "".join(f"{k},{k * k}\n" for k in range(20))
    (tmp_path / "numbers.csv").write_text(f"a,b\n{numbers}")
    run = hb("init", *arguments)
    assert run.code == code
    assert message in run.err
    assert "Traceback" not in run.err


def test_a_failed_write_leaves_nothing_behind(hb, tmp_path):
    (tmp_path / "folder").mkdir()
    run = hb("init", "--out", "folder", "--force")
    assert run.code == 3
    assert "folder: cannot write it: Is a directory" in run.err
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_a_file_is_not_overwritten_unless_forced(hb, tmp_path):
    (tmp_path / "ensemble.toml").write_text("mine")
    run = hb("init")
    assert run.code == 3
    assert "already exists; --force replaces it" in run.err
    assert (tmp_path / "ensemble.toml").read_text() == "mine"
    assert hb("init", "--force").code == 0


def test_it_reports_on_a_file_and_says_what_it_guessed(hb, tmp_path):
    run = hb("init", write("biopsy", tmp_path))
    assert run.code == 0
    for sentence in (
        "16 values are missing: V6 16",
        "54 rows repeat the id of an earlier one",
        "guessed: --label class",
        "guessed: --positive malignant",
        "neighbouring columns stay together",
    ):
        assert sentence in run.err
    settings = load_settings(tmp_path / "ensemble.toml")
    assert settings.columns.id is None  # each row is a case of its own


def test_learners_can_be_named(hb, csv, tmp_path):
    run = hb(
        "init", csv, "--label", "diag", "--positive", "yes",
        "--learner", "history=age,sex", "--learner", "imaging=mass",
    )  # fmt: skip
    assert run.code == 0
    settings = load_settings(tmp_path / "ensemble.toml")
    features = {n: [f.name for f in learner.features] for n, learner in settings.learners.items()}
    assert features == {"history": ["age", "sex"], "imaging": ["mass"]}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("history", "expected NAME=COLUMN"),
        ("History=age", "expected NAME=COLUMN"),
        ("history=", "expected NAME=COLUMN"),
        ("history=weight", "there is no feature 'weight'; the features are age, sex, mass"),
    ],
)
def test_a_learner_that_cannot_be_is_explained(hb, csv, argument, message):
    run = hb("init", csv, "--label", "diag", "--positive", "yes", "--learner", argument)
    assert run.code == 3
    assert message in run.err


def test_columns_that_are_missing_together_belong_together(hb, tmp_path):
    rows = [
        f"{k % 7},{k % 5},{'' if k % 3 else k % 4},{'' if k % 3 else k % 6},{k % 2}"
        for k in range(60)
    ]
    file = tmp_path / "lab.csv"
    file.write_text("\n".join(["age,mass,ldl,hdl,outcome", *rows]) + "\n")
    report = hb("init", file, "--json").json
    assert report["split"] == "columns that are missing in the same rows come from one place"
    assert ["ldl", "hdl"] in report["learners"].values()
