"""Streams and measures of the experiment on how far a diagnosis can be trusted."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from audit.replay.player import Player
from cli.main import app
from experiments.bundled_tables import SOURCES, bundled
from experiments.confidence.measures import calibration_error, error_rate, referred
from experiments.confidence.ours import listen
from experiments.confidence.river_chances import CANDIDATES, river_chances
from experiments.confidence.streams import MEDICAL, SETS, Case, make_stream, proposed
from experiments.report.result import Result
from experiments.report.summary import summary
from learners.assessment.referral import furthest


def test_the_sets_are_those_that_are_wanted():
    assert len(SETS) >= 10
    assert len(MEDICAL) >= 5
    lacking = [name for name in SOURCES if np.isnan(bundled(name).rows).any()]
    assert len(lacking) >= 4
    for name in SOURCES:
        data = bundled(name)
        assert set(np.unique(data.truth)) == set(range(data.classes))


def test_each_patient_comes_once_and_then_labels_come_often_enough():
    stream = make_stream(Case("wine", 5, drift=False, wanted=100, seed=3))
    assert sorted(stream.patients[: stream.once]) == list(range(178))
    assert (stream.truth[: stream.once] == stream.data.truth[stream.patients[: stream.once]]).all()
    assert np.bincount(stream.truth).min() >= 100
    assert np.allclose(stream.chances.sum(axis=1), 1.0)
    later = slice(stream.once, None)
    expected = stream.chances[later, 0].mean()
    assert (stream.truth[later] == 0).mean() == pytest.approx(expected, abs=0.1)


def test_drift_changes_the_labels_of_a_quarter_from_half_way():
    case = Case("wdbc", 0, drift=True, wanted=10, seed=3)
    stream = make_stream(case)
    changed = stream.truth[:569] != stream.data.truth[stream.patients[:569]]
    assert not changed[: 569 // 2].any()
    assert changed[569 // 2 :].mean() == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize("late", [0, 7])
def test_a_label_is_known_exactly_so_many_arrivals_later(late):
    stream = make_stream(Case("wine", late, drift=False, wanted=10, seed=3))
    recorded = stream.recorded(proposed(stream.data, 3))
    arrived = recorded.arrivals["ll1"].times[: stream.once]
    for t in range(0, stream.once, 20):
        before = (arrived < recorded.label_times[t]).sum()
        assert before == min(t + late + 1, stream.once)


def test_the_proposed_learners_and_river_both_learn_on_a_set_with_missing_values():
    stream = make_stream(Case("pbc", 0, drift=False, wanted=10, seed=3))
    settings = proposed(stream.data, 3)
    player = Player(stream.recorded(settings), settings)
    player.play()
    truth = stream.truth[: stream.once]
    assert (player.diagnosed[: stream.once] != truth).mean() < 0.3
    chances = river_chances(stream, CANDIDATES[:1])[CANDIDATES[0]]
    assert error_rate(chances, truth) < 30.0


def test_calibration_error_and_referral():
    sure = np.tile([[0.1, 0.9]], (100, 1))
    assert (
        calibration_error(sure, np.repeat([1, 0], [90, 10])[np.argsort(np.tile(range(10), 10))])
        == 0
    )
    assert calibration_error(sure, np.ones(100, np.int64)) == pytest.approx(0.1)
    chances = np.array([[0.45, 0.55]] * 10 + [[0.05, 0.95]] * 90)
    truth = np.array([0] * 10 + [1] * 90)
    assert error_rate(chances, truth) == 10.0
    assert referred(chances, truth) == 0.0


FIGURES = (
    "coverage_worst",
    "miss_gap_worst_points",
    "calibration_error_over_river_worst",
    "halved_share",
    "late_error_over_river_points",
)


def test_the_command_prints_the_figures_that_scripts_read(monkeypatch):
    monkeypatch.setenv("HB_JOBS", "1")
    run = CliRunner().invoke(app, ["experiments", "confidence", "--quick", "--json"])
    assert run.exit_code == 0, run.output
    figures = json.loads(run.stdout)["figures"]
    assert all(np.isfinite(figures[name]) for name in FIGURES)
    assert figures["coverage_worst"] >= 0.95
    # A miss rate moves in steps of one patient, and with 80 of them the bound is far wider.
    assert figures["miss_gap_worst_points"] < 100 * max(furthest(0.05, 80, late=20))
    rows = summary({"confidence": Result("confidence", "", {}, figures)})[0].rows
    assert len(rows) == 6


def test_a_record_that_its_interval_does_not_hold_is_counted():
    stream = make_stream(Case("wine", 0, drift=False, wanted=10, seed=3))
    settings = proposed(stream.data, 3)
    honest = listen(stream, settings)
    assert honest.records[0] == honest.records[1] > 5
    # The same stream, judged by other chances than those its labels were drawn from.
    turned = replace(stream, chances=np.roll(stream.chances, 1, axis=1))
    records, held = listen(turned, settings).records
    assert records == honest.records[0]
    assert held < records
