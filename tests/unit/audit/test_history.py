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
    assert [said.label for said in taught.diagnoses] == [said.label for said in plain.diagnoses]
    assert [said.chance for said in taught.diagnoses] == [said.chance for said in plain.diagnoses]
    assert [said.history for said in taught.diagnoses] == [True] * PAST + [False] * (ALL - PAST)
    assert taught.diagnoses[-1].learned == ALL - 1, "history is experience"
    one, other = scores_of(taught.observed()), scores_of(plain.observed())
    assert one.regret == other.regret
    assert one.learned == other.learned


def test_rates_of_history_stay_apart(settings, taught):
    """Added up, both are what there would be without the mark; the window holds the present."""
    plain, first = lived(settings, ALL), lived(settings, PAST)
    both, whole = scores_of(taught.observed()), scores_of(plain.observed())
    past = scores_of(first.observed())
    assert (both.labelled, both.taught) == (ALL - PAST, PAST)
    assert both.history == past.rates
    for name, counts in both.confusion.items():
        assert (counts + past.confusion[name] == whole.confusion[name]).all()
    assert both.recent == both.rates, "fewer than a thousand"
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
    found = replayed([taught.logs()], taught.settings)
    assert found.agreement == 1.0
    assert found.live.labelled == found.unchanged.labelled == ALL - PAST
    assert found.live.confusion["ensemble"].tolist() == (
        found.unchanged.confusion["ensemble"].tolist()
    )
