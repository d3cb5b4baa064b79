"""Chance, answer and track record of every diagnosis, recomputed; a damaged one is found."""

import json
from dataclasses import replace

import numpy as np
import pytest

from audit.end_to_end import recompute
from tests.inline_pipeline import JOINT, configured, lived

TABLE = "ensemble chances, answers and track records"


@pytest.fixture
def live(tmp_path):
    return lived(
        configured(tmp_path, "ensemble.miss_target=0.1", "ensemble.mode=stack"), 120, lag=9
    )


@pytest.mark.parametrize("changes", [(), ("ensemble.mode=ah",), (*JOINT, "ensemble.mode=odds")])
def test_every_diagnosis_comes_out_again(tmp_path, changes):
    target = "ensemble.miss_target={ ill = 0.1 }"
    settings = configured(tmp_path, target, "ensemble.min_labels=4", *changes)
    findings, _ = recompute(lived(settings, 60, lag=3, labelled=50).observed())
    assert findings.clean, findings.list()
    assert (findings.tables[TABLE].values, findings.tables[TABLE].note) == (60, "")


def damage(live, **changes):
    """Change the last diagnosis that is an answer."""
    number = max(k for k, diagnosis in enumerate(live.diagnoses) if diagnosis.answer != "refer")
    batch = live.published[live.topics.diagnoses][number]
    record = json.loads(batch.values[0]) | changes
    live.published[live.topics.diagnoses][number] = replace(
        batch, values=[json.dumps(record).encode()]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"chance": {"well": 0.5, "ill": 0.5}},
        {"answer": "refer", "cannot_exclude": ["well", "ill"]},
        {"track_record": {"cases": 3, "right": 1, "low": 0.0, "high": 1.0}},
        {"learned": 70},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_damaged_value_is_found(live, changes):
    damage(live, **changes)
    findings, _ = recompute(live.observed())
    assert findings.tables[TABLE].differing >= 1


def test_a_damaged_count_is_found(live):
    state = live.observed()
    counts = state.states["ensemble"].counts["assessment"]
    row = counts.rows(np.zeros(1, np.int64))
    row[0, 3] += 1
    counts.put(np.zeros(1, np.int64), row)
    findings, _ = recompute(state)
    assert findings.tables["ensemble assessment"].differing == 1


def test_with_several_partitions_it_says_what_is_not_compared(live):
    topics = live.settings.topics.model_copy(update={"partitions": 2})
    live.settings = live.settings.model_copy(update={"topics": topics})
    findings, _ = recompute(live.observed())
    assert "not on record" in findings.tables[TABLE].note
