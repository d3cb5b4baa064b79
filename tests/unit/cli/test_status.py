"""`hb status`: an answer within two seconds, whatever the broker does."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents.monitor import watch
from agents.monitor.overview import figures
from agents.monitor.scores import Scorer, Sums
from cli import status
from streams.engine.held_back import HeldBack
from streams.kafka.connection import BrokerSlowError
from tests.settings_files import GOOD, write
from tests.unit.agents.toy import SETTINGS


@pytest.fixture
def asked(monkeypatch):
    """What looks at the broker are told, and an error that they end with."""
    times = []

    async def look(_settings, patience, budget):
        times.append((patience, budget))
        raise BrokerSlowError("the broker has not answered all questions")

    monkeypatch.delenv("HB_WAIT", raising=False)
    monkeypatch.setattr(watch, "look", look)
    return times


def test_an_answer_takes_two_seconds_at_most(hb, tmp_path, asked):
    write(tmp_path)
    run = hb("status")
    assert (run.code, asked[0][1]) == (4, 1.5)
    assert "Degraded because the broker is slow to answer." in run.out
    assert "has not answered all questions" in run.err
    hb("status", "--wait", 10)
    assert asked[1] == (7.0, 10.0)
    assert all(patience < budget for patience, budget in asked), "or it would never be away"


@pytest.mark.parametrize(("seconds", "shown"), [(0.2, False), (1.2, True), (6.0, True)])
def test_a_transaction_that_stays_open_is_mentioned(monkeypatch, seconds, shown):
    system = replace(
        figures(SETTINGS, Scorer(SETTINGS), Sums()),
        members=["here"],
        held_back=(HeldBack("toy.labels", 3, 7, seconds),),
    )

    async def look(*_):
        return system

    monkeypatch.setattr(watch, "look", look)
    seen = status._look(SETTINGS, 1.5)
    assert any("toy.labels/3 back" in concern.text for concern in seen.standing.concerns) is shown
    assert (seen.standing.colour == "red") is (seconds > 5)


@pytest.mark.parametrize(
    "broken", [GOOD.replace("labels", "lables", 1), GOOD.replace("]", "", 1)], ids=["key", "toml"]
)
def test_one_broken_settings_file_is_one_red_line(hb, tmp_path, asked, broken):
    write(tmp_path, GOOD, "heart.toml")
    write(tmp_path, broken, "lung.toml")
    write(tmp_path, "[tool.other]\n", "pyproject.toml")
    run = hb("status", "--all")
    assert (run.code, len(asked)) == (4, 1), "the other ensemble is looked at"
    assert run.out.count("Degraded because") == 2
    assert "lung.toml: Degraded because its settings cannot be used: " in run.out
    entries = hb("status", "--all", "--json").json["ensembles"]
    assert {Path(entry["file"]).name: entry["standing"]["cause"] for entry in entries} == {
        "heart.toml": "broker_slow",
        "lung.toml": "settings_broken",
    }
