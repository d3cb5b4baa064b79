"""The settings file: what one ensemble is, and where and how it runs.

`load_settings` reads `ensemble.toml` into a frozen `Settings`, which describes and starts nothing.
"""

from streams.settings.base import FOREVER, Secret, milliseconds
from streams.settings.broker import BrokerSettings, SecuritySettings
from streams.settings.ensemble import ContextSettings, EnsembleSettings
from streams.settings.features import FeatureSettings, build_space
from streams.settings.learners import LearnerSettings, RuleSettings
from streams.settings.loading import load_settings
from streams.settings.model import ColumnSettings, Settings
from streams.settings.topics import RetentionSettings, TopicSettings
from streams.settings.worker import WorkerSettings

__all__ = [
    "FOREVER",
    "BrokerSettings",
    "ColumnSettings",
    "ContextSettings",
    "EnsembleSettings",
    "FeatureSettings",
    "LearnerSettings",
    "RetentionSettings",
    "RuleSettings",
    "Secret",
    "SecuritySettings",
    "Settings",
    "TopicSettings",
    "WorkerSettings",
    "build_space",
    "load_settings",
    "milliseconds",
]
