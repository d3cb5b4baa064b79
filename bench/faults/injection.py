"""Workers and brokers that are killed, paused, bounced and restarted on a schedule."""

import asyncio
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from bench.faults.disk import damage_worker, task_folders, wreck_worker
from bench.faults.fault_plan import Event, Fault, Plan
from bench.faults.network import Network
from settings.errors import HbError
from streams.broker import EmbeddedBroker
from streams.broker.reaper import temporary_broker
from streams.engine.state.store import SET_ASIDE
from streams.kafka.connection import quiet_client

_BROKER_DOWN = 4.0
_VISIT = 6.0
_STOP_WITHIN = 20.0
_NOTICED_WITHIN = 300.0
_LOOK_EVERY = 0.5
Say = Callable[[str], object]
Command = Callable[[int, Path], Sequence[str]]
"""Returns the command for a worker, given its number and its own folder."""


class Run(Protocol):
    """One run of a benchmark on a cluster, with its own folder."""

    def __init__(self, cluster: EmbeddedBroker, plan: Plan, folder: Path, say: Say) -> None:
        """Prepare it."""

    async def run(self, seed: int) -> dict[str, Any]:
        """Carry it out and report."""


def carried_out(
    kind: type[Run], plan: Plan, seed: int, say: Say, cluster: EmbeddedBroker | None
) -> dict[str, Any]:
    """Carry out a run on a running cluster (all its nodes are up afterwards), or on a new one."""
    quiet_client()
    with ExitStack() as stack:
        if cluster is None:
            new = temporary_broker(brokers=plan.brokers, users=plan.users, short_lived=True)
            cluster = stack.enter_context(new)
        folder = stack.enter_context(TemporaryDirectory(prefix="hb-faults-"))
        return asyncio.run(kind(cluster, plan, Path(folder), say).run(seed))


class FaultInjection:
    """The processes of one run. `history` and `handovers` record what was done to them and when."""

    def __init__(
        self, cluster: EmbeddedBroker, plan: Plan, folder: Path, say: Say, command: Command
    ) -> None:
        self.history: list[tuple[Fault, float, float]] = []
        self.handovers: list[tuple[float, float]] = []
        self.damages: list[str] = []
        self._cluster, self._plan, self._folder, self._say = cluster, plan, folder, say
        self._command = command
        self._workers: dict[int, subprocess.Popen[bytes]] = {}

        self.network: Network | None = None

    @asynccontextmanager
    async def running(self, seed: int) -> AsyncIterator[None]:
        """Run the workers inside the block; the seed decides what the network does to them."""
        async with AsyncExitStack() as stack:
            if self._plan.network:
                network = Network(
                    self._cluster.address,
                    self._plan.workers + 1,
                    seed=seed,
                    request=self._plan.request_timeout,
                    session=self._plan.session_timeout,
                )
                self.network = await stack.enter_async_context(network)
            try:
                for number in range(self._plan.workers):
                    self._start(number)
                yield
            except* (HbError, TimeoutError) as errors:
                self.show_logs()
                error: BaseException = errors
                while isinstance(error, BaseExceptionGroup):  # of a task group within another
                    error = error.exceptions[0]
                raise error from None
            finally:
                # The proxies run in this loop, and workers need them to leave cleanly.
                await asyncio.to_thread(self.stop)

    def address_of(self, number: int) -> str:
        """Return the address that a worker connects to."""
        return self._cluster.address if self.network is None else self.network.address_of(number)

    def stop(self) -> None:
        """Stop the workers cleanly."""
        for worker in self._workers.values():
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in self._workers.values():
            try:
                worker.wait(_STOP_WITHIN)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._workers.clear()

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the workers that run."""
        return [worker.pid for worker in list(self._workers.values())]

    def check(self) -> None:
        """Raise HbError if a worker exited by itself: faults must not make other workers exit."""
        for number, worker in self._workers.items():
            if (code := worker.poll()) is not None:
                raise HbError(f"worker {number} ended by itself, with exit code {code}")

    async def strike_all(self, events: Sequence[Event], progress: Callable[[], str]) -> None:
        """Inject the faults of a schedule one after the other; `progress` tells how far it is."""
        if self.network is not None:
            self.network.rage()
        for event in events:
            started = time.time()
            await self._strike(event)
            await asyncio.sleep(event.rest)
            self.history.append((event.fault, started, time.time()))
            self._say(f"{event.fault.value} ({event.target}); {progress()}")
            self.check()
        for harm, times in Counter(harm.split(" (")[0] for harm in self.damages).items():
            self._say(f"disk: {harm}: {times} times")
        if self.network is not None:
            await self.network.calm()
            for kind, times in self.network.struck.items():
                self._say(f"network: {kind.value}: {times} times")

    async def _strike(self, event: Event) -> None:
        if event.fault is Fault.KILL_WORKER:
            self._end(event.target, cleanly=False)
            self._start(event.target)
        elif event.fault is Fault.ROLLING_RESTART:
            for number in sorted(self._workers):
                await asyncio.to_thread(self._restart, number)
        elif event.fault is Fault.DAMAGE_DISK:
            await asyncio.to_thread(self._damage, event)
        elif event.fault is Fault.PAUSE_WORKER:
            self._workers[event.target].send_signal(signal.SIGSTOP)
            await asyncio.sleep(self._plan.session_timeout + 4)
            self._workers[event.target].send_signal(signal.SIGCONT)
        elif event.fault is Fault.COME_AND_GO:
            await self._visit()
        else:
            await asyncio.to_thread(self._strike_broker, event)

    def _damage(self, event: Event) -> None:
        """Damage the state of a worker that was killed, or of one that stopped cleanly."""
        self._end(event.target, cleanly=bool(event.seed % 2))
        self.damages += damage_worker(self._folder / str(event.target), event.seed)
        self._start(event.target)

    async def wreck(self) -> None:
        """Stop all workers and start one alone on state of which every folder is damaged.

        Whether a folder is opened again after damage depends on who gets its task next. This worker
        gets them all, so it has to notice; the others start when it has.
        """
        await asyncio.to_thread(self.stop)
        states = {number: self._folder / str(number) for number in range(self._plan.workers)}
        alone = max(states, key=lambda number: len(task_folders(states[number])))
        self.damages += wreck_worker(states[alone])
        noticed = self.log.count(SET_ASIDE)
        self._start(alone)
        deadline = time.monotonic() + _NOTICED_WITHIN
        while self.log.count(SET_ASIDE) == noticed:
            self.check()
            if time.monotonic() > deadline:
                raise HbError(f"worker {alone} did not notice that its state was damaged")
            await asyncio.sleep(_LOOK_EVERY)
        for number in states.keys() - {alone}:
            self._start(number)
        self._say(f"all workers stopped, worker {alone} started alone on damaged state")

    def _restart(self, number: int) -> None:
        self._end(number, cleanly=True)
        self._start(number)

    def _end(self, number: int, *, cleanly: bool) -> None:
        worker = self._workers.pop(number)
        if cleanly:
            worker.terminate()
            try:
                worker.wait(_STOP_WITHIN)
            except subprocess.TimeoutExpired:
                worker.kill()
        else:
            worker.kill()
        worker.wait()

    async def _visit(self) -> None:
        number = self._plan.workers
        self._start(number)
        await asyncio.sleep(_VISIT)
        worker = self._workers.pop(number)
        worker.terminate()
        started = time.time()
        await asyncio.to_thread(worker.wait)
        self.handovers.append((started, started + self._plan.session_timeout))

    def _strike_broker(self, event: Event) -> None:
        node = self._cluster.nodes[event.target]
        if event.fault is Fault.KILL_BROKER:
            node.kill()
            time.sleep(_BROKER_DOWN)
        else:
            node.stop()
        node.start()

    def _start(self, number: int) -> None:
        folder = self._folder / str(number)
        folder.mkdir(exist_ok=True)
        with (self._folder / f"{number}.log").open("ab") as log:
            self._workers[number] = subprocess.Popen(  # noqa: S603  # our own module
                self._command(number, folder), stdout=log, stderr=log
            )

    @property
    def network_faults(self) -> dict[str, int]:
        """Return the number of network faults as a figure; nothing if there were none."""
        return {} if self.network is None else {"network_faults": self.network.struck.total()}

    @property
    def disk_faults(self) -> dict[str, int]:
        """Return how many folders were damaged and set aside; nothing if there were none."""
        if not self._plan.damages:
            return {}
        return {"damaged": len(self.damages), "set_aside": self.log.count(SET_ASIDE)}

    @property
    def log(self) -> str:
        """Return the logs of all workers."""
        return "".join(log.read_text(errors="replace") for log in self._folder.glob("*.log"))

    def show_logs(self) -> None:
        """Return the ends of the logs."""
        for log in sorted(self._folder.glob("*.log")):
            self._say(f"{log.name}: {log.read_text(errors='replace')[-3_000:]}")
