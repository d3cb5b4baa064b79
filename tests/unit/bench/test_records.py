"""`hb bench records`: the report's form, and that its peer does the same work."""

import json

import pytest
from typer.testing import CliRunner

from bench import records
from bench.records_by_hand import READ
from cli.main import app
from schemas.examples import EXAMPLES
from schemas.reading import LabelReader
from schemas.records import Prediction
from schemas.writing import encode
from tests.unit.schemas.test_bad_input import CASES, LABEL


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(records, "BATCH", 100)


def test_the_report_has_rates_and_their_ratios():
    ticks = []
    report = records.run(1, lambda: ticks.append(1))
    assert len(ticks) == records.steps(1)
    assert report["settings"]["batch"] == 100
    assert len(report["ratios"]) == 12
    for name, ratio in report["ratios"].items():
        step, rival = name.split(".")
        ours = report["figures"][f"{step}.ours_records_per_s"]
        assert ratio == pytest.approx(ours / report["figures"][f"{step}.{rival}_records_per_s"])


def test_the_command_prints_one_object():
    result = CliRunner().invoke(app, ["bench", "records", "--rounds", "1", "--json"])
    assert json.loads(result.stdout).keys() == {"ratios", "figures", "settings"}


def test_the_command_prints_tables():
    shown = CliRunner().invoke(app, ["bench", "records", "--rounds", "1"]).stdout
    assert "Ours over theirs" in shown
    assert "read_label.orjson_by_hand" in shown


def test_the_peer_reads_good_labels_and_refuses_bad_ones():
    good = json.dumps(LABEL).encode()
    read, refused = records.by_hand(READ["label"], [good])
    assert (len(read), refused) == (1, 0)
    skipped = {"empty", "too_large", "not_finite", "wrong_version"}
    bad = [v for kind, v, reason, _ in CASES if kind == "label" and reason.value not in skipped]
    assert records.by_hand(READ["label"], bad) == ([], len(bad))
    assert LabelReader(["benign", "malignant"]).read(bad).ids == []


def test_the_peer_reads_what_is_written():
    record = READ["prediction"](encode(EXAMPLES[Prediction]).replace(b"imaging", b"history"))
    assert record.learner == "history"
    assert record.low == 0.918
