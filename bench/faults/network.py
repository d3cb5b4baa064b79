"""Network faults between workers and brokers, drawn from a seed.

Each worker has its own proxy. During a run, single frames are held beyond the request time-out,
lost or cut off, and workers are slowed down or separated from one broker or from the coordinator
of their group, several of these at a time.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from enum import Enum
from typing import Any, Self

from bench.faults.kafka_proxy import GROUP, Action, Api, Direction, Fault, KafkaProxy

_AT_ONCE = 4
_REST = (0.1, 1.0)
_SLOW = (0.02, 0.3)
_HALF = 0.3
_UNNOTICED = 2.0
"""How long to wait for a frame to hit, in seconds; some kinds are rare."""
_TARGETS = (
    *[Api.END_TXN] * 4,
    *[Api.PRODUCE, Api.ADD_PARTITIONS_TO_TXN] * 2,
    Api.INIT_PRODUCER_ID,
    Api.HEARTBEAT,
    Api.JOIN_GROUP,
    Api.SYNC_GROUP,
    Api.OFFSET_COMMIT,
    Api.FETCH,
    Api.LIST_OFFSETS,
    Api.METADATA,
    Api.FIND_COORDINATOR,
)
"""Requests, each with how often a single frame of it is hit."""


class NetworkFault(Enum):
    """What happens to frames."""

    LATE = "a frame held beyond the request time-out, then delivered"
    LOST = "a frame lost, and all that follows it on its connection"
    RESET = "connections reset in the middle of requests"
    SLOW = "every frame of a worker delayed"
    BROKER_CUT = "a worker cut off from one broker"
    COORDINATOR_CUT = "a worker cut off from its group's coordinator"


class Network:
    """The network of one run, an async context manager; workers connect to `address_of`."""

    def __init__(
        self, address: str, workers: int, *, seed: int, request: float, session: float
    ) -> None:
        self.struck: Counter[NetworkFault] = Counter()
        """How many faults of each kind there were."""
        self._proxies = [KafkaProxy(address) for _ in range(workers)]
        self._brokers = address.count(",") + 1
        self._draw = random.Random(seed)  # noqa: S311  # a schedule, not a secret
        self._request, self._session = request, session
        self._stack = AsyncExitStack()
        self._faults: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for proxy in self._proxies:
            await self._stack.enter_async_context(proxy)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.calm()
        await self._stack.aclose()

    def address_of(self, worker: int) -> str:
        """Return the address that a worker connects to."""
        return self._proxies[worker].address

    def rage(self) -> None:
        """Start injecting faults."""
        self._faults = [asyncio.create_task(self._strike_on()) for _ in range(_AT_ONCE)]

    async def calm(self) -> None:
        """End all faults; held frames are forwarded."""
        for task in self._faults:
            task.cancel()
        if self._faults:
            await asyncio.wait(self._faults)
        for proxy in self._proxies:
            proxy.release()

    async def _strike_on(self) -> None:
        while True:
            kind = self._draw.choice(_MIX)
            proxy = self._draw.choice(self._proxies)
            pause = self._draw.uniform(*_REST)
            await _STRIKES[kind](self, proxy)
            self.struck[kind] += 1
            await asyncio.sleep(pause)

    async def _late(self, proxy: KafkaProxy) -> None:
        held = self._request * self._draw.uniform(1.1, 1.6)
        fault = self._single(Action.HOLD, proxy)
        if not await _strikes(fault):
            fault.release()
            return
        await asyncio.sleep(held)
        # Where it hurts most: the sender's next transaction has arrived at one broker but not
        # at another.
        half = Fault(Action.HOLD, {Api.PRODUCE}, client=fault.struck[0].client, limit=1)
        await _strikes(proxy.add(half))
        fault.release()
        await asyncio.sleep(_HALF)
        half.release()

    async def _lost(self, proxy: KafkaProxy) -> None:
        fault = self._single(Action.DROP, proxy)
        await _strikes(fault)
        fault.release()

    async def _reset(self, proxy: KafkaProxy) -> None:
        faults = [self._single(Action.CUT, proxy) for _ in range(self._draw.randint(1, 4))]
        for fault in faults:
            await _strikes(fault)
            fault.release()

    async def _slow(self, proxy: KafkaProxy) -> None:
        seconds, lasting = self._draw.uniform(*_SLOW), self._draw.uniform(1.0, 5.0)
        fault = Fault(Action.DELAY, direction=self._draw.choice(list(Direction)), seconds=seconds)
        await self._for_a_while(proxy, fault, lasting)

    async def _cut_broker(self, proxy: KafkaProxy) -> None:
        broker, lasting = self._draw.randrange(self._brokers), self._draw.uniform(0.5, 1.5)
        fault = Fault(Action.HOLD, brokers={broker})
        await self._for_a_while(proxy, fault, lasting * max(self._request, self._session))

    async def _cut_coordinator(self, proxy: KafkaProxy) -> None:
        lasting = self._session * self._draw.uniform(0.5, 2.0)
        await self._for_a_while(proxy, Fault(Action.HOLD, GROUP), lasting)

    def _single(self, action: Action, proxy: KafkaProxy) -> Fault:
        api, direction = self._draw.choice(_TARGETS), self._draw.choice(list(Direction))
        return proxy.add(Fault(action, {api}, direction, limit=1))

    async def _for_a_while(self, proxy: KafkaProxy, fault: Fault, seconds: float) -> None:
        proxy.add(fault)
        await asyncio.sleep(seconds)
        fault.release()


_STRIKES: dict[NetworkFault, Callable[[Network, KafkaProxy], Coroutine[Any, Any, None]]] = {
    NetworkFault.LATE: Network._late,
    NetworkFault.LOST: Network._lost,
    NetworkFault.RESET: Network._reset,
    NetworkFault.SLOW: Network._slow,
    NetworkFault.BROKER_CUT: Network._cut_broker,
    NetworkFault.COORDINATOR_CUT: Network._cut_coordinator,
}


_MIX = (
    *[NetworkFault.LATE] * 6,
    *[NetworkFault.LOST, NetworkFault.RESET] * 2,
    NetworkFault.SLOW,
    NetworkFault.BROKER_CUT,
    NetworkFault.COORDINATOR_CUT,
)
"""Faults, each with how often it happens."""


async def _strikes(fault: Fault) -> bool:
    """Wait a little for a frame to hit; tell whether there was one."""
    try:
        async with asyncio.timeout(_UNNOTICED):
            await fault.wait_for()
    except TimeoutError:
        return False
    return True
