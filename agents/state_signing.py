"""The keys that sign a learner's or the ensemble's state on the broker."""

from collections.abc import Callable

from agents.sealing import read_keys
from settings.model import Settings
from streams.engine.changelogs.signing import Signer


def signer_of(settings: Settings, name: str) -> Callable[[], Signer | None]:
    """Return what reads the keys when a task opens: not everyone who knows the agents has them."""

    def signer() -> Signer | None:
        keys = read_keys(settings.privacy.state_keys.get(name, ()), f"privacy.state_keys.{name}")
        return Signer(keys) if keys else None

    return signer
