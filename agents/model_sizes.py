"""How large the models of learning rules are as rows of state: each travels as one record."""

import numpy as np

from agents.pooling import LEARNED
from agents.state_encoding import pack_state
from learners.rules.base import LearningRule
from settings.building import local_learner
from settings.model import Settings
from streams.kafka.topics import CHANGELOG_RECORD

MUCH = 1_000_000
"""Bytes of a row that exceed what a broker takes by default."""


def model_sizes(settings: Settings) -> dict[str, int]:
    """Return the bytes of each model before it has learned anything, by its key in the settings.

    Some grow a little with what they learn.
    """
    return {
        f"learners.{name}.rules.{rule.name}": len(
            pack_state({**rule.state(), LEARNED: np.array(0)})
        )
        for name in settings.learners
        for rule in local_learner(settings, name).rules
        if isinstance(rule, LearningRule)
    }


def size_warnings(settings: Settings) -> list[str]:
    """Return a sentence for each model that is large, and what to do about it."""
    warnings = []
    for key, size in model_sizes(settings).items():
        if size > CHANGELOG_RECORD:
            warnings.append(
                f"{key}: its model takes {size:,} bytes, and a row of state may take"
                f" {CHANGELOG_RECORD:,}: its task will stop; give the learner fewer features"
            )
        elif size > MUCH:
            warnings.append(
                f"{key}: its model takes {size:,} bytes or more and is written with every commit;"
                " changelogs of earlier versions take less: hb topics check --alter"
            )
    return warnings
