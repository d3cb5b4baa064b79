"""A worker with all roles that splits its processor time into pipeline and monitoring.

python -m bench.monitoring.counting_worker SETTINGS REPORT

Every step of the event loop runs in the context of the task that caused it. Steps of the web
server, of the watch over the whole system and of their connections to the broker carry a mark, and
step times are summed by mark. The counting for monitoring after each commit runs inside the
pipeline's own steps, and is timed there. The report has the seconds of both.

The loop is asyncio's own, because uvloop does not let its steps be timed.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from agents.worker import Worker
from bench.pipeline.job import SERVED
from settings.loading import load_settings
from streams.engine.observer import Committed, Observer, Observers
from streams.faust.app import EngineApp

PIPELINE, WATCHING = "pipeline", "watching"
_for: ContextVar[str] = ContextVar("for", default=PIPELINE)


class Account:
    """Processor seconds, by what they were spent on."""

    def __init__(self) -> None:
        self.seconds = {PIPELINE: 0.0, WATCHING: 0.0}

    def install(self) -> None:
        """Time every step of the event loop from now on."""
        step = asyncio.Handle._run

        def timed(handle: Any) -> None:
            began = time.thread_time()
            step(handle)
            self.seconds[handle._context.get(_for, PIPELINE)] += time.thread_time() - began

        setattr(asyncio.Handle, "_run", timed)  # noqa: B010 - there is no other way in

    def move(self, seconds: float) -> None:
        """Count seconds of a pipeline step as monitoring."""
        self.seconds[PIPELINE] -= seconds
        self.seconds[WATCHING] += seconds


async def _marked(work: Callable[[], Any]) -> Any:
    """Run something as monitoring; tasks that it starts count as monitoring too."""
    token = _for.set(WATCHING)
    try:
        return await work()
    finally:
        _for.reset(token)


class Companion(AbstractAsyncContextManager[Any]):
    """Something that a worker keeps open for monitoring."""

    def __init__(self, inner: AbstractAsyncContextManager[Any]) -> None:
        self._inner = inner

    async def __aenter__(self) -> Any:
        return await _marked(self._inner.__aenter__)

    async def __aexit__(self, *_: object) -> None:
        await self._inner.__aexit__(None, None, None)


class Timed(Observers):
    """Times the monitoring work after each commit."""

    def __init__(self, account: Account, *listeners: Observer) -> None:
        super().__init__(*listeners)
        self._account = account

    def committed(self, commit: Committed) -> None:
        """Forward the commit to the observers, and time that."""
        began = time.thread_time()
        super().committed(commit)
        self._account.move(time.thread_time() - began)


def prepare(account: Account, app: EngineApp) -> None:
    """Make an application count; call this before it starts."""
    app.companions = tuple(Companion(companion) for companion in app.companions)
    app.engine.observers = Timed(account, *app.engine.observers.listeners)
    server: Any = app.web
    server.start_server = partial(_marked, server.start_server)
    account.install()


def main(settings: Path, report: Path) -> None:
    """Run until told to stop, then write the report."""
    logging.basicConfig(level=logging.WARNING)
    account, loaded = Account(), load_settings(settings, SERVED)
    asyncio.run(Worker(loaded, prepare=lambda app: prepare(account, app)).run())
    report.write_bytes(orjson.dumps(account.seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
