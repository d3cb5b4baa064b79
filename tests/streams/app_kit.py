"""Runs Faust applications inside a test."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from streams.app import EngineApp, WebConfig, build_app
from streams.tasks import AgentSpec, EngineConfig

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
    finally:
        await app.stop()
