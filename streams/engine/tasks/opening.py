"""How a task is opened: fence, restore, load, seek."""

import asyncio
from typing import Any

from streams.engine.api import AgentSpec
from streams.engine.cancellation import shielded
from streams.engine.config import EngineConfig
from streams.engine.observer import Observer
from streams.engine.state.store import open_free
from streams.engine.tasks.commit import Hook
from streams.engine.tasks.session import Session
from streams.engine.tasks.source import Source


async def open_session(
    config: EngineConfig,
    spec: AgentSpec,
    partition: int,
    *,
    source: Source,
    hook: Hook,
    observer: Observer,
    others: Any = None,
) -> Session:
    """Open a task. The order matters:

    1. Start the producer. This fences the previous owner of this id, and aborts its unfinished
       transaction.
    2. Open the store and read what the changelogs have beyond it; they can no longer grow.
    3. Load the tables, create the processor, and seek to the positions that belong to that state.
    """
    name = config.transactional_id(spec.name, partition)
    producer = config.producer(name)
    session = store = None
    try:
        async with asyncio.timeout(2 * config.request_timeout):
            await shielded(producer.start())
        tables = spec.tables()
        store = open_free(
            config.state_folder(spec.name, partition),
            [table.name for table in tables],
            config.changelog(spec.name),
            [table.name for table in tables if table.erasing],
        )
        session = Session(
            config,
            spec,
            partition,
            source=source,
            hook=hook,
            observer=observer,
            producer=producer,
            store=store,
        )
        await session.restore(others)
        await source.rewind(partition, session.positions)
    except BaseException:
        if session is not None:
            await session.close(clean=False)
        else:
            await producer.abandon()
            if store is not None:
                store.close()
        raise
    return session
