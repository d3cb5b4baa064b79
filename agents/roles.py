"""The roles of workers, and the agents behind them."""

from collections.abc import Sequence

from agents import ensemble_learner, local_learner
from settings.errors import InputError
from settings.model import Settings
from streams.engine.api import AgentSpec
from streams.kafka.topics import ENSEMBLE


def roles(settings: Settings) -> tuple[str, ...]:
    """Return every role of the settings: `local:<ll>` for each learner, and `ensemble`."""
    return (*(f"local:{name}" for name in settings.learners), ENSEMBLE)


def specs(settings: Settings, chosen: Sequence[str] = ()) -> list[AgentSpec]:
    """Return the agents of the given roles, or of all roles."""
    names = roles(settings)
    for role in chosen:
        if role not in names:
            raise InputError(f"there is no role {role}; the settings have: {', '.join(names)}")
    return [_spec(settings, role) for role in names if not chosen or role in chosen]


def _spec(settings: Settings, role: str) -> AgentSpec:
    if role == ENSEMBLE:
        return ensemble_learner.spec(settings)
    return local_learner.spec(settings, role.removeprefix("local:"))
