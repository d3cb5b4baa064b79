"""Turns calls that run at the same time into few requests, without a wait for the first of them.

A call joins those that wait for the request under way to end; if there is none, the request begins
as soon as whatever else is ready to run has had its turn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST = 1_000
"""Items in one request."""


class Coalescer(Generic[Item, Answer]):
    """Collects items and hands them over together; each caller gets its own answer or error.

    `together` returns an answer or an error for each item; what it raises is an error of all.
    """

    def __init__(
        self, together: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]]
    ) -> None:
        self._together = together
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._task: asyncio.Task[None] | None = None

    async def answer(self, item: Item) -> Answer:
        """Hand an item over, together with others, and wait for its answer."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="coalescing")
        return await future

    async def finish(self) -> None:
        """Wait until everything has been answered."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                # A caller that was cancelled before its turn wants no answer.
                await self._ask([question for question in taken if not question[1].done()])
        finally:
            self._task = None

    async def _ask(self, asked: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        answers: Sequence[Answer | Exception]
        try:
            answers = await self._together([item for item, _ in asked])
        except Exception as error:  # noqa: BLE001 - the callers get it
            answers = [error] * len(asked)
        for (_, future), answer in zip(asked, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
