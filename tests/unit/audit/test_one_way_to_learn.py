"""Live, audit, replay and the experiments teach a local learner by the same function."""

import sys

import pytest

from audit.end_to_end import recompute
from audit.replay.replay import replayed
from experiments.single_pass.local_passes import Recipe, Task, listen
from learners.local.learner import LocalLearner
from tests.inline_pipeline import configured, lived


@pytest.fixture
def teachers(monkeypatch):
    """Return the modules that let a local learner learn, as they do."""
    modules, learn = set(), LocalLearner.learn

    def noted(self, *arguments):
        modules.add(sys._getframe(1).f_globals["__name__"])
        return learn(self, *arguments)

    monkeypatch.setattr(LocalLearner, "learn", noted)
    return modules


def test_everybody_learns_by_the_one_function(tmp_path, teachers):
    settings = configured(tmp_path)
    live = lived(settings, 20)
    recompute(live.observed())
    replayed([live.logs()], settings)
    listen(Task("wdbc", 1, 0, Recipe(rules=({"kind": "logistic"},))))
    assert teachers == {
        "agents.local_learner",
        "audit.local_learner",
        "audit.replay.player",
        "experiments.single_pass.local_passes",
    }
