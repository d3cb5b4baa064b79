"""The part of a settings file that programs need to publish and read; they ignore the rest.

It describes no learning, so a program that uses the client needs neither numpy nor the learners.
The workers check whether the rest of the file is right.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import ConfigDict, Field, model_validator

from settings.sections.base import Name, Section
from settings.sections.broker import BrokerSettings
from settings.sections.privacy import PrivacySettings
from settings.sections.topics import TopicSettings

if TYPE_CHECKING:
    from settings.model import Settings

AnySettings: TypeAlias = Union["Settings", "ClientSettings"]
"""All of a settings file, or what clients need of it."""


class _Excerpt(Section):
    """A table of the file of which some keys are read."""

    model_config = ConfigDict(extra="ignore")


class ClientFeature(_Excerpt):
    """A feature: its name, its categories if it has any, and whether it must be there."""

    name: str
    categories: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    required: bool = False


_Features: TypeAlias = Annotated[tuple[ClientFeature, ...], Field(strict=False)]


class ClientLearner(_Excerpt):
    """What a local learner sees, and whether it gives its reasons."""

    features: _Features
    reasons: bool = False


class ClientContext(_Excerpt):
    """What a contextual ensemble learner sees."""

    features: _Features


class ClientEnsemble(_Excerpt):
    """The ensemble learner."""

    context: ClientContext | None = None


class ClientSettings(_Excerpt):
    """An ensemble as its clients see it."""

    name: Name
    labels: Annotated[tuple[str, ...], Field(strict=False)]
    learners: dict[Name, ClientLearner]
    ensemble: ClientEnsemble = ClientEnsemble()
    topics: TopicSettings = TopicSettings()
    broker: BrokerSettings = BrokerSettings()
    privacy: PrivacySettings = PrivacySettings()

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        return filled_in(value, _inherit_reasons) if isinstance(value, Mapping) else value


def filled_in(
    value: Mapping[str, Any],
    inherit: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Return a file with the topics' prefix from the name, and learners with their defaults."""
    filled = dict(value)
    if isinstance(name := value.get("name"), str):
        default_key(filled, "topics", "prefix", f"{name}.")
    defaults, learners = value.get("defaults", {}), value.get("learners")
    if isinstance(defaults, Mapping) and isinstance(learners, Mapping):
        filled["learners"] = {
            key: inherit(defaults, table) if isinstance(table, Mapping) else table
            for key, table in learners.items()
        }
    return filled


def _inherit_reasons(defaults: Mapping[str, Any], learner: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: defaults[key] for key in ("reasons",) if key in defaults}, **learner}


def default_key(filled: dict[str, Any], section: str, key: str, value: Any) -> None:
    """Set a key of a table, unless the file has it."""
    table = filled.get(section, {})
    if isinstance(table, Mapping):
        filled[section] = {key: value, **table}
