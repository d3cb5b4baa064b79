"""Metrics held against the topics: every figure of the state, and what a worker serves of them."""

import numpy as np
import pytest

from agents.monitor.overview import figures
from agents.monitor.scores import Scorer
from agents.monitor.state_metrics import state_metrics
from audit.end_to_end import recompute
from audit.findings import Findings
from audit.metric_values import Page, address, audit_metrics, read_page, samples
from audit.partition_tables import live_tables, sums
from settings.errors import InputError
from streams.engine.meters import of_ensemble
from tests.inline_pipeline import configured, lived

STATE = "metrics of the state"


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    changes = ("ensemble.mode=ah", "ensemble.fnr_target=0.1", "ensemble.miss_target=0.1")
    return lived(configured(tmp_path_factory.mktemp("audit"), *changes), 40, lag=3).observed


def compared(observed, pages=()):
    findings = Findings()
    _, again = recompute(observed)
    audit_metrics(observed.settings, [again], [live_tables(observed)], findings, pages)
    return findings


def served(observed):
    """Return what a worker would serve of a state."""
    parts = sums(observed.settings, [live_tables(observed)])
    scorer = Scorer(observed.settings)
    metrics = state_metrics(figures(observed.settings, scorer, parts))
    return samples(of_ensemble(observed.settings.name, metrics))


def test_every_figure_is_compared(observed):
    findings = compared(observed())
    assert findings.clean, findings.list()
    assert findings.tables[STATE].values == len(served(observed())) > 60


@pytest.mark.parametrize(
    ("agent", "table", "column", "metric"),
    [
        ("ensemble", "scores", 1, "hb_confusion_total"),
        ("ensemble", "fusion_delays", 1, "hb_regret_bound"),
        ("ensemble", "regret", 4, "hb_regret"),
        ("ensemble", "totals", -1, "hb_predicted_total"),
        ("ensemble", "totals", -3, "hb_disagreements_total"),
        ("ensemble", "latest", 1, "hb_weight"),
        ("ensemble", "assessment", -1, "hb_answers_total"),
        ("ensemble", "assessment", -4, "hb_miss_ratio"),
        ("local.a", "totals", 4, "hb_thin_predictions_total"),
        ("local.a", "totals", 5, "hb_cubes"),
        ("local.b", "totals", 6, "hb_regret"),
    ],
)
def test_a_figure_that_is_not_that_of_the_topics_is_found(observed, agent, table, column, metric):
    state = observed()
    counts = state.states[agent].counts[table]
    cell = counts.items()[0][:1]
    row = counts.rows(cell)
    row[0, column] += 10_000_000
    counts.put(cell, row)
    findings = compared(state)
    assert findings.tables[STATE].differing >= 1
    assert any(metric in finding.where for finding in findings.list())


@pytest.mark.parametrize(
    ("change", "differing", "note"),
    [
        ({}, 0, False),
        ({"hb_pending": 99.0}, 1, False),
        ({"hb_pending": None}, 1, False),
        ({"hb_made_up": 1.0}, 1, False),
    ],
)
def test_what_a_worker_serves(observed, change, differing, note):
    state = observed()
    metrics = dict(served(state))
    for name, value in change.items():
        metrics[name, frozenset({("ensemble", state.settings.name)})] = value
    metrics = {key: value for key, value in metrics.items() if value is not None}
    page = Page("http://here", metrics, 0.0)
    findings = compared(state, [(page, page)])
    check = findings.tables["metrics at http://here"]
    assert (check.differing, bool(check.note)) == (differing, note)
    assert findings.clean == (not differing)


def test_a_stream_that_moves_is_not_judged(observed):
    state = observed()
    page = Page("http://here", served(state), 0.0)
    before = Page("http://here", {}, 0.0)
    findings = compared(state, [(before, page)])
    assert findings.clean
    assert "moved" in findings.tables["metrics at http://here"].note


def test_what_retention_removed_is_not_judged(observed):
    state = observed()
    _, again = recompute(state)
    again.whole = False
    again.totals["a"] = np.zeros_like(again.totals["a"])
    findings = Findings()
    audit_metrics(state.settings, [again], [live_tables(state)], findings)
    assert findings.clean
    assert "gone" in findings.tables[STATE].note


@pytest.mark.parametrize("url", ["ftp://here", "http://", "file:///etc/hosts"])
def test_a_text_that_is_not_an_address_is_reported(url):
    with pytest.raises(InputError, match="not the address of a worker"):
        address(url)


def test_a_worker_that_does_not_answer_is_reported():
    with pytest.raises(InputError, match=r"no metrics at http://127\.0\.0\.1:9/metrics"):
        read_page(address("127.0.0.1:9"))
