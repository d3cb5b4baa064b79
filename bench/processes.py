"""Programs that run beside a benchmark, and are stopped cleanly after it."""

import asyncio
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from settings.errors import HbError

_STOP_WITHIN = 20.0
_START_WITHIN = 60.0
_PAGE = re.compile(r"worker runs .*(?:pages|console) at (http://\S+)")


@dataclass(frozen=True)
class Programs:
    """Programs that run."""

    logs: list[Path]
    processes: list[subprocess.Popen[bytes]]

    @property
    def cpu_seconds(self) -> float:
        """Return the processor's time that they have used so far."""
        used = [psutil.Process(process.pid).cpu_times() for process in self.processes]
        return sum(each.user + each.system for each in used)


@contextmanager
def running(programs: Sequence[Sequence[str]], folder: Path) -> Iterator[Programs]:
    """Run programs, each with a log of its own in `folder`.

    They are asked to stop, because what they delivered may not be committed yet. If the benchmark
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


async def await_page(log: Path) -> str:
    """Wait until a worker tells in its log where its pages are, and return that."""
    async with asyncio.timeout(_START_WITHIN):
        while not (found := _PAGE.search(await asyncio.to_thread(_read, log))):  # noqa: ASYNC110 - a file tells nobody that it grew
            await asyncio.sleep(0.1)
    return found[1]


async def await_ready(log: Path) -> None:
    """Wait until the worker with this log says that its tasks are open."""
    page = await await_page(log)
    async with asyncio.timeout(_START_WITHIN):
        while not await asyncio.to_thread(is_ready, page):  # noqa: ASYNC110 - it is asked for
            await asyncio.sleep(0.1)


def _read(log: Path) -> str:
    return log.read_text(errors="replace")


def is_ready(page: str) -> bool:
    """Ask a worker whether it is ready."""
    try:
        with urllib.request.urlopen(f"{page}/readyz", timeout=2) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
