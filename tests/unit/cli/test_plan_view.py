"""What `hb plan` and `hb replay` print on a terminal of eighty columns."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from cli import plan, replay
from cli.plan_bounds import plan as work_out
from settings.loading import source_of, validate
from settings.proposing.from_csv import Wishes, propose
from settings.proposing.proposal import proposed_text


@pytest.fixture
def printed(monkeypatch):
    console = Console(width=80, record=True, force_terminal=False)
    for module in (plan, replay):
        monkeypatch.setattr(module, "out", console)
    return console.export_text


def side(error):
    rates = {"per": error, "fnr": 0.041, "fpr": 0.026}
    report = {"labelled": 9, "regret": 9.6, "regret_bound": None}
    report["rates"] = dict.fromkeys(("ensemble", "imaging"), rates)
    return SimpleNamespace(report=lambda _positive: report)


def test_a_comparison_is_read_in_full(printed):
    agreed = SimpleNamespace(agreement=1.0, compared=9)
    sides = {"live": side(0.031), "unchanged": side(0.032), "replayed": side(0.062)}
    replay._print(
        SimpleNamespace(**sides, positive="ill", differences=agreed, agreement=0.9, caveats=[])
    )
    shown = printed()
    assert "…" not in shown
    for word in ("live", "unchanged", "changed", "error rate", "miss rate", "false alarms"):
        assert word in shown
    assert [shown.count(rate) for rate in ("3.1 %", "3.2 %", "6.2 %")] == [2, 2, 2]


def test_what_holds_for_all_learners_is_said_once(printed, tmp_path):
    file = tmp_path / "patients.csv"
    rows = (f"{i},{i % 7},{-i},{i * i},{'yn'[i % 2]}" for i in range(40))
    file.write_text("\n".join(("a,b,c,d,out", *rows)))
    text = proposed_text(propose(file, Wishes(learners=2)).proposal)
    settings = validate(source_of(text, tmp_path / "ensemble.toml"))
    plan._print_learners(work_out(settings, 1000, 0.1, 0.05))
    assert printed().count("no bound and no confidence by theory") == 1
