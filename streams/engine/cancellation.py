"""Work that is allowed to finish before a cancellation counts.

Cancelling aiokafka while it connects leaks the connection. And what runs in a thread cannot be
cancelled at all.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_LINGER = 5.0


async def unhurried(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; if cancelled meanwhile, let it come to its end first, within bounds."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_LINGER)
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()  # seen: the cancellation is what counts
        raise


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work beside the event loop, which goes on meanwhile: heartbeats do not wait."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])  # it may be using what the caller is about to close
        raise
