"""Runs Faust applications inside a test."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from streams.engine import AgentSpec, EngineConfig
from streams.faust.app import EngineApp, WebConfig, build_app

NO_PAGES = WebConfig(host=None)


@contextlib.asynccontextmanager
async def worker(
    config: EngineConfig, *specs: AgentSpec, web: WebConfig = NO_PAGES, setup: Any = None
) -> AsyncIterator[EngineApp]:
    """Run an application with these agents; `setup(app)` may add others."""
    app = build_app(config, web)
    for spec in specs:
        app.add_agent(spec)
    if setup is not None:
        setup(app)
    app.finalize()
    await app.start()
    try:
        yield app
    except TimeoutError:
        sys.stderr.write(describe(app))
        raise
    finally:
        await app.stop()


def describe(app: EngineApp) -> str:
    """Return the information needed to see why a worker is stuck."""
    consumer: Any = app.consumer
    plain = consumer._thread._consumer
    fetcher, assignment = plain._fetcher, plain._subscription.subscription.assignment
    lines = [
        f"joined={app.engine.joined} rebalancing={app.rebalancing} flow={consumer.flow_active}",
        f"on the way={consumer._on_the_way} active={consumer._active_partitions}",
        f"fetches under way={fetcher._in_flight} fetched={list(fetcher._records)}",
        *[str(status) for status in app.engine.statuses()],
        *[f"{tp}: {vars(assignment.state_value(tp))}" for tp in plain.assignment()],
    ]
    for loop in (app.loop, plain._client._loop):
        for task in asyncio.all_tasks(loop):
            stack = [f"{frame.f_code.co_name}:{frame.f_lineno}" for frame in task.get_stack()]
            lines.append(f"{task.get_name()} {task.get_coro()} {stack}")
    return "\n".join(lines) + "\n"
