"""Programs that run during a benchmark and are stopped cleanly after it."""

import asyncio
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from agents.worker_pages import worker_pages
from settings.errors import HbError

_STOP_WITHIN = 20.0
_START_WITHIN = 60.0


@dataclass(frozen=True)
class Programs:
    """Running programs."""

    logs: list[Path]
    processes: list[subprocess.Popen[bytes]]

    @property
    def cpu_seconds(self) -> float:
        """Return the processor time that they have used so far."""
        used = [psutil.Process(process.pid).cpu_times() for process in self.processes]
        return sum(times.user + times.system for times in used)


@contextmanager
def running(programs: Sequence[Sequence[str]], folder: Path) -> Iterator[Programs]:
    """Run programs, each with its own log in `folder`.

    They are stopped cleanly, because their last outputs may not be committed yet. If the benchmark
    fails, the ends of their logs are shown.
    """
    logs = [folder / f"{number}.log" for number in range(len(programs))]
    with ExitStack() as stack:
        processes = []
        for program, log in zip(programs, logs, strict=True):
            output = stack.enter_context(log.open("wb"))
            # The commands are our own.
            processes.append(subprocess.Popen(program, stdout=output, stderr=output))  # noqa: S603
        try:
            yield Programs(logs, processes)
        except HbError:
            for log in logs:
                sys.stderr.write(log.read_text(errors="replace")[-2_000:])
            raise
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                _await_end(process)


def _await_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def await_page(state: Path) -> str:
    """Wait until the worker of a state folder serves its pages, and return their address."""
    async with asyncio.timeout(_START_WITHIN):
        while not (pages := await asyncio.to_thread(worker_pages, state)):  # noqa: ASYNC110 - a folder tells nobody that it changed
            await asyncio.sleep(0.1)
    return pages[0].address


async def await_ready(state: Path) -> None:
    """Wait until the worker of a state folder reports that its tasks are open."""
    page = await await_page(state)
    async with asyncio.timeout(_START_WITHIN):
        while not await asyncio.to_thread(is_ready, page):  # noqa: ASYNC110 - it is asked for
            await asyncio.sleep(0.1)


def is_ready(page: str) -> bool:
    """Ask a worker whether it is ready."""
    try:
        with urllib.request.urlopen(f"{page}/readyz", timeout=2) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
