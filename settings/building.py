"""From settings to learners: the one place that turns a description into objects that learn."""

from math import log

from learners.errors import LearnerError
from learners.fusion.base import Fusion
from learners.fusion.fnr_control import Controlled, FnrControl
from learners.local.iup import Feedback, IupConfig
from learners.local.learner import LocalLearner
from learners.local.phases import Clock, Doubling, Horizon
from settings.errors import SettingsError
from settings.model import Settings
from settings.sections.features import build_space
from settings.sections.learners import LearnerSettings


def local_learner(settings: Settings, name: str) -> LocalLearner:
    """Return the untaught local learner that the settings describe."""
    learner = settings.learners[name]
    if not learner.fitted:
        raise SettingsError(
            f"learners.{name}.features: not all are fitted; run hb features fit DATA.csv"
        )
    space = build_space(learner.features)
    rules = [rule.build(key, space, settings.labels) for key, rule in learner.rules.items()]
    try:
        return LocalLearner(
            space,
            rules,
            iup_config(learner),
            classes=len(settings.labels),
            lipschitz=learner.lipschitz,
        )
    except LearnerError as error:
        raise SettingsError(f"learners.{name}: {error}") from error


def iup_config(learner: LearnerSettings) -> IupConfig:
    """Return the configuration of a learner's IUP."""
    weights = [rule.weight for rule in learner.rules.values()]
    return IupConfig(
        rules=len(learner.rules),
        clock=clock(learner),
        alpha=learner.alpha,
        exploration=learner.exploration,
        feedback=Feedback(learner.feedback),
        weights=weights if any(weight != 1.0 for weight in weights) else None,
        preferred=None if learner.ties == "hash" else list(learner.rules).index(learner.ties),
        cuts=learner.cuts,
        max_cuts=learner.max_cuts,
        backoff=learner.backoff,
    )


def clock(learner: LearnerSettings) -> Clock:
    """Return the clock that ends the learner's phases."""
    if learner.doubling is not None:
        return Doubling(learner.doubling)
    assert learner.horizon is not None  # noqa: S101 - the settings guarantee one of the two
    return Horizon(learner.horizon)


def fusion(settings: Settings) -> Fusion:
    """Return the untaught fusion rule of the ensemble learner, under FNR control if that is set."""
    ensemble = settings.ensemble
    rule = ensemble.build(len(settings.learners), settings.labels)
    if not ensemble.fnr_control or ensemble.fnr_target is None:
        return rule
    positive = list(settings.labels).index(settings.positive)
    control = FnrControl(
        positive,
        target=ensemble.fnr_target,
        step=ensemble.fnr_step,
        prior=log(ensemble.fnr_start),
        # One more cube, for instances whose context does not come in time.
        cubes=ensemble.context.partition().size + 1 if ensemble.context else 1,
    )
    return Controlled(rule, control)
