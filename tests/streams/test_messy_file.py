"""The commands of `docs/use.md` on a real file as shipped: gaps, repeated ids, no preparation."""

import shlex

import pytest
from user_kit import place_settings, worker_process

from tests.cli_runs import Hb
from tests.messy_files import write

PATIENTS = 160


@pytest.fixture
def folder(tmp_path, broker_address, prefix, monkeypatch, capsys):
    """A folder with the file and the settings that `hb init` writes for it."""
    monkeypatch.chdir(tmp_path)
    write("biopsy", tmp_path)
    assert Hb(monkeypatch, capsys)("init", "biopsy.csv").code == 0
    place_settings(tmp_path / "ensemble.toml", "biopsy", prefix.strip("."), broker_address)
    return tmp_path


def test_a_real_file_goes_through_without_a_surprise(folder, monkeypatch, capsys):
    hb = Hb(monkeypatch, capsys)
    assert hb("settings", "check").code == 0
    expected = hb("evaluate", "biopsy.csv", "--limit", PATIENTS, "--json").json["figures"]
    with worker_process(folder / "ensemble.toml"):
        options = ("--pace", "labels", "--limit", PATIENTS, "--json")
        run = hb("produce", "biopsy.csv", *options)
        assert run.code == 0
        assert run.json["patients"] == run.json["labels"] == PATIENTS
        assert not run.json["skipped"]
        again = hb("audit", "--json")
        assert again.code == 0, again.out
        assert hb("deadletters", "--json").json["total"] == 0
        live = hb("replay", "--json").json["figures"]["live"]
    assert live["labelled"] == PATIENTS
    error = live["rates"]["ensemble"]["per"]
    # Live, a few patients may be decided before the last labels are learned.
    assert error <= expected["PER"] + 0.05
    assert error < 0.15 < expected["majority_PER"]


def test_what_was_interrupted_can_be_resumed(folder, monkeypatch, capsys, broker_address):
    hb = Hb(monkeypatch, capsys)
    first = hb("produce", "biopsy.csv", "--limit", 30, "--run", "r7", "--json").json
    assert (first["taken"], first["resume"]) == (30, None)
    command = shlex.split("produce biopsy.csv --from 31 --run r7 --limit 50 --json")
    second = hb(*command).json
    assert (second["patients"], second["labels"]) == (20, 50)  # labels again: they count once
    assert "before the first labels are learned" in hb("produce", "biopsy.csv").err
