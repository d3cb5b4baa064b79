"""Scales that are learned online: no number in the settings, replayed and audited exactly."""

import numpy as np
import pytest

from agents.state_encoding import pack_state, unpack_state
from audit.end_to_end import recompute
from audit.replay.replay import replayed
from learners.theory.promises import interval_holds, why_no_local_bound
from settings.building import local_learner
from tests.inline_pipeline import configured, lived, with_gaps

ONLINE = ('learners.a.features=[{name="x"}, {name="y"}]', 'learners.b.features=[{name="z"}]')
CELLS = 'learners.b.rules={cells={kind="cells"}, bins={kind="naive_bayes", likelihood="binned"}}'
FILLING = b"(missing values)"


@pytest.fixture(params=[(), (CELLS,)], ids=["raw values", "rules that see scaled values"])
def settings(tmp_path, request):
    return configured(tmp_path, "ensemble.mode=stack", *ONLINE, *request.param)


@pytest.mark.parametrize("stream", [lived, with_gaps])
def test_an_audit_recomputes_them_exactly(settings, stream):
    observed = stream(settings, 60, lag=2).observed()
    findings, _ = recompute(observed)
    assert findings.clean, findings.list()
    for name in ("local.a filling", "local.b filling"):
        assert findings.tables[name].values == 4, "counts, totals, squares, categories"


def test_an_audit_finds_a_scale_that_was_moved(settings):
    observed = lived(settings, 30).observed()
    models = observed.states["local.a"].entries["learned"]
    state = unpack_state(models[FILLING])
    state["squares"] = np.nextafter(state["squares"], 9)
    models[FILLING] = pack_state(state)
    findings, _ = recompute(observed)
    assert findings.tables["local.a filling"].differing == 1


def test_a_restart_changes_nothing(settings):
    """A learner without rules that learn keeps its scales as well."""
    whole, restarted = lived(settings, 40), lived(settings, 25)
    restarted.restart()
    unbroken = lived(settings, 40)
    assert [d.label for d in whole.diagnoses] == [d.label for d in unbroken.diagnoses]
    for name in ("a", "b"):
        space = restarted.agents[f"local.{name}"].processor.learner.space
        again = lived(settings, 25).agents[f"local.{name}"].processor.learner.space
        assert [(s.mean, s.std) for s in space.online.values()] == [
            (s.mean, s.std) for s in again.online.values()
        ]
        assert all(s.mean for s in space.online.values())


def test_a_replay_reproduces_the_live_diagnoses(settings):
    replay = replayed([with_gaps(settings, 60, lag=3).logs()], settings)
    assert replay.agreement == 1.0


def test_nothing_is_promised_of_cubes_that_move(settings):
    learner = local_learner(settings, "a")
    assert any("scaled online" in reason for reason in why_no_local_bound(learner))
    assert not any(interval_holds(learner, rule) for rule in learner.rules)
