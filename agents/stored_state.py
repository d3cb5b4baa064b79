"""Whether the state on the broker is that of these settings, asked before it is used."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from settings.errors import SettingsError
from settings.fingerprint import ensemble_meaning, learner_meaning
from settings.model import Settings
from streams.engine.changelogs.origin import Origin, changed_keys, foreign, misread
from streams.engine.changelogs.origin_reader import origins
from streams.engine.config import engine_config
from streams.kafka.connection import admin_client, explaining
from streams.kafka.topic_admin import find
from streams.kafka.topics import ENSEMBLE, Topics, local


class Conflict(NamedTuple):
    """Where stored state is not that of the settings: another owner, or keys that changed."""

    changelog: str
    partition: int
    owner: str | None
    keys: list[str]


async def check_stored(settings: Settings) -> None:
    """Ask the broker which topics exist, and refuse state that is not that of these settings."""
    async with admin_client(settings.broker) as admin:
        existing = await find(admin, _present(settings))
    await check_state(settings, {name: topic.partitions for name, topic in existing.items()})


async def check_state(
    settings: Settings, partitions: Mapping[str, int], agents: Collection[str] = ()
) -> None:
    """Refuse state of another ensemble, or state that these settings would misread.

    `partitions` has the number of partitions of every topic that exists. If `agents` are named,
    only their state is read: a worker has no right to read that of others.
    """
    own_topics = {Topics.of(settings).changelog(agent) for agent in agents} or partitions.keys()
    conflicts = await find_conflicts(
        settings, {n: c for n, c in partitions.items() if n in own_topics}
    )
    for conflict in conflicts:
        if conflict.owner is not None:
            source = f"the state in {conflict.changelog}"
            raise SettingsError(foreign(conflict.owner, settings.name, source))
    keys = {key for conflict in conflicts for key in conflict.keys}
    if keys:
        raise SettingsError(misread(exact(keys), f"the state under {settings.topics.prefix}*"))


async def find_conflicts(settings: Settings, partitions: Mapping[str, int]) -> list[Conflict]:
    """Return where the state on the broker is not that of these settings."""
    present = _present(settings)
    changelogs = {name: partitions[name] for name in present if name in partitions}
    conflicts = []
    with explaining(settings.broker):
        async for place, stored in origins(engine_config(settings), changelogs):
            owner = stored.owner if stored.owner not in ("", settings.name) else None
            keys = changed_keys(stored.meaning, present[place.topic].meaning)
            if owner is not None or keys:
                conflicts.append(Conflict(place.topic, place.partition, owner, keys))
    return conflicts


def _present(settings: Settings) -> dict[str, Origin]:
    """Return, by changelog, the origin that state has under these settings."""
    topics = Topics.of(settings)
    meanings = {local(name): learner_meaning(settings, name) for name in settings.learners}
    meanings[ENSEMBLE] = ensemble_meaning(settings)
    return {
        topics.changelog(agent): Origin(settings.name, meaning=meaning)
        for agent, meaning in meanings.items()
    }


def exact(keys: Collection[str]) -> list[str]:
    """Return the keys in order, without a learner as a whole where one of its keys is named.

    >>> exact({"learners", "learners.a", "learners.a.cuts", "learners.b"})
    ['learners', 'learners.a.cuts', 'learners.b']
    """
    named = {".".join(key.split(".")[:2]) for key in keys if key.count(".") > 1}
    return sorted(key for key in keys if key not in named)
