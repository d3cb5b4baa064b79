"""`hb init`."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from settings.building import fusion, local_learner
from settings.loading import load_settings

DATA = "id,age,sex,mass,diag\n1,20,f,50,no\n2,40,m,70,yes\n3,60,f,90,no\n"


@pytest.fixture
def csv(tmp_path):
    file = tmp_path / "My Patients.csv"
    file.write_text(DATA)
    return file


@pytest.mark.parametrize("given", [[], ["--bound"], ["--paper"]])
def test_wdbc(hb, tmp_path, given):
    run = hb("init", *given)
    assert run.code == 0
    assert "wrote ensemble.toml" in run.out
    assert hb("settings", "check").code == 0
    settings = load_settings(tmp_path / "ensemble.toml")
    data = load_breast_cancer()
    seen = [f for learner in settings.learners.values() for f in learner.features]
    assert [len(learner.features) for learner in settings.learners.values()] == [10, 10, 10]
    assert sorted(f.name for f in seen) == sorted(map(str, data.feature_names))
    for feature in seen:
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
    run = hb("init", "--csv", csv, "--label", "diag", "--positive", "yes", "--learners", 2)
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
    assert run.json == {
        "file": "ensemble.toml",
        "name": "my-patients",
        "learners": {"ll1": ["age"], "ll2": ["sex"], "ll3": ["mass"]},
        "id": "id",
        "label": "diag",
        "left_out": {},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--csv", "none.csv", "--label", "x"], 3, "there is no such file"),
        (["--csv", "My Patients.csv"], 3, "--label must name the column of the labels"),
        (["--csv", "My Patients.csv", "--label", "x"], 3, "no column 'x'"),
        (["--csv", "My Patients.csv", "--label", "diag"], 3, "--positive must be one of the 2"),
        (["--csv", "My Patients.csv", "--label", "diag", "--positive", "?"], 3, "--positive must"),
        (
            ["--csv", "My Patients.csv", "--label", "diag", "--positive", "yes", "--learners", 4],
            3,
            "there are 3 features for 4 learners",
        ),
        (["--csv", "My Patients.csv", "--dataset", "wdbc"], 2, "cannot be combined"),
        (["--label", "diag"], 2, "--label needs --csv"),
        (["--learners", 0], 2, "--learners"),
        (["--out", "no/such/folder.toml"], 3, "cannot be written"),
    ],
)
def test_what_cannot_be_done(hb, csv, arguments, code, said):
    run = hb("init", *arguments)
    assert run.code == code
    assert said in run.err
    assert "Traceback" not in run.err


def test_a_failed_write_leaves_nothing_behind(hb, tmp_path):
    (tmp_path / "folder").mkdir()
    run = hb("init", "--out", "folder", "--force")
    assert run.code == 3
    assert "folder: cannot be written: Is a directory" in run.err
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_a_file_is_not_overwritten_unless_forced(hb, tmp_path):
    (tmp_path / "ensemble.toml").write_text("mine")
    run = hb("init")
    assert run.code == 3
    assert "exists already; --force replaces it" in run.err
    assert (tmp_path / "ensemble.toml").read_text() == "mine"
    assert hb("init", "--force").code == 0
