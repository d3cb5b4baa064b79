"""The whole system at a glance: topics, tasks, lag, who holds what, waiting labels, the score.

Everything is read from the broker: topics and their ends, the consumer group's members, and the
agents' state on its changelogs. So it is the same from any machine, and true even when no worker
runs. Lag is exact: the positions are those committed with the state.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    GroupCoordinatorNotAvailableError,
    for_code,
)

from agents.board import Board, score
from agents.local_learner import TOTALS
from agents.packing import unpack, unpack_state
from agents.reading import TopicReader
from agents.state_view import StateView, read_state
from agents.worker import specs
from learners.ledger import COUNTERS
from learners.window import Window, merged
from schemas.readers import Reader
from schemas.records import Diagnosis
from streams.connection import admin_client
from streams.errors import BrokerError
from streams.settings import Settings
from streams.tasks.changelog import META_KEY
from streams.topics import ENSEMBLE, Topics, declared, local

_PATIENCE = 10.0
_LEDGER, _WINDOW, _TOTALS = b"head/ledger", b"head/window", b"totals/" + bytes(8)


@dataclass(frozen=True)
class TopicView:
    """A topic: how many records it keeps, about (marks of transactions count too)."""

    name: str
    partitions: int
    records: int
    found: bool = True


@dataclass(frozen=True)
class TaskView:
    """One partition of one agent: who holds it, and how many records it is behind, by topic."""

    agent: str
    partition: int
    holder: str | None
    lag: Mapping[str, int]

    @property
    def behind(self) -> int:
        """Return the records that it has not processed yet."""
        return sum(self.lag.values())


@dataclass(frozen=True)
class Overview:
    """All of it. `counts` are the join's counters, summed over its partitions (docs/join.md)."""

    topics: list[TopicView]
    members: list[str]
    tasks: list[TaskView]
    counts: Mapping[str, int]
    board: Board
    limit: int

    @property
    def waiting(self) -> int:
        """Return the diagnosed patients whose label has not come."""
        c = self.counts
        diagnosed = c["diagnosed_complete"] + c["diagnosed_incomplete"]
        return diagnosed - c["settled"] - c["expired"] - c["evicted"]

    @property
    def parked(self) -> int:
        """Return the labels that came before their patient's prediction."""
        c = self.counts
        return c["label_parked"] - c["parked_label_settled"] - c["parked_label_unknown"]


async def look(settings: Settings) -> Overview:
    """Read everything once; raise BrokerError if a topic is missing that it takes."""
    names = Topics.of(settings)
    async with admin_client(settings.broker) as admin:
        listed = {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics()}
        missing = [topic.name for topic in declared(settings) if topic.name not in listed]
        if missing:
            raise BrokerError(f"topic {missing[0]} is missing; make it with: hb topics create")
        holders = await _holders(admin, settings.name)
    view = state_view(names)
    shared = [names.shared(ENSEMBLE)]
    await read_state(settings, view, shared, _tails(names))
    async with TopicReader(settings, list(names.kinds), "start") as reader:
        begins, ends = reader.begins, reader.ends
    counts = _counts(view, names)
    return Overview(
        topics=_topics(names.kinds, settings.topics.partitions, begins, ends),
        members=sorted(set(holders.values())),
        tasks=_tasks(settings, view, holders, ends),
        counts=counts,
        board=await _board(settings, view),
        limit=settings.ensemble.max_pending * settings.topics.partitions,
    )


def state_view(names: Topics) -> StateView:
    """Return an empty view of all tables that figures are made from."""
    wanted: dict[str, tuple[str, ...]] = {names.changelog(agent): () for agent in names.agents}
    wanted |= {names.shared(local(learner)): ("totals",) for learner in names.learners}
    wanted[names.changelog(ENSEMBLE)] = ("head",)
    wanted[names.shared(ENSEMBLE)] = ("scores", "regret")
    return StateView(wanted)


def _tails(names: Topics) -> dict[str, tuple[bytes, ...]]:
    tails: dict[str, tuple[bytes, ...]] = {
        names.changelog(agent): (META_KEY,) for agent in names.agents
    }
    tails[names.changelog(ENSEMBLE)] = (META_KEY, _LEDGER, _WINDOW)
    return tails | {names.shared(local(learner)): (_TOTALS,) for learner in names.learners}


async def _holders(admin: AIOKafkaAdminClient, group: str) -> dict[tuple[str, int], str]:
    """Return who holds which partition, from the consumer group; nobody if there is no group."""
    holders: dict[tuple[str, int], str] = {}
    for response in await _described(admin, group):
        for found in response.to_object()["groups"]:
            error = for_code(found["error_code"])
            if error.errno:
                raise error(group)
            for member in found["members"]:
                if not member["member_assignment"]:
                    continue
                name = f"{member['client_host'].lstrip('/')} {member['member_id'][-8:]}"
                given = ConsumerProtocolMemberAssignment.decode(member["member_assignment"])
                for topic, partitions in given.assignment:
                    holders |= {(topic, number): name for number in partitions}
    return holders


async def _described(admin: AIOKafkaAdminClient, group: str) -> list[Any]:
    """Describe a group; a new broker makes the room for groups when it is first asked."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return list(await admin.describe_consumer_groups([group]))
        except (GroupCoordinatorNotAvailableError, CoordinatorLoadInProgressError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)


def _topics(
    names: Iterable[str], partitions: int, begins: Mapping[Any, int], ends: Mapping[Any, int]
) -> list[TopicView]:
    kept = dict.fromkeys(names, 0)
    for place, end in ends.items():
        kept[place.topic] += end - begins[place]
    return [TopicView(name, partitions, records) for name, records in kept.items()]


def _tasks(
    settings: Settings,
    view: StateView,
    holders: Mapping[tuple[str, int], str],
    ends: Mapping[Any, int],
) -> list[TaskView]:
    names = Topics.of(settings)
    end_of = {(place.topic, place.partition): end for place, end in ends.items()}
    tasks = []
    for spec in specs(settings):
        for number in range(settings.topics.partitions):
            done = view.positions.get((names.changelog(spec.name), number), {})
            lag = {t: max(end_of[t, number] - done.get(t, 0), 0) for t in spec.inputs}
            holder = holders.get((spec.inputs[0], number))
            tasks.append(TaskView(spec.name, number, holder, lag))
    return tasks


def _counts(view: StateView, names: Topics) -> dict[str, int]:
    heads = view.entries(names.changelog(ENSEMBLE), "head", b"ledger")
    total = dict.fromkeys(COUNTERS, 0)
    for head in heads:
        for name, count in unpack(head)["counts"].items():
            total[name] = total.get(name, 0) + count
    return total


async def _board(settings: Settings, view: StateView) -> Board:
    reader = Reader(Diagnosis)
    async with TopicReader(settings, [Topics.of(settings).diagnoses], "start") as topic:
        last = [reader.one(record.value) for record in await topic.last(1)]
    return board(settings, view, last[0] if last else None)


def board(settings: Settings, view: StateView, latest: Diagnosis | None) -> Board:
    """Return the score that a view of the state leads to."""
    names = Topics.of(settings)
    shared = names.shared(ENSEMBLE)
    return score(
        settings,
        view.sums(shared, "scores"),
        view.sums(shared, "regret"),
        {
            name: view.sums(names.shared(local(name)), "totals").get(0, np.zeros(TOTALS, np.int64))
            for name in settings.learners
        },
        recent=_recent(settings, view, names),
        latest=latest,
    )


def _recent(settings: Settings, view: StateView, names: Topics) -> Any:
    """Return the confusion counts of the last 1000 labelled of all partitions together."""
    windows = []
    for packed in view.entries(names.changelog(ENSEMBLE), "head", b"window"):
        window = Window(1 + len(settings.learners), len(settings.labels))
        window.restore(unpack_state(packed))
        windows.append(window)
    return merged(windows).confusion() if windows else None
