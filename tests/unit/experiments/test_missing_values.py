"""Files with holes beside River's: every patient is judged by both, and nothing is refused."""

import csv

import numpy as np

from experiments.confidence.streams import dataset
from experiments.missing_values import GONE, Task, messy, run, write


def test_both_judge_the_same_patients_and_nothing_is_refused():
    passed = run(Task("pbc", 0, 7, most=40))
    assert passed.refused == 0
    assert {len(passed.ours), *map(len, passed.river.values())} == {40}
    cells = 40 * len(dataset("pbc").features)
    assert 0 < passed.had < passed.missing
    assert abs(passed.missing - passed.had - GONE * (cells - passed.had)) < 0.1 * cells


def test_a_file_holds_what_the_data_set_does(tmp_path):
    data = dataset("pbc")
    write(tmp_path / "pbc.csv", data)
    with (tmp_path / "pbc.csv").open() as file:
        header, *rows = list(csv.reader(file))
    assert header == [*(name for name, _ in data.features), "diagnosis"]
    assert [row[-1] for row in rows] == [data.labels[label] for label in data.truth]
    blank = np.array([[cell in {"", "NA", "?", "nan", "-"} for cell in row[:-1]] for row in rows])
    assert (blank == np.isnan(data.rows)).all()


def test_the_report_says_on_which_sets_ours_is_behind():
    figures = messy(quick=True).figures
    assert figures["behind"] == float(figures["wine.over_River_low"] > 0)
    assert figures["refused"] == 0
