"""Past patients teach as others do; their errors are counted separately, and exactly."""

import numpy as np
import pytest

from agents.monitor.scores import score
from audit.end_to_end import recompute
from audit.metric_values import audit_metrics
from audit.partition_tables import live_tables, sums
from audit.replay.replay import replayed
from tests.inline_pipeline import configured, lived

PAST, ALL = 40, 70


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return configured(tmp_path_factory.mktemp("history"), "ensemble.mode=ah")


@pytest.fixture(scope="module")
def taught(settings):
    return lived(settings, ALL, past=PAST)


def scores_of(observed):
    return score(observed.settings, sums(observed.settings, [live_tables(observed)]))


def test_what_is_learned_and_decided_is_the_same_with_and_without_the_mark(settings, taught):
    plain = lived(settings, ALL)
    assert [diagnosis.label for diagnosis in taught.diagnoses] == [
        diagnosis.label for diagnosis in plain.diagnoses
    ]
    assert [diagnosis.chance for diagnosis in taught.diagnoses] == [
        diagnosis.chance for diagnosis in plain.diagnoses
    ]
    assert [diagnosis.history for diagnosis in taught.diagnoses] == [True] * PAST + [False] * (
        ALL - PAST
    )
    assert taught.diagnoses[-1].learned == ALL - 1, "history is experience"
    marked, unmarked = scores_of(taught.observed()), scores_of(plain.observed())
    assert marked.regret == unmarked.regret
    assert marked.learned == unmarked.learned


def test_rates_of_history_stay_apart(settings, taught):
    """Added up, both are what there would be without the mark; the window holds the present."""
    plain, first = lived(settings, ALL), lived(settings, PAST)
    marked, whole = scores_of(taught.observed()), scores_of(plain.observed())
    past = scores_of(first.observed())
    assert (marked.labelled, marked.taught) == (ALL - PAST, PAST)
    assert marked.history == past.rates
    for name, counts in marked.confusion.items():
        assert (counts + past.confusion[name] == whole.confusion[name]).all()
    assert marked.recent == marked.rates, "fewer than a thousand"
    assert whole.history == {}


def test_an_audit_recounts_both(taught):
    observed = taught.observed()
    findings, again = recompute(observed)
    audit_metrics(observed.settings, [again], [live_tables(observed)], findings)
    assert findings.clean, findings.list()


@pytest.mark.parametrize("row", [0, 3])
def test_an_audit_finds_errors_that_were_moved_to_history(taught, row):
    observed = taught.observed()
    table = observed.states["ensemble"].counts["scores"]
    cells = np.array([row])
    table.put(cells, table.rows(cells) + 1)
    findings, _ = recompute(observed)
    assert findings.tables["ensemble scores"].differing > 0


def test_a_restart_keeps_both(settings):
    live = lived(settings, ALL, past=PAST)
    before = scores_of(live.observed())
    live.restart()
    after = scores_of(live.observed())
    assert after.history == before.history
    assert after.rates == before.rates
    assert after.recent == before.recent


def test_a_replay_scores_the_present_alone(taught):
    replay = replayed([taught.logs()], taught.settings)
    assert replay.agreement == 1.0
    assert replay.live.labelled == replay.unchanged.labelled == ALL - PAST
    assert replay.live.confusion["ensemble"].tolist() == (
        replay.unchanged.confusion["ensemble"].tolist()
    )
