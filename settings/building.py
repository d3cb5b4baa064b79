"""From settings to learners: the one place that turns a description into objects that learn."""

from math import nan

from learners.assessment.assessment import Assessment
from learners.errors import LearnerError
from learners.fusion.base import Fusion
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
            f"learners.{name}.features: some are not fitted; run hb features fit DATA.csv"
        )
    space = build_space(learner.features)
    rules = [
        rule.build(key, space, settings.labels, settings.rules.packages)
        for key, rule in learner.rules.items()
    ]
    try:
        return LocalLearner(
            space,
            rules,
            iup_config(learner),
            classes=len(settings.labels),
            lipschitz=learner.lipschitz,
            partners=partners(settings, name),
        )
    except LearnerError as error:
        raise SettingsError(f"learners.{name}: {error}") from error


def partners(settings: Settings, name: str) -> int:
    """Return how many other learners learn jointly with this one.

    With several partitions none counts: a learner decides there by what all of them have learned,
    and teaches only its own, so the two do not tell what has changed since.
    """
    if settings.topics.partitions > 1:
        return 0
    return sum(learner.joint for key, learner in settings.learners.items() if key != name)


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
    """Return the untaught fusion rule of the ensemble learner."""
    return settings.ensemble.build(len(settings.learners), settings.labels)


def assessment(settings: Settings) -> Assessment:
    """Return what says how sure a diagnosis is, untaught."""
    targets = settings.ensemble.targets(settings.labels)
    return Assessment(
        len(settings.labels),
        [targets.get(label, nan) for label in settings.labels],
        settings.ensemble.min_labels,
    )
