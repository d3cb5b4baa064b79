"""Fusion rules by name."""

import numpy as np
import pytest

from learners.arrays.shares import UNIT
from learners.errors import LearnerError
from learners.fusion.active import Active
from learners.fusion.hedge import Hedge
from learners.fusion.registry import MODES, make_fusion
from tests.ballots import random_stream


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_one_line_for_people_and_can_be_made(mode):
    assert "\n" not in MODES[mode].summary
    assert len(MODES[mode].summary) <= 100
    fusion = make_fusion(mode, 3, 2, cubes=4, prefer=1)
    assert fusion.prefer == 1
    assert fusion.experts(["a", "b", "c"])


def test_an_unknown_mode_is_refused_with_the_choices():
    with pytest.raises(LearnerError, match="unknown fusion mode 'vote'; choose one of ah, wm, ch"):
        make_fusion("vote", 3, 2)


@pytest.mark.parametrize("mode", ["ch", "ch-vote"])
def test_contextual_modes_need_a_context(mode):
    with pytest.raises(LearnerError, match="needs a context"):
        make_fusion(mode, 3, 2)
    assert isinstance(make_fusion(mode, 3, 2, cubes=None), Hedge)


def test_a_foreign_option_is_refused_with_those_that_fit():
    with pytest.raises(LearnerError, match="'trackexp' takes rate, share, prefer, not eta_scale"):
        make_fusion("trackexp", 3, 2, eta_scale=2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": []}, "at least one"),
        ({"members": ["wm", "wm"]}, "each only once"),
        ({"members": ["wm", "nothing"]}, "unknown fusion mode 'nothing'"),
        ({"members": ["wm", "committee"]}, "as its member"),
    ],
)
def test_impossible_committees_are_refused(options, message):
    with pytest.raises(LearnerError, match=message):
        make_fusion("committee", 3, 2, **options)


def test_options_reach_the_rule():
    hedge = make_fusion("wm", 3, 2, eta_scale=0.0)
    stream = random_stream(np.random.default_rng(0), 50, 3, 2, silent=0.0)
    hedge.learn(stream.ballot, hedge.decide(stream.ballot), stream.truth)
    assert np.abs(hedge.decide(stream.ballot).parts - UNIT / 3).max() <= 1
    weights = make_fusion("fixed", 3, 2, weights=[1.0, 2.0, 1.0]).decide(stream.ballot).weights
    assert np.allclose(weights, [0.25, 0.5, 0.25])


def test_active_wraps_any_rule():
    assert isinstance(make_fusion("stack", 3, 2, active=True), Active)
