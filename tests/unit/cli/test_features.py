"""`hb features fit`."""

import pytest
from rich.console import Console

from cli import features
from tests.settings_files import GOOD, write

DATA = "age,mass,dose,sex\n20,70,0,f\n40,80,1,m\n60,,2,x\n"


@pytest.fixture(autouse=True)
def files(tmp_path):
    write(tmp_path)
    (tmp_path / "data.csv").write_text(DATA)


def test_fit_reports_and_writes(hb, tmp_path):
    run = hb("features", "fit", "data.csv")
    assert run.code == 0
    assert "20 to 60" in run.out
    assert "mean 75, std 5" in run.out
    assert "3 categories" in run.out
    assert "4 of 4 features changed, from 3 rows" in run.out
    assert (
        '{name = "age", low = 20.0, high = 60.0},  # years'
        in (tmp_path / "ensemble.toml").read_text()
    )
    assert "0 of 4 features changed" in hb("features", "fit", "data.csv").out


def test_a_dry_run_only_reports(hb, tmp_path):
    assert "would change" in hb("features", "fit", "data.csv", "--dry-run").out
    assert (tmp_path / "ensemble.toml").read_text() == GOOD


def test_fit_as_json(hb):
    run = hb("features", "fit", "data.csv", "--scale", "minmax", "--json")
    assert run.json["written"] is True
    assert run.json["features"][1] == {
        "learner": "left",
        "feature": "mass",
        "changed": True,
        "before": {"scale": "zlog", "mean": 70.0, "std": 12.5},
        "after": {"scale": "minmax", "low": 70.0, "high": 80.0},
        "rows": 3,
        "blanks": 1,
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("age,mass,dose\n1,2,3\n", "data.csv: no column 'sex'; the file has: age, mass, dose"),
        ("age,mass,dose,sex\n1,oops,3,f\n", "data.csv:2: column 'mass': not a finite number"),
        ("", "data.csv: the file is empty"),
    ],
)
def test_bad_data_is_one_line(hb, tmp_path, data, message):
    (tmp_path / "data.csv").write_text(data)
    run = hb("features", "fit", "data.csv")
    assert (run.code, run.out) == (3, "")
    assert message in run.err
    assert "oops" not in run.err
    assert len(run.err.splitlines()) == 1
    assert (tmp_path / "ensemble.toml").read_text() == GOOD


def test_big_files_show_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(features, "err", Console(stderr=True, force_terminal=True))
    with features.reading(10_000_000, "reading data.csv") as advance:
        advance(5_000_000)
    assert "reading data.csv" in capsys.readouterr().err
    with features.reading(10, "reading data.csv") as advance:
        advance(5)
    assert capsys.readouterr().err == ""


def test_overrides_do_not_leak_into_the_file(hb, tmp_path, monkeypatch):
    monkeypatch.setenv("HB_SET__ENSEMBLE__MODE", "wm")
    assert hb("features", "fit", "data.csv").code == 0
    assert 'mode = "ah"' in (tmp_path / "ensemble.toml").read_text()
