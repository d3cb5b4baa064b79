"""What stored state and records in flight depend on: a digest for each part of the settings.

A row of counts is about the n-th rule in the n-th cube, a record's log-odds are in the order of the
labels, a model's parameters are about the n-th feature: other settings would read the same bytes
without complaint, and wrongly. So state carries these digests, by settings key, and a worker whose
settings have others refuses it (`streams.engine.changelogs.origin`).

Digests are of what a key leads to, not of how it is written: a number of cuts that is written down
equals the same number from the paper's formula, and a default equals its own value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from learners.local.partition import cuts_for
from learners.local.phases import Doubling
from learners.rules.options import read
from learners.rules.registry import KINDS
from settings.model import Settings
from settings.sections.features import FeatureSettings
from settings.sections.learners import LearnerSettings, RuleSettings

_PHASES = 48
"""Phases of doubling length whose cuts are compared; no stream is long enough for more."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of some keys does to an ensemble that has state."""

    keys: tuple[str, ...]
    """Keys as in the reference, `*` for a free name; `a.*` for everything below `a`."""
    free: bool
    why: str


FEATURE_KEYS = ("name", "scale", "low", "high", "mean", "std", "knots", "categories")
"""What gives a feature its meaning."""

CHANGES = (
    Change(("name",), free=False, why="The state belongs to the ensemble of that name."),
    Change(
        ("topics.prefix",),
        free=True,
        why="Other topics have other state: the ensemble starts afresh, and the old topics stay.",
    ),
    Change(
        ("topics.partitions",),
        free=False,
        why="It decides the partition of each patient, and so of the state that waits for a label.",
    ),
    Change(
        ("labels", "positive"),
        free=False,
        why="Counts, models and log-odds in flight are in the order of the labels.",
    ),
    Change(
        ("learners",),
        free=False,
        why="What the ensemble knows of a learner is stored under its name and position.",
    ),
    Change(
        ("learners.*.features", *(f"learners.*.features.*.{key}" for key in FEATURE_KEYS)),
        free=False,
        why="Cubes and models are about these features, scaled in this way, in this order.",
    ),
    Change(
        ("learners.*.features.*.required", "ensemble.context.features.*.required"),
        free=True,
        why="It decides which records are refused from now on; state does not depend on it.",
    ),
    Change(
        ("learners.*.cuts", "learners.*.doubling"),
        free=False,
        why="They number the cubes and the phases that counts are about.",
    ),
    Change(
        ("learners.*.horizon", "learners.*.alpha", "learners.*.max_cuts"),
        free=True,
        why="As long as the number of cuts that follows from them stays the same.",
    ),
    Change(
        ("learners.*.feedback",),
        free=False,
        why="Predictions in flight carry the votes of all rules only if it is `full`.",
    ),
    Change(
        ("learners.*.rules", "learners.*.rules.*.kind"),
        free=False,
        why="Counts and models belong to rules by name, order, kind and options.",
    ),
    Change(
        (
            "learners.*.exploration",
            "learners.*.lipschitz",
            "learners.*.ties",
            "learners.*.backoff",
            "learners.*.rules.*.weight",
        ),
        free=True,
        why="They decide how the counts are used, from the next patient on.",
    ),
    Change(
        ("learners.*.reasons",),
        free=True,
        why="Reasons are sent, or not, from the next patient on; `hb topics create` creates their"
        " topic.",
    ),
    Change(
        ("ensemble.mode", "ensemble.active", "ensemble.options"),
        free=False,
        why="Losses, regret and models of the fusion belong to this way of fusing.",
    ),
    Change(
        (
            "ensemble.context",
            "ensemble.context.features",
            "ensemble.context.cuts",
            *(f"ensemble.context.features.*.{key}" for key in FEATURE_KEYS),
        ),
        free=False,
        why="Weights are stored by the cubes of the context.",
    ),
    Change(
        (
            "ensemble.eta_scale",
            "ensemble.prefer",
            "ensemble.miss_target",
            "ensemble.min_labels",
            "ensemble.fnr_target",
            "ensemble.per_target",
        ),
        free=True,
        why="They decide how the counts are used, from the next diagnosis on.",
    ),
    Change(
        (
            "ensemble.fusion_timeout",
            "ensemble.label_ttl",
            "ensemble.max_pending",
            "ensemble.max_remembered",
            "ensemble.amend_ttl",
            "ensemble.max_amendable",
        ),
        free=True,
        why="They apply at once, also to what is already waiting.",
    ),
    Change(
        ("defaults.*",), free=True, why="As long as the learners' own values, above, stay the same."
    ),
    Change(
        ("columns.*", "topics.replication", "topics.min_in_sync", "topics.retention.*"),
        free=True,
        why="State does not depend on them; `hb topics check --alter` applies those of topics.",
    ),
    Change(
        ("privacy.*",),
        free=True,
        why="State is read if it is not encrypted, or encrypted with a key that is still listed.",
    ),
    Change(
        ("rules.*", "broker.*", "worker.*"),
        free=True,
        why="State does not depend on them; but another cluster has other topics and is refused.",
    ),
)
"""Every key of the settings file, and whether it may change."""


def learner_meaning(settings: Settings, name: str) -> dict[str, str]:
    """Return what the state of a local learner depends on, by key."""
    parts = {**_common(settings), **_learner(settings, name)}
    if settings.learners[name].joint:
        parts["learners"] = list(settings.learners)
    return _digests(parts)


def _learner(settings: Settings, name: str) -> dict[str, Any]:
    learner, at = settings.learners[name], f"learners.{name}"
    return {
        f"{at}.features": [_feature(feature) for feature in learner.features],
        f"{at}.cuts": _cuts(learner),
        f"{at}.doubling": learner.doubling,
        f"{at}.feedback": learner.feedback,
        f"{at}.rules": list(learner.rules),
        **{
            f"{at}.rules.{rule}": _rule(rule, chosen, settings)
            for rule, chosen in learner.rules.items()
        },
    }


def ensemble_meaning(settings: Settings) -> dict[str, str]:
    """Return what the state of the ensemble learner depends on, by key.

    Of each learner it keeps what feedback hands back, so all that the learner depends on counts.
    """
    ensemble = settings.ensemble
    context = ensemble.context
    return _digests(
        {
            **_common(settings),
            "learners": list(settings.learners),
            **{f"learners.{name}": _learner(settings, name) for name in settings.learners},
            "ensemble.mode": ensemble.mode,
            "ensemble.active": ensemble.active,
            "ensemble.options": ensemble.options,
            "ensemble.context": context
            and {"features": [_feature(f) for f in context.features], "cuts": context.cuts},
            # No setting any more; state that was taught under it names it still.
            "ensemble.fnr_control": True,
        }
    )


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "labels": settings.labels,
        "positive": settings.positive,
        "topics.partitions": settings.topics.partitions,
    }


def _feature(feature: FeatureSettings) -> dict[str, Any]:
    if feature.categories is not None:
        return {"name": feature.name, "categories": feature.categories}
    numbers = feature.model_dump(include={"low", "high", "mean", "std", "knots"})
    return {"name": feature.name, "scale": feature.scaling, **numbers}


def _cuts(learner: LearnerSettings) -> list[int]:
    """Return into how many parts each real feature is cut, phase by phase."""
    if learner.doubling is None or learner.cuts is not None:
        return [learner.m]
    real = sum(not feature.categorical for feature in learner.features)
    lengths = map(Doubling(learner.doubling).length, range(1, _PHASES + 1))
    return [cuts_for(length, learner.alpha, real, learner.max_cuts) for length in lengths]


def _rule(name: str, rule: RuleSettings, settings: Settings) -> dict[str, Any]:
    options = read(name, rule.options, KINDS[rule.kind].options, settings.labels)
    return {"kind": rule.kind, **options}


def _digests(parts: Mapping[str, Any]) -> dict[str, str]:
    return {key: _digest(value) for key, value in parts.items()}


def _digest(value: Any) -> str:
    """Return a short digest: it tells values apart, and tells nothing about them."""
    return sha256(orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return a value in the one form that stands for all ways to write it: 1 is 1.0."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
