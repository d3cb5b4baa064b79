"""A TCP proxy in front of a Kafka cluster that parses frames and knows which request each is.

Clients connect to `KafkaProxy.address`. There is a port for each broker, and the brokers' addresses
are replaced in their responses about the cluster, so clients only ever see the proxy. Faults define
which frames are held, delayed, dropped or cut: by request, direction, client, broker, connection.

As in a real network, a held frame holds up whatever follows it on its connection, and it is not
lost when its sender gives up: it arrives when it is released, after the connection was closed.

Each connection buffers one frame per direction; everything else waits in the sockets. Plain
connections only: nothing can be read from an encrypted one.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Self, TypeAlias

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_HEADER = struct.Struct(">hhih")
_LARGEST = 64 << 20
_LAST_ANSWERS = 5.0
"""How long to wait for a broker's answers after the client has gone, in seconds."""


class Api(IntEnum):
    """The requests that faults can hit, by Kafka's API keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    DESCRIBE_CLUSTER = 60


GROUP = frozenset(
    {
        Api.OFFSET_COMMIT,
        Api.OFFSET_FETCH,
        Api.JOIN_GROUP,
        Api.HEARTBEAT,
        Api.LEAVE_GROUP,
        Api.SYNC_GROUP,
    }
)
"""Requests to the coordinator of a consumer group."""

_ADDRESSES = frozenset({Api.METADATA, Api.FIND_COORDINATOR, Api.DESCRIBE_CLUSTER})


class Direction(Enum):
    """Which way a frame travels."""

    REQUEST = "request"
    RESPONSE = "response"


class Action(Enum):
    """What happens to a frame."""

    HOLD = "hold"
    """It waits until the fault is released, then it arrives."""
    DELAY = "delay"
    """It arrives after `seconds`."""
    DROP = "drop"
    """It and everything after it on its connection vanish; the connection stays open."""
    CUT = "cut"
    """It vanishes and its connection is reset."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A request or its response; `broker` and `connection` are numbers from 0."""

    direction: Direction
    api: int
    version: int
    correlation: int
    client: str
    broker: int
    connection: int
    data: bytes = field(repr=False)


@dataclass(eq=False)
class Fault:
    """Which frames a fault hits, and how; None means any. It hits `limit` frames, or all."""

    action: Action
    apis: Collection[int] | None = None
    direction: Direction = Direction.REQUEST
    client: str | None = None
    brokers: Collection[int] | None = None
    connections: Collection[int] | None = None
    limit: int | None = None
    seconds: float = 0.0
    struck: list[Frame] = field(default_factory=list)
    """The frames so far, without their content."""
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def strikes(self, frame: Frame) -> bool:
        """Tell whether the fault applies to the next frame."""
        return (
            not self._over.is_set()
            and (self.limit is None or len(self.struck) < self.limit)
            and frame.direction is self.direction
            and (self.apis is None or frame.api in self.apis)
            and (self.client is None or frame.client == self.client)
            and (self.brokers is None or frame.broker in self.brokers)
            and (self.connections is None or frame.connection in self.connections)
        )

    def strike(self, frame: Frame) -> None:
        """Record a frame that it hits."""
        self.struck.append(frame)
        self._news.set()

    async def wait_for(self, frames: int = 1) -> None:
        """Return once it has hit that many frames."""
        while len(self.struck) < frames:
            self._news.clear()
            await self._news.wait()

    async def wait_for_release(self) -> None:
        """Return once it is over."""
        await self._over.wait()

    @property
    def over(self) -> bool:
        """Tell whether it was released."""
        return self._over.is_set()

    def release(self) -> None:
        """End it: frames that it holds are forwarded, and it hits no more."""
        self._over.set()


class KafkaProxy:
    """Stands between clients and the cluster at `address`; an async context manager."""

    def __init__(self, address: str) -> None:
        self._brokers = [_host_and_port(broker) for broker in address.split(",")]
        self._ports: list[int] = []
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._count = 0
        self._faults: list[Fault] = []

    async def __aenter__(self) -> Self:
        for number, (host, _) in enumerate(self._brokers):
            server = await asyncio.start_server(self._accept(number), host, 0)
            self._servers.append(server)
            self._ports.append(server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    @property
    def address(self) -> str:
        """Return where clients connect."""
        hosts = [host for host, _ in self._brokers]
        return ",".join(f"{host}:{port}" for host, port in zip(hosts, self._ports, strict=True))

    def add(self, fault: Fault) -> Fault:
        """Activate a fault until it is released."""
        self._faults = [active for active in self._faults if not active.over]
        self._faults.append(fault)
        return fault

    def release(self) -> None:
        """End all faults."""
        for fault in self._faults:
            fault.release()
        self._faults.clear()

    def strike(self, frame: Frame) -> Fault | None:
        """Return the fault that hits a frame, if any."""
        for fault in self._faults:
            if fault.strikes(frame):
                fault.strike(frame)
                return fault
        return None

    def readdressed(self, data: bytes) -> bytes:
        """Return a broker's response about the cluster with the proxy's ports in place of its own.

        A port follows its host in every version of these responses, and all ports take four bytes.
        """
        for (host, port), mine in zip(self._brokers, self._ports, strict=True):
            name = host.encode()
            data = data.replace(name + struct.pack(">i", port), name + struct.pack(">i", mine))
        return data

    def _accept(self, broker: int) -> "Callable[..., Awaitable[None]]":
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - the server made it
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            number, self._count = self._count, self._count + 1
            try:
                upstream = await asyncio.open_connection(*self._brokers[broker])
            except OSError:
                writer.transport.abort()
                return
            await _Connection(self, broker, number, (reader, writer), upstream).run()

        return serve


class _Connection:
    """One client's connection to one broker."""

    def __init__(
        self, proxy: KafkaProxy, broker: int, number: int, client: Streams, upstream: Streams
    ) -> None:
        self._proxy, self._broker, self._number = proxy, broker, number
        self._client, self._upstream = client, upstream
        self._unanswered: dict[int, tuple[int, int, str]] = {}
        self._all_answered = asyncio.Event()

    async def run(self) -> None:
        """Forward frames until the client has gone and everything it sent has arrived."""
        responses = asyncio.create_task(self._carry_responses())
        try:
            await self._carry_requests()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_ANSWERS):
                    while self._unanswered and not responses.done():
                        self._all_answered.clear()
                        await self._all_answered.wait()
        except asyncio.CancelledError:
            pass  # the proxy is closed; a server task ending this way would be logged as an error
        finally:
            responses.cancel()
            await asyncio.wait([responses])
            for _, writer in (self._client, self._upstream):
                writer.transport.abort()

    async def _carry_requests(self) -> None:
        async for data in _frames(self._client[0]):
            api, version, correlation, length = _HEADER.unpack_from(data)
            client = data[_HEADER.size : _HEADER.size + max(length, 0)].decode()
            self._unanswered[correlation] = api, version, client
            if not await self._pass(Direction.REQUEST, correlation, data, self._upstream[1]):
                break

    async def _carry_responses(self) -> None:
        async for data in _frames(self._upstream[0]):
            (correlation,) = struct.unpack_from(">i", data)
            if correlation in self._unanswered:
                tells = self._unanswered[correlation][0] in _ADDRESSES
                answer = self._proxy.readdressed(data) if tells else data
                if not await self._pass(Direction.RESPONSE, correlation, answer, self._client[1]):
                    break
                del self._unanswered[correlation]
                self._all_answered.set()
        self._all_answered.set()
        self._client[1].transport.abort()

    async def _pass(
        self, direction: Direction, correlation: int, data: bytes, to: asyncio.StreamWriter
    ) -> bool:
        """Forward a frame unless a fault prevents it; False if nothing can follow it."""
        api, version, client = self._unanswered[correlation]
        frame = Frame(
            direction, api, version, correlation, client, self._broker, self._number, data
        )
        fault = self._proxy.strike(frame)
        if fault is not None and not await self._arrives(fault, direction):
            return False
        to.write(struct.pack(">i", len(data)) + data)
        with contextlib.suppress(ConnectionError):  # its reader has gone; the other way may go on
            await to.drain()
        return True

    async def _arrives(self, fault: Fault, direction: Direction) -> bool:
        """Apply a fault to a frame; return whether the frame is forwarded in the end."""
        if fault.action is Action.HOLD:
            await fault.wait_for_release()
        elif fault.action is Action.DELAY:
            await asyncio.sleep(fault.seconds)
        elif fault.action is Action.DROP:
            source = self._client if direction is Direction.REQUEST else self._upstream
            async for _ in _frames(source[0]):
                pass
            return False
        else:
            for _, writer in (self._client, self._upstream):
                writer.transport.abort()
            return False
        return True


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield frames without their length, until the other side closes."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if not 0 <= size <= _LARGEST:
                return
            yield await reader.readexactly(size)


def _host_and_port(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host, int(port)
