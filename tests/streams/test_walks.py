"""Two people at a real terminal: a newcomer's first minutes, a data scientist's first file."""

import re
import shutil
import urllib.request

import pytest
from user_kit import place_settings

from tests.messy_files import write
from tests.terminal import Terminal

PATIENTS = 60


def test_the_newcomers_walk(tmp_path):
    terminal = Terminal(tmp_path, "newcomer", XDG_DATA_HOME=str(tmp_path / "data"))
    assert re.search(r"Start here.*\n.*demo .*Watch it work", terminal.hb("--help"))
    assert "--pace" in terminal.hb("demo", "--help")
    with terminal.running("demo", "--patients", "40") as demo:
        page = demo.await_text(r"console at (http://[\d.:]+)")
        with urllib.request.urlopen(f"{page}/events", timeout=200):
            demo.await_text("it is untaught: no label is known yet")
            demo.await_text("kill -9: the learners' worker is dead")
            demo.await_text("another worker took over after")
            demo.await_text("the console is open: close the page")
        assert demo.end() == 0, demo.text
        text = " ".join(demo.text.split())
    for sentence in (
        "It began untaught and said so",
        "no patient was lost",
        "One label was wrong at first and was amended at the end",
        "error rate",
        "A recount of every figure from the diagnoses and labels found no difference.",
        "To leave it running, with its console: hb demo --keep",
    ):
        assert sentence in text, sentence
    assert not (tmp_path / "data/hb/demo").exists(), "nothing is left behind"


@pytest.fixture
def scientist(tmp_path, broker_address, prefix):
    """A terminal in a folder with a file as it was shipped, and a broker to use."""
    file = write("biopsy", tmp_path)
    if file.name != "patients.csv":
        shutil.move(file, tmp_path / "patients.csv")
    terminal = Terminal(tmp_path, "data-scientist")
    yield terminal
    terminal.hb("down")


def test_the_data_scientists_walk(scientist, tmp_path, broker_address, prefix):
    hb = scientist.hb
    judged = hb("evaluate", "patients.csv", "--limit", "150")
    for words in ("16 values are missing", "error rate", "miss rate", "false alarms", "hb init"):
        assert words in " ".join(judged.split()), words
    assert "wrote ensemble.toml" in hb("init", "patients.csv")
    hb("settings", "check")
    hb("plan")
    place_settings(tmp_path / "ensemble.toml", "patients", prefix.strip("."), broker_address)
    with scientist.running("up") as up:
        up.await_text(r"console: (http://[\d.:]+)")
        assert "Untaught: no label has been learned yet" in hb("status")
        sent = hb("produce", "patients.csv", "--pace", "labels", "--limit", str(PATIENTS))
        assert f"{PATIENTS} patients" in " ".join(sent.split())
        with scientist.running("diagnoses", "--follow") as following:
            following.await_text("waiting for diagnoses")
            hb("produce", "patients.csv", "--from", str(PATIENTS + 1), "--limit", str(PATIENTS + 5))
            following.await_text("benign|malignant|refer")
            following.press("\x03")
            assert following.end() in (0, 130)
        status = " ".join(hb("status").split())
        assert re.search(r"Learning \(\d+ labels: do not rely on it yet\)|Healthy", status), status
        # The headings are folded on a narrow terminal.
        assert {"error", "rate", "miss", "false", "alarms"} <= set(status.split())
        assert "unchanged" in hb("replay")
        other = " ".join(hb("replay", "--set", "ensemble.mode=ah").split())
        assert "mode ah does not take" in other
        assert "changed" in other.replace("unchanged", "")
        assert "Traceback" not in hb("logs")
        assert hb("console", "--address").startswith("http://")
        assert "workers: stopped" in hb("down")
        assert up.end() == 0
