"""A watch: one look at a time, and one that is fresh enough serves all."""

import asyncio
import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from agents.monitor import watch as module
from agents.monitor.overview import figures, state_view
from agents.monitor.scores import Scorer, Sums
from agents.monitor.state_reader import StateLostError
from agents.monitor.system_health import system_verdict
from agents.monitor.watch import Aged, GroupView, Watch, look
from settings.errors import BrokerError
from streams.engine.health import Cause
from streams.engine.held_back import HELD_BACK_AFTER, HeldBack
from streams.engine.observer import At, Opened
from streams.kafka.connection import BrokerSlowError
from streams.kafka.topics import ENSEMBLE, Topics
from tests.unit.agents.toy import SETTINGS


class Slow(Watch):
    """Looks at nothing, takes its time for it, and may fail."""

    def __init__(self, *failures, every=2.0):
        super().__init__(SETTINGS, every=every)
        self.looks, self.failures = 0, list(failures)

    async def _read(self, at):
        self.looks += 1
        await asyncio.sleep(0.02)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return figures(SETTINGS, Scorer(SETTINGS), Sums())


async def test_many_callers_share_one_look():
    watch = Slow()
    looks = await asyncio.gather(*(watch.refresh() for _ in range(100)))
    assert watch.looks == 1
    assert {id(look) for look in looks} == {id(watch.latest)}
    await watch.refresh(max_age=60)
    assert watch.looks == 1
    await watch.refresh(max_age=0)
    assert watch.looks == 2


async def test_a_look_that_began_before_the_call_is_too_old_for_who_wants_the_present():
    watch = Slow()
    under_way = asyncio.create_task(watch.refresh())
    await asyncio.sleep(0.01)
    await watch.refresh(max_age=0)
    assert watch.looks == 2
    await under_way


async def test_a_caller_that_gives_up_spoils_it_for_nobody():
    watch = Slow()
    waiter = asyncio.create_task(watch.refresh())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.005):
            await watch.refresh()
    assert await waiter is watch.latest
    assert watch.looks == 1


async def test_an_error_reaches_the_callers_and_the_last_look_stays():
    watch = Slow(None, BrokerError("away"))
    first = await watch.refresh()
    with pytest.raises(BrokerError, match="away"):
        await watch.refresh(max_age=0)
    assert watch.latest is first
    assert await watch.refresh(max_age=0) is watch.latest is not first


async def test_recreated_topics_are_read_again():
    watch = Slow(StateLostError("shorter"))
    assert await watch.refresh() is watch.latest
    assert watch.looks == 2


async def test_the_timer_looks_on_tells_and_complains(caplog):
    caplog.set_level(logging.WARNING)
    failures = BrokerError("away"), BrokerError("away"), ZeroDivisionError()
    watch, looks = Slow(*failures, every=0.03), []
    watch.listeners.append(looks.append)
    async with watch:
        async with asyncio.timeout(120):
            while watch.looks <= 4 or not looks:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
    assert looks[-1] is watch.latest
    assert ["away" in record.message for record in caplog.records] == [True, False]
    looks = watch.looks
    await asyncio.sleep(0.1)
    assert watch.looks == looks, "it has ended"


class Reader:
    """Notes what it need not read; a task is closed while it reads for the first time."""

    def __init__(self, own):
        self.own, self.known, self.skipped = own, [], {}

    async def look(self, places):
        self.known.append(set(places))
        self.own.closed(ENSEMBLE, 1)

    def skip(self, offsets):
        self.skipped = dict(offsets)


async def test_own_tasks_are_not_read_unless_they_were_closed_meanwhile():
    names, watch = Topics.of(SETTINGS), Watch(SETTINGS)
    for number in (0, 1):
        at = At({"in": 4}, {names.shared(ENSEMBLE): 9, names.changelog(ENSEMBLE): 8})
        watch.own.opened(Opened(ENSEMBLE, number, 0.1, 0, at))
    reader, view = Reader(watch.own), state_view(names)
    await watch._read_others(SimpleNamespace(reader=reader, view=view))
    assert [{place.partition for place in places} for places in reader.known] == [{0, 1}, {0}]
    assert {(place.topic, place.partition): at for place, at in reader.skipped.items()} == {
        (names.shared(ENSEMBLE), 0): 9,
        (names.changelog(ENSEMBLE), 0): 8,
    }
    assert view.positions == {(names.changelog(ENSEMBLE), 0): {"in": 4}}


async def test_what_changes_slowly_is_asked_rarely():
    asked = []

    async def ask():
        asked.append(1)
        return len(asked)

    aged = Aged(3600)
    assert [await aged.of(ask) for _ in range(3)] == [1, 1, 1]
    aged._asked_at -= 3601
    assert await aged.of(ask) == 2


def member(name, *places, client="elsewhere"):
    assignment = ConsumerProtocolMemberAssignment(0, [(topic, [n]) for topic, n in places], b"")
    return {
        "member_id": f"{name:>8}",
        "client_id": client,
        "client_host": "/10.0.0.7",
        "member_assignment": assignment.encode() if places else b"",
    }


def test_a_member_that_has_died_holds_nothing_though_the_group_keeps_it(monkeypatch):
    monkeypatch.setattr(module, "has_died", lambda name: name == "dead")
    group = GroupView()
    one, other = member("one", ("a", 0)), member("other", ("b", 0), client="dead")
    assert group.take([one, other]) == {("a", 0): "10.0.0.7      one"}
    assert len(group.members) == 1


def test_while_partitions_move_members_keep_what_they_held():
    group = GroupView()
    held = group.take([member("one", ("a", 0)), member("gone", ("b", 0))])
    assert held.keys() == {("a", 0), ("b", 0)}
    assert group.take([member("one"), member("new")]).keys() == {("a", 0)}
    assert len(group.members) == 2
    assert group.take([member("one", ("a", 0)), member("new", ("b", 0))]).keys() == held.keys()
    assert group.take([]) == {}


def still_open(monkeypatch, answers):
    """Let looks find a transaction open, `answers` times; later ones get no answer."""
    seconds = iter(range(answers))

    async def read(self, at):
        del self
        age = next(seconds, None)
        if age is None:
            await asyncio.Event().wait()
        held = HeldBack("labels", 0, 1, float(age))
        return replace(
            figures(SETTINGS, Scorer(SETTINGS), Sums()), at=float(age), held_back=(held,)
        )

    monkeypatch.setattr(Watch, "_read", read)
    monkeypatch.setattr("agents.monitor.watch._AGAIN", 0)


async def test_a_broker_that_does_not_answer_within_the_budget_is_slow(monkeypatch):
    still_open(monkeypatch, 0)
    with pytest.raises(BrokerSlowError, match=r"within 0\.01 s") as raised:
        await look(SETTINGS, budget=0.01)
    assert system_verdict(None, raised.value).cause == Cause.BROKER_SLOW


async def test_what_was_seen_within_the_budget_is_shown(monkeypatch):
    still_open(monkeypatch, 3)
    seen = await look(SETTINGS, budget=0.05)
    assert [held.seconds for held in seen.held_back] == [2.0]


async def test_without_a_budget_a_look_lasts_until_it_is_known_that_a_transaction_stays_open(
    monkeypatch,
):
    still_open(monkeypatch, 100)
    (held,) = (await look(SETTINGS)).held_back
    assert held.seconds > HELD_BACK_AFTER
