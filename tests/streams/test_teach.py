"""`hb teach`: history through the running pipeline, apart from the present, resumable; audited."""

import pytest
from user_kit import place_settings, worker_process

from settings.loading import load_settings
from streams.kafka.topics import Topics
from tests.cli_runs import Hb
from tests.messy_files import write

FIRST, MORE, LIVE = 60, 40, 30


@pytest.fixture
def folder(tmp_path, broker_address, prefix, monkeypatch, capsys):
    """A folder with a file, and settings and topics for it."""
    monkeypatch.chdir(tmp_path)
    write("biopsy", tmp_path)
    lines = (tmp_path / "biopsy.csv").read_text().splitlines()
    header, *patients = lines
    live = [header, *patients[-LIVE:]]
    (tmp_path / "live.csv").write_text("\n".join(live) + "\n")
    (tmp_path / "history.csv").write_text("\n".join(lines[:-LIVE]) + "\n")
    assert Hb(monkeypatch, capsys)("init", "biopsy.csv").code == 0
    place_settings(tmp_path / "ensemble.toml", "biopsy", prefix.strip("."), broker_address)
    return tmp_path


def test_history_teaches_first_and_its_rates_stay_apart(folder, monkeypatch, capsys, prefix):
    hb = Hb(monkeypatch, capsys)
    with worker_process(folder / "ensemble.toml"):
        first = hb("teach", "history.csv", "--limit", FIRST, "--json")
        assert first.code == 0, first.err
        assert first.json["patients"] == first.json["learned"] == FIRST
        assert first.json["history"]["labelled"] == FIRST
        again = hb("teach", "history.csv", "--limit", MORE, "--json").json
        assert (again["learned_before"], again["learned"]) == (FIRST, MORE), "it goes on"
        assert again["not_waited_for"] == 0
        live = hb("produce", "live.csv", "--pace", "labels", "--json")
        assert live.json["labels"] == LIVE
        status = hb("status", "--json").json
        assert (status["taught"], status["labelled"]) == (FIRST + MORE, LIVE)
        assert status["rates"]["ensemble"]["per"] < 0.3, "the present begins with what was taught"
        assert status["rates_of_history"]["ensemble"] == {
            name: again["history"][name] for name in ("per", "fpr", "fnr")
        }
        assert "history" in hb("status").out
        audited = hb("audit", "--json")
        assert audited.code == 0, audited.out
        replayed = hb("replay", "--json").json["figures"]
        assert replayed["live"]["labelled"] == LIVE
    renewed(folder, hb, prefix)


def renewed(folder, hb, prefix):
    """The same ensemble under other settings learns what its topics hold of the old one."""
    old, new = folder / "ensemble.toml", folder / "new.toml"
    text = old.read_text()
    name = load_settings(old, environ={}).name
    new.write_text(text.replace(f'name = "{name}"', f'name = "{name}-new"', 1))
    settings = load_settings(new, environ={})
    assert Topics.of(settings).labels != Topics.of(load_settings(old, environ={})).labels
    assert "same topics" in hb("teach", "--from", "ensemble.toml").err
    assert hb("topics", "create", "--settings", new).code == 0
    with worker_process(new):
        run = hb("teach", "--from", "ensemble.toml", "--settings", new, "--json")
        assert run.code == 0, run.err
        assert run.json["learned"] == run.json["patients"] == FIRST + MORE + LIVE
        status = hb("status", "--settings", new, "--json").json
        assert (status["taught"], status["labelled"]) == (FIRST + MORE + LIVE, 0)
        assert hb("audit", "--settings", new, "--json").code == 0


def test_what_cannot_teach_is_refused_before_anything_is_sent(folder, monkeypatch, capsys):
    hb = Hb(monkeypatch, capsys)
    assert hb("teach").code == hb("teach", "a.csv", "--from", "b.toml").code == 2
    header, *rows = (folder / "history.csv").read_text().splitlines()
    at = header.split(",").index("class")
    bare = [
        ",".join(cell for j, cell in enumerate(row.split(",")) if j != at)
        for row in (header, *rows)
    ]
    (folder / "bare.csv").write_text("\n".join(bare) + "\n")
    run = hb("teach", "bare.csv")
    assert run.code == 3
    assert "only labelled patients teach" in run.err
