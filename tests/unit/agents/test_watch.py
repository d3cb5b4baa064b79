"""A watch: one look at a time, and one that is fresh enough serves all."""

import asyncio
import logging

import pytest

from agents.board import Scorer, Sums
from agents.overview import figures
from agents.state_reader import StateLostError
from agents.watch import Watch
from streams.errors import BrokerError
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
    found = await asyncio.gather(*(watch.refresh() for _ in range(100)))
    assert watch.looks == 1
    assert {id(each) for each in found} == {id(watch.latest)}
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
    other = asyncio.create_task(watch.refresh())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.005):
            await watch.refresh()
    assert await other is watch.latest
    assert watch.looks == 1


async def test_an_error_reaches_the_callers_and_the_last_look_stays():
    watch = Slow(None, BrokerError("away"))
    first = await watch.refresh()
    with pytest.raises(BrokerError, match="away"):
        await watch.refresh(max_age=0)
    assert watch.latest is first
    assert await watch.refresh(max_age=0) is watch.latest is not first


async def test_topics_that_were_made_anew_are_read_anew():
    watch = Slow(StateLostError("shorter"))
    assert await watch.refresh() is watch.latest
    assert watch.looks == 2


async def test_the_timer_looks_on_tells_and_complains(caplog):
    caplog.set_level(logging.WARNING)
    failures = BrokerError("away"), BrokerError("away"), ZeroDivisionError()
    watch, told = Slow(*failures, every=0.03), []
    watch.told.append(told.append)
    async with watch:
        await asyncio.sleep(0.4)
    assert watch.looks > 4
    assert told
    assert told[-1] is watch.latest
    assert ["away" in record.message for record in caplog.records] == [True, False]
    looks = watch.looks
    await asyncio.sleep(0.1)
    assert watch.looks == looks, "it has ended"
