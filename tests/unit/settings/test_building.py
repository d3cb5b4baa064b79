import numpy as np
import pytest

from learners.arrays.seeds import seeds_of
from learners.local.iup import Feedback
from learners.local.learner import Labelled
from learners.local.phases import Doubling, Horizon
from settings.building import assessment, fusion, local_learner
from settings.errors import SettingsError
from tests.toys import TOY, toy


def test_every_setting_reaches_the_learner(tmp_path):
    settings = toy(
        tmp_path,
        "learners.a.exploration=0.25",
        "learners.a.feedback=full",
        "learners.a.ties=malignant",
        "learners.a.backoff=1.5",
        "defaults.rules.malignant.weight=2.0",
    )
    a, b = local_learner(settings, "a"), local_learner(settings, "b")
    assert a.iup.config.clock == Horizon(100_000)
    assert b.iup.config.clock == Doubling(1000)
    assert (a.iup.config.exploration, a.iup.config.backoff) == (0.25, 1.5)
    assert a.iup.config.feedback is Feedback.FULL
    assert a.iup.config.preferred == 1
    assert list(a.iup.config.weights or ()) == [1.0, 2.0]
    assert a.lipschitz == 0.01
    assert a.iup.phase(1).partition.m == 1
    assert b.space.names == ("z", "s")
    assert local_learner(toy(tmp_path), "a").iup.config.weights is None


def test_a_built_learner_decides_and_learns(tmp_path):
    learner = local_learner(toy(tmp_path, "learners.b.cuts=2"), "b")
    rows = np.array([[-1.0, 0.0], [1.0, 1.0]])
    predictions = learner.decide(rows, seeds_of(["p", "q"]))
    assert predictions.choices.cubes.tolist() == [0, 3]
    learner.learn(Labelled.of(predictions, truth=np.array([0, 1])))
    assert learner.iup.labelled == 2


def test_the_fusion_rule_is_the_one_named(tmp_path):
    assert fusion(toy(tmp_path, "ensemble.mode=trackexp")).learners == 2


def test_unfitted_features_say_what_to_run(tmp_path):
    text = TOY.replace(', scale = "zlog", mean = 0.0, std = 1.0', ', scale = "zlog"')
    with pytest.raises(SettingsError, match="hb features fit"):
        local_learner(toy(tmp_path, text=text), "b")


def test_a_miss_target_is_for_every_label_or_for_those_named(tmp_path):
    assert not assessment(toy(tmp_path)).controlled
    assessed = assessment(toy(tmp_path, "ensemble.miss_target=0.05", "ensemble.min_labels=3"))
    assert (assessed.targets, assessed.min_labels) == ((0.05, 0.05), 3)
    single = assessment(toy(tmp_path, "ensemble.miss_target={ malignant = 0.03 }"))
    assert np.isnan(single.targets[0])
    assert single.targets[1] == 0.03


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("ensemble.miss_target={ other = 0.1 }", "must be one of labels"),
        ("ensemble.miss_target=1.5", "between 0 and 1"),
        ("ensemble.fnr_control=true", "write miss_target"),
        ("ensemble.fnr_step=0.3", "write miss_target"),
        ('labels=["refer", "malignant"]', "must not contain 'refer'"),
    ],
)
def test_what_cannot_be_a_target_is_told(tmp_path, override, says):
    with pytest.raises(SettingsError, match=says):
        toy(tmp_path, override)


def test_learners_know_how_many_others_learn_jointly(tmp_path):
    joint = [f'learners.{name}.rules={{lr={{kind="bayes", joint=true}}}}' for name in "ab"]
    assert local_learner(toy(tmp_path), "a").partners == 0
    assert local_learner(toy(tmp_path, joint[0]), "a").partners == 0
    assert local_learner(toy(tmp_path, *joint), "a").partners == 1
    several = toy(tmp_path, *joint, "topics.partitions=3")
    assert local_learner(several, "a").partners == 0
