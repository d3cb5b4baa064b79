import numpy as np
import pytest

from learners.arrays.seeds import seeds_of
from learners.fusion.fnr_control import Controlled
from learners.local.iup import Feedback
from learners.local.learner import Labelled
from learners.local.phases import Doubling, Horizon
from settings.building import fusion, local_learner
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
    said = learner.decide(rows, seeds_of(["p", "q"]))
    assert said.choices.cubes.tolist() == [0, 3]
    learner.learn(Labelled.of(said, truth=np.array([0, 1])))
    assert learner.iup.labelled == 2


def test_the_fusion_rule_is_the_one_named(tmp_path):
    assert fusion(toy(tmp_path, "ensemble.mode=trackexp")).learners == 2


def test_unfitted_features_say_what_to_run(tmp_path):
    text = TOY.replace(', scale = "zlog", mean = 0.0, std = 1.0', "")
    with pytest.raises(SettingsError, match="hb features fit"):
        local_learner(toy(tmp_path, text=text), "b")


def test_fnr_control_wraps_the_fusion_rule(tmp_path):
    plain = fusion(toy(tmp_path, "ensemble.fnr_target=0.05"))
    assert "fnr_control" not in plain.tables()
    made = fusion(toy(tmp_path, "ensemble.fnr_target=0.05", "ensemble.fnr_control=true"))
    assert isinstance(made, Controlled)
    assert made.control.target == 0.05
    assert made.control.positive == 1
    with pytest.raises(SettingsError, match="fnr_target"):
        toy(tmp_path, "ensemble.fnr_control=true")


def test_fnr_control_takes_its_settings_and_has_a_cube_for_missing_contexts(tmp_path):
    context = 'ensemble.context={cuts=3, features=[{name="x", low=0.0, high=1.0}]}'
    given = ["ensemble.fnr_target=0.1", "ensemble.fnr_control=true", context]
    made = fusion(toy(tmp_path, *given, "ensemble.fnr_step=0.2", "ensemble.fnr_start=4"))
    assert isinstance(made, Controlled)
    assert (made.control.target, made.control.step) == (0.1, 0.2)
    assert made.control.h(3) == pytest.approx(4.0), "0 to 2 are the cubes, 3 is for the others"
