"""For how long a client has waited for an answer, from what its `send` is asked and returns."""

import asyncio
from types import SimpleNamespace

import pytest

from streams.kafka.client.answers import Answers


class FetchRequest:
    """Named as aiokafka's."""


class HeartbeatRequest:
    """Named as aiokafka's."""


class JoinGroupRequest:
    """Named as aiokafka's."""


class Broker:
    """Answers, fails or stays silent, per node."""

    def __init__(self):
        self.now, self.ways = 100.0, {}
        self.client = SimpleNamespace(send=self._send)
        self.answers = Answers(self.client, lambda: self.now)

    async def _send(self, node, _request):
        way = self.ways.get(node, "answer")
        if way == "silence":
            await asyncio.Event().wait()
        if way == "fail":
            raise ConnectionError
        return way

    async def ask(self, node, request):
        """Ask, and leave the question open if the node is silent."""
        asking = asyncio.ensure_future(self.client.send(node, request))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return asking


@pytest.mark.parametrize("way", ["silence", "fail"])
async def test_a_broker_that_answers_nothing_is_silent_since_the_first_question(way):
    broker = Broker()
    await broker.ask(1, FetchRequest())
    broker.now += 50
    assert (broker.answers.silent_for, broker.answers.unfetched_for) == (0, 0)
    broker.ways[1] = way
    asked = [await broker.ask(1, FetchRequest())]
    for _ in range(7):
        broker.now += 1
        asked.append(await broker.ask(1, FetchRequest()))
    assert (broker.answers.silent_for, broker.answers.unfetched_for) == (7, 7)
    broker.ways[1] = "answer"
    await broker.ask(1, HeartbeatRequest())
    assert broker.answers.silent_for == 0
    assert broker.answers.coordinator == broker.now
    assert broker.answers.unfetched_for == 7, "a heartbeat does not prove that fetches are answered"
    await broker.ask(1, FetchRequest())
    assert broker.answers.unfetched_for == 0
    await end(asked)


async def test_one_node_of_several_is_noticed_until_others_are_asked_in_its_place():
    broker = Broker()
    broker.ways[2] = "fail"
    asked = []
    for _ in range(8):
        asked += [await broker.ask(1, FetchRequest()), await broker.ask(2, FetchRequest())]
        broker.now += 1
    assert broker.answers.silent_for < 2
    assert broker.answers.unfetched_for == 8
    broker.now += 5
    assert broker.answers.unfetched_for == 0, "its partitions are led by another node now"
    await end(asked)


async def test_joining_a_group_may_take_long():
    broker = Broker()
    broker.ways[1] = "silence"
    asked = [await broker.ask(1, JoinGroupRequest())]
    broker.now += 60
    assert broker.answers.silent_for == 0
    await end(asked)


async def end(asked):
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
