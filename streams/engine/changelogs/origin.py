"""Where stored state comes from, and what gives it its meaning.

State is bytes. They mean something only together with

    owner     the ensemble that taught it: two that share topics would keep fencing each other
    topics    the ids of the topics that were read and written: offsets say nothing about a topic
              that was recreated under the same name
    meaning   by settings key, a digest of what stored rows and records in flight depend on

The origin is stored with the state, in the folder and in the changelog, and is compared with the
current one at every opening. State that was written before a part was known adopts it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streams.engine.state.table import StateError


@dataclass(frozen=True, slots=True)
class Origin:
    """The ensemble that owns the state, the topics it covers and the settings it depends on."""

    owner: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)
    meaning: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> "Origin":
        """Return the stored origin; parts that were not stored are empty."""
        return msgspec.convert(stored, cls)

    def plain(self) -> dict[str, Any]:
        """Return it in its stored form."""
        return {"owner": self.owner, "topics": dict(self.topics), "meaning": dict(self.meaning)}


def changed_keys(stored: Mapping[str, str], present: Mapping[str, str]) -> list[str]:
    """Return the settings keys whose meaning has changed.

    A key that was never stored is new, which is fine: no rows depend on it yet.

    >>> changed_keys({"labels": "a", "ensemble.mode": "b"}, {"labels": "c", "positive": "d"})
    ['ensemble.mode', 'labels']
    """
    return sorted(key for key, digest in stored.items() if present.get(key) != digest)


def check_owner(stored: Origin, present: Origin, source: str) -> None:
    """Refuse state of another ensemble, or state that these settings would misread."""
    if stored.owner and present.owner and stored.owner != present.owner:
        raise StateError(foreign(stored.owner, present.owner, source))
    if keys := changed_keys(stored.meaning, present.meaning):
        raise StateError(misread(keys, source))


def foreign(owner: str, name: str, source: str) -> str:
    """Return the error for state of another ensemble, with the ways out."""
    return (
        f"{source} belongs to the ensemble {owner}, and these settings are called {name}: two"
        " ensembles cannot share topics; give this one a topics.prefix of its own, or the name"
        " under which the state was taught"
    )


def misread(keys: Iterable[str], source: str) -> str:
    """Return the error for changed settings that stored state depends on, with the ways out."""
    return (
        f"{source} was taught under other settings: {', '.join(keys)} changed, so that it would be"
        " misread; undo the change, or give the new settings another name and topics.prefix, and"
        " teach them from what the topics still hold (docs/settings.md, What may change)"
    )


def check_topics(
    stored: Origin, present: Origin, source: str, positions: Mapping[str, int], private: str
) -> None:
    """Refuse state about topics that were recreated since; `private` is the task's changelog."""
    for topic, recorded in stored.topics.items():
        if present.topics.get(topic, recorded) == recorded:
            continue
        if topic == private:
            raise StateError(
                f"the changelog {topic} was recreated: {source} was written to an earlier topic of"
                " that name. Restore the earlier topic; or move the state folder away to continue"
                " from what the new one holds (records may be answered twice); or use another"
                " topics.prefix"
            )
        read = f" and has read it up to {positions[topic]}" if topic in positions else ""
        raise StateError(
            f"the topic {topic} was recreated: {source} belongs to an earlier topic of that name"
            f"{read}. Restore the earlier topic, or use another topics.prefix"
        )
