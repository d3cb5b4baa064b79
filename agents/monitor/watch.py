"""One reader of the whole system per process, shared by everything that needs an overview.

Many may ask at once and often: one overview is taken at a time, and a recent one serves all. A
timer takes one regularly even if there is no request, so that a history can be kept. What the
process's own tasks have committed is known (`agents.monitor.local_state`); the rest is read from
the broker, and what changes slowly is read rarely.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForGroupError,
    for_code,
)

from agents.monitor.local_state import LocalState
from agents.monitor.overview import Condition, Overview, overview, state_view, tails
from agents.monitor.scores import Scorer
from agents.monitor.state_reader import StateLostError, StateReader
from agents.monitor.state_view import StateView
from agents.roles import specs
from settings.errors import BrokerError, HbError
from settings.model import Settings
from streams.engine.held_back import HELD_BACK_AFTER, HeldBack, Standstill
from streams.engine.tasks.task import describe
from streams.kafka.client.membership import assigned
from streams.kafka.client_name import has_died
from streams.kafka.connection import BrokerSlowError, admin_client, explained, explaining
from streams.kafka.topics import ENSEMBLE, Topics, declared

EVERY = 2.0
_SHARE = 100
"""Callers that ask more often than the timer get a new look only if looks take less than one part
in this many of the process's time."""
_PATIENCE = 10.0
_AGAIN = 0.5
"""Seconds between two looks at a transaction that is open."""
_HOLDERS, _BEGINS = 1.5, 10.0
"""How old, in seconds, the answers may be to who holds what and where topics begin."""
_REFUSED = 600.0
"""Seconds for which a record that could not be used is news."""
_NOT_YET = (
    CoordinatorLoadInProgressError,
    GroupCoordinatorNotAvailableError,
    NotCoordinatorForGroupError,
)
_log = logging.getLogger(__name__)


class Watch:
    """Looks at the whole system; an async context manager.

    Entering it starts the timer only: connections are made at the first look, and again after an
    error, so it needs no broker to be there. `own` may listen to the process's tasks.
    """

    def __init__(
        self, settings: Settings, *, every: float = EVERY, patience: float | None = None
    ) -> None:
        self.latest: Overview | None = None
        self.listeners: list[Callable[[Overview], None]] = []
        """Called with every new overview, in the event loop of the process."""
        self._settings, self._every, self._patience = settings, every, patience
        self.own = LocalState(Topics.of(settings), state_view(Topics.of(settings)))
        self._scorer: Scorer | None = None
        self._still = Standstill()
        self._taken = -float("inf")
        self._cost = 0.0
        self._flight: asyncio.Task[Overview] | None = None
        self._timer: asyncio.Task[None] | None = None
        self._open: _Connections | None = None

    async def __aenter__(self) -> Self:
        self._timer = asyncio.create_task(self._look_on(), name="watch")
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._timer, self._flight):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        await self._disconnect()

    async def refresh(self, max_age: float = 0.5) -> Overview:
        """Return the system as it was at most `max_age` seconds ago; BrokerError if that fails.

        Where a look is expensive it may be as old as the timer's last one, unless `max_age` is 0.
        """
        if max_age:
            max_age = max(max_age, min(_SHARE * self._cost, self._every))
        oldest = time.monotonic() - max_age
        while self.latest is None or self._taken < oldest:
            if self._flight is None or self._flight.done():
                self._flight = asyncio.create_task(self._look(), name="a look")
            # A caller that gives up does not end the look that others wait for.
            await asyncio.shield(self._flight)
        return self.latest

    async def _look_on(self) -> None:
        logged = ""
        while True:
            try:
                await self.refresh(self._every / 2)
                logged = ""
            except HbError as error:
                if str(error) != logged:
                    _log.warning("cannot read the state of the system: %s", error)
                logged = str(error)
            except Exception:  # noqa: BLE001  # nobody would notice that the timer had ended
                _log.exception("reading the state of the system failed")
            await asyncio.sleep(self._every)

    async def _look(self) -> Overview:
        began, at = time.monotonic(), time.time()
        try:
            view = await self._read(at)
        except StateLostError:
            await self._disconnect()  # topics were recreated: so is the view
            view = await self._read(at)
        except HbError:
            raise
        except Exception as error:  # anybody may have written to the topics
            await self._disconnect()
            raise HbError(f"cannot read the state on the broker: {describe(error)}") from error
        self.latest, self._taken = view, began
        for tell in self.listeners:
            tell(view)
        return view

    async def _read(self, at: float) -> Overview:
        if self._open is None:
            self._open = await _Connections(self._settings, self._patience).__aenter__()
        opened = self._open
        before = opened.reader.busy
        holders = await opened.holders()
        begins, ends = await opened.bounds()
        await self._read_others(opened)
        began = time.thread_time()
        self._scorer = self._scorer or Scorer(self._settings)
        view = overview(
            self._settings,
            self._scorer,
            opened.view,
            inputs=opened.inputs,
            holders=holders,
            members=opened.group.members,
            conditions=await opened.conditions(),
            begins=begins,
            ends=ends,
            at=at,
        )
        view = replace(
            view,
            held_back=self._held_back(ends, await opened.written(), at),
            refused=await opened.refused(),
        )
        self._cost = time.thread_time() - began + opened.reader.busy - before
        return view

    def _held_back(
        self, ends: Mapping[Any, int], written: Mapping[Any, int], at: float
    ) -> tuple[HeldBack, ...]:
        waits = {p: self._still.seconds(p, end, written[p], at) for p, end in ends.items()}
        return tuple(
            HeldBack(place.topic, place.partition, written[place] - end, waits[place])
            for place, end in ends.items()
            if end < written[place]
        )

    async def _read_others(self, opened: "_Connections") -> None:
        """Bring the view up to date: own tasks as they are now, the others' from the broker."""
        while True:
            own = set(self.own.offsets)
            await opened.reader.look(own)
            if own <= self.own.offsets.keys():  # else one was closed meanwhile, and is not read
                break
        opened.reader.skip(self.own.adopted(opened.view))

    async def _disconnect(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.__aexit__()


async def look(
    settings: Settings, patience: float | None = None, budget: float | None = None
) -> Overview:
    """Read everything once; wait up to `patience` seconds for a broker, and `budget` for it all.

    Raises BrokerError if it does not answer, or not soon enough, or if a topic is missing.
    """
    watch = Watch(settings, patience=patience)
    try:
        async with asyncio.timeout(budget):
            overview = await watch.refresh()
            began = overview.at
            # Open transactions are normal; only one that stays open is a fault, and that takes a
            # while to tell.
            while any(partition.seconds >= overview.at - began for partition in overview.held_back):
                if overview.at - began > HELD_BACK_AFTER:
                    break
                await asyncio.sleep(_AGAIN)
                overview = await watch.refresh(0)
    except TimeoutError:
        if watch.latest is None:
            message = f"the broker has not answered all questions within {budget:g} s"
            raise BrokerSlowError(message) from None
    finally:
        await watch.__aexit__()
    assert watch.latest is not None  # noqa: S101 - one look has succeeded
    return watch.latest


Value = TypeVar("Value")


class Aged(Generic[Value]):
    """A value that is fetched again only when it is too old."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asked_at = -float("inf")
        self._known: Value | None = None

    async def of(self, ask: Callable[[], Awaitable[Value]]) -> Value:
        """Return it as it was, or ask."""
        now = time.monotonic()
        if self._known is None or now - self._asked_at > self._seconds:
            self._known, self._asked_at = await ask(), now
        return self._known


class _Connections:
    """What a watch keeps open: a reader of the state, and an admin client."""

    def __init__(self, settings: Settings, patience: float | None) -> None:
        names = Topics.of(settings)
        self._settings, self._patience = settings, patience
        self._stack = AsyncExitStack()
        self.view: StateView = state_view(names)
        # Changelogs hold features, so not every user who watches may read where their tasks are.
        optional = [names.changelog(agent) for agent in names.agents]
        self.reader = StateReader(
            settings, self.view, [names.shared(ENSEMBLE)], tails(names), optional
        )
        self.places = [
            TopicPartition(topic, number)
            for topic in names.kinds
            for number in range(settings.topics.partitions)
        ]
        self.inputs = {spec.name: spec.inputs for spec in specs(settings)}
        self.admin: AIOKafkaAdminClient | None = None
        self.group = GroupView()
        self._holders: Aged[dict[tuple[str, int], str]] = Aged(_HOLDERS)
        self._conditions: Aged[dict[tuple[str, int], Condition]] = Aged(_HOLDERS)
        self._begins: Aged[dict[Any, int]] = Aged(_BEGINS)
        self._refused: Aged[tuple[str, ...]] = Aged(_HOLDERS)

    async def __aenter__(self) -> Self:
        try:
            admin = admin_client(self._settings.broker, self._patience)
            self.admin = await self._stack.enter_async_context(admin)
            await self._need_topics(self.admin)
            await self._stack.enter_async_context(self.reader)
            await self.reader.get_to_know(self.places)
        except (KafkaError, TimeoutError) as error:
            await self.__aexit__()
            raise explained(error, self._settings.broker) from error
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(BrokerError):
            await self._stack.aclose()

    async def _need_topics(self, admin: AIOKafkaAdminClient) -> None:
        listed = {topic["topic"] for topic in await admin.describe_topics()}
        missing = [topic.name for topic in declared(self._settings) if topic.name not in listed]
        if missing:
            raise BrokerError(f"topic {missing[0]} is missing; create it with: hb topics create")

    async def bounds(self) -> tuple[dict[Any, int], dict[Any, int]]:
        """Return where the topics that are not changelogs begin and end."""
        begins = await self._begins.of(lambda: self.reader.begins(self.places))
        return begins, await self.reader.ends(self.places)

    async def written(self) -> dict[Any, int]:
        """Return where the same topics end with what is not decided yet."""
        return await self.reader.written(self.places)

    async def refused(self) -> tuple[str, ...]:
        """Return the agents that could not use records in the last ten minutes."""
        return await self._refused.of(self._ask_refused)

    async def _ask_refused(self) -> tuple[str, ...]:
        names = Topics.of(self._settings)
        agents = {names.deadletter_of(learner): learner for learner in names.learners}
        agents[names.deadletter] = "the ensemble"
        places = [place for place in self.places if place.topic in agents]
        since = int(1000 * (time.time() - _REFUSED))
        refused = {place.topic for place in await self.reader.since(places, since)}
        return tuple(agent for topic, agent in agents.items() if topic in refused)

    async def holders(self) -> dict[tuple[str, int], str]:
        """Return who holds which partition, from the consumer group; nobody if there is none."""
        return await self._holders.of(self._ask_holders)

    async def _ask_holders(self) -> dict[tuple[str, int], str]:
        groups = await self._answered(_described(self._admin, self._settings.name))
        return self.group.take([member for group in groups for member in group["members"]])

    async def conditions(self) -> dict[tuple[str, int], Condition]:
        """Return what workers say is wrong with their partitions, beside the group's offsets."""
        return await self._conditions.of(self._ask_conditions)

    async def _ask_conditions(self) -> dict[tuple[str, int], Condition]:
        question = self._admin.list_consumer_group_offsets(self._settings.name)
        offsets = await self._answered(question)
        return {
            (tp.topic, tp.partition): Condition(committed.offset, committed.metadata)
            for tp, committed in offsets.items()
        }

    async def _answered(self, question: Awaitable[Value]) -> Value:
        with explaining(self._settings.broker):
            async with asyncio.timeout(_PATIENCE):
                return await question

    @property
    def _admin(self) -> AIOKafkaAdminClient:
        assert self.admin is not None  # noqa: S101 - entered
        return self.admin


class GroupView:
    """Who holds which partition, as the consumer group says.

    While partitions move the group does not say: who held some and is still a member then counts
    as holding them. A member that has died counts for nothing, although the group keeps it until
    its session times out.
    """

    def __init__(self) -> None:
        self.members: tuple[str, ...] = ()
        self._places_of: dict[str, list[tuple[str, int]]] = {}

    def take(self, members: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], str]:
        """Return the holders, given the members as the group describes them."""
        living = [member for member in members if not has_died(member["client_id"])]
        self._places_of = {member["member_id"]: self._places(member) for member in living}
        names = {member["member_id"]: _named(member) for member in living}
        self.members = tuple(sorted(names.values()))
        return {
            place: names[member_id]
            for member_id, places in self._places_of.items()
            for place in places
        }

    def _places(self, member: Mapping[str, Any]) -> list[tuple[str, int]]:
        if not member["member_assignment"]:
            return self._places_of.get(member["member_id"], [])
        return assigned(member["member_assignment"])


def _named(member: Mapping[str, Any]) -> str:
    return f"{member['client_host'].lstrip('/')} {member['member_id'][-8:]}"


async def _described(admin: AIOKafkaAdminClient, group: str) -> list[Any]:
    """Describe a group; a new broker makes the room for groups when it is first asked."""
    while True:
        try:
            answers = await admin.describe_consumer_groups([group])
            groups = [
                description for answer in answers for description in answer.to_object()["groups"]
            ]
            for description in groups:
                error = for_code(description["error_code"])
                if error.errno:
                    raise error(group)
        except _NOT_YET:
            await asyncio.sleep(0.1)
        else:
            return groups
