"""Assigns partitions: an agent's inputs stay together, and tasks stay where they are.

A task reads the same partition of several topics, so the worker that gets one must get all of them.
A task that moves has to be opened again elsewhere, so each worker reports what it holds and keeps
as much of it as an even spread allows. Workers of different roles may share a group: each reports
which agents it runs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import orjson
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

Held: TypeAlias = Mapping[str, Iterable[int]]
Topics: TypeAlias = tuple[str, ...]


class TogetherAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka is untyped
    """Spreads tasks evenly over the workers that run their agent.

    `groups` returns the input topics of each agent of this worker, `holdings` the partitions it
    holds by the first input topic of the agent.
    """

    name = "hb-together"
    version = 0

    def __init__(
        self, groups: Callable[[], Iterable[Topics]], holdings: Callable[[], Held]
    ) -> None:
        self._groups, self._holdings = groups, holdings

    def metadata(self, topics: Iterable[str]) -> Any:
        """Return what this worker sends to the group when it joins."""
        metadata = {
            "groups": [list(group) for group in self._groups()],
            "held": {topic: sorted(numbers) for topic, numbers in self._holdings().items()},
        }
        return ConsumerProtocolMemberMetadata(self.version, sorted(topics), orjson.dumps(metadata))

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return each member's partitions; called on one member for the whole group."""
        metadata = {
            name: orjson.loads(member.user_data or b"{}") for name, member in members.items()
        }
        subscribed = {name: set(member.subscription) for name, member in members.items()}
        assignments: dict[str, dict[str, list[int]]] = {name: {} for name in members}
        load = dict.fromkeys(members, 0)
        for topics in _groups_of(metadata.values(), subscribed.values()):
            able = [name for name in sorted(members) if subscribed[name].issuperset(topics)]
            numbers = sorted(set.union(*[cluster.partitions_for_topic(t) or set() for t in topics]))
            holdings = {name: metadata[name].get("held", {}).get(topics[0], []) for name in able}
            for name, assigned in spread(numbers, holdings, load).items():
                load[name] += len(assigned)
                for topic in topics if assigned else ():
                    assignments[name][topic] = assigned
        return {
            name: ConsumerProtocolMemberAssignment(self.version, sorted(parts.items()), b"")
            for name, parts in assignments.items()
        }

    def on_assignment(self, assignment: Any) -> None:
        """Do nothing."""


def _groups_of(metadata: Iterable[Any], subscribed: Iterable[set[str]]) -> list[Topics]:
    """Return all agents' inputs, and every other topic by itself."""
    groups = {tuple(group) for member in metadata for group in member.get("groups", ())}
    grouped = {topic for group in groups for topic in group}
    single = {(topic,) for topics in subscribed for topic in topics if topic not in grouped}
    return sorted(groups | single)


def spread(
    numbers: list[int], holdings: Mapping[str, Iterable[int]], load: Mapping[str, int]
) -> dict[str, list[int]]:
    """Return each member's numbers: as evenly as possible, moving as few as possible.

    >>> spread([0, 1, 2, 3], {"a": [0, 1, 2, 3], "b": []}, {"a": 0, "b": 0})
    {'a': [0, 1], 'b': [2, 3]}
    >>> spread([0, 1, 2], {"a": [], "b": [1]}, {"a": 5, "b": 0})
    {'a': [0], 'b': [1, 2]}
    """
    if not holdings:
        return {}
    shares: dict[str, list[int]] = {name: [] for name in holdings}
    least, extra = divmod(len(numbers), len(holdings))
    free = set(numbers)
    for name in sorted(holdings, key=lambda n: (-len(set(holdings[n])), load[n], n)):
        limit = least + 1 if extra else least
        shares[name] = [n for n in sorted(set(holdings[name])) if n in free][:limit]
        free.difference_update(shares[name])
        extra -= len(shares[name]) > least
    for number in sorted(free):
        name = min(shares, key=lambda n: (len(shares[n]), load[n], n))
        shares[name].append(number)
    return {name: sorted(assigned) for name, assigned in shares.items()}
