"""Cancelling aiokafka while it connects leaks the connection; so it is allowed to finish first."""

import asyncio
from collections.abc import Coroutine
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
