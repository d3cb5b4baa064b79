"""Work that is allowed to finish before a cancellation takes effect.

Cancelling aiokafka while it connects leaks the connection, and work in a thread cannot be cancelled
at all.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_LINGER = 5.0


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; if cancelled meanwhile, let it finish first, for a limited time."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_LINGER)
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()  # retrieved: the cancellation is what counts
        raise


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread, so that the event loop and its heartbeats go on."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])  # it may be using what the caller is about to close
        raise
