"""The commands of `docs/use.md` on a real file as shipped: gaps, repeated ids, no preparation."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from user_kit import place_settings, worker_process

from agents.clients.patient_files import CsvPatients
from audit.evaluation.cases import read_cases
from audit.evaluation.outcome import Outcome, leads
from audit.evaluation.passes import logistic_pass
from settings.loading import load_settings
from tests.cli_runs import Hb
from tests.messy_files import holed, write

ROWS = 699


@pytest.fixture
def folder(tmp_path, broker_address, prefix, monkeypatch, capsys):
    """A folder with the file and the settings that `hb init` writes for it."""
    monkeypatch.chdir(tmp_path)
    write("biopsy", tmp_path)
    _init("biopsy", prefix, broker_address, Hb(monkeypatch, capsys))
    return tmp_path


def _init(name, prefix, address, hb):
    assert hb("init", f"{name}.csv").code == 0
    place_settings(Path("ensemble.toml"), name, prefix.strip("."), address)


@pytest.mark.parametrize("name", ["pbc", "colon"])
def test_a_file_with_30_percent_of_its_values_removed(
    tmp_path, broker_address, prefix, monkeypatch, capsys, name
):
    """Both have missing values of their own; tests/unit/audit/test_messy_streams.py has ten."""
    monkeypatch.chdir(tmp_path)
    holed(tmp_path / f"{name}.csv", name, rows=60)
    hb = Hb(monkeypatch, capsys)
    _init(name, prefix, broker_address, hb)
    with worker_process(tmp_path / "ensemble.toml"):
        run = hb("produce", f"{name}.csv", "--pace", "labels", "--json").json
        assert (run["patients"], run["labels"], run["skipped"]) == (60, 60, {})
        again = hb("audit", "--json")
        assert again.code == 0, again.out
        assert hb("deadletters", "--json").json["total"] == 0


def test_a_real_file_goes_through_as_well_as_a_logistic_regression(folder, monkeypatch, capsys):
    """The whole file, labels as late as the pipeline lets them be; the regression has none late."""
    hb = Hb(monkeypatch, capsys)
    assert hb("settings", "check").code == 0
    with worker_process(folder / "ensemble.toml"):
        run = hb("produce", "biopsy.csv", "--pace", "labels", "--run", "r7", "--json")
        assert run.code == 0
        assert run.json["patients"] == run.json["labels"] == ROWS
        assert not run.json["skipped"]
        again = hb("audit", "--json")
        assert again.code == 0, again.out
        assert hb("deadletters", "--json").json["total"] == 0
        latest = hb("diagnoses", "-n", 2 * ROWS, "--json").json["diagnoses"]
    said = {diagnosis["id"]: diagnosis["label"] for diagnosis in latest}
    settings = load_settings(folder / "ensemble.toml")
    cases = read_cases(CsvPatients(folder / "biopsy.csv", settings), settings)
    positive = settings.labels.index(settings.positive)
    answers = np.array([settings.labels.index(said.pop(f"r7-{row}")) for row in range(ROWS)])
    assert not said
    live = Outcome(answers, cases.judged, 2, positive)
    regression = logistic_pass(cases, 2, 0, lambda _name, _done, _total: None)
    rival = Outcome(regression, cases.judged, 2, positive)
    differences = leads(live, rival)
    for rate in ("PER", "FNR"):
        lead, error = differences[rate]
        assert lead >= -error, differences


def test_what_was_interrupted_can_be_resumed(folder, monkeypatch, capsys, broker_address):
    hb = Hb(monkeypatch, capsys)
    first = hb("produce", "biopsy.csv", "--limit", 30, "--run", "r7", "--json").json
    assert (first["taken"], first["resume"]) == (30, None)
    command = shlex.split("produce biopsy.csv --from 31 --run r7 --limit 50 --json")
    second = hb(*command).json
    assert (second["patients"], second["labels"]) == (20, 50)  # labels again: they count once
    assert "before the first labels are learned" in hb("produce", "biopsy.csv").err
