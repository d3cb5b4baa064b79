"""All fusion rules by name, as the settings file names them.

>>> fusion = make_fusion("ch", learners=3, classes=2, cubes=64, eta_scale=2.0)
>>> type(fusion).__name__
'Hedge'
>>> make_fusion("ch", learners=3, classes=2)
Traceback (most recent call last):
learners.errors.LearnerError: fusion mode 'ch' needs a context; without one use 'ah' or 'wm'
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from learners.errors import LearnerError
from learners.fusion.active import Active
from learners.fusion.base import Fusion
from learners.fusion.committee import Committee
from learners.fusion.confidence_vote import ConfidenceVote, HedgeOdds
from learners.fusion.hedge import Hedge
from learners.fusion.mixture import Mixture
from learners.fusion.peers.adaboost import OnlineAdaBoost
from learners.fusion.peers.blum import Blum
from learners.fusion.peers.fixed import FixedVote
from learners.fusion.peers.pwm import PerceptronMajority
from learners.fusion.peers.single import SingleLearner
from learners.fusion.peers.trackexp import TrackExp
from learners.fusion.stack import Stack

DEFAULT_MEMBERS = ("majority", "wm", "odds", "stack")
"""The committee's members unless others are named."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to fuse predictions.

    summary   one line for people
    options   names of the settings it takes, beside `prefer`
    """

    summary: str
    options: tuple[str, ...]
    build: Callable[..., Fusion]


def _without_cubes(build: Callable[..., Fusion]) -> Callable[..., Fusion]:
    def built(learners: int, classes: int, *, cubes: int | None, **options: Any) -> Fusion:
        del cubes  # such a rule has no state, so contexts make no difference to it
        return build(learners, classes, **options)

    return built


def _committee(
    kind: Callable[..., Fusion],
    learners: int,
    classes: int,
    *,
    cubes: int | None,
    members: Sequence[str] = DEFAULT_MEMBERS,
    active: bool = False,
    prefer: int = 0,
    **options: Any,
) -> Fusion:
    if not members or len(set(members)) != len(members):
        raise LearnerError("members must name at least one fusion mode, and each only once")
    rules = {
        name: make_fusion(name, learners, classes, cubes=cubes, active=active, prefer=prefer)
        for name in members
    }
    if any(rule.own_experts for rule in rules.values()):
        raise LearnerError("a committee cannot have a committee as its member")
    return kind(rules, cubes=cubes, prefer=prefer, **options)


_HEDGE = ("eta_scale", "rate")

MODES: dict[str, Mode] = {
    "ah": Mode(
        "Anytime Hedge: follow one learner, drawn by weight; regret bound, also with late labels",
        _HEDGE,
        partial(Hedge, use="sample"),
    ),
    "wm": Mode(
        "Weighted Majority: the label with most of Anytime Hedge's weights behind it",
        _HEDGE,
        partial(Hedge, use="vote"),
    ),
    "ch": Mode(
        "Contextual Hedge: Anytime Hedge per context cube; regret bound, also with late labels",
        _HEDGE,
        partial(Hedge, use="sample"),
    ),
    "ch-vote": Mode(
        "Contextual Hedge's weights, used for a vote", _HEDGE, partial(Hedge, use="vote")
    ),
    "majority": Mode(
        "Plain majority: every learner counts the same", (), _without_cubes(FixedVote)
    ),
    "fixed": Mode("Votes with given weights", ("weights",), _without_cubes(FixedVote)),
    "adaboost": Mode("Online AdaBoost (Oza and Russell) of the votes", (), OnlineAdaBoost),
    "pwm": Mode("Perceptron Weighted Majority (Canzian and others)", (), PerceptronMajority),
    "blum": Mode("Blum's Winnow-like majority, for learners that may sleep", (), Blum),
    "trackexp": Mode(
        "Herbster and Warmuth's fixed share: follows changes of the best learner",
        ("rate", "share"),
        TrackExp,
    ),
    "best": Mode(
        "Follow the learner with the fewest errors so far", (), partial(SingleLearner, which="best")
    ),
    "average": Mode(
        "Follow any learner, drawn uniformly", (), partial(SingleLearner, which="average")
    ),
    "worst": Mode(
        "Follow the learner with the most errors so far", (), partial(SingleLearner, which="worst")
    ),
    "confidence": Mode(
        "Votes weighted by the log-odds of each learner's accuracy", ("clip",), ConfidenceVote
    ),
    "odds": Mode("Learners' log-odds, summed by Hedge weights", (*_HEDGE, "clip"), HedgeOdds),
    "stack": Mode(
        "Online Bayesian logistic regression on the learners' log-odds",
        ("clip", "prior_mean", "prior_variance"),
        Stack,
    ),
    "committee": Mode(
        "Hedge over fusion rules: the safety net when no rule is best everywhere",
        ("members", "with_learners", "use", *_HEDGE),
        partial(_committee, Committee),
    ),
    "mixture": Mode(
        "Bayes mixture by log loss: at most ln E nats above the best of E,"
        " chances kept off 0 and 1",
        ("members", "with_learners"),
        partial(_committee, Mixture),
    ),
}
"""Every fusion rule by the name that settings use."""


def make_fusion(
    mode: str,
    learners: int,
    classes: int,
    *,
    cubes: int | None = 1,
    active: bool = False,
    **options: Any,
) -> Fusion:
    """Return a fusion rule by its name.

    learners, classes   how many local learners and labels there are
    cubes               how many context cubes; None for more than can be listed
    active              hear only the learners that exploit; of a committee, each member does so
    options             what `MODES[mode].options` lists, and `prefer`
    """
    named = MODES.get(mode)
    if named is None:
        raise LearnerError(f"unknown fusion mode {mode!r}; choose one of {', '.join(MODES)}")
    if mode.startswith("ch") and cubes == 1:
        raise LearnerError(f"fusion mode {mode!r} needs a context; without one use 'ah' or 'wm'")
    allowed = (*named.options, "prefer")
    foreign = [name for name in options if name not in allowed]
    if foreign:
        raise LearnerError(
            f"fusion mode {mode!r} takes {', '.join(allowed)}, not {', '.join(foreign)}"
        )
    if mode in {"committee", "mixture"}:
        return named.build(learners, classes, cubes=cubes, active=active, **options)
    fusion = named.build(learners, classes, cubes=cubes, **options)
    return Active(fusion) if active else fusion
